"""One image file: its head, its pixels, and their one square size."""

import concurrent.futures
import contextlib
import hashlib
import io
import os
import warnings

import numpy as np
import PIL.Image
import PIL.ImageOps

from alim_keras.errors import DataError
from alim_keras.errors import one_line

# Formats that are tried; others (PostScript, say) would run programs.
_FORMATS = "JPEG PNG GIF BMP WEBP TIFF PPM".split()
# The last bytes of a file that was not cut short, in the last so many.
_ENDS, _TAIL = {"JPEG": b"\xff\xd9", "PNG": b"IEND"}, 64
# A JPEG is decoded at an eighth, a quarter or half of its size where that
# leaves at least twice the size wanted; the filter then averages the rest.
_SPARE = 2
_REMEDY = "mend it, or leave its item out"

# Pillow warns of odd files; what fails is an exception.
warnings.filterwarnings("ignore", module=r"PIL\.")


def is_encoded(source):
    """Returns whether an image is encoded bytes, not a path."""
    return isinstance(source, bytes)


def _open_file(source):
    return io.BytesIO(source) if is_encoded(source) else open(source, "rb")


def digest(source):
    """Returns the hash of a path's content, or of encoded bytes."""
    with _open_file(source) as file:
        return hashlib.file_digest(file, "blake2b").digest()


def _open_image(file):
    """Returns the image of an open file; reads its head only."""
    image = PIL.Image.open(file, formats=_FORMATS)
    if image.mode in ("I", "F") and not _has_16_bits(image):
        # Nothing says which value is white there, and images of one data set
        # must not be scaled each by its own values.
        kind = "floats" if image.mode == "F" else "integers of 32 bits"
        raise DataError(
            f"its pixels are {kind}, save it with 8 or 16 bits for each channel"
        )
    return image


def _has_16_bits(image):
    # Pillow opens PNM as 32 bits, once PNG too, and these cannot hold more.
    is_less = image.mode == "I" and image.format in ("PNG", "PPM")
    return is_less or image.mode.startswith("I;16")


def head(source):
    """Returns width and height as stored, and channels: 1 if grey, else 3.

    A file without the end of its format is decoded, which raises if it was
    cut short.
    """
    with _open_file(source) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        tail = file.read()
        file.seek(0)
        image = _open_image(file)
        is_grey = PIL.Image.getmodebase(image.mode) == "L"
        found = (*image.size, 1 if is_grey else 3)
        if _ENDS.get(image.format, b"") not in tail:
            image.load()
    return found


def explain(error):
    """Returns in a few words why an image cannot be read."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    text = one_line(error)
    if isinstance(error, DataError):
        return text
    if isinstance(error, EOFError) or "truncated" in text.lower():
        return "it is cut short"
    if text.startswith("cannot identify"):
        return "it is not an image of a known format"
    return f"it is damaged or cannot be opened: {text}"


def decode(source, size, channels=3, name=None, whole=False):
    """Returns an image file's pixels, brought to one square size.

    Grey, palette, CMYK and YCbCr images are converted, transparent ones laid
    on white, 16-bit ones shifted to 8 bits, images turned as their EXIF
    orientation says; of an animation it is the first frame. Floats and
    integers of 32 bits are refused.

    Args:
        source: Path, or the encoded bytes.
        size: Integer, the side of the result; see `square`.
        channels: 1 or 3. Defaults to `3`.
        name: String, its name in messages. Defaults to the path.
        whole: Whether the whole image is returned, not enlarged, its longer
            side at most `size`; else its middle square. Defaults to `False`.

    Returns:
        uint8 `(size, size, channels)`, or `(H, W, channels)` of a whole one.

    Raises:
        DataError: It cannot be read; names the file and the reason.
    """
    try:
        with _open_file(source) as file, _open_image(file) as image:
            image.draft(None, (_SPARE * size, _SPARE * size))
            image.load()
            # Damaged EXIF is no reason to refuse the pixels.
            with contextlib.suppress(Exception):
                PIL.ImageOps.exif_transpose(image, in_place=True)
            image = _plain(image, "L" if channels == 1 else "RGB")
            if not whole:
                return square(image, size)
            image.thumbnail((size, size))
            return np.asarray(image).reshape(*image.size[::-1], -1)
    except Exception as error:
        # Damaged files make Pillow raise nearly everything.
        if name is None:
            name = "an encoded image" if is_encoded(source) else source
        raise DataError(
            f"{name}: cannot be read as an image: {explain(error)}; {_REMEDY}"
        ) from error


def _plain(image, mode):
    """Returns the image in mode "L" or "RGB"."""
    if _has_16_bits(image):
        # They lose the lower eight.
        levels = (np.asarray(image) >> 8).astype(np.uint8)
        image = PIL.Image.fromarray(levels)
    if image.has_transparency_data:
        white = PIL.Image.new("RGBA", image.size, "white")
        white.alpha_composite(image.convert("RGBA"))
        image = white
    return image.convert(mode)


def square(image, image_size):
    """Returns the middle square of an image, uint8 with channels, scaled.

    The filter is bilinear, and widened on shrinking.
    """
    bilinear = PIL.Image.Resampling.BILINEAR
    image = PIL.ImageOps.fit(image, (image_size, image_size), bilinear)
    pixels = np.asarray(image)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def resize_all(images, image_size):
    """Returns a list or array of images, brought to one size if given."""
    if image_size is None:
        return images

    def resize(pixels):
        if pixels.shape[:2] == (image_size, image_size):
            return pixels
        flat = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
        return square(PIL.Image.fromarray(flat), image_size)

    # Pillow works outside Python's global lock.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return np.stack(list(pool.map(resize, images)))
