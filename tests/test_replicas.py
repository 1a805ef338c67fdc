"""Two replicas train as one device does, and stay equal to each other."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny

import alim_keras
from alim_keras import backend

COUNT, BATCH = 28, 8
SHAPE = (8, 8, 1)


@pytest.fixture(scope="module")
def strategy():
    """The commands' own: TensorFlow's collective keys are process-wide."""
    scope, replicas = backend.make_strategy("mirrored", 2)
    assert replicas == 2, "conftest.py sets two logical devices up"
    with scope:
        return tf.distribute.get_strategy()


def network():
    """A convolution with batch normalisation."""
    inputs = keras.Input(SHAPE)
    x = keras.layers.Conv2D(3, 3, strides=3, use_bias=False)(inputs)
    x = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    x = keras.layers.Activation("tanh")(x)
    x = keras.layers.Flatten()(x)
    return keras.Model(inputs, keras.layers.Dense(4, activation="tanh")(x))


def build(strategy=None, compile_options=None, **options):
    scope = strategy.scope() if strategy else contextlib.nullcontext()
    with scope:
        return tiny.pico(
            COUNT,
            network=network,
            learning_rate=0.05,
            queue_size=20,
            key_momentum=0.9,
            prototype_momentum=0.9,
            weight_decay=1e-2,
            scores_from="classifier",
            compile_options=compile_options or {"jit_compile": False},
            **options,
        )


def train(model, *callbacks, epochs=3, batch_size=BATCH, **options):
    images, candidates, _ = tiny.examples(COUNT, shape=SHAPE)
    return tiny.fit(
        model,
        tiny.batches(images, candidates, batch_size, seed=3),
        epochs=epochs,
        callbacks=[
            alim_keras.callbacks.ALIM("scale", noise_rate=0.3, warmup_epochs=1),
            *callbacks,
        ],
        **options,
    )


class CopiesAgree(keras.callbacks.Callback):
    """After every step, each variable is the same on both replicas."""

    def __init__(self):
        super().__init__()
        self.steps = 0

    def on_train_batch_end(self, step, logs=None):
        self.steps += 1
        variables = self.model.variables + self.model.optimizer.variables
        # A metric adds up what its replica has seen, and is summed when read.
        metrics = {id(v) for m in self.model.metrics for v in m.variables}
        for variable in variables:
            if id(variable) in metrics:
                continue
            first, second = variable.value.values
            np.testing.assert_array_equal(
                first.numpy(), second.numpy(), variable.path
            )


@pytest.fixture(scope="module")
def runs(strategy):
    """The same three epochs on one device and on two."""
    one, two = build(), build(strategy)
    agree = CopiesAgree()
    histories = train(one), train(two, agree)
    assert agree.steps == 9
    return (one, two), histories


def test_weights_and_state_are_those_of_one_device(runs):
    (one, two), _ = runs
    assert len(one.variables) == len(two.variables) > 30
    for a, b in zip(
        one.variables + one.optimizer.variables,
        two.variables + two.optimizer.variables,
    ):
        np.testing.assert_allclose(
            a.numpy(), b.numpy(), rtol=1e-5, atol=1e-5, err_msg=a.path
        )


def test_histories_are_those_of_one_device(runs):
    _, (first, second) = runs
    assert set(first) == set(second) >= {"cont_loss", "mix_loss", "lambda"}
    for name in first:
        np.testing.assert_allclose(
            second[name], first[name], atol=1e-5, err_msg=name
        )
    # The comparison would be empty with lambda at 0 or clamped to 1.
    assert all(0.0 < lam < 1.0 for lam in first["lambda"])


def test_batch_statistics_are_synchronised(runs):
    (one, two), _ = runs
    for model in (two.backbone, two.key_encoder.layers[0]):
        (norm,) = (
            layer
            for layer in model.layers
            if isinstance(layer, keras.layers.BatchNormalization)
        )
        assert norm.synchronized
    norm = one.backbone.layers[2]
    assert not norm.synchronized
    assert np.abs(norm.moving_mean.numpy()).max() > 1e-3


def test_evaluation_is_that_of_one_device(runs):
    # The last batch, 4 of 28, is shared out evenly.
    (one, two), _ = runs
    images, candidates, _ = tiny.examples(COUNT, shape=SHAPE)
    data = alim_keras.data.eval_dataset(images, candidates, 3, BATCH)
    first = one.evaluate(data, verbose=0, return_dict=True)
    second = two.evaluate(data, verbose=0, return_dict=True)
    assert second == pytest.approx(first, abs=1e-5)
    np.testing.assert_allclose(
        two.predict(data, verbose=0), one.predict(data, verbose=0), atol=1e-5
    )


def test_evaluation_with_an_odd_last_batch_is_that_of_one_device(runs):
    # 8, 8, 3: two replicas see 10 and 9 examples.
    (one, two), _ = runs
    images, candidates, _ = tiny.examples(19, seed=8, shape=SHAPE)
    data = alim_keras.data.eval_dataset(images, candidates, 3, BATCH)
    first = one.evaluate(data, verbose=0, return_dict=True)
    second = two.evaluate(data, verbose=0, return_dict=True)
    assert second == pytest.approx(first, abs=1e-5)


def test_evaluation_of_an_odd_first_batch_works(runs):
    (one, two), _ = runs
    images, candidates, _ = tiny.examples(7, seed=8, shape=SHAPE)
    data = alim_keras.data.eval_dataset(images, candidates, 3, BATCH)
    first = one.evaluate(data, verbose=0, return_dict=True)
    second = two.evaluate(data, verbose=0, return_dict=True)
    assert second == pytest.approx(first, abs=1e-5)


def test_several_steps_per_execution_are_refused(strategy):
    # Pitfall P9.
    model = build(strategy)
    model.steps_per_execution = 4
    with pytest.raises(ValueError, match="steps_per_execution=4"):
        train(model)


@pytest.mark.parametrize("size", [4, 8, 12])
def test_mixup_pairs_stay_together_when_a_batch_is_split(size):
    model = build()
    whole = keras.ops.convert_to_numpy(model.mixup_partner(size))
    half = keras.ops.convert_to_numpy(model.mixup_partner(size // 2))
    np.testing.assert_array_equal(
        whole, np.concatenate([half, half + size // 2])
    )


def refused_or_right(strategy, sizes):
    """Two replicas refuse these batches by name, or do as one device does."""
    images, candidates, _ = tiny.examples(COUNT, shape=SHAPE)

    def batches():
        start = 0
        for size in sizes:
            index = np.arange(start, start + size)
            x = {"image": images[index], "index": index}
            yield x, candidates[index]
            start += size

    def run(model):
        shape = tf.TensorSpec((None, *SHAPE), tf.uint8)
        index = tf.TensorSpec((None,), tf.int64)
        data = tf.data.Dataset.from_generator(
            batches,
            output_signature=(
                {"image": shape, "index": index},
                tf.TensorSpec((None, tiny.CLASSES), tf.float32),
            ),
        )
        data = data.apply(tf.data.experimental.assert_cardinality(len(sizes)))
        return tiny.fit(model, data)

    try:
        history = run(build(strategy))
    except ValueError as error:
        assert "batch" in str(error)
        return
    expected = run(build(compile_options={"run_eagerly": True}))
    for name in expected:
        np.testing.assert_allclose(
            history[name], expected[name], atol=1e-5, err_msg=name
        )


def test_an_odd_share_of_the_batch(strategy):
    # 6 = 3 + 3: neighbours that mixup pairs stand on different replicas.
    refused_or_right(strategy, [6, 6])


def test_uneven_shares_of_the_last_batch(strategy):
    # 5 = 3 + 2: each replica must know its place in the global batch.
    refused_or_right(strategy, [8, 5])


def test_an_empty_share_of_the_last_batch(strategy):
    # 1 = 1 + 0. Last of all: aborted collectives stay aborted in a process.
    refused_or_right(strategy, [8, 1])
