"""Tables of an audit: classes, confusions, the review list, known labels."""

import numpy as np
import pandas as pd
from scipy import sparse

from alim_keras.noise_rate import wilson

# Confusions in a class's row.
_TYPICAL = 3
# A look that is expected to repair less has no place on the review list.
_LEAST = 1e-3


def confusions(sets, label, outside):
    """Counts what was given (a set's mass of 1, split by S) and settled.

    Of `CandidateSets`, the settled labels, int64 `(N,)`, and whether they are
    outside, bool `(N,)`. Returns sparse floats `(C, C)`, rows given and
    columns settled; and a data frame of the pairs that were confused, most
    often first: `given`; `settled`, a class outside the set; `count`, the
    mass of such sets; `share`, of all that was given as this class.
    """
    frame = pd.DataFrame(
        {
            "given": sets.indices,
            "settled": np.repeat(label, sets.sizes),
            "count": sets.shares,
        }
    )
    pairs = (frame["given"], frame["settled"])
    shape = (sets.num_classes, sets.num_classes)
    counts = sparse.csr_array((frame["count"], pairs), shape=shape)
    wrong = frame[np.repeat(outside, sets.sizes)]
    wrong = wrong.groupby(["given", "settled"], as_index=False).sum()
    wrong = wrong.sort_values("count", ascending=False, kind="stable")
    wrong["share"] = wrong["count"] / counts.sum(axis=1)[wrong["given"]]
    names = np.array(sets.class_names, object)
    for column in ("given", "settled"):
        wrong[column] = names[wrong[column]]
    return counts, wrong.reset_index(drop=True)


def classes(sets, label, outside, pairs):
    """Returns a row per class, the noisiest first.

    Columns: `class`; `given`, the number of sets that hold it; `settled`, of
    examples that are settled as it; `outside`, how many of these lack it in
    their set, and `outside_share`, of `settled`; `given_wrong`, how many of
    the sets that hold it are settled outside, and `given_wrong_share`, of
    `given`; `mean_set_size`, of the sets that hold it; `confusions`, the most
    frequent with it. A share of nothing is NaN. They are sorted by the larger
    of the lower ends of the two shares' 95 % intervals (Wilson's).
    """

    def count(classes, weights=None):
        return np.bincount(classes, weights, sets.num_classes)

    sizes = np.repeat(sets.sizes, sets.sizes)
    given = count(sets.indices)
    wrong = count(sets.indices[np.repeat(outside, sets.sizes)])
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
            "mean_set_size": _share(count(sets.indices, sizes), given),
            "confusions": [", ".join(texts) for texts in typical.values()],
        }
    )
    surely = np.maximum(_lowest(missed, settled), _lowest(wrong, given))
    order = np.lexsort((-missed, -surely))
    return frame.iloc[order].reset_index(drop=True)


def _share(part, whole):
    """Returns part / whole, NaN of nothing."""
    return np.where(np.equal(whole, 0), np.nan, part / np.maximum(whole, 1))


def _lowest(part, whole):
    return np.array(
        [wilson(int(p), int(w))[0] if w else 0.0 for p, w in zip(part, whole)]
    )


def review(labels, label, budget, votes=None, known=None, class_names=()):
    """Returns the rows to look at, the classes with most to gain first.

    `gain = P(truth outside S) + P(truth is not the settled label)` is the
    expected number of wrong entries of labels.csv that a look repairs. The
    `budget` rows with the largest gain are chosen over all classes, and
    `rank` counts them; then the rows of a settled class are put together, for
    a person decides faster among pictures that should look alike.

    `labels` is the frame of labels.csv, `label` the classes of its settled
    labels, integers `(N,)`; examples that are `known`, bool `(N,)`, are left
    out; `votes`, `VoteArrays`, are for words on annotators who disagree.
    """
    gain = (labels["suspicion"] + (1 - labels["probability"])).to_numpy()
    useful = gain >= _LEAST
    if known is not None:
        useful &= ~np.asarray(known, bool)
    rows = np.flatnonzero(useful)
    rows = rows[np.argsort(-gain[rows], kind="stable")[: max(budget, 0)]]
    rank = np.arange(1, len(rows) + 1)
    group = label[rows]
    totals = np.bincount(group, gain[rows], int(group.max(initial=0)) + 1)
    order = np.lexsort((rank, group, -totals[group]))
    rows = rows[order]
    chosen = labels.iloc[rows].reset_index(drop=True)
    words = {} if votes is None else votes.disagreements(rows, class_names)
    chosen["reason"] = [
        _reason(record, words.get(row, ""))
        for row, record in zip(rows, chosen.to_dict("records"), strict=True)
    ]
    chosen["rank"], chosen["gain"] = rank[order], gain[rows]
    chosen["class"] = chosen["label"]
    columns = (
        "rank id class reason gain candidates label probability runner_up "
        "suggested"
    )
    return chosen[columns.split()]


def _reason(row, annotators):
    """Returns in words why a row of labels.csv, a dict, is worth a look."""
    words = f"{row['probability']:.2f} sure of {row['label']}"
    if row["undecided"]:
        words = f"undecided between {row['label']} and {row['runner_up']}"
    if row["outside"]:
        words = f"outside its set, {words}"
    if annotators:
        words += f"; annotators disagree: {annotators}"
    return words


def count_known(labels, sets):
    """Counts the wrong sets among those whose true label is not -1.

    Returns:
        Dict of `known_labels`, `realised_noise` and its 95 % interval (one
        point, where all labels are known) `realised_noise_low` to `_high`.
    """
    rows = np.flatnonzero(labels >= 0)
    if not len(rows):
        return {}
    wrong = int((~sets.contains(rows, labels[rows])).sum())
    share = low = high = wrong / len(rows)
    if len(rows) < len(labels):
        low, high = wilson(wrong, len(rows))
    return {
        "known_labels": len(rows),
        "realised_noise": share,
        "realised_noise_low": low,
        "realised_noise_high": high,
    }
