"""The file of candidate sets: an .npz archive without pickles.

Equal contents give equal bytes (the zip entries carry a fixed date), and a
file is never left half written. The multi-hot matrix is written and read in
blocks of rows, so that it never stands in memory whole.
"""

import io
import json
import os
import zipfile

import numpy as np

from alim_keras import files
from alim_keras.data import checks
from alim_keras.errors import DataError
from alim_keras.errors import one_line


def write(path, candidates):
    """Writes `CandidateSets` to a file; see `CandidateSets.save`."""
    provenance = json.dumps(candidates.provenance, sort_keys=True)
    try:
        with (
            files.replacing(path) as file,
            zipfile.ZipFile(file, "w") as archive,
        ):
            _add(archive, "ids", candidates.ids)
            blocks = (block > 0 for block in candidates.blocks())
            shape = candidates.shape
            _add_blocks(archive, "sets", np.dtype(bool), shape, blocks)
            names = np.array(candidates.class_names, str)
            _add(archive, "class_names", names)
            _add(archive, "provenance", np.array(provenance))
            _add(archive, "content_hash", np.array(candidates.content_hash))
    except OSError as error:
        raise DataError(
            f"The candidate sets cannot be written to {path}: "
            f"{error.strerror or error}; choose another place"
        ) from error


def _add(archive, name, array):
    _add_blocks(archive, name, array.dtype, array.shape, [array])


def _add_blocks(archive, name, dtype, shape, blocks):
    """Adds an array to an open zip file, block by block."""
    header = io.BytesIO()
    fields = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": shape,
    }
    np.lib.format.write_array_header_1_0(header, fields)
    entry = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    entry.file_size = size + len(header.getvalue())
    with archive.open(entry, "w") as member:
        member.write(header.getvalue())
        for block in blocks:
            member.write(np.ascontiguousarray(block).tobytes())


def read(path):
    """Reads a file of candidate sets.

    Returns:
        Dict of the arguments of `CandidateSets`, without class names if the
        file has none; and the stored hash or None.

    Raises:
        DataError: The file is missing, empty, damaged, lacks an array, or
            holds other values than 0 and 1.
    """
    arrays = open_npz(path, leave_out=("sets",))
    if "ids" not in arrays or "sets" not in arrays:
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
    if ids.size == 0:
        raise DataError(f"{path}: the file is empty, it holds no example")
    ids = ids.astype(str)
    try:
        with zipfile.ZipFile(path) as archive:
            with archive.open("sets.npy") as file:
                blocks, shape = _blocks(file, path)
                if len(shape) != 2 or shape[0] != len(ids):
                    raise DataError(
                        "'sets' must be a matrix with a row for each of the "
                        f"{len(ids)} ids. Received: shape={shape}"
                    )
                indptr, indices = checks.multi_hot_to_lists(
                    blocks, shape[1], ids
                )
        provenance = json.loads(str(arrays.get("provenance", "{}")))
    except Exception as error:
        if str(path) in str(error):
            raise
        # zlib, zipfile and json all mean the same to the user.
        raise DataError(f"{path}: {one_line(error)}") from error
    names = arrays.get("class_names")
    if names is None:
        names = range(shape[1])
    elif len(names) != shape[1]:
        raise DataError(
            f"{path}: one name for each of the {shape[1]} classes was "
            f"expected. Received: {len(names)} names"
        )
    contents = {
        "ids": ids,
        "class_names": tuple(str(name) for name in names),
        "indptr": indptr,
        "indices": indices,
        "provenance": provenance,
        "source": str(path),
    }
    stored = arrays.get("content_hash")
    return contents, None if stored is None else str(stored)


def _blocks(file, path):
    """Returns the row blocks of an open .npy member, and the shape."""
    if np.lib.format.read_magic(file) == (1, 0):
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
        if len(shape) == 2 and not is_fortran and dtype.kind in "biuf":

            def blocks():
                step = checks.rows_at_once(shape[1])
                for start in range(0, shape[0], step):
                    rows = min(step, shape[0] - start)
                    content = file.read(rows * shape[1] * dtype.itemsize)
                    part = np.frombuffer(content, dtype)
                    yield part.reshape(rows, shape[1])

            return blocks(), shape
    sets = open_npz(path)["sets"]
    return [sets], sets.shape


def open_npz(path, leave_out=()):
    """Returns the arrays of an .npz file as a dict, without pickles.

    Args:
        path: The file.
        leave_out: Names of arrays that are not read: None stands for each.

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
            return {
                name: None if name in leave_out else archive[name]
                for name in archive.files
            }
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
