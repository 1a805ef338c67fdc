"""The reference's ResNet-18, number for number."""

import keras
import numpy as np
import pytest
import references

from alim_keras import networks


def trainable_size(network):
    return sum(int(np.prod(v.shape)) for v in network.trainable_variables)


@pytest.fixture(scope="module")
def full():
    keras.utils.set_random_seed(0)
    return networks.cifar_resnet18()


@pytest.fixture(scope="module")
def small():
    """Two filters, with batch statistics and scales that are not neutral."""
    keras.utils.set_random_seed(0)
    network = networks.cifar_resnet18((8, 8, 2), width=2)
    stream = np.random.default_rng(0)
    for layer in network.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            size = layer.gamma.shape
            layer.gamma.assign(stream.uniform(0.5, 1.5, size))
            layer.beta.assign(stream.uniform(-0.5, 0.5, size))
            layer.moving_mean.assign(stream.uniform(-0.5, 0.5, size))
            layer.moving_variance.assign(stream.uniform(0.5, 2.0, size))
    return network


def test_parameter_count(full):
    assert trainable_size(full) == 11_168_832
    assert full.output_shape == (None, 512)


def test_batch_normalisation_has_pytorchs_constants(full):
    layers = [
        layer
        for layer in full.layers
        if isinstance(layer, keras.layers.BatchNormalization)
    ]
    # A stem, 8 blocks of two, three shortcuts.
    assert len(layers) == 20
    for layer in layers:
        assert (layer.momentum, layer.epsilon) == (0.9, 1e-5)
        np.testing.assert_array_equal(layer.gamma.numpy(), 1.0)
        np.testing.assert_array_equal(layer.beta.numpy(), 0.0)


def test_convolutions_start_kaiming_normal_fan_out(full):
    convolutions = [
        layer for layer in full.layers if isinstance(layer, keras.layers.Conv2D)
    ]
    assert len(convolutions) == 20
    for layer in convolutions:
        assert not layer.use_bias
        kernel = layer.kernel.numpy()
        expected = np.sqrt(2.0 / (kernel.shape[0] ** 2 * kernel.shape[-1]))
        error = 5 * expected / np.sqrt(2 * kernel.size)
        assert abs(kernel.std() - expected) < error, layer.name
        assert abs(kernel.mean()) < 5 * expected / np.sqrt(kernel.size)
    # Not truncated at two standard deviations: 4.6 % lie beyond.
    share = np.mean(np.abs(kernel) > 2 * kernel.std())
    assert share == pytest.approx(0.0455, abs=0.005)


def test_stride_two_pads_all_sides_alike(small):
    x = np.random.default_rng(1).standard_normal((1, 8, 8, 2))
    pad = small.get_layer("stage2_block1_conv1_pad")
    convolution = small.get_layer("stage2_block1_conv1")
    assert convolution.strides == (2, 2)
    np.testing.assert_allclose(
        convolution(pad(x.astype("float32"))),
        references.convolve(x, convolution.kernel.numpy(), 2, 1),
        atol=1e-5,
    )
    # What "same" would give is something else.
    same = keras.ops.conv(
        x.astype("float32"), convolution.kernel, 2, padding="same"
    )
    assert np.abs(same - convolution(pad(x.astype("float32")))).max() > 0.1


def test_the_whole_network_equals_the_loops(small):
    def normalised(x, name):
        layer = small.get_layer(name)
        gamma, beta, mean, variance = [w.numpy() for w in layer.weights]
        return gamma * (x - mean) / np.sqrt(variance + 1e-5) + beta

    def convolved(x, name, stride, pad):
        kernel = small.get_layer(name).kernel.numpy().astype("float64")
        return references.convolve(x, kernel, stride, pad)

    images = np.random.default_rng(2).standard_normal((1, 8, 8, 2))
    x = normalised(convolved(images, "stem_conv", 1, 1), "stem_bn")
    x = np.maximum(x, 0)
    for stage in (1, 2, 3, 4):
        for block in (1, 2):
            name = f"stage{stage}_block{block}_"
            stride = 2 if stage > 1 and block == 1 else 1
            y = convolved(x, name + "conv1", stride, 1)
            y = np.maximum(normalised(y, name + "bn1"), 0)
            y = normalised(convolved(y, name + "conv2", 1, 1), name + "bn2")
            if stride == 2:
                x = convolved(x, name + "shortcut", 2, 0)
                x = normalised(x, name + "shortcut_bn")
            x = np.maximum(x + y, 0)
    assert x.shape == (1, 1, 1, 16)
    np.testing.assert_allclose(
        small(images.astype("float32"), training=False),
        x.mean(axis=(1, 2)),
        atol=1e-4,
        rtol=1e-4,
    )


def test_it_serialises(small):
    again = keras.Model.from_config(small.get_config())
    again.set_weights(small.get_weights())
    images = np.ones((2, 8, 8, 2), "float32")
    np.testing.assert_array_equal(again(images), small(images))
