"""Tiny models and data shared by the tests of the core."""

import keras
import numpy as np

import alim_keras

CLASSES = 3
SHAPE = (4, 4, 1)


def examples(count=24, seed=0, shape=SHAPE):
    """Random images, sets of one or two of three classes, and true labels.

    About a third of the labels lie outside their set.
    """
    stream = np.random.default_rng(seed)
    images = stream.integers(0, 256, (count, *shape)).astype("uint8")
    labels = stream.integers(0, CLASSES, count)
    candidates = np.zeros((count, CLASSES), "float32")
    for i in range(count):
        first = labels[i] if stream.random() < 0.7 else (labels[i] + 1) % 3
        candidates[i, first] = 1.0
        if stream.random() < 0.5:
            # Never the true label where the set is a wrong one.
            candidates[i, (labels[i] + 2) % 3] = 1.0
    return images, candidates, labels


def backbone(batch_norm=False, shape=SHAPE, features=5):
    """Flatten, dense, tanh; smooth, so that differences give gradients."""
    inputs = keras.Input(shape)
    x = keras.layers.Flatten()(inputs)
    x = keras.layers.Dense(features, activation="tanh")(x)
    if batch_norm:
        x = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    return keras.Model(inputs, x)


def pico(
    count=24,
    batch_norm=False,
    learning_rate=0.1,
    momentum=0.9,
    metrics=True,
    compile_options=None,
    network=None,
    **options,
):
    """A compiled PiCO with the same initial weights every time.

    `network` is a function that builds another backbone.

    It runs eagerly unless `compile_options` say otherwise: on networks this
    small that takes less time than to trace.
    """
    keras.utils.set_random_seed(1)
    network = network() if network else backbone(batch_norm)
    options = {"embedding_dim": 4, "queue_size": 10, **options}
    model = alim_keras.PiCO(network, CLASSES, count, **options)
    kind = alim_keras.metrics.CandidateAccuracy
    model.compile(
        optimizer=keras.optimizers.SGD(learning_rate, momentum=momentum),
        metrics=[kind()] if metrics else None,
        **(compile_options or {"run_eagerly": True}),
    )
    return model


def batches(images, candidates, batch_size, **options):
    """The training data set of `alim_keras.data`."""
    return alim_keras.data.train_dataset(
        images, candidates, batch_size=batch_size, **options
    )


def fit(model, data, epochs=1, **options):
    """`fit` without the noise; returns the history's dict."""
    # Keras warns about its own default of `shuffle` for a tf.data.Dataset.
    options = {"verbose": 0, "shuffle": False, **options}
    return model.fit(data, epochs=epochs, **options).history


def snapshot(model):
    """All variables as numpy arrays, by position and path."""
    return [(v.path, v.numpy()) for v in model.variables]


def assert_same(first, second, atol=0.0):
    """Raises unless two snapshots hold the same values."""
    assert len(first) == len(second)
    for (path, a), (_, b) in zip(first, second):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol, err_msg=path)
