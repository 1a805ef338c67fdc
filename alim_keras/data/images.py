"""Images on disk: how one is decoded, `DiskImages`, and `scan` of many."""

import concurrent.futures
import contextlib
import copy
import hashlib
import io
import math
import os
import warnings

import numpy as np
import PIL.Image
import PIL.ImageOps

from alim_keras import errors

_KEPT = 1 << 30  # Decoded images of fewer bytes are kept in memory.
_AT_ONCE = 256  # Files in one task of a thread, at most.
_USUAL_SIZE = 224  # The common side where images differ.
_SAMPLE = 256  # So many images on disk stand for all of them.
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


def _digests(sources):
    """Returns hashes of the contents of paths, or of encoded bytes, a list."""
    digests = {}

    def add(source):
        with _open_file(source) as file:
            digests[source] = hashlib.file_digest(file, "blake2b").hexdigest()

    _for_each(add, list(dict.fromkeys(sources)))
    return [digests[source] for source in sources]


def _open_image(file):
    """Returns the image of an open file; reads its head only."""
    image = PIL.Image.open(file, formats=_FORMATS)
    if image.mode in ("I", "F") and not _has_16_bits(image):
        # Nothing says which value is white there, and images of one data set
        # must not be scaled each by its own values.
        kind = "floats" if image.mode == "F" else "integers of 32 bits"
        raise errors.DataError(
            f"its pixels are {kind}, save it with 8 or 16 bits for each channel"
        )
    return image


def _has_16_bits(image):
    # Pillow opens PNM as 32 bits, once PNG too, and these cannot hold more.
    is_less = image.mode == "I" and image.format in ("PNG", "PPM")
    return is_less or image.mode.startswith("I;16")


def _head(source):
    """Returns width and height as stored, and channels: 1 if grey, else 3."""
    with _open_file(source) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        tail = file.read()
        file.seek(0)
        image = _open_image(file)
        is_grey = PIL.Image.getmodebase(image.mode) == "L"
        found = (*image.size, 1 if is_grey else 3)
        if _ENDS.get(image.format, b"") not in tail:
            image.load()  # It raises if the file was cut short.
    return found


