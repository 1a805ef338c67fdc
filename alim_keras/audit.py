"""Says what is in each training image, and which labels to look at again.

    python -m alim_keras.audit runs/labels-pico-seed0 --folds=3

Writes labels.csv, review.csv, tables of classes and annotators, and
report.html into the run folder. The same from Python: `alim_keras.audit`.
"""

import os
import sys
import tempfile
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
    check_begun(folder)
    out = settings.out or folder.path
    # Before --folds trains for hours.
    _check_out(out, settings.out)
    with folder.lock(to_read=bool(settings.out)):
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
        history = _history(folder)
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
            history=history,
            facts=_facts(run, folder, history),
            name=os.path.basename(run.settings.dataset),
            review=settings.review,
            ratio=found.ratio,
            as_given=_given(run),
        )
        paths = audit.write(out)
        paths.append(os.path.join(out, "report.html"))
        audit.to_html(paths[-1], images=training.data.images)
    _say(audit, out, {os.path.basename(path) for path in paths})


def _check_out(out, asked):
    """Raises unless files can be written into the folder.

    Args:
        out: Path of the folder, which may be missing.
        asked: `--out`, or None.
    """
    if os.path.exists(out) and not os.path.isdir(out):
        raise ConfigError(f"--out must be a folder. Received: --out={out}")
    place = os.path.abspath(out)
    while not os.path.exists(place):
        place = os.path.dirname(place)
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        another = "another folder" if asked else "a folder"
        raise ConfigError(
            f"{out} cannot be written to: {error.strerror}. Give {another} "
            "for the tables and the report: --out=FOLDER"
        ) from error


def _given(run):
    """Returns the sets as they were given, if known labels stand in some."""
    training = run.training
    if not run.settings.known_as_sets or training.given is None:
        return None
    return training.given.align(training.data.ids)


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


def _facts(run, folder, history):
    """Returns what is known of the model that is audited.

    It is that of the selected epoch, and most of metrics.csv is not about it.
    """
    facts = {"epochs": run.epoch, "run_epochs": run.epochs}
    if history is not None and run.epoch <= len(history):
        row = history.iloc[run.epoch - 1]
        for name in ("test_accuracy", "lambda", "noise_rate"):
            value = row.get(name)
            # What was not computed in this epoch is NaN.
            if value is not None and value == value:
                facts[name] = float(value)
    results = folder.finished() or {}
    facts.setdefault("test_accuracy", results.get("test_accuracy_selected"))
    facts.setdefault("noise_rate", results.get("noise_rate"))
    return facts


def _say(audit, out, names):
    from alim_keras.report.counted import in_words

    summary = audit.summary
    count = summary["num_examples"]
    print(
        f"{count:,} items, {summary['num_classes']} classes. Settled labels "
        f"outside their set: {summary['outside']:,} "
        f"({summary['outside'] / count:.1%}); undecided: "
        f"{summary['undecided']:,} ({summary['undecided'] / count:.1%}). "
        f"Labels are {summary['kind']}.{_of_epoch(summary)}"
    )
    if counted := in_words(summary):
        print(counted.replace("\N{NO-BREAK SPACE}", " "))
    print(f"In {out}:")
    for name, what in _WRITTEN:
        if name in names:
            print(f"  {name:<19} {what}")


def _of_epoch(summary):
    """Returns which epoch is audited, in words, if it is not the last."""
    epochs, all_epochs = summary["epochs"], summary["run_epochs"]
    if epochs == all_epochs or "folds" in summary["kinds"]:
        return ""
    return f" The network is that of epoch {epochs} of {all_epochs}, selected."


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
