"""The views of CRDPLL: crop and flip; then Cutout and AutoAugment."""

import dataclasses
import math

import keras
import numpy as np

from alim_keras import backend
from alim_keras.augment import operations
from alim_keras.augment import pixels
from alim_keras.augment.views import IMAGE_SIZE
from alim_keras.augment.views import RandomViews
from alim_keras.augment.views import number
from alim_keras.errors import ConfigError

# One example's numbers: the pair, whether each of the two is applied, its sign.
POLICY_DRAWS = 5

# AutoAugment's for CIFAR-10: operation, probability and level (0 to 9) of the
# first, then of the second.
SUB_POLICIES = (
    ("Invert", 0.1, 7, "Contrast", 0.2, 6),
    ("Rotate", 0.7, 2, "TranslateX", 0.3, 9),
    ("Sharpness", 0.8, 1, "Sharpness", 0.9, 3),
    ("ShearY", 0.5, 8, "TranslateY", 0.7, 9),
    ("AutoContrast", 0.5, 8, "Equalize", 0.9, 2),
    ("ShearY", 0.2, 7, "Posterize", 0.3, 7),
    ("Color", 0.4, 3, "Brightness", 0.6, 7),
    ("Sharpness", 0.3, 9, "Brightness", 0.7, 9),
    ("Equalize", 0.6, 5, "Equalize", 0.5, 1),
    ("Contrast", 0.6, 7, "Sharpness", 0.6, 5),
    ("Color", 0.7, 7, "TranslateX", 0.5, 8),
    ("Equalize", 0.3, 7, "AutoContrast", 0.4, 8),
    ("TranslateY", 0.4, 3, "Sharpness", 0.2, 6),
    ("Brightness", 0.9, 6, "Color", 0.2, 8),
    ("Solarize", 0.5, 2, "Invert", 0.0, 3),
    ("Equalize", 0.2, 0, "AutoContrast", 0.6, 0),
    ("Equalize", 0.2, 8, "Equalize", 0.6, 4),
    ("Color", 0.9, 9, "Equalize", 0.6, 6),
    ("AutoContrast", 0.8, 4, "Solarize", 0.2, 8),
    ("Brightness", 0.1, 3, "Color", 0.7, 0),
    ("Solarize", 0.4, 5, "AutoContrast", 0.9, 3),
    ("TranslateY", 0.9, 9, "TranslateY", 0.7, 9),
    ("AutoContrast", 0.9, 2, "Solarize", 0.8, 3),
    ("Equalize", 0.8, 8, "Invert", 0.1, 3),
    ("TranslateY", 0.7, 9, "AutoContrast", 0.9, 1),
)

# The value at level 9, up or down by the draw of a sign; at level 0 it is 0.
_SWINGS = {
    "Rotate": math.radians(30.0),
    "ShearX": 0.3,
    "ShearY": 0.3,
    "TranslateX": 150 / 331,
    "TranslateY": 150 / 331,
    **dict.fromkeys(("Brightness", "Color", "Contrast", "Sharpness"), -0.9),
}


def _row(name, probability, level):
    share = level / 9.0
    values = {
        "Posterize": round(4.0 - 4.0 * share),
        "Solarize": 256 - 256 * share,
    }
    swing = share * _SWINGS.get(name, 0.0)
    # To invert is to solarise from level 0 on.
    kind = "Solarize" if name == "Invert" else name
    number = operations.OPERATIONS.index(kind)
    return number, probability, values.get(name, 0.0), swing


_TABLE = np.array(
    [(_row(*row[:3]), _row(*row[3:])) for row in SUB_POLICIES], "float32"
)
_IDLE = float(operations.OPERATIONS.index("Identity"))

# The places of a view's random numbers.
_LEFT, _TOP, _FLIP, _CENTRE_X, _CENTRE_Y, _POLICY = range(6)