def _explain(error):
    """Returns in a few words why an image cannot be read."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    text = errors.one_line(error)
    if isinstance(error, errors.DataError):
        return text
    if isinstance(error, EOFError) or "truncated" in text.lower():
        return "it is cut short"
    if text.startswith("cannot identify"):
        return "it is not an image of a known format"
    return f"it is damaged or cannot be opened: {text}"


def decode(source, size, channels=3, name="an encoded image", whole=False):
    """Returns the pixels of a path or of encoded bytes, uint8 `(H, W, C)`.

    Transparent images are laid on white, 16-bit ones shifted to 8 bits, images
    turned as EXIF says; of an animation it is the first frame. The result is
    the middle square of the side `size`, or the whole image, not enlarged, its
    longer side at most `size`. `name` is that of encoded bytes in messages.
    """
    try:
        with _open_file(source) as file, _open_image(file) as image:
            image.draft(None, (_SPARE * size, _SPARE * size))
            image.load()
            # Damaged EXIF is no reason to refuse the pixels.
            with contextlib.suppress(Exception):
                PIL.ImageOps.exif_transpose(image, in_place=True)
            if _has_16_bits(image):
                # They lose the lower eight.
                levels = (np.asarray(image) >> 8).astype(np.uint8)
                image = PIL.Image.fromarray(levels)
            if image.has_transparency_data:
                white = PIL.Image.new("RGBA", image.size, "white")
                white.alpha_composite(image.convert("RGBA"))
                image = white
            image = image.convert("L" if channels == 1 else "RGB")
            if not whole:
                return square(image, size)
            image.thumbnail((size, size))
            return np.asarray(image).reshape(*image.size[::-1], -1)
    except Exception as error:
        # Damaged files make Pillow raise nearly everything.
        name = name if isinstance(source, bytes) else source
        raise errors.DataError(
            f"{name}: cannot be read as an image: {_explain(error)}; mend it, "
            "or leave its item out"
        ) from error


def square(image, image_size):
    """Returns the middle square of an image, uint8 with channels, scaled."""
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

    It has the `shape` and `dtype` of an array, and rows are chosen as of one,
    `images[rows]`. Safe to read from many threads. Decoded images are kept in
    memory if all take less than 1 GiB.

    Args:
        files: Sequence or array of N paths, or of encoded images (`bytes`).
        image_size: Integer, the side of the square that every image is
            brought to: the shorter side is scaled to it, the middle kept.
        channels: 1 or 3. Defaults to `3`.
        folder: Where relative paths start. Defaults to the current folder.

    Example:

    >>> images = DiskImages(["cat.jpg", "dog.png"], image_size=32)
    >>> images.shape, images[1:].read().shape
    ((2, 32, 32, 3), (1, 32, 32, 3))
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, files, image_size, channels=3, folder=None):
        size = errors.check_number("image_size", image_size, 1, whole=True)
        errors.check_choice("channels", channels, (1, 3))
        self._files, self._folder = files, folder
        self._rows = np.arange(len(files))
        self._form = (size, size, int(channels))
        self._kept = {} if math.prod(self.shape) < _KEPT else None

    @property
    def shape(self):
        return (len(self._rows), *self._form)

    def __len__(self):
        return len(self._rows)

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
        view = DiskImages(self._files, image_size, channels, self._folder)
        view._rows = self._rows
        return view

    def read(self, index=None, problems=None):
        """Returns images, uint8 `(n, image_size, image_size, channels)`.

        `index` is an integer array `(n,)`, slice or mask; by default all are
        read. The dict `problems` receives the place in `index` and the reason
        of each image that cannot be decoded, which is left zero; without it
        the first one is raised as `DataError`.
        """
        rows = self._rows if index is None else self._rows[index]
        pixels = np.zeros((len(rows), *self._form), np.uint8)

        def fill(place):
            try:
                pixels[place] = self._decoded(rows[place])
            except errors.DataError as error:
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
        files = (self._files[row] for row in self._rows)
        return _digests([_source(file, self._folder) for file in files])

    def _decoded(self, row):
        if self._kept is None:
            return self._load(row, self._form[0])
        if row not in self._kept:
            self._kept[row] = self._load(row, self._form[0])
        return self._kept[row]

    def _load(self, row, size, whole=False):
        source = _source(self._files[row], self._folder)
        name = f"row {row} (an encoded image)"
        return decode(source, size, self._form[2], name, whole)


def _source(file, folder):
    """Returns encoded bytes as they are, and a path with its folder."""
    is_encoded = isinstance(file, bytes)
    return file if is_encoded else os.path.join(folder or "", file)


def image_rows(images, index, problems=None):
    """Returns rows of an array or of `DiskImages`, see `DiskImages.read`."""
    is_disk = isinstance(images, DiskImages)
    return images.read(index, problems) if is_disk else images[index]


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
    `bytes`; `problem`, why an image cannot be read, or None; and `copies`,
    equal numbers for files with the same bytes. `files` are paths below a
    folder, or encoded images, which have `names`. `progress` is called of
    (done, total) from this thread.
    """
    # The package is imported without it, as it takes half a second.
    import pandas as pd

    sources, rows = [_source(file, folder) for file in files], range(len(files))
    heads, sizes = np.zeros((len(rows), 3), int), np.zeros(len(rows), int)
    copies, problems = np.arange(len(rows)), [None] * len(rows)

    def look(row):
        source = sources[row]
        is_encoded = isinstance(source, bytes)
        try:
            sizes[row] = len(source) if is_encoded else os.path.getsize(source)
            heads[row] = _head(source)
        except Exception as error:
            # Damaged files make Pillow raise nearly everything.
            problems[row] = _explain(error)

    _for_each(look, rows, progress)
    found = pd.DataFrame(heads, columns=["width", "height", "channels"])
    found.insert(0, "name", list(files if names is None else names))
    found["bytes"], found["problem"] = sizes, pd.Series(problems, dtype=object)
    # Only files of one size can be copies.
    good = found[found["problem"].isna()]
    alike = good.index[good["bytes"].duplicated(keep=False)]
    first = {}
    for row, digest in zip(alike, _digests([sources[row] for row in alike])):
        copies[row] = first.setdefault(digest, row)
    return found.assign(copies=copies)


def common_form(found):
    """Returns the side of images, 224 if it differs, and 1 if grey, else 3."""
    good = found[found["problem"].isna()]
    sides, channels = np.unique(good[["width", "height"]]), good["channels"]
    side = int(sides[0]) if len(sides) == 1 else _USUAL_SIZE
    return side, 1 if len(good) and (channels == 1).all() else 3


def channel_statistics(images):
    """Returns mean and standard deviation per channel, in units of [0, 1].

    They are two tuples of floats; a constant channel has a deviation of 1.
    `images` are uint8 or float `(n, H, W, channels)` in [0, 255], or feature
    vectors `(n, 1, 1, d)`, which models divide by 255 as well; of `DiskImages`
    a sample is read.

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
