"""Eq. 6's quantile of a stream of candidate ratios, in constant memory.

The ratios are counted in a histogram with bins of equal width in the
logarithm. It stands in for the `(N,)` array of all ratios where N is large:
its size, and the cost of reading lambda off it, do not depend on N, and it is
merged over replicas by adding up (or by counting the gathered ratios).

`counts` is int32 `(NUM_BINS + 2,)`: below `LOWEST`, the bins, and 1 or more.
Lambda is clamped to 1, so ratios from 1 up need no bins. `LOWEST` is the
smallest value that `ops.candidate_ratio` can return, so nothing is lost
below either.
"""

import math

import keras
import numpy as np

from alim_keras import ops

NUM_BINS = 16384
LOWEST = ops.TINY
_BIN_WIDTH = -math.log(LOWEST) / NUM_BINS
_EDGES = np.geomspace(LOWEST, 1.0, NUM_BINS + 1).astype("float32")
# What each count stands for: 0, the middle of each bin in the logarithm, 1.
_VALUES = np.sqrt(_EDGES[:-1].astype("float64") * _EDGES[1:])
_VALUES = np.concatenate([[0.0], _VALUES, [1.0]]).astype("float32")
# The lambda that is read is off by at most half a bin: 0.26 %.
RELATIVE_ERROR = math.expm1(_BIN_WIDTH / 2)


def ratio_counts(ratios):
    """Counts candidate ratios in the bins.

    Args:
        ratios: Tensor `(n,)` from `ops.candidate_ratio`. `nan` (not seen) and
            `inf` (full sets) are left out.

    Returns:
        An int32 tensor `(NUM_BINS + 2,)`.
    """
    ops = keras.ops
    ratios = ops.cast(ratios, "float32")
    usable = ops.isfinite(ratios)
    # Whatever is left out must not reach the cast to an integer.
    ratios = ops.where(usable, ratios, 1.0)
    depth = ops.log(ops.maximum(ratios, LOWEST)) - math.log(LOWEST)
    place = ops.cast(ops.floor(depth / _BIN_WIDTH), "int32")
    place = ops.clip(place, 0, NUM_BINS - 1)
    # A logarithm is rounded differently from device to device; comparisons
    # are not. 0 is now below the bins, NUM_BINS + 1 is 1 or more.
    edges = ops.convert_to_tensor(_EDGES)
    above = ops.cast(ratios >= ops.take(edges, place + 1), "int32")
    below = ops.cast(ratios < ops.take(edges, place), "int32")
    return ops.segment_sum(
        ops.cast(usable, "int32"),
        place + 1 + above - below,
        num_segments=NUM_BINS + 2,
    )


def adaptive_lambda(counts, noise_rate):
    """Eq. 6 from counts: as `ops.adaptive_lambda`, within 0.26 %.

    The rank is the same order statistic, `floor(n * noise_rate)`; the value
    is the middle (in the logarithm) of the bin that holds it. A lambda of 1
    is exact; one below `LOWEST` is 0.

    Args:
        counts: Integer tensor from `ratio_counts`, or a sum of several.
        noise_rate: Scalar eta in `[0, 1]`; six decimals of it count.

    Returns:
        A float32 scalar in `[0, 1]`; 0 if nothing was counted.

    Example:

    >>> counts = quantile.ratio_counts([0.4, 0.1, 3.0, 0.2])
    >>> quantile.adaptive_lambda(counts, noise_rate=0.5)
    0.3994
    """
    counts = keras.ops.cast(counts, "int32")
    rank = ops.share_rank(keras.ops.sum(counts), noise_rate)
    upto = keras.ops.cumsum(counts)
    place = keras.ops.sum(keras.ops.cast(upto <= rank, "int32"))
    # A rank of -1, nothing to go by, lies before all counts.
    return keras.ops.take(
        keras.ops.convert_to_tensor(_VALUES),
        keras.ops.where(rank < 0, 0, place),
    )
