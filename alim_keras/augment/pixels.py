"""The arithmetic of the pixel operations, on colour planes.

Inside this package a batch of images is kept as planes `(C, B, H, W)`, float32
in [0, 255], two to four times faster on a CPU than channels last. The
operations follow PIL and torchvision, without rounding to 8 bits in between.
"""

import itertools

import keras
import numpy as np

from alim_keras import backend

# ITU-R 601 luma, the weights of PIL's conversion to "L".
LUMA = (0.299, 0.587, 0.114)

# Colour jitter: one number decides whether, one in which order, four how much.
JITTER_DRAWS = 6
_CONTRAST, _SATURATION, _HUE = 1, 2, 3
# The share of views that it changes; the largest distance of a factor from 1,
# and that of a hue from its place, in turns.
_SHARE, _FARTHEST, _TURN = 0.8, 0.4, 0.1


def to_planes(images):
    """`(B, H, W, C)` of any dtype to float32 `(C, B, H, W)`."""
    ops = keras.ops
    height, width, channels = images.shape[1:]
    # Two axes are transposed in half the time that four take on a CPU.
    flat = ops.reshape(images, (-1, channels))
    flat = ops.transpose(flat) if channels > 1 else flat
    return ops.cast(ops.reshape(flat, (channels, -1, height, width)), "float32")


def from_planes(planes):
    """`(C, B, H, W)` to `(B, H, W, C)`."""
    if planes.shape[0] == 1:
        return keras.ops.expand_dims(planes[0], -1)
    return keras.ops.transpose(planes, (1, 2, 3, 0))


def per_image(values):
    """`(B,)` numbers as float32 `(B, 1, 1)`, to meet planes."""
    values = keras.ops.cast(values, "float32")
    return keras.ops.reshape(values, (-1, 1, 1))


def clip(planes):
    """Limits pixels to [0, 255]."""
    return keras.ops.clip(planes, 0.0, 255.0)


def luminance(planes):
    """Returns the grey version, `(B, H, W)`."""
    if planes.shape[0] == 1:
        return planes[0]
    red, green, blue = LUMA
    return red * planes[0] + green * planes[1] + blue * planes[2]


def smoothing(planes):
    """Returns what PIL's SMOOTH adds to inner pixels, times 13."""
    height, width = planes.shape[2:]
    if height < 3 or width < 3:
        return keras.ops.zeros_like(planes)
    rows = planes[:, :, :-2] + planes[:, :, 1:-1] + planes[:, :, 2:]
    box = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]
    inner = box - 9.0 * planes[:, :, 1:-1, 1:-1]
    return keras.ops.pad(inner, ((0, 0), (0, 0), (1, 1), (1, 1)))


def stretch(planes):
    """Scale and offset `(C, B, 1, 1)` of PIL's autocontrast."""
    ops = keras.ops
    low = ops.min(planes, axis=(2, 3), keepdims=True)
    high = ops.max(planes, axis=(2, 3), keepdims=True)
    # PIL leaves one level alone; else rounding noise became full contrast.
    flat = high - low < 1.0
    scale = ops.where(flat, 1.0, 255.0 / ops.maximum(high - low, 1.0))
    return scale, ops.where(flat, 0.0, -low * scale)


def shift_hue(planes, turns):
    """Turns the hue of three planes, by whole turns `(B, 1, 1)`."""
    ops = keras.ops
    red, green, blue = ops.unstack(planes)
    high = ops.maximum(ops.maximum(red, green), blue)
    low = ops.minimum(ops.minimum(red, green), blue)
    chroma = high - low
    # The place on the circle in sixths of it, times the chroma: nothing is
    # divided, and a grey pixel, which has no hue, stays grey. From -1 to 5.
    double = 2.0 * chroma
    place = 2.0 * double + (red - green)
    place = ops.where(ops.equal(high, green), double + (blue - red), place)
    place = ops.where(ops.equal(high, red), green - blue, place)
    place = place + 6.0 * (turns - ops.floor(turns)) * chroma
    place = ops.where(place > 5.0 * chroma, place - 6.0 * chroma, place)

    def rising(distance):
        return low + ops.minimum(ops.relu(distance), chroma)

    red = rising(ops.abs(place - 3.0 * chroma) - chroma)
    green = rising(double - ops.abs(place - double))
    blue = rising(ops.abs(place - chroma) - chroma)
    return ops.stack([red, green, blue])


