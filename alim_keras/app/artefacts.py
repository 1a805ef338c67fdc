"""Writes the files of a run for others: models, labels, results.json."""

import dataclasses
import os
import subprocess
import sys

import keras
import numpy as np
import pandas as pd
from scipy.special import softmax

from alim_keras import backend
from alim_keras import files
from alim_keras.app import build
from alim_keras.app import features
from alim_keras.callbacks import read_metrics
from alim_keras.data import annotators
from alim_keras.noise_rate import Estimate
from alim_keras.noise_rate import inference
from alim_keras.report import labels
from alim_keras.report.beliefs import Settler


def write(folder, model, training, has_labels=True):
    """Writes saved_model/, model.keras, labels.csv and classes.csv.

    On JAX saved_model/ is left to `export_on_tensorflow`. Returns the settled
    labels, int64 `(N,)`, and the mean test accuracy of the classes, or None;
    both are None without `has_labels`, which leaves the last two files out.
    """
    if keras.config.backend() == "tensorflow":
        write_saved_model(folder, model, training)
    # Keras wants this ending.
    partial = folder.file(f"{files.PARTIAL}model.keras")
    is_frozen = training.backbone is not None
    (features.served(model, training)[0] if is_frozen else model).save(partial)
    files.move_written(partial, folder.file("model.keras"))
    if not has_labels:
        return None, None
    settled = _write_labels(folder, model, training)
    return settled, _write_classes(folder, model, training, settled)


def write_saved_model(folder, model, training):
    """Exports the classifier; its folder appears only when it is whole."""
    names = ("saved_model", f"{files.PARTIAL}new", f"{files.PARTIAL}old")
    path, new, old = map(folder.file, names)
    network, shape = features.served(model, training)
    backend.save_served_model(network, new, shape, training.class_names)
    if os.path.lexists(path):
        os.replace(path, old)
    os.replace(new, path)
    files.remove_partial(folder.path)


def export_on_tensorflow(folder):
    """Lets a process on TensorFlow write saved_model/, or says why not."""
    command = ["-m", "alim_keras.export", folder.path]
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
            f"saved_model is left out. TensorFlow writes it, and said: {last} "
            "To try again: KERAS_BACKEND=tensorflow python "
            f"{' '.join(command)}",
            flush=True,
        )


def beliefs(model, training, unseen=None):
    """Yields rows, what is believed of them, and the kind of belief.

    They are the pseudo labels of the examples it was trained on, "table", if
    it keeps some, predictions for all others, and known labels in place of
    sets, "known". `unseen`, `(n, C)`, what networks say of the trained rows
    that did not see them, makes all but these "folds". A row of the table
    that no step has touched is zero.
    """
    is_kept = unseen is not None or model.keeps_pseudo_labels
    kept = training.trained if is_kept else ()
    predicted = np.setdiff1d(np.arange(len(training)), kept)
    names = ("table", "prediction") if unseen is None else ("folds", "folds")
    for kind, rows in zip(names, (kept, predicted)):
        for block in annotators.blocks((len(rows), training.num_classes)):
            part = rows[block]
            if rows is predicted:
                batches = build.eval_batches(training, part)
                weights = model.predict(batches, verbose=0)
            elif unseen is not None:
                weights = unseen[block]
            else:
                table = model.pseudo_label_table
                weights = table.dense_rows(block[0], block[-1] + 1)
            weights, kinds = np.array(weights), np.full(len(part), kind, object)
            if training.known_as_sets:
                known = training.known[part]
                told = known >= 0
                weights[told] = np.eye(training.num_classes)[known[told]]
                kinds[told] = "known"
            yield part, weights, kinds


def held_out_probabilities(model, training):
    """Returns what heads that did not see them say of the trained rows."""
    batches = build.eval_batches(training, training.trained)
    return softmax(inference(model)(batches)[0].astype("float32"), axis=1)


def _write_labels(folder, model, training):
    """Writes labels.csv; returns the settled labels, int64 `(N,)`."""
    frames, sets, votes = [], training.sets, annotators.shared_votes(training)
    voted = votes and annotators.VoteModel(votes, sets.shape)
    for part, weights, kinds in beliefs(model, training):
        predicted = kinds == "prediction"
        rows = part[predicted]
        if voted is not None and len(rows):
            logs = annotators.doubted(weights[predicted])
            weights[predicted] = voted.belief(rows, logs)
        elif training.votes is not None and len(rows):
            # What votes make of predictions, if the noise rate is not known.
            kind, answers = np.full(len(rows), "prediction"), weights[predicted]
            settler = Settler(None, answers, sets.take(rows), kind)
            weights[predicted] = settler.belief(np.arange(len(rows)))
        frame = labels.label_rows(sets, part, weights, kinds)
        frames.append(frame.set_axis(part))
    frame = pd.concat(frames).sort_index()
    labels.write_table(folder.file("labels.csv"), frame)
    return pd.Index(sets.class_names).get_indexer(frame["label"])


