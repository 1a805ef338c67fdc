"""What stands in the head of an image file; also a worker that reads many.

It imports nothing of `alim_keras`: `image_headers` starts it as a script of its
own, and a process that loads Keras first would take seconds and half a
gigabyte. A request on its standard input is a frame of names, each ended by
a zero byte; the answer is a `Record` for each, in their order.
"""

import functools
import hashlib
import io
import os
import stat
import struct
import sys
import typing
import warnings

# Formats that are tried; others (PostScript, say) would run programs.
_FORMATS = (
    "JPEG",
    "PNG",
    "GIF",
    "BMP",
    "WEBP",
    "TIFF",
    "PPM",
    "JPEG2000",
    "AVIF",
)
GREY = ("1", "L", "LA", "La", "F", "I", "I;16", "I;16L", "I;16B", "I;16N")
_COLOUR = ("P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV")
# Modes that may hold any number.
_WIDE = ("I", "F")
_ORIENTATION = 0x0112
_FRAME = struct.Struct("<I")
_RECORD = struct.Struct("<IIB16sQH")
NO_DIGEST = bytes(16)
READY = b"!"


class Record(typing.NamedTuple):
    """What is known of one file.

    Attributes:
        width: Integer, in pixels, as shown (EXIF orientation applied).
        height: Integer.
        channels: 1 for grey images, 3 for others, 0 if not known.
        digest: 16 bytes that tell contents apart, zeros where not asked for.
        size: Integer, bytes of the contents, where the digest is.
        reason: String, why it cannot be read; empty if it can.
    """

    width: int = 0
    height: int = 0
    channels: int = 0
    digest: bytes = NO_DIGEST
    size: int = 0
    reason: str = ""


class UnreadableError(Exception):
    """An image that Pillow opens but that cannot be used; says why."""


@functools.cache
def _formats():
    import PIL.Image

    PIL.Image.init()
    return tuple(name for name in _FORMATS if name in PIL.Image.OPEN)


def hush():
    """Hides Pillow's warnings about odd files; what fails is an exception.

    The filter stays: one that is taken back after each image would not be
    safe among threads.
    """
    for action, _, category, module, _ in warnings.filters:
        if action == "ignore" and category is Warning and module is not None:
            if getattr(module, "pattern", module) == "PIL\\.":
                return
        if action != "ignore":
            break
    warnings.filterwarnings("ignore", module="PIL\\.")


def open_image(file):
    """Returns the image of an open file or `io.BytesIO`; reads its head only.

    Raises:
        UnreadableError: Its kind of pixels is not supported.
        Exception: Whatever Pillow raises; see `explain`.
    """
    import PIL.Image

    image = PIL.Image.open(file, formats=_formats())
    if image.mode not in GREY and image.mode not in _COLOUR:
        raise UnreadableError(f"pixels of mode {image.mode} are not supported")
    if image.mode in _WIDE and not has_16_bits(image):
        # Nothing says what is white there, and images of one data set must
        # not be scaled each by its own values.
        kind = "floats" if image.mode == "F" else "integers of 32 bits"
        raise UnreadableError(
            f"its pixels are {kind}, save it with 8 or 16 bits for each channel"
        )
    return image


def has_16_bits(image):
    """Returns whether the pixels are grey, of 0 to 65535."""
    # Pillow opens PNM as 32 bits, once PNG too, and these cannot hold more.
    is_less = image.mode == "I" and image.format in ("PNG", "PPM")
    return is_less or image.mode.startswith("I;16")


def orientation(image):
    """Returns the EXIF orientation, 1 to 8; 1 where there is none."""
    try:
        found = image.getexif().get(_ORIENTATION, 1)
    except Exception:
        # Damaged EXIF is no reason to refuse the pixels.
        return 1
    return found if found in range(1, 9) else 1


