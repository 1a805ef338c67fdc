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
    "outside",
    "undecided",
    "source",
)


def settled_labels(weights, candidates):
    """Reads a label off each row of weights.

    Args:
        weights: Array `(N, C)`: pseudo labels or probabilities.
        candidates: Multi-hot array `(N, C)`.

    Returns:
        A dict of arrays `(N,)`: `label` (int64), `probability` (its share of
        the row, float32), `outside` (bool: not in the given set), `undecided`
        (bool: the label holds less than half of the row).
    """
    weights = np.asarray(weights, "float32")
    candidates = np.asarray(candidates, bool)
    rows = np.arange(len(weights))
    label = weights.argmax(axis=1)
    total = np.maximum(weights.sum(axis=1), np.float32(1e-30))
    probability = weights[rows, label] / total
    return {
        "label": label,
        "probability": probability,
        "outside": ~candidates[rows, label],
        "undecided": probability < 0.5,
    }


def write_labels(path, ids, class_names, settled, candidates, sources):
    """Writes labels.csv, one row per training image in the given order.

    Columns: `id`; `candidates`, the given set as a JSON list of class names;
    `label`, the settled one; `probability`; `outside` (1 if the label is not
    in the set); `undecided` (1 if its probability is under 0.5); `source`,
    `table` (learnt pseudo label) or `prediction` (the classifier's, for
    images held out of training).

    Args:
        path: File to write.
        ids: Strings `(N,)`.
        class_names: C strings.
        settled: Dict of arrays `(N,)`, from `settled_labels`.
        candidates: Multi-hot `(N, C)`, or `SparseCandidates`.
        sources: Strings `(N,)`.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    sparse = hasattr(candidates, "members")
    for row, name in enumerate(ids):
        if sparse:
            members = candidates.members(row)
        else:
            members = np.flatnonzero(candidates[row])
        given = json.dumps(
            [str(class_names[c]) for c in members], ensure_ascii=False
        )
        writer.writerow(
            [
                name,
                given,
                class_names[settled["label"][row]],
                f"{settled['probability'][row]:.4f}",
                int(settled["outside"][row]),
                int(settled["undecided"][row]),
                sources[row],
            ]
        )
    write_atomically(path, out.getvalue())
