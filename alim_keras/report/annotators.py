"""What each annotator is worth: agreement, bias, and what only it knew."""

import numpy as np

COLUMNS = (
    "annotator",
    "votes",
    "agreement",
    "expected_agreement",
    "chance_corrected",
    "bias",
    "adds",
    "alone",
)


def annotators(votes, label, belief, class_names):
    """Returns a row per annotator, in the order of `votes.annotator_names`.

    Columns: `annotator`; `votes`; `agreement`, the share of its votes that
    are the settled label; `expected_agreement`, the mean probability of the
    classes that it voted for; `chance_corrected`, Cohen's kappa of its votes
    and the settled labels (1 always right, 0 as good as drawing from its own
    and their frequencies); `bias`, the class that it gave most too often,
    compared with the settled labels of the same examples, and its most
    frequent confusion; `adds`, the share of its votes that are the settled
    label where nobody else gave it; `alone`, the share of its votes for a
    class that nobody else gave there. What cannot be known is NaN.

    Args:
        votes: A `Votes`; an annotator who gave several votes for an example
            counts with each.
        label: int64 `(N,)`, the settled labels.
        belief: Floats `(V,)`, the probability of the class of each vote.
        class_names: C strings.
    """
    import pandas

    who = np.asarray(votes.annotators, "int64")
    rows = np.asarray(votes.rows, "int64")
    classes = np.asarray(votes.classes, "int64")
    truth = label[rows]
    count, num_classes = len(votes.annotator_names), len(class_names)

    def total(weights=None):
        return np.bincount(who, weights, minlength=count)

    number = total()
    right = classes == truth
    alone = _alone(rows * num_classes + classes, who, count)
    given = _per_class(who, classes, count, num_classes)
    settled = _per_class(who, truth, count, num_classes)
    agreement = _share(total(right), number)
    both = np.asarray(given.multiply(settled).sum(axis=1)).ravel()
    chance = _share(both, number.astype("float64") ** 2)
    possible = 1.0 - chance
    kappa = np.where(
        possible > 1e-12,
        (agreement - chance) / np.where(possible > 1e-12, possible, 1.0),
        np.nan,
    )
    names = [str(name) for name in class_names]
    return pandas.DataFrame(
        {
            "annotator": np.array(votes.annotator_names, object),
            "votes": number,
            "agreement": agreement,
            "expected_agreement": _share(total(belief), number),
            "chance_corrected": kappa,
            "bias": _biases(who, classes, truth, given - settled, names),
            "adds": _share(total(alone & right), number),
            "alone": _share(total(alone), number),
        },
        columns=COLUMNS,
    )


def _share(part, whole):
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)


def _per_class(who, classes, count, num_classes):
    """Returns how often each annotator has each class, sparse `(A, C)`.

    Many annotators know few classes each: as an array of 50,000 annotators
    and 1,000 classes it would take 400 MB.
    """
    # Imported here: it takes a second.
    from scipy import sparse

    found = sparse.csr_array(
        (np.ones(len(who), "int64"), (who, classes)),
        shape=(count, num_classes),
    )
    found.sum_duplicates()
    return found


def _alone(place, who, count):
    """Returns for each vote whether no other annotator gave its class there.

    `place` is the number of its example and class.
    """
    # A person who says the same twice does not support itself.
    once = np.unique(place * count + who) // count
    places, supporters = np.unique(once, return_counts=True)
    return supporters[np.searchsorted(places, place)] == 1


def _biases(who, classes, truth, excess, names):
    """Returns the words of the column `bias`."""
    count, num_classes = excess.shape
    words = [""] * count
    excess = excess.tocoo()
    people, most, number = excess.row, excess.col, excess.data
    # The largest comes last; of several the first class.
    order = np.lexsort((-most, number, people))
    for place in order[number[order] > 0].tolist():
        words[people[place]] = f"{names[most[place]]} +{number[place]}"
    wrong = classes != truth
    pair = truth[wrong] * num_classes + classes[wrong]
    keys, counts = np.unique(
        who[wrong] * num_classes**2 + pair, return_counts=True
    )
    # Ascending counts, so that the most frequent one of each stays.
    order = np.argsort(counts, kind="stable")
    best = dict(
        zip(
            (keys[order] // num_classes**2).tolist(),
            zip(
                (keys[order] % num_classes**2).tolist(),
                counts[order].tolist(),
                strict=True,
            ),
            strict=True,
        )
    )
    for one, (pair, number) in best.items():
        true, given = divmod(pair, num_classes)
        words[one] += (
            f"{'; ' if words[one] else ''}most often {names[given]} for "
            f"{names[true]} ({number})"
        )
    return np.array(words, object)
