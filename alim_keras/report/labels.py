"""Rows of labels: settled ones in labels.csv, and those of `predict`."""

import csv
import functools
import json

import numpy as np

from alim_keras.files import write_atomically

COLUMNS = (
    "id",
    "candidates",
    "label",
    "probability",
    "runner_up",
    "margin",
    "outside",
    "undecided",
    "suggested",
    "source",
    "suspicion",
)
RANKED_HEADER = (
    "id",
    "candidates",
    "probabilities",
    "outside_probability",
    "outside",
    "label",
    "probability",
)
# A set that holds less than this share of the belief is more likely wrong
# than right, and a label that holds less is undecided.
HALF = 0.5
# Rows are worked through in blocks of about this many numbers.
_BLOCK = 1 << 22


def blocks(count, width):
    """Yields index arrays of about 4 million numbers that cover all rows.

    Args:
        count: Number of rows.
        width: Numbers in a row.
    """
    step = max(1, _BLOCK // max(width, 1))
    for start in range(0, count, step):
        yield np.arange(start, min(start + step, count))


def settled_labels(weights, candidates):
    """Reads a label off each row of weights, and how sure it is.

    The suggested set is the given one, to which the most probable classes
    outside are added until it holds half of the row, and so is more likely
    right than wrong. No class that somebody gave is taken away: the next
    training weighs the classes of a set itself.

    Args:
        weights: Array `(N, C)`: pseudo labels or probabilities.
        candidates: Multi-hot array `(N, C)`.

    Returns:
        A dict of arrays `(N,)`: `label` (int64; at a tie the first of the
        equal classes in the given set, else the first of all), `probability`
        (its share of the row), `runner_up` (int64, -1 where there is only one
        class), `margin` (the label's share less the runner-up's), `outside`
        (the label is not in the given set), `undecided` (the label holds less
        than half of the row, or ties with another), `suspicion` (the row's
        share outside the set, P(set wrong)); and `suggested` (bool `(N, C)`).

    Example:

    >>> rows = settled_labels([[0.6, 0.3, 0.1]], [[0, 1, 1]])
    >>> rows["label"], rows["outside"], rows["margin"], rows["suspicion"]
    [0], [True], [0.3], [0.6]
    """
    weights = np.asarray(weights, "float32")
    candidates = np.asarray(candidates, bool)
    rows = np.arange(len(weights))
    best = weights == weights.max(axis=1, keepdims=True)
    inside = best & candidates
    label = np.where(inside.any(axis=1), inside.argmax(1), best.argmax(1))
    total = np.maximum(weights.sum(axis=1), np.float32(1e-30))
    probability = weights[rows, label] / total
    runner_up = np.full(len(rows), -1)
    margin = probability.copy()
    if weights.shape[1] > 1:
        rest = weights.copy()
        rest[rows, label] = -np.inf
        runner_up = rest.argmax(axis=1)
        margin -= weights[rows, runner_up] / total
    suspicion = np.where(candidates, 0, weights).sum(axis=1) / total
    return {
        "label": label,
        "probability": probability,
        "runner_up": runner_up,
        "margin": margin,
        "outside": ~candidates[rows, label],
        "undecided": (probability < HALF) | (best.sum(axis=1) > 1),
        "suspicion": np.clip(suspicion, 0, 1),
        "suggested": _suggested(weights / total[:, None], candidates),
    }


def _suggested(weights, candidates):
    suggested = candidates.copy()
    held = np.where(candidates, weights, 0).sum(axis=1)
    # Few rows lack something: add one class to each at a time.
    rows = np.flatnonzero(held < HALF)
    while len(rows):
        rest = np.where(suggested[rows], -1, weights[rows])
        best = rest.argmax(axis=1)
        gained = rest[np.arange(len(rows)), best]
        # Stop where only classes without any weight are left.
        going = gained > 0
        rows, best, gained = rows[going], best[going], gained[going]
        suggested[rows, best] = True
        held[rows] += gained
        rows = rows[held[rows] < HALF]
    return suggested


class LabelRows:
    """Gathers the columns of labels.csv, block by block.

    Args:
        ids: N strings.
        class_names: C strings.

    Attributes:
        settled: Dict of arrays `(N,)`, see `settled_labels`.
    """

    def __init__(self, ids, class_names):
        self.ids = ids
        self.class_names = [str(name) for name in class_names]
        count = len(ids)
        self.settled = {
            "label": np.zeros(count, "int64"),
            "probability": np.zeros(count, "float32"),
            "runner_up": np.full(count, -1, "int64"),
            "margin": np.zeros(count, "float32"),
            "outside": np.zeros(count, bool),
            "undecided": np.zeros(count, bool),
            "suspicion": np.zeros(count, "float32"),
        }
        self._sets = np.empty(count, object)
        self._suggested = np.empty(count, object)

    def add(self, rows, weights, given):
        """Takes in some rows.

        Args:
            rows: Integers `(n,)`, row numbers in `ids`.
            weights: Floats `(n, C)`. A row of zeros, which no epoch has
                touched yet, counts as uniform over its set.
            given: Multi-hot `(n, C)`, the sets, none empty.
        """
        given = np.asarray(given) > 0
        weights = fill_untouched(weights, given)
        block = settled_labels(weights, given)
        for name, column in self.settled.items():
            column[rows] = block[name]
        names = self._names_of(given)
        # Most sets are suggested as they are: share the list.
        suggested = list(names)
        changed = np.flatnonzero((block["suggested"] != given).any(axis=1))
        longer = self._names_of(block["suggested"][changed])
        for row, members in zip(changed, longer, strict=True):
            suggested[row] = members
        for row, members, more in zip(rows, names, suggested, strict=True):
            self._sets[row], self._suggested[row] = members, more

    def frame(self, sources):
        """Returns labels.csv as a pandas data frame.

        Args:
            sources: A string or strings `(N,)`: `table` (learnt pseudo
                label), `folds` (predicted without it), `prediction` or
                `known` (a person gave it).
        """
        import pandas

        names = np.array([*self.class_names, None], object)
        columns = {
            **self.settled,
            "id": np.asarray(self.ids, object),
            "candidates": self._sets,
            "suggested": self._suggested,
            "label": names[self.settled["label"]],
            "runner_up": names[self.settled["runner_up"]],
            "source": np.asarray(sources, object),
        }
        return pandas.DataFrame({name: columns[name] for name in COLUMNS})

    def _names_of(self, sets):
        """Returns the classes of each row of a multi-hot matrix, by name."""
        rows, columns = np.nonzero(sets)
        ends = np.cumsum(np.bincount(rows, minlength=len(sets))).tolist()
        names = [self.class_names[column] for column in columns.tolist()]
        return [names[start:end] for start, end in zip([0, *ends], ends)]


def fill_untouched(weights, sets):
    """Returns weights `(n, C)` with rows of zeros made uniform over the set."""
    weights = np.asarray(weights, "float32")
    uniform = sets / sets.sum(axis=1, keepdims=True, dtype="float32")
    touched = weights.max(axis=1, initial=0, keepdims=True) > 0
    return np.where(touched, weights, uniform)


def write_labels(path, frame):
    """Writes labels.csv, one row per training image in the given order.

    Columns: `id`; `candidates`, the given set as a JSON list of class names;
    `label`, the settled one; `probability`; `runner_up` and `margin`, the
    second class and how far behind it is; `outside` (1 if the label is not
    in the set); `undecided` (1 if its probability is under 0.5, or at a tie);
    `suggested`, the set to use instead of the given one; `source`;
    `suspicion`, the probability that the set is wrong. See `settled_labels`.

    Args:
        path: File to write.
        frame: Data frame with these columns, see `LabelRows`.
    """
    write_table(path, frame[list(COLUMNS)])


def write_table(path, frame):
    """Writes a data frame as CSV: lists as JSON, booleans as 0 and 1.

    Floats have four decimals; what is missing is an empty cell.
    """
    frame = frame.assign(
        **{
            name: column.astype(int)
            if column.dtype.kind == "b"
            else column.map(_json)
            for name, column in frame.items()
            if column.dtype.kind not in "fiu"
        }
    )
    options = {"index": False, "float_format": "%.4f", "lineterminator": "\n"}
    text = frame.to_csv(**options)
    if "\r" in text:
        # Python 3.11 does not quote a lone carriage return, and reads it as
        # an end of line. To look through all cells first would take longer.
        text = frame.to_csv(quoting=csv.QUOTE_ALL, **options)
    write_atomically(path, text)


def _json(value):
    return _dumps(tuple(value)) if isinstance(value, list) else value


@functools.lru_cache(maxsize=1 << 16)
def _dumps(names):
    return json.dumps(names, ensure_ascii=False)


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

    >>> list(top_rows(["a"], np.array([[0.2, 0.5, 0.3]]), "xyz", 2))
    [['a', 'y', '0.500000', 'z', '0.300000']]
    """
    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :count]
    for name, places, row in zip(ids, order, probabilities, strict=True):
        cells = [name]
        for place in places:
            cells += [class_names[place], _six(row[place])]
        yield cells


def ranked_rows(ids, probabilities, sets, class_names):
    """Yields each item's candidates in order of probability.

    `candidates` is a JSON list of names, the likeliest first, and
    `probabilities` their shares of what the set holds together, so that they
    sum to 1. `outside_probability` is what lies outside the set, and
    `outside` is 1 if the likeliest class of all, `label`, does. `sets` are
    bool `(B, C)`.
    """
    probabilities = np.asarray(probabilities, np.float64)
    order = np.argsort(-probabilities, axis=1, kind="stable")
    for name, places, row, given, label in zip(
        ids, order, probabilities, sets, order[:, 0], strict=True
    ):
        places = places[given[places]]
        inside = row[places]
        total = inside.sum()
        # Nothing left of any candidate: they are alike.
        shares = inside / total if total > 0 else inside + 1 / len(inside)
        yield [
            name,
            json.dumps([class_names[p] for p in places], ensure_ascii=False),
            json.dumps([round(float(share), 6) for share in shares]),
            _six(max(0.0, row.sum() - total)),
            str(int(not given[label])),
            class_names[label],
            _six(row[label]),
        ]


def _six(value):
    return f"{value:.6f}"
