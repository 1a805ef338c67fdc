"""What a run leaves for others: served model, Keras model, labels."""

import os
import shutil

import numpy as np

from alim_keras.data import eval_dataset
from alim_keras.report import write_labels


def write_artefacts(folder, model, training):
    """Writes saved_model/, model.keras and labels.csv into a run folder.

    Args:
        folder: The `RunFolder`.
        model: The model, with the weights to publish.
        training: The `TrainingData` it was trained on.
    """
    write_saved_model(folder, model, training.data.class_names)
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
    weights = np.zeros(sets.shape, "float32")
    sources = np.full(len(sets), "table", object)
    table = model.pseudo_labels.numpy()
    # Rows that no epoch has touched yet stand for a uniform set.
    untouched = table.max(axis=1) <= 0
    given = sets[training.trained]
    table[untouched] = (given / given.sum(axis=1, keepdims=True))[untouched]
    weights[training.trained] = table
    if len(training.held_out):
        batches = eval_dataset(
            data.images[training.held_out],
            sets[training.held_out],
            sets.shape[1],
        )
        weights[training.held_out] = model.predict(batches, verbose=0)
        sources[training.held_out] = "prediction"
    write_labels(
        folder.file("labels.csv"),
        data.ids,
        data.class_names,
        weights,
        sets,
        sources,
    )
