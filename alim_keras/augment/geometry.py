"""Where a pixel of a view comes from: crop, flip and affine maps.

Positions are continuous: the frame of an image covers `[0, W] x [0, H]` and
the centre of pixel `(row, column)` is `(column + 0.5, row + 0.5)`, as in PIL
and in `torch.nn.functional.interpolate(align_corners=False)`.
An affine map is six numbers `(a, b, c, d, e, f)` that send a position in the
result to `(a x + b y + c, d x + e y + f)` in the source, PIL's convention.
"""

import math

import keras

from alim_keras.augment import planes as planes_lib

# TensorFlow computes int32 tensors on the host even when it has a GPU; JAX
# has no int64 unless told to.
_INDEX = "int32" if keras.backend.backend() == "jax" else "int64"

# Random numbers that one crop needs, and the candidates it tries.
CROP_TRIES = 10
CROP_DRAWS = 2 * CROP_TRIES + 2


def random_boxes(draws, size, scale=(0.2, 1.0), ratio=(3 / 4, 4 / 3)):
    """Draws the crop of every example: torchvision's RandomResizedCrop.

    Ten candidates (area uniform in `scale`, aspect ratio log-uniform in
    `ratio`, sides rounded) are drawn at once; the first that fits into the
    image is taken, else the largest centred crop with an allowed ratio.

    Args:
        draws: Float tensor `(B, CROP_DRAWS)`, uniform in [0, 1).
        size: Pair of integers `(height, width)`, the images' size in pixels.
        scale: Pair of floats in (0, 1], the crop's area as share of the
            image's.
        ratio: Pair of positive floats, width over height.

    Returns:
        Float32 tensor `(B, 4)` of whole numbers: left, top, width, height.

    Reference:
    - [Szegedy et al., 2014](https://arxiv.org/abs/1409.4842)
    """
    ops = keras.ops
    height, width = size
    area = scale[0] + (scale[1] - scale[0]) * draws[:, :CROP_TRIES]
    root = ops.sqrt(area * float(height * width))
    low, high = (0.5 * math.log(value) for value in ratio)
    stretch = ops.exp(low + (high - low) * draws[:, CROP_TRIES:-2])
    fallback = _largest_box(height, width, ratio)
    last = ops.zeros_like(root[:, :1])
    widths = ops.concatenate(
        [ops.round(root * stretch), last + fallback[0]], axis=1
    )
    heights = ops.concatenate(
        [ops.round(root / stretch), last + fallback[1]], axis=1
    )
    fits = (widths > 0) & (widths <= width)
    fits = fits & (heights > 0) & (heights <= height)
    first = ops.argmax(ops.cast(fits, "int32"), axis=1)
    chosen = ops.one_hot(first, CROP_TRIES + 1, dtype="float32")
    box_width = ops.sum(chosen * widths, axis=1)
    box_height = ops.sum(chosen * heights, axis=1)
    free_x, free_y = width - box_width, height - box_height
    centred = ops.equal(first, CROP_TRIES)
    left = ops.where(
        centred,
        ops.floor(free_x * 0.5),
        ops.floor(draws[:, -2] * (free_x + 1.0)),
    )
    top = ops.where(
        centred,
        ops.floor(free_y * 0.5),
        ops.floor(draws[:, -1] * (free_y + 1.0)),
    )
    return ops.stack([left, top, box_width, box_height], axis=1)


def _largest_box(height, width, ratio):
    """Width and height of the largest box with a ratio within `ratio`."""
    if width / height < ratio[0]:
        return width, min(height, round(width / ratio[0]))
    if width / height > ratio[1]:
        return min(width, round(height * ratio[1])), height
    return width, height


