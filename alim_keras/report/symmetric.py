"""Elementary symmetric polynomials: how likely a subset of k classes is.

Where a set of k classes is drawn with a probability that is proportional to
the product of its members' weights r (a conditional Bernoulli distribution),
the sum of all these products is the polynomial `e_k(r)`.
"""

import numpy as np

# Rows are worked through in blocks of about this many numbers.
_BLOCK = 1 << 22


def log_symmetric(logs, largest):
    """Logarithms of the elementary symmetric polynomials of some rows.

    Args:
        logs: Floats `(C, C)`: logarithms; a row's own place is left out.
        largest: The highest degree.

    Returns:
        Floats `(C, largest + 1)`: for each row and degree k the sum over all
        k of its C - 1 numbers of their product; -inf where there is none.

    Example:

    >>> np.exp(log_symmetric(np.log([[1, 2, 3], [1, 1, 1], [1, 1, 1]]), 2))
    [[1, 5, 6], [1, 2, 1], [1, 2, 1]]
    """
    sums = np.full((len(logs), largest + 1), -np.inf)
    sums[:, 0] = 0.0
    for place, column in enumerate(np.asarray(logs).T):
        one = column.copy()
        one[place] = -np.inf
        sums[:, 1:] = np.logaddexp(sums[:, 1:], sums[:, :-1] + one[:, None])
    return sums


def expected_counts(weights, draws):
    """Returns how often each class is expected in draws, over its weight.

    A step of `weights = counts / expected_counts(weights, draws)` never makes
    the counts less likely, since `log e_k` is concave: the fixed point is
    where every class is drawn as often as it should be.

    Args:
        weights: Positive floats `(C, C)`, r; a row's own place is left out.
        draws: Floats `(C, K + 1)`: how many draws of k classes a row saw.

    Returns:
        Floats `(C, C)`: for each row and class j, the sum over k of
        `draws[k] e_(k-1)(r without j) / e_k(r)`; 0 on the diagonal.

    Reference:
    - [Chen, Dempster and Liu, 1994](https://doi.org/10.1093/biomet/81.3.457)

    Example:

    >>> expected_counts(np.ones((3, 3)), np.array([[0, 4, 0]] * 3))
    [[0, 2, 2], [2, 0, 2], [2, 2, 0]]
    """
    found = np.zeros_like(weights)
    step = max(1, _BLOCK // (weights.shape[1] * draws.shape[1]))
    for start in range(0, len(weights), step):
        rows = np.arange(start, min(start + step, len(weights)))
        own = weights[rows]
        own[np.arange(len(rows)), rows] = 0.0
        found[rows] = _slopes(own, draws[rows])
        found[rows, rows] = 0.0
    return found


def _slopes(weights, draws):
    """Sums up `draws[k] d log e_k / dr_j`, by a pass back through the sums.

    Every term is positive, so nothing cancels, as it would if a class were
    divided out of the polynomials.
    """
    count, num_classes = weights.shape
    highest = draws.shape[1] - 1
    # e_k of weights that sum to K is K^k / k! at most.
    scale = highest / weights.sum(axis=1, keepdims=True)
    weights = weights * scale
    before = np.zeros((num_classes, count, highest + 1))
    sums = np.zeros((count, highest + 1))
    sums[:, 0] = 1.0
    for j in range(num_classes):
        before[j] = sums
        sums[:, 1:] += weights[:, j, None] * before[j, :, :-1]
    # A sum may have vanished where a row never drew so many.
    seen = (draws > 0) & (sums > 0)
    slope = np.divide(draws, sums, out=np.zeros_like(sums), where=seen)
    found = np.zeros_like(weights)
    for j in reversed(range(num_classes)):
        found[:, j] = (slope[:, 1:] * before[j, :, :-1]).sum(axis=1)
        slope[:, :-1] += weights[:, j, None] * slope[:, 1:]
    return found * scale
