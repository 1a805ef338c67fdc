"""A training set in which some classes are rare."""

import math

import numpy as np

from alim_keras.data.seeding import check_seed
from alim_keras.data.seeding import generator
from alim_keras.errors import ConfigError


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
    if not (math.isfinite(ratio) and ratio >= 1):
        raise ConfigError(
            "The imbalance, the first class's size over the last one's, must "
            f"be a finite number of at least 1. Received: ratio={ratio!r}"
        )
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
    rng = generator(check_seed(seed), "imbalance")
    chosen = [
        rng.permutation(np.flatnonzero(labels == one))[:wanted]
        for one, wanted in enumerate(sizes)
    ]
    return np.sort(np.concatenate(chosen)).astype(np.int64)
