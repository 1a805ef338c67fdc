"""Tables of an audit: classes, annotators, the review list, known labels."""

import numpy as np
import pandas as pd
from scipy import sparse

from alim_keras.noise_rate import wilson

# Keys of a review, and what a class outside the set has a key for.
_KEYS, _UNLIKELY = 9, 0.01
# A look that is expected to repair less has no place on the review list.
_LEAST = 1e-3


def confusions(sets, label, outside):
    """Counts what was given (a set's mass of 1, split by S) and settled.

    Of `CandidateSets`, the settled labels, int64 `(N,)`, and whether they are
    outside, bool `(N,)`. Returns sparse floats `(C, C)`, rows given and
    columns settled; and a data frame of confused pairs, the most frequent
    first: `given`; `settled`, a class outside the set; `count` of such items;
    `share`, of all whose set holds the class.
    """
    settled = np.repeat(label, sets.sizes)
    shape = (sets.num_classes, sets.num_classes)
    counts = (sets.shares, (sets.indices, settled))
    counts = sparse.csr_array(counts, shape=shape)
    frame = pd.DataFrame({"given": sets.indices, "settled": settled})
    held = frame["given"].value_counts()
    wrong = frame[np.repeat(outside, sets.sizes)]
    wrong = wrong.groupby(["given", "settled"]).size().reset_index(name="count")
    wrong = wrong.sort_values("count", ascending=False, kind="stable")
    wrong["share"] = wrong["count"] / wrong["given"].map(held)
    names = np.array(sets.class_names, object)
    for column in ("given", "settled"):
        wrong[column] = names[wrong[column]]
    return counts, wrong.reset_index(drop=True)


def classes(sets, label, outside):
    """Returns a row per class, the noisiest first.

    Columns: `class`; `given`, the number of sets that hold it; `settled`, of
    examples that are settled as it; `outside`, how many of these lack it in
    their set, and `outside_share`, of `settled`; `given_wrong`, how many of
    the sets that hold it are settled outside, and `given_wrong_share`, of
    `given`; `mean_set_size`, of the sets that hold it. A share of nothing is
    NaN. They are sorted by the larger of the lower ends of the two shares'
    95 % intervals (Wilson's).
    """

    def count(classes, weights=None):
        return pd.Series(np.bincount(classes, weights, sets.num_classes))

    sizes = np.repeat(sets.sizes, sets.sizes)
    given = count(sets.indices)
    wrong = count(sets.indices[np.repeat(outside, sets.sizes)])
    settled, missed = count(label), count(label[outside])
    # 0 / 0 is NaN.
    frame = pd.DataFrame(
        {
            "class": np.array(sets.class_names, object),
            "given": given,
            "settled": settled,
            "outside": missed,
            "outside_share": missed / settled,
            "given_wrong": wrong,
            "given_wrong_share": wrong / given,
            "mean_set_size": count(sets.indices, sizes) / given,
        }
    )
    surely = np.maximum(_lowest(missed, settled), _lowest(wrong, given))
    order = np.lexsort((-missed, -surely))
    return frame.iloc[order].reset_index(drop=True)


def _lowest(part, whole):
    pairs = zip(part.tolist(), whole.tolist())
    return np.array([wilson(p, w)[0] if w else 0.0 for p, w in pairs])


def annotators(votes, label, class_names):
    """Returns a row per annotator, in the order of `votes.names`.

    Columns: `annotator`; `votes`; `agreement`, the share of its votes that
    are the settled label, NaN of none; `bias`, the class that it gave most
    too often, and its most frequent confusion.

    `label`, int64 `(N,)`, are the settled labels.
    """
    true = label[votes.rows]
    frame = pd.DataFrame({"given": votes.classes, "true": true})
    frame["right"] = frame["given"] == frame["true"]
    by_annotator = dict(list(frame.groupby(votes.annotators)))
    people = []
    for who, name in enumerate(votes.names):
        own = by_annotator.get(who, frame[:0])
        bias = _bias(own, class_names)
        people.append((name, len(own), own["right"].mean(), bias))
    columns = ["annotator", "votes", "agreement", "bias"]
    return pd.DataFrame(people, columns=columns)


def _bias(votes, class_names):
    """Returns in words what a frame of one annotator's votes has too often."""
    words = []
    given, true = votes["given"].value_counts(), votes["true"].value_counts()
    excess = given.sub(true, fill_value=0).nlargest(1)
    for name, count in excess[excess > 0].items():
        words.append(f"{class_names[name]} +{count:.0f}")
    wrong = votes[~votes["right"]].groupby(["true", "given"]).size()
    for (true, given), count in wrong.nlargest(1).items():
        words.append(
            f"most often {class_names[given]} for {class_names[true]} ({count})"
        )
    return "; ".join(words)


