"""The AutoAugment policy for CIFAR-10: 25 pairs of operations.

Reference:
- [Cubuk et al., 2019](https://arxiv.org/abs/1805.09501), the table of
  CIFAR-10's sub-policies and that of the ranges.
"""

import math

import keras
import numpy as np

from alim_keras import backend
from alim_keras.augment import geometry
from alim_keras.augment import operations
from alim_keras.augment import planes as planes_lib

# One example's numbers: the pair, whether each of the two is applied, and
# which way it goes.
POLICY_DRAWS = 5

# What lies outside the frame.
FILL = 128.0

# Operation, probability and level (0 to 9) of the first, then of the second.
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

# What level 9 means, growing in equal steps from nothing at level 0. The sign
# of a geometric operation and of a blend's distance from 1 is drawn.
_LARGEST = {
    "Rotate": math.radians(30.0),
    "ShearX": 0.3,
    "ShearY": 0.3,
    "TranslateX": 150 / 331,
    "TranslateY": 150 / 331,
}
_BLENDS = ("Brightness", "Color", "Contrast", "Sharpness")
_FARTHEST = 0.9


def _numbers(name, probability, level):
    """What a tensor needs to know of one operation, 6 floats."""
    share = level / 9.0
    threshold = 256.0 * (1.0 - share) if name == "Solarize" else 0.0
    # To invert is to solarise from level 0 on.
    kind = "Solarize" if name == "Invert" else name
    return (
        operations.OPERATIONS.index(kind),
        probability,
        share * _LARGEST.get(name, 0.0),
        share * _FARTHEST if name in _BLENDS else 0.0,
        round(8.0 - 4.0 * share),
        threshold,
    )


_TABLE = np.array(
    [[*_numbers(*row[:3]), *_numbers(*row[3:])] for row in SUB_POLICIES],
    "float32",
)
_IDLE = float(operations.OPERATIONS.index("Identity"))


def apply_policy(planes, draws):
    """Applies to each example one sub-policy of its own.

    Geometric operations come first, as one resampling. In this policy that
    is their order, except where Color comes before TranslateX, which Color
    leaves alone: neither moves what the other changes.

    Args:
        planes: Float32 tensor `(C, B, H, W)` in [0, 255].
        draws: Float tensor `(B, POLICY_DRAWS)`, uniform in [0, 1): which
            sub-policy, whether its two operations are applied, and their
            signs (below 0.5 negative).

    Returns:
        Float32 tensor `(C, B, H, W)` in [0, 255].
    """
    ops = keras.ops
    count = len(SUB_POLICIES)
    number = ops.cast(ops.floor(draws[:, 0] * float(count)), "int32")
    rows = backend.take_rows(ops.convert_to_tensor(_TABLE), number)
    rows = ops.reshape(rows, (-1, 2, 6))
    kind, probability, move, away, bits, threshold = ops.unstack(rows, axis=2)
    kind = ops.where(draws[:, 1:3] < probability, kind, _IDLE)
    kind = ops.cast(kind, "int32")
    sign = ops.where(draws[:, 3:5] < 0.5, -1.0, 1.0)
    planes = _move(planes, kind, sign * move)
    return operations.apply_changes(
        planes, kind, -sign * away, bits, threshold, limit=True
    )


def _move(planes, kind, amount):
    """The geometric operations `(B, 2)`; what they uncover is grey."""
    ops = keras.ops
    size = planes.shape[2:]
    maps = operations.maps_of(kind, amount, amount, size)
    first, second = ops.unstack(maps, axis=1)
    moved = [ops.equal(kind, operations.OPERATIONS.index(n)) for n in _LARGEST]
    moved = ops.any(ops.stack(moved), axis=(0, 2))

    def change(part, numbers):
        both, last = numbers[:, :6], numbers[:, 6:]
        result = geometry.resample_planes(
            planes_lib.from_planes(part), matrix=both
        )
        # What the first step moved out stays out, whatever the second does.
        seen = geometry.inside_frame(both, size)
        seen = seen & geometry.inside_frame(last, size)
        return ops.where(seen, result, FILL)

    numbers = ops.concatenate([geometry.compose(first, second), second], 1)
    return operations.where_needed(planes, moved, numbers, change)
