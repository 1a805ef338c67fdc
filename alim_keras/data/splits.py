"""Parts of a training set: a smaller one, and one held out for selection."""

import numpy as np

from alim_keras.data.seeding import check_seed
from alim_keras.data.seeding import check_share
from alim_keras.data.seeding import generator
from alim_keras.errors import ConfigError


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
    seed = check_seed(seed)
    if isinstance(size, bool) or int(size) != size:
        raise ConfigError(
            f"`size` must be a whole number. Received: size={size!r}"
        )
    size = int(size)
    if not 1 <= size <= len(labels):
        raise ConfigError(
            f"`size` must be from 1 to the {len(labels)} examples there are. "
            f"Received: size={size}"
        )
    classes, counts = np.unique(labels, return_counts=True)
    # Whole-number arithmetic: no share can be lost to rounding.
    quota, remainder = np.divmod(counts * size, len(labels))
    order = np.argsort(-remainder, kind="stable")
    quota[order[: size - quota.sum()]] += 1
    rng = generator(seed, "subset")
    chosen = []
    for one, wanted in zip(classes, quota, strict=True):
        members = np.flatnonzero(labels == one)
        chosen.append(rng.permutation(members)[:wanted])
    return np.sort(np.concatenate(chosen)).astype(np.int64)


def holdout_split(ids, share, seed=0):
    """Splits examples into a training and a held-out part.

    The split is a seeded permutation of the sorted ids. It is *not*
    stratified: training must not look at true labels, and where only
    candidate sets are known there are none.

    Args:
        ids: Strings `(num_examples,)`, unique.
        share: Float in [0, 1), the held-out share, rounded to whole examples
            and at least one if it is above 0.
        seed: Integer >= 0.

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
    share, seed = check_share("share", share), check_seed(seed)
    count = int(np.floor(share * len(ids) + 0.5))
    count = max(count, 1) if share > 0 else 0
    if count >= len(ids):
        raise ConfigError(
            f"Holding out {count} of {len(ids)} examples leaves none to train "
            f"on; choose a smaller share. Received: share={share}"
        )
    order = np.argsort(ids, kind="stable")
    shuffled = order[generator(seed, "holdout").permutation(len(ids))]
    return (
        np.sort(shuffled[count:]).astype(np.int64),
        np.sort(shuffled[:count]).astype(np.int64),
    )
