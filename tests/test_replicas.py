"""Two replicas train as one device does, and stay equal to each other."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny

import alim_keras
from alim_keras import backend
from alim_keras.errors import ConfigError
from alim_keras.methods import IRNet
from alim_keras.methods import PiCOPlus

COUNT, BATCH = 28, 8
SHAPE = (8, 8, 1)
METHODS = {
    alim_keras.PiCO: {"scores_from": "classifier", "weight_decay": 1e-2},
    IRNet: {"tau": 0.0, "correct_start": 0.5, "mixup_weight": 0.5, "folds": 4},
    PiCOPlus: {"start": 1, "knn_start": 2, "num_neighbours": 4},
}


@pytest.fixture(scope="module")
def strategy():
    """The commands' own: TensorFlow's collective keys are process-wide."""
    scope, replicas = backend.make_strategy("mirrored", 2)
    assert replicas == 2, "conftest.py sets two logical devices up"
    with scope:
        return tf.distribute.get_strategy()


@keras.saving.register_keras_serializable(package="tests")
class Nested(keras.layers.Layer):
    """Hides a batch normalisation from a network's list of layers."""

    def __init__(self):
        super().__init__()
        self.parts = [keras.layers.BatchNormalization(momentum=0.9)]

    def build(self, shape):
        self.parts[0].build(shape)

    def call(self, x, training=False):
        return self.parts[0](x, training=training)

    def get_config(self):
        return {}


def network():
    """A convolution with batch normalisation."""
    inputs = keras.Input(SHAPE)
    x = keras.layers.Conv2D(3, 3, strides=3, use_bias=False)(inputs)
    x = Nested()(x)
    x = keras.layers.Activation("tanh")(x)
    x = keras.layers.Flatten()(x)
    return keras.Model(inputs, keras.layers.Dense(4, activation="tanh")(x))


def build(strategy=None, method=alim_keras.PiCO):
    with strategy.scope() if strategy else contextlib.nullcontext():
        return tiny.pico(
            COUNT,
            method=method,
            network=network,
            learning_rate=0.05,
            queue_size=20,
            key_momentum=0.9,
            prototype_momentum=0.9,
            compile_options={"jit_compile": False},
            **METHODS[method],
        )


class CopiesAgree(keras.callbacks.Callback):
    """After every epoch, each variable is the same on both replicas."""

    epochs = 0

    def on_epoch_end(self, epoch, logs=None):
        self.epochs += 1
        variables = self.model.variables + self.model.optimizer.variables
        # A metric adds up what its replica has seen, and is summed when read.
        metrics = {id(v) for m in self.model.metrics for v in m.variables}
        for variable in variables:
            if id(variable) not in metrics:
                first, second = variable.value.values
                np.testing.assert_array_equal(
                    first.numpy(), second.numpy(), variable.path
                )


def train(model, *callbacks):
    images, candidates, _ = tiny.examples(COUNT, shape=SHAPE)
    data = tiny.batches(images, candidates, BATCH, seed=3)
    alim = alim_keras.callbacks.ALIM("scale", noise_rate=0.3, warmup_epochs=1)
    return tiny.fit(model, data, epochs=3, callbacks=[alim, *callbacks])


@pytest.fixture(
    scope="module",
    params=[
        alim_keras.PiCO,
        pytest.param(IRNet, marks=pytest.mark.slow),
        pytest.param(PiCOPlus, marks=pytest.mark.slow),
    ],
)
def runs(strategy, request):
    """The same three epochs on one device and on two."""
    one = build(method=request.param)
    two = build(strategy, method=request.param)
    agree = CopiesAgree()
    histories = train(one), train(two, agree)
    assert agree.epochs == 3
    return (one, two), histories


def test_weights_state_and_history_are_those_of_one_device(runs):
    (one, two), (first, second) = runs
    assert len(one.variables) == len(two.variables) > 30
    for a, b in zip(
        one.variables + one.optimizer.variables,
        two.variables + two.optimizer.variables,
    ):
        np.testing.assert_allclose(
            a.numpy(), b.numpy(), rtol=1e-5, atol=2e-5, err_msg=a.path
        )
    assert set(first) == set(second) >= {"cont_loss", "mix_loss", "lambda"}
    for name in first:
        np.testing.assert_allclose(
            second[name], first[name], atol=2e-5, err_msg=name
        )
    if type(one) is alim_keras.PiCO:
        # The comparison would be empty with lambda at 0 or clamped to 1.
        assert all(0.0 < lam < 1.0 for lam in first["lambda"])
    if isinstance(one, IRNet):
        assert sum(first["corrected"]) > 0
    if isinstance(one, PiCOPlus):
        assert 0 < two.reliability.reliable.numpy().sum() < COUNT


def test_batch_statistics_are_synchronised(runs):
    (one, two), _ = runs
    for model in (two.backbone, two.key_encoder.layers[0]):
        assert model.layers[2].parts[0].synchronized
    norm = one.backbone.layers[2].parts[0]
    assert not norm.synchronized
    assert np.abs(norm.moving_mean.numpy()).max() > 1e-3


@pytest.mark.parametrize("count", [28, 19, 7])
def test_evaluation_is_that_of_one_device(runs, count):
    # Of 19, two replicas see 10 and 9; 7 are one uneven batch.
    (one, two), _ = runs
    images, candidates, _ = tiny.examples(count, seed=8, shape=SHAPE)
    data = alim_keras.data.eval_dataset(images, candidates, 3, BATCH)
    first = one.evaluate(data, verbose=0, return_dict=True)
    second = two.evaluate(data, verbose=0, return_dict=True)
    assert set(first) == {"loss", "candidate_accuracy"}
    assert second == pytest.approx(first, abs=1e-5)
    np.testing.assert_allclose(
        two.predict(data, verbose=0), one.predict(data, verbose=0), atol=1e-5
    )


def test_several_steps_per_execution_are_refused(strategy):
    # Pitfall P9.
    model = build(strategy)
    model.steps_per_execution = 4
    with pytest.raises(ValueError, match="steps_per_execution=4"):
        train(model)


# Without the first, metrics are built from a batch that is averaged over the
# replicas; without the second, batch statistics are a replica's own.
@pytest.mark.parametrize("name", ["_maybe_symbolic_build", "_flatten_layers"])
def test_keras_still_has_the_private_names_in_use(name):
    assert hasattr(keras.Model, name)


@pytest.mark.parametrize("sizes", [[6, 6], [8, 5]])
def test_odd_and_uneven_shares_are_refused(strategy, sizes):
    # 6 = 3 + 3: neighbours that mixup pairs stand on different replicas.
    # 5 = 3 + 2: each replica must know its place in the global batch.
    # Last of all: aborted collectives stay aborted in a process.
    images, candidates, _ = tiny.examples(COUNT, shape=SHAPE)
    x = {"image": images, "index": np.arange(COUNT)}
    data = tf.data.Dataset.from_tensor_slices((x, candidates))
    data = data.take(sum(sizes)).batch(sizes[0])
    with pytest.raises(ConfigError, match="unequal shares of a batch, or odd"):
        tiny.fit(build(strategy), data)