def compose(outer, inner):
    """The affine map that applies `inner` to a position, then `outer`.

    Args:
        outer: Float tensor `(B, 6)`.
        inner: Float tensor `(B, 6)`.

    Returns:
        Float tensor `(B, 6)`.
    """
    a, b, c, d, e, f = (outer[:, n] for n in range(6))
    g, h, i, j, k, m = (inner[:, n] for n in range(6))
    return keras.ops.stack(
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
    There is no antialiasing. Without any change the result equals the input
    exactly.

    Args:
        images: Tensor `(B, h, w, C)`, any dtype, values in [0, 255].
        image_size: Pair of integers, height and width of the result in
            pixels. Defaults to `None`, the size of `images`.
        box: Float tensor `(B, 4)` of whole numbers: left, top, width, height
            of the crop, in pixels. Defaults to `None`, the whole image.
        flip: Boolean tensor `(B,)`, which images to mirror. Defaults to
            `None`, no image.
        matrix: Float tensor `(B, 6)`, affine maps of the resized crop.
            Defaults to `None`, the identity.

    Returns:
        Float32 tensor `(B, H, W, C)`.

    Example:

    >>> box = np.array([[8.0, 8.0, 16.0, 16.0]])
    >>> alim_keras.augment.resample(np.zeros((1, 32, 32, 3)), box=box).shape
    (1, 32, 32, 3)
    """
    return planes_lib.from_planes(
        resample_planes(images, image_size, box, flip, matrix)
    )


def resample_planes(images, image_size=None, box=None, flip=None, matrix=None):
    """`resample` with the result as planes `(C, B, H, W)`."""
    ops = keras.ops
    images = ops.convert_to_tensor(images)
    height, width = images.shape[1:3]
    rows, columns = image_size or (height, width)
    if (rows, columns) == (height, width) and box is flip is matrix is None:
        return planes_lib.to_planes(images)
    x = ops.reshape(ops.arange(columns, dtype="float32") + 0.5, (1, 1, -1))
    y = ops.reshape(ops.arange(rows, dtype="float32") + 0.5, (1, -1, 1))
    inside = None
    if matrix is not None:
        a, b, c, d, e, f = (
            planes_lib.per_image(matrix[:, n]) for n in range(6)
        )
        x, y = a * x + b * y + c, d * x + e * y + f
        inside = (x >= 0) & (x < columns) & (y >= 0) & (y < rows)
        x, y = ops.clip(x, 0.0, columns), ops.clip(y, 0.0, rows)
    if flip is not None:
        x = ops.where(planes_lib.per_image(flip) > 0, columns - x, x)
    if box is None:
        left, top, box_width, box_height = 0.0, 0.0, width, height
    else:
        left, top, box_width, box_height = (
            planes_lib.per_image(box[:, n]) for n in range(4)
        )
    x, x_share = _place(x, columns, box_width)
    y, y_share = _place(y, rows, box_height)
    corners = _corners(images, y + top, x + left)
    upper = corners[0] + x_share * (corners[1] - corners[0])
    lower = corners[2] + x_share * (corners[3] - corners[2])
    planes = upper + y_share * (lower - upper)
    if inside is None:
        return planes
    return planes * ops.cast(inside, "float32")


def _place(position, size, length):
    """Finds positions of a frame of `size` pixels in a crop of `length`.

    Returns:
        The pixel of the crop at or before the position, and the weight of
        the pixel after it.
    """
    ops = keras.ops
    # The place is numerator / size. A crop and a flip keep the numerator and
    # the rest below a multiple of 0.5 and small, hence exact, so that every
    # compiler, whatever it does to the division, finds the same weight.
    numerator = position * length - 0.5 * size
    numerator = ops.clip(numerator, 0.0, (length - 1.0) * size)
    pixel = ops.floor(numerator * (1.0 / size))
    rest = numerator - pixel * size
    late = ops.cast(rest >= size, "float32")
    return pixel + late, (rest - late * size) * (1.0 / size)


def _corners(images, y, x):
    """The four pixels at and after `(y, x)`, a list of planes."""
    ops = keras.ops
    height, width, channels = images.shape[1:]
    batch = ops.shape(images)[0]
    pixels = ops.reshape(images, (-1, channels))
    start = ops.cast(ops.arange(batch, dtype="int32"), _INDEX)
    start = ops.reshape(start * (height * width), (-1, 1, 1))
    x_next = ops.cast(ops.minimum(x + 1.0, width - 1.0), _INDEX)
    y_next = ops.cast(ops.minimum(y + 1.0, height - 1.0), _INDEX)
    x, y = ops.cast(x, _INDEX), ops.cast(y, _INDEX)
    this_row, next_row = start + y * width, start + y_next * width
    return [
        planes_lib.to_planes(ops.take(pixels, row + column, axis=0))
        for row in (this_row, next_row)
        for column in (x, x_next)
    ]
