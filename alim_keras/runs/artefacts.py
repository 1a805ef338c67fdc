"""What a run leaves for others: served model, Keras model, labels."""

import os
import shutil

import numpy as np

from alim_keras.data import eval_dataset
from alim_keras.errors import EnvironmentLacksError
from alim_keras.report import settled_labels
from alim_keras.report import write_labels

# Rows of weights are read in blocks of about this many numbers.
_BLOCK = 1 << 24


def write_artefacts(folder, model, training):
    """Writes saved_model/, model.keras and labels.csv into a run folder.

    Where TensorFlow is not installed saved_model/ is left out, and a line
    says so.

    Args:
        folder: The `RunFolder`.
        model: The model, with the weights to publish.
        training: The `TrainingData` it was trained on.
    """
    try:
        write_saved_model(folder, model, training.data.class_names)
    except EnvironmentLacksError as error:
        print(f"saved_model is left out. {error}", flush=True)
    partial = folder.file(".partial.keras")
    model.save(partial)
    os.replace(partial, folder.file("model.keras"))
    write_run_labels(folder, model, training)


def write_saved_model(folder, model, class_names):
    """Exports the classifier; the folder appears only when it is whole."""
    partial, path = (
        folder.file(".partial-saved_model"),
        folder.file("saved_model"),
    )
    old = folder.file(".old-saved_model")
    for leftover in (partial, old):
        shutil.rmtree(leftover, ignore_errors=True)
    model.export(partial, class_names=class_names)
    if os.path.exists(path):
        os.replace(path, old)
    os.replace(partial, path)
    shutil.rmtree(old, ignore_errors=True)


def write_run_labels(folder, model, training):
    """Writes labels.csv: the table's rows, predictions for held-out images."""
    data, sets = training.data, training.sets
    settled = {}
    sources = np.full(len(sets), "table", object)
    sources[training.held_out] = "prediction"
    for read, rows in (
        (_table_rows, training.trained),
        (_predictions, training.held_out),
    ):
        # In blocks: all rows over many classes are more than a host holds.
        step = max(1, _BLOCK // sets.shape[1])
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            given = _given(sets, part)
            weights = read(model, data, part, given, start)
            for name, values in settled_labels(weights, given).items():
                if name not in settled:
                    settled[name] = np.empty((len(sets),), values.dtype)
                settled[name][part] = values
    write_labels(
        folder.file("labels.csv"),
        data.ids,
        data.class_names,
        settled,
        sets,
        sources,
    )


def _given(sets, rows):
    """Returns some candidate sets as a bool matrix."""
    if hasattr(sets, "rows"):
        return sets.rows(rows) > 0
    return sets[rows]


def _table_rows(model, data, rows, given, start):
    del data
    table = model.pseudo_label_table
    weights = np.array(table.dense_rows(start, start + len(rows)))
    # Rows that no epoch has touched yet stand for a uniform set.
    untouched = weights.max(axis=1) <= 0
    uniform = given / given.sum(axis=1, keepdims=True)
    weights[untouched] = uniform[untouched]
    return weights


def _predictions(model, data, rows, given, start):
    del start
    batches = eval_dataset(data.images[rows], given, given.shape[1])
    return model.predict(batches, verbose=0)
