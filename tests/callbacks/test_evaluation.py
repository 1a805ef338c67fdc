"""Evaluating in some epochs only, and what the other callbacks make of it."""

import math
import types

import pytest

from alim_keras import callbacks
from alim_keras.callbacks.metrics_log import read_metrics


class _Model:
    """Its accuracy on any data falls: 1/1, 1/2, 1/3 at each evaluation."""

    def __init__(self):
        self.evaluations = 0
        iterations = types.SimpleNamespace(numpy=lambda: 7)
        self.optimizer = types.SimpleNamespace(iterations=iterations)

    def evaluate(self, data, verbose, return_dict):
        self.evaluations += 1
        return {"accuracy": 1 / self.evaluations}


def _epochs(every, epochs=5, *others):
    """Returns the logs of each epoch, and the model."""
    evaluation = callbacks.Evaluation(None, {"accuracy": "test"}, every)
    model = _Model()
    found = []
    for callback in (evaluation, *others):
        callback.set_model(model)
        callback.set_params({"epochs": epochs})
    for epoch in range(epochs):
        logs = {"loss": 0.5}
        for callback in (evaluation, *others):
            callback.on_epoch_end(epoch, logs)
        found.append(logs["test"])
    return found, model


@pytest.mark.parametrize(
    "every, evaluated",
    [(1, [1, 2, 3, 4, 5]), (2, [2, 4, 5]), (5, [5]), (9, [5])],
)
def test_only_these_epochs_are_evaluated_always_the_last(every, evaluated):
    found, model = _epochs(every)
    known = [e + 1 for e, value in enumerate(found) if not math.isnan(value)]
    assert known == evaluated
    assert model.evaluations == len(evaluated)


def test_other_epochs_are_empty_in_the_file(tmp_path):
    path = tmp_path / "metrics.csv"
    _epochs(2, 5, callbacks.MetricsLog(path))
    rows = read_metrics(path)
    assert [row["test"] for row in rows] == ["", "1.0", "", "0.5", str(1 / 3)]
    assert [row["loss"] for row in rows] == ["0.5"] * 5


def test_selection_chooses_among_evaluated_epochs():
    marked = []
    checkpoint = types.SimpleNamespace(state={})

    def mark_best(epoch, value, logs):
        marked.append((epoch + 1, value))
        checkpoint.state["best"] = {"value": value}

    checkpoint.mark_best = mark_best
    _epochs(2, 5, callbacks.Selection(checkpoint, "test"))
    # Values 1, 1/2, 1/3 in the epochs 2, 4, 5.
    assert marked == [(2, 1.0)]
