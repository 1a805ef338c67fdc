"""Bringing images of any size to one square size."""

import concurrent.futures
import io
import itertools

import numpy as np

from alim_keras.errors import ConfigError
from alim_keras.errors import EnvironmentLacksError


def pillow():
    """Returns the module `PIL.Image`, or says how to install it."""
    try:
        import PIL.Image
    except ImportError as error:
        raise EnvironmentLacksError(
            "Decoding and resizing images needs Pillow: pip install Pillow"
        ) from error
    return PIL.Image


def check_size(image_size):
    """Returns `image_size` if it is None or a whole number of at least 1."""
    if image_size is None:
        return None
    if isinstance(image_size, bool) or int(image_size) != image_size:
        image_size_ok = False
    else:
        image_size_ok = image_size >= 1
    if not image_size_ok:
        raise ConfigError(
            "`image_size` must be a whole number of at least 1. "
            f"Received: image_size={image_size!r}"
        )
    return int(image_size)


def decode(content, image_size, channels=3):
    """Returns the pixels of an image file, brought to one square size.

    Args:
        content: Bytes of a JPEG, PNG or other file that Pillow reads.
        image_size: Integer, see `square`.
        channels: 1 or 3; other kinds of image are converted.

    Returns:
        uint8 `(image_size, image_size, channels)`.
    """
    with pillow().open(io.BytesIO(content)) as image:
        image = image.convert("L" if channels == 1 else "RGB")
        return square(image, image_size)


def scaled_size(size, image_size):
    """Returns (width, height) with the shorter side scaled to `image_size`."""
    scale = image_size / min(size)
    return tuple(max(image_size, round(side * scale)) for side in size)


def square(image, image_size, full_size=None):
    """Returns the middle square of an image, scaled to `image_size`.

    The shorter side is scaled to `image_size` (bilinear, with the filter
    widened on shrinking) and the middle of the longer side is kept.

    Args:
        image: A `PIL.Image.Image` of mode "L" or "RGB".
        image_size: Integer.
        full_size: Pair (width, height) to reckon with where the image was
            made smaller already. Defaults to its own.

    Returns:
        uint8 `(image_size, image_size, channels)`.
    """
    size = scaled_size(full_size or image.size, image_size)
    if size != image.size:
        image = image.resize(size, pillow().Resampling.BILINEAR)
    left, top = (size[0] - image_size) // 2, (size[1] - image_size) // 2
    image = image.crop((left, top, left + image_size, top + image_size))
    pixels = np.asarray(image, np.uint8)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def resize_array(pixels, image_size):
    """Returns one uint8 array `(height, width, channels)`, made square."""
    if pixels.shape[:2] == (image_size, image_size):
        return pixels
    flat = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
    return square(pillow().fromarray(flat), image_size)


def resize_all(images, image_size):
    """Returns images brought to one square size, on all processors.

    Args:
        images: uint8 `(n, height, width, channels)`, or a list of arrays
            `(height, width, channels)` of different sizes.
        image_size: Integer, or None to leave an array as it is.

    Returns:
        uint8 `(n, image_size, image_size, channels)`.
    """
    if image_size is None:
        return images
    if getattr(images, "shape", ())[1:3] == (image_size, image_size):
        return images
    # Pillow works outside Python's global lock.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        sizes = itertools.repeat(image_size)
        return np.stack(list(pool.map(resize_array, images, sizes)))
