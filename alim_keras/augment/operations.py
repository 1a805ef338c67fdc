"""The fourteen operations of the strong view, and its cutout.

Every example draws its own operations. The five geometric ones become one
affine map; the others are applied in the drawn order, each step computing
what its operations have in common once.

Reference:
- [Cubuk et al., 2019](https://arxiv.org/abs/1909.13719)
- [DeVries and Taylor, 2017](https://arxiv.org/abs/1708.04552)
"""

import math

import keras

from alim_keras.augment import geometry
from alim_keras.augment import planes as planes_lib

OPERATIONS = (
    "AutoContrast",
    "Brightness",
    "Color",
    "Contrast",
    "Equalize",
    "Identity",
    "Posterize",
    "Rotate",
    "Sharpness",
    "ShearX",
    "ShearY",
    "Solarize",
    "TranslateX",
    "TranslateY",
)

# Centre (x, y) and side of the cutout.
CUTOUT_DRAWS = 3


def choose(draws):
    """Numbers in [0, 1) to numbers of `OPERATIONS`, int32."""
    count = float(len(OPERATIONS))
    return keras.ops.cast(keras.ops.floor(draws * count), "int32")


def _chosen(operation, name):
    """1.0 where the operation is the one called `name`, else 0.0."""
    number = OPERATIONS.index(name)
    return keras.ops.cast(keras.ops.equal(operation, number), "float32")


def affine_maps(operation, magnitude, size):
    """The affine map of each operation; the identity for pixel operations.

    Rotate turns by up to 30 degrees about the centre; ShearX and ShearY lean
    by up to 0.3 about the top left corner; TranslateX and TranslateY move by
    up to 0.3 of the size.

    Args:
        operation: Integer tensor `(B,)`, places in `OPERATIONS`.
        magnitude: Float tensor `(B,)` in [0, 1).
        size: Pair of integers `(height, width)`, in pixels.

    Returns:
        Float32 tensor `(B, 6)`, see `alim_keras.augment.geometry`.
    """
    ops = keras.ops
    height, width = size
    signed = 2.0 * magnitude - 1.0
    angle = signed * math.radians(30.0) * _chosen(operation, "Rotate")
    cosine, sine = ops.cos(angle), ops.sin(angle)
    share = 0.3 * signed
    shear_x = share * _chosen(operation, "ShearX")
    shear_y = share * _chosen(operation, "ShearY")
    move_x = share * _chosen(operation, "TranslateX") * width
    move_y = share * _chosen(operation, "TranslateY") * height
    # A rotation about the centre: p -> centre + R (p - centre).
    x, y = 0.5 * width, 0.5 * height
    return ops.stack(
        [
            cosine,
            shear_x - sine,
            move_x + x - cosine * x + sine * y,
            shear_y + sine,
            cosine,
            move_y + y - sine * x - cosine * y,
        ],
        axis=1,
    )


def combined_map(operations, magnitudes, size):
    """One affine map `(B, 6)` for operations `(B, n)`, the first first."""
    result = None
    for step in range(operations.shape[1]):
        matrix = affine_maps(operations[:, step], magnitudes[:, step], size)
        result = matrix if step == 0 else geometry.compose(result, matrix)
    return result


def apply_operation(planes, operation, magnitude):
    """Applies to each example its pixel operation; geometric ones are idle.

    Brightness, Color, Contrast and Sharpness blend by 0.05 to 0.95; Posterize
    keeps 4 to 7 bits; Solarize inverts from a level of 0 to 256 on.

    Args:
        planes: Float32 tensor `(C, B, H, W)` in [0, 255].
        operation: Integer tensor `(B,)`, places in `OPERATIONS`.
        magnitude: Float tensor `(B,)` in [0, 1).

    Returns:
        Float32 tensor `(C, B, H, W)`.
    """
    ops = keras.ops
    planes = _tone(planes, operation, magnitude)
    equalize, posterize, solarize = (
        ops.expand_dims(_chosen(operation, name), 1)
        for name in ("Equalize", "Posterize", "Solarize")
    )
    pixels = planes_lib.levels(planes)
    table = ops.where(
        posterize > 0,
        planes_lib.posterize_table(4.0 + ops.floor(4.0 * magnitude)),
        planes_lib.solarize_table(256.0 * magnitude),
    )
    table = ops.where(equalize > 0, planes_lib.equalize_table(pixels), table)
    use = planes_lib.per_image(equalize + posterize + solarize)
    return ops.where(use > 0, planes_lib.look_up(pixels, table), planes)


def _tone(planes, operation, magnitude):
    """AutoContrast and the four blends: all are linear in the pixels."""
    ops = keras.ops
    per_image = planes_lib.per_image
    away = 0.95 - 0.9 * magnitude
    contrast = away * _chosen(operation, "Contrast")
    color = away * _chosen(operation, "Color")
    sharpness = away * _chosen(operation, "Sharpness")
    kept = away * _chosen(operation, "Brightness") + contrast
    colored = planes.shape[0] == 3
    if colored:
        kept = kept + color
    auto = per_image(_chosen(operation, "AutoContrast")) > 0
    scale, offset = planes_lib.stretch(planes)
    gray = planes_lib.luminance(planes)
    scale = ops.where(auto, scale, per_image(1.0 - kept))
    offset = ops.where(
        auto, offset, per_image(contrast) * planes_lib.mean(gray)
    )
    result = planes * scale + offset
    if colored:
        result = result + per_image(color) * gray
    # Sharpness: v + away (smooth - v), where smooth - v = smoothing / 13.
    blur = planes_lib.smoothing(planes)
    return result + per_image(sharpness * (1.0 / 13.0)) * blur


def cutout_planes(planes, draws, largest, color):
    """Paints a square over each example.

    The side is uniform up to `largest` of the width and the centre uniform
    over the image. Its left and top edges are moved into the image before
    the right and bottom edges are measured from them, so a square near the
    left or the top keeps its size; the last row and column are painted too.

    Args:
        planes: Float32 tensor `(C, B, H, W)`.
        draws: Float tensor `(B, CUTOUT_DRAWS)`, uniform in [0, 1).
        largest: Float in (0, 1], the largest side as share of the width.
        color: Three floats in [0, 255]; their mean is used for one channel.

    Returns:
        Float32 tensor `(C, B, H, W)`.
    """
    ops = keras.ops
    channels, _, height, width = planes.shape
    side = draws[:, 2] * (largest * width)

    def span(center, size):
        first = ops.floor(ops.maximum(center * size - 0.5 * side, 0.0))
        last = ops.floor(ops.minimum(first + side, float(size)))
        place = ops.expand_dims(ops.arange(size, dtype="float32"), 0)
        first = ops.expand_dims(first, 1)
        covered = (place >= first) & (place <= ops.expand_dims(last, 1))
        return ops.cast(covered, "float32")

    columns = ops.expand_dims(span(draws[:, 0], width), 1)
    rows = ops.expand_dims(span(draws[:, 1], height), 2)
    mask = rows * columns
    if channels == 1:
        color = (sum(color) / len(color),)
    paint = ops.reshape(ops.convert_to_tensor(color, "float32"), (-1, 1, 1, 1))
    return planes * (1.0 - mask) + paint * mask
