"""Where a pixel of a view comes from, and its arithmetic.

Inside this package a batch of images is kept as planes `(C, B, H, W)`, float32
in [0, 255], two to four times faster on a CPU than channels last. Operations
follow PIL and torchvision, without rounding to 8 bits in between.

Positions are continuous: the frame of an image covers `[0, W] x [0, H]` and
the centre of pixel `(row, column)` is `(column + 0.5, row + 0.5)`. An affine
map is a 3x3 matrix that sends a position `(x, y, 1)` in the result to one in
the source. Both are PIL's conventions.
"""

import itertools
import math

import keras
import numpy as np

from alim_keras import backend

# Random numbers that one crop needs, and the candidates it tries.
CROP_TRIES = 10
CROP_DRAWS = 2 * CROP_TRIES + 2
# Smallest and largest width over height of a crop.
_RATIO = (3 / 4, 4 / 3)

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


def random_boxes(draws, size, scale):
    """RandomResizedCrop of torchvision of draws `(B, CROP_DRAWS)` in [0, 1).

    Of ten candidates (area uniform in `scale`, width over height log-uniform
    from 3/4 to 4/3, sides rounded) the first that fits is taken, else the
    largest centred crop with an allowed ratio. Returns left, top, width and
    height, whole float32 numbers `(B, 4)`.
    """
    ops = keras.ops
    height, width = size
    area = scale[0] + (scale[1] - scale[0]) * draws[:, :CROP_TRIES]
    root = ops.sqrt(area * float(height * width))
    low, high = (0.5 * math.log(value) for value in _RATIO)
    stretch = ops.exp(low + (high - low) * draws[:, CROP_TRIES:-2])
    drawn = ops.round(ops.stack([root * stretch, root / stretch], axis=2))
    # The largest box with an allowed ratio is the last candidate.
    widest = min(width, round(height * _RATIO[1]))
    highest = min(height, round(width / _RATIO[0]))
    last = ops.zeros_like(drawn[:, :1]) + _numbers(widest, highest)
    sides = ops.concatenate([drawn, last], axis=1)
    frame = _numbers(width, height)
    fits = ops.all((sides > 0) & (sides <= frame), axis=2)
    first = ops.argmax(ops.cast(fits, "int32"), axis=1)
    chosen = ops.one_hot(first, CROP_TRIES + 1, dtype="float32")
    box = ops.sum(ops.expand_dims(chosen, 2) * sides, axis=1)
    free = frame - box
    corner = ops.where(
        ops.expand_dims(ops.equal(first, CROP_TRIES), 1),
        ops.floor(free * 0.5),
        ops.floor(draws[:, -2:] * (free + 1.0)),
    )
    return ops.concatenate([corner, box], axis=1)


def _numbers(*values):
    return keras.ops.convert_to_tensor(values, "float32")


def compose(outer, inner):
    """The map `(B, 3, 3)` that applies `inner`, then `outer`."""
    # A matrix product is rounded more coarsely on some GPUs.
    products = outer[:, :, :, None] * inner[:, None]
    return keras.ops.sum(products, axis=2)


def mapped(matrix, size):
    """Returns x and y `(B, H, W)` of pixels, and which stay in the frame."""
    x, y = centres(size)
    numbers = keras.ops.reshape(keras.ops.cast(matrix, "float32"), (-1, 9))
    a, b, c, d, e, f, *_ = map(per_image, keras.ops.unstack(numbers, axis=1))
    x, y = a * x + b * y + c, d * x + e * y + f
    inside = (x >= 0.0) & (x < size[1]) & (y >= 0.0) & (y < size[0])
    return x, y, inside


def centres(size):
    """The pixels' own positions, x `(1, 1, W)` and y `(1, H, 1)`."""
    y, x = (keras.ops.arange(n, dtype="float32") + 0.5 for n in size)
    return x[None, None], y[None, :, None]


def resample(
    images, image_size=None, box=None, flip=None, matrix=None, outside=0.0
):
    """Crops, resizes, mirrors and maps images in one bilinear resampling.

    The images are `(B, h, w, C)` of any dtype, the result float32 planes
    `(C, B, H, W)` of `image_size`. The crop `box` `(B, 4)`, see `random_boxes`,
    is resized, mirrored where `flip` `(B,)` says so, then mapped by `matrix`
    `(B, 3, 3)`; what that takes outside the frame has the value `outside`. A
    crop never looks beyond its border. There is no antialiasing. Without any
    change the result equals the input.
    """
    ops = keras.ops
    images = ops.convert_to_tensor(images)
    height, width = images.shape[1:3]
    size = tuple(image_size or (height, width))
    if size == (height, width) and box is flip is matrix is None:
        return to_planes(images)
    if box is None:
        box = ops.expand_dims(_numbers(0, 0, width, height), 0)
        box = ops.tile(box, (ops.shape(images)[0], 1))
    left, top, box_width, box_height = map(per_image, ops.unstack(box, axis=1))
    if matrix is None:
        x, y = centres(size)
    else:
        x, y, inside = mapped(matrix, size)
    if flip is not None:
        x = ops.where(per_image(flip) > 0, size[1] - x, x)
    column, x_share = _pixel_and_share(x, left, box_width, size[1])
    row, y_share = _pixel_and_share(y, top, box_height, size[0])
    if matrix is not None:
        places = column, row, x_share, y_share, inside
        return _resample_points(images, *places, outside)
    planes = ops.transpose(images, (3, 0, 2, 1))
    planes = _resample_lines(planes, column[:, 0], x_share[:, 0])
    planes = ops.transpose(planes, (0, 1, 3, 2))
    return _resample_lines(planes, row[..., 0], y_share[..., 0])


