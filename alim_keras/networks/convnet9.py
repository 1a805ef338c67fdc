"""The nine-layer network of Co-teaching, for the simple baselines."""

import keras

from alim_keras.errors import ConfigError
from alim_keras.networks.channel_dropout import ChannelDropout
from alim_keras.networks.cifar_resnet import batch_norm
from alim_keras.networks.cifar_resnet import conv


def convnet9(input_shape=(32, 32, 3), width=128, dropout=0.25, name="convnet9"):
    """Returns nine convolutions and global average pooling.

    Three 3x3 convolutions with `width` filters, 2x2 max-pooling, dropout of
    whole channels; three with `2 * width`, the same; then, without padding,
    one each with `4 * width`, `2 * width` and `width` filters. Batch
    normalisation and leaky ReLU (slope 0.01) follow each.

    Two differences from the code that the baselines of the papers share:
    dropout acts in training only (there it also disturbs the test), and the
    convolutions have no bias, 2,048 numbers which batch normalisation
    subtracts again. They start as those of `cifar_resnet18`.

    Args:
        input_shape: `(H, W, channels)`, H and W at least 28 pixels. Defaults
            to `(32, 32, 3)`.
        width: Filters of the first convolution. Defaults to `128`.
        dropout: Share of channels that is dropped. Defaults to `0.25`.
        name: String.

    Returns:
        A `keras.Model`, `(B, H, W, channels)` normalised images to
        `(B, width)` features; 4,431,232 parameters at the default size.

    Raises:
        ConfigError: If the images are too small for its unpadded part.

    Example:

    >>> alim_keras.networks.convnet9((28, 28, 1), width=8).output_shape
    (None, 8)

    Reference:
    - [Han et al., 2018](https://arxiv.org/abs/1804.06872), Co-teaching
    """
    if min(input_shape[:2]) < 28:
        raise ConfigError(
            f"{name} needs images of at least 28x28 pixels; resize them, or "
            "take another network such as small_cnn. Received: "
            f"input_shape={tuple(input_shape)}"
        )

    def layer(x, number, filters, padded=True):
        x = conv(x, filters, 3, 1, f"conv{number}", padded=padded)
        x = batch_norm(x, f"conv{number}_bn")
        return keras.layers.LeakyReLU(0.01, name=f"conv{number}_relu")(x)

    inputs = keras.Input(input_shape)
    x = inputs
    for block in (1, 2):
        for number in range(3 * block - 2, 3 * block + 1):
            x = layer(x, number, block * width)
        x = keras.layers.MaxPooling2D(name=f"pool{block}")(x)
        x = ChannelDropout(dropout, name=f"dropout{block}")(x)
    for number, factor in ((7, 4), (8, 2), (9, 1)):
        x = layer(x, number, factor * width, padded=False)
    x = keras.layers.GlobalAveragePooling2D(name="pool")(x)
    return keras.Model(inputs, x, name=name)
