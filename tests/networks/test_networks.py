"""Our own networks and heads, number for number."""

import keras
import numpy as np
import pytest
import references
import trained

from alim_keras import networks
from alim_keras.errors import ConfigError


@pytest.fixture(scope="module")
def full():
    keras.utils.set_random_seed(0)
    return networks.cifar_resnet18()


@pytest.fixture(scope="module")
def wide():
    """Depth 10 is one block a stage."""
    return trained.made(
        networks.cifar_wide_resnet34_10, (8, 8, 2), width=16, depth=10
    )


def convolved(network, x, name, stride, pad):
    kernel = network.get_layer(name).kernel.numpy().astype("float64")
    return references.convolve(x, kernel, stride, pad)


def test_resnet_is_the_published_one(full):
    assert trained.trainable_size(full) == 11_168_832
    assert full.output_shape == (None, 512)
    norms = trained.layers(full, keras.layers.BatchNormalization)
    convolutions = trained.layers(full, keras.layers.Conv2D)
    # A stem, 8 blocks of two, three shortcuts.
    assert len(norms) == len(convolutions) == 20
    for layer in norms:
        assert (layer.momentum, layer.epsilon) == (0.9, 1e-5)
        np.testing.assert_array_equal(layer.gamma.numpy(), 1.0)
        np.testing.assert_array_equal(layer.beta.numpy(), 0.0)


def test_convolutions_start_kaiming_normal_fan_out(full, wide):
    convolutions = trained.layers(full, keras.layers.Conv2D)
    for layer in (*convolutions, wide.get_layer("stage3_block1_conv2")):
        assert not layer.use_bias
        kernel = layer.kernel.numpy()
        expected = np.sqrt(2.0 / (kernel.shape[0] ** 2 * kernel.shape[-1]))
        error = 5 * expected / np.sqrt(2 * kernel.size)
        assert abs(kernel.std() - expected) < error, layer.name
        assert abs(kernel.mean()) < 5 * expected / np.sqrt(kernel.size)
    # Not truncated at two standard deviations: 4.6 % lie beyond.
    kernel = convolutions[-1].kernel.numpy()
    share = np.mean(np.abs(kernel) > 2 * kernel.std())
    assert share == pytest.approx(0.0455, abs=0.005)


def test_resnet_equals_the_loops():
    small = trained.made(networks.cifar_resnet18, (8, 8, 2), width=2)
    images = np.random.default_rng(2).standard_normal((1, 8, 8, 2))
    x = convolved(small, images, "stem_conv", 1, 1)
    x = np.maximum(trained.normalised(small, x, "stem_bn"), 0)
    for stage in (1, 2, 3, 4):
        for block in (1, 2):
            name = f"stage{stage}_block{block}_"
            stride = 2 if stage > 1 and block == 1 else 1
            y = convolved(small, x, name + "conv1", stride, 1)
            y = np.maximum(trained.normalised(small, y, name + "bn1"), 0)
            y = convolved(small, y, name + "conv2", 1, 1)
            y = trained.normalised(small, y, name + "bn2")
            if stride == 2:
                x = convolved(small, x, name + "shortcut", 2, 0)
                x = trained.normalised(small, x, name + "shortcut_bn")
            x = np.maximum(x + y, 0)
    assert x.shape == (1, 1, 1, 16)
    trained.assert_features(small, images, x)
    trained.assert_serialises(small)


def test_wide_resnet_is_the_published_one():
    network = networks.cifar_wide_resnet34_10()
    # With a classifier of ten classes it is the published 46.16 million.
    assert trained.trainable_size(network) == 46_160_474 - (640 * 10 + 10)
    assert network.output_shape == (None, 640)
    convolutions = trained.layers(network, keras.layers.Conv2D)
    # A stem, 15 blocks of two, three shortcuts; 34 without the shortcuts,
    # with the stem, the blocks and three layers that count as such.
    assert len(convolutions) == 1 + 30 + 3
    assert not any(layer.use_bias for layer in convolutions)


def test_wide_resnet_equals_the_loops(wide):
    def activated(x, name):
        return np.maximum(trained.normalised(wide, x, name), 0)

    images = np.random.default_rng(2).standard_normal((1, 8, 8, 2))
    x = convolved(wide, images, "stem_conv", 1, 1)
    for stage, stride in ((1, 1), (2, 2), (3, 2)):
        name = f"stage{stage}_block1_"
        start = activated(x, name + "bn1")
        # With `width` 16 the first stage keeps its 16 filters, so its
        # shortcut is the sum of what came in; the others start after bn1.
        if stage > 1:
            x = convolved(wide, start, name + "shortcut", stride, 0)
        y = convolved(wide, start, name + "conv1", stride, 1)
        y = convolved(wide, activated(y, name + "bn2"), name + "conv2", 1, 1)
        x = x + y
    x = activated(x, "final_bn")
    assert x.shape == (1, 2, 2, 64)
    trained.assert_features(wide, images, x)
    trained.assert_serialises(wide)


