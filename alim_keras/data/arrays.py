"""Readers of .npz and .npy files: sets of candidates as arrays."""

import warnings

import numpy as np
import pandas as pd

from alim_keras.data import checks
from alim_keras.data.candidates import CandidateSets
from alim_keras.data.class_names import MOST_CLASSES
from alim_keras.data.class_names import check_class_names
from alim_keras.data.formats import format_of
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import DataWarning
from alim_keras.errors import one_line


def read_npz(path, names=None):
    """Returns the arrays of an .npz file; never pickles.

    Args:
        path: String. An .npy file is one array, called `"candidates"`.
        names: Strings, the arrays to unpack. Defaults to all.

    Returns:
        Dict from names to arrays; those that the file lacks are not in it.

    Raises:
        DataError: The file is missing, empty, damaged or holds pickles.
    """
    format_of(path, "npz")
    try:
        # numpy does not close a file that it fails to read.
        with open(path, "rb") as file:
            arrays = np.load(file, allow_pickle=False)
            if isinstance(arrays, np.ndarray):
                return {"candidates": arrays}
            return {
                name: arrays[name]
                for name in arrays.files
                if names is None or name in names
            }
    except Exception as error:
        # A damaged archive shows itself as almost any exception.
        raise DataError(
            f"{path}: holds pickled objects, is damaged or no .npz or .npy "
            f"file; save plain arrays with numpy.savez ({one_line(error)})"
        ) from error


def read_arrays(path, layout=None, name=None, class_names=None):
    """Returns the votes of an array of sets, one for each candidate.

    Args:
        path: String, an .npz or .npy file with the array `candidates` or
            `sets`, and if it has them `ids`, `class_names` and `labels` (true
            class numbers, -1 where one is not known).
        layout: `"multi_hot"`, the default, or `"list"`: class numbers, rows
            filled up with -1. A vector holds one class number in a row.
        name: String, the array of sets.
        class_names: Strings, or None.

    Raises:
        DataError: An array of another shape or type, or a number that is no
            class; the row is named.
    """
    sought = ("candidates", "sets") if name is None else (name,)
    others = ("ids", "class_names", "label_names", "labels", "content_hash")
    arrays = read_npz(path, {*sought, *others})
    provenance = {}
    if "content_hash" in arrays and name is None:
        saved = CandidateSets.load(path)
        ids, names, provenance = saved.ids, saved.class_names, saved.provenance
        indptr, classes, layout = saved.indptr, saved.indices, "multi_hot"
    else:
        sets = _array_of_sets(path, arrays, sought)
        if sets.ndim == 1 or layout == "list":
            sets, layout = sets.reshape(len(sets), -1), "list"
        ids = checks.row_ids(len(sets))
        if "ids" in arrays:
            ids = _texts(path, "ids", arrays["ids"])
        if len(ids) != len(sets):
            more = f", the first without a set is {ids[len(sets) :][:1]}"
            raise DataError(
                f"{path}: there are {len(sets)} sets but {len(ids)} ids"
                f"{more if len(ids) > len(sets) else ''}; give one for each"
            )
        try:
            names = class_names
            for name in {"class_names", "label_names"} & set(arrays):
                names = _texts(path, name, arrays[name]).tolist()
                names = check_class_names(names)
            indptr, classes, count = _members(sets, layout, names, ids)
        except (ConfigError, DataError) as error:
            # An argument in Python is a flag here.
            text = str(error).replace("pass form='ids'", "say --layout=list")
            raise DataError(f"{path}: {text}") from error
        names = names or tuple(str(number) for number in range(count))
    names = np.array(names, object)
    rows = np.repeat(np.arange(len(ids)), np.diff(indptr))
    empty = np.flatnonzero(np.diff(indptr) == 0)
    frame = pd.DataFrame(
        {
            "item": np.asarray(ids, object)[np.concatenate([rows, empty])],
            "annotator": None,
            "label": np.concatenate(
                [names[classes], np.full(len(empty), None)]
            ),
            "confidence": np.nan,
        },
        index=pd.Index(np.concatenate([rows, empty]), name="row"),
    )
    if "labels" in arrays:
        truth = _true_labels(path, arrays["labels"], len(names), ids)
        frame["truth"] = np.append(names, None)[truth][frame.index]
    frame = frame.sort_index(kind="stable")
    frame.attrs.update(
        layout=layout or "multi_hot",
        class_names=tuple(names),
        provenance=provenance,
        notes=[f"{len(ids)} sets of {len(names)} classes from an array"],
    )
    return frame


