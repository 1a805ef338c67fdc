"""The WideResNet-34-10 of CRDPLL, number for number."""

import keras
import numpy as np
import pytest
import references

from alim_keras import networks
from alim_keras.errors import ConfigError


@pytest.fixture(scope="module")
def small():
    """Depth 10 is one block a stage; statistics that are not neutral."""
    keras.utils.set_random_seed(0)
    network = networks.cifar_wide_resnet34_10((8, 8, 2), width=16, depth=10)
    stream = np.random.default_rng(0)
    for layer in network.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            size = layer.gamma.shape
            layer.gamma.assign(stream.uniform(0.5, 1.5, size))
            layer.beta.assign(stream.uniform(-0.5, 0.5, size))
            layer.moving_mean.assign(stream.uniform(-0.5, 0.5, size))
            layer.moving_variance.assign(stream.uniform(0.5, 2.0, size))
    return network


def test_parameter_count():
    network = networks.cifar_wide_resnet34_10()
    # Batch normalisation has two numbers a channel, a 3x3 convolution 9 times
    # filters in times filters out, a shortcut 1 times.
    stages = [
        # The first block of a stage, then four alike.
        (2 * 16 + 9 * 16 * 160 + 2 * 160 + 9 * 160 * 160 + 16 * 160)
        + 4 * 2 * (2 * 160 + 9 * 160 * 160),
        (2 * 160 + 9 * 160 * 320 + 2 * 320 + 9 * 320 * 320 + 160 * 320)
        + 4 * 2 * (2 * 320 + 9 * 320 * 320),
        (2 * 320 + 9 * 320 * 640 + 2 * 640 + 9 * 640 * 640 + 320 * 640)
        + 4 * 2 * (2 * 640 + 9 * 640 * 640),
    ]
    assert stages == [2_102_112, 8_812_480, 35_237_760]
    # The stem and the last batch normalisation.
    assert 9 * 3 * 16 + sum(stages) + 2 * 640 == 46_154_064
    count = sum(int(np.prod(v.shape)) for v in network.trainable_variables)
    assert count == 46_154_064
    # With a classifier of ten classes it is the published 46.16 million.
    assert count + 640 * 10 + 10 == 46_160_474
    assert network.output_shape == (None, 640)
    convolutions = [
        layer
        for layer in network.layers
        if isinstance(layer, keras.layers.Conv2D)
    ]
    # A stem, 15 blocks of two, three shortcuts; 34 without the shortcuts,
    # with the stem, the blocks and three layers that count as such.
    assert len(convolutions) == 1 + 30 + 3
    assert not any(layer.use_bias for layer in convolutions)


def test_starts_as_the_resnet(small):
    layer = small.get_layer("stage3_block1_conv2")
    kernel = layer.kernel.numpy()
    expected = np.sqrt(2.0 / (9 * 64))
    error = 5 * expected / np.sqrt(2 * kernel.size)
    assert abs(kernel.std() - expected) < error
    norm = small.get_layer("final_bn")
    assert (norm.momentum, norm.epsilon) == (0.9, 1e-5)


def test_the_whole_network_equals_the_loops(small):
    def activated(x, name):
        layer = small.get_layer(name)
        gamma, beta, mean, variance = [w.numpy() for w in layer.weights]
        x = gamma * (x - mean) / np.sqrt(variance + 1e-5) + beta
        return np.maximum(x, 0)

    def convolved(x, name, stride, pad):
        kernel = small.get_layer(name).kernel.numpy().astype("float64")
        return references.convolve(x, kernel, stride, pad)

    images = np.random.default_rng(2).standard_normal((1, 8, 8, 2))
    x = convolved(images, "stem_conv", 1, 1)
    for stage, stride in ((1, 1), (2, 2), (3, 2)):
        name = f"stage{stage}_block1_"
        start = activated(x, name + "bn1")
        # With `width` 16 the first stage keeps its 16 filters, so its
        # shortcut is the sum of what came in; the others start after bn1.
        if stage > 1:
            x = convolved(start, name + "shortcut", stride, 0)
        y = activated(convolved(start, name + "conv1", stride, 1), name + "bn2")
        x = x + convolved(y, name + "conv2", 1, 1)
    x = activated(x, "final_bn")
    assert x.shape == (1, 2, 2, 64)
    np.testing.assert_allclose(
        small(images.astype("float32"), training=False),
        x.mean(axis=(1, 2)),
        atol=1e-4,
        rtol=1e-4,
    )


def test_width_of_the_command_and_bad_depth():
    backbone, normalised = networks.make_backbone(
        "cifar_wide_resnet34_10", (32, 32, 3), width=4
    )
    assert normalised and backbone.output_shape == (None, 16)
    with pytest.raises(ConfigError, match="multiple of 6.*depth=12"):
        networks.cifar_wide_resnet34_10(depth=12)


def test_it_serialises(small):
    again = keras.Model.from_config(small.get_config())
    again.set_weights(small.get_weights())
    images = np.ones((2, 8, 8, 2), "float32")
    np.testing.assert_array_equal(again(images), small(images))
