"""The weak and the strong view of images, and of feature vectors."""

import dataclasses
import functools
import math

import keras
import numpy as np

from alim_keras import draws
from alim_keras import errors
from alim_keras.augment import operations
from alim_keras.augment import pixels

# The places of a view's random numbers, whatever parts are switched off.
_CROP = slice(0, pixels.CROP_DRAWS)
_FLIP = pixels.CROP_DRAWS
_NEXT = pixels.CROP_DRAWS + 1
_JITTER = slice(_NEXT, _NEXT + pixels.JITTER_DRAWS)
_GRAYSCALE = _NEXT + pixels.JITTER_DRAWS
_GRAYSCALE_SHARE = 0.2
_CUTOUT = slice(_NEXT, _NEXT + operations.CUTOUT_DRAWS)
_OPERATIONS = _NEXT + operations.CUTOUT_DRAWS


# Limits of a view's height and width.
IMAGE_SIZE = {"low": 1, "whole": True, "count": 2, "optional": True}


def number(default, **limits):
    """A field of a view's dataclass; limits are options of `check_number`."""
    return dataclasses.field(default=default, metadata=limits)


@dataclasses.dataclass(eq=False)
class RandomViews:
    """Base class of weak and strong random views.

    What an example gets depends on the seed, the epoch, its index and the
    stream alone. There is no state. The methods work eagerly, in a compiled
    step and under XLA.

    A subclass is a dataclass with a field `seed`, and defines `make_weak` and
    `make_strong`, functions of the checked images and of `draw(count,
    part="")`, which returns uniform numbers in [0, 1), `(B, count)`; parts are
    independent. An argument outside its range raises a `ConfigError`.
    """

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if field.metadata:
                value = getattr(self, field.name)
                value = errors.check_number(field.name, value, **field.metadata)
                setattr(self, field.name, value)

    def weak(self, images, epoch, index, stream="weak"):
        """The weak view of each example.

        Args:
            images: Tensor `(B, h, w, C)`, uint8 or float, in [0, 255]; C is
                1 or 3. Only B may be unknown when a graph is traced.
            epoch: Integer scalar, a number or a tensor.
            index: Integer tensor `(B,)`, the examples' places in the data
                set.
            stream: String. Another name gives another, independent view.

        Returns:
            Float32 tensor `(B, H, W, C)` in [0, 255].

        Raises:
            ConfigError: If an argument of the views does not fit the images.
            DataError: If `images` has another rank or number of channels.
        """
        draw = self._draws(epoch, index, stream)
        return self.make_weak(self._checked(images), draw)

    def strong(self, images, epoch, index, stream="strong"):
        """The strong view of each example; arguments and result as `weak`."""
        draw = self._draws(epoch, index, stream)
        return self.make_strong(self._checked(images), draw)

    def _draws(self, epoch, index, stream):
        return lambda count, part="": draws.uniform(
            self.seed, epoch, index, count, stream + part
        )

    def _checked(self, images):
        """Returns the images as a tensor, if they have a shape for views."""
        images = keras.ops.convert_to_tensor(images)
        shape = tuple(images.shape)
        if len(shape) != 4 or shape[3] not in (1, 3) or None in shape[1:]:
            raise errors.DataError(
                f"{type(self).__name__}: `images` must be (batch, height, "
                "width, channels), of 1 or 3 channels and known height and "
                f"width. Received: images.shape={shape}"
            )
        return images

    def get_config(self):
        """The constructor's arguments, in plain Python types."""
        return dataclasses.asdict(self)

    @classmethod
    def from_config(cls, config):
        """Builds the same views from `get_config`'s dictionary."""
        return cls(**config)


