"""The small backbone."""

import keras
import numpy as np
import pytest

from alim_keras import networks


@pytest.mark.parametrize(
    ("shape", "before_pooling"),
    [
        ((8, 8, 1), 4),  # One pooling: 8 / 2.
        ((15, 15, 1), 7),
        ((16, 16, 1), 4),  # Two: 16 / 4.
        ((28, 28, 1), 7),
        ((32, 32, 3), 8),
    ],
)
def test_shapes(shape, before_pooling):
    network = networks.small_cnn(shape, width=4)
    assert network.output_shape == (None, 16)
    assert network.get_layer("relu3").output.shape == (
        None,
        before_pooling,
        before_pooling,
        16,
    )


def test_parameter_count():
    # 3x3 kernels without bias: 9 (1*4 + 4*8 + 8*16); 2 (4 + 8 + 16) for BN.
    network = networks.small_cnn((8, 8, 1), width=4)
    size = sum(int(np.prod(v.shape)) for v in network.trainable_variables)
    assert size == 9 * 164 + 56


def test_batch_normalisation_constants():
    network = networks.small_cnn((8, 8, 1), width=4)
    for name in ("bn1", "bn2", "bn3"):
        layer = network.get_layer(name)
        assert (layer.momentum, layer.epsilon) == (0.9, 1e-5)


def test_it_serialises():
    network = networks.small_cnn((8, 8, 1), width=2)
    again = keras.Model.from_config(network.get_config())
    again.set_weights(network.get_weights())
    images = np.random.default_rng(0).random((2, 8, 8, 1)).astype("float32")
    np.testing.assert_array_equal(again(images), network(images))
