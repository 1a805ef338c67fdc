"""Backbones, from an image to a feature vector, and heads."""

import os

from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.networks.cifar import BatchNormalization
from alim_keras.networks.cifar import cifar_resnet18
from alim_keras.networks.cifar import cifar_wide_resnet34_10
from alim_keras.networks.pretrained import application
from alim_keras.networks.small import ChannelDropout
from alim_keras.networks.small import classifier_head
from alim_keras.networks.small import convnet9
from alim_keras.networks.small import mlp
from alim_keras.networks.small import projection_head
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
            f"{' x '.join(map(str, input_shape))}: "
            f"{str(error).strip().splitlines()[0]}; use larger ones, "
            "--image_size, or another network"
        ) from error
    if weights:
        try:
            backbone.load_weights(weights)
        except (OSError, ValueError) as error:
            first_line = str(error).strip().splitlines()[0]
            raise DataError(
                f"The weights in {weights} do not fit {name}: {first_line}"
            ) from error
    return backbone, True


__all__ = [
    "NETWORKS",
    "BatchNormalization",
    "ChannelDropout",
    "application",
    "cifar_resnet18",
    "cifar_wide_resnet34_10",
    "classifier_head",
    "convnet9",
    "make_backbone",
    "mlp",
    "projection_head",
    "small_cnn",
]
