"""The fourteen operations of the strong view, and its cutout.

The five geometric ones become one affine map. A step does to the whole batch
what is cheap, and the rest to the examples that drew it.

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
_CUTOUT_COLOR = [125, 123, 114]


def _chosen(operation, name):
    number = OPERATIONS.index(name)
    return keras.ops.cast(keras.ops.equal(operation, number), "float32")


def affine_maps(operation, angle, share, size):
    """Returns the affine map `(B, n, 6)` of each operation `(B, n)`.

    Rotate turns by `angle` `(B, n)`, radians counter-clockwise, about the
    centre; ShearX and ShearY lean about the top left corner and TranslateX
    and TranslateY move, by `share` `(B, n)` of `size`. Others do nothing.
    """
    ops = keras.ops
    height, width = size
    angle = angle * _chosen(operation, "Rotate")
    cosine, sine = ops.cos(angle), ops.sin(angle)
    shear_x = share * _chosen(operation, "ShearX")
    shear_y = share * _chosen(operation, "ShearY")
    move_x = share * _chosen(operation, "TranslateX") * width
    move_y = share * _chosen(operation, "TranslateY") * height
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
    """Applies the pixel operations with magnitudes `(B, n)` in [0, 1).

    They stand for a blend by 0.05 to 0.95, 4 to 7 bits of Posterize and
    Solarize from a level of 0 to 256 on. Geometric operations are idle.
    """
    return apply_changes(
        planes,
        operations,
        0.95 - 0.9 * magnitudes,
        4.0 + keras.ops.floor(4.0 * magnitudes),
        256.0 * magnitudes,
    )


def apply_changes(planes, operations, away, bits, threshold, limit=False):
    """Applies pixel operations with the numbers of each, all `(B, n)`.

    Brightness, Color, Contrast and Sharpness blend by the factor `1 - away`,
    Posterize keeps `bits`, Solarize inverts from `threshold` on. With `limit`
    each operation ends in [0, 255], which a factor above 1 needs.
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
    """AutoContrast and three blends: all are linear in the pixels."""
    ops = keras.ops
    scale, offset = pixels.stretch(planes)
    gray = pixels.luminance(planes)
    scale = ops.where(auto > 0, scale, factor)
    mean = ops.mean(gray, axis=(1, 2), keepdims=True)
    offset = ops.where(auto > 0, offset, contrast * mean)
    result = planes * scale + offset
    return result + color * gray if planes.shape[0] == 3 else result


def _blur_or_look_up(planes, numbers):
    """Sharpness, Equalize, Posterize or Solarize, as `numbers` `(B, 6)` say."""
    ops = keras.ops
    sharpness, equalize, posterize, solarize, bits, threshold = ops.split(
        numbers, 6, axis=1
    )
    # Sharpness: v + away (smooth - v), where smooth - v = smoothing / 13.
    away = ops.expand_dims(sharpness * (1.0 / 13.0), -1)
    planes = planes + away * pixels.smoothing(planes)
    levels = ops.cast(ops.round(pixels.clip(planes)), "int32")
    level = ops.arange(256, dtype="float32")
    # Powers of two by name: `power` is not exact on every device.
    powers = ops.convert_to_tensor([2.0**n for n in range(9)], "float32")
    step = backend.take_rows(powers, ops.cast(8.0 - bits, "int32"))
    inverted = ops.where(level < threshold, level, 255.0 - level)
    table = ops.where(posterize > 0, ops.floor(level / step) * step, inverted)
    table = ops.where(equalize > 0, pixels.equalize_table(levels), table)
    use = ops.expand_dims(equalize + posterize + solarize, -1)
    return ops.where(use > 0, pixels.look_up(levels, table), planes)


def where_needed(planes, needed, numbers, change):
    """Changes the examples `needed` `(B,)`, in as many blocks as they fill.

    A block is an eighth of the batch, so that shapes are static, as XLA wants
    them. `change` takes the planes of some examples and their rows of
    `numbers` `(B, n)`; it leaves those as they are that are not `needed`.
    """
    ops = keras.ops
    channels, _, height, width = planes.shape
    batch = ops.shape(planes)[1]
    larger = ops.maximum if ops.is_tensor(batch) else max
    block = larger(batch // 8, 16)
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


def cutout_planes(planes, draws, largest):
    """Paints a square over each example.

    The side is uniform up to `largest` of the width, the centre over the
    image. The left and top edges are moved into the image before the others
    are measured from them; the last row and column are painted too. One
    channel gets the mean of the colour.
    """
    ops = keras.ops
    channels, _, height, width = planes.shape
    side = draws[:, 2] * (largest * width)

    def span(center, size):
        first = ops.floor(ops.maximum(center * size - 0.5 * side, 0.0))
        last = ops.floor(ops.minimum(first + side, float(size)))
        return first, last + 1.0

    covered = inside_rectangle(
        span(draws[:, 0], width), span(draws[:, 1], height), (height, width)
    )
    color = _CUTOUT_COLOR if channels == 3 else [sum(_CUTOUT_COLOR) / 3]
    paint = ops.reshape(ops.convert_to_tensor(color, "float32"), (-1, 1, 1, 1))
    return ops.where(covered, paint, planes)


def inside_rectangle(columns, rows, size):
    """Which pixels `(B, H, W)` lie in rectangles.

    `columns` and `rows` are pairs: the first pixel and that behind the last.
    """

    def within(ends, count):
        first, end = (keras.ops.expand_dims(each, 1) for each in ends)
        pixel = keras.ops.arange(count, dtype="float32")
        return (pixel >= first) & (pixel < end)

    across = keras.ops.expand_dims(within(columns, size[1]), 1)
    return keras.ops.expand_dims(within(rows, size[0]), 2) & across
