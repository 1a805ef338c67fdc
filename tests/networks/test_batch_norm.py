"""Batch normalisation in one operation, against Keras's own."""

import keras
import numpy as np
import pytest
from compiling import gradient

from alim_keras import networks


def both(shape, **options):
    """The layer and Keras's, with the same weights, none of them neutral."""
    stream = np.random.default_rng(0)
    channels = shape[-1]
    ranges = (0.5, 1.5), (-0.5, 0.5), (-0.5, 0.5), (0.5, 2.0)
    weights = [stream.uniform(*ends, channels) for ends in ranges]
    options = {"momentum": 0.9, "epsilon": 1e-5, **options}
    layers = []
    for kind in (networks.BatchNormalization, keras.layers.BatchNormalization):
        layer = kind(**options)
        layer.build(shape)
        layer.set_weights(weights)
        layers.append(layer)
    return layers


def images(*shape):
    return np.random.default_rng(1).normal(2.0, 3.0, shape).astype("float32")


@pytest.mark.parametrize(
    "shape, dtype, atol",
    [
        ((5, 4, 3, 2), "float32", 1e-5),
        ((1, 2, 1, 3), "float32", 1e-5),
        ((3, 1, 1, 2), "float32", 1e-5),
        ((6, 5), "float32", 1e-5),
        ((5, 4, 3, 2), "mixed_bfloat16", 0.02),
        ((5, 4, 3, 2), "mixed_float16", 0.02),
    ],
)
def test_training_equals_keras(shape, dtype, atol):
    ours, theirs = both(shape, dtype=dtype)
    x = images(*shape)
    ops = keras.ops
    for _ in range(2):
        one, two = ours(x, training=True), theirs(x, training=True)
        assert one.dtype == two.dtype
        one, two = ops.cast(one, "float32"), ops.cast(two, "float32")
        np.testing.assert_allclose(one, two, atol=atol)
    for one, two in zip(ours.weights, theirs.weights):
        assert one.dtype == "float32"
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=2e-6)
    direction = images(*shape)[::-1]

    def slope(layer):
        return gradient(
            lambda x: ops.sum(layer(x, training=True) * direction), x
        )

    if dtype == "float32":
        np.testing.assert_allclose(slope(ours), slope(theirs), atol=1e-4)


def test_inference_is_keras_own():
    ours, theirs = both((5, 4, 3, 2))
    x = images(5, 4, 3, 2)
    np.testing.assert_array_equal(ours(x), theirs(x))
    ours.trainable = theirs.trainable = False
    np.testing.assert_array_equal(
        ours(x, training=True), theirs(x, training=True)
    )


def test_weights_of_keras_own_layer_fit(tmp_path):
    inputs = keras.Input((4, 4, 2))
    path = tmp_path / "a.weights.h5"
    theirs = keras.Model(inputs, keras.layers.BatchNormalization()(inputs))
    theirs.layers[1].moving_mean.assign([3.0, 4.0])
    theirs.save_weights(path)
    ours = keras.Model(inputs, networks.BatchNormalization()(inputs))
    ours.load_weights(path)
    assert ours.layers[1].moving_mean.numpy().tolist() == [3.0, 4.0]