def num_channels(image):
    """Returns 1 for grey images, also those with a grey palette, else 3."""
    if image.mode in GREY:
        return 1
    if image.mode == "P":
        palette = image.getpalette() or [0, 1, 2]
        if palette[0::3] == palette[1::3] == palette[2::3]:
            return 1
    return 3


def explain(error):
    """Returns in a few words why an image cannot be read."""
    import PIL

    name = type(error).__name__
    if isinstance(error, UnreadableError):
        return str(error)
    if isinstance(error, PIL.UnidentifiedImageError):
        return "it is not an image of a known format"
    if name == "DecompressionBombError":
        return "it has more pixels than is safe to decode"
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "there is no such file"
    if isinstance(error, IsADirectoryError):
        return "it is a folder"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    lines = str(error).strip().splitlines()
    text = lines[0].strip() if lines else name
    if isinstance(error, EOFError) or "truncated" in text.lower():
        return "it is cut short"
    return f"it is damaged: {text}"


def describe(source, full=False, hashed=False):
    """Returns the `Record` of a path or of encoded bytes; never raises.

    Args:
        source: Path, or bytes.
        full: Whether all pixels are decoded. Defaults to the head only.
        hashed: Whether the digest of the contents is wanted.
    """
    known = Record()
    try:
        with open_source(source) as file:
            if full or hashed:
                content = file.read()
                digest = hashlib.blake2b(content, digest_size=16).digest()
                known = known._replace(digest=digest, size=len(content))
                file = io.BytesIO(content)
            image = open_image(file)
            width, height = image.size
            channels = num_channels(image)
            # Of the head only: looking for it in a PNG reads all pixels.
            if "exif" in image.info and orientation(image) > 4:
                width, height = height, width
            if full:
                image.load()
    except MemoryError:
        return known._replace(reason="memory does not suffice for it")
    except Exception as error:
        return known._replace(reason=explain(error))
    return known._replace(width=width, height=height, channels=channels)


def open_source(source):
    """Returns a path's open file, or encoded bytes as one; neither is empty.

    Raises:
        UnreadableError: It is empty, or no regular file.
        OSError: It cannot be opened.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        source = bytes(source)
        if not source:
            raise UnreadableError("it is empty (zero bytes)")
        return io.BytesIO(source)
    found = os.stat(source)
    # A pipe would wait for somebody to write into it.
    if stat.S_ISREG(found.st_mode) and not found.st_size:
        raise UnreadableError("it is empty (zero bytes)")
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise UnreadableError("it is not a regular file")
    return open(source, "rb")


def pack(record):
    """Returns a `Record` as bytes."""
    reason = record.reason.encode("utf-8", "replace")[:500]
    return _RECORD.pack(*record[:5], len(reason)) + reason


def read_record(file):
    """Returns the next `Record` of a stream; EOFError where it ends."""
    *fields, length = _RECORD.unpack(_read(file, _RECORD.size))
    return Record(*fields, _read(file, length).decode("utf-8", "replace"))


def frame(paths, full, hashed):
    """Returns a request: paths, and what is wanted of each."""
    # The flags are no zero byte, which would end the name.
    content = b"".join(
        bytes([64 + full + 2 * bool(wanted)]) + os.fsencode(path) + b"\0"
        for path, wanted in zip(paths, hashed, strict=True)
    )
    return _FRAME.pack(len(content)) + content


def _read(file, size):
    content = file.read(size)
    if len(content) < size:
        raise EOFError
    return content


def _serve(requests, answers):
    """Answers frames until there are no more."""
    _formats()
    answers.write(READY)
    answers.flush()
    while True:
        try:
            (size,) = _FRAME.unpack(_read(requests, _FRAME.size))
        except EOFError:
            return
        names = _read(requests, size).split(b"\0")[:-1]
        for name in names:
            path = os.fsdecode(name[1:])
            record = describe(path, bool(name[0] & 1), bool(name[0] & 2))
            answers.write(pack(record))
        answers.flush()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    _serve(sys.stdin.buffer, sys.stdout.buffer)
