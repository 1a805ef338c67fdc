"""Logs and metrics of a run, and its checkpoints: full disks and damage."""

import json
import math
import os
import shutil
import types

import keras
import numpy as np
import pytest

from alim_keras import callbacks
from alim_keras import files
from alim_keras.callbacks import RunCheckpoint
from alim_keras.callbacks import read_metrics
from alim_keras.errors import CheckpointError
from alim_keras.errors import EnvironmentLacksError
from alim_keras.errors import NonFiniteError


class _Model:
    """Its accuracy on any data falls: 1/1, 1/2, 1/3 at each evaluation."""

    evaluations = 0
    iterations = types.SimpleNamespace(numpy=lambda: 7)
    optimizer = types.SimpleNamespace(iterations=iterations)

    def evaluate(self, data, verbose, return_dict):
        self.evaluations += 1
        return {"accuracy": 1 / self.evaluations}


def _log_epochs(epochs, metrics_log):
    evaluation = callbacks.Evaluation(None, {"accuracy": "test"})
    both, model = (evaluation, metrics_log), _Model()
    for epoch in range(epochs):
        logs = {"loss": 0.5}
        for callback in both:
            callback.set_model(model)
            callback.on_epoch_end(epoch, logs)


def test_metrics_are_logged_by_their_new_names(tmp_path):
    path = tmp_path / "metrics.csv"
    _log_epochs(3, callbacks.MetricsLog(path))
    rows = read_metrics(path)
    assert [row["test"] for row in rows] == ["1.0", "0.5", str(1 / 3)]
    # Unfinished epochs are dropped.
    assert len(callbacks.MetricsLog(path, 2).rows) == 2


@pytest.mark.parametrize("damage", ["cut", "noise", "remove"])
def test_a_damaged_metrics_file_stops_nothing(tmp_path, damage):
    path = tmp_path / "metrics.csv"
    _log_epochs(4, callbacks.MetricsLog(path))
    whole = read_metrics(path)
    assert [row["epoch"] for row in whole] == ["1", "2", "3", "4"]
    before, _, after = path.read_bytes().partition(b"\n3,7,")
    if damage == "cut":
        path.write_bytes(before + b"\n3,7")
    elif damage == "noise":
        path.write_bytes(before + b"\n3,\xff\x00," + after)
    else:
        path.unlink()
    kept = {"cut": [1, 2], "noise": [1, 2, 4], "remove": []}[damage]
    with pytest.warns(UserWarning, match="damaged or missing: it has"):
        log = callbacks.MetricsLog(path, 4)
    _log_epochs(1, log)
    rows = read_metrics(path)
    assert [int(row["epoch"]) for row in rows] == [*kept, 1]
    assert all(row["loss"] == "0.5" for row in rows)


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
    ],
)
def test_a_loss_or_weight_that_is_no_number_ends_the_run(
    model, logs, epoch, words
):
    guard = callbacks.NonFiniteGuard()
    guard.set_model(_Broken(**model))
    with pytest.raises(NonFiniteError, match=words) as error:
        guard.on_epoch_end(epoch, logs)
    assert ("intact" in str(error.value)) == (epoch > 0)
    guard.set_model(_Broken())
    guard.on_epoch_end(epoch, {"loss": 0.5, "test_loss": math.nan})


# Checkpoints.


@pytest.fixture
def model():
    """A small model; its bias tells which epoch it is."""
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(64)])
    model.compile("sgd", "mse")
    return model


def trained(folder, model, epochs, best=()):
    """Writes checkpoints as a run of so many epochs would."""
    checkpoint = RunCheckpoint(folder)
    checkpoint.criterion = "right" if best else None
    checkpoint.set_model(model)
    checkpoint.on_train_begin()
    for epoch in range(epochs):
        model.layers[0].bias.assign(np.full(64, epoch + 1.0))
        # No better, or not evaluated, in the other epochs.
        right = 0.1 * epoch if epoch + 1 in best else [0.0, math.nan][epoch % 2]
        checkpoint.on_epoch_end(epoch, {"seconds": 2.0, "right": right})
    return checkpoint


def names(folder):
    return sorted(os.listdir(folder))


def restored(folder, model, which="last"):
    """Returns the epochs that are finished, and the epoch of the weights."""
    epochs = RunCheckpoint(folder).restore(model, which)
    return epochs, int(model.layers[0].bias.numpy()[0])


