"""Backbones by name: this package's, pretrained ones, and any in a file."""

import dataclasses
import functools
import hashlib
import inspect
import json
import os
import zipfile
from collections.abc import Callable

import keras
import numpy as np

from alim_keras import errors
from alim_keras import files
from alim_keras.errors import did_you_mean
from alim_keras.errors import one_line
from alim_keras.networks import cifar
from alim_keras.networks import small

NETWORKS = {
    "cifar_resnet18": cifar.cifar_resnet18,
    "cifar_wide_resnet34_10": cifar.cifar_wide_resnet34_10,
    "mlp": small.mlp,
    "small_cnn": small.small_cnn,
}
# The default of --network=auto, and how its file is called by Keras.
_DEFAULT, _DEFAULT_FILE = "EfficientNetV2B0", "efficientnetv2-b0_notop.h5"
# The side in pixels of what networks were trained on, if not the usual one.
_USUAL_SIZE = 224
_SIZES = {
    **dict.fromkeys(("Xception", "InceptionV3", "InceptionResNetV2"), 299),
    **{"NASNetLarge": 331, "EfficientNetB1": 240, "EfficientNetB2": 260},
    **{"EfficientNetB3": 300, "EfficientNetB4": 380, "EfficientNetB5": 456},
    **{"EfficientNetB6": 528, "EfficientNetB7": 600, "EfficientNetV2B1": 240},
    **{"EfficientNetV2B2": 260, "EfficientNetV2B3": 300},
    **{"EfficientNetV2S": 384, "EfficientNetV2M": 480, "EfficientNetV2L": 480},
}


@dataclasses.dataclass(frozen=True)
class Backbone:
    """A pretrained network, from pixels in `[0, 255]` to a feature vector.

    Attributes:
        name: String, for people and for names of files.
        size: Integer, the side in pixels of the images that it takes.
        build: Function of whether weights are wanted, a boolean; returns a
            new `keras.Model`, `(B, size, size, 3)` to `(B, dim)`.
        path: The `.keras` file that it stands in, or None.
    """

    name: str
    size: int
    build: Callable
    path: str | None = None

    @functools.cached_property
    def network(self):
        """The `keras.Model` with its weights."""
        return self.build(True)

    @functools.cached_property
    def digest(self):
        """Hexadecimal string, equal for equal weights."""
        if self.path is not None:
            return files.digest(self.path)
        state = hashlib.sha256()
        for weight in self.network.get_weights():
            state.update(weight.tobytes())
        return state.hexdigest()


def find(name=None, weights=None, image_size=None):
    """Returns the pretrained `Backbone` of a name, or None.

    Args:
        name: A `.keras` file, `hub:` and a preset of KerasHub or its folder, a
            class of keras.applications, or `"image_statistics"`. None or
            `"auto"` looks for weights that were fetched before.
        weights: `"imagenet"`, or a file, for keras.applications. None for a
            class of these means random ones: that is not pretrained.
        image_size: Integer, the side of the images. Defaults to the network's.

    Raises:
        ConfigError: If an argument does not fit.
        DataError: If a file is missing or holds no such model.
        EnvironmentLacksError: If KerasHub is missing.
    """
    if name in (None, "auto"):
        path = os.path.join(files.weights_folder(), _DEFAULT_FILE)
        if weights is None and os.path.isfile(path):
            weights = "imagenet"
        if weights != "imagenet":
            return None
        name = _DEFAULT
    is_file = name.endswith(".keras")
    is_preset = name.startswith("hub:")
    if (is_file or is_preset) and weights is not None:
        raise errors.ConfigError(
            f"{name} brings its weights; leave --weights out. Received: "
            f"weights={weights}"
        )
    if is_file:
        return _of_file(name, image_size)
    if is_preset:
        return _of_hub(name, image_size)
    if name == "image_statistics" and weights is None:
        size = image_size or small.SIDE
        return Backbone(name, size, lambda _: small.image_statistics(size))
    if name in NETWORKS:
        return None
    _maker(name)
    if weights is None:
        return None
    size = image_size or _SIZES.get(name, _USUAL_SIZE)

    def build(with_weights):
        chosen = weights if with_weights else None
        return application(name, (size, size, 3), None, chosen)

    return Backbone(name, size, build)


