"""WideResNet-34-10 for 32x32 images, the network of CRDPLL."""

import keras

from alim_keras.errors import ConfigError
from alim_keras.networks.cifar_resnet import batch_norm
from alim_keras.networks.cifar_resnet import conv


def _block(x, filters, strides, name):
    """Batch normalisation and ReLU before each of two convolutions."""
    shortcut = x
    x = batch_norm(x, f"{name}_bn1")
    x = keras.layers.ReLU(name=f"{name}_relu1")(x)
    if strides != 1 or shortcut.shape[-1] != filters:
        # Where the shape changes both ways start after the activation.
        shortcut = conv(x, filters, 1, strides, f"{name}_shortcut")
    x = conv(x, filters, 3, strides, f"{name}_conv1")
    x = batch_norm(x, f"{name}_bn2")
    x = keras.layers.ReLU(name=f"{name}_relu2")(x)
    x = conv(x, filters, 3, 1, f"{name}_conv2")
    return keras.layers.Add(name=f"{name}_add")([shortcut, x])


def cifar_wide_resnet34_10(
    input_shape=(32, 32, 3), width=160, depth=34, name="cifar_wide_resnet34_10"
):
    """Returns a wide residual network without dropout.

    A 3x3 convolution with 16 filters, three stages of `(depth - 4) / 6`
    pre-activation blocks with `width` times 1, 2, 4 filters and strides 1, 2,
    2, then batch normalisation, ReLU and global average pooling. Convolutions
    and batch normalisation are those of `cifar_resnet18`.

    Args:
        input_shape: `(H, W, channels)`. Defaults to `(32, 32, 3)`.
        width: Filters of the first stage, 16 times the widening factor.
            Defaults to `160`.
        depth: 4 more than a multiple of 6. Defaults to `34`.
        name: String.

    Returns:
        A `keras.Model`, `(B, H, W, channels)` normalised images to
        `(B, 4 * width)` features; 46,154,064 parameters at the default size.

    Raises:
        ConfigError: If there is no network of that depth.

    Example:

    >>> network = alim_keras.networks.cifar_wide_resnet34_10(width=16, depth=10)
    >>> network.output_shape
    (None, 64)

    Reference:
    - [Zagoruyko and Komodakis, 2016](https://arxiv.org/abs/1605.07146)
    """
    blocks, rest = divmod(depth - 4, 6)
    if rest or blocks < 1:
        raise ConfigError(
            "The depth of a wide residual network is 4 more than a multiple "
            f"of 6, such as 10, 16 or 34. Received: depth={depth}"
        )
    inputs = keras.Input(input_shape)
    x = conv(inputs, 16, 3, 1, "stem_conv")
    for stage in range(3):
        for block in range(blocks):
            strides = 2 if stage > 0 and block == 0 else 1
            block_name = f"stage{stage + 1}_block{block + 1}"
            x = _block(x, width * 2**stage, strides, block_name)
    x = batch_norm(x, "final_bn")
    x = keras.layers.ReLU(name="final_relu")(x)
    x = keras.layers.GlobalAveragePooling2D(name="pool")(x)
    return keras.Model(inputs, x, name=name)
