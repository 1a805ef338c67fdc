"""Checks of labels and candidate sets before anything is trained on them.

A wrong label is silent further on (`one_hot` of an unknown class is an empty
set), so everything is checked here, once, with the row and the remedy named.
"""

import warnings

import numpy as np

from alim_keras.data import candidate_forms as forms
from alim_keras.data.messages import DataWarning
from alim_keras.data.messages import first_five
from alim_keras.data.messages import first_rows
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

_FORMS = ("auto", "multi_hot", "ids")


def validate_labels(labels, num_classes, ids=None):
    """Returns single labels as int64 `(num_examples,)`, or says what is wrong.

    Args:
        labels: Integers `(num_examples,)`, or floats with whole values.
        num_classes: Integer, the number of classes C.
        ids: Optional strings `(num_examples,)`, for the message.

    Raises:
        DataError: Wrong shape or type, or a label outside 0..C-1.
    """
    labels = forms.to_array(labels)
    if labels.ndim != 1:
        raise DataError(
            "`labels` must have the shape (num_examples,), one class number "
            f"each. Received: shape={labels.shape}"
        )
    _check_lengths(len(labels), ids, "labels")
    numbers = forms.class_numbers(labels, np.arange(len(labels)), None, ids)
    forms.check_range(numbers, np.arange(len(labels)), num_classes, ids, 0)
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
    if form not in _FORMS:
        raise ConfigError(
            f"Unknown `form`, expected one of {', '.join(_FORMS)}. "
            f"Received: form={form!r}"
        )
    if class_names is not None and num_classes is None:
        num_classes = len(class_names)
    found = forms.to_rows(candidates)
    _check_lengths(len(found), ids, "candidate sets")
    if len(found) == 0:
        raise DataError("There are no candidate sets: the input is empty")
    if forms.is_multi_hot(found, num_classes, form):
        sets = forms.from_multi_hot(found, num_classes, ids)
    else:
        sets = forms.from_class_numbers(found, num_classes, ids, class_names)
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


def check_text(source, what, texts):
    """Refuses strings with half of a surrogate pair: no file can hold them.

    Args:
        source: String, where they are from, for the message.
        what: String, what they are, likewise.
        texts: Strings, an array `(n,)`.

    Raises:
        DataError: Some are no text.
    """
    points = np.ascontiguousarray(texts).view(np.uint32)
    if points.max(initial=0) < 0xD800:
        return  # As nearly always, and quick for a million.
    points = points.reshape(len(texts), -1)
    rows = np.flatnonzero((points >> 11 == 0xD800 >> 11).any(1))
    if len(rows):
        shown = [ascii(str(one)) for one in texts[rows[:6]]]
        raise DataError(
            f"{source}: {len(rows)} {what} are no UTF-8 text: "
            f"{first_five(shown)}; rename them"
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
    if count < 10 or num_classes < 2:
        return  # Too few to say what is usual.
    full = int(np.sum(sets.all(1)))
    if full > 0.05 * count:
        warnings.warn(
            f"{full} of {count} candidate sets hold all {num_classes} "
            "classes and say nothing",
            DataWarning,
            stacklevel=3,
        )
    share = sets.mean(0)
    common = np.flatnonzero(share > 0.99)
    # Sets that are all full say nothing about padding.
    if 0 < len(common) < num_classes:
        warnings.warn(
            f"Class {common[0]} is in {share[common[0]]:.1%} of the candidate "
            "sets: is it used to fill rows up? Use -1 for that",
            DataWarning,
            stacklevel=3,
        )
