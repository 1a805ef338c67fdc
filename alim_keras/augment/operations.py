"""The fourteen operations of RandAugment, and Cutout.

A step does to the whole batch what is cheap, the rest to those that drew it.

Reference:
- [Cubuk et al., 2019](https://arxiv.org/abs/1909.13719)
- [DeVries and Taylor, 2017](https://arxiv.org/abs/1708.04552)
"""

import math

import keras

from alim_keras import backend
from alim_keras.augment import pixels

# Each operation's value in a strong view, lowest and highest: an angle in
# radians; a share of the size; 1 less the factor of a blend; the bits that
# Posterize keeps beyond four; the level from which Solarize inverts.
_TURN = math.radians(30.0)
RANGES = {
    "AutoContrast": (0.0, 0.0),
    "Brightness": (0.95, 0.05),
    "Color": (0.95, 0.05),
    "Contrast": (0.95, 0.05),
    "Equalize": (0.0, 0.0),
    "Identity": (0.0, 0.0),
    "Posterize": (0.0, 4.0),
    "Rotate": (-_TURN, _TURN),
    "Sharpness": (0.95, 0.05),
    "ShearX": (-0.3, 0.3),
    "ShearY": (-0.3, 0.3),
    "Solarize": (0.0, 256.0),
    "TranslateX": (-0.3, 0.3),
    "TranslateY": (-0.3, 0.3),
}
OPERATIONS = tuple(RANGES)

# Those that replace each level by another, whatever its neighbours are.
_TABLES = ("Equalize", "Posterize", "Solarize")

# Centre (x, y) and side of the cutout.
CUTOUT_DRAWS = 3
_CUTOUT_COLOR = [125, 123, 114]


def values_at(operations, draws):
    """Returns the values of operations, at draws in [0, 1) of their ranges."""
    ops = keras.ops
    ranges = ops.convert_to_tensor(list(RANGES.values()), "float32")
    low, high = ops.unstack(backend.gather_rows(ranges, operations), axis=-1)
    return low + (high - low) * draws


def _is(operations, *names):
    ops = keras.ops
    numbers = ops.convert_to_tensor([OPERATIONS.index(n) for n in names])
    numbers = ops.cast(numbers, operations.dtype)
    return ops.any(ops.equal(ops.expand_dims(operations, -1), numbers), axis=-1)


def _values_of(name, operations, values):
    return keras.ops.where(_is(operations, name), values, 0.0)


def affine_maps(operations, values, size):
    """Returns the affine map `(B, n, 3, 3)` of each operation `(B, n)`.

    Rotate turns counter-clockwise about the centre; ShearX and ShearY lean
    about the top left corner. What is not geometric does nothing.
    """
    ops = keras.ops
    height, width = size
    angle, shear_x, shear_y, move_x, move_y = (
        _values_of(name, operations, values)
        for name in ("Rotate", "ShearX", "ShearY", "TranslateX", "TranslateY")
    )
    cosine, sine = ops.cos(angle), ops.sin(angle)
    x, y = 0.5 * width, 0.5 * height
    zero = ops.zeros_like(angle)
    rows = (
        (cosine, shear_x - sine, move_x * width + x - cosine * x + sine * y),
        (shear_y + sine, cosine, move_y * height + y - sine * x - cosine * y),
        (zero, zero, zero + 1.0),
    )
    return ops.stack([ops.stack(row, axis=-1) for row in rows], axis=-2)


def apply_operations(planes, operations, values):
    """Applies the pixel operations `(B, n)`, each of which ends in [0, 255].

    Geometric ones do nothing.
    """
    ops = keras.ops
    for step in range(operations.shape[1]):
        operation, value = operations[:, step], values[:, step]
        planes = _change_tone(planes, operation, value)
        needed = _is(operation, "Sharpness", *_TABLES)
        numbers = ops.stack([ops.cast(operation, "float32"), value], axis=1)
        planes = where_needed(planes, needed, numbers, _change_detail)
        planes = ops.clip(planes, 0.0, 255.0)
    return planes


def _change_tone(planes, operation, value):
    """AutoContrast and three blends: all are linear in the pixels."""
    ops = keras.ops
    brightness, color, contrast = (
        pixels.per_image(_values_of(name, operation, value))
        for name in ("Brightness", "Color", "Contrast")
    )
    colored = planes.shape[0] == 3
    gray = pixels.luminance(planes)
    mean = ops.mean(gray, axis=(1, 2), keepdims=True)
    factor = 1.0 - brightness - contrast - (color if colored else 0.0)
    auto = pixels.per_image(_is(operation, "AutoContrast")) > 0
    scale, offset = pixels.stretch(planes)
    scale = ops.where(auto, scale, factor)
    result = planes * scale + ops.where(auto, offset, contrast * mean)
    return result + color * gray if colored else result