def _array_of_sets(path, arrays, sought):
    present = [name for name in sought if name in arrays]
    if len(present) != 1:
        raise DataError(
            f"{path}: one array called {' or '.join(sought)} was expected; "
            "name it with --candidates_column=NAME. Received: "
            f"{sorted(read_npz(path))}"
        )
    sets = arrays[present[0]]
    if sets.dtype.kind not in "biuf" or sets.ndim not in (1, 2):
        raise DataError(
            f"{path}: {present[0]!r} must be a matrix of 0 and 1, or of class "
            f"numbers filled up with -1. Received: dtype={sets.dtype}, "
            f"shape={sets.shape}"
        )
    if not sets.size:
        raise DataError(f"{path}: the file is empty, it holds no sets")
    return sets


def _members(sets, layout, names, ids):
    """Returns the lists of classes as (indptr, classes), and their number."""
    if layout != "list":
        if names is not None and len(names) != sets.shape[1]:
            raise DataError(
                f"the multi-hot sets have {sets.shape[1]} columns for "
                f"{len(names)} classes; if these are class numbers, say "
                "--layout=list"
            )
        lists = checks.multi_hot_to_lists([sets], sets.shape[1], ids)
        return *lists, sets.shape[1]
    rows = np.repeat(np.arange(len(sets)), sets.shape[1])
    if sets.dtype.kind == "b" or np.any(np.abs(sets) > 1e15):
        raise DataError("class numbers were expected, not bool or infinite")
    numbers = checks.class_numbers(sets.reshape(-1), rows, ids)
    count = len(names) if names else int(numbers.max()) + 1
    if not 0 < count <= MOST_CLASSES:
        raise DataError(
            f"the largest class number is {count - 1}; give the classes with "
            "--class_names if that is right"
        )
    checks.check_range(numbers, rows, count, ids, checks.PADDING)
    again = np.flatnonzero(np.sum(sets == 0, axis=1) > 1)
    if len(again):
        warnings.warn(
            f"{len(again)} rows name class 0 "
            f"({names[0] if names else '0'!r}) more than once: is it used to "
            "fill rows up? Use -1 for that",
            DataWarning,
            stacklevel=2,
        )
    real = numbers != checks.PADDING
    sizes = np.bincount(rows[real], minlength=len(sets))
    return np.concatenate([[0], np.cumsum(sizes)]), numbers[real], count


def _texts(path, name, array):
    """Returns an array of ids or names as strings `(n,)`."""
    if array.ndim != 1 or array.dtype.kind not in "USiu":
        raise DataError(
            f"{path}: {name!r} must be a list of strings. Received: "
            f"dtype={array.dtype}, shape={array.shape}"
        )
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8", "replace")
    return array.astype(str)


def _true_labels(path, labels, num_classes, ids):
    if labels.shape != (len(ids),) or labels.dtype.kind not in "iuf":
        raise DataError(
            f"{path}: 'labels' must hold {len(ids)} class numbers, -1 where "
            f"one is not known. Received: dtype={labels.dtype}, "
            f"shape={labels.shape}"
        )
    rows = np.arange(len(ids))
    try:
        numbers = checks.class_numbers(labels, rows, ids)
        checks.check_range(numbers, rows, num_classes, ids, -1)
    except DataError as error:
        raise DataError(f"{path}: in 'labels': {error}") from error
    return numbers
