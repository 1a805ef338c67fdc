"""run.json and results.json: what was run, where, and what came out."""

import importlib.metadata
import os
import platform
import subprocess

import numpy as np

from alim_keras import backend
from alim_keras.callbacks.metrics_log import read_metrics
from alim_keras.noise_rate import Estimate

PACKAGES = (
    "keras",
    "tensorflow",
    "tensorflow-datasets",
    "numpy",
    "scikit-learn",
    "absl-py",
)


def run_record(
    settings,
    command,
    candidates,
    data,
    num_trained,
    noise_rate,
    identity,
    files,
    notes=(),
):
    """Returns the content of run.json.

    Args:
        settings: Dict of every flag's value.
        command: The command line, a string.
        candidates: The `CandidateSets` of all training images.
        data: The `ImageData`.
        num_trained: How many of them are trained on (the rest is held out).
        noise_rate: What ALIM is told before the training: a number, an
            `Estimate`, or None if it is estimated later, or not at all.
        identity: Dict, see `identity.of_data`.
        files: Dict, see `identity.of_files`.
        notes: Strings: what was found as the data were read.
    """
    return {
        "command": command,
        "settings": settings,
        "seed": settings["seed"],
        "candidates_hash": candidates.content_hash,
        "candidates": candidates.provenance,
        "noise_rate": _plain(noise_rate),
        "notes": list(notes),
        "identity": identity,
        "files": files,
        "data": {
            "name": data.name,
            "training_images": len(data.images),
            "trained_on": num_trained,
            "test_images": len(data.test_images),
            "imbalance": settings["imbalance"],
            "training_images_per_class": np.bincount(
                data.labels, minlength=len(data.class_names)
            ).tolist()
            if data.all_labels_known
            else None,
            "image_shape": list(data.images.shape[1:]),
            "class_names": list(data.class_names),
        },
        "versions": versions(),
        "machine": machine(),
    }


def versions():
    """Returns versions of Python, this package and those it stands on."""
    from alim_keras import __version__

    found = {"python": platform.python_version(), "alim_keras": __version__}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    folder = os.path.dirname(os.path.abspath(__file__))
    try:
        git = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        found["commit"] = git.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        found["commit"] = None
    return found


def machine():
    """Returns what kind of machine this is."""
    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "gpus": backend.gpu_names(),
    }


def results_record(
    folder, settings, candidates, noise_rate, realised, per_class_mean=None
):
    """Returns the content of results.json.

    Args:
        folder: The `RunFolder`, with metrics.csv and the last checkpoint.
        settings: Dict of every flag's value.
        candidates: The `CandidateSets` of all training images.
        noise_rate: eta that ALIM was told, a number or an `Estimate`, or
            None.
        realised: Share of wrong sets where the truth is known, or None.
        per_class_mean: Mean over the classes of their test accuracy, of the
            selected epoch, or None.
    """
    rows = read_metrics(folder.file("metrics.csv"))
    state = folder.checkpoint.state
    last, best = rows[-1], state["best"]

    def number(row, name):
        value = row.get(name)
        return None if value in (None, "") else float(value)

    estimate = noise_rate if isinstance(noise_rate, Estimate) else None
    rates = sorted(number(row, "images_per_second") for row in rows)
    return {
        "test_accuracy": number(last, "test_accuracy"),
        "test_accuracy_selected": number(best["logs"], "test_accuracy"),
        "test_accuracy_per_class_mean": per_class_mean,
        "selected_epoch": best["epoch"],
        "selected_by": settings["select"],
        "covering_rate": number(last, "holdout_covering_rate"),
        "approximated_accuracy": number(last, "holdout_approximated_accuracy"),
        "pseudo_label_accuracy": number(last, "pseudo_label_accuracy"),
        "outside": number(last, "outside"),
        "lambda": number(last, "lambda"),
        "noise_rate": estimate.value if estimate else noise_rate,
        "noise_rate_estimate": _plain(estimate),
        "realised_noise": realised,
        "candidates_hash": candidates.content_hash,
        "epochs": len(rows),
        "seed": settings["seed"],
        "train_seconds": state["seconds"],
        "images_per_second": rates[len(rates) // 2],
    }


def _plain(noise_rate):
    """Returns an `Estimate` as a dict, and anything else as it is."""
    estimated = isinstance(noise_rate, Estimate)
    return noise_rate.as_dict() if estimated else noise_rate
