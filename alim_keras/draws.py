"""Stateless random numbers: a draw is a function of its keys alone.

`keras.random` keeps a state that no checkpoint holds, and its Beta and Gamma
have no XLA kernel. Here a number depends only on (seed, epoch, example index,
slot, stream), so the order of examples, the number of replicas, the place
where it is computed (accelerator or tf.data) and a restart do not change it.
The generator is a chain of 32-bit integer hashes, the "lowbias32" mixer of
[Wellons, 2018](https://nullprogram.com/blog/2018/07/31/).
"""

import functools
import zlib

import keras
import numpy as np

# Of the quantile function of a Beta distribution.
_BETA_POINTS = 4097


def _hash(x):
    """Mixes uint32 values so that every input bit reaches every output bit."""
    ops = keras.ops
    u32 = lambda value: ops.cast(value, "uint32")  # noqa: E731
    x = ops.bitwise_xor(x, ops.right_shift(x, u32(16)))
    x = ops.multiply(x, u32(0x7FEB352D))
    x = ops.bitwise_xor(x, ops.right_shift(x, u32(15)))
    x = ops.multiply(x, u32(0x846CA68B))
    return ops.bitwise_xor(x, ops.right_shift(x, u32(16)))


def uniform(seed, epoch, index, slots, stream):
    """Returns random numbers in [0, 1), float32 `(B, slots)`.

    Args:
        seed: Integer, scalar. The run's seed.
        epoch: Integer, scalar.
        index: Integer tensor `(B,)`. The example's place in the data set.
        slots: Integer. How many numbers per example.
        stream: String. The name of the use ("weak", "mixup", ...): different
            streams are independent.

    >>> alim_keras.draws.uniform(0, 3, np.array([7, 8]), 2, "weak").shape
    (2, 2)
    """
    ops = keras.ops
    golden = ops.cast(0x9E3779B9, "uint32")
    state = ops.cast(zlib.crc32(stream.encode()), "uint32")
    index = ops.expand_dims(index, 1)
    for key in (seed, epoch, index, ops.expand_dims(ops.arange(slots), 0)):
        key = ops.cast(key, "uint32")
        state = _hash(ops.add(ops.bitwise_xor(state, key), golden))
    # 24 bits: every value is exact in float32 and 1.0 cannot appear.
    mantissa = ops.right_shift(state, ops.cast(8, "uint32"))
    return ops.cast(mantissa, "float32") * (2.0**-24)


def beta(alpha, seed, epoch, index, stream):
    """Returns float32 draws from Beta(alpha, alpha), `(B,)`; see `uniform`."""
    return beta_quantile(alpha, uniform(seed, epoch, index, 1, stream)[:, 0])


def beta_quantile(alpha, uniform):
    """Maps draws from [0, 1), `(B,)`, to draws from Beta(alpha, alpha).

    By 4,097 points of the quantile function, linear between them.
    """
    ops = keras.ops
    points = ops.convert_to_tensor(_beta_points(alpha))
    place = uniform * (_BETA_POINTS - 1)
    below = ops.clip(ops.cast(place, "int32"), 0, _BETA_POINTS - 2)
    share = place - ops.cast(below, "float32")
    low, high = ops.take(points, below), ops.take(points, below + 1)
    return low + share * (high - low)


def folds(num_examples, folds, seed, groups=None):
    """Deals examples out to folds 0 to `folds - 1`, an int array `(N,)`.

    Examples with the same number in `groups`, `(N,)`, such as copies of an
    image, come into one fold, unless they are more than N / folds.
    """
    each = np.arange(num_examples)
    groups = each if groups is None else np.asarray(groups)
    groups = np.unique(groups, return_inverse=True)[1]
    large = np.bincount(groups)[groups] * folds > num_examples
    groups = np.where(large, num_examples + each, groups)
    names, groups = np.unique(groups, return_inverse=True)
    order = np.random.default_rng([seed, 0xF01D]).permutation(len(names))
    return order[groups] % folds


@functools.cache
def _beta_points(alpha):
    # SciPy takes a third of a second to import.
    from scipy import special

    grid = np.linspace(0.0, 1.0, _BETA_POINTS)
    return special.betaincinv(alpha, alpha, grid).astype("float32")
