"""Networks of keras.applications as backbones, preprocessing included."""

import difflib
import inspect

import keras

from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError

# The networks of this package, which are looked for first.
OWN = ("small_cnn", "cifar_resnet18", "cifar_wide_resnet34_10", "convnet9")

# Which of Keras's three kinds of preprocessing a family wants; families not
# named here bring it inside the network.
_TF = "MobileNet MobileNetV2 ResNet50V2 ResNet101V2 ResNet152V2 Xception "
_TF += "InceptionV3 InceptionResNetV2 NASNetMobile NASNetLarge"
_TORCH = "DenseNet121 DenseNet169 DenseNet201"
_CAFFE = "ResNet50 ResNet101 ResNet152 VGG16 VGG19"
PREPROCESSING = {
    **dict.fromkeys(_TF.split(), "tf"),
    **dict.fromkeys(_TORCH.split(), "torch"),
    **dict.fromkeys(_CAFFE.split(), "caffe"),
}


def application(name, input_shape, width=None, weights=None):
    """Returns a keras.applications network from pixels to pooled features.

    Args:
        name: Class name, such as `"ResNet50V2"` or `"EfficientNetV2B0"`.
        input_shape: `(H, W, 3)`.
        width: Must be None; these networks have fixed widths.
        weights: None, `"imagenet"` (Keras downloads them), or a file of
            weights without the top.

    Returns:
        A `keras.Model`, `(B, H, W, 3)` pixels in `[0, 255]` to `(B, F)`.

    Raises:
        ConfigError: If the name is unknown or an argument does not fit.
        DataError: If the file of weights does not fit.
        EnvironmentLacksError: If ImageNet weights cannot be downloaded.

    Example:

    >>> network = alim_keras.networks.application(
    ...     "MobileNetV2", (96, 96, 3), weights=None)
    >>> network.output_shape
    (None, 1280)
    """
    known = [
        key
        for key, value in vars(keras.applications).items()
        if inspect.isfunction(value)
    ]
    if name not in known:
        near = difflib.get_close_matches(name, [*known, *OWN], 3, 0.4)
        raise ConfigError(
            f"Unknown network. Expected {', '.join(OWN)} or a class of "
            f"keras.applications{_suggest(near)}. Received: network={name}"
        )
    if width is not None:
        raise ConfigError(
            f"{name} has a fixed width; leave it out. Received: width={width}"
        )
    if input_shape[-1] != 3:
        raise ConfigError(
            f"{name} takes colour images, (H, W, 3). Received: "
            f"input_shape={tuple(input_shape)}"
        )
    network = _load(name, input_shape, weights)
    inputs = keras.Input(tuple(input_shape), name="pixels")
    outputs = network(preprocess(inputs, PREPROCESSING.get(name)))
    return keras.Model(inputs, outputs, name=name.lower())


def _load(name, input_shape, weights):
    try:
        return getattr(keras.applications, name)(
            include_top=False,
            weights=weights,
            input_shape=tuple(input_shape),
            pooling="avg",
        )
    except Exception as error:  # Keras wraps what urllib says in Exception.
        first_line = str(error).strip().splitlines()[0]
        if weights == "imagenet":
            raise EnvironmentLacksError(
                f"The ImageNet weights of {name} could not be loaded "
                f"({first_line}). Give a local file of weights, or train from "
                "random ones with an empty --weights."
            ) from error
        raise DataError(
            f"{name} cannot be made with weights={weights}: {first_line}"
        ) from error


def preprocess(pixels, kind):
    """Applies a family's preprocessing to pixels in `[0, 255]`.

    Args:
        pixels: Tensor `(B, H, W, 3)`.
        kind: `"tf"` (to [-1, 1]), `"torch"` (ImageNet mean and deviation),
            `"caffe"` (BGR, mean subtracted) or None (left as it is).
    """
    if kind == "tf":
        return keras.layers.Rescaling(1 / 127.5, -1.0)(pixels)
    if kind == "torch":
        mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
        scale = [1 / (255 * s) for s in std]
        offset = [-m / s for m, s in zip(mean, std)]
        return keras.layers.Rescaling(scale, offset)(pixels)
    if kind == "caffe":
        bgr = keras.ops.flip(pixels, axis=-1)
        offset = [-103.939, -116.779, -123.68]
        return keras.layers.Rescaling(1.0, offset)(bgr)
    return pixels


def _suggest(near):
    return f" (did you mean {' or '.join(near)}?)" if near else ""
