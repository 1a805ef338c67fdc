"""The fourteen operations of the strong view, and its cutout.

Every example draws its own operations. The five geometric ones become one
affine map; the others are applied in the drawn order. A step does to the whole
batch what is cheap, and the rest to the examples that drew it.

Reference:
- [Cubuk et al., 2019](https://arxiv.org/abs/1909.13719)
- [DeVries and Taylor, 2017](https://arxiv.org/abs/1708.04552)
"""

import math

import keras

from alim_keras import backend
from alim_keras.augment import geometry
from alim_keras.augment import pixels

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

# Those that replace each level by another, whatever its neighbours are.
_TABLES = ("Equalize", "Posterize", "Solarize")

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


def affine_maps(operation, angle, share, size):
    """The affine map of each operation; the identity for pixel operations.

    Rotate turns about the centre, ShearX and ShearY lean about the top left
    corner, TranslateX and TranslateY move.

    Args:
        operation: Integers `(B, n)`, numbers of `OPERATIONS`.
        angle: Radians `(B, n)` of Rotate, counter-clockwise.
        share: Shares `(B, n)` of the size, for the others.
        size: Height and width, in pixels.

    Returns:
        Float32 tensor `(B, n, 6)`, see `geometry`.
    """
    ops = keras.ops
    height, width = size
    angle = angle * _chosen(operation, "Rotate")
    cosine, sine = ops.cos(angle), ops.sin(angle)
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
        axis=-1,
    )


def combined_map(operations, magnitudes, size):
    """One affine map `(B, 6)` for operations `(B, n)`, the first first.

    Magnitudes in [0, 1) stand for -30 to 30 degrees of Rotate and -0.3 to 0.3
    of the others, see `affine_maps`.
    """
    signed = 2.0 * magnitudes - 1.0
    maps = affine_maps(
        operations, signed * math.radians(30.0), 0.3 * signed, size
    )
    result, *others = keras.ops.unstack(maps, axis=1)
    for matrix in others:
        result = geometry.compose(result, matrix)
    return result


def apply_operations(planes, operations, magnitudes):
    """Applies to each example its pixel operations; geometric ones are idle.

    Brightness, Color, Contrast and Sharpness blend by 0.05 to 0.95; Posterize
    keeps 4 to 7 bits; Solarize inverts from a level of 0 to 256 on, as the
    magnitudes `(B, n)` in [0, 1) say. For the rest see `apply_changes`.
    """
    magnitudes = keras.ops.convert_to_tensor(magnitudes)
    return apply_changes(
        planes,
        operations,
        0.95 - 0.9 * magnitudes,
        4.0 + keras.ops.floor(4.0 * magnitudes),
        256.0 * magnitudes,
    )


def apply_changes(planes, operations, away, bits, threshold, limit=False):
    """Applies pixel operations with the numbers of each spelt out.

    Args:
        planes: Float32 tensor `(C, B, H, W)` in [0, 255].
        operations: Integers `(B, n)`, numbers of `OPERATIONS`; the first
            comes first.
        away: `(B, n)`: Brightness, Color, Contrast and Sharpness blend by the
            factor `1 - away`.
        bits: Whole numbers `(B, n)`, for Posterize.
        threshold: `(B, n)`, for Solarize; 0 inverts all.
        limit: Whether to limit to [0, 255] after each operation, which blends
            with a factor above 1 need. Defaults to `False`.
    """
    ops = keras.ops
    auto = _chosen(operations, "AutoContrast")
    contrast = away * _chosen(operations, "Contrast")
    color = away * _chosen(operations, "Color")
    factor = 1.0 - away * _chosen(operations, "Brightness") - contrast
    if planes.shape[0] == 3:
        factor = factor - color
    tone = ops.stack([auto, factor, contrast, color])
    tone = ops.expand_dims(ops.transpose(tone, (2, 0, 1)), (-1, -2))
    sharp = _chosen(operations, "Sharpness")
    tables = [_chosen(operations, name) for name in _TABLES]
    dear = ops.stack([away * sharp, *tables, bits, threshold], axis=-1)
    needed = sum(tables, sharp) > 0
    for step in range(operations.shape[1]):
        planes = _tone(planes, *ops.unstack(tone[step], 4))
        planes = pixels.clip(planes) if limit else planes
        planes = where_needed(
            planes, needed[:, step], dear[:, step], _blur_or_look_up
        )
        planes = pixels.clip(planes) if limit else planes
    return planes


