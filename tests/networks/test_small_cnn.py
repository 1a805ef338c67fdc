"""The small backbone."""

import keras
import numpy as np
import pytest

from alim_keras import networks
from alim_keras.errors import ConfigError


@pytest.mark.parametrize(
    ("shape", "flat"),
    [
        ((8, 8, 1), 4 * 4 * 8),  # One pooling: 8 / 2; 8 filters.
        ((15, 15, 1), 7 * 7 * 8),
        ((16, 16, 1), 4 * 4 * 8),  # Two: 16 / 4.
        ((28, 28, 1), 7 * 7 * 8),
        ((32, 16, 3), 8 * 4 * 8),
    ],
)
def test_shapes(shape, flat):
    network = networks.small_cnn(shape, width=4)
    assert network.get_layer("flatten").output.shape == (None, flat)
    assert network.output_shape == (None, 16)
    features = network(np.ones((2, *shape), "float32"))
    assert features.shape == (2, 16) and np.min(features) >= 0.0


def test_parameter_count():
    # 3x3 kernels without bias, 1*4 and 4*8; a dense layer from 4*4*8 to 16;
    # two numbers per channel of batch normalisation, 4 + 8 + 16.
    network = networks.small_cnn((8, 8, 1), width=4)
    size = sum(int(np.prod(v.shape)) for v in network.trainable_variables)
    assert size == 9 * (4 + 32) + 128 * 16 + 2 * 28


def test_batch_normalisation_constants():
    network = networks.small_cnn((8, 8, 1), width=4)
    for name in ("conv1_bn", "conv2_bn", "dense_bn"):
        layer = network.get_layer(name)
        assert (layer.momentum, layer.epsilon) == (0.9, 1e-5)


def test_it_serialises():
    network = networks.small_cnn((8, 8, 1), width=2)
    again = keras.Model.from_config(network.get_config())
    again.set_weights(network.get_weights())
    images = np.random.default_rng(0).random((2, 8, 8, 1)).astype("float32")
    np.testing.assert_array_equal(again(images), network(images))


def test_images_that_are_too_small_are_refused_in_a_sentence():
    said = "small_cnn cannot be built for images of 1 x 1 x 3: .*--image_size"
    with pytest.raises(ConfigError, match=said):
        networks.make_backbone("small_cnn", (1, 1, 3))
