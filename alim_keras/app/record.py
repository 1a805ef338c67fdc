"""run.json and results.json: what was run, where, and what came out."""

import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys

import numpy as np

import alim_keras
from alim_keras import backend
from alim_keras import files
from alim_keras.app import cli
from alim_keras.app import run_folder
from alim_keras.callbacks import read_metrics
from alim_keras.errors import CheckpointError
from alim_keras.noise_rate import Estimate

_PACKAGES = (
    "keras tensorflow tensorflow-datasets numpy scikit-learn absl-py"
).split()


def write_identity(config, folder, training, noise_rate):
    """Writes what repeats a run and says which it is, where it is missing.

    These are run.json, candidates.npz, class_names.txt and run.flags.

    Args:
        config: The `Config`.
        folder: The `RunFolder`.
        training: The `TrainingSet`.
        noise_rate: A number, an `Estimate` or None, see `noise.final`.
    """
    if folder.existing("run.json") is None:
        record = _run_record(config, training, noise_rate)
        folder.write("run.json", record)
    if folder.existing("candidates.npz") is None:
        training.sets.save(folder.file("candidates.npz"))
    for name, text in (
        ("class_names.txt", "".join(f"{n}\n" for n in training.class_names)),
        ("run.flags", cli.flags_as_text(config)),
    ):
        if folder.existing(name) is None:
            files.write_atomically(folder.file(name), text)


def _run_record(config, training, noise_rate):
    settings = config.as_dict()
    counts = None
    if training.all_labels_known:
        counts = np.bincount(training.labels, minlength=training.num_classes)
    return {
        "command": shlex.join(sys.orig_argv),
        "settings": settings,
        "seed": config.run.seed,
        "candidates_hash": training.sets.content_hash,
        "candidates": training.sets.provenance,
        "noise_rate": _plain(noise_rate),
        "notes": list(training.notes),
        "identity": run_folder.identity_of(training),
        "files": run_folder.digests_of_files(settings),
        "data": {
            "name": training.name,
            "training_images": len(training),
            "trained_on": len(training.trained),
            "test_images": len(training.test_images),
            "imbalance": config.data.imbalance,
            "training_images_per_class": None
            if counts is None
            else counts.tolist(),
            "image_shape": list(training.images.shape[1:]),
            "class_names": list(training.class_names),
        },
        "versions": versions(),
        "machine": machine(),
    }


def versions():
    """Returns a dict of versions: Python, packages, this one and its commit."""
    installed = {
        "python": platform.python_version(),
        "alim_keras": alim_keras.__version__,
    }
    for package in _PACKAGES:
        try:
            installed[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            installed[package] = None
    try:
        git = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=os.path.dirname(os.path.abspath(__file__)),
            capture_output=True,
            text=True,
            check=True,
        )
        installed["commit"] = git.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        installed["commit"] = None
    return installed


def machine():
    """Returns a dict: system, processor, cores and GPUs."""
    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "gpus": backend.gpu_names(),
    }


def results(config, folder, training, noise_rate, per_class_mean=None):
    """Returns the content of results.json.

    Args:
        config: The `Config`.
        folder: The `RunFolder`, with metrics.csv and the last checkpoint.
        training: The `TrainingSet`.
        noise_rate: eta that ALIM was told, a number or an `Estimate`, or
            None.
        per_class_mean: Mean over the classes of their test accuracy, of the
            selected epoch, or None.
    """
    rows = read_metrics(folder.file("metrics.csv"))
    if not rows:
        raise CheckpointError(
            f"{folder.file('metrics.csv')} has no row that can be read, so "
            "there is nothing to sum up. Bring it back from a copy, or train "
            "again in another --run_dir."
        )
    state = folder.checkpoint.state
    last, best = rows[-1], state["best"]

    def number(row, name):
        value = row.get(name)
        return None if value in (None, "") else float(value)

    estimate = noise_rate if isinstance(noise_rate, Estimate) else None
    rates = sorted(number(row, "images_per_second") or 0.0 for row in rows)
    statistics = training.sets.statistics(training.labels)
    return {
        "test_accuracy": number(last, "test_accuracy"),
        "test_accuracy_selected": number(best["logs"], "test_accuracy"),
        "test_accuracy_per_class_mean": per_class_mean,
        "selected_epoch": best["epoch"],
        "selected_by": config.train.select,
        "covering_rate": number(last, "holdout_covering_rate"),
        "approximated_accuracy": number(last, "holdout_approximated_accuracy"),
        "pseudo_label_accuracy": number(last, "pseudo_label_accuracy"),
        "outside": number(last, "outside"),
        "lambda": number(last, "lambda"),
        "noise_rate": estimate.value if estimate else noise_rate,
        "noise_rate_estimate": _plain(estimate),
        "realised_noise": statistics["realised_noise"],
        "candidates_hash": training.sets.content_hash,
        "epochs": state["epochs"],
        "seed": config.run.seed,
        "train_seconds": state["seconds"],
        "images_per_second": rates[len(rates) // 2],
    }


def describe(numbers):
    """Returns the results in sentences that leave out what is not known.

    Args:
        numbers: Dict, the content of results.json.
    """
    parts = []
    last, selected = (
        numbers.get("test_accuracy"),
        numbers.get("test_accuracy_selected"),
    )
    if last is not None:
        parts.append(f"Test accuracy {last:.4f} after the last epoch.")
    if numbers["selected_by"] != "last":
        accuracy = ""
        if selected is not None:
            accuracy = f", test accuracy {selected:.4f}"
        parts.append(
            f"Selected by {numbers['selected_by']}: epoch "
            f"{numbers['selected_epoch']}{accuracy}."
        )
    if numbers.get("pseudo_label_accuracy") is not None:
        right = numbers["pseudo_label_accuracy"]
        parts.append(f"Training labels right: {right:.4f}.")
    return " ".join(parts) or (
        f"{numbers['epochs']} epochs; no true labels to measure accuracy by."
    )


def _plain(noise_rate):
    """Returns an `Estimate` as a dict, and anything else as it is."""
    is_estimate = isinstance(noise_rate, Estimate)
    return noise_rate.as_dict() if is_estimate else noise_rate
