"""A backbone for feature vectors."""

import keras

from alim_keras.networks.batch_norm import BatchNormalization


def mlp(input_shape, width=256, name="mlp"):
    """Returns two dense layers, for feature vectors.

    Each of the two has batch normalisation and ReLU, so that a learning rate
    suits features of any scale. Feature vectors travel as images of one
    pixel, whose channels are the features.

    Args:
        input_shape: `(1, 1, d)` for vectors of d features. Any other shape is
            flattened.
        width: Units of each layer. Defaults to `256`.
        name: String.

    Returns:
        A `keras.Model`, `(B, 1, 1, d)` normalised vectors to `(B, width)`
        features.

    Example:

    >>> backbone = alim_keras.networks.mlp((1, 1, 108), width=64)
    >>> backbone(np.zeros((2, 1, 1, 108))).shape
    (2, 64)
    """
    inputs = keras.Input(tuple(input_shape))
    x = keras.layers.Flatten(name="flatten")(inputs)
    for layer in ("dense1", "dense2"):
        x = keras.layers.Dense(
            width, use_bias=False, kernel_initializer="he_normal", name=layer
        )(x)
        x = BatchNormalization(momentum=0.9, epsilon=1e-5, name=f"{layer}_bn")(
            x
        )
        x = keras.layers.ReLU(name=f"{layer}_relu")(x)
    return keras.Model(inputs, x, name=name)
