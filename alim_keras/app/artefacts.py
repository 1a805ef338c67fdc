"""What a run leaves for others: served model, Keras model, labels."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile

import keras
import numpy as np

from alim_keras import report
from alim_keras.app.build import eval_batches
from alim_keras.data import eval_dataset
from alim_keras.files import PARTIAL
from alim_keras.files import move_written


def write(folder, model, training, labels=True):
    """Writes saved_model/, model.keras, labels.csv and classes.csv.

    On JAX saved_model/ is left to `export_on_tensorflow`, which needs the
    folder to itself.

    Args:
        folder: The `RunFolder`.
        model: The model, with the weights to publish.
        training: The `TrainingSet` it was trained on.
        labels: Whether labels.csv and classes.csv are written.

    Returns:
        The mean over the classes of their test accuracy, or None where no
        test image has a label.
    """
    if keras.config.backend() == "tensorflow":
        write_saved_model(folder, model, training.class_names)
    with _unfinished(folder) as partial:
        path = os.path.join(partial, "model.keras")
        model.save(path)
        move_written(path, folder.file("model.keras"))
    if not labels:
        return None
    settled = write_labels(folder, model, training)
    return write_classes(folder, model, training, settled)


def write_saved_model(folder, model, class_names):
    """Exports the classifier; the folder appears only when it is whole."""
    path = folder.file("saved_model")
    with _unfinished(folder) as partial:
        new, old = os.path.join(partial, "new"), os.path.join(partial, "old")
        model.export(new, class_names=class_names)
        if os.path.lexists(path):
            os.replace(path, old)
        os.replace(new, path)


def export_on_tensorflow(folder):
    """Lets a process on TensorFlow write saved_model/ of a JAX run.

    Where TensorFlow cannot, a line says so; the rest of the run is whole.
    """
    command = ["-m", "alim_keras.export", folder.path, "--saved_model"]
    done = subprocess.run(
        # The run's own code has just run here.
        [sys.executable, *command, "--trust_code"],
        env={**os.environ, "KERAS_BACKEND": "tensorflow"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        *_, last = ["no message", *done.stderr.strip().splitlines()]
        print(
            f"saved_model is left out. TensorFlow writes it, and said: {last}\n"
            "To try again: KERAS_BACKEND=tensorflow python "
            f"{' '.join(command)}",
            flush=True,
        )


def write_labels(folder, model, training):
    """Writes labels.csv: the table's rows, predictions for held-out images.

    A method that keeps no pseudo labels predicts all images. Known labels
    that stand in place of sets are neither.

    Returns:
        int64 `(N,)`, the settled labels.
    """
    rows = report.LabelRows(training.ids, training.class_names)
    sources = np.full(len(training), "prediction", object)
    if model.keeps_pseudo_labels:
        sources[training.trained] = "table"
    for part, weights in item_weights(model, training):
        if training.known_as_sets:
            known = training.known[part]
            told = np.flatnonzero(known >= 0)
            weights[told] = 0.0
            weights[told, known[told]] = 1.0
            sources[part[told]] = "known"
        rows.add(part, weights, training.sets.rows(part) > 0)
    frame = rows.frame(sources)
    report.write_labels(folder.file("labels.csv"), frame)
    return rows.settled["label"]


def item_weights(model, training):
    """Yields rows and what the model believes of them, float32 `(n, C)`.

    The pseudo labels of the examples it was trained on, if it keeps some, and
    predictions for all others; in blocks, since all rows over many classes
    are more than a host holds.
    """
    kept = training.trained if model.keeps_pseudo_labels else ()
    for block in report.blocks(len(kept), training.num_classes):
        start, stop = block[0], block[-1] + 1
        table = model.pseudo_label_table
        yield kept[start:stop], np.array(table.dense_rows(start, stop))
    predicted = np.setdiff1d(np.arange(len(training)), kept)
    for block in report.blocks(len(predicted), training.num_classes):
        part = predicted[block]
        yield part, model.predict(eval_batches(training, part), verbose=0)


def beliefs(model, training):
    """Returns what a model believes of every item, for the audit.

    Returns:
        `(probabilities, kinds, ratio)`: float32 `(N, C)`; strings `(N,)`,
        `"table"` or `"prediction"`; the candidate ratios of training, floats
        `(N,)`, or None where the model keeps no pseudo labels.
    """
    probabilities = np.zeros(training.sets.shape, np.float32)
    kinds = np.full(len(training), "prediction", object)
    for part, weights in item_weights(model, training):
        probabilities[part] = weights
    if not model.keeps_pseudo_labels:
        return probabilities, kinds, None
    kinds[training.trained] = "table"
    ratio = np.full(len(training), np.nan, np.float32)
    table = model.pseudo_label_table
    ratio[training.trained] = table.candidate_ratio.numpy()
    return probabilities, kinds, ratio


def write_classes(folder, model, training, settled):
    """Writes classes.csv; returns the mean test accuracy of the classes.

    Args:
        folder: The `RunFolder`.
        model: The model, with the weights to publish.
        training: The `TrainingSet` it was trained on.
        settled: The settled labels, int64 `(N,)`.
    """
    test = None
    if len(training.test_images):
        predicted = [
            model.predict(
                eval_dataset(
                    training.test_images[block],
                    training.test_labels[block],
                    training.num_classes,
                ),
                verbose=0,
            ).argmax(axis=1)
            for block in report.blocks(
                len(training.test_images), training.num_classes
            )
        ]
        test = (training.test_labels, np.concatenate(predicted))
    labels = training.labels
    return report.write_classes(
        folder.file("classes.csv"),
        training.class_names,
        training.sets,
        settled,
        None if labels is None else labels[labels >= 0],
        test,
    )


@contextlib.contextmanager
def _unfinished(folder):
    """Yields a new folder in the run folder, which goes at the end.

    An error of the disk that names no file gets the folder's name.
    """
    path = tempfile.mkdtemp(dir=folder.path, prefix=PARTIAL)
    try:
        yield path
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, folder.path) from error
        raise
    finally:
        shutil.rmtree(path, ignore_errors=True)
