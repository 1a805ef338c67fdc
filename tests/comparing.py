"""Comparing what two runs left, bit for bit."""

import csv
import json
import pathlib

import h5py
import numpy as np

# Wall-clock numbers, and nothing else, may differ between equal runs.
TIMES = ("seconds", "images_per_second", "train_seconds")


def checkpoint(folder):
    """All arrays of a run's last checkpoint by name."""
    folder = pathlib.Path(folder) / "checkpoints"
    state = json.loads((folder / "state.json").read_text())
    arrays = {}

    def collect(name, node):
        if isinstance(node, h5py.Dataset):
            arrays[name] = node[()]

    with h5py.File(folder / state["weights"]) as file:
        file.visititems(collect)
    return arrays


def metrics(folder):
    with open(pathlib.Path(folder) / "metrics.csv") as file:
        rows = list(csv.DictReader(file))
    return [{k: v for k, v in r.items() if k not in TIMES} for r in rows]


def results(folder):
    found = json.loads((pathlib.Path(folder) / "results.json").read_text())
    return {k: v for k, v in found.items() if k not in TIMES}


def assert_same_run(one, two):
    """Weights, table, lambda, optimizer, history, labels, results."""
    first, second = checkpoint(one), checkpoint(two)
    assert first.keys() == second.keys()
    assert any("optimizer" in name for name in first)
    assert len(first) > 40
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)
    assert metrics(one) == metrics(two)
    assert results(one) == results(two)
    labels = [(pathlib.Path(f) / "labels.csv").read_bytes() for f in (one, two)]
    assert labels[0] == labels[1]
