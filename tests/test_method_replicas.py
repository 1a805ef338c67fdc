"""IRNet and PiCO+ on two replicas; they run before test_replicas.py.

What that file's last test does to collectives would reach these.
"""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny

import alim_keras
from alim_keras import backend
from alim_keras.methods import IRNet
from alim_keras.methods import PiCOPlus

OPTIONS = {
    IRNet: {"tau": 0.0, "correct_start": 2, "mixup_weight": 0.5},
    PiCOPlus: {"start": 1, "knn_start": 2, "num_neighbours": 4},
}


@pytest.fixture(scope="module")
def strategy():
    scope, replicas = backend.make_strategy("mirrored", 2)
    assert replicas == 2, "conftest.py sets two logical devices up"
    with scope:
        return tf.distribute.get_strategy()


class CopiesAgree(keras.callbacks.Callback):
    """After every epoch, each variable is the same on both replicas."""

    epochs = 0

    def on_epoch_end(self, epoch, logs=None):
        self.epochs += 1
        metrics = {id(v) for m in self.model.metrics for v in m.variables}
        for variable in self.model.variables:
            if id(variable) not in metrics:
                first, second = variable.value.values
                np.testing.assert_array_equal(
                    first.numpy(), second.numpy(), variable.path
                )


def train(method, strategy=None):
    images, candidates, _ = tiny.examples(24)
    with strategy.scope() if strategy else contextlib.nullcontext():
        model = tiny.pico(
            method=method,
            batch_norm=True,
            learning_rate=0.05,
            compile_options={"jit_compile": False},
            **OPTIONS[method],
        )
    agree = [CopiesAgree()] if strategy else []
    history = tiny.fit(
        model,
        tiny.batches(images, candidates, 8, seed=3),
        epochs=3,
        callbacks=[
            alim_keras.callbacks.ALIM(noise_rate=0.3, warmup_epochs=1),
            *agree,
        ],
    )
    assert all(callback.epochs == 3 for callback in agree)
    return model, history


@pytest.mark.slow
@pytest.mark.parametrize("method", OPTIONS)
def test_two_replicas_train_as_one_device(strategy, method):
    (one, first), (two, second) = train(method), train(method, strategy)
    assert len(one.variables) == len(two.variables) > 30
    for a, b in zip(one.variables, two.variables):
        np.testing.assert_allclose(
            a.numpy(), b.numpy(), rtol=1e-4, atol=1e-4, err_msg=a.path
        )
    for name in first:
        np.testing.assert_allclose(
            second[name], first[name], rtol=1e-4, atol=1e-4, err_msg=name
        )
    if method is IRNet:
        assert sum(first["corrected"]) > 0
    else:
        assert 0 < two.reliability.reliable.numpy().sum() < 24
        assert first["guess_loss"][-1] > 0
