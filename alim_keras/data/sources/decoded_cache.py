"""Decoded images kept for the next reading, in memory or in a file."""

import hashlib
import os
import secrets

import numpy as np

from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.files import write_atomically

# A change of how images are decoded must change it.
_VERSION = "1"


class DecodedCache:
    """Rows that were decoded already.

    Args:
        images: uint8 `(N, H, W, channels)`, to be filled.
        filled: bool `(N,)`, which rows are.
        in_memory: Whether they take the process's own memory.
    """

    def __init__(self, images, filled, in_memory):
        self.in_memory = in_memory
        self._images, self._filled = images, filled

    def get(self, row):
        """Returns a row's pixels, or None if they are not there yet."""
        return self._images[row] if self._filled[row] else None

    def put(self, row, pixels):
        """Keeps a row's pixels. Two threads may: they write the same."""
        self._images[row] = pixels
        # Only now, so that no other thread reads half an image.
        self._filled[row] = True


def make_cache(cache, files, folder, form):
    """Returns the `DecodedCache` that `DiskImages(cache=...)` asks for.

    Args:
        cache: None, `"memory"` or a path.
        files: Sequence of N paths or encoded images.
        folder: Path that relative paths start from, or None.
        form: Tuple (H, W, channels).

    Raises:
        ConfigError: There is no room for it.
        DataError: A file's size cannot be read.
    """
    if cache is None:
        return None
    shape = (len(files), *form)
    if cache == "memory":
        try:
            # Pages are taken as they are written to.
            images = np.empty(shape, np.uint8)
        except MemoryError as error:
            raise _no_room(shape, "memory") from error
        return DecodedCache(images, np.zeros(len(files), bool), True)
    path = os.fspath(cache)
    path = path if path.endswith(".npy") else f"{path}.npy"
    key = _key(files, folder, form)
    paths = (path, f"{path[:-4]}.filled.npy")
    if not _is_valid(path, key, paths):
        _create(path, key, paths, shape)
    images, filled = (np.load(one, mmap_mode="r+") for one in paths)
    return DecodedCache(images, filled, False)


def _key_path(path):
    return f"{path[:-4]}.key"


def _is_valid(path, key, paths):
    try:
        with open(_key_path(path), encoding="utf-8") as file:
            return file.read() == key and all(map(os.path.exists, paths))
    except (OSError, UnicodeDecodeError):
        return False


def _create(path, key, paths, shape):
    """Makes the empty files; another process that reads old ones goes on."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    if os.path.exists(_key_path(path)):
        os.unlink(_key_path(path))
    for one, form, dtype in zip(
        paths, (shape, shape[:1]), (np.uint8, bool), strict=True
    ):
        partial = f"{one}.partial-{secrets.token_hex(4)}"
        try:
            array = np.lib.format.open_memmap(partial, "w+", dtype, form)
            end = array.offset + array.nbytes
            del array
            if hasattr(os, "posix_fallocate"):
                # A full disk found out later, by writing to mapped memory,
                # would end the process without a word.
                with open(partial, "r+b") as file:
                    os.posix_fallocate(file.fileno(), 0, end)
            os.replace(partial, one)
        except OSError as error:
            raise _no_room(shape, f"{path} ({error.strerror})") from error
        finally:
            if os.path.exists(partial):
                os.unlink(partial)
    write_atomically(_key_path(path), key)


def _no_room(shape, where):
    size = np.prod(shape, dtype=np.float64) / 2**30
    return ConfigError(
        f"There is no room for the cache of decoded images, {size:.1f} GiB "
        f"in {where}; use a smaller image_size, another place, or none"
    )


def _key(files, folder, form):
    """Returns text that changes with anything that changes the pixels."""
    digest = hashlib.sha256(f"{_VERSION} {form} {len(files)}\n".encode())
    for source in files:
        if isinstance(source, bytes | bytearray | memoryview):
            digest.update(b"%d:" % len(source))
            digest.update(source)
            continue
        path = os.path.join(folder or "", os.fspath(source))
        try:
            found = os.stat(path)
        except OSError as error:
            raise DataError(
                f"{path}: cannot be read as an image: "
                f"{(error.strerror or str(error)).lower()}"
            ) from error
        line = f"{source}\0{found.st_size} {found.st_mtime_ns}\n"
        digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
