"""Checks of the arrays that an estimate rests on."""

import numpy as np

from alim_keras.errors import DataError


def check_pairs(logits, candidates):
    """Returns logits as float64 and candidate sets as bool, both `(n, C)`.

    Raises:
        DataError: If shapes differ, there is no example, logits are not
            finite or a set is empty.
    """
    logits = np.asarray(logits, "float64")
    candidates = np.asarray(candidates) > 0
    if logits.ndim != 2 or logits.shape != candidates.shape or not logits.size:
        raise DataError(
            "Logits and candidate sets must both be (n, C), with at least one "
            f"example. Received: logits {logits.shape}, candidates "
            f"{candidates.shape}"
        )
    if not np.isfinite(logits).all():
        raise DataError(
            "Logits must be finite; the network that made them has diverged. "
            f"Received: {int((~np.isfinite(logits)).sum())} that are not"
        )
    empty = np.flatnonzero(~candidates.any(axis=1))
    if len(empty):
        raise DataError(
            "Every candidate set must hold a class. Received: "
            f"{len(empty)} empty sets, first row {empty[0]}"
        )
    return logits, candidates
