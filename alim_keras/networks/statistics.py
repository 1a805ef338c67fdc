"""Features without any weights: colours and edges of a photo."""

import math

import keras
from keras import ops

# The side in pixels that images are brought to, and of a cell of edges.
SIDE, _CELL = 64, 8
# Brightness is told apart in so many steps a channel, edges in so many angles.
_SHADES, _ANGLES = 4, 9


@keras.saving.register_keras_serializable(package="alim_keras")
class ImageStatistics(keras.layers.Layer):
    """Pixels `(B, 64, 64, 3)` in [0, 255] to `(B, 832)` simple features.

    The image at 8 x 8 pixels; the root of the histogram of its colours, 4 x 4
    x 4 of them; and a histogram of nine angles of edges in each of 8 x 8 cells.
    The three parts are of about the same length, once their mean is taken off.

    Example:

    >>> layer = alim_keras.networks.ImageStatistics()
    >>> layer(np.zeros((2, 64, 64, 3))).shape
    (2, 832)

    Reference:
    - [Dalal and Triggs, 2005](https://doi.org/10.1109/CVPR.2005.177)
    """

    def call(self, inputs):
        pixels = ops.cast(inputs, "float32") / 255.0
        parts = (_cells(pixels) / 2.9, _colours(pixels) / 0.69)
        parts += (_edges(ops.mean(pixels, axis=-1)) / 4.9,)
        return ops.concatenate(parts, axis=1)


def _cells(maps):
    """Returns the mean of each cell, `(B, 64, 64, k)` to `(B, 64 * k)`."""
    means = ops.average_pool(maps, _CELL, _CELL)
    return ops.reshape(means, (-1, math.prod(means.shape[1:])))


def _colours(pixels):
    shades = ops.floor(ops.minimum(pixels, 0.999) * _SHADES)
    places = ops.sum(shades * [_SHADES**2, _SHADES, 1.0], axis=-1)
    each = ops.one_hot(ops.cast(places, "int32"), _SHADES**3)
    return ops.sqrt(ops.mean(each, axis=(1, 2)))


def _edges(grey):
    across = ops.pad(grey[:, :, 2:] - grey[:, :, :-2], ((0, 0), (0, 0), (1, 1)))
    down = ops.pad(grey[:, 2:] - grey[:, :-2], ((0, 0), (1, 1), (0, 0)))
    strength = ops.sqrt(across**2 + down**2 + 1e-12)
    # An angle counts for the two nearest of nine, all round.
    angle = ops.mod(ops.arctan2(down, across), math.pi) * (_ANGLES / math.pi)
    distance = ops.abs(angle[..., None] - ops.arange(_ANGLES, dtype="float32"))
    distance = ops.minimum(distance, _ANGLES - distance)
    maps = strength[..., None] * ops.maximum(1.0 - distance, 0.0)
    cells = ops.average_pool(maps, _CELL, _CELL) * _CELL**2
    length = ops.sqrt(ops.sum(cells**2, axis=-1, keepdims=True) + 1e-3)
    return ops.reshape(cells / length, (-1, math.prod(cells.shape[1:])))


def image_statistics(size=SIDE, name="image_statistics"):
    """Returns `ImageStatistics` as a network without weights.

    Args:
        size: Integer, the side of the images; 64 is what it was made for, and
            others are resized.
        name: String.

    Returns:
        A `keras.Model`, `(B, size, size, 3)` pixels in `[0, 255]` to
        `(B, 832)` features.

    Example:

    >>> alim_keras.networks.image_statistics().output_shape
    (None, 832)
    """
    inputs = keras.Input((size, size, 3), name="pixels")
    x = inputs
    if size != SIDE:
        x = keras.layers.Resizing(SIDE, SIDE, antialias=True)(x)
    return keras.Model(inputs, ImageStatistics()(x), name=name)
