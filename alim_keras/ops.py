"""Equations 1 to 8 of ALIM as pure functions of `keras.ops`.

Every formula of the paper stands here once; the rest of the package calls it.
Shapes: B examples, C classes, D embedding dimensions. Arithmetic is float32
whatever the input's dtype, and so is what is returned.

Arguments of the same name are the same everywhere:

- `probabilities`: Tensor `(B, C)`; P, rows sum to 1.
- `candidates`: Tensor `(B, C)`; S, multi-hot or weights in [0, 1]. In graded
  sets a candidate has a weight in (0, 1], its S: in all formulas S is that
  number, and "outside the set" is where S is 0.
- `lam`: lambda in `[0, 1]`, a scalar, or `(B, 1)` for one value per example, or
  `(B, C)`.

Reference:
- [Xu et al., 2023](https://arxiv.org/abs/2301.12077) (ALIM, NeurIPS 2023)
"""

import keras
import numpy as np

from alim_keras.errors import check_choice

# Smallest probability that takes part in a ratio or a logarithm. It lies in
# the normal range of float32, so nothing underflows to a denormal on a GPU.
TINY = 1e-37


def _float32(x):
    return keras.ops.cast(x, "float32")


def members(candidates):
    """What is in the sets: 1 where `S > 0`, else 0, `(B, C)`."""
    return _float32(_float32(candidates) > 0.0)


def candidate_weights(candidates, lam):
    """Weight of every label, `(B, C)`: `S + lambda (1 - S)` of Eq. 3.

    >>> alim_keras.ops.candidate_weights([[1.0, 0.0, 1.0]], 0.25)
    [[1.0, 0.25, 1.0]]
    """
    candidates = _float32(candidates)
    return candidates + _float32(lam) * (1.0 - candidates)


def onehot(z):
    """Eq. 4: 1 at the largest entry of each row of `(B, C)`, 0 elsewhere.

    Equal largest entries share the 1 evenly, so that no class is preferred
    for its number. A row of zeros is a tie over all classes.

    >>> alim_keras.ops.onehot([[0.2, 0.5, 0.3], [0.4, 0.2, 0.4]])
    [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]
    """
    z = _float32(z)
    largest = _float32(z >= keras.ops.max(z, axis=-1, keepdims=True))
    return largest / keras.ops.sum(largest, axis=-1, keepdims=True)


def scale(z, scale_factor=1.0):
    """Eq. 5: `z^(1/K) / sum_j z_j^(1/K)` of non-negative rows, `(B, C)`.

    Computed as a softmax of `log(z) / K`, so that a small K does not
    underflow. Exact zeros stay zero; a row of zeros becomes uniform. K,
    `scale_factor`, is positive: 1 only normalises, smaller sharpens.

    >>> alim_keras.ops.scale([[0.1, 0.3]], scale_factor=0.5)
    [[0.1, 0.9]]
    """
    ops = keras.ops
    z = _float32(z)
    logits = ops.log(ops.maximum(z, TINY)) / _float32(scale_factor)
    # Exact zeros must not come back as TINY ** (1 / K) when K is large.
    top = ops.max(logits, axis=-1, keepdims=True)
    powers = ops.where(z > 0.0, ops.exp(logits - top), 0.0)
    total = ops.sum(powers, axis=-1, keepdims=True)
    uniform = ops.ones_like(powers) / z.shape[-1]
    return ops.where(total > 0.0, powers / ops.maximum(total, TINY), uniform)


def weighted_probabilities(probabilities, candidates, lam):
    """`(S + lambda (1 - S)) P`, what Eq. 3 normalises, `(B, C)`.

    A row in which this product is zero everywhere (P underflowed on all
    labels that count) falls back to S: a uniform belief over the set, or in
    proportion to its weights.
    """
    ops = keras.ops
    weights = candidate_weights(candidates, lam)
    z = weights * _float32(probabilities)
    alive = ops.max(z, axis=-1, keepdims=True) > 0.0
    return ops.where(alive, z, _float32(candidates))


def pseudo_labels(
    probabilities, candidates, lam, norm="onehot", scale_factor=1.0
):
    """Eq. 3: `w = Normalize((S + lambda (1 - S)) P)`, rows that sum to 1.

    `lam=0` is Eq. 1, which trusts the candidate set fully; `lam=1` is Eq. 2,
    which ignores it. `norm` is `"onehot"` (Eq. 4) or `"scale"` (Eq. 5), and
    `scale_factor` K of Eq. 5.

    >>> p, s = [[0.7, 0.2, 0.1]], [[0.0, 1.0, 1.0]]
    >>> alim_keras.ops.pseudo_labels(p, s, lam=0.2)  # .14 < .2
    [[0.0, 1.0, 0.0]]
    >>> alim_keras.ops.pseudo_labels(p, s, lam=0.4)  # .28 > .2
    [[1.0, 0.0, 0.0]]
    """
    check_choice("norm", norm, ("onehot", "scale"))
    z = weighted_probabilities(probabilities, candidates, lam)
    return onehot(z) if norm == "onehot" else scale(z, scale_factor)


def uniform_over_candidates(candidates):
    """`S / sum S`: the belief before anything was learnt, `(B, C)`."""
    candidates = _float32(candidates)
    total = keras.ops.sum(candidates, axis=-1, keepdims=True)
    return candidates / keras.ops.where(total > 0.0, total, 1.0)


