"""CIFAR-10 and CIFAR-100 from the official archives, in either form."""

import io
import pickle

import numpy as np

from alim_keras.data.candidate_sets import default_ids
from alim_keras.data.messages import one_line
from alim_keras.data.sources import members
from alim_keras.errors import DataError

_PIXELS = 3 * 32 * 32
_BATCHES = range(1, 6)
# File names, where the class names stand, label bytes before the pixels.
_BINARY = {
    "cifar10": (
        "cifar-10-batches-bin",
        [f"data_batch_{number}.bin" for number in _BATCHES],
        "test_batch.bin",
        "batches.meta.txt",
        1,
    ),
    "cifar100": (
        "cifar-100-binary",
        ["train.bin"],
        "test.bin",
        "fine_label_names.txt",
        2,
    ),
}
# File names, where the class names stand, the keys of labels and names.
_PICKLED = {
    "cifar10": (
        "cifar-10-batches-py",
        [f"data_batch_{number}" for number in _BATCHES],
        "test_batch",
        "batches.meta",
        (b"labels", b"label_names"),
    ),
    "cifar100": (
        "cifar-100-python",
        ["train"],
        "test",
        "meta",
        (b"fine_labels", b"fine_label_names"),
    ),
}


def read(path, name):
    """Reads an archive or its unpacked folder; the order is the official one.

    Args:
        path: String, such as `.../cifar-10-binary.tar.gz`.
        name: `"cifar10"` or `"cifar100"`.

    Returns:
        Dict of the fields of `ImageData`.

    Raises:
        DataError: Files are missing, damaged or of another size.
    """
    binary = "bin" in path.rsplit("/", 1)[-1]
    folder, train, test, names, detail = (_BINARY if binary else _PICKLED)[name]
    decode = _decode_binary if binary else _decode_pickle
    wanted = [f"{folder}/{file}" for file in [*train, test, names]]
    found = members.read(path, wanted)
    parts = [
        decode(found[file], f"{path}: {file}", detail) for file in wanted[:-1]
    ]
    if binary:
        lines = found[wanted[-1]].decode().split("\n")
        class_names = tuple(line.strip() for line in lines if line.strip())
    else:
        listed = _unpickle(found[wanted[-1]], f"{path}: {wanted[-1]}")
        class_names = tuple(text.decode() for text in listed[detail[1]])
    images = np.concatenate([part[0] for part in parts[:-1]])
    return {
        "images": images,
        "labels": np.concatenate([part[1] for part in parts[:-1]]),
        "ids": default_ids(len(images)),
        "class_names": class_names,
        "test_images": parts[-1][0],
        "test_labels": parts[-1][1],
        "test_ids": default_ids(len(parts[-1][0]), "test"),
    }


def _to_images(rows):
    planes = rows.reshape(-1, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))


def _decode_binary(content, where, label_bytes):
    size = label_bytes + _PIXELS
    if not content or len(content) % size:
        raise DataError(
            f"{where}: whole records of {size} bytes were expected. "
            f"Received: {len(content)} bytes"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, size)
    # The fine label is the last of the label bytes.
    labels = records[:, label_bytes - 1].astype(np.int64)
    return _to_images(records[:, label_bytes:]), labels


def _decode_pickle(content, where, keys):
    batch = _unpickle(content, where)
    try:
        rows, labels = np.asarray(batch[b"data"]), batch[keys[0]]
    except (KeyError, TypeError) as error:
        raise DataError(f"{where}: has no entry {one_line(error)}") from error
    if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != _PIXELS:
        raise DataError(
            f"{where}: rows of {_PIXELS} bytes were expected. "
            f"Received: shape={rows.shape}, dtype={rows.dtype}"
        )
    return _to_images(rows), np.asarray(labels, np.int64)


class _ArrayUnpickler(pickle.Unpickler):
    """Rebuilds arrays and plain values; no other class is ever loaded."""

    def find_class(self, module, name):
        rebuild, _, _ = np.zeros(1, np.uint8).__reduce__()
        allowed = {
            "_reconstruct": rebuild,
            "ndarray": np.ndarray,
            "dtype": np.dtype,
        }
        if module.split(".")[0] == "numpy" and name in allowed:
            return allowed[name]
        if (module, name) == ("_codecs", "encode"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it holds a {module}.{name}")


def _unpickle(content, where):
    try:
        return _ArrayUnpickler(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:
        raise DataError(
            f"{where}: is damaged or is no batch of CIFAR ({one_line(error)})"
        ) from error
