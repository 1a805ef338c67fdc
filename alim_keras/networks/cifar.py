"""Residual networks for 32x32 images: ResNet-18 and WideResNet-34-10."""

import keras

from alim_keras import backend
from alim_keras.errors import ConfigError

# oneDNN, TensorFlow's on CPUs, writes past a buffer in the kernel gradient of a
# 1x1 convolution with an even stride and fewer input channels than this, at
# odd batches (TensorFlow 2.21, sides from 10 pixels): the process dies.
_SAFE_CHANNELS = 16


# The name is Keras's own, so that files of weights fit either class.
@keras.saving.register_keras_serializable(package="alim_keras")
class BatchNormalization(keras.layers.BatchNormalization):
    """`keras.layers.BatchNormalization`, faster in training on a CPU.

    Keras passes over the images for mean, variance and result each: a step of
    a ResNet-18 takes 1.2 to 1.4 times as long. The numbers are the same but
    for rounding, in inference exactly. What is not images `(B, H, W,
    channels)`, or has the statistics of several replicas, is left to Keras.

    Reference:
    - [Ioffe and Szegedy, 2015](https://arxiv.org/abs/1502.03167)
    """

    def call(self, inputs, training=None, mask=None):
        if not (training and self.trainable and self._is_plain(inputs, mask)):
            return super().call(inputs, training=training, mask=mask)
        outputs, *moments = backend.normalise_batch(
            keras.ops.cast(inputs, "float32"),
            self.gamma,
            self.beta,
            self.epsilon,
        )
        averages = (self.moving_mean, self.moving_variance)
        for average, moment in zip(averages, moments):
            average.assign(
                average * self.momentum + moment * (1.0 - self.momentum)
            )
        return keras.ops.cast(outputs, self.compute_dtype)

    def _is_plain(self, inputs, mask):
        of_images = len(inputs.shape) == 4 and self.axis in (-1, 3)
        other = self.synchronized or self.renorm or mask is not None
        is_plain = of_images and self.scale and self.center and not other
        return is_plain and backend.normalise_batch is not None


def conv(x, filters, kernel, strides, name):
    """A convolution as PyTorch pads it, Kaiming-normal (fan out)."""
    if kernel == 1 and strides > 1 and x.shape[-1] < _SAFE_CHANNELS:
        # The same pixels, so that the convolution itself has no stride.
        x = keras.layers.AveragePooling2D(1, strides, name=f"{name}_pick")(x)
        strides = 1
    padding = "same" if strides == 1 else "valid"
    if kernel > 1 and strides > 1:
        # TensorFlow's "same" pads a stride-2 convolution on one side only.
        x = keras.layers.ZeroPadding2D(kernel // 2, name=f"{name}_pad")(x)
    kaiming = keras.initializers.VarianceScaling(
        2.0, "fan_out", "untruncated_normal"
    )
    options = {"use_bias": False, "kernel_initializer": kaiming, "name": name}
    return keras.layers.Conv2D(filters, kernel, strides, padding, **options)(x)


def batch_norm(x, name):
    """Batch normalisation with PyTorch's constants."""
    return BatchNormalization(momentum=0.9, epsilon=1e-5, name=name)(x)


def norm_relu(x, norm, relu):
    """Batch normalisation and ReLU, by their names."""
    return keras.layers.ReLU(name=relu)(batch_norm(x, norm))


def _basic_block(x, filters, strides, name):
    shortcut = x
    x = conv(x, filters, 3, strides, f"{name}_conv1")
    x = norm_relu(x, f"{name}_bn1", f"{name}_relu1")
    x = conv(x, filters, 3, 1, f"{name}_conv2")
    x = batch_norm(x, f"{name}_bn2")
    if strides != 1 or shortcut.shape[-1] != filters:
        shortcut = conv(shortcut, filters, 1, strides, f"{name}_shortcut")
        shortcut = batch_norm(shortcut, f"{name}_shortcut_bn")
    x = keras.layers.Add(name=f"{name}_add")([x, shortcut])
    return keras.layers.ReLU(name=f"{name}_relu2")(x)


def _preactivation_block(x, filters, strides, name):
    shortcut = x
    x = norm_relu(x, f"{name}_bn1", f"{name}_relu1")
    if strides != 1 or shortcut.shape[-1] != filters:
        # Where the shape changes both ways start after the activation.
        shortcut = conv(x, filters, 1, strides, f"{name}_shortcut")
    x = conv(x, filters, 3, strides, f"{name}_conv1")
    x = norm_relu(x, f"{name}_bn2", f"{name}_relu2")
    x = conv(x, filters, 3, 1, f"{name}_conv2")
    return keras.layers.Add(name=f"{name}_add")([shortcut, x])


def _stages(x, block, num_stages, num_blocks, width):
    """Stages of blocks: `width` times 1, 2, 4, ... filters, strides 1, 2, 2."""
    for stage in range(num_stages):
        for number in range(num_blocks):
            strides = 2 if stage > 0 and number == 0 else 1
            name = f"stage{stage + 1}_block{number + 1}"
            x = block(x, width * 2**stage, strides, name)
    return x


def cifar_resnet18(input_shape=(32, 32, 3), width=64):
    """Returns a ResNet-18 backbone with a 3x3 stem and no max-pooling.

    Four stages of two basic blocks, `width` times 1, 2, 4, 8 filters, strides
    1, 2, 2, 2, global average pooling. Convolutions start Kaiming-normal (fan
    out); batch normalisation has PyTorch's momentum and epsilon.

    The `keras.Model` takes normalised images `(B, H, W, channels)` to features
    `(B, 8 * width)`; it has 11,168,832 parameters at the default size.

    Args:
        input_shape: `(H, W, channels)`. Defaults to `(32, 32, 3)`.
        width: Filters of the first stage. Defaults to `64`.

    Example:

    >>> alim_keras.networks.cifar_resnet18().output_shape
    (None, 512)

    Reference:
    - [He et al., 2015](https://arxiv.org/abs/1512.03385)
    """
    inputs = keras.Input(input_shape)
    x = conv(inputs, width, 3, 1, "stem_conv")
    x = norm_relu(x, "stem_bn", "stem_relu")
    x = _stages(x, _basic_block, 4, 2, width)
    x = keras.layers.GlobalAveragePooling2D(name="pool")(x)
    return keras.Model(inputs, x, name="cifar_resnet18")


def cifar_wide_resnet34_10(input_shape=(32, 32, 3), width=160, depth=34):
    """Returns a wide residual network without dropout, that of CRDPLL.

    A 3x3 convolution with 16 filters, three stages of `(depth - 4) / 6`
    pre-activation blocks with `width` times 1, 2, 4 filters and strides 1, 2,
    2, then batch normalisation, ReLU and global average pooling. Convolutions
    and batch normalisation are those of `cifar_resnet18`.

    The features are `(B, 4 * width)`; it has 46,154,064 parameters at the
    default size.

    Args:
        input_shape: As of `cifar_resnet18`.
        width: Filters of the first stage, 16 times the widening factor.
            Defaults to `160`.
        depth: 4 more than a multiple of 6. Defaults to `34`.

    Raises:
        ConfigError: If there is no network of that depth.

    Example: as that of `cifar_resnet18`.

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
    x = _stages(x, _preactivation_block, 3, blocks, width)
    x = norm_relu(x, "final_bn", "final_relu")
    x = keras.layers.GlobalAveragePooling2D(name="pool")(x)
    return keras.Model(inputs, x, name="cifar_wide_resnet34_10")
