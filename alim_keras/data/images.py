"""Images on disk: how one is decoded, `DiskImages`, and `scan` of many."""

import concurrent.futures
import contextlib
import copy
import hashlib
import io
import os
import warnings

import numpy as np
import PIL.Image
import PIL.ImageOps

from alim_keras.errors import DataError
from alim_keras.errors import check_choice
from alim_keras.errors import check_number
from alim_keras.errors import one_line

# Decoded images of less than this are kept in memory.
_KEPT = 1 << 30
# Files in one task of a thread, at most.
_AT_ONCE = 256
# The common side where images differ.
_USUAL_SIZE = 224
# So many images on disk stand for all of them.
_SAMPLE = 256
# Formats that are tried; others (PostScript, say) would run programs.
_FORMATS = "JPEG PNG GIF BMP WEBP TIFF PPM".split()
# The last bytes of a file that was not cut short, in the last so many.
_ENDS, _TAIL = {"JPEG": b"\xff\xd9", "PNG": b"IEND"}, 64
# A JPEG is decoded at an eighth, a quarter or half of its size where that
# leaves at least twice the size wanted; the filter then averages the rest.
_SPARE = 2

# Pillow warns of odd files; what fails is an exception.
warnings.filterwarnings("ignore", module=r"PIL\.")


def _open_file(source):
    is_encoded = isinstance(source, bytes)
    return io.BytesIO(source) if is_encoded else open(source, "rb")


def _digest(source):
    """Returns the hash of a path's content, or of encoded bytes."""
    with _open_file(source) as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


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


def _head(source):
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


def _explain(error):
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