def _write_classes(folder, model, training, settled):
    """Writes classes.csv; returns the mean test accuracy of the classes."""
    test, path = None, folder.file("classes.csv")
    if len(training.test_images):
        predicted = model.predict(build.test_batches(training), verbose=0)
        test = training.test_labels, predicted.argmax(axis=1)
    return labels.write_classes(
        path, training.sets, settled, training.labels, test
    )


def results(config, folder, training, noise_rate, per_class_mean=None):
    """Returns the content of results.json; `per_class_mean` is of `write`."""
    state, path = folder.checkpoint.state, folder.file("metrics.csv")
    rows = {int(row["epoch"]): row for row in read_metrics(path)}
    best = state["best"]
    # Of a damaged metrics.csv the checkpoint still knows the selected epoch.
    last = {best["epoch"]: best["logs"], **rows}.get(state["epochs"], {})

    def number(name, row=last):
        value = row.get(name)
        return None if value in (None, "") else float(value)

    estimate = noise_rate if isinstance(noise_rate, Estimate) else None
    rates = [number("images_per_second", row) for row in rows.values()]
    return {
        "test_accuracy": number("test_accuracy"),
        "test_accuracy_selected": number("test_accuracy", best["logs"]),
        "test_accuracy_per_class_mean": per_class_mean,
        "selected_epoch": best["epoch"],
        "selected_by": config.train.select,
        "covering_rate": number("holdout_covering_rate"),
        "approximated_accuracy": number("holdout_approximated_accuracy"),
        "pseudo_label_accuracy": number("pseudo_label_accuracy"),
        "outside": number("outside"),
        "lambda": number("lambda"),
        "alim": _what_alim_did(config, rows),
        "noise_rate": estimate.value if estimate else noise_rate,
        "noise_rate_estimate": estimate and dataclasses.asdict(estimate),
        "realised_noise": training.sets.realised_noise(training.labels),
        "candidates_hash": training.sets.content_hash,
        "epochs": state["epochs"],
        "seed": config.run.seed,
        "train_seconds": state["seconds"],
        "images_per_second": sorted(rates)[len(rates) // 2] if rates else None,
    }


def _what_alim_did(config, rows):
    """Returns "acted", "off", or "never acted" and why, of a metrics file."""
    if config.alim.lam == 0 or not build.keeps_pseudo_labels(config):
        return "off"
    # An epoch's lambda is that of the epoch after it.
    before = [row.get("lambda") for row in rows.values()]
    if any(float(value or 0) > 0 for value in before[:-1]):
        return "acted"
    warmup, epochs = config.alim.warmup_epochs, config.train.epochs
    why = "lambda stayed 0, as for a noise rate of 0"
    if warmup >= epochs:
        why = f"--warmup_epochs={warmup} took all --epochs={epochs}"
    return f"never acted: {why}"


def describe(numbers):
    """Returns results.json in sentences that leave out what is not known."""
    sentences, accuracy = [], numbers["test_accuracy"]
    if accuracy is not None:
        sentences.append(f"Test accuracy {accuracy:.4f} after the last epoch.")
    if numbers["selected_by"] != "last":
        sentence = "Selected by {selected_by}: epoch {selected_epoch}"
        if numbers["test_accuracy_selected"] is not None:
            sentence += ", test accuracy {test_accuracy_selected:.4f}"
        sentences.append(f"{sentence.format(**numbers)}.")
    accuracy = numbers["pseudo_label_accuracy"]
    if accuracy is not None:
        sentences.append(f"Training labels right: {accuracy:.4f}.")
    if numbers.get("alim", "").startswith("never"):
        sentences.append(f"ALIM {numbers['alim']}.")
    if not sentences:
        epochs = f"Epochs: {numbers['epochs']}"
        sentences = [f"{epochs}; no true labels to measure accuracy by."]
    verdict = numbers.get("verdict") or {}
    return "\n".join(filter(None, [" ".join(sentences), verdict.get("text")]))
