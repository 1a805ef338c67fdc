"""Slow versions of the maths: plain loops, one element at a time.

They are written from the paper and from the reference code's behaviour, not
from `alim_keras`, in float64 or exact decimals. Nothing here is fast.
"""

import decimal
import math
import zlib

import numpy as np


def onehot(z):
    """Eq. 4; equals share the 1."""
    out = np.zeros(np.shape(z))
    for i, row in enumerate(z):
        best = [j for j, value in enumerate(row) if value == max(row)]
        for j in best:
            out[i, j] = 1.0 / len(best)
    return out


def scale(z, scale_factor):
    """Eq. 5 in decimals, whose exponent cannot underflow."""
    context = decimal.Context(prec=40, Emin=-(10**9), Emax=10**9)
    power = context.divide(1, decimal.Decimal(scale_factor))
    out = np.zeros(np.shape(z))
    for i, row in enumerate(z):
        values = [
            context.power(decimal.Decimal(float(v)), power) if v > 0 else 0
            for v in row
        ]
        total = decimal.Decimal(0)
        for value in values:
            total = context.add(total, value)
        for j, value in enumerate(values):
            out[i, j] = context.divide(value, total) if total else 1 / len(row)
    return out


def pseudo_labels(probabilities, candidates, lam, norm, scale_factor=1.0):
    """Eq. 3 for rows whose product is not zero everywhere."""
    z = np.zeros(np.shape(probabilities))
    for i, row in enumerate(probabilities):
        for j, p in enumerate(row):
            z[i, j] = p * (1.0 if candidates[i][j] else lam)
    return onehot(z) if norm == "onehot" else scale(z, scale_factor)


def candidate_ratio(probabilities, candidates):
    """Eq. 6's value; `inf` for a full set."""
    ratios = []
    for p, s in zip(probabilities, candidates):
        inside = [float(v) for v, member in zip(p, s) if member]
        outside = [float(v) for v, member in zip(p, s) if not member]
        if not outside:
            ratios.append(math.inf)
        else:
            ratios.append(max(inside, default=0.0) / max(outside))
    return np.array(ratios)


def adaptive_lambda(ratios, noise_rate):
    """`sorted(g)[int(n eta)]`, with n eta in decimal arithmetic, clamped."""
    finite = sorted(float(r) for r in ratios if math.isfinite(r))
    noise_rate = decimal.Decimal(repr(noise_rate))
    if not finite or noise_rate == 0:
        return 0.0
    rank = min(int(len(finite) * noise_rate), len(finite) - 1)
    return min(max(finite[rank], 0.0), 1.0)


def unit(row):
    """A vector scaled to length 1; zero stays zero."""
    length = math.sqrt(sum(float(v) ** 2 for v in row))
    return [float(v) / length if length > 0 else 0.0 for v in row]


def prototype_update(prototypes, embeddings, labels, momentum):
    """Sample by sample, in order; all rows normalised once at the end."""
    means = [[float(v) for v in row] for row in prototypes]
    for embedding, label in zip(embeddings, labels):
        means[label] = [
            momentum * old + (1.0 - momentum) * float(new)
            for old, new in zip(means[label], embedding)
        ]
    return np.array([unit(row) for row in means])


def softmax(row):
    """Of one row."""
    top = max(row)
    powers = [math.exp(v - top) for v in row]
    return np.array(powers) / sum(powers)


def cross_entropy(targets, logits):
    """`-sum_c t log softmax(z)` of each row."""
    out = []
    for target, row in zip(targets, logits):
        top = max(row)
        log_total = top + math.log(sum(math.exp(v - top) for v in row))
        out.append(sum(-t * (v - log_total) for t, v in zip(target, row)))
    return np.array(out)


def candidate_crossentropy(candidates, probabilities):
    """`-log sum_{c in S} P_c` of each row."""
    return np.array(
        [
            -math.log(min(sum(v for v, m in zip(p, s) if m), 1.0))
            for p, s in zip(probabilities, candidates)
        ]
    )


def supervised_contrastive(mask, similarities, temperature):
    """Mask: 1 positive, 0 negative, -1 left out; one loss for each row."""
    out = []
    for mask_row, similarity_row in zip(mask, similarities):
        total = 0.0
        for kind, s in zip(mask_row, similarity_row):
            if kind != -1:
                total += math.exp(float(s) / temperature)
        terms = [
            -(float(s) / temperature - math.log(total))
            for kind, s in zip(mask_row, similarity_row)
            if kind == 1
        ]
        out.append(sum(terms) / len(terms) if terms else 0.0)
    return np.array(out)


def covering(candidates, predictions):
    """1 where the first largest prediction is a candidate."""
    return np.array(
        [
            float(bool(s[int(np.argmax(p))]))
            for s, p in zip(candidates, predictions)
        ]
    )


def approximated(candidates, predictions):
    """Prediction over S, renormalised, at the argmax; 0 outside S."""
    out = []
    for s, p in zip(candidates, predictions):
        best = int(np.argmax(p))
        total = sum(float(v) for v, member in zip(p, s) if member)
        out.append(float(p[best]) / total if s[best] else 0.0)
    return np.array(out)


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
