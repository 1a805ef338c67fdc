"""Checkpoints on a full disk; tests/runs/test_resume.py has the rest."""

import collections
import shutil

import keras
import numpy as np
import pytest

from alim_keras.callbacks import RunCheckpoint
from alim_keras.errors import EnvironmentLacksError

Usage = collections.namedtuple("Usage", "total used free")


def test_a_full_disk_is_told_before_anything_is_written(tmp_path, monkeypatch):
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(64)])
    model.compile("sgd", "mse")
    checkpoint = RunCheckpoint(tmp_path)
    checkpoint.set_model(model)
    variables = [*model.variables, *model.optimizer.variables]
    # 8 x 64 weights, 64 biases; the optimizer keeps some numbers of its own.
    assert sum(np.prod(v.shape) for v in variables) >= 576
    size = sum(
        int(np.prod(v.shape)) * np.dtype(v.dtype).itemsize for v in variables
    )
    free = size

    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: Usage(9**9, 9**9 - free, free)
    )
    checkpoint.on_epoch_end(0)
    before = sorted(path.name for path in tmp_path.iterdir())
    assert before == ["epoch-00001.weights.h5", "state.json"]
    free = size - 1
    with pytest.raises(
        EnvironmentLacksError, match="last checkpoint, of epoch 1"
    ):
        checkpoint.on_epoch_end(1)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert RunCheckpoint(tmp_path).restore(model) == 1