def flip(path):
    """Changes one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def cut(path):
    path.write_bytes(path.read_bytes()[:300])


def test_the_two_newest_and_the_best_are_kept(tmp_path, model):
    checkpoint = trained(tmp_path, model, 5, best=(2,))
    kept = [f"epoch-0000{epoch}.weights.h5" for epoch in (2, 4, 5)]
    assert names(tmp_path) == [*kept, "state.json"]
    assert checkpoint.state["seconds"] == 10.0
    state = json.loads((tmp_path / "state.json").read_text())
    assert state == checkpoint.state
    parts = (state["best"], state["previous"], state)
    for name, part in zip(kept, parts, strict=True):
        digest = files.digest(tmp_path / name)
        assert (part["weights"], part["digest"]) == (name, digest)
    assert restored(tmp_path, model) == (5, 5)
    assert restored(tmp_path, model, "best") == (5, 2)
    # As the version before wrote it, with the digests by file.
    every = (*parts, state["previous"]["best"])
    state["digests"] = {part["weights"]: part.pop("digest") for part in every}
    (tmp_path / "state.json").write_text(json.dumps(state))
    again = RunCheckpoint(tmp_path)
    again.read_state()
    assert again.state == checkpoint.state
    flip(tmp_path / kept[-1])
    with pytest.warns(UserWarning, match="epoch-00005.*of epoch 4"):
        assert restored(tmp_path, model) == (4, 4)


@pytest.mark.parametrize("damage", [flip, cut, os.remove])
def test_a_damaged_checkpoint_is_never_loaded(tmp_path, model, damage):
    trained(tmp_path, model, 4, best=(1, 4))
    damage(tmp_path / "epoch-00004.weights.h5")
    with pytest.warns(UserWarning, match="epoch-00004.*of epoch 3"):
        assert restored(tmp_path, model) == (3, 3)
    # The best is that of the epoch before, too.
    with pytest.warns(UserWarning):
        assert restored(tmp_path, model, "best") == (3, 1)
    # A run that goes on writes the epoch again.
    again = RunCheckpoint(tmp_path)
    with pytest.warns(UserWarning):
        again.read_state()
    again.set_model(model)
    again.on_epoch_end(3, {})
    assert restored(tmp_path, model)[0] == 4


def test_two_damaged_checkpoints_end_the_run(tmp_path, model):
    trained(tmp_path, model, 2)
    for name in names(tmp_path)[:2]:
        flip(tmp_path / name)
    with pytest.raises(CheckpointError, match="00002.*00001.*from a copy"):
        restored(tmp_path, model)


def test_damaged_best_weights_are_named(tmp_path, model):
    trained(tmp_path, model, 4, best=(1,))
    flip(tmp_path / "epoch-00001.weights.h5")
    assert restored(tmp_path, model) == (4, 4)
    with pytest.raises(CheckpointError, match="epoch-00001.*selected"):
        restored(tmp_path, model, "best")


def test_a_lost_state_is_told_and_an_unfinished_epoch_is_none(tmp_path, model):
    checkpoint = RunCheckpoint(tmp_path)
    assert not checkpoint.exists()
    trained(tmp_path, model, 1)
    assert checkpoint.exists()
    # Killed in the first epoch's writing: the state names no weights yet.
    (tmp_path / "state.json").write_text('{"epochs": 0, "seconds": 0.0}')
    assert not checkpoint.exists()
    (tmp_path / "state.json").unlink()
    with pytest.raises(CheckpointError, match="state.json.*missing"):
        checkpoint.exists()


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"epochs": "x", "weights": "y"}', "\0"]
)
def test_an_unreadable_state_is_named(tmp_path, text):
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(CheckpointError, match="state.json"):
        RunCheckpoint(tmp_path).exists()


def test_another_model_is_refused(tmp_path, model):
    trained(tmp_path, model, 1)
    other = keras.Sequential([keras.Input((8,)), keras.layers.Dense(3)])
    other.compile("sgd", "mse")
    with pytest.raises(CheckpointError, match="does not fit"):
        RunCheckpoint(tmp_path).restore(other)


def test_half_written_files_go_at_the_next_start(tmp_path, model):
    trained(tmp_path, model, 1)
    for name in (".partial-abc", ".partial-.weights.h5"):
        (tmp_path / name).write_bytes(b"half")
    trained(tmp_path, model, 0)
    assert names(tmp_path) == ["epoch-00001.weights.h5", "state.json"]


def test_a_full_disk_is_told_before_anything_is_written(
    tmp_path, model, monkeypatch
):
    checkpoint = RunCheckpoint(tmp_path)
    checkpoint.set_model(model)
    variables = [*model.variables, *model.optimizer.variables]
    size = sum(v.numpy().nbytes for v in variables)
    # 8 x 64 weights, 64 biases; the optimizer keeps some numbers of its own.
    assert size >= 4 * 576
    disk = types.SimpleNamespace(free=size)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: disk)
    checkpoint.on_epoch_end(0)
    before = names(tmp_path)
    assert before == ["epoch-00001.weights.h5", "state.json"]
    disk.free -= 1
    with pytest.raises(EnvironmentLacksError, match="checkpoint, of epoch 1"):
        checkpoint.on_epoch_end(1)
    assert names(tmp_path) == before
    assert RunCheckpoint(tmp_path).restore(model) == 1
