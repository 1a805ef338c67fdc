"""The linear classifier and the projection head."""

import keras
import numpy as np
import pytest

from alim_keras import networks


def size(network):
    return sum(int(np.prod(v.shape)) for v in network.trainable_variables)


def test_parameter_counts():
    assert size(networks.classifier_head(512, 10)) == 5_130
    assert size(networks.projection_head(512, 128)) == 328_320


@pytest.mark.parametrize("fan_in", [64, 512])
def test_weights_start_as_pytorchs_linear(fan_in):
    keras.utils.set_random_seed(0)
    bound = 1 / np.sqrt(fan_in)
    layers = [
        networks.classifier_head(fan_in, 100),
        *networks.projection_head(fan_in, 100).layers,
    ]
    for layer in layers:
        for weight in (layer.kernel.numpy(), layer.bias.numpy()):
            # Uniform on [-b, b]: b / sqrt 3; the error of a standard
            # deviation is at most 0.32 / sqrt(n) of it.
            assert np.abs(weight).max() <= bound
            assert np.abs(weight).max() > 0.9 * bound
            error = 4 * 0.32 / np.sqrt(weight.size)
            spread = weight.std() * np.sqrt(3) / bound
            assert abs(spread - 1) < max(error, 0.02)


def test_two_layers_do_not_start_alike():
    keras.utils.set_random_seed(0)
    first, second = networks.projection_head(16, 16).layers
    assert np.abs(first.kernel - second.kernel).max() > 0.01


def test_the_projection_is_linear_relu_linear():
    head = networks.projection_head(4, 3)
    first, second = (
        [w.numpy() for w in layer.weights] for layer in head.layers
    )
    x = np.random.default_rng(0).standard_normal((5, 4)).astype("float32")
    hidden = np.maximum(x @ first[0] + first[1], 0)
    np.testing.assert_allclose(
        head(x), hidden @ second[0] + second[1], atol=1e-5
    )


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