@keras.saving.register_keras_serializable(package="alim_keras")
@dataclasses.dataclass(eq=False)
class Views(RandomViews):
    """Weak and strong random views, PiCO's.

    The weak view is a random resized crop, a flip, colour jitter in a random
    order and, sometimes, greyscale. The strong view is a crop and a flip of
    its own, `num_operations` of `alim_keras.augment.OPERATIONS`, drawn with
    replacement, and a coloured cutout. Its geometric operations and the crop
    are one resampling; the others follow in the drawn order.

    Args:
        image_size: Pair of integers, height and width of the views in
            pixels. Defaults to `None`, the size of the images.
        seed: Non-negative integer below 2**32. Defaults to `0`.
        crop_scale: Pair of floats in (0, 1], the share of the image's area
            that a crop takes; `None`: all. Defaults to `(0.2, 1.0)`.
        flip: Float in [0, 1], the share of views that are mirrored left to
            right; `0.0` for digits. Defaults to `0.5`.
        jitter: Whether weak views change their colours. Defaults to `True`.
        num_operations: Integer from 0 to 100, operations of a strong view.
            Defaults to `3`.
        cutout: Float in [0, 1], the largest side of the cutout as share of
            the view's width. Defaults to `0.5`.

    Example:

    >>> views = alim_keras.augment.Views(seed=1, flip=0.0)
    >>> images = np.zeros((2, 28, 28, 1), "uint8")
    >>> views.weak(images, epoch=0, index=np.array([7, 8])).shape
    (2, 28, 28, 1)

    Reference:
    - [Wang et al., 2022](https://arxiv.org/abs/2201.08984), PiCO
    """

    image_size: tuple | None = number(None, **IMAGE_SIZE)
    seed: int = number(0, low=0, high=2**32 - 1, whole=True)
    crop_scale: tuple | None = number(
        (0.2, 1.0), low=0, high=1, low_open=True, count=2, optional=True
    )
    flip: float = number(0.5, low=0, high=1)
    jitter: bool = True
    num_operations: int = number(3, low=0, high=100, whole=True)
    cutout: float = number(0.5, low=0, high=1)

    def __post_init__(self):
        super().__post_init__()
        if self.crop_scale and self.crop_scale[0] > self.crop_scale[1]:
            raise errors.ConfigError(
                "Argument `crop_scale` must be (lowest, highest). "
                f"Received: crop_scale={self.crop_scale}"
            )

    def make_weak(self, images, draw):
        drawn = draw(_GRAYSCALE + 1)
        planes = self._crop(images, drawn)
        if self.jitter:
            planes = pixels.jitter(planes, drawn[:, _JITTER])
            is_gray = pixels.per_image(drawn[:, _GRAYSCALE]) < _GRAYSCALE_SHARE
            planes = keras.ops.where(is_gray, pixels.luminance(planes), planes)
        return pixels.from_planes(planes)

    def make_strong(self, images, draw):
        count = self.num_operations
        drawn = draw(_OPERATIONS + 2 * count)
        matrix = None
        if count:
            numbers = drawn[:, _OPERATIONS : _OPERATIONS + count]
            numbers = numbers * float(len(operations.OPERATIONS))
            chosen = keras.ops.cast(numbers, "int32")
            values = operations.values_at(
                chosen, drawn[:, _OPERATIONS + count :]
            )
            size = self.image_size or images.shape[1:3]
            maps = operations.affine_maps(chosen, values, size)
            maps = keras.ops.unstack(maps, axis=1)
            matrix = functools.reduce(pixels.compose, maps)
        planes = self._crop(images, drawn, matrix)
        if count:
            planes = operations.apply_operations(planes, chosen, values)
        if self.cutout > 0:
            planes = operations.cutout_planes(
                planes, drawn[:, _CUTOUT], self.cutout
            )
        return pixels.from_planes(planes)

    def _crop(self, images, drawn, matrix=None):
        """Crop, flip and `matrix` in one resampling, as planes."""
        box = flip = None
        if self.crop_scale:
            size = images.shape[1:3]
            box = pixels.random_boxes(drawn[:, _CROP], size, self.crop_scale)
        if self.flip > 0:
            flip = drawn[:, _FLIP] < self.flip
        return pixels.resample(images, self.image_size, box, flip, matrix)


@keras.saving.register_keras_serializable(package="alim_keras")
@dataclasses.dataclass(eq=False)
class FeatureViews(RandomViews):
    """Weak and strong random views of feature vectors, as `Views` of images.

    The weak view is the vector itself, `(B, 1, 1, d)` or `(B, d)` in units of
    its own. The strong view, for methods that compare two, replaces a random
    share of the features by their means and adds normal noise to the others.

    Args:
        mean: Number or d numbers, the features' means, divided by 255 as a
            model's `mean` is. Defaults to `0.0`.
        std: Positive number or d numbers, the features' standard deviations,
            likewise. Defaults to `1 / 255`: standardised features.
        seed: As of `Views`.
        dropout: Float in [0, 1], the share of features that a strong view
            replaces by their means. Defaults to `0.2`.
        noise: Non-negative float, the standard deviation of a strong view's
            noise, in units of each feature's own. Defaults to `0.1`.

    Example:

    >>> features = np.random.default_rng(0).normal(3.0, 2.0, (8, 1, 1, 5))
    >>> mean, std = features.mean(axis=0).ravel(), features.std(axis=0).ravel()
    >>> views = alim_keras.augment.FeatureViews(mean / 255, std / 255, seed=1)
    >>> views.strong(features, epoch=0, index=np.arange(8)).shape
    (8, 1, 1, 5)
    """

    mean: float | list = 0.0
    std: float | list = 1.0 / 255.0
    seed: int = number(0, low=0, high=2**32 - 1, whole=True)
    dropout: float = number(0.2, low=0, high=1)
    noise: float = number(0.1, low=0)

    def __post_init__(self):
        super().__post_init__()
        for name, low in (("mean", -math.inf), ("std", 0.0)):
            value = np.asarray(getattr(self, name), float).tolist()
            setattr(self, name, value)
            count = len(value) if isinstance(value, list) else None
            errors.check_number(name, value, low, low_open=True, count=count)

    def make_weak(self, features, draw):
        return features

    def make_strong(self, features, draw):
        # Never -1, where the inverse is infinite; 1 is not drawn.
        level = 2.0 * _each(features, draw, "/noise") - 1.0
        level = keras.ops.maximum(level, 2.0**-23 - 1.0)
        normal = math.sqrt(2.0) * keras.ops.erfinv(level)
        return keras.ops.where(
            _each(features, draw, "/dropout") < self.dropout,
            _scaled(self.mean),
            features + self.noise * _scaled(self.std) * normal,
        )

    def _checked(self, images):
        images = keras.ops.convert_to_tensor(images)
        shape = tuple(images.shape)
        known = {np.size(self.mean), np.size(self.std)} - {1}
        is_vector = len(shape) in (2, 4) and set(shape[1:-1]) <= {1}
        if not is_vector or not shape[-1] or known - {shape[-1]}:
            raise errors.DataError(
                "FeatureViews: vectors are expected in the shape (batch, 1, 1, "
                "features), of as many features as `mean` and `std`, "
                f"{known or 'any'}. Received: shape={shape}"
            )
        return keras.ops.cast(images, "float32")


def _each(features, draw, part):
    """Uniform numbers, one for each feature, in the features' shape."""
    drawn = draw(features.shape[-1], part)
    return keras.ops.reshape(drawn, (-1, *features.shape[1:]))


def _scaled(values):
    """Means or deviations in the features' own units."""
    return keras.ops.convert_to_tensor(255.0 * np.asarray(values), "float32")