def decode(source, size, channels=3, name="an encoded image", whole=False):
    """Returns the pixels of a path or of encoded bytes, uint8 `(H, W, C)`.

    Grey, palette, CMYK and YCbCr images are converted, transparent ones laid
    on white, 16-bit ones shifted to 8 bits, images turned as their EXIF
    orientation says; of an animation it is the first frame. The result is the
    middle square of the side `size`, or the whole image, not enlarged, its
    longer side at most `size`. `name` is that of encoded bytes in messages.
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
        name = name if isinstance(source, bytes) else source
        raise DataError(
            f"{name}: cannot be read as an image: {_explain(error)}; mend it, "
            "or leave its item out"
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


class DiskImages:
    """Images that stay on disk and are decoded when their rows are read.

    It has the `shape`, `dtype` and `nbytes` of the array that reading all
    would give. Rows are chosen as of an array, `images[rows]`, at once:
    nothing is read before `read`. Safe to read from many threads. Decoded
    images are kept in memory if all take less than 1 GiB.

    Args:
        files: Sequence or array of N paths, or of encoded images (`bytes`).
        image_size: Integer, the side of the square that every image is
            brought to: the shorter side is scaled to it, the middle kept.
        channels: 1 or 3. Defaults to `3`.
        folder: Path that relative paths start from. Defaults to the current
            folder.

    Example:

    >>> images = DiskImages(["cat.jpg", "dog.png"], image_size=32)
    >>> images.shape, images[1:].read().shape
    ((2, 32, 32, 3), (1, 32, 32, 3))
    """

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __init__(self, files, image_size, channels=3, folder=None):
        size = check_number("image_size", image_size, 1, whole=True)
        check_choice("channels", channels, (1, 3))
        self._files = files
        self._folder = folder
        self._rows = np.arange(len(files), dtype=np.int64)
        self._set_form((size, size, int(channels)))

    def _set_form(self, form):
        self._form = form
        self._kept = {} if self.nbytes < _KEPT else None

    @property
    def shape(self):
        return (len(self._rows), *self._form)

    @property
    def nbytes(self):
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self):
        return len(self._rows)

    def __array__(self, dtype=None, copy=None):
        # numpy would call it without a word, and memory might not suffice.
        raise TypeError(
            "DiskImages are not made an array by themselves; images.read() "
            "decodes all of them"
        )

    def __getitem__(self, rows):
        """Returns the `DiskImages` of rows; of an integer, its pixels."""
        chosen = self._rows[rows]
        if np.ndim(chosen) == 0:
            return self._decoded(chosen).copy()
        view = copy.copy(self)
        view._rows = chosen
        return view

    def with_form(self, image_size, channels):
        """Returns the same files, brought to another size and channels."""
        view = copy.copy(self)
        view._set_form((image_size, image_size, channels))
        return view

    def read(self, index=None, problems=None):
        """Returns decoded images.

        Args:
            index: Integer array `(n,)`, slice or mask. Defaults to all.
            problems: Dict that receives the place in `index` and the reason
                of each image that cannot be decoded; it is left zero. If
                None, the default, the first one is raised as `DataError`.

        Returns:
            uint8 `(n, image_size, image_size, channels)`.
        """
        rows = self._rows if index is None else self._rows[index]
        pixels = np.zeros((len(rows), *self._form), np.uint8)

        def fill(place):
            try:
                pixels[place] = self._decoded(rows[place])
            except DataError as error:
                if problems is None:
                    raise
                problems[place] = _explain(error.__cause__)

        _for_each(fill, range(len(rows)))
        return pixels

    def pictures(self, index, largest=256):
        """Returns a list of whole images, sides of at most `largest` pixels."""
        return [self._load(row, largest, True) for row in self._rows[index]]

    def digests(self):
        """Returns the hash of each file, hexadecimal strings, a list."""
        sources = [
            _source(self._files[row], self._folder) for row in self._rows
        ]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            return list(pool.map(_digest, sources))

    def _decoded(self, row):
        if self._kept is not None and row in self._kept:
            return self._kept[row]
        pixels = self._load(row, self._form[0])
        if self._kept is not None:
            self._kept[row] = pixels
        return pixels

    def _load(self, row, size, whole=False):
        source = _source(self._files[row], self._folder)
        name = f"row {row} (an encoded image)"
        return decode(source, size, self._form[2], name, whole)


def _source(file, folder):
    """Returns encoded bytes as they are, and a path with its folder."""
    is_encoded = isinstance(file, bytes)
    return file if is_encoded else os.path.join(folder or "", file)


def image_rows(images, index):
    """Returns rows of an array or of `DiskImages`, decoded."""
    is_disk = isinstance(images, DiskImages)
    return images.read(index) if is_disk else images[index]


def _for_each(function, rows, progress=None):
    """Calls a function of each row, in threads; raises the first error."""

    def run(part):
        for row in part:
            function(row)

    # Many parts, so that a thread with large images holds up no other.
    size = min(max(1, len(rows) // 64), _AT_ONCE)
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    done = 0
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for part, _ in zip(parts, pool.map(run, parts)):
            done += len(part)
            if progress is not None:
                progress(done, len(rows))


def scan(files, progress=None, folder=None, names=None):
    """Returns what the heads of image files say, a data frame of N rows.

    It has the columns `name`; `width` and `height` in pixels, as stored, and
    `channels`, 1 for grey images or 3, all 0 where they are not known;
    `bytes`; `copies`, equal numbers for files with the same bytes; and
    `problem`, why an image cannot be read, or None.

    `files` are paths below a folder, or encoded images, of which `names` are
    the names. `progress` is called of (done, total) from this thread; links
    to one file count once.
    """
    # The package is imported without it, as it takes half a second.
    import pandas as pd

    sources = [_source(file, folder) for file in files]
    heads = np.zeros((len(files), 3), np.int32)
    sizes, copies = np.zeros(len(files), np.int64), np.arange(len(files))
    identities, problems = list(range(len(files))), [None] * len(files)
    digests = {}

    def stamp(row):
        source = sources[row]
        if isinstance(source, bytes):
            sizes[row] = len(source)
            return
        # What fails here fails again, and is named, when it is opened.
        with contextlib.suppress(OSError):
            status = os.stat(source)
            sizes[row] = status.st_size
            identities[row] = status.st_dev, status.st_ino

    def look(row):
        try:
            heads[row] = _head(sources[row])
        except Exception as error:
            # Damaged files make Pillow raise nearly everything.
            problems[row] = _explain(error)

    def add_digest(row):
        digests[row] = _digest(sources[row])

    _for_each(stamp, range(len(files)))
    # The first row of each file: the others are links to it.
    first = {}
    owners = [first.setdefault(one, row) for row, one in enumerate(identities)]
    _for_each(look, list(first.values()), progress)
    # Only files of one size can be copies.
    readable = [row for row in first.values() if problems[row] is None]
    is_common = pd.Series(sizes[readable]).duplicated(keep=False)
    _for_each(add_digest, np.array(readable, int)[is_common].tolist())
    earliest = {}
    for row in sorted(digests):
        copies[row] = earliest.setdefault(digests[row], row)
    found = pd.DataFrame(heads, columns=["width", "height", "channels"])
    found = found.assign(bytes=sizes, copies=copies)
    found["problem"] = pd.Series(problems, dtype=object)
    found = found.iloc[owners].reset_index(drop=True)
    found.insert(0, "name", list(files if names is None else names))
    return found


def common_form(found):
    """Returns the side of readable images of a scan, and their channels.

    These are 224 if the sides differ, and 1 if all images are grey, else 3.
    """
    good = found[found["problem"].isna()]
    sides, channels = np.unique(good[["width", "height"]]), good["channels"]
    side = int(sides[0]) if len(sides) == 1 else _USUAL_SIZE
    return side, 1 if len(good) and (channels == 1).all() else 3


def channel_statistics(images):
    """Returns mean and standard deviation per channel, in units of [0, 1].

    Args:
        images: uint8 or float `(n, H, W, channels)`, in [0, 255], or feature
            vectors `(n, 1, 1, d)`, which models divide by 255 as well; of
            `DiskImages`, a sample is read.

    Returns:
        Two tuples of floats. A constant channel has a deviation of 1.

    Example:

    >>> channel_statistics(np.array([[[[0], [255]]]], np.uint8))
    ((0.5,), (0.5,))
    """
    if isinstance(images, DiskImages):
        images = images.read(sample_places(len(images)))
    mean = images.mean(axis=(0, 1, 2), dtype=np.float64)
    # Without a copy of all pixels as floats.
    square = np.einsum("nhwc,nhwc->c", images, images, dtype=np.float64)
    square /= np.prod(images.shape[:3])
    std = np.sqrt(np.maximum(square - np.square(mean), 0.0))
    std = np.where(std > 1e-6 * np.abs(mean), std, 255.0)
    return tuple((mean / 255.0).tolist()), tuple((std / 255.0).tolist())


def sample_places(count):
    """Returns which of `count` images stand for all, evenly spread, int64."""
    places = np.linspace(0, max(count - 1, 0), min(count, _SAMPLE))
    return places.astype(np.int64)