def _pixel_and_share(place, first, length, size):
    """Returns the pixel at or before a place in a view, and the next's weight.

    The view's `size` pixels are the image's from `first` on, `length` of them.
    """
    ops = keras.ops
    # A crop and a flip keep the numerator and the rest a multiple of 0.5 and
    # small, hence exact, so that every compiler finds the same weight. The
    # divisor is a little too small, lest a whole number is rounded down.
    numerator = length * place - 0.5 * size
    numerator = ops.clip(numerator, 0.0, (length - 1.0) * size)
    pixel = ops.floor(numerator * ((1.0 + 2.0**-22) / size))
    share = (numerator - pixel * size) * (1.0 / size)
    return pixel + first, share


def _resample_lines(planes, lines, share):
    """Interpolates `(C, B, n, m)` at `lines` `(B, k)`; `(C, B, k, m)`."""
    last = planes.shape[2] - 1
    following = take_lines(planes, keras.ops.minimum(lines + 1.0, last))
    return _between(
        keras.ops.cast(take_lines(planes, lines), "float32"),
        keras.ops.cast(following, "float32"),
        keras.ops.expand_dims(share, -1),
    )


def _resample_points(images, column, row, x_share, y_share, inside, outside):
    """The general case: each pixel of a view lies anywhere in its image."""
    ops = keras.ops
    height, width, channels = images.shape[1:]
    batch = ops.shape(images)[0]
    # A pixel's number within its image is exact in float32 up to 4096 x 4096.
    number = ops.cast(row * width + column, backend.INTEGER)
    start = ops.cast(ops.arange(batch), backend.INTEGER) * (height * width)
    number = number + ops.reshape(start, (-1, 1, 1))
    # What lies outside the frame is taken from behind the pixels, and so is a
    # next row or column that is not there: its share is 0.
    number = ops.where(inside, number, batch * height * width)
    number = ops.reshape(number, (-1,))
    values = ops.reshape(images, (-1,))
    behind = ops.full(((width + 2) * channels,), outside, values.dtype)
    values = ops.concatenate([values, behind])

    def corner(offset):
        rows = ops.reshape(values[offset * channels :], (-1, channels))
        picked = backend.gather_rows(rows, number)
        return to_planes(ops.reshape(picked, (-1, *inside.shape[1:], channels)))

    return _between(
        _between(corner(0), corner(1), x_share),
        _between(corner(width), corner(width + 1), x_share),
        y_share,
    )


def take_lines(planes, lines):
    """Takes rows `lines` `(B, k)` of each example of `(C, B, n, m)`."""
    ops = keras.ops
    channels, _, old, other = planes.shape
    batch = ops.shape(planes)[1]
    first = ops.cast(ops.arange(channels * batch), backend.INTEGER) * old
    lines = ops.cast(lines, backend.INTEGER)
    rows = ops.reshape(first, (channels, -1, 1)) + lines
    return backend.gather_rows(ops.reshape(planes, (-1, other)), rows)


def _between(first, second, share):
    return first + share * (second - first)


def luminance(planes):
    """Returns the grey version, `(B, H, W)`; ITU-R 601, as PIL's "L"."""
    if planes.shape[0] == 1:
        return planes[0]
    return 0.299 * planes[0] + 0.587 * planes[1] + 0.114 * planes[2]


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


def _cells(levels):
    """Places of levels in tables laid end to end, and how many tables."""
    ops = keras.ops
    channels, _, height, width = levels.shape
    tables = ops.shape(levels)[1] * channels
    flat = ops.reshape(levels, (tables, height * width))
    start = 256 * ops.expand_dims(ops.arange(tables, dtype="int32"), 1)
    return flat + start, tables


def look_up(levels, table):
    """Replaces levels `(C, B, H, W)` by `table` `(C, B, 256)`."""
    ops = keras.ops
    channels, _, height, width = levels.shape
    cells, _ = _cells(levels)
    values = backend.gather_rows(ops.reshape(table, (-1,)), cells)
    return ops.reshape(values, (channels, -1, height, width))


def equalize_table(levels):
    """PIL's equalising table of levels, float32 `(C, B, 256)`."""
    ops = keras.ops
    cells, tables = _cells(levels)
    cells = ops.reshape(cells, (-1,))
    counts = ops.segment_sum(
        ops.ones_like(cells), cells, num_segments=256 * tables
    )
    counts = ops.reshape(counts, (levels.shape[0], -1, 256))
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
        return ops.clip(planes * (1.0 + change) - other, 0.0, 255.0)

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
