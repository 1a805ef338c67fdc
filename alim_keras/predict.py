"""Predicts the class of images with a trained model.

Writes a CSV file: id, label, probability, and the next classes. MODEL is a run
folder, a model.keras or a saved_model folder: one that you trust. PATHS are
image files, folders of them however deep, or .npz and .npy files with an array
of images; for a model of feature vectors, .npz or .npy files of these.
"""

import dataclasses
import sys
import warnings

import numpy as np
import pandas as pd

from alim_keras import errors
from alim_keras.app import cli
from alim_keras.app import process
from alim_keras.app.values import choice
from alim_keras.app.values import whole


@dataclasses.dataclass(frozen=True)
class PredictConfig:
    """Prediction.

    Attributes:
        top_k: How many classes are listed for each item, the likeliest first.
        batch_size: How many images are read and predicted at once.
        on_bad_image: Images that cannot be read: stop, or leave them out.
    """

    top_k: int = whole(3, low=1)
    batch_size: int = whole(64, low=1)
    on_bad_image: str = choice("error", "error", "skip")


COMMAND = cli.Command(
    name="predict",
    doc=__doc__,
    groups=(PredictConfig,),
    words=("model", "[paths...]"),
    examples=(
        "predict runs/mine photos > labels.csv",
        "predict runs/mine a.jpg b.png --top_k=1",
    ),
)


def main(line):
    """Predicts the items of the command line."""
    from alim_keras.app import predictor as predicting

    options, paths = line.options, line.words["paths"]
    if not paths:
        raise errors.ConfigError("Give images to predict. Received: no images")
    predictor = predicting.load_predictor(line.words["model"])
    items, skipped = predicting.items_of_paths(paths, predictor), {}
    total, count = sum(len(ids) for ids, _ in items), 0
    for ids, values in _batches(items, options, skipped):
        table = _table(ids, predictor, values, options.top_k)
        table.to_csv(
            sys.stdout, index=False, header=not count, float_format="%.6f"
        )
        count += len(ids)
        if not sys.stdout.isatty():
            process.show_progress(count + len(skipped), total)
    if not count:
        why = "none of the images can be read" if skipped else "no items"
        raise errors.DataError(f"There is nothing to predict: {why}")
    sys.stdout.flush()
    if skipped:
        reasons = [": ".join(pair) for pair in skipped.items()]
        warnings.warn(
            f"{len(skipped):,} of the images cannot be read and are left out: "
            f"{errors.first_five(reasons)}",
            errors.DataWarning,
            stacklevel=1,
        )


def _batches(items, options, skipped):
    """Yields ids and values of a batch; notes images that cannot be read."""
    from alim_keras.data.images import image_rows

    for ids, values in items:
        for start in range(0, len(ids), options.batch_size):
            rows, problems = slice(start, start + options.batch_size), {}
            batch, names = image_rows(values, rows, problems), ids[rows]
            for place, reason in sorted(problems.items()):
                if options.on_bad_image == "error":
                    text = f"{names[place]}: {reason}"
                    advice = "--on_bad_image=skip leaves such images out"
                    raise errors.DataError(f"{text}; {advice}")
                skipped[names[place]] = reason
            sound = np.setdiff1d(np.arange(len(names)), list(problems))
            if len(sound):
                yield names[sound], batch[sound]


def _table(ids, predictor, values, top_k):
    """Returns a frame: each item's likeliest classes and probabilities."""
    p = predictor.probabilities(values)
    order = np.argsort(-p, axis=1, kind="stable")[:, :top_k]
    table = {"id": ids}
    for rank, classes in enumerate(order.T, start=1):
        suffix = "" if rank == 1 else f"_{rank}"
        names = np.array(predictor.class_names, object)
        table[f"label{suffix}"] = names[classes]
        table[f"probability{suffix}"] = p[np.arange(len(p)), classes]
    return pd.DataFrame(table)


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main))
