"""Whether what is to be examined fits together."""

import collections

import numpy as np

from alim_keras.data import Votes
from alim_keras.data.checks import check_text
from alim_keras.data.messages import first_five
from alim_keras.data.messages import first_rows
from alim_keras.errors import DataError
from alim_keras.report.suspicion import KINDS


def check(probabilities, candidates, class_names, ids, kind):
    """Returns the kind of each example.

    Args:
        probabilities: Array `(N, C)`.
        candidates: Array `(N, C)`, or `SparseCandidates`.
        class_names: C strings.
        ids: N strings.
        kind: One of `KINDS`, or N of them.

    Returns:
        Strings `(N,)`.

    Raises:
        DataError: If shapes do not fit, an id or a class name stands there
            twice or is no text, or a kind is unknown.
    """
    shape = (len(ids), len(class_names))
    for what, found in (
        ("probabilities", probabilities.shape),
        ("candidates", tuple(candidates.shape)),
    ):
        if found != shape:
            raise DataError(
                f"The {what} must be a row for each of {shape[0]} ids and a "
                f"column for each of {shape[1]} class names. Received: {found}"
            )
    check_text("The audit", "ids", np.asarray(ids, str))
    names = [str(name) for name in class_names]
    check_text("The audit", "class names", np.asarray(names, str))
    if len(set(names)) < len(names):
        counts = collections.Counter(names)
        twice = [name for name in counts if counts[name] > 1]
        raise DataError(
            "Class names must all be different. Received twice: "
            f"{first_five(twice)}"
        )
    if len(set(ids)) < len(ids):
        seen = set()
        # `add` returns None: what is not new stays.
        twice = [row for row, i in enumerate(ids) if i in seen or seen.add(i)]
        raise DataError(
            f"{len(twice)} examples have the id of another one, "
            f"{first_rows(np.array(twice), ids)}; give each an id of its own"
        )
    sources = np.full(shape[0], "", object)
    if not isinstance(kind, str):
        check_length("kind", kind, shape[0])
    sources[:] = kind
    unknown = {str(one) for one in set(sources) - set(KINDS)}
    if unknown:
        raise DataError(
            f"Argument `kind` must be one of {KINDS}, or one for "
            f"each example. Received: {sorted(unknown)}"
        )
    return sources


def check_length(what, values, count):
    """Raises `DataError` unless there is a value for each example.

    Args:
        what: Name of the argument.
        values: A sequence, or None, which is right.
        count: Integer N.
    """
    shape = (0,) if values is None else np.shape(values)
    if values is not None and shape != (count,):
        raise DataError(
            f"Argument `{what}` must be one value for each of {count} "
            f"examples. Received: shape {shape}"
        )


def check_shape(what, values, shape):
    """Raises `DataError` unless a table has a row and column for everything.

    Args:
        what: Name of the argument.
        values: Array, or `SparseCandidates`.
        shape: `(N, C)`.
    """
    found = tuple(values.shape if hasattr(values, "rows") else np.shape(values))
    if found != shape:
        raise DataError(
            f"Argument `{what}` must be a row for each of {shape[0]} ids and "
            f"a column for each of {shape[1]} class names. Received: {found}"
        )


def check_votes(votes, count, num_classes):
    """Raises `DataError` unless votes are about these examples and classes.

    Args:
        votes: A `Votes`, or None.
        count: Integer N.
        num_classes: Integer C.
    """
    if votes is None:
        return
    if not isinstance(votes, Votes):
        raise DataError(
            "Argument `votes` must be an alim_keras.data.Votes, as "
            f"read_labels gives it. Received: {type(votes).__name__}"
        )
    names = np.asarray([str(name) for name in votes.annotator_names], str)
    check_text("The votes", "annotators", names)
    for what, below in (
        ("rows", count),
        ("classes", num_classes),
        ("annotators", len(names)),
    ):
        found = np.asarray(getattr(votes, what))
        if found.shape != (len(votes.rows),):
            raise DataError(
                f"`votes.{what}` must be a number for each of "
                f"{len(votes.rows)} votes. Received: shape {found.shape}"
            )
        wrong = np.flatnonzero((found < 0) | (found >= below))
        if len(wrong):
            raise DataError(
                f"`votes.{what}` must be numbers from 0 to {below - 1}. "
                f"Received: {found[wrong[0]]} in vote {wrong[0]}"
            )


def check_labels(labels, count, num_classes):
    """Returns the true labels as an array of integers, or None.

    Args:
        labels: Integers `(N,)` in [0, C), -1 where the truth is not known;
            or None.
        count: Integer N.
        num_classes: Integer C.

    Raises:
        DataError: If there are more or fewer, or other numbers.
    """
    if labels is None:
        return None
    if len(labels) != count:
        raise DataError(
            "There must be a true label for each example, -1 where it is not "
            f"known. Received: {len(labels)} labels, {count} ids"
        )
    found = np.asarray(labels)
    # An empty list is one of floats.
    if count and (found.ndim != 1 or found.dtype.kind not in "iu"):
        raise DataError(
            "True labels must be integers, the numbers of classes, -1 where "
            f"the truth is not known. Received: {found.dtype} of shape "
            f"{found.shape}"
        )
    found = found.astype("int64")
    wrong = np.flatnonzero((found < -1) | (found >= num_classes))
    if len(wrong):
        raise DataError(
            f"{len(wrong)} true labels are no class: a number from 0 to "
            f"{num_classes - 1} was expected, or -1 where the truth is not "
            f"known. Received: {found[wrong[0]]} in row {wrong[0]}"
        )
    return found


def check_rows(probabilities, given, rows, ids):
    """Raises `DataError` for a row that is no distribution, or no set.

    Args:
        probabilities: Floats `(n, C)`.
        given: Bool `(n, C)`, the sets.
        rows: Integers `(n,)`, which examples these are.
        ids: N strings.
    """
    sound = np.isfinite(probabilities).all(axis=1)
    sound &= (probabilities >= 0).all(axis=1)
    for what, wrong in (
        ("probabilities that are negative or not finite", ~sound),
        ("an empty candidate set", ~given.any(axis=1)),
    ):
        if wrong.any():
            raise DataError(
                f"{int(wrong.sum())} or more examples have {what}, "
                f"{first_rows(rows[wrong], ids)}"
            )
