"""Pixel operations on a batch of images, with a strength per example.

Every function takes images `(B, H, W, C)` of any dtype with values in
[0, 255] and C of 1 or 3, and a magnitude per example `(B,)`; it returns
float32 images of the same shape. They follow `PIL.ImageOps`,
`PIL.ImageEnhance` and torchvision, without rounding to 8 bits in between.
"""

import keras

from alim_keras.augment import jitter
from alim_keras.augment import planes as planes_lib


def _blend(images, factor, contrast=False, color=False):
    planes = planes_lib.to_planes(images)
    change = keras.ops.cast(factor, "float32") - 1.0
    return planes_lib.from_planes(
        jitter.blend_planes(planes, change, float(contrast), float(color))
    )


def _look_up(images, make_table):
    pixels = planes_lib.levels(planes_lib.to_planes(images))
    table = make_table(pixels)
    if len(table.shape) == 2:
        shape = keras.ops.shape(pixels)[:2] + (256,)
        table = keras.ops.broadcast_to(keras.ops.expand_dims(table, 0), shape)
    return planes_lib.from_planes(planes_lib.look_up(pixels, table))


def brightness(images, factor):
    """Blends with black: `clip(factor * images)`.

    Args:
        images: Tensor `(B, H, W, C)` in [0, 255].
        factor: Tensor `(B,)`. 0 is black, 1 leaves the image as it is.

    Returns:
        Float32 tensor `(B, H, W, C)`.

    Example:

    >>> images = np.full((1, 2, 2, 1), 100.0)
    >>> float(alim_keras.augment.brightness(images, [0.5])[0, 0, 0, 0])
    50.0
    """
    return _blend(images, factor)


def contrast(images, factor):
    """Blends with the mean of the luminance; arguments as `brightness`."""
    return _blend(images, factor, contrast=True)


def color(images, factor):
    """Blends with the luminance: PIL's Color, torchvision's saturation.

    Arguments as `brightness`. One channel is left as it is.
    """
    if images.shape[-1] == 1:
        return keras.ops.cast(images, "float32")
    return _blend(images, factor, color=True)


def hue(images, turns):
    """Turns the hue on the HSV circle.

    Args:
        images: Tensor `(B, H, W, C)` in [0, 255]. One channel is left as it
            is.
        turns: Tensor `(B,)`, in whole turns: 0.5 gives the opposite colour.

    Returns:
        Float32 tensor `(B, H, W, C)`.
    """
    if images.shape[-1] == 1:
        return keras.ops.cast(images, "float32")
    planes = planes_lib.to_planes(images)
    turns = planes_lib.per_image(turns)
    return planes_lib.from_planes(planes_lib.shift_hue(planes, turns))


def grayscale(images):
    """Replaces every channel by the luminance 0.299 R + 0.587 G + 0.114 B."""
    if images.shape[-1] == 1:
        return keras.ops.cast(images, "float32")
    planes = planes_lib.to_planes(images)
    gray = keras.ops.expand_dims(planes_lib.luminance(planes), -1)
    return keras.ops.repeat(gray, 3, axis=-1)


def sharpness(images, factor):
    """Blends with PIL's SMOOTH filter; arguments as `brightness`.

    The outermost pixels are not smoothed, as in PIL.
    """
    planes = planes_lib.to_planes(images)
    away = planes_lib.per_image(factor) - 1.0
    blurred = planes - away * (1.0 / 13.0) * planes_lib.smoothing(planes)
    return planes_lib.from_planes(planes_lib.clip(blurred))


def autocontrast(images):
    """Stretches each channel of each image to [0, 255].

    A channel whose values span less than one level is left as it is.

    Args:
        images: Tensor `(B, H, W, C)` in [0, 255].

    Returns:
        Float32 tensor `(B, H, W, C)`.
    """
    planes = planes_lib.to_planes(images)
    scale, offset = planes_lib.stretch(planes)
    return planes_lib.from_planes(planes_lib.clip(planes * scale + offset))


def equalize(images):
    """Equalises the histogram of 256 levels of each channel of each image.

    As in PIL, a channel with fewer than 255 pixels outside its brightest
    level (every 8x8 image) is left as it is, but for rounding to levels.

    Args:
        images: Tensor `(B, H, W, C)` in [0, 255], rounded to whole levels.

    Returns:
        Float32 tensor `(B, H, W, C)` of whole numbers.
    """
    return _look_up(images, planes_lib.equalize_table)


def posterize(images, bits):
    """Keeps the highest bits of each level.

    Args:
        images: Tensor `(B, H, W, C)` in [0, 255], rounded to whole levels.
        bits: Integer tensor `(B,)`, 1 to 8.

    Returns:
        Float32 tensor `(B, H, W, C)` of whole numbers.
    """
    return _look_up(images, lambda _: planes_lib.posterize_table(bits))


def solarize(images, threshold):
    """Inverts the levels from `threshold` on.

    Args:
        images: Tensor `(B, H, W, C)` in [0, 255], rounded to whole levels.
        threshold: Tensor `(B,)` in [0, 256]; 256 changes nothing.

    Returns:
        Float32 tensor `(B, H, W, C)` of whole numbers.
    """
    return _look_up(images, lambda _: planes_lib.solarize_table(threshold))
