"""Settles the label of each training image, and lists labels to review.

Writes labels.csv, review.csv, tables of classes and annotators, and
report.html into the run folder. The same from Python: alim_keras.audit.
"""

import dataclasses
import os
import sys
import tempfile

import numpy as np
import pandas as pd

from alim_keras.app import cli
from alim_keras.app import process
from alim_keras.app import values
from alim_keras.app.config import ReopenConfig
from alim_keras.report import tasks


@dataclasses.dataclass(frozen=True)
class AuditConfig:
    """Audit.

    Attributes:
        review: How many items review.csv lists for a person to look at.
        review_format: Write these items as tasks of another program, too:
            label_studio, cvat or fiftyone. What it exports once they are
            answered, review --answers=EXPORT takes.
        folds: Train this many networks, each without one part of the items,
            and judge each part by the network that never saw its labels. It
            takes as many trainings, and finds more. Without it: what the
            run's own network believes.
        fold_epochs: Epochs of each training of --folds. Without it: as many
            as the run.
        out: Folder for the tables and the report. Without it: the run's own.
    """

    review: int = values.whole(200, low=1)
    review_format: str = values.choice("csv", *tasks.FORMATS)
    folds: int | None = values.whole(None, low=2, high=100)
    fold_epochs: int | None = values.whole(None, low=1)
    out: str | None = values.path()


COMMAND = cli.Command(
    name="audit",
    doc=__doc__,
    groups=(AuditConfig, ReopenConfig),
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
    from alim_keras.callbacks import read_metrics
    from alim_keras.report import examine
    from alim_keras.report.examination import embedded

    options = line.options
    # With --out, a run folder that nobody may write to will do.
    with build.open_run(line, lock=not options.out) as run:
        folder, training = run.folder, run.training
        out = options.out or folder.path
        os.makedirs(out, exist_ok=True)
        # Fails now, and not after --folds has trained for hours.
        tempfile.TemporaryFile(dir=out).close()
        rate = unseen = None
        if options.folds:
            # The part that the run holds out is to be judged, too.
            everything = np.arange(len(training))
            training = dataclasses.replace(training, trained=everything)
            unseen = noise.fold_probabilities(
                run.config, training, options.folds, options.fold_epochs
            )
        elif run.model.folds:
            unseen = artefacts.held_out_probabilities(run.model, training)
        else:
            rate = noise.Kept(run.config, folder, training).in_force()
        probabilities = np.zeros(training.sets.shape, np.float32)
        kinds = np.empty(len(training), object)
        for part, weights, kind in artefacts.beliefs(
            run.model, training, unseen
        ):
            probabilities[part], kinds[part] = weights, kind
        features, test = embedded(run.model, training.images), None
        if features is not None and len(training.test_images):
            seen = embedded(run.model, training.test_images)
            names = np.array(training.class_names, object)
            test = training.test_ids, names[training.test_labels], seen
        history = read_metrics(folder.file("metrics.csv"))
        audit = examine(
            probabilities,
            training.sets,
            kind=kinds,
            votes=training.votes,
            noise_rate=rate,
            labels=training.labels,
            known=None if training.known is None else training.known >= 0,
            history=pd.DataFrame(history) if history else None,
            name=os.path.basename(run.config.data.dataset),
            review=options.review,
            as_given=training.candidates if training.known_as_sets else None,
            features=features,
            test=test,
        )
        paths = audit.write(out)
        listed = audit.review, audit.class_names
        paths += tasks.write(out, options.review_format, *listed)
        paths.append(os.path.join(out, "report.html"))
        images = training.pictures
        audit.to_html(paths[-1], training.images if images is None else images)
    print(audit.describe())
    print(f"In {out}: {', '.join(map(os.path.basename, paths))}.")


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main))
