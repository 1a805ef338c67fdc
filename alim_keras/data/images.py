"""Images on disk: `DiskImages` reads them as asked, `scan` looks at many."""

import concurrent.futures
import dataclasses
import functools
import hashlib
import os
import time

import numpy as np

from alim_keras.data import decoding
from alim_keras.errors import DataError
from alim_keras.errors import check_choice
from alim_keras.errors import check_number

# Contents are compared where reading them is no more than this many bytes.
_COMPARED = 1 << 30
# Seconds between two calls of `progress`, and files between two looks at it.
_EVERY = 0.25
_AT_ONCE = 256
# The common side where images differ.
_USUAL_SIZE = 224
# So many images on disk stand for all of them.
_SAMPLE = 2000
# Images are summed in parts of about this many numbers.
_BLOCK = 1 << 24


class DiskImages:
    """Images that stay on disk and are decoded when their rows are read.

    It has the `shape` and `dtype` of the array that reading all would give.
    Rows are chosen as of an array, `images[rows]`, at once: nothing is read
    before `read`. Safe to read from many threads.

    Args:
        files: Sequence or array of N paths, or of encoded images (`bytes`).
        image_size: Integer, the side of the square that every image is
            brought to; see `decoding.square`.
        channels: 1 or 3. Defaults to `3`.
        folder: Path that relative paths start from. Defaults to the current
            folder.
        remedy: String, the end of messages about images that cannot be
            decoded. Defaults to replacing them or leaving them out.

    Attributes:
        shape: Tuple `(N, image_size, image_size, channels)`.
        dtype: `np.uint8`.
        nbytes: Integer, the bytes that all would take as an array.

    Raises:
        ConfigError: `image_size` or `channels` cannot be.

    Example:

    >>> images = DiskImages(["cat.jpg", "dog.png"], image_size=32)
    >>> images.shape, images[1:].read().shape
    ((2, 32, 32, 3), (1, 32, 32, 3))
    """

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __init__(self, files, image_size, channels=3, folder=None, remedy=None):
        size = check_number("image_size", image_size, 1, whole=True)
        check_choice("channels", channels, (1, 3))
        self._files = files
        self._folder = None if folder is None else os.fspath(folder)
        self._rows = np.arange(len(files), dtype=np.int64)
        self._form = (size, size, int(channels))
        self._remedy = {} if remedy is None else {"remedy": remedy}

    @property
    def shape(self):
        return (len(self._rows), *self._form)

    @property
    def nbytes(self):
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self):
        return len(self._rows)

    def __repr__(self):
        return f"<DiskImages of shape {self.shape}>"

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
            return self._load(chosen, self._form[0])
        view = object.__new__(DiskImages)
        view.__dict__.update(self.__dict__, _rows=chosen)
        return view

    def with_form(self, image_size, channels):
        """Returns the same files, brought to another size and channels."""
        view = self[:]
        view._form = (image_size, image_size, channels)
        return view

    def read(self, index=None, problems=None):
        """Returns decoded images.

        Args:
            index: Integer array `(n,)`, slice or mask. Defaults to all.
            problems: Dict to which the places in `index` are added of images
                that cannot be decoded, with the error; these are left zero.
                Defaults to None: the first one is raised.

        Returns:
            uint8 `(n, image_size, image_size, channels)`.

        Raises:
            DataError: A file cannot be decoded; the first in the order of
                `index` is named.
        """
        rows = self._rows if index is None else self._rows[index]
        pixels = np.zeros((len(rows), *self._form), np.uint8)

        def fill(part):
            for place in part:
                try:
                    pixels[place] = self._load(rows[place], self._form[0])
                except DataError as error:
                    if problems is None:
                        raise
                    problems[place] = error

        workers = num_workers()
        if len(rows) < 4 or workers == 1:
            fill(range(len(rows)))
            return pixels
        # A few parts for each thread, so that large images do not pile up.
        step = -(-len(rows) // (4 * workers))
        parts = [
            range(start, min(start + step, len(rows)))
            for start in range(0, len(rows), step)
        ]
        running = [_pool(os.getpid()).submit(fill, part) for part in parts]
        try:
            for task in running:
                task.result()
        finally:
            for task in running:
                task.cancel()
        return pixels

    def pictures(self, index, largest=256):
        """Returns images to look at: their own size, up to a largest side.

        Args:
            index: Integer array `(n,)`.
            largest: Integer, in pixels. Defaults to `256`.

        Returns:
            A list of n arrays, uint8 `(side, side, channels)`.
        """
        return [self._load(row, largest, False) for row in self._rows[index]]

    def path(self, row):
        """Returns the path of a row, or None of an encoded image."""
        source = self._files[self._rows[row]]
        if decoding.is_encoded(source):
            return None
        return os.path.join(self._folder or "", os.fspath(source))

    def _load(self, row, size, enlarge=True):
        source = self._files[row]
        name = f"row {row} (an encoded image)"
        if not decoding.is_encoded(source):
            name = source = os.path.join(self._folder or "", os.fspath(source))
        channels = self._form[2]
        return decoding.decode(
            source, size, channels, name, enlarge, **self._remedy
        )


def image_rows(images, index):
    """Returns rows of images, decoded, in whatever form they are kept.

    Args:
        images: Array or `DiskImages`, `(N, H, W, channels)`.
        index: Integer array, slice or mask.

    Returns:
        Array `(n, H, W, channels)`.

    Example:

    >>> image_rows(np.zeros((4, 8, 8, 3), np.uint8), np.array([2, 0])).shape
    (2, 8, 8, 3)
    """
    if isinstance(images, DiskImages):
        return images.read(index)
    return images[index]


def num_workers():
    """Returns how many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.lru_cache(maxsize=1)
def _pool(process):
    # One for all; a forked process has none of its parent's threads.
    del process
    return concurrent.futures.ThreadPoolExecutor(
        num_workers(), thread_name_prefix="decode"
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Scan:
    """The heads of N image files.

    Attributes:
        names: List of N strings, paths, or names of encoded images.
        width: int32 `(N,)`, in pixels, as shown; 0 where it is not known.
        height: int32 `(N,)`.
        channels: int8 `(N,)`, 1 for grey images, 3 for others, 0 unknown.
        bytes: int64 `(N,)`, sizes of the files.
        modified: int64 `(N,)`, times of change in nanoseconds, 0 of encoded
            images.
        copies: int64 `(N,)`: equal for links to one file and, if `compared`,
            for files with the same bytes.
        problems: Dict from a row to the reason why it cannot be read.
        compared: Whether bytes were compared: all files that share their
            size with another one come to no more than 1 GiB.
        num_files: How many different files were opened.
    """

    names: list
    width: np.ndarray
    height: np.ndarray
    channels: np.ndarray
    bytes: np.ndarray
    modified: np.ndarray
    copies: np.ndarray
    problems: dict
    compared: bool
    num_files: int

    def __len__(self):
        return len(self.width)

    @functools.cached_property
    def identical(self):
        """List of int64 arrays: readable rows whose files are the same."""
        rows = np.setdiff1d(np.arange(len(self)), list(self.problems))
        order = np.argsort(self.copies[rows], kind="stable")
        cuts = np.flatnonzero(np.diff(self.copies[rows][order])) + 1
        groups = np.split(rows[order], cuts)
        return [group for group in groups if len(group) > 1]

    def with_problems(self, more):
        """Returns the scan with further rows that cannot be read.

        Args:
            more: Dict from a row to the reason; those that are there stay.
        """
        if not more:
            return self
        heads = {}
        for name in ("width", "height", "channels"):
            heads[name] = getattr(self, name).copy()
            heads[name][list(more)] = 0
        problems = dict(sorted({**more, **self.problems}.items()))
        return dataclasses.replace(self, problems=problems, **heads)

    def unified_size(self):
        """Returns the side that images are to be brought to.

        Their own, where all that can be read are square and of one size;
        else 224.
        """
        good = self.width > 0
        sides = np.unique([self.width[good], self.height[good]])
        return int(sides[0]) if len(sides) == 1 else _USUAL_SIZE

    def odd_rows(self):
        """Returns the few rows that keep the others from one common size.

        They are those of another size than the commonest, if that is square
        and at least half of the images have it; else there are none.
        """
        sides = np.stack([self.width, self.height], 1)
        good = np.flatnonzero(self.width > 0)
        if not len(good):
            return good
        kinds, counts = np.unique(sides[good], axis=0, return_counts=True)
        usual = kinds[np.argmax(counts)]
        is_odd = (sides[good] != usual).any(1)
        few = min(_SAMPLE, len(good) // 2)
        if usual[0] != usual[1] or is_odd.sum() > few:
            return good[:0]
        return good[is_odd]

    def unified_channels(self):
        """Returns 1 if all images that can be read are grey, else 3."""
        known = self.channels[self.width > 0]
        return 1 if len(known) and np.all(known == 1) else 3


def scan(files, progress=None, folder=None, names=None):
    """Looks at the heads of image files; one listed often is opened once.

    Args:
        files: Sequence of N paths, or of encoded images (`bytes`).
        progress: Function of (done, total), called a few times a second from
            this thread. Defaults to None.
        folder: Path that relative paths start from. Defaults to the current
            folder.
        names: Strings, the names of encoded images. Defaults to the paths.

    Returns:
        A `Scan`.

    Raises:
        EnvironmentLacksError: Pillow is not installed.

    Example:

    >>> scan(["cat.jpg", "notes.txt"]).problems
    {1: 'it is not an image of a known format'}
    """
    decoding.pillow()
    decoding.hush()
    sources, owner, sizes, modified, problems = _look_up(files, folder)
    own_sizes = np.zeros(len(sources), np.int64)
    own_sizes[owner[owner >= 0]] = sizes[owner >= 0]
    _, place, counts = np.unique(
        own_sizes, return_inverse=True, return_counts=True
    )
    shared = (counts[place] > 1) & (own_sizes > 0)
    compared = bool(own_sizes[shared].sum() <= _COMPARED)
    # Files that were not found have the owner -1: the last row, zeros.
    heads = np.zeros((len(sources) + 1, 3), np.int32)
    same = np.arange(len(sources) + 1)
    reasons, digests = {}, {}

    def look(part):
        for row in part:
            try:
                heads[row] = decoding.head(sources[row])
                if shared[row] and compared:
                    digests[row] = _digest(sources[row])
            except Exception as error:
                # Damaged files make Pillow raise nearly everything.
                reasons[row] = decoding.explain(error)

    parts = [
        range(start, min(start + _AT_ONCE, len(sources)))
        for start in range(0, len(sources), _AT_ONCE)
    ]
    done, due = 0, time.monotonic() + _EVERY
    for part, _ in zip(parts, _pool(os.getpid()).map(look, parts)):
        done += len(part)
        if progress is not None and time.monotonic() > due:
            due = time.monotonic() + _EVERY
            progress(len(files) * done // len(sources), len(files))
    if progress is not None:
        progress(len(files), len(files))
    first = {}
    for row in sorted(digests):
        same[row] = first.setdefault(digests[row], row)
    if reasons:
        is_bad = np.zeros(len(sources) + 1, bool)
        is_bad[list(reasons)] = True
        for row in np.flatnonzero(is_bad[owner]):
            problems[int(row)] = reasons[int(owner[row])]
    copies = same[owner]
    # Each file that is not there is a group of its own.
    lost = np.flatnonzero(owner < 0)
    copies[lost] = len(sources) + np.arange(len(lost))
    return Scan(
        names=list(files if names is None else names),
        width=heads[owner, 0],
        height=heads[owner, 1],
        channels=heads[owner, 2].astype(np.int8),
        bytes=sizes,
        modified=modified,
        copies=copies,
        problems=dict(sorted(problems.items())),
        compared=compared,
        num_files=len(sources),
    )


def _digest(source):
    if decoding.is_encoded(source):
        return hashlib.blake2b(source, digest_size=16).digest()
    with open(source, "rb") as file:
        return hashlib.blake2b(file.read(), digest_size=16).digest()


def _look_up(files, folder):
    """Finds which paths are the same file.

    Returns:
        List of the M different files; int64 `(N,)`, which of them each row
        is, -1 for none; their sizes and times of change, int64 `(N,)`; and a
        dict from rows without a file to the reason.
    """
    sizes = np.zeros(len(files), np.int64)
    modified = np.zeros(len(files), np.int64)
    owner = np.full(len(files), -1, np.int64)
    missing, known, sources = {}, {}, []
    # os.path.join would take as long as the look itself.
    start = "" if folder is None else os.path.join(os.fspath(folder), "")
    for row, name in enumerate(files):
        if decoding.is_encoded(name):
            owner[row], sizes[row] = len(sources), len(name)
            sources.append(name)
            continue
        name = os.fspath(name)
        path = name if os.path.isabs(name) else start + name
        try:
            status = os.stat(path)
        except (OSError, ValueError) as error:
            missing[row] = decoding.explain(error)
            continue
        sizes[row], modified[row] = status.st_size, status.st_mtime_ns
        key = (status.st_dev, status.st_ino)
        place = known.setdefault(key, len(sources))
        if place == len(sources):
            sources.append(path)
        owner[row] = place
    return sources, owner, sizes, modified, missing


def channel_statistics(images):
    """Returns mean and standard deviation per channel, in units of [0, 1].

    Args:
        images: uint8 or float `(n, height, width, channels)`, in [0, 255];
            of `DiskImages`, `sample_places` are read.

    Returns:
        Two tuples of floats. A constant channel has a deviation of 1, so
        that dividing by it is safe.

    Example:

    >>> channel_statistics(np.array([[[[0], [255]]]], np.uint8))
    ((0.5,), (0.5,))
    """
    if isinstance(images, DiskImages):
        images = images.read(sample_places(len(images)))
    step = max(1, _BLOCK // max(1, int(np.prod(images.shape[1:]))))
    sums = np.zeros((2, images.shape[-1]))
    for start in range(0, len(images), step):
        sums += _sums(images[start : start + step])
    mean, square = sums / np.prod(images.shape[:3])
    std = np.sqrt(np.maximum(square - np.square(mean), 0.0))
    std = np.where(std > 1e-6, std, 1.0)
    return tuple(mean.tolist()), tuple(std.tolist())


def sample_places(count):
    """Returns which of `count` images stand for all, evenly spread, int64."""
    places = np.linspace(0, max(count - 1, 0), min(count, _SAMPLE))
    return places.astype(np.int64)


def _sums(images):
    """Returns the sums of pixels and of squared pixels, `(2, channels)`."""
    planes = np.moveaxis(images, -1, 0).reshape(images.shape[-1], -1)
    if images.dtype == np.uint8:
        # Counting the 256 values is quicker than summing floats, and exact.
        counts = [np.bincount(plane, minlength=256) for plane in planes]
        levels = np.arange(256) / 255.0
        return np.stack([counts @ levels, counts @ np.square(levels)])
    planes = planes.astype(np.float64) / 255.0
    return np.stack([planes.sum(1), np.square(planes).sum(1)])