def _change_detail(planes, numbers):
    """Sharpness, Equalize, Posterize or Solarize: number and value `(B, 2)`."""
    ops = keras.ops
    operation, value = ops.split(numbers, 2, axis=1)
    # Sharpness: v + away (smooth - v), where smooth - v = smoothing / 13.
    away = _values_of("Sharpness", operation, value * (1.0 / 13.0))
    planes = planes + ops.expand_dims(away, -1) * pixels.smoothing(planes)
    levels = ops.cast(ops.round(ops.clip(planes, 0.0, 255.0)), "int32")
    level = ops.arange(256, dtype="float32")
    # Powers of two by name: `power` is not exact on every device.
    steps = ops.convert_to_tensor([16.0, 8.0, 4.0, 2.0, 1.0])
    bits = ops.cast(ops.clip(value, 0.0, 4.0), "int32")
    step = backend.gather_rows(steps, bits)
    equalized = pixels.equalize_table(levels)
    posterized = ops.floor(level / step) * step
    table = ops.where(level < value, level, 255.0 - level)
    table = ops.where(_is(operation, "Posterize"), posterized, table)
    table = ops.where(_is(operation, "Equalize"), equalized, table)
    uses_table = ops.expand_dims(_is(operation, *_TABLES), -1)
    return ops.where(uses_table, pixels.look_up(levels, table), planes)


def where_needed(planes, needed, numbers, change):
    """Changes the examples `needed` `(B,)`, in as many blocks as they fill.

    `change` takes the planes of some examples and their rows of `numbers`
    `(B, ...)`; it leaves those as they are that are not `needed`.
    """
    ops = keras.ops
    channels, _, height, width = planes.shape
    batch = ops.shape(planes)[1]
    # Blocks of one size, as XLA wants them.
    larger = ops.maximum if ops.is_tensor(batch) else max
    block = larger(batch // 8, 16)
    count = ops.sum(ops.cast(needed, "int32"))
    order = ops.cast(ops.argsort(ops.cast(~needed, "int32")), "int32")
    first = ops.expand_dims(ops.arange(channels, dtype="int32") * batch, 1)

    def body(start, flat):
        # Past the end the last example comes again, with the same result.
        place = start + ops.arange(block, dtype="int32")
        rows = backend.gather_rows(order, ops.minimum(place, batch - 1))
        cells = ops.reshape(first + rows, (-1,))
        part = backend.gather_rows(flat, cells)
        part = ops.reshape(part, (channels, -1, height, width))
        part = change(part, backend.gather_rows(numbers, rows))
        part = ops.reshape(part, (-1, height * width))
        flat = ops.scatter_update(flat, ops.expand_dims(cells, 1), part)
        return start + block, flat

    flat = ops.reshape(planes, (-1, height * width))
    _, flat = ops.while_loop(
        lambda start, _: start < count, body, (ops.zeros((), "int32"), flat)
    )
    return ops.reshape(flat, (channels, -1, height, width))


def cutout_planes(planes, draws, largest):
    """Paints a square over each example, of a side up to `largest` widths.

    The left and top edges are moved into the image before the others are
    measured from them; the last row and column are painted too.
    """
    ops = keras.ops
    channels, _, height, width = planes.shape
    frame = ops.convert_to_tensor([width, height], "float32")
    side = draws[:, 2:] * (largest * width)
    first = ops.floor(ops.maximum(draws[:, :2] * frame - 0.5 * side, 0.0))
    last = ops.floor(ops.minimum(first + side, frame))
    color = _CUTOUT_COLOR if channels == 3 else [sum(_CUTOUT_COLOR) / 3]
    color = ops.reshape(ops.convert_to_tensor(color, "float32"), (-1, 1, 1, 1))
    return paint(planes, first, last + 1.0, color)


def paint(planes, first, end, color):
    """Paints pixels from `first` to before `end`, both `(B, 2)`: x and y."""
    x, y = pixels.centres(planes.shape[2:])
    left, top = map(pixels.per_image, keras.ops.unstack(first, axis=1))
    right, bottom = map(pixels.per_image, keras.ops.unstack(end, axis=1))
    covered = (x > left) & (x < right) & (y > top) & (y < bottom)
    return keras.ops.where(covered, color, planes)
