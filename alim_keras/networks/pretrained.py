"""Backbones by name: this package's, and those of keras.applications."""

import inspect
import os

import keras

from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError
from alim_keras.errors import did_you_mean
from alim_keras.errors import one_line
from alim_keras.networks.cifar import cifar_resnet18
from alim_keras.networks.cifar import cifar_wide_resnet34_10
from alim_keras.networks.small import convnet9
from alim_keras.networks.small import mlp
from alim_keras.networks.small import small_cnn

NETWORKS = {
    "cifar_resnet18": cifar_resnet18,
    "cifar_wide_resnet34_10": cifar_wide_resnet34_10,
    "convnet9": convnet9,
    "mlp": mlp,
    "small_cnn": small_cnn,
}


def make_backbone(name, input_shape, width=None, weights=None):
    """Returns a backbone by name, as the commands' `--network` does.

    Args:
        name: A key of `NETWORKS`, or a class of keras.applications such as
            `"ResNet50V2"`.
        input_shape: `(H, W, channels)`.
        width: Filters of the first stage; None for the network's default.
        weights: A file of weights, `"imagenet"` (keras.applications only),
            or None to start from random ones.

    Returns:
        A pair: the `keras.Model`, and whether it expects normalised images
        (True) or pixels in `[0, 255]` (False, keras.applications).

    Raises:
        ConfigError: If the name is unknown or an argument does not fit it.
        DataError: If the file of weights is missing or does not fit.
        EnvironmentLacksError: If ImageNet weights cannot be had.
    """
    if weights not in (None, "imagenet") and not os.path.isfile(weights):
        raise DataError(
            f"There is no file of weights at {weights}. Expected one that "
            f"keras wrote for {name}, or 'imagenet' for keras.applications"
        )
    if name not in NETWORKS:
        return application(name, input_shape, width, weights), False
    if weights == "imagenet":
        raise ConfigError(
            f"There are no ImageNet weights for {name}; use a network of "
            "keras.applications. Received: weights='imagenet'"
        )
    arguments = {} if width is None else {"width": width}
    try:
        backbone = NETWORKS[name](tuple(input_shape), **arguments)
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(
            f"{name} cannot be built for images of "
            f"{' x '.join(map(str, input_shape))}: {one_line(error)}; use "
            "larger ones, --image_size, or another network"
        ) from error
    if weights:
        try:
            backbone.load_weights(weights)
        except (OSError, ValueError) as error:
            raise DataError(
                f"The weights in {weights} do not fit {name}: {one_line(error)}"
            ) from error
    return backbone, True


def application(name, input_shape, width=None, weights=None):
    """Returns a keras.applications network from pixels to pooled features.

    Arguments and errors as `make_backbone`'s; `width` must be None, and a file
    of weights is one without the top. The result is a `keras.Model`,
    `(B, H, W, 3)` pixels in `[0, 255]` to `(B, F)`.

    Example:

    >>> network = alim_keras.networks.application(
    ...     "MobileNetV2", (96, 96, 3), weights=None)
    >>> network.output_shape
    (None, 1280)
    """
    makers = dict(inspect.getmembers(keras.applications, inspect.isfunction))
    if name not in makers:
        raise ConfigError(
            f"Unknown network. Expected {', '.join(NETWORKS)} or a class of "
            f"keras.applications.{did_you_mean(name, [*makers, *NETWORKS])} "
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
        kind = EnvironmentLacksError if weights == "imagenet" else DataError
        raise kind(
            f"{name} cannot be made with weights={weights} ({one_line(error)})."
            " Give a local file of its weights, or train from random ones with "
            "an empty --weights."
        ) from error
    # A family's preprocessing stands beside its networks.
    family = makers[name].__module__.rpartition(".")[2]
    preprocess = getattr(keras.applications, family).preprocess_input
    inputs = keras.Input(tuple(input_shape), name="pixels")
    outputs = network(preprocess(inputs))
    return keras.Model(inputs, outputs, name=name.lower())
