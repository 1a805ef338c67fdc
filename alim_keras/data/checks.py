"""Checks of labels and candidate sets before anything is trained on them.

A wrong label is silent further on (`one_hot` of an unknown class is an empty
set), so everything is checked here, once, with the row and the remedy named.
"""

import warnings

import numpy as np

from alim_keras.data.messages import first_five
from alim_keras.data.messages import first_rows
from alim_keras.data.messages import nearest
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

FORMS = ("auto", "multi_hot", "ids")
_PADDING = -1


class DataWarning(UserWarning):
    """Data that can be used but looks as if it were not what was meant."""


def validate_labels(labels, num_classes, ids=None):
    """Returns single labels as int64 `(num_examples,)`, or says what is wrong.

    Args:
        labels: Integers `(num_examples,)`, or floats with whole values.
        num_classes: Integer, the number of classes C.
        ids: Optional strings `(num_examples,)`, for the message.

    Raises:
        DataError: Wrong shape or type, or a label outside 0..C-1.
    """
    labels = _to_array(labels)
    if labels.ndim != 1:
        raise DataError(
            "`labels` must have the shape (num_examples,), one class number "
            f"each. Received: shape={labels.shape}"
        )
    _check_lengths(len(labels), ids, "labels")
    numbers = _class_numbers(labels, np.arange(len(labels)), None, ids)
    _check_range(numbers, np.arange(len(labels)), num_classes, ids, 0)
    return numbers


def validate_candidates(
    candidates, num_classes=None, ids=None, class_names=None, form="auto"
):
    """Returns candidate sets as a bool matrix, or says what is wrong.

    Accepted are multi-hot matrices of bool, or of integers or floats that
    are 0 or 1; lists (or object arrays, or a `tf.RaggedTensor`) of class
    numbers or names; matrices of class numbers padded with -1; and a flat
    list of class numbers, as sets of one. A matrix counts as multi-hot when
    all its values are 0 or 1, or when it has `num_classes` columns and no
    -1; otherwise as padded class numbers. `form` settles the rest.

    Args:
        candidates: The sets, one for each example, in one of these forms.
        num_classes: Integer C. Defaults to the number of `class_names`, of
            columns, or the largest class number plus one.
        ids: Optional strings `(num_examples,)`, for the messages.
        class_names: Optional strings `(num_classes,)`, to look names up.
        form: `"auto"`, `"multi_hot"` or `"ids"`.

    Returns:
        A bool array `(num_examples, num_classes)`, no row of it empty.

    Raises:
        DataError: An empty set, a class out of range, NaN or a blank, a
            value that is neither 0 nor 1, a width other than `num_classes`,
            an unknown name, or another number of ids than of sets.

    Example:

    >>> validate_candidates([[0], [1, 2]], num_classes=3).astype(int).tolist()
    [[1, 0, 0], [0, 1, 1]]
    """
    if form not in FORMS:
        raise ConfigError(
            f"Unknown `form`, expected one of {', '.join(FORMS)}. "
            f"Received: form={form!r}"
        )
    if class_names is not None and num_classes is None:
        num_classes = len(class_names)
    found = _to_rows(candidates)
    _check_lengths(len(found), ids, "candidate sets")
    if len(found) == 0:
        raise DataError("There are no candidate sets: the input is empty")
    if _is_multi_hot(found, num_classes, form):
        sets = _from_multi_hot(found, num_classes, ids)
    else:
        sets = _from_class_numbers(found, num_classes, ids, class_names)
    _check_sets(sets, ids)
    return sets


def deduplicate(ids, sets, where="the candidate sets"):
    """Drops repeated ids whose sets are equal; refuses those that differ.

    Args:
        ids: Strings `(num_rows,)`.
        sets: Bool `(num_rows, num_classes)`.
        where: String, for the message.

    Returns:
        `ids` and `sets` with each id once, at its first place.

    Raises:
        DataError: One id has two different sets.
    """
    ids, sets = np.asarray(ids, str), np.asarray(sets, bool)
    _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    differs = np.flatnonzero((sets != sets[first[inverse]]).any(1))
    if len(differs):
        names = np.unique(ids[differs])
        raise DataError(
            f"{where}: {len(names)} ids have two different sets: "
            f"{first_five(names)}; keep one of each"
        )
    if len(first) < len(ids):
        warnings.warn(
            f"{where}: {len(ids) - len(first)} rows repeat an id with the "
            "same set and were left out",
            DataWarning,
            stacklevel=2,
        )
    keep = np.sort(first)
    return ids[keep], sets[keep]


