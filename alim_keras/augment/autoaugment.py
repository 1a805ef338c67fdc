"""The views of CRDPLL: crop and flip; then Cutout and AutoAugment."""

import functools
import math

import keras

from alim_keras import draws
from alim_keras.augment import arguments
from alim_keras.augment import geometry
from alim_keras.augment import planes as planes_lib
from alim_keras.augment import policy
from alim_keras.errors import ConfigError

# The places of a view's random numbers.
_LEFT, _TOP, _FLIP, _CENTRE_X, _CENTRE_Y, _POLICY = range(6)
_COUNT = _POLICY + policy.POLICY_DRAWS

_numbers = functools.partial(arguments.numbers, "AutoAugmentViews")


@keras.saving.register_keras_serializable(package="alim_keras")
class AutoAugmentViews:
    """Weak and strong random views as CRDPLL has them.

    The weak view is a flip and a crop of the image's own size from the image
    with a reflected margin. The strong view is a flip and a crop of its own,
    a black square (Cutout), and one of the 25 sub-policies that AutoAugment
    found for CIFAR-10, see `alim_keras.augment.policy`. Like
    `alim_keras.augment.Views` it has no state: what an example gets is a
    function of the seed, the epoch, the example's index and the stream, and
    the methods work eagerly, in a compiled step, under XLA and in
    `tf.data.Dataset.map`.

    CRDPLL trains on one weak view and two strong ones, that is on the streams
    `"strong"` and, say, `"strong2"`.

    Args:
        image_size: Pair of integers, height and width of the views in
            pixels. Other images are resized before all else. Defaults to
            `None`, the size of the images.
        seed: Non-negative integer below 2**32. Defaults to `0`.
        padding: Non-negative integer below the views' height and width, the
            margin of the crop in pixels. Defaults to `4`, for 32x32 images.
        flip: Float in [0, 1], the share of views that are mirrored left to
            right. Use `0.0` where that changes the meaning, as for digits.
            Defaults to `0.5`.
        cutout: Non-negative integer, the side of the black square in pixels;
            an odd one counts as the even one below it. Its centre is any
            pixel, so it can reach over the border. `0` switches it off.
            Defaults to `16`, for 32x32 images.

    Raises:
        ConfigError: If an argument is outside its range.

    Example:

    >>> views = alim_keras.augment.AutoAugmentViews(seed=1)
    >>> images = np.zeros((2, 32, 32, 3), "uint8")
    >>> views.strong(images, epoch=0, index=np.array([7, 8])).shape
    (2, 32, 32, 3)

    Reference:
    - [Wu et al., 2022](https://proceedings.mlr.press/v162/wu22l.html), CRDPLL
    - [Cubuk et al., 2019](https://arxiv.org/abs/1805.09501), AutoAugment
    - [DeVries and Taylor, 2017](https://arxiv.org/abs/1708.04552), Cutout
    """

    def __init__(self, image_size=None, seed=0, padding=4, flip=0.5, cutout=16):
        self.image_size = _numbers(
            "image_size", image_size, 2, 1, math.inf, whole=True, optional=True
        )
        self.seed = _numbers("seed", seed, None, 0, 2**32 - 1, whole=True)
        self.padding = _numbers(
            "padding", padding, None, 0, math.inf, whole=True
        )
        self.flip = _numbers("flip", flip, None, 0, 1)
        self.cutout = _numbers("cutout", cutout, None, 0, math.inf, whole=True)

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
            ConfigError: If `padding` does not fit the views' size.
            DataError: If `images` has another rank or number of channels.
        """
        images = arguments.checked_images("AutoAugmentViews", images)
        draw = draws.uniform(self.seed, epoch, index, _CENTRE_X, stream)
        return planes_lib.from_planes(self._crop(images, draw))

    def strong(self, images, epoch, index, stream="strong"):
        """The strong view of each image; see `weak`.

        Args:
            images: Tensor `(B, h, w, C)`, as for `weak`.
            epoch: Integer scalar, a number or a tensor.
            index: Integer tensor `(B,)`.
            stream: String. Defaults to `"strong"`.

        Returns:
            Float32 tensor `(B, H, W, C)` in [0, 255].

        Raises:
            ConfigError: If `padding` does not fit the views' size.
            DataError: If `images` has another rank or number of channels.
        """
        images = arguments.checked_images("AutoAugmentViews", images)
        draw = draws.uniform(self.seed, epoch, index, _COUNT, stream)
        planes = self._crop(images, draw)
        if self.cutout > 1:
            planes = planes * self._uncovered(planes.shape[2:], draw)
        return planes_lib.from_planes(
            policy.apply_policy(planes, draw[:, _POLICY:])
        )

    def _crop(self, images, draw):
        """Size, flip and crop, as planes."""
        ops = keras.ops
        planes = geometry.resample_planes(images, self.image_size)
        height, width = planes.shape[2:]
        if self.padding >= min(height, width):
            raise ConfigError(
                "AutoAugmentViews: `padding` is expected to be smaller than "
                f"the views, {height}x{width} pixels: the margin is their "
                f"mirror image. Received: padding={self.padding}"
            )
        rows = self._places(draw[:, _TOP], height)
        columns = self._places(draw[:, _LEFT], width)
        if self.flip > 0:
            mirrored = ops.expand_dims(draw[:, _FLIP] < self.flip, 1)
            columns = ops.where(mirrored, width - 1.0 - columns, columns)
        planes = geometry.take_lines(planes, rows)
        planes = ops.transpose(planes, (0, 1, 3, 2))
        planes = geometry.take_lines(planes, columns)
        return ops.transpose(planes, (0, 1, 3, 2))

    def _places(self, draw, size):
        """Where the crop's lines are in the image, whole floats `(B, n)`."""
        ops = keras.ops
        start = ops.floor(draw * (2.0 * self.padding + 1.0)) - self.padding
        place = ops.arange(size, dtype="float32") + ops.expand_dims(start, 1)
        # Mirrored at the first and the last pixel, which are not repeated.
        last = size - 1.0
        return last - ops.abs(last - ops.abs(place))

    def _uncovered(self, size, draw):
        """0 within the square and 1 elsewhere, `(B, H, W)`."""
        ops = keras.ops
        half = self.cutout // 2

        def span(draw, size):
            place = ops.expand_dims(ops.arange(size, dtype="float32"), 0)
            centre = ops.expand_dims(ops.floor(draw * float(size)), 1)
            covered = (place >= centre - half) & (place < centre + half)
            return ops.cast(covered, "float32")

        columns = ops.expand_dims(span(draw[:, _CENTRE_X], size[1]), 1)
        rows = ops.expand_dims(span(draw[:, _CENTRE_Y], size[0]), 2)
        return 1.0 - rows * columns

    def get_config(self):
        """The constructor's arguments, in plain Python types."""
        return {
            "image_size": self.image_size,
            "seed": self.seed,
            "padding": self.padding,
            "flip": self.flip,
            "cutout": self.cutout,
        }

    @classmethod
    def from_config(cls, config):
        """Builds the same views from `get_config`'s dictionary."""
        return cls(**config)
