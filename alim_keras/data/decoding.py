"""One image file: its head, its pixels, and their one square size."""

import concurrent.futures
import functools
import io
import os
import stat
import warnings

import numpy as np

from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError
from alim_keras.errors import one_line

# Formats that are tried; others (PostScript, say) would run programs.
_FORMATS = "JPEG PNG GIF BMP WEBP TIFF PPM JPEG2000 AVIF".split()
_GREY = "1 L LA La F I I;16 I;16L I;16B I;16N".split()
_COLOUR = "P PA RGB RGBA RGBa RGBX CMYK YCbCr HSV".split()
_ORIENTATION = 0x0112
# The last bytes of a file that was not cut short, in the last so many.
_ENDS, _TAIL = {"JPEG": b"\xff\xd9", "PNG": b"IEND"}, 64
# A JPEG is decoded at an eighth, a quarter or half of its size where that
# leaves at least twice the size wanted; the filter then averages the rest.
_SPARE = 2
# An image whose longer side is so many times the shorter one is cropped to the
# middle before it is scaled: 60,000 x 1 pixels would else take gigabytes.
_LONG, _MARGIN = 8, 3
_REMEDY = "mend it, or leave its item out"


class _UnreadableError(Exception):
    """An image that Pillow opens but that cannot be used; gives the reason."""


@functools.cache
def pillow():
    """Returns the module `PIL.Image`, or raises how to install it."""
    try:
        import PIL.Image
    except ImportError as error:
        raise EnvironmentLacksError(
            "Decoding and resizing images needs Pillow: pip install Pillow"
        ) from error
    PIL.Image.init()
    # Its warnings are about odd files; what fails is an exception. The filter
    # stays: one taken back after each image is not safe among threads.
    warnings.filterwarnings("ignore", module=r"PIL\.")
    return PIL.Image


def is_encoded(source):
    """Returns whether an image is encoded bytes, not a path."""
    return isinstance(source, bytes | bytearray | memoryview)


def open_file(source):
    """Returns a path's open file, or encoded bytes as one."""
    if is_encoded(source):
        return io.BytesIO(source)
    # A pipe would wait for somebody to write into it.
    if not stat.S_ISREG(os.stat(source).st_mode):
        raise _UnreadableError("it is not a regular file")
    return open(source, "rb")


def _open_image(file):
    """Returns the image of an open file; reads its head only."""
    formats = [name for name in _FORMATS if name in pillow().OPEN]
    image = pillow().open(file, formats=formats)
    if image.mode not in _GREY and image.mode not in _COLOUR:
        raise _UnreadableError(f"pixels of mode {image.mode} are not supported")
    if image.mode in ("I", "F") and not _has_16_bits(image):
        # Nothing says which value is white there, and images of one data set
        # must not be scaled each by its own values.
        kind = "floats" if image.mode == "F" else "integers of 32 bits"
        raise _UnreadableError(
            f"its pixels are {kind}, save it with 8 or 16 bits for each channel"
        )
    return image


def _has_16_bits(image):
    # Pillow opens PNM as 32 bits, once PNG too, and these cannot hold more.
    is_less = image.mode == "I" and image.format in ("PNG", "PPM")
    return is_less or image.mode.startswith("I;16")


def _orientation(image):
    """Returns the EXIF orientation, 1 to 8; 1 where there is none."""
    try:
        value = image.getexif().get(_ORIENTATION, 1)
    except Exception:
        # Damaged EXIF is no reason to refuse the pixels.
        return 1
    return value if value in range(1, 9) else 1


def head(source):
    """Returns width and height as shown, channels, and whether it ends well.

    Channels are 1 for grey images, also those with a grey palette, or 3.
    """
    with open_file(source) as file:
        image = _open_image(file)
        width, height = image.size
        # Of the head only: looking for it in a PNG reads all pixels.
        if "exif" in image.info and _orientation(image) > 4:
            width, height = height, width
        channels = 1 if image.mode in _GREY else 3
        if image.mode == "P":
            palette = image.getpalette() or [0, 1, 2]
            if palette[0::3] == palette[1::3] == palette[2::3]:
                channels = 1
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - _TAIL))
        is_whole = _ENDS.get(image.format, b"") in file.read()
    return width, height, channels, is_whole