def candidate_ratio(probabilities, candidates):
    """Eq. 6's value: `max(S P) / max((1 - S) P)` of each example, `(B,)`.

    An example whose label leaves its set at a given lambda has a ratio below
    it. That holds of graded sets too, where Eq. 3 gives a candidate `S + lambda
    (1 - S)` itself: with Q the largest P outside the set, the value is the
    largest of `S P / (Q - (1 - S) P)` over the candidates. It is `inf` where
    all C classes are candidates: such a set can never be wrong, and
    `adaptive_lambda` leaves it out. Finite everywhere else.

    >>> alim_keras.ops.candidate_ratio([[0.7, 0.2, 0.1]], [[0.0, 1.0, 1.0]])
    [0.2857143]
    """
    ops = keras.ops
    probabilities = _float32(probabilities)
    candidates = _float32(candidates)
    inside = candidates * probabilities
    member = members(candidates)
    outside = (1.0 - member) * probabilities
    outside = ops.max(outside, axis=-1, keepdims=True)
    # What a graded candidate gets from lambda alone. Below 0 none outranks it.
    outside = outside - (member - candidates) * probabilities
    full = ops.min(candidates, axis=-1) > 0.0
    # 0 / 0 (P underflowed everywhere) is no evidence either way: ratio 1.
    ratio = ops.maximum(inside, TINY) / ops.maximum(outside, TINY)
    ratio = ops.max(member * ops.minimum(ratio, 3e38), axis=-1)
    return ops.where(full, float("inf"), ratio)


def adaptive_lambda(ratios, noise_rate):
    """Eq. 6: the `noise_rate` quantile of the candidate ratios, on the host.

    The order statistic of rank `floor(n * noise_rate)`, ascending from 0, of
    the n finite ratios: about a share `noise_rate` of the examples lies below
    it, hence gets its label outside its set. Clamped to `[0, 1]`, as in the
    paper. `nan` (not seen) and `inf` (full sets) are left out; with nothing
    left, or a noise rate of 0, lambda is 0.

    >>> alim_keras.ops.adaptive_lambda([0.4, 0.1, 3.0, 0.2], noise_rate=0.5)
    0.4
    """
    ratios = np.asarray(keras.ops.convert_to_numpy(ratios), "float32").ravel()
    ratios = ratios[np.isfinite(ratios)]
    # Six decimals count: a product of floats drops below the number on paper
    # (100 * 0.29 = 28.999996) or rises above it.
    millionths = round(float(noise_rate) * 1e6)
    if not len(ratios) or millionths <= 0:
        return 0.0
    rank = min(len(ratios) * millionths // 10**6, len(ratios) - 1)
    return float(np.clip(np.partition(ratios, rank)[rank], 0.0, 1.0))


def closed_form_lambda(noise_rate, set_size, num_classes):
    """Lambda of sets of a size, `eta s / ((1 - eta) (C - s))`, by numpy.

    With it Eq. 3, by Eq. 5 and K = 1, is the posterior of the true label, if
    sets of one size are equally likely; docs/noise_rate.md derives it.
    `set_size` has integers s from 1 to C in any shape, and so has the float64
    array that is returned: above 1 where a label outside the set is the
    likelier one, 0 for a full set. `noise_rate`, eta in `[0, 1)`, may be an
    array too.

    >>> alim_keras.ops.closed_form_lambda(0.2, [1, 2, 4], 4)
    [0.08333333, 0.25, 0.0]
    """
    size = np.asarray(set_size, "float64")
    noise_rate = np.asarray(noise_rate, "float64")
    odds = noise_rate / np.maximum(1.0 - noise_rate, 1e-12)
    outside = num_classes - size
    return np.where(outside > 0, odds * size / np.maximum(outside, 1.0), 0.0)


def mixup(first, second, coefficient):
    """Eq. 7 (images) and Eq. 8 (targets): `a x_i + (1 - a) x_j`, `(B, ...)`.

    `coefficient` `(B,)` has one a in `[0, 1]` per example.
    """
    first, second = _float32(first), _float32(second)
    coefficient = keras.ops.reshape(
        _float32(coefficient), (-1,) + (1,) * (len(first.shape) - 1)
    )
    return coefficient * first + (1.0 - coefficient) * second


def unit_norm(x):
    """Rows scaled to length 1; a row of zeros stays zero."""
    x = _float32(x)
    square = keras.ops.sum(keras.ops.square(x), axis=-1, keepdims=True)
    # The rsqrt of a clamped square: no NaN gradient at a row of zeros.
    return x * keras.ops.rsqrt(keras.ops.maximum(square, 1e-24))


def prototype_update(prototypes, embeddings, labels, momentum):
    """Moving average of the class means on the unit sphere.

    Eq. 6 of PiCO, [Wang et al., 2022](https://arxiv.org/abs/2201.08984):
    `prototypes[y] = m prototypes[y] + (1 - m) q` in the batch's order, and all
    rows normalised at the end. For the samples i1..ik of class c:
    `m^k prototypes[c] + (1 - m) sum_j m^(k - j) q_ij`.

    Prototypes `(C, D)` and embeddings `(B, D)` are unit rows; a prototype of a
    class that was never seen is zero and stays so. Labels are integers `(B,)`,
    and those that are no class count for nothing.
    """
    ops = keras.ops
    prototypes, embeddings = _float32(prototypes), _float32(embeddings)
    momentum = _float32(momentum)
    member = ops.one_hot(labels, prototypes.shape[0], dtype="float32")
    seen = ops.cumsum(member, axis=0)
    count = ops.sum(member, axis=0)
    later = ops.sum(member * (ops.expand_dims(count, 0) - seen), axis=1)
    weights = (1.0 - momentum) * ops.power(momentum, later)
    update = ops.matmul(
        ops.transpose(member), embeddings * ops.expand_dims(weights, 1)
    )
    kept = ops.expand_dims(ops.power(momentum, count), 1) * prototypes
    return unit_norm(kept + update)
