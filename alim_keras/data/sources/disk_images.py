"""`DiskImages`: image files that look like an array and are read as asked."""

import concurrent.futures
import functools
import os

import numpy as np

from alim_keras.data.sources import image_files
from alim_keras.data.sources import resize
from alim_keras.data.sources.decoded_cache import make_cache
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError


class DiskImages:
    """Images that stay on disk and are decoded when their rows are read.

    It has the `shape` and `dtype` of the array that reading all would give.
    Rows are chosen as of an array, `images[rows]`, at once: nothing is read
    before `read`. Safe to read from many threads.

    Args:
        files: Sequence or array of N paths, or of encoded images (`bytes`);
            it may be a sequence of one's own that fetches them when asked.
        image_size: Integer, the side of the square that every image is
            brought to; see `resize.square`.
        channels: 1 or 3. Defaults to `3`.
        folder: Path that relative paths start from. Defaults to the current
            folder.
        cache: Where decoded images are kept for the next reading: None for
            nowhere, `"memory"`, or the path of a file of N x image_size x
            image_size x channels bytes. The file serves later processes too,
            as long as the list of files, their sizes, times of change and the
            form are the same (of encoded images, the contents); else it is
            made anew. Defaults to None.
        remedy: String, what messages about images that cannot be decoded end
            with. Defaults to replacing them or leaving them out.

    Attributes:
        shape: Tuple `(N, image_size, image_size, channels)`.
        dtype: `np.uint8`.
        nbytes: Integer, what all would take as an array.
        kept_bytes: Integer, what they take in memory: 0 unless cached there.

    Raises:
        ConfigError: `image_size` or `channels` cannot be, or the cache does
            not fit.

    Example:

    >>> images = DiskImages(["cat.jpg", "dog.png"], image_size=32)
    >>> images.shape, images[1:].read().shape
    ((2, 32, 32, 3), (1, 32, 32, 3))
    """

    def __init__(
        self,
        files,
        image_size,
        channels=3,
        folder=None,
        cache=None,
        remedy=None,
    ):
        size = resize.check_size(image_size)
        if size is None or channels not in (1, 3):
            raise ConfigError(
                "Images need a size and 1 or 3 channels. Received: "
                f"image_size={image_size!r}, channels={channels!r}"
            )
        form = (size, size, int(channels))
        folder = None if folder is None else os.fspath(folder)
        self._files, self._folder = files, folder
        self._cache = make_cache(cache, files, folder, form)
        self._rows = np.arange(len(files), dtype=np.int64)
        self._form = form
        self._remedy = {} if remedy is None else {"remedy": remedy}

    @property
    def shape(self):
        return (len(self._rows), *self._form)

    @property
    def ndim(self):
        return 4

    @property
    def dtype(self):
        return np.dtype(np.uint8)

    @property
    def nbytes(self):
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def kept_bytes(self):
        is_held = self._cache is not None and self._cache.in_memory
        return self.nbytes if is_held else 0

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
            return self._decode(chosen).copy()
        view = object.__new__(DiskImages)
        view.__dict__.update(self.__dict__, _rows=chosen)
        return view

    def read(self, index=None, problems=None):
        """Returns decoded images.

        Args:
            index: Integer array `(n,)`, slice or mask. Defaults to all.
            problems: Dict to which the places in `index` are added of images
                that cannot be decoded, with why; these are left zero.
                Defaults to None: the first one is an error.

        Returns:
            uint8 `(n, image_size, image_size, channels)`.

        Raises:
            DataError: A file cannot be decoded; the first in the order of
                `index` is named.
        """
        rows = self._rows if index is None else self._rows[index]
        found = np.empty((len(rows), *self._form), np.uint8)

        def fill(part):
            for place in part:
                try:
                    found[place] = self._decode(rows[place])
                except DataError as error:
                    if problems is None:
                        raise
                    found[place] = 0
                    problems[place] = image_files.reason(error)

        workers = num_workers()
        if len(rows) < 4 or workers == 1:
            fill(range(len(rows)))
            return found
        # A few parts for each thread, so that large images do not pile up.
        step = -(-len(rows) // (4 * workers))
        parts = [
            range(start, min(start + step, len(rows)))
            for start in range(0, len(rows), step)
        ]
        running = [_pool(os.getpid()).submit(fill, part) for part in parts]
        try:
            for one in running:
                one.result()
        finally:
            for one in running:
                one.cancel()
        return found

    def pictures(self, index, largest=256):
        """Returns images to look at: their own size, up to a largest side.

        Args:
            index: Integer array `(n,)`.
            largest: Integer, in pixels. Defaults to `256`.

        Returns:
            A list of n arrays, uint8 `(side, side, channels)`.
        """
        return [self._load(row, largest, False) for row in self._rows[index]]

    def name(self, row):
        """Returns what messages call a row: its path, or its number."""
        row = self._rows[row]
        return _name(self._files[row], row)

    def _decode(self, row):
        cache = self._cache
        if cache is not None:
            kept = cache.get(row)
            if kept is not None:
                return kept
        pixels = self._load(row, self._form[0])
        if cache is not None:
            cache.put(row, pixels)
        return pixels

    def _load(self, row, size, enlarge=True):
        source = self._files[row]
        name = _name(source, row)
        if not _is_encoded(source):
            source = os.fspath(source)
            if self._folder is not None:
                source = os.path.join(self._folder, source)
                name = source
        channels = self._form[2]
        return image_files.decode(
            source, size, channels, name, enlarge, **self._remedy
        )


def image_rows(images, index):
    """Returns rows of images, decoded, whatever they are kept as.

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


def _is_encoded(source):
    return isinstance(source, bytes | bytearray | memoryview)


def _name(source, row):
    if _is_encoded(source):
        return f"row {row} (an encoded image)"
    return str(source)
