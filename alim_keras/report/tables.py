"""Tables of an audit: classes, confusions, the review list, known labels."""

import numpy as np
import pandas as pd
from scipy import sparse

from alim_keras.noise_rate import ENOUGH_LABELS
from alim_keras.noise_rate import wilson

# Confusions in a class's row.
_TYPICAL = 3
# A look that is expected to repair less has no place on the review list.
_LEAST = 1e-3
_BUDGETS = (0.01, 0.02, 0.05, 0.10)
REVIEW_COLUMNS = (
    "rank",
    "id",
    "class",
    "reason",
    "gain",
    "candidates",
    "label",
    "probability",
    "runner_up",
    "suggested",
)


def confusion_counts(sets, label, rows=None):
    """Counts what was given against what was settled.

    Sparse floats `(C, C)`: rows what was given, a set's mass of 1 split
    evenly over its classes; columns what was settled, `label` int64 `(N,)`.
    `rows` are the examples to count, bool `(N,)`, by default all.
    """
    mass = np.repeat(1.0 / sets.sizes, sets.sizes)
    if rows is not None:
        mass = mass * np.repeat(rows, sets.sizes)
    pairs = (sets.indices, np.repeat(label, sets.sizes))
    shape = (sets.num_classes, sets.num_classes)
    counts = sparse.coo_array((mass, pairs), shape=shape).tocsr()
    counts.eliminate_zeros()
    return counts


def confusions(counts, wrong, class_names):
    """Returns the pairs of classes that were confused, most often first.

    Columns: `given`; `settled`, a class outside the set; `count`, the number
    of such sets, one with s classes adding 1/s to each of its pairs; `share`,
    of all that was given as this class, likewise. `counts` are those of all
    examples, `wrong` of those settled outside, see `confusion_counts`.
    """
    pairs = wrong.tocoo()
    order = np.lexsort((pairs.col, pairs.row, -pairs.data))
    given, settled = pairs.row[order], pairs.col[order]
    names = np.array(class_names, object)
    return pd.DataFrame(
        {
            "given": names[given],
            "settled": names[settled],
            "count": pairs.data[order],
            "share": pairs.data[order] / counts.sum(axis=1)[given],
        }
    )


def classes(sets, label, outside, pairs):
    """Returns a row per class, the noisiest first.

    Columns: `class`; `given`, the number of sets that hold it; `settled`, of
    examples that are settled as it; `outside`, how many of these lack it in
    their set, and `outside_share`, of `settled`; `given_wrong`, how many of
    the sets that hold it are settled as a class outside, and
    `given_wrong_share`, of `given`; `mean_set_size`, of the sets that hold
    it; `confusions`, the most frequent with it. A share of nothing is NaN.

    They are sorted by the larger of the lower ends of the two shares' 95 %
    intervals (Wilson's), so that a class is first which is noisy for sure.
    `label` and `outside` are as in `settled_labels`, `pairs` as `confusions`.
    """

    def count(classes, weights=None):
        return np.bincount(classes, weights, sets.num_classes)

    sizes = sets.sizes
    given = count(sets.indices)
    wrong = count(sets.indices, np.repeat(outside, sizes)).astype("int64")
    settled, missed = count(label), count(label[outside])
    typical = {name: [] for name in sets.class_names}
    for pair in pairs.itertuples():
        text = f"{pair.given} -> {pair.settled} {pair.count:.3g}"
        for name in (pair.given, pair.settled):
            if len(typical[name]) < _TYPICAL:
                typical[name].append(text)
    frame = pd.DataFrame(
        {
            "class": np.array(sets.class_names, object),
            "given": given,
            "settled": settled,
            "outside": missed,
            "outside_share": _share(missed, settled),
            "given_wrong": wrong,
            "given_wrong_share": _share(wrong, given),
            "mean_set_size": _share(
                count(sets.indices, np.repeat(sizes, sizes)), given
            ),
            "confusions": [", ".join(texts) for texts in typical.values()],
        }
    )
    surely = np.maximum(_lowest(missed, settled), _lowest(wrong, given))
    order = np.lexsort((-missed, -surely))
    return frame.iloc[order].reset_index(drop=True)


def _share(part, whole):
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)


def _lowest(part, whole):
    return np.array(
        [wilson(int(p), int(w))[0] if w else 0.0 for p, w in zip(part, whole)]
    )


