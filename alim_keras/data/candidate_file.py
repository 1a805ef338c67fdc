"""The file of candidate sets: an .npz archive without pickles.

Equal contents give equal bytes (the zip entries carry a fixed date), and a
file is never left half written.
"""

import contextlib
import io
import json
import os
import zipfile

import numpy as np

from alim_keras.data.checks import validate_candidates
from alim_keras.data.messages import one_line
from alim_keras.errors import DataError


def write(path, *, ids, sets, class_names, provenance, content_hash):
    """Writes one file: to a temporary name first, then renamed.

    Args:
        path: String or path, ending in .npz.
        ids: Strings `(num_examples,)`.
        sets: Bool `(num_examples, num_classes)`.
        class_names: Strings `(num_classes,)`.
        provenance: Dict of plain values, stored as JSON.
        content_hash: String, checked when the file is read.
    """
    arrays = {
        "ids": ids,
        "sets": sets,
        "class_names": class_names,
        "provenance": np.array(json.dumps(provenance, sort_keys=True)),
        "content_hash": np.array(content_hash),
    }
    temporary = f"{path}.{os.getpid()}.partial"
    try:
        folder = os.path.dirname(os.path.abspath(path))
        os.makedirs(folder, exist_ok=True)
        with open(temporary, "wb") as file:
            _write_archive(file, arrays)
        os.replace(temporary, path)
    except OSError as error:
        raise DataError(
            f"The candidate sets cannot be written to {path}: "
            f"{error.strerror or error}; choose another place"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _write_archive(file, arrays):
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            content = io.BytesIO()
            np.lib.format.write_array(
                content, np.asarray(array), allow_pickle=False
            )
            archive.writestr(entry, content.getvalue())


def open_npz(path):
    """Returns the arrays of an .npz file as a dict, without pickles.

    Raises:
        DataError: The file is missing, empty, no .npz or damaged.
    """
    try:
        if os.path.getsize(path) == 0:
            raise DataError(f"{path}: the file is empty; write it again")
        # numpy does not close a file it fails to read.
        with open(path, "rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise DataError(
                    f"{path}: holds one array, not an .npz file of several"
                )
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file") from error
    except IsADirectoryError as error:
        raise DataError(f"{path}: is a folder, not an .npz file") from error
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{path}: holds pickled objects or is no .npz file; save plain "
            f"arrays with numpy.savez ({one_line(error)})"
        ) from error
    except Exception as error:
        # zlib, zipfile, struct and OSError all mean the same to the user.
        raise DataError(
            f"{path}: cannot be read as an .npz file, it is damaged or was "
            f"cut short ({one_line(error)}); write it again"
        ) from error


def read(path):
    """Reads a file of candidate sets.

    Returns:
        Dict with ids, sets, class_names and provenance; and the stored hash
        or None.
    """
    arrays = open_npz(path)
    missing = [name for name in ("ids", "sets") if name not in arrays]
    if missing:
        raise DataError(
            f"{path}: the arrays 'ids' and 'sets' were expected. "
            f"Received: {sorted(arrays)}"
        )
    ids = arrays["ids"]
    if ids.ndim != 1 or ids.dtype.kind not in "US":
        raise DataError(
            f"{path}: 'ids' must be a list of strings. "
            f"Received: dtype={ids.dtype}, shape={ids.shape}"
        )
    ids = ids.astype(str)
    if ids.size == 0:
        raise DataError(f"{path}: the file is empty, it holds no example")
    names = arrays.get("class_names")
    try:
        sets = validate_candidates(arrays["sets"], ids=ids, form="multi_hot")
        provenance = json.loads(str(arrays.get("provenance", "{}")))
    except ValueError as error:
        raise DataError(f"{path}: {one_line(error)}") from error
    found = {
        "ids": ids,
        "sets": sets,
        "class_names": None if names is None else tuple(names.tolist()),
        "provenance": provenance,
    }
    stored = arrays.get("content_hash")
    return found, None if stored is None else str(stored)
