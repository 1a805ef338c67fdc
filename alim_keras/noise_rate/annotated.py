"""The noise rate from examples whose true label somebody looked up."""

import csv

import numpy as np

from alim_keras.data.messages import first_five
from alim_keras.data.messages import nearest
from alim_keras.errors import DataError
from alim_keras.noise_rate.estimate import Estimate

# The 97.5 % quantile of the normal distribution.
_Z = 1.959963984540054


def annotated(labels, candidates):
    """Estimates eta as the share of looked-up labels outside their set.

    The examples must be a random sample of the training set. The interval is
    Wilson's, which holds its level for small counts too, and at 0 of n.

    Args:
        labels: Integers `(n,)`, true classes.
        candidates: Multi-hot array `(n, C)`, the noisy sets of the same
            examples.

    Returns:
        An `Estimate`. `details` holds `labels`, `wrong` and
        `more_labels_to_halve`: how many further labels would halve the
        interval, if the share stayed.

    Raises:
        DataError: If there is no label, or shapes differ.

    Example:

    >>> found = annotated([0, 1, 1, 0], [[1, 0]] * 4)
    >>> found.value, round(found.low, 3), round(found.high, 3)
    (0.5, 0.15, 0.85)

    Reference:
    - [Wilson, 1927](https://doi.org/10.1080/01621459.1927.10502953)
    """
    labels = np.asarray(labels, "int64")
    candidates = np.asarray(candidates) > 0
    count = len(labels)
    if not count or candidates.shape[:1] != (count,):
        raise DataError(
            "At least one true label and as many candidate sets were "
            f"expected. Received: {count} labels, sets {candidates.shape}"
        )
    wrong = int((~candidates[np.arange(count), labels]).sum())
    low, high = wilson(wrong, count)
    more = _labels_for(wrong / count, (high - low) / 2) - count
    return Estimate(
        value=wrong / count,
        low=low,
        high=high,
        method="annotated",
        reason=f"{wrong} of {count} true labels that were given are not in "
        f"their set; {more} more labels would halve the interval.",
        details={
            "labels": count,
            "wrong": wrong,
            "more_labels_to_halve": more,
        },
    )


def wilson(successes, count):
    """Returns the ends of Wilson's 95 % interval of a share."""
    share, z2 = successes / count, _Z**2
    centre = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = _half_width(share, count)
    # Exact at the ends, where the arithmetic leaves 1e-17.
    low = 0.0 if successes == 0 else max(centre - half, 0.0)
    high = 1.0 if successes == count else min(centre + half, 1.0)
    return low, high


def _half_width(share, count):
    z2 = _Z**2
    root = np.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    return float(_Z * root / (1 + z2 / count))


def _labels_for(share, width):
    """The fewest labels whose interval is at most `width` wide."""
    low, high = 0, 1
    while 2 * _half_width(share, high) > width:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if 2 * _half_width(share, middle) > width:
            low = middle
        else:
            high = middle
    return high


def read_annotations(path, ids, class_names):
    """Reads a CSV file with the columns `id` and `label`.

    Args:
        path: The file. Further columns are left alone.
        ids: Strings `(N,)`, of the training set.
        class_names: The classes; a label is a name, or its number from 0.

    Returns:
        A pair of int64 arrays `(n,)`: rows of `ids`, and labels.

    Raises:
        DataError: The file is missing, lacks a column or holds no label; an
            id is unknown or comes twice; a label is no class. It names up to
            five lines of the file.
    """
    rows, labels = [], []
    places = {str(one): row for row, one in enumerate(ids)}
    names = {str(name): number for number, name in enumerate(class_names)}
    seen, problems = {}, {"id": [], "twice": [], "label": []}
    for line, one, label in _read(path):
        if one not in places:
            problems["id"].append(f"{one!r} (line {line})")
        elif one in seen:
            problems["twice"].append(f"{one!r} (lines {seen[one]} and {line})")
        elif _class(label, names) is None:
            problems["label"].append(f"{label!r} (line {line})")
        else:
            rows.append(places[one])
            labels.append(_class(label, names))
        seen.setdefault(one, line)
    for name, (what, expected) in {
        "id": ("ids are not of the training set", f"such as {first_five(ids)}"),
        "twice": ("ids come twice", "one line for each id"),
        "label": (
            "labels are no class",
            f"one of {first_five(list(class_names))}, or a number from 0 to "
            f"{len(names) - 1}",
        ),
    }.items():
        if problems[name]:
            close = ""
            if name == "label":
                word = problems[name][0].split("'")[1:2]
                close = nearest(word[0], names) if word else ""
            raise DataError(
                f"{path}: {len(problems[name])} {what}: "
                f"{first_five(problems[name])}; expected {expected}{close}"
            )
    if not rows:
        raise DataError(f"{path}: holds no label; give at least one line")
    return np.array(rows, "int64"), np.array(labels, "int64")


def _class(label, names):
    if label in names:
        return names[label]
    if label.isdecimal() and int(label) < len(names):
        return int(label)
    return None


def _read(path):
    """Yields line number, id and label."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = reader.fieldnames or []
            if not {"id", "label"} <= set(columns):
                raise DataError(
                    f"{path}: the first line must name the columns id and "
                    f"label. Received: {', '.join(columns) or 'nothing'}"
                )
            for row in reader:
                one = (row["id"] or "").strip()
                label = (row["label"] or "").strip()
                yield reader.line_num, one, label
    except OSError as error:
        raise DataError(
            f"{path}: the file of true labels cannot be read: "
            f"{error.strerror or error}"
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text; save it as CSV") from error
