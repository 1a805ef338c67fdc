"""What a run leaves for others: served model, Keras model, labels."""

import os
import shutil

import numpy as np

from alim_keras.data import eval_dataset
from alim_keras.errors import EnvironmentLacksError
from alim_keras.report import LabelRows
from alim_keras.report import write_classes
from alim_keras.report import write_labels

# Rows of weights are read in blocks of about this many numbers.
_BLOCK = 1 << 24


def write_artefacts(folder, model, training):
    """Writes saved_model/, model.keras, labels.csv and classes.csv.

    Where TensorFlow is not installed saved_model/ is left out, and a line
    says so.

    Args:
        folder: The `RunFolder`.
        model: The model, with the weights to publish.
        training: The `TrainingData` it was trained on.

    Returns:
        The mean over the classes of their test accuracy, or None where no
        test image has a label.
    """
    try:
        write_saved_model(folder, model, training.data.class_names)
    except EnvironmentLacksError as error:
        print(f"saved_model is left out. {error}", flush=True)
    partial = folder.file(".partial.keras")
    model.save(partial)
    os.replace(partial, folder.file("model.keras"))
    settled = write_run_labels(folder, model, training)
    return write_run_classes(folder, model, training, settled)


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
    """Writes labels.csv: the table's rows, predictions for held-out images.

    A method that keeps no pseudo labels predicts all images. What a person
    told is neither.

    Returns:
        int64 `(N,)`, the settled labels.
    """
    data, sets = training.data, training.sets
    labels = LabelRows(data.ids, data.class_names)
    sources = np.full(len(sets), "table", object)
    sources[training.held_out] = "prediction"
    if not model.keeps_pseudo_labels:
        sources[:] = "prediction"
    for read, rows in (
        (
            _table_rows if model.keeps_pseudo_labels else _predictions,
            training.trained,
        ),
        (_predictions, training.held_out),
    ):
        # In blocks: all rows over many classes are more than a host holds.
        step = max(1, _BLOCK // sets.shape[1])
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            given = _given(sets, part)
            weights = read(model, data, part, given, start)
            if training.known_as_sets:
                weights = np.array(weights)
                known = training.known[part]
                told = np.flatnonzero(known >= 0)
                weights[told] = 0
                weights[told, known[told]] = 1
                sources[part[told]] = "known"
            labels.add(part, weights, given)
    write_labels(folder.file("labels.csv"), labels.frame(sources))
    return labels.settled["label"]


def write_run_classes(folder, model, training, settled):
    """Writes classes.csv; returns the mean test accuracy of the classes.

    Args:
        folder: The `RunFolder`.
        model: The model, with the weights to publish.
        training: The `TrainingData` it was trained on.
        settled: The settled labels, int64 `(N,)`.
    """
    data = training.data
    num_classes = len(data.class_names)
    predicted = []
    step = max(1, _BLOCK // num_classes)
    for start in range(0, len(data.test_images), step):
        part = slice(start, start + step)
        batches = eval_dataset(
            data.test_images[part], data.test_labels[part], num_classes
        )
        predicted.append(model.predict(batches, verbose=0).argmax(axis=1))
    return write_classes(
        folder.file("classes.csv"),
        data.class_names,
        training.sets,
        settled,
        None if data.labels is None else data.labels[data.labels >= 0],
        (data.test_labels, np.concatenate(predicted)) if predicted else None,
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