@keras.saving.register_keras_serializable(package="alim_keras")
@dataclasses.dataclass(eq=False)
class AutoAugmentViews(RandomViews):
    """Weak and strong random views as CRDPLL has them.

    The weak view is a flip and a crop of the image's own size from the image
    with a reflected margin. The strong view is a flip and a crop of its own,
    a black square (Cutout), and one of the 25 sub-policies that AutoAugment
    found for CIFAR-10.

    Args:
        image_size: As of `Views`; other images are resized before all else.
        seed: As of `Views`, and so is `flip`.
        padding: Non-negative integer below the views' height and width, the
            margin of the crop in pixels. Defaults to `4`, for 32x32 images.
        cutout: Non-negative integer, the side of the black square in pixels;
            an odd one counts as the even one below it. Its centre is any
            pixel. `0` switches it off. Defaults to `16`, for 32x32 images.

    Example: as that of `Views`.

    Reference:
    - [Wu et al., 2022](https://proceedings.mlr.press/v162/wu22l.html), CRDPLL
    - [Cubuk et al., 2019](https://arxiv.org/abs/1805.09501), AutoAugment
    - [DeVries and Taylor, 2017](https://arxiv.org/abs/1708.04552), Cutout
    """

    image_size: tuple | None = number(None, **IMAGE_SIZE)
    seed: int = number(0, low=0, high=2**32 - 1, whole=True)
    padding: int = number(4, low=0, whole=True)
    flip: float = number(0.5, low=0, high=1)
    cutout: int = number(16, low=0, whole=True)

    def make_weak(self, images, draw):
        return pixels.from_planes(self._crop(images, draw(_CENTRE_X)))

    def make_strong(self, images, draw):
        drawn = draw(_POLICY + POLICY_DRAWS)
        planes = self._crop(images, drawn)
        if self.cutout > 1:
            planes = self._cut_out(planes, drawn)
        return pixels.from_planes(apply_policy(planes, drawn[:, _POLICY:]))

    def _crop(self, images, drawn):
        ops = keras.ops
        planes = pixels.resample(images, self.image_size)
        height, width = planes.shape[2:]
        if self.padding >= min(height, width):
            raise ConfigError(
                "Argument `padding` must be smaller than the views, "
                f"{height}x{width} pixels. Received: padding={self.padding}"
            )
        rows = self._lines(drawn[:, _TOP], height)
        columns = self._lines(drawn[:, _LEFT], width)
        mirrored = ops.expand_dims(drawn[:, _FLIP] < self.flip, 1)
        columns = ops.where(mirrored, width - 1.0 - columns, columns)
        for lines in (rows, columns):
            planes = pixels.take_lines(planes, lines)
            planes = ops.transpose(planes, (0, 1, 3, 2))
        return planes

    def _lines(self, drawn, size):
        ops = keras.ops
        start = ops.floor(drawn * (2.0 * self.padding + 1.0)) - self.padding
        line = ops.arange(size, dtype="float32") + ops.expand_dims(start, 1)
        # Mirrored at the border pixels, which are not repeated.
        last = size - 1.0
        return last - ops.abs(last - ops.abs(line))

    def _cut_out(self, planes, drawn):
        ops = keras.ops
        height, width = planes.shape[2:]
        frame = ops.convert_to_tensor([width, height], "float32")
        centre = ops.floor(drawn[:, _CENTRE_X : _CENTRE_Y + 1] * frame)
        half = self.cutout // 2
        return operations.paint(planes, centre - half, centre + half, 0.0)


def apply_policy(planes, draws):
    """Applies to each example of `(C, B, H, W)` one sub-policy of its own.

    Draws are `(B, POLICY_DRAWS)` in [0, 1). Geometric operations come first,
    as one resampling: Color before TranslateX is the only other order, and
    they commute.
    """
    ops = keras.ops
    number = ops.floor(draws[:, 0] * float(len(SUB_POLICIES)))
    rows = backend.gather_rows(
        ops.convert_to_tensor(_TABLE), ops.cast(number, "int32")
    )
    kind, probability, value, swing = ops.unstack(rows, axis=2)
    kind = ops.where(draws[:, 1:3] < probability, kind, _IDLE)
    kind = ops.cast(kind, "int32")
    value = value + ops.where(draws[:, 3:5] < 0.5, -swing, swing)
    planes = _move(
        planes, operations.affine_maps(kind, value, planes.shape[2:])
    )
    return operations.apply_operations(planes, kind, value)


def _move(planes, maps):
    """Two geometric operations `(B, 2, 3, 3)`; they uncover grey, 128."""
    ops = keras.ops
    first, second = ops.unstack(maps, axis=1)
    both = pixels.compose(first, second)

    def change(part, maps):
        both, last = ops.unstack(maps, axis=1)
        images = pixels.from_planes(part)
        result = pixels.resample(images, matrix=both, outside=128.0)
        # What the first step moved out stays out, whatever the second does.
        *_, seen = pixels.mapped(last, planes.shape[2:])
        return ops.where(seen, result, 128.0)

    moved = ops.any(maps != ops.eye(3), axis=(1, 2, 3))
    maps = ops.stack([both, second], axis=1)
    return operations.where_needed(planes, moved, maps, change)