def review(labels, settled, budget, votes=None, known=None, class_names=()):
    """Returns the rows to look at, the classes with most to gain first.

    `gain = P(truth outside S) + P(truth is not the settled label)`, between 0
    and 2, is the expected number of wrong entries of labels.csv that a look
    repairs. The `budget` rows with the largest gain are chosen over all
    classes; then the rows of a settled class stay together, for a person
    decides faster among pictures that should look alike, and the classes come
    in the order of their total gain. `rank` counts by gain, over all classes.

    Args:
        labels: The frame of labels.csv.
        settled: Dict of arrays `(N,)`, see `settled_labels`.
        budget: Number of rows, 0 or more.
        votes: `VoteArrays`, for words on annotators who disagree, or None.
        known: Bool `(N,)`, examples to leave out, or None.
        class_names: C strings, for the votes.
    """
    gain = settled["suspicion"] + (1.0 - settled["probability"])
    useful = gain >= _LEAST
    if known is not None:
        useful &= ~np.asarray(known, bool)
    rows = np.flatnonzero(useful)
    rows = rows[np.argsort(-gain[rows], kind="stable")[: max(budget, 0)]]
    rank = np.arange(1, len(rows) + 1)
    group = settled["label"][rows]
    totals = np.bincount(group, gain[rows], int(group.max(initial=0)) + 1)
    order = np.lexsort((rank, group, -totals[group]))
    rows = rows[order]
    chosen = labels.iloc[rows].assign(gain=gain[rows], rank=rank[order])
    chosen["class"] = chosen["label"]
    words = {} if votes is None else votes.disagreements(rows, class_names)
    chosen["reason"] = np.array(
        [
            reason(record, words.get(row, ""))
            for row, record in zip(rows, chosen.to_dict("records"), strict=True)
        ],
        object,
    )
    return chosen[list(REVIEW_COLUMNS)].reset_index(drop=True)


def reason(row, annotators=""):
    """Returns in words why a row of labels.csv, a dict, is worth a look.

    `annotators` are words on annotators who disagree, or "".
    """
    between = f"undecided between {row['label']} and {row['runner_up']}"
    sure = f"{row['probability']:.2f} sure of {row['label']}"
    if row["outside"]:
        words = f"outside its set, {between if row['undecided'] else sure}"
    elif row["undecided"]:
        words = between
    elif row["suspicion"] * 2 >= 1 - row["probability"]:
        words = f"its set is wrong with probability {row['suspicion']:.2f}"
    else:
        words = f"only {sure}"
    return (
        f"{words}; annotators disagree: {annotators}" if annotators else words
    )


def count_known(labels, sets):
    """Counts the wrong sets among those whose true label is not -1.

    Returns:
        Dict of `known_labels`, `realised_noise` and, of at least 50 known
        labels, the ends of Wilson's interval, `realised_noise_low` and
        `realised_noise_high`, which are both the share where all labels are
        known. Empty if none is.
    """
    rows = np.flatnonzero(labels >= 0)
    if not len(rows):
        return {}
    wrong = int((~sets.contains(rows, labels[rows])).sum())
    share = low = high = wrong / len(rows)
    counts = {"known_labels": len(rows), "realised_noise": share}
    if len(rows) >= ENOUGH_LABELS:
        if len(rows) < len(labels):
            low, high = wilson(wrong, len(rows))
        counts.update(realised_noise_low=low, realised_noise_high=high)
    return counts


def truth(labels, settled, wrong):
    """Returns precision and recall where true labels are known, a data frame.

    Columns: `what`; `items`, how many are flagged; `precision`, the share of
    these that are so in truth; `recall`, the share of what is so in truth
    that is flagged. The first row is about the settled labels, `precision`
    being their accuracy; the others about wrong sets: those settled outside,
    and the 1, 2, 5 and 10 % (rounded up) of most suspicion. `wrong` says of
    each example whether its true label, of `labels`, is outside its set.
    """
    flags = {"outside its set": np.flatnonzero(settled["outside"])}
    order = np.argsort(-settled["suspicion"], kind="stable")
    for budget in _BUDGETS:
        # 0.07 * 100 is 7.000000000000001.
        most = int(np.ceil(round(budget * len(order), 6)))
        flags[f"suspicion, top {100 * budget:g} %"] = order[:most]
    right = settled["label"] == labels
    rows = [("settled label right", len(labels), right.mean(), np.nan)]
    for what, flagged in flags.items():
        hits = wrong[flagged].sum()
        precision = hits / len(flagged) if len(flagged) else np.nan
        recall = hits / wrong.sum() if wrong.any() else np.nan
        rows.append((what, len(flagged), precision, recall))
    return pd.DataFrame(rows, columns=["what", "items", "precision", "recall"])
