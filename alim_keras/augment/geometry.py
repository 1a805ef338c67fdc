"""Where a pixel of a view comes from: crop, flip and affine maps.

Positions are continuous: the frame of an image covers `[0, W] x [0, H]` and
the centre of pixel `(row, column)` is `(column + 0.5, row + 0.5)`, as in PIL
and in `torch.nn.functional.interpolate(align_corners=False)`.
An affine map is six numbers `(a, b, c, d, e, f)` that send a position in the
result to `(a x + b y + c, d x + e y + f)` in the source, PIL's convention.
"""

import math

import keras

from alim_keras import backend
from alim_keras.augment import pixels

# Random numbers that one crop needs, and the candidates it tries.
CROP_TRIES = 10
CROP_DRAWS = 2 * CROP_TRIES + 2
# Smallest and largest width over height of a crop.
_RATIO = (3 / 4, 4 / 3)


def random_boxes(draws, size, scale):
    """RandomResizedCrop of torchvision of draws `(B, CROP_DRAWS)` in [0, 1).

    Ten candidates (area uniform in `scale`, width over height log-uniform from
    3/4 to 4/3, sides rounded) are drawn at once; the first that fits into the
    image is taken, else the largest centred crop with an allowed ratio.
    Returns left, top, width and height, whole float32 numbers `(B, 4)`.
    """
    ops = keras.ops
    height, width = size
    area = scale[0] + (scale[1] - scale[0]) * draws[:, :CROP_TRIES]
    root = ops.sqrt(area * float(height * width))
    low, high = (0.5 * math.log(value) for value in _RATIO)
    stretch = ops.exp(low + (high - low) * draws[:, CROP_TRIES:-2])
    # The largest box with an allowed ratio is the last candidate.
    last = ops.zeros_like(root[:, :1])

    def candidates(drawn, largest):
        return ops.concatenate([ops.round(drawn), last + largest], axis=1)

    widths = candidates(root * stretch, min(width, round(height * _RATIO[1])))
    heights = candidates(root / stretch, min(height, round(width / _RATIO[0])))
    fits = (widths > 0) & (widths <= width)
    fits = fits & (heights > 0) & (heights <= height)
    first = ops.argmax(ops.cast(fits, "int32"), axis=1)
    chosen = ops.one_hot(first, CROP_TRIES + 1, dtype="float32")
    box_width = ops.sum(chosen * widths, axis=1)
    box_height = ops.sum(chosen * heights, axis=1)
    centred = ops.equal(first, CROP_TRIES)

    def start(free, drawn):
        drawn = ops.floor(drawn * (free + 1.0))
        return ops.where(centred, ops.floor(free * 0.5), drawn)

    left = start(width - box_width, draws[:, -2])
    top = start(height - box_height, draws[:, -1])
    return ops.stack([left, top, box_width, box_height], axis=1)


def compose(outer, inner):
    """The affine map `(B, 6)` that applies `inner` `(B, 6)`, then `outer`."""
    ops = keras.ops
    a, b, c, d, e, f = ops.unstack(outer, axis=1)
    g, h, i, j, k, m = ops.unstack(inner, axis=1)
    return ops.stack(
        [
            a * g + b * j,
            a * h + b * k,
            a * i + b * m + c,
            d * g + e * j,
            d * h + e * k,
            d * i + e * m + f,
        ],
        axis=1,
    )


def resample(images, image_size=None, box=None, flip=None, matrix=None):
    """Crops, resizes, mirrors and maps images in one bilinear resampling.

    The crop is resized to `image_size`, mirrored where `flip` says so, then
    mapped by `matrix`, as if these were three steps; but each pixel of the
    result is interpolated once, from the given pixels. A pixel that `matrix`
    takes outside the frame is black. The crop never looks beyond its border.
    There is no antialiasing. Without any change the result equals the input.

    Args:
        images: Tensor `(B, h, w, C)`, any dtype, values in [0, 255].
        image_size: Height and width of the result, or None: as `images`.
        box: Crops `(B, 4)`, see `random_boxes`, or None: the whole image.
        flip: Boolean tensor `(B,)`, which images to mirror, or None.
        matrix: Affine maps `(B, 6)` of the resized crop, or None.

    Returns:
        Float32 planes `(C, B, H, W)`.
    """
    ops = keras.ops
    images = ops.convert_to_tensor(images)
    height, width = images.shape[1:3]
    size = tuple(image_size or (height, width))
    if size == (height, width) and box is flip is matrix is None:
        return pixels.to_planes(images)
    batch = ops.shape(images)[0]
    if box is None:
        whole = ops.convert_to_tensor([[0.0, 0.0, width, height]], "float32")
        box = ops.tile(whole, (batch, 1))
    left, top, box_width, box_height = ops.unstack(
        ops.cast(box, "float32"), axis=1
    )
    # A place x of the view is `(slope x + start) / columns` pixels into the
    # crop, and its upper neighbour is one pixel further.
    slope, start = box_width, ops.zeros_like(box_width)
    down = (box_height, start - 0.5 * size[0], box_height, top, size[0])
    if flip is not None:
        mirrored = ops.cast(flip, "float32") > 0
        slope = ops.where(mirrored, -box_width, box_width)
        start = ops.where(mirrored, size[1] * box_width, 0.0)
    across = (slope, start - 0.5 * size[1], box_width, left, size[1])
    if matrix is not None:
        return _resample_points(images, across, down, matrix)
    planes = ops.transpose(images, (3, 0, 2, 1))
    planes = _resample_axis(planes, *across)
    return _resample_axis(ops.transpose(planes, (0, 1, 3, 2)), *down)


