"""Says what is in each training image, and which labels to look at again.

    python -m alim_keras.audit runs/labels-pico-seed0 --folds=3

Writes labels.csv, review.csv, tables of classes and annotators, and
report.html into the run folder. The same from Python: `alim_keras.audit`.
"""

import os
import sys
import types

import numpy as np

from alim_keras import cli
from alim_keras.cli import audit_flags
from alim_keras.cli import train_flags
from alim_keras.errors import ConfigError

_WRITTEN = (
    ("report.html", "the report, for a browser; it needs no network"),
    ("labels.csv", "every item: given set, settled label, suggested set"),
    ("review.csv", "the items to look at first"),
    ("noise_by_class.csv", "a row per class"),
    ("confusions.csv", "which classes were taken for which"),
    ("annotators.csv", "a row per annotator"),
)


def main(settings):
    """Audits the run named on the command line."""
    from alim_keras.report import examine
    from alim_keras.runs import beliefs
    from alim_keras.runs import noise
    from alim_keras.runs.folder import RunFolder
    from alim_keras.runs.reopen import check_begun
    from alim_keras.runs.reopen import reopen

    folder = RunFolder(settings.run)
    out = settings.out or folder.path
    if os.path.exists(out) and not os.path.isdir(out):
        # Before --folds trains for hours.
        raise ConfigError(f"--out must be a folder. Received: --out={out}")
    check_begun(folder)
    with folder.lock():
        run = reopen(
            folder,
            train_flags.COMMAND,
            data_dir=settings.data_dir,
            images=settings.images,
        )
        training = run.training
        if settings.folds:
            found = beliefs.of_folds(
                run, folder, settings.folds, settings.fold_epochs
            )
        else:
            rate = noise.final(run.settings, folder, training)
            found = beliefs.of_run(run, rate)
        _tell_known(found, run)
        audit = examine(
            found.probabilities,
            training.candidates.align(training.data.ids),
            class_names=training.data.class_names,
            ids=training.data.ids,
            kind=found.kinds,
            votes=training.votes,
            noise_rate=found.noise_rate,
            labels=training.data.labels,
            known=None if training.known is None else training.known >= 0,
            history=_history(folder),
            name=os.path.basename(run.settings.dataset),
            review=settings.review,
            ratio=found.ratio,
        )
        _add_facts(audit, run, folder)
        paths = audit.write(out)
        paths.append(os.path.join(out, "report.html"))
        audit.to_html(paths[-1], images=training.data.images)
    _say(audit, out, {os.path.basename(path) for path in paths})


def _history(folder):
    """Returns metrics.csv as a data frame, or None."""
    import pandas as pd

    path = folder.file("metrics.csv")
    return pd.read_csv(path) if os.path.exists(path) else None


def _tell_known(found, run):
    """Puts the labels that a person gave in place of beliefs, if asked."""
    if run.training.known is None or not run.settings.known_as_sets:
        return
    rows = np.flatnonzero(run.training.known >= 0)
    found.probabilities[rows] = 0.0
    found.probabilities[rows, run.training.known[rows]] = 1.0
    found.kinds[rows] = "known"


def _add_facts(audit, run, folder):
    """Adds what only the run knows to the audit's summary."""
    results = folder.finished() or {}
    facts = {
        "epochs": run.epoch,
        "test_accuracy": results.get("test_accuracy_selected"),
        "lambda": results.get("lambda"),
        "noise_rate": results.get("noise_rate"),
    }
    for name, value in facts.items():
        if audit.summary.get(name) is None:
            audit.summary[name] = value


def _say(audit, out, names):
    summary = audit.summary
    count = summary["num_examples"]
    print(
        f"{count:,} items, {summary['num_classes']} classes. Settled labels "
        f"outside their set: {summary['outside']:,} "
        f"({summary['outside'] / count:.1%}); undecided: "
        f"{summary['undecided']:,} ({summary['undecided'] / count:.1%}). "
        f"Labels are {summary['kind']}.\nIn {out}:"
    )
    for name, what in _WRITTEN:
        if name in names:
            print(f"  {name:<19} {what}")


class _CallableModule(types.ModuleType):
    """The module under the name of the function that it stands before.

    Importing it puts it in the place of `alim_keras.audit`, the function,
    which callers must still find there.
    """

    def __call__(self, *args, **kwargs):
        from alim_keras import report

        return report.audit(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule

if __name__ == "__main__":
    sys.exit(cli.run(audit_flags.COMMAND, main))