def test_bad_depth_is_refused():
    with pytest.raises(ConfigError, match="multiple of 6.*depth=12"):
        networks.cifar_wide_resnet34_10(depth=12)


@pytest.mark.parametrize(
    "network", ["cifar_resnet18", "cifar_wide_resnet34_10"]
)
@pytest.mark.parametrize("width, picks", [(4, 2), (8, 1), (15, 1), (16, 0)])
def test_no_narrow_convolution_of_one_pixel_has_a_stride(network, width, picks):
    # The gradient of such a convolution in oneDNN ends the process.
    made, _ = networks.make_backbone(network, (16, 16, 3), width)
    strided = [
        layer
        for layer in trained.layers(made, keras.layers.Conv2D)
        if layer.kernel_size == (1, 1) and layer.strides == (2, 2)
    ]
    assert all(layer.input.shape[-1] >= 16 for layer in strided)
    pools = trained.layers(made, keras.layers.AveragePooling2D)
    assert len(pools) == picks
    shortcuts = 3 if network == "cifar_resnet18" else 2
    assert len(strided) == shortcuts - picks


def test_small_cnn_is_as_described():
    for shape, flat in (
        ((15, 15, 1), 7 * 7 * 8),  # One pooling; 8 filters.
        ((16, 16, 1), 4 * 4 * 8),  # Two: 16 / 4.
        ((32, 16, 3), 8 * 4 * 8),
    ):
        network = networks.small_cnn(shape, width=4)
        assert network.get_layer("flatten").output.shape == (None, flat)
        assert network.output_shape == (None, 16)
    # 3x3 kernels without bias, 1*4 and 4*8; a dense layer from 4*4*8 to 16;
    # two numbers per channel of batch normalisation, 4 + 8 + 16.
    network = networks.small_cnn((8, 8, 1), width=4)
    size = trained.trainable_size(network)
    assert size == 9 * (4 + 32) + 128 * 16 + 2 * 28
    for name in ("conv1_bn", "conv2_bn", "dense_bn"):
        layer = network.get_layer(name)
        assert (layer.momentum, layer.epsilon) == (0.9, 1e-5)
    trained.assert_serialises(network)


def test_mlp_by_hand():
    network = networks.mlp((1, 1, 2), width=2)
    for layer in trained.layers(network, keras.layers.Dense):
        layer.kernel.assign([[1.0, 2.0], [3.0, -1.0]])
    for layer in trained.layers(network, networks.BatchNormalization):
        # Mean 0 and variance 1 - 1e-5, so that nothing changes.
        layer.moving_variance.assign(np.full(2, 1.0 - 1e-5))
    # (1, -1): (1 - 3, 2 + 1) = (-2, 3), ReLU (0, 3); (9, -3), ReLU (9, 0).
    result = network(np.array([[[[1.0, -1.0]]]]), training=False)
    np.testing.assert_allclose(result, [[9.0, 0.0]], rtol=1e-6)


@pytest.mark.parametrize("fan_in", [64, 512])
def test_heads_start_as_pytorchs_linear(fan_in):
    keras.utils.set_random_seed(0)
    bound = 1 / np.sqrt(fan_in)
    first, second = networks.projection_head(fan_in, 100).layers
    for layer in (networks.classifier_head(fan_in, 100), first, second):
        units = fan_in if layer is first else 100
        assert layer.kernel.shape == (fan_in, units)
        for weight in (layer.kernel.numpy(), layer.bias.numpy()):
            # Uniform on [-b, b]: b / sqrt 3; the error of a standard
            # deviation is at most 0.32 / sqrt(n) of it.
            assert np.abs(weight).max() <= bound
            assert np.abs(weight).max() > 0.9 * bound
            error = 4 * 0.32 / np.sqrt(weight.size)
            spread = weight.std() * np.sqrt(3) / bound
            assert abs(spread - 1) < max(error, 0.02)
    one, two = networks.projection_head(16, 16).layers
    assert np.abs(one.kernel - two.kernel).max() > 0.01


def test_heads_return_float32_under_mixed_precision():
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    try:
        heads = networks.classifier_head(4, 3), networks.projection_head(4, 3)
    finally:
        keras.config.set_dtype_policy(policy)
    for head in heads:
        dtype = head(np.ones((2, 4), "float16")).dtype
        assert keras.backend.standardize_dtype(dtype) == "float32"
