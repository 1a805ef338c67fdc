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

from alim_keras.app import cli
from alim_keras.app import process
from alim_keras.app.values import choice
from alim_keras.app.values import whole
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import DataWarning
from alim_keras.errors import first_five


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
        raise ConfigError("Give images to predict. Received: no images")
    predictor = predicting.load_predictor(line.words["model"])
    items = predicting.inputs_of_paths(paths, predictor)
    skipped = {} if options.on_bad_image == "skip" else None
    _write(options, predictor, items, skipped)
    if skipped:
        reasons = [": ".join(pair) for pair in skipped.items()]
        warnings.warn(
            f"{len(skipped):,} of the images cannot be read and are left out: "
            f"{first_five(reasons)}",
            DataWarning,
            stacklevel=1,
        )


def _write(options, predictor, items, skipped):
    """Writes a row for each item to stdout."""
    names = np.array(predictor.class_names, object)
    total, count = sum(len(inputs.ids) for inputs in items), 0
    for inputs in items:
        for rows, values in inputs.batches(options.batch_size, skipped):
            p = predictor.probabilities(values)
            order = np.argsort(-p, axis=1, kind="stable")[:, : options.top_k]
            table = {"id": [inputs.ids[row] for row in rows]}
            for rank, classes in enumerate(order.T, start=1):
                suffix = "" if rank == 1 else f"_{rank}"
                table[f"label{suffix}"] = names[classes]
                shares = p[np.arange(len(p)), classes]
                table[f"probability{suffix}"] = shares
            pd.DataFrame(table).to_csv(
                sys.stdout, index=False, header=not count, float_format="%.6f"
            )
            count += len(rows)
            if not sys.stdout.isatty():
                process.show_progress(count + len(skipped or ()), total)
    if not count:
        why = "the files hold no items"
        if skipped:
            why = "none of the images can be read"
        raise DataError(f"There is nothing to predict: {why}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main))
