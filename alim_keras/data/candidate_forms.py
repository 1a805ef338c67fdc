"""The forms in which candidate sets come, and their reading.

`validate_candidates` is the way in; these are its steps.
"""

import warnings

import numpy as np

from alim_keras.data.messages import DataWarning
from alim_keras.data.messages import first_rows
from alim_keras.data.messages import nearest
from alim_keras.errors import DataError

# Fills up rows of class numbers that are shorter than the longest.
PADDING = -1


def to_array(values):
    """Returns a numpy array of a list, an array or any backend's tensor."""
    if hasattr(values, "numpy"):
        values = values.numpy()
    elif hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return np.asarray(values)


def to_rows(candidates):
    """Returns a numeric matrix, or a list of lists where rows differ."""
    if hasattr(candidates, "to_list"):
        candidates = candidates.to_list()
    if isinstance(candidates, (list, tuple)):
        rows = list(candidates)
    else:
        array = to_array(candidates)
        if array.dtype.kind != "O":
            return _as_matrix(array)
        rows = list(array)
    if rows and not any(_is_list(row) for row in rows):
        rows = [[row] for row in rows]
    for number, row in enumerate(rows):
        if not _is_list(row):
            raise DataError(
                f"Row {number} of the candidate sets must be a list of "
                f"classes. Received: {row!r}"
            )
    rows = [to_array(row).reshape(-1).tolist() for row in rows]
    flat = [value for row in rows for value in row]
    same = len({len(row) for row in rows}) == 1 and bool(rows[0])
    if same and all(isinstance(value, (bool, int, float)) for value in flat):
        return _as_matrix(np.array(rows))
    return rows


def _is_list(row):
    return isinstance(row, (list, tuple)) or (
        hasattr(row, "__array__") and np.ndim(row) == 1
    )


def _as_matrix(array):
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise DataError(
            "Candidate sets must be a matrix (num_examples, num_classes) or "
            f"one list of classes per example. Received: shape={array.shape}"
        )
    return array if array.dtype.kind in "biuf" else array.tolist()


def is_multi_hot(found, num_classes, form):
    """Returns whether `found` is multi-hot rather than class numbers."""
    if form != "auto":
        if form == "multi_hot" and not isinstance(found, np.ndarray):
            raise DataError(
                "A multi-hot matrix of 0 and 1 with rows of one length was "
                "expected. Received: lists of other lengths or of names"
            )
        return form == "multi_hot"
    if not isinstance(found, np.ndarray):
        return False
    if found.dtype.kind == "b":
        return True
    if found.shape[1] == 1 and num_classes not in (None, 1):
        return False
    padded = np.any(found == PADDING)
    if found.shape[1] == num_classes and not padded:
        return True
    # Values such as 0.3 cannot be class numbers: reported as multi-hot.
    broken = found.dtype.kind == "f" and np.any(found != np.round(found))
    return bool(broken) or bool(np.all((found == 0) | (found == 1)))


def from_multi_hot(found, num_classes, ids):
    """Returns a matrix of 0 and 1 as bool, or refuses what it is."""
    if num_classes is not None and found.shape[1] != num_classes:
        raise DataError(
            f"The multi-hot candidate sets have {found.shape[1]} columns, "
            f"but there are {num_classes} classes; if these are class "
            "numbers, pass form='ids'"
        )
    if found.dtype.kind == "b":
        return found
    wrong = ~((found == 0) | (found == 1))
    if wrong.any():
        rows, columns = np.nonzero(wrong)
        value = found[rows[0], columns[0]]
        what = "blank (NaN)" if np.isnan(value) else f"{value}"
        raise DataError(
            f"Multi-hot candidate sets must hold only 0 and 1: {len(rows)} "
            f"other values, {first_rows(np.unique(rows), ids)}; the first is "
            f"{what} in column {columns[0]}; round weights to 0 or 1, or "
            "pass form='ids' if these are class numbers"
        )
    return found.astype(bool)


def from_class_numbers(found, num_classes, ids, class_names):
    """Returns rows of class numbers or names as a bool matrix."""
    lengths = np.array([len(row) for row in found])
    rows = np.repeat(np.arange(len(found)), lengths)
    if isinstance(found, np.ndarray):
        values = found.reshape(-1)
    else:
        values = [value for row in found for value in row]
    numbers = class_numbers(values, rows, class_names, ids)
    real = numbers != PADDING
    if num_classes is None:
        num_classes = int(numbers.max()) + 1 if real.any() else 1
    check_range(numbers, rows, num_classes, ids, PADDING)
    votes = np.zeros((len(found), num_classes), np.int32)
    np.add.at(votes, (rows[real], numbers[real]), 1)
    repeated = np.flatnonzero((votes > 1).any(1))
    if len(repeated):
        warnings.warn(
            f"{len(repeated)} candidate sets name a class more than once "
            f"({first_rows(repeated, ids)}); it counts once",
            DataWarning,
            stacklevel=4,
        )
    return votes > 0


def class_numbers(values, rows, class_names, ids):
    """Returns class numbers (or names, or whole floats) as int64."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        numbers = values
    else:
        values = list(values)
        names = {str(name): i for i, name in enumerate(class_names or ())}
        numbers = np.empty(len(values))
        for place, value in enumerate(values):
            numbers[place] = _class_number(value, names, rows[place], ids)
    broken = np.flatnonzero(numbers != np.round(numbers))
    if len(broken):
        value = numbers[broken[0]]
        what = "blank (NaN)" if np.isnan(value) else f"{value}"
        raise DataError(
            f"{len(broken)} class numbers are not whole, "
            f"{first_rows(np.unique(rows[broken]), ids)}; the first is "
            f"{what}; use integers from 0, and -1 to fill a row up"
        )
    return numbers.astype(np.int64)


def _class_number(value, names, row, ids):
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, str):
        name = value.strip()
        if name in names:
            return names[name]
        hint = nearest(name, names) if names else "; pass `class_names`"
        raise DataError(
            f"Unknown class name {name!r} in {first_rows([row], ids)}{hint}"
        )
    if value is None:
        return np.nan
    if isinstance(value, (bool, np.bool_)):
        raise DataError(
            f"Class numbers were expected, or multi-hot rows of one length. "
            f"Received: {value!r} in {first_rows([row], ids)}"
        )
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise DataError(
            "A class number or name was expected. "
            f"Received: {value!r} in {first_rows([row], ids)}"
        ) from error


def check_range(numbers, rows, num_classes, ids, lowest):
    """Refuses numbers outside `lowest`..C-1, with a hint where it helps."""
    wrong = np.flatnonzero((numbers < lowest) | (numbers >= num_classes))
    if not len(wrong):
        return
    real = numbers[numbers != PADDING] if lowest < 0 else numbers
    hint = ""
    if real.min() == 1 and real.max() == num_classes:
        hint = "; they look 1-based: do the labels start at 0?"
    raise DataError(
        f"{len(wrong)} labels are outside 0..{num_classes - 1}, "
        f"{first_rows(np.unique(rows[wrong]), ids)}; the first is "
        f"{numbers[wrong[0]]}{hint}"
    )
