"""Networks whose statistics and scales are not neutral, and their layers."""

import keras
import numpy as np


def made(build, *args, **kwargs):
    """Returns a network with batch normalisation of random numbers."""
    keras.utils.set_random_seed(0)
    network = build(*args, **kwargs)
    stream = np.random.default_rng(0)
    for layer in network.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            size = layer.gamma.shape
            layer.gamma.assign(stream.uniform(0.5, 1.5, size))
            layer.beta.assign(stream.uniform(-0.5, 0.5, size))
            layer.moving_mean.assign(stream.uniform(-0.5, 0.5, size))
            layer.moving_variance.assign(stream.uniform(0.5, 2.0, size))
    return network


def normalised(network, x, name):
    """Batch normalisation in inference, in float64."""
    gamma, beta, mean, variance = [
        weight.numpy() for weight in network.get_layer(name).weights
    ]
    return gamma * (x - mean) / np.sqrt(variance + 1e-5) + beta


def layers(network, kind):
    """The layers of a class."""
    return [layer for layer in network.layers if isinstance(layer, kind)]


def trainable_size(network):
    return sum(int(np.prod(v.shape)) for v in network.trainable_variables)


def assert_serialises(network):
    """A copy from the configuration and the weights computes the same."""
    again = keras.Model.from_config(network.get_config())
    again.set_weights(network.get_weights())
    images = np.random.default_rng(0).random((2, *network.input_shape[1:]))
    images = images.astype("float32")
    np.testing.assert_array_equal(again(images), network(images))


def assert_features(network, images, expected):
    """In inference the network computes the means of `(B, H, W, C)`."""
    features = network(images.astype("float32"), training=False)
    np.testing.assert_allclose(
        features, expected.mean(axis=(1, 2)), atol=1e-4, rtol=1e-4
    )