def _tone(planes, auto, factor, contrast, color):
    """AutoContrast and three blends: all are linear in the pixels.

    The numbers of an example are `(B, 1, 1)`.
    """
    ops = keras.ops
    scale, offset = pixels.stretch(planes)
    gray = pixels.luminance(planes)
    scale = ops.where(auto > 0, scale, factor)
    offset = ops.where(auto > 0, offset, contrast * pixels.mean(gray))
    result = planes * scale + offset
    return result + color * gray if planes.shape[0] == 3 else result


def _blur_or_look_up(planes, numbers):
    """Sharpness, Equalize, Posterize or Solarize, as `numbers` `(B, 6)` say."""
    ops = keras.ops
    columns = ops.expand_dims(ops.transpose(numbers), -1)
    sharpness, equalize, posterize, solarize, bits, threshold = ops.unstack(
        columns
    )
    # Sharpness: v + away (smooth - v), where smooth - v = smoothing / 13.
    away = ops.expand_dims(sharpness * (1.0 / 13.0), -1)
    planes = planes + away * pixels.smoothing(planes)
    levels = pixels.levels(planes)
    table = ops.where(
        posterize > 0,
        pixels.posterize_table(bits[:, 0]),
        pixels.solarize_table(threshold[:, 0]),
    )
    table = ops.where(equalize > 0, pixels.equalize_table(levels), table)
    use = ops.expand_dims(equalize + posterize + solarize, -1)
    return ops.where(use > 0, pixels.look_up(levels, table), planes)


def where_needed(planes, needed, numbers, change):
    """Changes the examples `needed` `(B,)`, in as many blocks as they fill.

    The shapes stay static, as XLA wants them: a block is an eighth of the
    batch, the loop runs as often as the count of `needed` asks for. `change`
    is a function of the planes of some examples and their rows of `numbers`
    `(B, n)`; it leaves those as they are that are not `needed`.
    """
    ops = keras.ops
    channels, _, height, width = planes.shape
    batch = ops.shape(planes)[1]
    block = (
        ops.maximum(batch // 8, 16)
        if keras.ops.is_tensor(batch)
        else max(batch // 8, 16)
    )
    count = ops.sum(ops.cast(needed, "int32"))
    order = ops.cast(ops.argsort(ops.cast(~needed, "int32")), "int32")
    first = ops.expand_dims(ops.arange(channels, dtype="int32") * batch, 1)

    def body(start, flat):
        # Past the end the last example comes again, with the same result.
        place = start + ops.arange(block, dtype="int32")
        rows = backend.take_rows(order, ops.minimum(place, batch - 1))
        cells = ops.reshape(first + rows, (-1,))
        part = backend.take_rows(flat, cells)
        part = ops.reshape(part, (channels, -1, height, width))
        part = change(part, backend.take_rows(numbers, rows))
        part = ops.reshape(part, (-1, height * width))
        flat = ops.scatter_update(flat, ops.expand_dims(cells, 1), part)
        return start + block, flat

    flat = ops.reshape(planes, (-1, height * width))
    _, flat = ops.while_loop(
        lambda start, _: start < count, body, (ops.zeros((), "int32"), flat)
    )
    return ops.reshape(flat, (channels, -1, height, width))


def cutout_planes(planes, draws, largest, color):
    """Paints a square over each example.

    The side is uniform up to `largest` of the width and the centre uniform
    over the image. Its left and top edges are moved into the image before
    the right and bottom edges are measured from them, so a square near the
    left or the top keeps its size; the last row and column are painted too.
    One channel gets the mean of the three numbers of `color`.
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
    return ops.where(mask > 0, paint, planes)
