"""MNIST and Fashion-MNIST from their four IDX files."""

import gzip
import hashlib
import os
import struct

import numpy as np

from alim_keras.data.candidate_sets import default_ids
from alim_keras.data.messages import one_line
from alim_keras.data.sources.members import DAMAGE
from alim_keras.errors import DataError

_FILES = {
    "images": "train-images-idx3-ubyte",
    "labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}


def find(folder):
    """Returns whether all four files, packed or not, lie in `folder`."""
    return all(_path(folder, name) for name in _FILES.values())


def read(folder, checksums, class_names):
    """Reads the four files; the order is the official one.

    Both data sets use the same file names, so the unpacked contents are
    compared with the data set's own checksums.

    Args:
        folder: String.
        checksums: Dict from file name to the md5 of the unpacked contents.
        class_names: Tuple of strings.

    Returns:
        Dict of the fields of `ImageData`.

    Raises:
        DataError: A file is damaged, or belongs to another data set.
    """
    arrays = {}
    for field, name in _FILES.items():
        path = _path(folder, name)
        content = _unpacked(path)
        found = hashlib.md5(content, usedforsecurity=False).hexdigest()
        if found != checksums[name]:
            raise DataError(
                f"{path}: is not the file of this data set (MNIST and "
                "Fashion-MNIST use the same file names), or is damaged. "
                f"Received: md5 {found} unpacked; expected {checksums[name]}"
            )
        arrays[field] = _parse(content, path)
    return {
        "images": arrays["images"][..., None],
        "labels": arrays["labels"].astype(np.int64),
        "ids": default_ids(len(arrays["images"])),
        "class_names": class_names,
        "test_images": arrays["test_images"][..., None],
        "test_labels": arrays["test_labels"].astype(np.int64),
        "test_ids": default_ids(len(arrays["test_images"]), "test"),
    }


def _path(folder, name):
    for ending in (".gz", ""):
        path = os.path.join(folder, name + ending)
        if os.path.isfile(path):
            return path
    return None


def _unpacked(path):
    opener = gzip.open if path.endswith(".gz") else open
    try:
        with opener(path, "rb") as file:
            return file.read()
    except DAMAGE as error:
        raise DataError(
            f"{path}: is damaged or was cut short ({one_line(error)}); fetch "
            "it again"
        ) from error


def _parse(content, path):
    """Returns the array: a magic number, the shape, then the bytes."""
    rank = content[3] if content[:3] == b"\0\0\x08" else 0
    shape = ()
    if rank and len(content) >= 4 + 4 * rank:
        shape = struct.unpack(f">{rank}I", content[4 : 4 + 4 * rank])
    expected = 4 + 4 * rank + int(np.prod(shape, dtype=np.int64))
    if not shape or len(content) != expected:
        raise DataError(
            f"{path}: is no IDX file of bytes, or was cut short. "
            f"Received: {len(content)} bytes; expected {expected}"
        )
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * rank)
    return values.reshape(shape).copy()
