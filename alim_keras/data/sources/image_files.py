"""Decoding image files of any size and kind to one form."""

import os

import numpy as np

from alim_keras.data.sources import header_worker
from alim_keras.data.sources import resize
from alim_keras.errors import DataError

# A JPEG is decoded at an eighth, a quarter or half of its size where that
# leaves at least twice the size wanted; the filter then averages the rest.
_SPARE = 2


# What a message about one image ends with.
_REMEDY = "replace it or leave it out"


def decode(source, size, channels=3, name=None, enlarge=True, remedy=_REMEDY):
    """Returns an image file's pixels, brought to one square size.

    Grey, palette, CMYK and YCbCr images are converted, transparent ones laid
    on white, 16-bit ones shifted to 8 bits, images turned as their EXIF
    orientation says; of an animation it is the first frame. Floats and
    integers of 32 bits are refused.

    Args:
        source: Path, or the encoded bytes.
        size: Integer, the side of the result; see `resize.square`: the
            shorter side is scaled to it, the middle of the longer one kept.
        channels: 1 or 3. Defaults to `3`.
        name: String, what to call it in messages. Defaults to the path.
        enlarge: Whether an image whose shorter side is below `size` is
            enlarged; else that side is kept. Defaults to `True`.
        remedy: String, what a message ends with.

    Returns:
        uint8 `(size, size, channels)`.

    Raises:
        DataError: The file is missing, empty, cut short or no image. It
            names the file and says why.

    Example:

    >>> decode("photos/cat.jpg", 224).shape
    (224, 224, 3)
    """
    resize.pillow()
    header_worker.hush()
    try:
        with header_worker.open_source(source) as file:
            with header_worker.open_image(file) as image:
                if not enlarge:
                    size = min(size, *image.size)
                return _pixels(image, size, channels)
    except MemoryError:
        raise
    except Exception as error:
        # Damaged files make Pillow raise nearly everything.
        if name is None:
            is_path = isinstance(source, str | os.PathLike)
            name = os.fspath(source) if is_path else "an encoded image"
        raise unreadable(name, error, remedy) from error


def unreadable(name, error, remedy=_REMEDY):
    """Returns the `DataError` about an image that an error was about."""
    return DataError(
        f"{name}: cannot be read as an image: {header_worker.explain(error)}; "
        f"{remedy}"
    )


def reason(error):
    """Returns why an image cannot be read, from what reading it raised."""
    cause = error.__cause__
    # One that is not from `unreadable` says it itself.
    known = cause is not None and header_worker.explain(cause)
    return known if known and known in str(error) else str(error)


def _pixels(image, size, channels):
    full = image.size
    if image.format in ("JPEG", "MPO"):
        wanted = resize.scaled_size(full, size)
        image.draft(None, tuple(_SPARE * side for side in wanted))
        is_smaller = image.size != full
    else:
        is_smaller = False
    image.load()
    if not is_smaller:
        # A TIFF is turned as it is loaded.
        full = image.size
    turn = header_worker.orientation(image)
    image = _plain(image, channels)
    if turn > 1:
        image = image.transpose(_transposes()[turn])
        full = full[::-1] if turn > 4 else full
    return resize.square(image, size, full)


def _transposes():
    """What shows an image as its EXIF orientation means it."""
    kinds = resize.pillow().Transpose
    return {
        2: kinds.FLIP_LEFT_RIGHT,
        3: kinds.ROTATE_180,
        4: kinds.FLIP_TOP_BOTTOM,
        5: kinds.TRANSPOSE,
        6: kinds.ROTATE_270,
        7: kinds.TRANSVERSE,
        8: kinds.ROTATE_90,
    }


def _plain(image, channels):
    """Returns the image in mode "L" or "RGB"."""
    mode = "L" if channels == 1 else "RGB"
    if image.mode == mode and "transparency" not in image.info:
        return image
    if header_worker.has_16_bits(image):
        # They lose the lower eight.
        levels = (np.asarray(image).astype(np.int64) >> 8).clip(0, 255)
        levels = levels.astype(np.uint8)
        return resize.pillow().fromarray(levels).convert(mode)
    if image.mode in ("La", "RGBa"):
        image = image.convert("LA" if image.mode == "La" else "RGBA")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = resize.pillow().new("RGBA", image.size, "white")
        white.alpha_composite(image)
        image = white.convert("RGB")
    return image.convert(mode)
