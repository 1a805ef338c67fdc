"""The noise rate from examples whose true label somebody looked up."""

import numpy as np

from alim_keras.errors import DataError
from alim_keras.noise_rate.estimate import Estimate

# With so many true labels their share of wrong sets says more than estimates
# from predictions, which take sets for independent of the image.
ENOUGH = 50
# The 97.5 % quantile of the normal distribution.
_Z = 1.959963984540054


def annotated(labels, candidates):
    """Estimates eta as the share of looked-up labels outside their set.

    The examples must be a random sample of the training set. The interval is
    Wilson's, which holds its level for small counts too, and at 0 of n.

    Args:
        labels: Integers `(n,)`, true classes.
        candidates: Multi-hot array `(n, C)`, the noisy sets of the same
            examples.

    Returns:
        An `Estimate`. `details` holds `labels`, `wrong` and
        `more_labels_to_halve`: how many further labels would halve the
        interval, if the share stayed.

    Raises:
        DataError: If there is no label, or shapes differ.

    Example:

    >>> found = annotated([0, 1, 1, 0], [[1, 0]] * 4)
    >>> found.value, round(found.low, 3), round(found.high, 3)
    (0.5, 0.15, 0.85)

    Reference:
    - [Wilson, 1927](https://doi.org/10.1080/01621459.1927.10502953)
    """
    labels = np.asarray(labels, "int64")
    candidates = np.asarray(candidates) > 0
    count = len(labels)
    if not count or candidates.shape[:1] != (count,):
        raise DataError(
            "At least one true label and as many candidate sets were "
            f"expected. Received: {count} labels, sets {candidates.shape}"
        )
    wrong = int((~candidates[np.arange(count), labels]).sum())
    low, high = wilson(wrong, count)
    more = _labels_for(wrong / count, (high - low) / 2) - count
    return Estimate(
        value=wrong / count,
        low=low,
        high=high,
        method="annotated",
        reason=f"{wrong} of {count} true labels that were given are not in "
        f"their set; {more} more labels would halve the interval.",
        details={
            "labels": count,
            "wrong": wrong,
            "more_labels_to_halve": more,
        },
    )


def wilson(successes, count):
    """Returns the ends of Wilson's 95 % interval of a share."""
    share, z2 = successes / count, _Z**2
    centre = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = _half_width(share, count)
    # Exact at the ends, where the arithmetic leaves 1e-17.
    low = 0.0 if successes == 0 else max(centre - half, 0.0)
    high = 1.0 if successes == count else min(centre + half, 1.0)
    return low, high


def _half_width(share, count):
    z2 = _Z**2
    root = np.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    return float(_Z * root / (1 + z2 / count))


def _labels_for(share, width):
    """The fewest labels whose interval is at most `width` wide."""
    low, high = 0, 1
    while 2 * _half_width(share, high) > width:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if 2 * _half_width(share, middle) > width:
            low = middle
        else:
            high = middle
    return high
