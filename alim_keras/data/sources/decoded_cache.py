"""Decoded images kept for the next reading, in memory or in a file."""

import hashlib
import math
import os
import secrets

import numpy as np

from alim_keras.data.sources import image_files
from alim_keras.errors import ConfigError

# How a file begins. A change of how images are decoded must change it.
_MAGIC = b"ALIM decoded 1\r\n"


class DecodedCache:
    """Rows that were decoded already.

    Args:
        table: uint8 `(N, H * W * channels + 1)`: pixels, and 1 once they are
            there.
        form: Tuple (H, W, channels).
        in_memory: Whether they take the process's own memory.
    """

    def __init__(self, table, form, in_memory):
        self.in_memory = in_memory
        self._table, self._form = table, form

    def get(self, row):
        """Returns a row's pixels, not to be changed; None if not there."""
        kept = self._table[row]
        return kept[:-1].reshape(self._form) if kept[-1] else None

    def put(self, row, pixels):
        """Keeps a row's pixels. Two threads may: they write the same."""
        self._table[row, :-1] = pixels.reshape(-1)
        # Only now, so that no other thread reads half an image.
        self._table[row, -1] = 1


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
    shape = (len(files), math.prod(form) + 1)
    if cache == "memory":
        try:
            # Zeros take no memory before they are written to.
            table = np.zeros(shape, np.uint8)
        except MemoryError as error:
            raise _no_room(shape, "memory") from error
        return DecodedCache(table, form, True)
    path, key = os.fspath(cache), _key(files, folder, form)
    table = _opened(path, key, shape)
    if table is None:
        _create(path, key, shape)
        table = _opened(path, key, shape)
    if table is None:
        raise ConfigError(
            f"{path}: another run makes its own cache in this file; give "
            "each a file of its own"
        )
    return DecodedCache(table, form, False)


def _opened(path, key, shape):
    """Returns the table in a file, or None if it is about other images."""
    try:
        with open(path, "r+b") as file:
            size = os.fstat(file.fileno()).st_size
            if file.read(len(key)) != key or size != _size(key, shape):
                return None
            # The same open file: another process may put a new one here.
            return np.memmap(file, np.uint8, "r+", len(key), shape)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(
            f"{path}: the cache of decoded images cannot be used: "
            f"{error.strerror}; give another file"
        ) from error


def _create(path, key, shape):
    """Makes the file, of unfilled rows, in place of what is there."""
    if os.path.exists(path) and not _is_cache(path):
        raise ConfigError(
            f"{path}: is there, and is no cache of decoded images; give "
            "another file"
        )
    partial = f"{path}.partial-{secrets.token_hex(4)}"
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(partial, "wb") as file:
            file.write(key)
            file.truncate(_size(key, shape))
            file.flush()
            if hasattr(os, "posix_fallocate"):
                # A full disk found out later, by writing to mapped memory,
                # would end the process without a word.
                os.posix_fallocate(file.fileno(), 0, _size(key, shape))
        os.replace(partial, path)
    except OSError as error:
        raise _no_room(shape, f"{path} ({error.strerror})") from error
    finally:
        if os.path.exists(partial):
            os.unlink(partial)


def _is_cache(path):
    if os.path.isdir(path):
        return False
    with open(path, "rb") as file:
        start = file.read(len(_MAGIC))
    return start in (_MAGIC, b"")


def _size(key, shape):
    return len(key) + shape[0] * shape[1]


def _no_room(shape, where):
    size = math.prod(shape) / 2**30
    return ConfigError(
        f"There is no room for the cache of decoded images, {size:.1f} GiB "
        f"in {where}; use a smaller image_size, another place, or none"
    )


def _key(files, folder, form):
    """Returns bytes that change with anything that changes the pixels."""
    digest = hashlib.sha256(f"{form} {len(files)}\n".encode())
    for source in files:
        if isinstance(source, bytes | bytearray | memoryview):
            digest.update(b"%d:" % len(source))
            digest.update(source)
            continue
        path = os.path.join(folder or "", os.fspath(source))
        try:
            found = os.stat(path)
        except OSError as error:
            raise image_files.unreadable(path, error) from error
        line = f"{source}\0{found.st_size} {found.st_mtime_ns}\n"
        digest.update(line.encode("utf-8", "surrogateescape"))
    return _MAGIC + digest.digest()