def _of_file(path, image_size):
    try:
        with zipfile.ZipFile(path) as archive:
            layers = json.loads(archive.read("config.json"))["config"]["layers"]
        shape = tuple(layers[0]["config"]["batch_shape"])
        _, height, width, channels = shape
        if channels != 3 or height != width:
            raise ValueError(f"input_shape={shape}")
    except Exception as error:  # A damaged file fails as it likes.
        raise errors.DataError(
            f"{path} is not a network from pixels to features that Keras "
            f"saved ({type(error).__name__}: {one_line(error)}); expected a "
            "functional or sequential model whose one input is square colour "
            "images, (None, size, size, 3)"
        ) from error
    if height and image_size not in (None, height):
        raise errors.ConfigError(
            f"{path} takes images of {height} pixels; leave --image_size out. "
            f"Received: image_size={image_size}"
        )
    size = height or image_size or _USUAL_SIZE

    def build(_):
        try:
            # A SavedModel takes no name of a weight that begins with "_".
            with keras.name_scope("backbone"):
                network = keras.saving.load_model(path, compile=False)
        except Exception as error:  # Layers fail as they like.
            raise errors.DataError(
                f"{path} cannot be loaded, which is done without running code "
                f"that it holds: {one_line(error)}"
            ) from error
        return _to_vectors(network, size, path)

    name = os.path.splitext(os.path.basename(path))[0]
    return Backbone(name, size, build, path)


def _of_hub(name, image_size):
    preset = name.removeprefix("hub:")
    try:
        import keras_hub

        convert = keras_hub.layers.ImageConverter.from_preset(preset)
    except Exception as error:  # It has no classes of its own.
        raise _no_preset(name, error) from error
    own = convert.image_size or (_USUAL_SIZE, _USUAL_SIZE)
    size = image_size or own[0]
    convert.image_size = (size, size)

    def build(with_weights):
        try:
            network = keras_hub.models.Backbone.from_preset(
                preset, load_weights=with_weights
            )
        except Exception as error:
            raise _no_preset(name, error) from error
        # Of a model of images and texts, the part that sees.
        network = getattr(network, "vision_encoder", network)
        return _to_vectors(network, size, name, convert)

    return Backbone(os.path.basename(preset), size, build)


def _no_preset(name, error):
    return errors.EnvironmentLacksError(
        f"--network={name} cannot be had: {one_line(error)}. It needs the "
        "package keras-hub (python -m pip install keras-hub) and, offline, the "
        "folder of a preset, --network=hub:FOLDER"
    )


def _to_vectors(network, size, name, convert=None):
    """Returns a network of one input size, and one vector for each image."""
    inputs = keras.Input((size, size, 3), name="pixels")
    try:
        outputs = network(convert(inputs) if convert else inputs)
        rank = len(outputs.shape)
    except Exception as error:  # A network fails as it likes.
        raise errors.DataError(
            f"{name} does not take images of {size} x {size} pixels: "
            f"{one_line(error)}"
        ) from error
    if rank == 4:
        outputs = keras.layers.GlobalAveragePooling2D(name="pool")(outputs)
    elif rank == 3 and convert is not None:
        # The first of a transformer's tokens stands for the whole image.
        outputs = outputs[:, 0]
    if len(outputs.shape) != 2 or outputs.shape[1] is None:
        raise errors.DataError(
            f"{name} must give one vector of features for each image, (None, "
            "features), or a feature map, (None, height, width, features), "
            f"which is averaged. Received: output_shape={tuple(outputs.shape)}"
        )
    return keras.Model(inputs, outputs)


def _leaves(layer):
    parts = getattr(layer, "layers", None)
    return sum(map(_leaves, parts), []) if parts else [layer]


def train_last(network, count):
    """Freezes all layers but the last `count` that have weights."""
    layers = [layer for layer in _leaves(network) if layer.weights]
    for layer in layers[: max(0, len(layers) - count)]:
        layer.trainable = False


def unit_features(dim):
    """Returns a network that scales vectors `(B, 1, 1, dim)` to length 1."""
    inputs = keras.Input((1, 1, dim))
    x = keras.layers.Flatten(name="flatten")(inputs)
    x = keras.layers.UnitNormalization(name="unit", dtype="float32")(x)
    return keras.Model(inputs, x, name="unit_features")


def with_unit_features(network, scale=None):
    """Returns a network that centres its features and scales them to length 1.

    `scale` is mean and standard deviation of the features over 255, lists of d
    floats; None leaves them at 0 and 1.
    """
    # Few images and small batches would spoil the averages.
    for layer in _leaves(network):
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.trainable = False
    # A layer with the two as its weights, which a checkpoint holds.
    centred = keras.layers.BatchNormalization(
        center=False, scale=False, epsilon=1e-12, trainable=False, name="centre"
    )
    x = centred(network.output)
    if scale is not None:
        mean, std = (255.0 * np.asarray(values) for values in scale)
        centred.set_weights([mean, np.square(std)])
    x = keras.layers.UnitNormalization(name="unit", dtype="float32")(x)
    return keras.Model(network.input, x, name=network.name)