def check_truth_inside(sets, labels, noise_rate):
    """Warns when sets said to be clean leave out the true label.

    Args:
        sets: Bool `(num_examples, num_classes)`.
        labels: Integers `(num_examples,)`, the true classes.
        noise_rate: Float, what was claimed.

    Returns:
        Integer, in how many sets the true class is missing.
    """
    labels = np.asarray(labels)
    outside = int(np.sum(~np.asarray(sets)[np.arange(len(labels)), labels]))
    if noise_rate == 0 and outside:
        warnings.warn(
            f"{outside} of {len(labels)} candidate sets leave out the true "
            "class although the noise rate was given as 0",
            DataWarning,
            stacklevel=2,
        )
    return outside


def _to_array(values):
    """Returns a numpy array of a list, an array or any backend's tensor."""
    if hasattr(values, "numpy"):
        values = values.numpy()
    elif hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return np.asarray(values)


def _to_rows(candidates):
    """Returns a numeric matrix, or a list of lists where rows differ."""
    if hasattr(candidates, "to_list"):
        candidates = candidates.to_list()
    if isinstance(candidates, (list, tuple)):
        rows = list(candidates)
    else:
        array = _to_array(candidates)
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
    rows = [_to_array(row).reshape(-1).tolist() for row in rows]
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


def _is_multi_hot(found, num_classes, form):
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
    padded = np.any(found == _PADDING)
    if found.shape[1] == num_classes and not padded:
        return True
    # Values such as 0.3 cannot be class numbers: reported as multi-hot.
    broken = found.dtype.kind == "f" and np.any(found != np.round(found))
    return bool(broken) or bool(np.all((found == 0) | (found == 1)))


def _from_multi_hot(found, num_classes, ids):
    if num_classes is not None and found.shape[1] != num_classes:
        raise DataError(
            f"The multi-hot candidate sets have {found.shape[1]} columns, "
            f"but there are {num_classes} classes; if these are class "
            "numbers, pass form='ids'"
        )
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


def _from_class_numbers(found, num_classes, ids, class_names):
    lengths = np.array([len(row) for row in found])
    rows = np.repeat(np.arange(len(found)), lengths)
    if isinstance(found, np.ndarray):
        values = found.reshape(-1)
    else:
        values = [value for row in found for value in row]
    numbers = _class_numbers(values, rows, class_names, ids)
    real = numbers != _PADDING
    if num_classes is None:
        num_classes = int(numbers.max()) + 1 if real.any() else 1
    _check_range(numbers, rows, num_classes, ids, _PADDING)
    votes = np.zeros((len(found), num_classes), np.int32)
    np.add.at(votes, (rows[real], numbers[real]), 1)
    repeated = np.flatnonzero((votes > 1).any(1))
    if len(repeated):
        warnings.warn(
            f"{len(repeated)} candidate sets name a class more than once "
            f"({first_rows(repeated, ids)}); it counts once",
            DataWarning,
            stacklevel=3,
        )
    return votes > 0


def _class_numbers(values, rows, class_names, ids):
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


def _check_range(numbers, rows, num_classes, ids, lowest):
    wrong = np.flatnonzero((numbers < lowest) | (numbers >= num_classes))
    if not len(wrong):
        return
    real = numbers[numbers != _PADDING] if lowest < 0 else numbers
    hint = ""
    if real.min() == 1 and real.max() == num_classes:
        hint = "; they look 1-based: do the labels start at 0?"
    raise DataError(
        f"{len(wrong)} labels are outside 0..{num_classes - 1}, "
        f"{first_rows(np.unique(rows[wrong]), ids)}; the first is "
        f"{numbers[wrong[0]]}{hint}"
    )


def _check_lengths(count, ids, what):
    if ids is None or len(ids) == count:
        return
    unmatched = list(ids)[count:]
    tail = f", the first without one is {unmatched[0]}" if unmatched else ""
    raise DataError(
        f"There are {count} {what} but {len(ids)} ids{tail}; give one for "
        "each example"
    )


def _check_sets(sets, ids):
    empty = np.flatnonzero(~sets.any(1))
    if len(empty):
        raise DataError(
            f"{len(empty)} candidate sets are empty, {first_rows(empty, ids)}; "
            "give each at least one class, or all classes if nothing is known"
        )
    count, num_classes = sets.shape
    full = int(np.sum(sets.all(1)))
    if num_classes > 1 and full > 0.05 * count:
        warnings.warn(
            f"{full} of {count} candidate sets hold all {num_classes} "
            "classes and say nothing",
            DataWarning,
            stacklevel=3,
        )
    share = sets.mean(0)
    common = np.flatnonzero(share > 0.99)
    # A few examples, or sets that are all full, say nothing about padding.
    if count >= 10 and 0 < len(common) < num_classes:
        warnings.warn(
            f"Class {common[0]} is in {share[common[0]]:.1%} of the candidate "
            "sets: is it used to fill rows up? Use -1 for that",
            DataWarning,
            stacklevel=3,
        )
