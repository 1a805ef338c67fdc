"""A backbone that trains in minutes on a CPU."""

import keras

from alim_keras.networks.batch_norm import BatchNormalization


def small_cnn(input_shape=(28, 28, 1), width=32, name="small_cnn"):
    """Returns two convolutions and a dense layer, for small images.

    3x3 convolution, 2x2 max-pooling, 3x3 convolution, 2x2 max-pooling, dense;
    batch normalisation and ReLU after each of the three. Images below 16
    pixels skip the first pooling. The dense layer sees all positions, so the
    network has room to learn thousands of images by heart, wrong labels
    included: a fair test of methods that are to resist them.

    Args:
        input_shape: `(H, W, channels)`. Defaults to `(28, 28, 1)`.
        width: Filters of the first convolution; the second has twice, the
            dense layer four times as many. Defaults to `32`.
        name: String.

    Returns:
        A `keras.Model`, `(B, H, W, channels)` normalised images to
        `(B, 4 * width)` features.
    """

    def activate(x, layer):
        x = BatchNormalization(momentum=0.9, epsilon=1e-5, name=f"{layer}_bn")(
            x
        )
        return keras.layers.ReLU(name=f"{layer}_relu")(x)

    options = {"use_bias": False, "kernel_initializer": "he_normal"}
    inputs = keras.Input(input_shape)
    x = inputs
    for layer, filters in (("conv1", width), ("conv2", 2 * width)):
        x = keras.layers.Conv2D(
            filters, 3, padding="same", name=layer, **options
        )(x)
        x = activate(x, layer)
        if layer == "conv2" or min(input_shape[:2]) >= 16:
            x = keras.layers.MaxPooling2D(name=f"{layer}_pool")(x)
    x = keras.layers.Flatten(name="flatten")(x)
    x = keras.layers.Dense(4 * width, name="dense", **options)(x)
    return keras.Model(inputs, activate(x, "dense"), name=name)