def review(labels, label, budget, known=None):
    """Returns the rows to look at, the classes with most to gain first.

    A look repairs a settled label of probability p with 1 - p. The `budget`
    rows of the smallest p are chosen, and `rank` counts them; then the rows of
    a class are put together: a person decides faster among pictures that
    should look alike.

    `labels` is the frame of labels.csv, `label` the classes of its settled
    labels, integers `(N,)`; examples that are `known`, bool `(N,)`, are left
    out.
    """
    gain = 1 - labels["probability"].astype(float)
    if known is not None:
        gain = gain[~np.asarray(known, bool)]
    gain = gain[gain >= _LEAST].nlargest(max(budget, 0))
    group = label[gain.index]
    total = gain.groupby(group).transform("sum")
    chosen = labels.loc[gain.index]
    chosen["reason"] = [_reason(row) for row in chosen.to_dict("records")]
    chosen["rank"] = np.arange(1, len(chosen) + 1)
    chosen["class"] = chosen["label"]
    order = np.lexsort((chosen["rank"], group, -total))
    columns = (
        "rank id class reason candidates label probability runner_up suggested"
    )
    return chosen[columns.split()].iloc[order].reset_index(drop=True)


def choices(sets, rows, belief):
    """Returns what a person chooses from, the likeliest first, by item.

    Of `CandidateSets`, rows and the belief in each class of these, `(n, C)`: n
    pairs of lists, at most nine class names, for nine keys, and their shares
    of the belief. They are candidates, the two likeliest classes, and others
    from 1 % on.
    """
    given = sets.rows(rows) > 0
    shares = belief / np.maximum(belief.sum(axis=1, keepdims=True), 1e-30)
    order = np.lexsort((~given, -shares), axis=1)[:, :_KEYS]
    pairs, names = [], np.array(sets.class_names, object)
    for row, classes in enumerate(order):
        share = shares[row, classes]
        kept = given[row, classes] | (share >= _UNLIKELY)
        kept[:2] = True
        chances = share[kept].astype(float).round(4).tolist()
        pairs.append((names[classes[kept]].tolist(), chances))
    return pairs


def votes_of(votes, rows, class_names):
    """Returns for each row a list of pairs: an annotator, and a class."""
    if votes is None:
        return [[] for _ in rows]
    people = votes.names[votes.annotators].tolist()
    given = np.array(class_names, object)[votes.classes].tolist()
    pairs = [list(pair) for pair in zip(people, given)]
    starts = np.searchsorted(votes.rows, rows)
    ends = np.searchsorted(votes.rows, rows, "right")
    return [pairs[start:end] for start, end in zip(starts, ends)]


def _reason(row):
    """Returns in words why a row of labels.csv, a dict, is worth a look."""
    words = f"{100 * row['probability']:.0f} % sure of {row['label']}"
    if row["undecided"]:
        words = f"undecided between {row['label']} and {row['runner_up']}"
    if row["outside"]:
        words = f"outside its set, {words}"
    return words


def count_known(label, labels, sets, is_told):
    """Counts wrong sets and right settled labels, by true labels.

    Of the settled labels, the true ones, -1 where not known, integers `(N,)`
    or None, the `CandidateSets`, and which labels somebody told, bool `(N,)`:
    these are no test of what was settled. Returns a part of `Audit.summary`.
    """
    labels = np.full(len(sets), -1) if labels is None else labels
    rows = np.flatnonzero(labels >= 0)
    compared = rows[~is_told[rows]]
    share = low = high = accuracy = None
    if len(rows):
        wrong = int((~sets.contains(rows, labels[rows])).sum())
        share = low = high = wrong / len(rows)
        if len(rows) < len(labels):
            low, high = wilson(wrong, len(rows))
    if len(compared):
        accuracy = float((label == labels)[compared].mean())
    return {
        "known_labels": len(rows),
        "realised_noise": share,
        "realised_noise_low": low,
        "realised_noise_high": high,
        "compared_labels": len(compared),
        "settled_accuracy": accuracy,
    }


def percent(share):
    """Returns a share as a percentage of three digits; "-" if not known."""
    unknown = share is None or share != share
    return "-" if unknown else f"{100 * share:.3g} %"
