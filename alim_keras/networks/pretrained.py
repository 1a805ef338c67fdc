"""Networks of keras.applications as backbones, preprocessing included."""

import inspect

import keras

from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError
from alim_keras.errors import did_you_mean

# The image networks of this package, which `make_backbone` looks for first.
OWN = ("small_cnn", "cifar_resnet18", "cifar_wide_resnet34_10", "convnet9")


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
    makers = {
        key: value
        for key, value in vars(keras.applications).items()
        if inspect.isfunction(value)
    }
    if name not in makers:
        raise ConfigError(
            f"Unknown network. Expected {', '.join(OWN)} or a class of "
            f"keras.applications.{did_you_mean(name, [*makers, *OWN])} "
            f"Received: network={name}"
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
    try:
        network = makers[name](
            include_top=False,
            weights=weights,
            input_shape=tuple(input_shape),
            pooling="avg",
        )
    except Exception as error:  # Keras wraps what urllib says in Exception.
        first_line = str(error).strip().splitlines()[0]
        kind = EnvironmentLacksError if weights == "imagenet" else DataError
        raise kind(
            f"{name} cannot be made with weights={weights} ({first_line}). "
            "Give a local file of its weights, or train from random ones with "
            "an empty --weights."
        ) from error
    # A family's preprocessing stands beside its networks.
    family = makers[name].__module__.rpartition(".")[2]
    preprocess = getattr(keras.applications, family).preprocess_input
    inputs = keras.Input(tuple(input_shape), name="pixels")
    outputs = network(preprocess(inputs))
    return keras.Model(inputs, outputs, name=name.lower())
