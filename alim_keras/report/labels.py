"""Settled labels, labels.csv and classes.csv."""

import csv
import json

import numpy as np
import pandas as pd

from alim_keras.files import write_atomically

# A set that holds less than this share of the belief is more likely wrong
# than right, and a label that holds less is undecided.
HALF = 0.5


def settled_labels(weights, candidates):
    """Reads a label off each row of weights, and how sure it is.

    The suggested set is the given one, with the most probable classes outside
    until it holds half of the row. No class that somebody gave is taken away.

    Of weights and multi-hot sets `(N, C)`. Returns a dict of arrays `(N,)`,
    the columns of labels.csv (docs/runs.md): `label` (at a tie the first of the
    equal classes in the given set, else the first of all) and `runner_up` (-1
    where there is only one class), int64; `probability`, `margin` and
    `suspicion`, floats; `outside` and `undecided`, bool; and `suggested`, bool
    `(N, C)`.
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
    # Few rows lack something.
    rows = np.flatnonzero(held < HALF)
    outside = np.where(candidates, 0, weights)[rows]
    order = np.argsort(-outside, axis=1, kind="stable")
    outside = np.take_along_axis(outside, order, axis=1)
    before = held[rows, None] + np.cumsum(outside, axis=1) - outside
    row, place = np.nonzero((before < HALF) & (outside > 0))
    suggested[rows[row], order[row, place]] = True
    return suggested


def label_rows(sets, rows, belief, source):
    """Returns rows of labels.csv as a data frame.

    Of `CandidateSets`, the integers `rows`, the belief in each class of these,
    `(n, C)`, zero for an untouched example, and kinds of `examine`.
    """
    weights = sets.rows(rows)
    settled = settled_labels(fill_untouched(belief, weights), weights > 0)
    names = np.array([*sets.class_names, None], object)

    def listed(sets):
        lists = np.empty(len(sets), object)
        lists[:] = [names[np.flatnonzero(row)].tolist() for row in sets]
        return lists

    suggested, suspicion = settled.pop("suggested"), settled.pop("suspicion")
    return pd.DataFrame(
        {
            "id": sets.ids[rows].astype(object),
            "candidates": listed(weights),
            **settled,
            "label": names[settled["label"]],
            "runner_up": names[settled["runner_up"]],
            "suggested": listed(suggested),
            "source": source,
            "suspicion": suspicion,
        }
    )


def fill_untouched(weights, sets):
    """Returns weights `(n, C)`, with `S / sum S` in place of rows of zeros."""
    weights = np.asarray(weights, "float32")
    start = sets / sets.sum(axis=1, keepdims=True, dtype="float32")
    touched = weights.max(axis=1, initial=0, keepdims=True) > 0
    return np.where(touched, weights, start)


def write_table(path, frame):
    """Writes a data frame as CSV: lists as JSON, booleans as 0 and 1."""
    frame = frame.copy()
    for name, column in frame.select_dtypes(exclude="number").items():
        frame[name] = column.map(_cell)
    options = {"index": False, "float_format": "%.4f", "lineterminator": "\n"}
    text = frame.to_csv(**options)
    if "\r" in text:
        # Python 3.11 does not quote a lone carriage return.
        text = frame.to_csv(quoting=csv.QUOTE_ALL, **options)
    write_atomically(path, text)


def _cell(value):
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return int(value) if isinstance(value, bool) else value


def given_counts(candidates):
    """Returns how many sets hold each class, and the sum of their shares."""
    classes, num_classes = candidates.indices, candidates.num_classes
    mass = np.bincount(classes, candidates.shares, num_classes)
    return np.bincount(classes, minlength=num_classes), mass


def write_classes(path, candidates, settled, labels, test):
    """Writes classes.csv, one row per class; docs/runs.md has its columns.

    Of `CandidateSets`, the settled and the true labels, integers `(N,)` (-1
    where unknown, or None), and a pair of true and predicted classes of the
    test, or None. Returns scikit-learn's balanced accuracy of these, or None.
    """

    def count(classes):
        return np.bincount(classes, minlength=candidates.num_classes)

    given, mass = given_counts(candidates)
    images = None if labels is None else count(labels[labels >= 0])
    frame = pd.DataFrame(
        {
            "class": np.array(candidates.class_names, object),
            "given": given,
            "given_mass": mass,
            "settled": count(settled),
            "training_images": images,
            "test_images": None if test is None else count(test[0]),
            "test_accuracy": np.nan,
        }
    )
    if test is not None:
        true, predicted = test
        # 0 / 0 is NaN: a class without an image.
        hits = pd.Series(count(true[true == predicted]))
        frame["test_accuracy"] = hits / frame["test_images"]
    write_table(path, frame)
    mean = frame["test_accuracy"].mean()
    return None if np.isnan(mean) else float(mean)
