"""Parts of a training set: smaller, long-tailed, or held out."""

import numpy as np

from alim_keras.data.checks import generator
from alim_keras.errors import ConfigError
from alim_keras.errors import check_number


def stratified_subset(labels, size, seed=0):
    """Returns the places of a subset with the class shares of the whole.

    Every class gives its share of `size` rounded down; the places left over
    go to the largest remainders, at a tie to the lower class. This prepares
    a smaller benchmark from known labels; it is no part of training.

    Args:
        labels: Integers `(num_examples,)`.
        size: Integer, how many examples; exactly so many are returned.
        seed: Integer >= 0.

    Returns:
        int64 `(size,)`, rising.

    Raises:
        ConfigError: `size` is below 1 or above the number of examples.

    Example:

    >>> np.asarray([0, 0, 1, 1])[stratified_subset([0, 0, 1, 1], 2)].tolist()
    [0, 1]
    """
    labels = np.asarray(labels)
    size = check_number("size", size, 1, len(labels), whole=True)
    classes, counts = np.unique(labels, return_counts=True)
    # Whole-number arithmetic: no share can be lost to rounding.
    quota, remainder = np.divmod(counts * size, len(labels))
    order = np.argsort(-remainder, kind="stable")
    quota[order[: size - quota.sum()]] += 1
    rng = generator(seed, "subset")
    chosen = []
    for label, wanted in zip(classes, quota, strict=True):
        members = np.flatnonzero(labels == label)
        chosen.append(rng.permutation(members)[:wanted])
    return np.sort(np.concatenate(chosen)).astype(np.int64)


def long_tailed_sizes(largest, num_classes, ratio):
    """Returns how many examples each class is to keep.

    Class c of C keeps `largest * ratio**(-c / (C - 1))` examples, rounded
    down, but at least one.

    Args:
        largest: Integer, the size of the first class.
        num_classes: Integer C.
        ratio: Float >= 1, the first class's size over the last one's.

    Returns:
        int64 `(C,)`, falling.

    Raises:
        ConfigError: If `ratio` is below 1 or not finite.

    Example:

    >>> long_tailed_sizes(100, 3, 100).tolist()
    [100, 10, 1]
    """
    ratio = check_number("ratio", ratio, 1)
    share = np.arange(num_classes) / max(num_classes - 1, 1)
    # A whole number must not be rounded down because of its last bit.
    sizes = np.floor(largest * ratio**-share + 1e-6)
    return np.maximum(sizes, 1).astype(np.int64)


def long_tailed_subset(labels, num_classes, ratio, seed=0):
    """Returns the places of a subset with exponentially falling classes.

    The sizes are those of `long_tailed_sizes`, where the largest class of
    `labels` gives `largest`; a class that has fewer examples keeps them all.
    Class 0 is the head. Like `stratified_subset` it prepares a benchmark from
    known labels and is no part of training.

    Args:
        labels: Integers `(num_examples,)` in [0, C).
        num_classes: Integer C.
        ratio: Float >= 1, the first class's size over the last one's.
        seed: Integer >= 0.

    Returns:
        int64 places, rising.

    Raises:
        ConfigError: If `ratio` is below 1 or not finite.

    Example:

    >>> labels = np.repeat([0, 1], 4)
    >>> labels[long_tailed_subset(labels, 2, ratio=4.0)].tolist()
    [0, 0, 0, 0, 1]

    Reference:
    - [Cui et al., 2019](https://arxiv.org/abs/1901.05555)
    """
    labels = np.asarray(labels)
    counts = np.bincount(labels, minlength=num_classes)
    sizes = long_tailed_sizes(counts.max(), num_classes, ratio)
    rng = generator(seed, "imbalance")
    chosen = [
        rng.permutation(np.flatnonzero(labels == label))[:wanted]
        for label, wanted in enumerate(sizes)
    ]
    return np.sort(np.concatenate(chosen)).astype(np.int64)


def holdout_split(ids, share, seed=0, copies=None):
    """Splits examples into a training and a held-out part.

    The split is a seeded permutation of the sorted ids. It is *not*
    stratified: training must not look at true labels, and where only
    candidate sets are known there are none.

    Args:
        ids: Strings `(num_examples,)`, unique.
        share: Float in [0, 1), the held-out share, rounded to whole examples
            and at least one if it is above 0.
        seed: Integer >= 0.
        copies: Optional integers `(num_examples,)`, equal for copies of one
            image. These stay on one side, so that the held-out part can be
            larger than `share` by a few copies.

    Returns:
        Two int64 arrays of places, both rising: the training part and the
        held-out part. Together they hold every place once.

    Raises:
        ConfigError: `share` is out of range or leaves nothing to train on.

    Example:

    >>> train, held_out = holdout_split(["a", "b", "c", "d"], 0.25)
    >>> len(train), len(held_out)
    (3, 1)
    """
    ids = np.asarray(ids, str)
    share = check_number("share", share, 0, 1)
    count = int(np.floor(share * len(ids) + 0.5))
    count = max(count, 1) if share > 0 else 0
    order = np.argsort(ids, kind="stable")
    shuffled = order[generator(seed, "holdout").permutation(len(ids))]
    if copies is not None and count:
        # Copies follow the first of them.
        groups = np.asarray(copies)[shuffled]
        _, first, inverse = np.unique(
            groups, return_index=True, return_inverse=True
        )
        turn = first[inverse]
        by_group = np.argsort(turn, kind="stable")
        shuffled, turn = shuffled[by_group], turn[by_group]
        count = int(np.searchsorted(turn, turn[count - 1], "right"))
    if count >= len(ids):
        raise ConfigError(
            f"Holding out {count} of {len(ids)} examples leaves none to train "
            f"on; choose a smaller share. Received: share={share}"
        )
    return (
        np.sort(shuffled[count:]).astype(np.int64),
        np.sort(shuffled[:count]).astype(np.int64),
    )
