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


def plain(name):
    """A variable's name without the counters that a process adds."""
    return "".join(c for c in name if not c.isdigit())


def assert_equal_numbers(found, expected, rtol=1e-5, atol=1e-5):
    """Raises unless two dicts of a training's arrays are nearly equal."""
    assert list(map(plain, found)) == list(map(plain, expected))
    assert len(expected) > 60
    for (name, value), other in zip(found.items(), expected.values()):
        if name != "copies":
            np.testing.assert_allclose(value, other, rtol, atol, err_msg=name)


def assert_something_happened(history, least):
    """Raises if lambda or a loss did not move, so that nothing could differ."""
    assert all(0.0 < value < 1.0 for value in history["history lambda"])
    for part in ("cls_loss", "cont_loss", "mix_loss", "loss"):
        values = history[f"history {part}"]
        assert np.isfinite(values).all() and np.ptp(values) > least


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
