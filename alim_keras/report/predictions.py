"""The rows of predictions, for a CSV file."""

import json

import numpy as np


def top_header(count):
    """Returns the column names of `top_rows`."""
    more = (
        name
        for place in range(2, count + 1)
        for name in (f"label_{place}", f"probability_{place}")
    )
    return ["id", "label", "probability", *more]


def top_rows(ids, probabilities, class_names, count):
    """Yields the likeliest classes of each item.

    Args:
        ids: Sequence of B strings.
        probabilities: Array `(B, C)`.
        class_names: Sequence of C strings.
        count: How many classes, at most C. Of equals the first come first.

    Example:

    >>> list(top_rows(["a"], np.array([[0.2, 0.5, 0.3]]), "xyz", 2))
    [['a', 'y', '0.500000', 'z', '0.300000']]
    """
    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :count]
    for one, places, row in zip(ids, order, probabilities, strict=True):
        cells = [one]
        for place in places:
            cells += [class_names[place], _share(row[place])]
        yield cells


RANKED_HEADER = (
    "id",
    "candidates",
    "probabilities",
    "outside_probability",
    "outside",
    "label",
    "probability",
)


def ranked_rows(ids, probabilities, sets, class_names):
    """Yields each item's candidates in order of probability.

    `candidates` is a JSON list of names, the likeliest first, and
    `probabilities` their shares of what the set holds together, so that they
    sum to 1. `outside_probability` is what lies outside the set, and
    `outside` is 1 if the likeliest class of all, `label`, does.

    Args:
        ids: Sequence of B strings.
        probabilities: Array `(B, C)`.
        sets: Bool `(B, C)`, none empty.
        class_names: Sequence of C strings.

    Example:

    >>> p, s = np.array([[0.2, 0.5, 0.3]]), np.array([[True, False, True]])
    >>> list(ranked_rows(["a"], p, s, "xyz"))[0][1:5]
    ['["z", "x"]', '[0.6, 0.4]', '0.500000', '1']
    """
    probabilities = np.asarray(probabilities, np.float64)
    order = np.argsort(-probabilities, axis=1, kind="stable")
    best = order[:, 0]
    for one, places, row, given, label in zip(
        ids, order, probabilities, sets, best, strict=True
    ):
        places = places[given[places]]
        inside = row[places]
        total = inside.sum()
        # Nothing left of any candidate: they are alike.
        shares = inside / total if total > 0 else inside + 1 / len(inside)
        yield [
            one,
            json.dumps([class_names[p] for p in places], ensure_ascii=False),
            json.dumps([round(float(share), 6) for share in shares]),
            _share(max(0.0, row.sum() - total)),
            str(int(not given[label])),
            class_names[label],
            _share(row[label]),
        ]


def _share(value):
    return f"{value:.6f}"