def _cells(pixels):
    """Places of levels in tables laid end to end, and how many tables."""
    ops = keras.ops
    channels, _, height, width = pixels.shape
    tables = ops.shape(pixels)[1] * channels
    flat = ops.reshape(pixels, (tables, height * width))
    start = 256 * ops.expand_dims(ops.arange(tables, dtype="int32"), 1)
    return flat + start, tables


def look_up(pixels, table):
    """Replaces levels `(C, B, H, W)` by `table` `(C, B, 256)`."""
    ops = keras.ops
    channels, _, height, width = pixels.shape
    cells, _ = _cells(pixels)
    values = backend.gather_rows(ops.reshape(table, (-1,)), cells)
    return ops.reshape(values, (channels, -1, height, width))


def equalize_table(pixels):
    """PIL's equalising table of levels, float32 `(C, B, 256)`."""
    ops = keras.ops
    cells, tables = _cells(pixels)
    cells = ops.reshape(cells, (-1,))
    counts = ops.segment_sum(
        ops.ones_like(cells), cells, num_segments=256 * tables
    )
    counts = ops.reshape(counts, (pixels.shape[0], -1, 256))
    counts = ops.cast(counts, "float32")
    below = ops.cumsum(counts, axis=-1) - counts
    # All pixels but those of the brightest level that occurs.
    most = ops.max(ops.where(counts > 0, below, 0.0), axis=-1, keepdims=True)
    # Whole numbers in floats: the halves keep `floor` clear of rounding.
    step = ops.floor((most + 0.5) * (1.0 / 255.0))
    start = ops.floor(step * 0.5)
    table = ops.floor((below + start + 0.5) / ops.maximum(step, 1.0))
    identity = ops.arange(256, dtype="float32")
    return ops.where(step > 0, ops.minimum(table, 255.0), identity)


def jitter(planes, draws):
    """The ColorJitter of torchvision, in an order of its own for each example.

    Draws `(B, JITTER_DRAWS)` are in [0, 1). Grey images have no saturation or
    hue.
    """
    ops = keras.ops
    colored = planes.shape[0] == 3
    chosen = ops.cast(draws[:, 0] < _SHARE, "float32")
    order = ops.cast(ops.floor(draws[:, 1] * 24.0), "int32")
    low, width = 1.0 - _FARTHEST, 2.0 * _FARTHEST
    changes = low + width * draws[:, 2 : 2 + _HUE] - 1.0
    changes = ops.expand_dims(changes * ops.expand_dims(chosen, 1), 1)
    blends = ops.convert_to_tensor(_blend_orders(colored))
    changes = backend.gather_rows(blends, order) * changes

    def blend(planes, place):
        # Towards black, the mean grey, or the grey image.
        change = per_image(ops.sum(changes[:, place], axis=1))
        gray = luminance(planes)
        mean = ops.mean(gray, axis=(1, 2), keepdims=True)
        other = per_image(changes[:, place, _CONTRAST]) * mean
        if colored:
            other = other + per_image(changes[:, place, _SATURATION]) * gray
        return clip(planes * (1.0 + change) - other)

    if not colored:
        return blend(blend(planes, 0), 1)
    # The hue is the dearest operation and its turn is random: it is computed
    # once, and each blend has a place before it and one after it.
    for place in range(3):
        planes = blend(planes, place)
    turns = (2.0 * draws[:, 2 + _HUE] - 1.0) * _TURN * chosen
    planes = shift_hue(planes, per_image(turns))
    for place in range(3, 6):
        planes = blend(planes, place)
    return planes


def _blend_orders(colored):
    """One-hot blends at the places of each order, `(24, places, 3)`."""
    blends = 3 if colored else 2
    table = np.zeros((24, 6 if colored else 2, 3), "float32")
    for row, order in enumerate(itertools.permutations(range(4))):
        place = 0
        for operation in order:
            if operation < blends:
                table[row, place, operation] = 1.0
                place += 1
            elif colored:
                place = 3
    return table