def explain(error):
    """Returns in a few words why an image cannot be read."""
    if isinstance(error, _UnreadableError):
        return str(error)
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "there is no such file"
    text = one_line(error)
    if isinstance(error, EOFError) or "truncated" in text.lower():
        return "it is cut short"
    if text.startswith("cannot identify"):
        return "it is not an image of a known format"
    return f"it is damaged or cannot be opened: {text}"


def decode(source, size, channels=3, name=None, enlarge=True):
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
        enlarge: Whether an image whose shorter side is below `size` is
            enlarged; else that side is kept. Defaults to `True`.

    Returns:
        uint8 `(size, size, channels)`.

    Raises:
        DataError: It cannot be read; names the file and the reason.
    """
    try:
        with open_file(source) as file, _open_image(file) as image:
            size = size if enlarge else min(size, *image.size)
            return _pixels(image, size, channels)
    except Exception as error:
        # Damaged files make Pillow raise nearly everything.
        if name is None:
            name = "an encoded image" if is_encoded(source) else source
        raise DataError(
            f"{name}: cannot be read as an image: {explain(error)}; {_REMEDY}"
        ) from error


def _pixels(image, size, channels):
    full, is_smaller = image.size, False
    if image.format in ("JPEG", "MPO"):
        wanted = [_SPARE * side for side in _scaled_size(full, size)]
        image.draft(None, wanted)
        is_smaller = image.size != full
    image.load()
    if not is_smaller:
        # A TIFF is turned as it is loaded.
        full = image.size
    turn = _orientation(image)
    image = _plain(image, channels)
    if turn > 1:
        kinds = pillow().Transpose
        turns = (
            kinds.FLIP_LEFT_RIGHT,
            kinds.ROTATE_180,
            kinds.FLIP_TOP_BOTTOM,
            kinds.TRANSPOSE,
            kinds.ROTATE_270,
            kinds.TRANSVERSE,
            kinds.ROTATE_90,
        )
        image = image.transpose(turns[turn - 2])
        full = full[::-1] if turn > 4 else full
    return square(image, size, full)


def _plain(image, channels):
    """Returns the image in mode "L" or "RGB"."""
    mode = "L" if channels == 1 else "RGB"
    if image.mode == mode and "transparency" not in image.info:
        return image
    if _has_16_bits(image):
        # They lose the lower eight.
        levels = (np.asarray(image).astype(np.int64) >> 8).clip(0, 255)
        return pillow().fromarray(levels.astype(np.uint8)).convert(mode)
    if image.mode in ("La", "RGBa"):
        image = image.convert("LA" if image.mode == "La" else "RGBA")
    if image.has_transparency_data:
        white = pillow().new("RGBA", image.size, "white")
        white.alpha_composite(image.convert("RGBA"))
        image = white.convert("RGB")
    return image.convert(mode)


def _scaled_size(size, image_size):
    """Returns (width, height) with the shorter side scaled to `image_size`."""
    scale = image_size / min(size)
    return tuple(max(image_size, round(side * scale)) for side in size)


def square(image, image_size, full_size=None):
    """Returns the middle square of an image, uint8 with channels, scaled.

    The shorter side is scaled to `image_size` (bilinear, with the filter
    widened on shrinking) and the middle of the longer side is kept. Of a
    long strip only the middle is scaled. `full_size` is the (width, height)
    to reckon with where the image was made smaller already.
    """
    size = _scaled_size(full_size or image.size, image_size)
    if max(size) > _LONG * image_size:
        # A square around the middle, with what the filter reads beside it.
        short, long = sorted(image.size)
        side = _MARGIN * short + (long - _MARGIN * short) % 2
        start = [max(0, (full - side) // 2) for full in image.size]
        image = image.crop(
            (*start, *(min(f, s + side) for f, s in zip(image.size, start)))
        )
        size = _scaled_size(image.size, image_size)
    if size != image.size:
        image = image.resize(size, pillow().Resampling.BILINEAR)
    left, top = (size[0] - image_size) // 2, (size[1] - image_size) // 2
    image = image.crop((left, top, left + image_size, top + image_size))
    pixels = np.asarray(image, np.uint8)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def resize_all(images, image_size):
    """Returns a list or array of images, brought to one size if given."""
    if image_size is None:
        return images

    def resize(pixels):
        if pixels.shape[:2] == (image_size, image_size):
            return pixels
        flat = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
        return square(pillow().fromarray(flat), image_size)

    # Pillow works outside Python's global lock.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return np.stack(list(pool.map(resize, images)))
