"""Evaluating in every epoch, and what the other callbacks make of it."""

import math
import types

import keras
import pytest

from alim_keras import callbacks
from alim_keras.callbacks.run import read_metrics
from alim_keras.errors import NonFiniteError


class _Model:
    """Its accuracy on any data falls: 1/1, 1/2, 1/3 at each evaluation."""

    def __init__(self):
        self.evaluations = 0
        iterations = types.SimpleNamespace(numpy=lambda: 7)
        self.optimizer = types.SimpleNamespace(iterations=iterations)

    def evaluate(self, data, verbose, return_dict):
        self.evaluations += 1
        return {"accuracy": 1 / self.evaluations}


def _epochs(epochs, *others):
    """Returns the logs of each epoch."""
    evaluation = callbacks.Evaluation(None, {"accuracy": "test"})
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
    return found


def test_metrics_are_logged_by_their_new_names(tmp_path):
    path = tmp_path / "metrics.csv"
    assert _epochs(3, callbacks.MetricsLog(path)) == [1.0, 0.5, 1 / 3]
    rows = read_metrics(path)
    assert [row["test"] for row in rows] == ["1.0", "0.5", str(1 / 3)]


@pytest.mark.parametrize("damage", ["cut", "noise", "remove"])
def test_a_damaged_metrics_file_stops_nothing(tmp_path, damage):
    path = tmp_path / "metrics.csv"
    _epochs(4, callbacks.MetricsLog(path))
    whole = read_metrics(path)
    assert [row["epoch"] for row in whole] == ["1", "2", "3", "4"]
    content = path.read_bytes()
    if damage == "cut":
        # In the third row.
        path.write_bytes(content[: content.index(b"\n3,") + 4])
    elif damage == "noise":
        path.write_bytes(content.replace(b"\n3,7,", b"\n3,\xff\x00,"))
    else:
        path.unlink()
    kept = {"cut": [1, 2], "noise": [1, 2, 4], "remove": []}[damage]
    with pytest.warns(UserWarning, match="damaged or missing: it has"):
        log = callbacks.MetricsLog(path, 4)
    _epochs(1, log)
    rows = read_metrics(path)
    assert [int(row["epoch"]) for row in rows] == [*kept, 1]
    assert all(row["loss"] == "0.5" for row in rows)


def test_unfinished_epochs_are_dropped_from_the_file(tmp_path):
    path = tmp_path / "metrics.csv"
    _epochs(4, callbacks.MetricsLog(path))
    assert len(callbacks.MetricsLog(path, 3).rows) == 3


class _Broken:
    """A model with the attributes that `NonFiniteGuard` reads."""

    training_logs = {"cls_loss"}

    def __init__(self, bias=0.0, average=0.0):
        self.trainable_variables = [keras.Variable([bias], name="bias")]
        average = keras.Variable([average], name="average")
        self.backbone = types.SimpleNamespace(non_trainable_variables=[average])


@pytest.mark.parametrize(
    ("model", "logs", "epoch", "words"),
    [
        ({}, {"loss": math.nan, "cls_loss": math.inf}, 0, "Loss cls_loss.*1"),
        ({}, {"loss": math.nan}, 2, "Loss loss.*epoch 3.*epoch 2.*intact"),
        ({"bias": math.inf}, {"loss": 0.5}, 0, "Weight bias"),
        ({"average": math.nan}, {"loss": 0.5}, 0, "Weight average"),
        ({}, {"loss": 0.5, "test_loss": math.nan}, 0, None),
    ],
)
def test_a_loss_or_weight_that_is_no_number_ends_the_run(
    model, logs, epoch, words
):
    guard = callbacks.NonFiniteGuard()
    guard.set_model(_Broken(**model))
    if words is None:
        guard.on_epoch_end(epoch, logs)
        return
    with pytest.raises(NonFiniteError, match=words) as error:
        guard.on_epoch_end(epoch, logs)
    assert ("intact" in str(error.value)) == (epoch > 0)
