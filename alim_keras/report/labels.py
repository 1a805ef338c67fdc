"""The settled label of every training image, as labels.csv."""

import csv
import io
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
# A set that holds less than this share of the belief is more likely wrong
# than right, and a label that holds less is undecided.
HALF = 0.5
# So many rows are turned into text at a time.
_ROWS = 1 << 16


def settled_labels(weights, candidates):
    """Reads a label off each row of weights, and what speaks against it.

    The suggested set is the given one, to which the most probable classes
    outside are added until it is more likely right than wrong, that is until
    it holds half of the row. A class that somebody gave is never taken away:
    the next training weighs the classes of a set itself, while a wrong set
    misleads it.

    Args:
        weights: Array `(N, C)`: pseudo labels or probabilities.
        candidates: Multi-hot array `(N, C)`.

    Returns:
        A dict of arrays `(N,)`: `label` (int64, at a tie one of the given
        set), `probability` (its share of the row, float32), `runner_up`
        (int64: the second class, -1 where there is only one), `margin`
        (float32: the label's share less the runner-up's), `outside` (bool: the
        label is not in the given set), `undecided` (bool: the label holds less
        than half of the row), `suspicion` (float32: the row's share outside
        the set, P(set wrong)); and `suggested` (bool `(N, C)`).

    Example:

    >>> found = settled_labels([[0.6, 0.3, 0.1]], [[0, 1, 1]])
    >>> found["label"], found["outside"], found["margin"], found["suspicion"]
    [0], [True], [0.3], [0.6]
    >>> found["suggested"]
    [[True, True, True]]
    """
    weights = np.asarray(weights, "float32")
    candidates = np.asarray(candidates, bool)
    rows = np.arange(len(weights))
    num_classes = weights.shape[1]
    label = _likeliest(weights, candidates)
    total = np.maximum(weights.sum(axis=1), np.float32(1e-30))
    probability = weights[rows, label] / total
    runner_up = np.full(len(rows), -1)
    margin = probability.copy()
    if num_classes > 1:
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
        "undecided": probability < HALF,
        "suspicion": np.clip(suspicion, 0, 1),
        "suggested": _suggested(weights / total[:, None], candidates),
    }


def _likeliest(weights, candidates):
    """Returns the class of most weight, at a tie one of the set."""
    most = weights.max(axis=1, keepdims=True)
    inside = candidates & (weights == most)
    return np.where(
        inside.any(axis=1), inside.argmax(axis=1), weights.argmax(axis=1)
    )


def _suggested(weights, candidates):
    suggested = candidates.copy()
    held = np.where(candidates, weights, 0).sum(axis=1)
    # The few rows that lack something, one class at a time.
    rows = np.flatnonzero(held < HALF)
    while len(rows):
        rest = np.where(suggested[rows], -1, weights[rows])
        best = rest.argmax(axis=1)
        gained = rest[np.arange(len(rows)), best]
        # Nothing is left to add, or nothing but classes without any weight.
        going = gained > 0
        rows, best, gained = rows[going], best[going], gained[going]
        suggested[rows, best] = True
        held[rows] += gained
        rows = rows[held[rows] < HALF]
    return suggested


def names_of_sets(sets, class_names):
    """Returns the classes of each row of a multi-hot matrix, by name.

    Args:
        sets: Bool `(n, C)`.
        class_names: C strings.

    Returns:
        A list of n lists of strings.
    """
    names = [str(name) for name in class_names]
    rows, columns = np.nonzero(sets)
    ends = np.cumsum(np.bincount(rows, minlength=len(sets))).tolist()
    found = [names[column] for column in columns.tolist()]
    return [found[start:end] for start, end in zip([0, *ends], ends)]


class LabelRows:
    """Gathers the columns of labels.csv, block by block.

    Args:
        ids: N strings.
        class_names: C strings.
    """

    def __init__(self, ids, class_names):
        self.ids = ids
        self.class_names = class_names
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
        """Takes in some rows: `(n,)`, and weights and sets `(n, C)`.

        Returns:
            What `settled_labels` found.
        """
        found = settled_labels(weights, given)
        for name, column in self.settled.items():
            column[rows] = found[name]
        # Equal lists are one object: most sets are suggested as they are.
        names = names_of_sets(given, self.class_names)
        changed = np.flatnonzero((found["suggested"] != given).any(axis=1))
        longer = list(names)
        for place, one in zip(
            changed,
            names_of_sets(found["suggested"][changed], self.class_names),
            strict=True,
        ):
            longer[place] = one
        _put(self._sets, rows, names)
        _put(self._suggested, rows, longer)
        return found

    def frame(self, sources):
        """Returns labels.csv as a pandas data frame.

        Args:
            sources: Strings `(N,)`: `table` (learnt pseudo label), `folds`
                (predicted by a network that was trained without it),
                `prediction` or `known` (a person gave it).
        """
        import pandas

        settled = self.settled
        names = np.array([*map(str, self.class_names), None], object)
        columns = {
            **settled,
            "id": np.asarray(self.ids, object),
            "candidates": self._sets,
            "suggested": self._suggested,
            # Few words, many rows.
            "label": names[settled["label"]],
            "runner_up": names[settled["runner_up"]],
            "source": np.asarray(sources, object),
        }
        return pandas.DataFrame({name: columns[name] for name in COLUMNS})


def _put(column, rows, values):
    for row, value in zip(rows.tolist(), values, strict=True):
        column[row] = value


def write_labels(path, frame):
    """Writes labels.csv, one row per training image in the given order.

    Columns: `id`; `candidates`, the given set as a JSON list of class names;
    `label`, the settled one; `probability`; `runner_up` and `margin`, the
    second class and how far behind it is; `outside` (1 if the label is not
    in the set); `undecided` (1 if its probability is under 0.5); `suggested`,
    the set to use instead of the given one, see `settled_labels`; `source`;
    `suspicion`, the probability that the set is wrong.

    Args:
        path: File to write.
        frame: Data frame with these columns, see `LabelRows`.
    """
    write_table(path, frame[list(COLUMNS)])


def write_table(path, frame):
    """Writes a data frame as CSV: lists as JSON, truth as 0 and 1.

    Floats have four decimals; what is missing is an empty cell: a class may
    be called by any sign, and who reads numbers expects none there.
    """
    text = _as_csv(frame, csv.QUOTE_MINIMAL)
    if "\r" in text:
        # Python 3.11 does not quote a lone carriage return, and reads it as
        # an end of line. To look through all cells first would take longer.
        text = _as_csv(frame, csv.QUOTE_ALL)
    write_atomically(path, text)


def _as_csv(frame, quoting):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", quoting=quoting)
    writer.writerow(frame.columns)
    for start in range(0, len(frame), _ROWS):
        part = frame.iloc[start : start + _ROWS]
        columns = [_texts(part[name]) for name in frame.columns]
        writer.writerows(zip(*columns, strict=True))
    return out.getvalue()


def _texts(column):
    """Returns the cells of a column as they stand in the file."""
    kind = column.dtype.kind
    if kind == "b":
        return column.astype(int).tolist()
    if kind == "f":
        return ["" if x != x else f"{x:.4f}" for x in column.tolist()]
    if kind in "iu":
        return column.tolist()
    known = {}

    def text(value):
        if isinstance(value, list):
            key = tuple(value)
            if key not in known:
                known[key] = json.dumps(value, ensure_ascii=False)
            return known[key]
        return "" if value is None or value != value else value

    return [text(value) for value in column.tolist()]
