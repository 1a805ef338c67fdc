"""The weak and the strong view of a batch of images."""

import functools
import math

import keras

from alim_keras import draws
from alim_keras.augment import arguments
from alim_keras.augment import geometry
from alim_keras.augment import jitter
from alim_keras.augment import operations
from alim_keras.augment import planes as planes_lib
from alim_keras.errors import ConfigError

# The places of a view's random numbers. Switching a part off leaves the
# numbers of the others alone.
_CROP = slice(0, geometry.CROP_DRAWS)
_FLIP = geometry.CROP_DRAWS
_NEXT = geometry.CROP_DRAWS + 1
_JITTER = slice(_NEXT, _NEXT + jitter.JITTER_DRAWS)
_GRAYSCALE = _NEXT + jitter.JITTER_DRAWS
_CUTOUT = slice(_NEXT, _NEXT + operations.CUTOUT_DRAWS)
_OPERATIONS = _NEXT + operations.CUTOUT_DRAWS

_numbers = functools.partial(arguments.numbers, "Views")


@keras.saving.register_keras_serializable(package="alim_keras")
class Views:
    """Weak and strong random views, a function of seed, epoch and example.

    The weak view is a random resized crop, a flip, colour jitter in a random
    order and, sometimes, greyscale. The strong view is a crop and a flip of
    its own, `num_operations` operations drawn with replacement from
    `alim_keras.augment.OPERATIONS`, and a coloured cutout.

    Which changes an example gets depends on the seed, the epoch, the
    example's index and the stream, and on nothing else: not on the batch it
    is in, nor on where the view is computed. There is no state. Both methods
    are made of `keras.ops` and work eagerly, in a compiled step, under XLA
    and in `tf.data.Dataset.map`.

    Args:
        image_size: Pair of integers, height and width of the views in
            pixels. Defaults to `None`, the size of the images.
        seed: Non-negative integer below 2**32. Defaults to `0`.
        crop_scale: Pair of floats in (0, 1], the share of the image's area
            that a crop takes. `None` takes the whole image. Defaults to
            `(0.2, 1.0)`.
        crop_ratio: Pair of positive floats, width over height of a crop.
            Defaults to `(3 / 4, 4 / 3)`.
        flip: Float in [0, 1], the share of views that are mirrored left to
            right. Use `0.0` where that changes the meaning, as for digits.
            Defaults to `0.5`.
        jitter: Four floats for brightness, contrast, saturation (factors in
            `[max(0, 1 - x), 1 + x]`) and hue (at most 0.5, in turns). `None`
            switches it off. Defaults to `(0.4, 0.4, 0.4, 0.1)`.
        jitter_probability: Float in [0, 1]. Defaults to `0.8`.
        grayscale_probability: Float in [0, 1]. Defaults to `0.2`.
        num_operations: Non-negative integer, operations of a strong view.
            Defaults to `3`.
        cutout: Float in [0, 1], the largest side of the cutout as share of
            the view's width. `0` switches it off. Defaults to `0.5`.
        cutout_color: Three floats in [0, 255]. One-channel views get their
            mean. Defaults to `(125, 123, 114)`.

    Raises:
        ConfigError: If an argument is outside its range.

    Example:

    >>> views = alim_keras.augment.Views(seed=1, flip=0.0)
    >>> images = np.zeros((2, 28, 28, 1), "uint8")
    >>> views.weak(images, epoch=0, index=np.array([7, 8])).shape
    (2, 28, 28, 1)

    Reference:
    - [Wang et al., 2022](https://arxiv.org/abs/2201.08984), PiCO, whose
      views these are.
    """

    def __init__(
        self,
        image_size=None,
        seed=0,
        crop_scale=(0.2, 1.0),
        crop_ratio=(3 / 4, 4 / 3),
        flip=0.5,
        jitter=(0.4, 0.4, 0.4, 0.1),
        jitter_probability=0.8,
        grayscale_probability=0.2,
        num_operations=3,
        cutout=0.5,
        cutout_color=(125, 123, 114),
    ):
        self.image_size = _numbers(
            "image_size", image_size, 2, 1, math.inf, whole=True, optional=True
        )
        self.seed = _numbers("seed", seed, None, 0, 2**32 - 1, whole=True)
        self.crop_scale = _numbers(
            "crop_scale", crop_scale, 2, 0, 1, optional=True, above=True
        )
        self.crop_ratio = _numbers(
            "crop_ratio", crop_ratio, 2, 0, math.inf, above=True
        )
        self.flip = _numbers("flip", flip, None, 0, 1)
        self.jitter = _numbers("jitter", jitter, 4, 0, 255, optional=True)
        if self.jitter and self.jitter[3] > 0.5:
            raise ConfigError(
                "Views: the last number of `jitter`, the hue, is expected to "
                f"be at most 0.5. Received: jitter={jitter}"
            )
        self.jitter_probability = _numbers(
            "jitter_probability", jitter_probability, None, 0, 1
        )
        self.grayscale_probability = _numbers(
            "grayscale_probability", grayscale_probability, None, 0, 1
        )
        self.num_operations = _numbers(
            "num_operations", num_operations, None, 0, 100, whole=True
        )
        self.cutout = _numbers("cutout", cutout, None, 0, 1)
        self.cutout_color = _numbers("cutout_color", cutout_color, 3, 0, 255)
        for name in ("crop_scale", "crop_ratio"):
            pair = getattr(self, name)
            if pair and pair[0] > pair[1]:
                raise ConfigError(
                    f"Views: `{name}` is expected as (lowest, highest). "
                    f"Received: {name}={pair}"
                )

    def weak(self, images, epoch, index, stream="weak"):
        """The weak view of each image.

        Args:
            images: Tensor `(B, h, w, C)`, uint8 or float, in [0, 255]; C is
                1 or 3. Only B may be unknown when a graph is traced.
            epoch: Integer scalar, a number or a tensor.
            index: Integer tensor `(B,)`, the examples' places in the data
                set.
            stream: String. Another name gives another, independent view.
                Defaults to `"weak"`.

        Returns:
            Float32 tensor `(B, H, W, C)` in [0, 255].

        Raises:
            DataError: If `images` has another rank or number of channels.
        """
        images = arguments.checked_images("Views", images)
        draw = draws.uniform(self.seed, epoch, index, _GRAYSCALE + 1, stream)
        planes = self._crop(images, draw)
        if self.jitter and self.jitter_probability > 0:
            planes = jitter.jitter_planes(
                planes, draw[:, _JITTER], self.jitter, self.jitter_probability
            )
        if self.grayscale_probability > 0 and planes.shape[0] == 3:
            gray = draw[:, _GRAYSCALE] < self.grayscale_probability
            planes = keras.ops.where(
                keras.ops.reshape(gray, (-1, 1, 1)),
                keras.ops.expand_dims(planes_lib.luminance(planes), 0),
                planes,
            )
        return planes_lib.from_planes(planes)

    def strong(self, images, epoch, index, stream="strong"):
        """The strong view of each image; see `weak`.

        The geometric operations and the crop are one resampling. The others
        follow in the drawn order, then the cutout.

        Args:
            images: Tensor `(B, h, w, C)`, as for `weak`.
            epoch: Integer scalar, a number or a tensor.
            index: Integer tensor `(B,)`.
            stream: String. Defaults to `"strong"`.

        Returns:
            Float32 tensor `(B, H, W, C)` in [0, 255].

        Raises:
            DataError: If `images` has another rank or number of channels.
        """
        images = arguments.checked_images("Views", images)
        count = self.num_operations
        draw = draws.uniform(
            self.seed, epoch, index, _OPERATIONS + 2 * count, stream
        )
        matrix = None
        if count:
            chosen = operations.choose(
                draw[:, _OPERATIONS : _OPERATIONS + count]
            )
            magnitudes = draw[:, _OPERATIONS + count :]
            matrix = operations.combined_map(
                chosen, magnitudes, self.image_size or images.shape[1:3]
            )
        planes = self._crop(images, draw, matrix)
        if count:
            planes = operations.apply_operations(planes, chosen, magnitudes)
            planes = planes_lib.clip(planes)
        if self.cutout > 0:
            planes = operations.cutout_planes(
                planes, draw[:, _CUTOUT], self.cutout, self.cutout_color
            )
        return planes_lib.from_planes(planes)

    def _crop(self, images, draw, matrix=None):
        """Crop, flip and `matrix` in one resampling, as planes."""
        box = flip = None
        if self.crop_scale:
            box = geometry.random_boxes(
                draw[:, _CROP],
                images.shape[1:3],
                self.crop_scale,
                self.crop_ratio,
            )
        if self.flip > 0:
            flip = draw[:, _FLIP] < self.flip
        return geometry.resample_planes(
            images, self.image_size, box, flip, matrix
        )

    def get_config(self):
        """The constructor's arguments, in plain Python types."""
        return {
            "image_size": self.image_size,
            "seed": self.seed,
            "crop_scale": self.crop_scale,
            "crop_ratio": self.crop_ratio,
            "flip": self.flip,
            "jitter": self.jitter,
            "jitter_probability": self.jitter_probability,
            "grayscale_probability": self.grayscale_probability,
            "num_operations": self.num_operations,
            "cutout": self.cutout,
            "cutout_color": self.cutout_color,
        }

    @classmethod
    def from_config(cls, config):
        """Builds the same views from `get_config`'s dictionary."""
        return cls(**config)
