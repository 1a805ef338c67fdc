"""The maths again, in numpy and float64 or exact decimals.

It is written from the paper and from the reference code's behaviour, not from
`alim_keras`.
"""

import decimal
import math
import zlib

import numpy as np
from scipy.special import log_softmax


def onehot(z):
    """Eq. 4; equals share the 1."""
    best = np.equal(z, np.max(z, axis=1, keepdims=True))
    return best / best.sum(axis=1, keepdims=True)


def scale(z, scale_factor):
    """Eq. 5 in decimals, whose exponent cannot underflow."""
    out = np.full(np.shape(z), 1 / np.shape(z)[1])
    with decimal.localcontext(prec=40, Emin=-(10**9), Emax=10**9):
        power = 1 / decimal.Decimal(scale_factor)
        for i, row in enumerate(z):
            row = [decimal.Decimal(float(value)) for value in row]
            row = [value**power if value else value for value in row]
            if any(row):
                out[i] = [value / sum(row) for value in row]
    return out


def pseudo_labels(probabilities, candidates, lam, norm, scale_factor=1.0):
    """Eq. 3 for rows whose product is not zero everywhere."""
    weights = np.float64(candidates)
    weights = weights + np.float64(lam) * (1 - weights)
    z = weights * np.float64(probabilities)
    return onehot(z) if norm == "onehot" else scale(z, scale_factor)


def candidate_ratio(probabilities, candidates):
    """Eq. 6: the lambda from which a class outside outranks its set.

    `inf` for a full set, and where no lambda is enough.
    """
    p, s = np.float64(probabilities), np.float64(candidates)
    outside = np.where(s > 0, 0, p).max(axis=1, keepdims=True)
    rest = np.maximum(outside - (1 - s) * p, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(rest > 0, s * p / rest, math.inf)
    ratio = np.where(s > 0, ratio, 0).max(axis=1)
    return np.where(s.min(axis=1) > 0, math.inf, ratio)


def adaptive_lambda(ratios, noise_rate):
    """`sorted(g)[int(n eta)]`, with n eta in decimal arithmetic, clamped."""
    finite = sorted(float(r) for r in ratios if math.isfinite(r))
    noise_rate = decimal.Decimal(repr(noise_rate))
    if not finite or noise_rate == 0:
        return 0.0
    rank = min(int(len(finite) * noise_rate), len(finite) - 1)
    return min(max(finite[rank], 0.0), 1.0)


def unit(rows):
    """Rows of length 1; zero stays zero."""
    rows = np.float64(rows)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1)


def prototype_update(prototypes, embeddings, labels, momentum):
    """Sample by sample, in order; all rows normalised once at the end."""
    means = np.array(prototypes, "float64")
    for embedding, label in zip(embeddings, labels):
        means[label] = momentum * means[label] + (1 - momentum) * embedding
    return unit(means)


def cross_entropy(targets, logits):
    """`-sum_c t log softmax(z)` of each row."""
    return -(targets * log_softmax(np.float64(logits), axis=-1)).sum(axis=-1)


def candidate_crossentropy(candidates, probabilities):
    """`-log sum_{c in S} P_c` of each row."""
    inside = (np.float64(candidates) * probabilities).sum(axis=1)
    return -np.log(np.minimum(inside, 1))


def supervised_contrastive(mask, similarities, temperature):
    """Mask: 1 positive, 0 negative, -1 left out; one loss for each row."""
    logits = np.float64(similarities) / temperature
    logs = log_softmax(np.where(mask == -1, -np.inf, logits), axis=1)
    positive = mask == 1
    total = np.where(positive, logs, 0).sum(axis=1)
    return -total / np.maximum(positive.sum(axis=1), 1)


def _mix(x):
    """The lowbias32 integer hash."""
    x = (x ^ (x >> 16)) * 0x7FEB352D % 2**32
    x = (x ^ (x >> 15)) * 0x846CA68B % 2**32
    return x ^ (x >> 16)


def draw(seed, epoch, index, slot, stream):
    """One uniform number in [0, 1) of `alim_keras.draws`, with integers."""
    state = zlib.crc32(stream.encode())
    for key in (seed, epoch, index, slot):
        state = _mix(((state ^ (key % 2**32)) + 0x9E3779B9) % 2**32)
    return (state >> 8) / 2**24


def convolve(images, kernel, stride, pad):
    """A convolution of NHWC images, padded by `pad` on all four sides."""
    padded = np.pad(images, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    view = np.lib.stride_tricks.sliding_window_view
    patches = view(padded, kernel.shape[:2], axis=(1, 2))
    patches = patches[:, ::stride, ::stride].astype("float64")
    return np.einsum("bijchw,hwcf->bijf", patches, kernel)