def make_backbone(name, input_shape, width=None, weights=None):
    """Returns a backbone by name, as the commands' `--network` does.

    It is a pair: the `keras.Model`, and whether it expects normalised images,
    not pixels in `[0, 255]` as keras.applications do.

    Args:
        name: A key of `NETWORKS`, or a class of keras.applications.
        input_shape: `(H, W, channels)`.
        width: Filters of the first stage; None for the network's default.
        weights: A file of weights, `"imagenet"` (keras.applications only),
            or None to start from random ones.

    Raises:
        ConfigError: If the name is unknown or an argument does not fit it.
        DataError: If the file of weights is missing or does not fit.
        EnvironmentLacksError: If ImageNet weights cannot be had.
    """
    if weights not in (None, "imagenet") and not os.path.isfile(weights):
        raise errors.DataError(
            f"There is no file of weights at {weights}. Expected one that "
            f"keras wrote for {name}, or 'imagenet' for keras.applications"
        )
    if name not in NETWORKS:
        return application(name, input_shape, width, weights), False
    if weights == "imagenet":
        raise errors.ConfigError(
            f"There are no ImageNet weights for {name}; use a network of "
            "keras.applications. Received: weights='imagenet'"
        )
    arguments = {} if width is None else {"width": width}
    try:
        backbone = NETWORKS[name](tuple(input_shape), **arguments)
    except ValueError as error:
        raise errors.ConfigError(
            f"{name} cannot be built for images of "
            f"{' x '.join(map(str, input_shape))}: {one_line(error)}; use "
            "larger ones, --image_size, or another network"
        ) from error
    if weights:
        try:
            backbone.load_weights(weights)
        except (OSError, ValueError) as error:
            raise errors.DataError(
                f"The weights in {weights} do not fit {name}: {one_line(error)}"
            ) from error
    return backbone, True


def _maker(name):
    makers = dict(inspect.getmembers(keras.applications, inspect.isfunction))
    if name not in makers:
        raise errors.ConfigError(
            f"Unknown network. Expected {', '.join(NETWORKS)} or a class of "
            f"keras.applications.{did_you_mean(name, [*makers, *NETWORKS])} "
            f"Received: network={name}"
        )
    return makers[name]


def application(name, input_shape, width=None, weights=None):
    """Returns a keras.applications network from pixels to pooled features.

    Arguments and errors as `make_backbone`'s; a file of weights is one without
    the top. The result is a `keras.Model`, `(B, H, W, 3)` pixels in `[0, 255]`
    to `(B, F)`.

    Example:

    >>> network = alim_keras.networks.application(
    ...     "MobileNetV2", (96, 96, 3), weights=None)
    >>> network.output_shape
    (None, 1280)
    """
    maker = _maker(name)
    if width is not None:
        raise errors.ConfigError(
            f"{name} has a fixed width; leave it out. Received: width={width}"
        )
    if input_shape[-1] != 3:
        raise errors.ConfigError(
            f"{name} takes colour images, (H, W, 3). Received: "
            f"input_shape={tuple(input_shape)}"
        )
    options = {"include_top": False, "input_shape": tuple(input_shape)}
    try:
        network = maker(weights=None, pooling="avg", **options)
        if weights == "imagenet":
            size = network.count_params() / 2**18
            print(
                f"ImageNet weights of {name}, {size:.0f} MiB, from "
                f"{files.weights_folder()}, or else fetched into it",
                flush=True,
            )
        if weights is not None:
            network = maker(weights=weights, pooling="avg", **options)
    except Exception as error:  # Keras wraps what urllib says in Exception.
        kind = errors.DataError
        if weights == "imagenet":
            kind = errors.EnvironmentLacksError
        raise kind(
            f"{name} cannot be made with weights={weights} ({one_line(error)})."
            " Where Keras can download, write a file with keras.applications."
            f"{name}(include_top=False).save_weights('{name}.weights.h5'), and "
            f"give it here as --weights={name}.weights.h5"
        ) from error
    # A family's preprocessing stands beside its networks.
    family = maker.__module__.rpartition(".")[2]
    preprocess = getattr(keras.applications, family).preprocess_input
    inputs = keras.Input(tuple(input_shape), name="pixels")
    outputs = network(preprocess(inputs))
    return keras.Model(inputs, outputs, name=name.lower())
