"""The small backbones and the heads."""

import keras
import numpy as np
import pytest
import trained

from alim_keras import networks


@pytest.mark.parametrize(
    ("shape", "flat"),
    [
        ((15, 15, 1), 7 * 7 * 8),  # One pooling; 8 filters.
        ((16, 16, 1), 4 * 4 * 8),  # Two: 16 / 4.
        ((32, 16, 3), 8 * 4 * 8),
    ],
)
def test_shapes_of_small_cnn(shape, flat):
    network = networks.small_cnn(shape, width=4)
    assert network.get_layer("flatten").output.shape == (None, flat)
    assert network.output_shape == (None, 16)


def test_small_cnn_is_as_described():
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


def test_parameter_counts_of_the_heads():
    assert trained.trainable_size(networks.classifier_head(512, 10)) == 5_130
    # 512 x 512 + 512, and 512 x 128 + 128.
    head = networks.projection_head(512, 128)
    assert trained.trainable_size(head) == 262_656 + 65_664


@pytest.mark.parametrize("fan_in", [64, 512])
def test_heads_start_as_pytorchs_linear(fan_in):
    keras.utils.set_random_seed(0)
    bound = 1 / np.sqrt(fan_in)
    first, second = networks.projection_head(fan_in, 100).layers
    for layer in (networks.classifier_head(fan_in, 100), first, second):
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
        classifier = networks.classifier_head(4, 3)
        projection = networks.projection_head(4, 3)
    finally:
        keras.config.set_dtype_policy(policy)
    x = np.ones((2, 4), "float16")
    for head in (classifier, projection):
        assert keras.backend.standardize_dtype(head(x).dtype) == "float32"
