"""ResNet-18 for 32x32 images, as ALIM's and PiCO's code has it."""

import keras

from alim_keras.networks.batch_norm import BatchNormalization


def conv(x, filters, kernel, strides, name, padded=True):
    """A convolution as PyTorch pads it, Kaiming-normal (fan out)."""
    padding = "same" if strides == 1 and padded else "valid"
    if padded and kernel > 1 and strides > 1:
        # TensorFlow's "same" pads a stride-2 convolution on one side only.
        x = keras.layers.ZeroPadding2D(kernel // 2, name=f"{name}_pad")(x)
    return keras.layers.Conv2D(
        filters,
        kernel,
        strides=strides,
        padding=padding,
        use_bias=False,
        kernel_initializer=keras.initializers.VarianceScaling(
            2.0, "fan_out", "untruncated_normal"
        ),
        name=name,
    )(x)


def batch_norm(x, name):
    """Batch normalisation with PyTorch's constants."""
    return BatchNormalization(momentum=0.9, epsilon=1e-5, name=name)(x)


def _basic_block(x, filters, strides, name):
    shortcut = x
    x = conv(x, filters, 3, strides, f"{name}_conv1")
    x = batch_norm(x, f"{name}_bn1")
    x = keras.layers.ReLU(name=f"{name}_relu1")(x)
    x = conv(x, filters, 3, 1, f"{name}_conv2")
    x = batch_norm(x, f"{name}_bn2")
    if strides != 1 or shortcut.shape[-1] != filters:
        shortcut = conv(shortcut, filters, 1, strides, f"{name}_shortcut")
        shortcut = batch_norm(shortcut, f"{name}_shortcut_bn")
    x = keras.layers.Add(name=f"{name}_add")([x, shortcut])
    return keras.layers.ReLU(name=f"{name}_relu2")(x)


def cifar_resnet18(input_shape=(32, 32, 3), width=64, name="cifar_resnet18"):
    """Returns a ResNet-18 backbone with a 3x3 stem and no max-pooling.

    Four stages of two basic blocks, `width` times 1, 2, 4, 8 filters, strides
    1, 2, 2, 2, global average pooling. Convolutions start Kaiming-normal
    (fan out); batch normalisation has momentum 0.9 and epsilon 1e-5, which is
    PyTorch's default in Keras's terms.

    Args:
        input_shape: `(H, W, channels)`. Defaults to `(32, 32, 3)`.
        width: Filters of the first stage. Defaults to `64`.
        name: String.

    Returns:
        A `keras.Model`, `(B, H, W, channels)` normalised images to
        `(B, 8 * width)` features; 11,168,832 parameters at the default size.

    Example:

    >>> alim_keras.networks.cifar_resnet18().output_shape
    (None, 512)

    Reference:
    - [He et al., 2015](https://arxiv.org/abs/1512.03385)
    """
    inputs = keras.Input(input_shape)
    x = conv(inputs, width, 3, 1, "stem_conv")
    x = batch_norm(x, "stem_bn")
    x = keras.layers.ReLU(name="stem_relu")(x)
    for stage in range(4):
        for block in range(2):
            strides = 2 if stage > 0 and block == 0 else 1
            block_name = f"stage{stage + 1}_block{block + 1}"
            x = _basic_block(x, width * 2**stage, strides, block_name)
    x = keras.layers.GlobalAveragePooling2D(name="pool")(x)
    return keras.Model(inputs, x, name=name)
