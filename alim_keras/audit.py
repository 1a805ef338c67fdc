"""Settles the label of each training image, and lists labels to review.

    python -m alim_keras.audit runs/labels-pico-seed0 --folds=3

Writes labels.csv, review.csv, tables of classes and annotators, and
report.html into the run folder. The same from Python: `alim_keras.audit`.
"""

import dataclasses
import os
import sys

import numpy as np

from alim_keras.app import cli
from alim_keras.app import process
from alim_keras.app.values import path
from alim_keras.app.values import switch
from alim_keras.app.values import whole
from alim_keras.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class AuditConfig:
    """Audit.

    Attributes:
        review: How many items review.csv lists for a person to look at.
        folds: Train this many networks, each without one part of the items,
            and judge each part by the network that never saw its labels. It
            takes as many trainings, and finds more. Without it: what the
            run's own network believes.
        fold_epochs: Epochs of each training of --folds. Without it: as many
            as the run.
        out: Folder for the tables and the report. Without it: the run's own.
        images: Where the images lie now, if no longer where the run found
            them.
        data_dir: Where a data set with a name lies now, likewise.
        trust_code: Run the code that the run's run.flags names, such as a
            method of its own.
    """

    review: int = whole(200, low=1)
    folds: int | None = whole(None, low=2, high=100)
    fold_epochs: int | None = whole(None, low=1)
    out: str | None = path()
    images: str | None = path()
    data_dir: str | None = path()
    trust_code: bool = switch(False)


COMMAND = cli.Command(
    name="audit",
    doc=(
        "Says what is in each training image of a run and which labels a "
        "person should look at again: labels.csv, review.csv, tables of "
        "classes and annotators, and report.html."
    ),
    groups=(AuditConfig,),
    words=("run",),
    examples=(
        "audit runs/mine",
        "audit runs/mine --folds=3",
        "audit runs/mine --out=audit --review=50",
    ),
)


def main(line):
    """Audits the run named on the command line."""
    from alim_keras.app import artefacts
    from alim_keras.app import build
    from alim_keras.app import noise
    from alim_keras.app.run_folder import RunFolder
    from alim_keras.report import examine

    options = line.options
    folder = RunFolder(line.words["run"])
    build.check_begun(folder)
    out = options.out or folder.path
    # Before --folds trains for hours.
    _check_out(out)
    with folder.lock(to_read=bool(options.out)):
        run = build.open_run(folder, options)
        training = run.training
        rate = None
        kinds = np.full(len(training), "folds", object)
        if options.folds:
            # `examine` finds the temperature and the noise rate by itself.
            probabilities = noise.fold_probabilities(
                run, folder, options.folds, options.fold_epochs
            )
            everything = np.arange(len(training))
            artefacts.put_known(training, everything, probabilities, kinds)
        else:
            rate = noise.Kept(run.config, folder, training).in_force()
            probabilities = np.zeros(training.sets.shape, np.float32)
            for part, weights, kind in artefacts.beliefs(run.model, training):
                probabilities[part], kinds[part] = weights, kind
        audit = examine(
            probabilities,
            training.sets,
            kind=kinds,
            votes=training.votes,
            noise_rate=rate,
            labels=training.labels,
            known=None if training.known is None else training.known >= 0,
            history=_history(folder),
            name=os.path.basename(run.config.data.dataset),
            review=options.review,
            as_given=training.candidates if training.known_as_sets else None,
        )
        paths = [*audit.write(out), os.path.join(out, "report.html")]
        audit.to_html(paths[-1], images=training.images)
    print(audit.describe())
    print(f"In {out}: {', '.join(map(os.path.basename, paths))}.")


def _check_out(out):
    """Raises unless files can be written into a folder, new or not."""
    if os.path.exists(out) and not os.path.isdir(out):
        raise ConfigError(f"--out must be a folder. Received: --out={out}")
    place = os.path.abspath(out)
    while not os.path.exists(place):
        place = os.path.dirname(place)
    if not os.access(place, os.W_OK):
        raise ConfigError(
            f"{out} cannot be written to. Give another folder for the tables "
            "and the report: --out=FOLDER"
        )


def _history(folder):
    """Returns the sound rows of metrics.csv as a data frame, or None."""
    import pandas as pd

    from alim_keras.callbacks import read_metrics

    rows = read_metrics(folder.file("metrics.csv"))
    return pd.DataFrame(rows).apply(pd.to_numeric) if rows else None


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main))