def _centres(size):
    return keras.ops.arange(size, dtype="float32") + 0.5


def _resample_axis(planes, slope, start, length, first, size):
    """Interpolates `(C, B, n, m)` along n, float32 `(C, B, size, m)`."""
    ops = keras.ops
    last = planes.shape[2] - 1
    slope, start, length, first = (
        ops.expand_dims(each, 1) for each in (slope, start, length, first)
    )
    place = slope * _centres(size) + start
    pixel, share = _pixel_and_share(place, length, size)
    pixel = ops.cast(pixel + first, backend.INTEGER)
    lines = take_lines(planes, pixel)
    following = take_lines(planes, ops.minimum(pixel + 1, last))
    return _between(
        ops.cast(lines, "float32"),
        ops.cast(following, "float32"),
        ops.expand_dims(share, -1),
    )


def _resample_points(images, across, down, matrix):
    """The general case: each pixel of a view lies anywhere in its image."""
    ops = keras.ops
    height, width, channels = images.shape[1:]
    batch = ops.shape(images)[0]
    per_image = pixels.per_image
    a, b, c, d, e, f = ops.unstack(ops.cast(matrix, "float32"), axis=1)
    x = ops.reshape(_centres(across[-1]), (1, 1, -1))
    y = ops.reshape(_centres(down[-1]), (1, -1, 1))

    def place(weight_x, weight_y, offset, axis):
        slope, start, length, _, size = axis
        position = per_image(slope * weight_x) * x + (
            per_image(slope * weight_y) * y + per_image(slope * offset + start)
        )
        length = per_image(length)
        low, high = -0.5 * size, length * size - 0.5 * size
        inside = (position >= low) & (position < high)
        return *_pixel_and_share(position, length, size), inside

    column, x_share, in_width = place(a, b, c, across)
    row, y_share, in_height = place(d, e, f, down)
    # A pixel's number within its image is exact in float32 up to 4096 x 4096.
    number = ops.cast(row * width + column, backend.INTEGER)
    start = ops.cast(ops.arange(batch), backend.INTEGER) * (height * width)
    start = start + ops.cast(down[3] * width + across[3], backend.INTEGER)
    number = number + ops.reshape(start, (-1, 1, 1))
    # What lies outside the frame is taken from the black behind the pixels.
    # There may be no next row or column, but then its share is 0.
    number = ops.where(in_width & in_height, number, batch * height * width)
    values = ops.reshape(images, (-1,))
    black = ops.zeros(((width + 2) * channels,), values.dtype)
    values = ops.concatenate([values, black])
    number = ops.reshape(number, (-1,))

    def corner(offset):
        rows = ops.reshape(values[offset * channels :], (-1, channels))
        picked = backend.take_rows(rows, number)
        shape = (-1, down[-1], across[-1], channels)
        return pixels.to_planes(ops.reshape(picked, shape))

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
    return backend.take_rows(ops.reshape(planes, (-1, other)), rows)


def inside_frame(matrix, size):
    """Which pixels affine maps `(B, 6)` leave within the frame, `(B, H, W)`."""
    ops = keras.ops
    height, width = size
    a, b, c, d, e, f = map(pixels.per_image, ops.unstack(matrix, axis=1))
    x = ops.reshape(_centres(width), (1, 1, -1))
    y = ops.reshape(_centres(height), (1, -1, 1))
    column, row = a * x + b * y + c, d * x + e * y + f
    across = (column >= 0.0) & (column < width)
    return across & (row >= 0.0) & (row < height)


def _between(first, second, share):
    return first + share * (second - first)


def _pixel_and_share(numerator, length, size):
    """Splits `numerator / size` into a crop's pixel and the next one's weight.

    The numerator is clipped to the crop's `length` pixels.
    """
    ops = keras.ops
    # A crop and a flip keep the numerator and the rest a multiple of 0.5 and
    # small, hence exact, so that every compiler finds the same weight. The
    # divisor is a little too small, lest a whole number is rounded down.
    numerator = ops.clip(numerator, 0.0, (length - 1.0) * size)
    pixel = ops.floor(numerator * ((1.0 + 2.0**-22) / size))
    return pixel, (numerator - pixel * size) * (1.0 / size)
