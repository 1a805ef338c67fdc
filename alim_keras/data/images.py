"""Images on disk: `DiskImages` reads them as asked, `scan` looks at many."""

import concurrent.futures
import copy
import dataclasses
import functools
import os

import numpy as np

from alim_keras.data import decoding
from alim_keras.errors import DataError
from alim_keras.errors import check_choice
from alim_keras.errors import check_number

# Decoded images of less than this are kept in memory.
_KEPT = 1 << 30
# Files in one task of a thread, at most.
_AT_ONCE = 256
# The common side where images differ.
_USUAL_SIZE = 224
# The device of encoded and of missing files, in 64 bits.
_NO_DEVICE = 2**64 - 1
# So many images on disk stand for all of them.
_SAMPLE = 256


class DiskImages:
    """Images that stay on disk and are decoded when their rows are read.

    It has the `shape`, `dtype` and `nbytes` of the array that reading all
    would give. Rows are chosen as of an array, `images[rows]`, at once:
    nothing is read before `read`. Safe to read from many threads. Decoded
    images are kept in memory if all take less than 1 GiB.

    Args:
        files: Sequence or array of N paths, or of encoded images (`bytes`).
        image_size: Integer, the side of the square that every image is
            brought to; see `square`.
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
        self._folder = "" if folder is None else os.fspath(folder)
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
                problems[place] = decoding.explain(error.__cause__)

        _for_each(fill, range(len(rows)))
        return pixels

    def pictures(self, index, largest=256):
        """Returns a list of whole images, sides of at most `largest` pixels."""
        return [self._load(row, largest, True) for row in self._rows[index]]

    def digests(self):
        """Returns the hash of each file, hexadecimal strings `(N,)`."""
        found = np.empty(len(self), object)

        def fill(place):
            source = self._files[self._rows[place]]
            if not decoding.is_encoded(source):
                source = os.path.join(self._folder, os.fspath(source))
            found[place] = decoding.digest(source).hex()

        _for_each(fill, range(len(self)))
        return found

    def _decoded(self, row):
        if self._kept is not None and row in self._kept:
            return self._kept[row]
        pixels = self._load(row, self._form[0])
        if self._kept is not None:
            self._kept[row] = pixels
        return pixels

    def _load(self, row, size, whole=False):
        source, name = self._files[row], f"row {row} (an encoded image)"
        if not decoding.is_encoded(source):
            name = source = os.path.join(self._folder, os.fspath(source))
        return decoding.decode(source, size, self._form[2], name, whole)


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


@dataclasses.dataclass(frozen=True, eq=False)
class Scan:
    """The heads of N image files.

    Attributes:
        names: List of N strings, paths, or names of encoded images.
        heads: int32 `(N, 3)`: width and height in pixels, as stored, and 1
            for grey images or 3; zeros where they are not known.
        bytes: int64 `(N,)`, sizes of the files.
        copies: int64 `(N,)`: equal for files with the same bytes.
        problems: Dict from a row to the reason why it cannot be read.
    """

    names: list
    heads: np.ndarray
    bytes: np.ndarray
    copies: np.ndarray
    problems: dict

    width = property(lambda self: self.heads[:, 0])
    height = property(lambda self: self.heads[:, 1])
    channels = property(lambda self: self.heads[:, 2])

    def __len__(self):
        return len(self.heads)

    @functools.cached_property
    def identical(self):
        """List of int64 arrays: readable rows whose files are the same."""
        rows = np.setdiff1d(np.arange(len(self)), list(self.problems))
        order = np.argsort(self.copies[rows], kind="stable")
        cuts = np.flatnonzero(np.diff(self.copies[rows][order])) + 1
        groups = np.split(rows[order], cuts)
        return [group for group in groups if len(group) > 1]

    def with_problems(self, more):
        """Returns the scan with further rows that cannot be read."""
        heads = self.heads.copy()
        heads[list(more)] = 0
        problems = dict(sorted({**more, **self.problems}.items()))
        return dataclasses.replace(self, problems=problems, heads=heads)

    def unified_size(self):
        """Returns the side of readable images, 224 if they are not alike."""
        sides = np.unique(self.heads[self.width > 0, :2])
        return int(sides[0]) if len(sides) == 1 else _USUAL_SIZE

    def unified_channels(self):
        """Returns 1 if all images that can be read are grey, else 3."""
        channels = self.channels[self.width > 0]
        return 1 if len(channels) and np.all(channels == 1) else 3


def scan(files, progress=None, folder=None, names=None):
    """Looks at the heads of image files.

    Args:
        files: Sequence of N paths, or of encoded images (`bytes`).
        progress: Function of (done, total), called now and then from this
            thread; links to one file count once. Defaults to None.
        folder: Path that relative paths start from. Defaults to the current
            folder.
        names: Strings, the names of encoded images. Defaults to the paths.

    Returns:
        A `Scan`.

    Example:

    >>> scan(["cat.jpg", "notes.txt"]).problems
    {1: 'it is not an image of a known format'}
    """
    heads = np.zeros((len(files), 3), np.int32)
    # Size, device and number of each file.
    stamps = np.zeros((len(files), 3), np.uint64)
    problems, digests = {}, {}

    def source(row):
        if decoding.is_encoded(files[row]):
            return files[row]
        return os.path.join(folder or "", files[row])

    def stamp(row):
        stamps[row] = 0, _NO_DEVICE, row
        if decoding.is_encoded(files[row]):
            stamps[row, 0] = len(files[row])
            return
        try:
            status = os.stat(source(row))
        except OSError as error:
            problems[row] = decoding.explain(error)
        else:
            stamps[row] = status.st_size, status.st_dev, status.st_ino

    def look(row):
        if row in problems:
            return
        try:
            heads[row] = decoding.head(source(row))
        except Exception as error:
            # Damaged files make Pillow raise nearly everything.
            problems[row] = decoding.explain(error)

    def add_digest(row):
        digests[row] = decoding.digest(source(row))

    _for_each(stamp, range(len(files)))
    # The first row of each file: the others are links to it.
    _, first, inverse = np.unique(
        stamps[:, 1:], axis=0, return_index=True, return_inverse=True
    )
    owners = first[inverse.reshape(-1)]
    first = np.sort(first)
    _for_each(look, first.tolist(), progress)
    readable = first[heads[first, 0] > 0]
    # Only files of one size can be copies.
    _, kinds, counts = np.unique(
        stamps[readable, 0], return_inverse=True, return_counts=True
    )
    _for_each(add_digest, readable[counts[kinds] > 1].tolist())
    earliest, copies = {}, np.arange(len(files))
    for row in sorted(digests):
        copies[row] = earliest.setdefault(digests[row], row)
    return Scan(
        names=list(files if names is None else names),
        heads=heads[owners],
        bytes=stamps[:, 0].astype(np.int64),
        copies=copies[owners],
        problems={
            row: problems[owner]
            for row, owner in enumerate(owners.tolist())
            if owner in problems
        },
    )


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
