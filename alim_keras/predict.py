"""Predicts new images, or feature vectors, with a trained model.

    python -m alim_keras.predict runs/digits-pico-seed0 photos > labels.csv

Writes a CSV file: `id`, `label`, `probability`, and the next classes. With
`--rank --candidates_file=TABLE` it puts the candidates of each item in order,
so that a person can pick.
"""

import contextlib
import csv
import dataclasses
import io
import sys
import warnings

from alim_keras.app import cli
from alim_keras.app import process
from alim_keras.app.config import TableConfig
from alim_keras.app.values import path
from alim_keras.app.values import switch
from alim_keras.app.values import whole
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import DataWarning
from alim_keras.errors import first_five
from alim_keras.files import check_is_no_folder
from alim_keras.files import replacing


@dataclasses.dataclass(frozen=True)
class PredictConfig:
    """Prediction.

    Attributes:
        out: CSV file to write, whole or not at all. Without it: standard
            output.
        top_k: How many classes are listed for each item, the likeliest first.
        rank: Put the candidates of each item of --candidates_file in order of
            probability, and mark items whose likeliest class is none of them.
        candidates_file: A table of items with their candidate sets: predict
            these items, in place of PATHS.
        batch_size: How many images are read and predicted at once.
    """

    out: str | None = path()
    top_k: int = whole(3, low=1)
    rank: bool = switch(False)
    candidates_file: str | None = path()
    batch_size: int = whole(64, low=1)


_UNREAD = "known_labels known_as_sets test_labels".split()
# Read for --candidates_file only.
_OF_TABLE = [
    field.name
    for field in dataclasses.fields(TableConfig)
    if field.name not in ("class_names", "on_bad_image", "top_k", *_UNREAD)
]
COMMAND = cli.Command(
    name="predict",
    doc=(
        "Predicts the class of images with a trained model, and writes a CSV "
        "file: id, label, probability, and the next classes. MODEL is a run "
        "folder, a model.keras or a saved_model folder: one that you trust. "
        "PATHS are image files, folders of them however deep, or .npz and "
        ".npy files with an array of images; for a model of feature vectors, "
        ".npz or .npy files of these."
    ),
    groups=(PredictConfig, TableConfig),
    words=("model", "[paths...]"),
    examples=(
        "predict runs/mine photos > labels.csv",
        "predict runs/mine a.jpg b.png --top_k=1 --out=labels.csv",
        "predict runs/mine --rank --candidates_file=sets.csv --images=photos",
    ),
)


def main(line):
    """Predicts the items of the command line."""
    from alim_keras.app import load
    from alim_keras.app import predictor as predicting
    from alim_keras.data.class_names import read_class_names

    options = line.options
    table = dataclasses.replace(line.group(TableConfig), top_k=None)
    _check(line, options)
    names = table.class_names
    names = read_class_names(names) if names else None
    predictor = predicting.load_predictor(line.words["model"], names)
    if options.candidates_file:
        items = predicting.inputs_of_table(
            options.candidates_file,
            predictor,
            images=table.images,
            on_bad_image=table.on_bad_image,
            **load.reading(table),
        )
    else:
        items = predicting.inputs_of_paths(line.words["paths"], predictor)
    skipped = {} if table.on_bad_image == "skip" else None
    try:
        with _output(options.out) as file:
            count, outside = _write(options, predictor, items, skipped, file)
    except BrokenPipeError:
        process.close_stdout()
        return
    if options.out:
        print(f"Wrote {count:,} predictions to {options.out}")
        if options.rank:
            print(f"The likeliest class is outside the set of {outside:,}")
    if skipped:
        reasons = [": ".join(pair) for pair in skipped.items()]
        warnings.warn(
            f"{len(skipped):,} images could not be read and are left out: "
            f"{first_five(reasons)}",
            DataWarning,
            stacklevel=1,
        )


def _check(line, options):
    """Raises for flags that do not fit together."""
    paths, table = line.words["paths"], options.candidates_file
    if bool(paths) == bool(table) or (options.rank and not table):
        raise ConfigError(
            "Give either images to predict, or the table of items, which "
            "--rank needs, as --candidates_file. Received: "
            f"{' '.join(paths) or 'no images'}, --candidates_file={table}"
        )
    line.refuse_typed(_UNREAD, "is not read: a prediction needs no true labels")
    if paths:
        line.refuse_typed(_OF_TABLE, "is not read: PATHS are no table")
    if options.out:
        check_is_no_folder(options.out, "--out")


def _write(options, predictor, items, skipped, file):
    """Writes all rows; returns how many, and how many are outside their set."""
    from alim_keras.report import labels as predictions

    writer = csv.writer(file, lineterminator="\n")
    names = predictor.class_names
    top = min(options.top_k, len(names))
    header = predictions.RANKED_HEADER
    writer.writerow(header if options.rank else predictions.top_header(top))
    total, count, outside = sum(len(inputs.ids) for inputs in items), 0, 0
    for inputs in items:
        for rows, values in inputs.batches(options.batch_size, skipped):
            p = predictor.probabilities(values)
            ids = [inputs.ids[row] for row in rows]
            if options.rank:
                sets = inputs.sets.rows(rows) > 0
                lines = list(predictions.ranked_rows(ids, p, sets, names))
                outside += sum(row[4] == "1" for row in lines)
            else:
                lines = predictions.top_rows(ids, p, names, top)
            writer.writerows(lines)
            count += len(ids)
            if options.out:
                process.show_progress(count + len(skipped or ()), total)
    if not count:
        why = "the files hold no items"
        if skipped:
            why = f"{len(skipped)} images, and none of them can be read"
        raise DataError(f"There is nothing to predict: {why}")
    return count, outside


@contextlib.contextmanager
def _output(file):
    """Yields the text file to write to: a new file, or standard output."""
    if file is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    with replacing(file) as opened:
        text = io.TextIOWrapper(opened, encoding="utf-8", newline="")
        yield text
        text.flush()
        text.detach()


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main))
