"""Colour jitter: torchvision's ColorJitter, one order per example."""

import itertools

import keras
import numpy as np

from alim_keras import backend
from alim_keras.augment import planes as planes_lib

_BRIGHTNESS, _CONTRAST, _SATURATION, _HUE = range(4)

# One number decides whether, one in which order, four by how much.
JITTER_DRAWS = 6


def jitter_planes(planes, draws, strength, probability):
    """Changes brightness, contrast, saturation and hue in a random order.

    Args:
        planes: Float32 tensor `(C, B, H, W)`.
        draws: Float tensor `(B, JITTER_DRAWS)`, uniform in [0, 1).
        strength: Four floats: brightness, contrast and saturation factors
            are uniform in `[max(0, 1 - s), 1 + s]`, the hue turns by a share
            of the circle uniform in `[-s, s]`.
        probability: Float. The share of examples that are changed.

    Returns:
        Float32 tensor `(C, B, H, W)`.
    """
    ops = keras.ops
    colored = planes.shape[0] == 3
    blends = [
        op
        for op in (_BRIGHTNESS, _CONTRAST, _SATURATION)
        if strength[op] > 0 and (colored or op != _SATURATION)
    ]
    hue = colored and strength[_HUE] > 0
    if not blends and not hue:
        return planes
    chosen = ops.cast(draws[:, 0] < probability, "float32")
    order = ops.cast(ops.floor(draws[:, 1] * 24.0), "int32")
    kinds, hue_places = _orders(blends)
    # (B, step, kind): which blend comes at which step.
    kinds = backend.take_rows(ops.convert_to_tensor(kinds), order)
    hue_place = backend.take_rows(ops.convert_to_tensor(hue_places), order)
    factors = [
        max(0.0, 1.0 - strength[op])
        + (1.0 + strength[op] - max(0.0, 1.0 - strength[op])) * draws[:, 2 + op]
        for op in (_BRIGHTNESS, _CONTRAST, _SATURATION)
    ]
    factors = ops.expand_dims(ops.stack(factors, axis=1), 1)
    changes = ops.sum(kinds * (factors - 1.0), axis=2)
    changes = changes * ops.expand_dims(chosen, 1)

    def blend(planes, step, when):
        change = changes[:, step]
        if when is not None:
            change = change * ops.cast(when, "float32")
        return blend_planes(
            planes,
            change,
            contrast=kinds[:, step, _CONTRAST],
            color=kinds[:, step, _SATURATION],
        )

    steps = range(len(blends))
    if not hue:
        for step in steps:
            planes = blend(planes, step, None)
        return planes
    # The hue is the dearest operation and its place is random: it is computed
    # once, and each blend is offered before and after it, one of the two
    # times with no change.
    for step in steps:
        planes = blend(planes, step, step < hue_place)
    turns = (2.0 * draws[:, 2 + _HUE] - 1.0) * strength[_HUE] * chosen
    planes = planes_lib.shift_hue(planes, planes_lib.per_image(turns))
    for step in steps:
        planes = blend(planes, step, step >= hue_place)
    return planes


def blend_planes(planes, change, contrast, color):
    """Blends with black, the mean grey or the grey image, and clips.

    Args:
        planes: Float32 tensor `(C, B, H, W)`.
        change: Float tensor `(B,)`, the factor minus 1: 0 leaves the image
            exactly as it is, -1 gives the other end of the blend.
        contrast: Float tensor `(B,)`, 1 where the other end is the mean grey.
        color: Float tensor `(B,)`, 1 where it is the grey image. Where both
            are 0 it is black.

    Returns:
        Float32 tensor `(C, B, H, W)`.
    """
    gray = planes_lib.luminance(planes)
    other = planes_lib.per_image(change * contrast) * planes_lib.mean(gray)
    if planes.shape[0] == 3:
        other = other + planes_lib.per_image(change * color) * gray
    factor = planes_lib.per_image(1.0 + change)
    return planes_lib.clip(planes * factor - other)


def _orders(blends):
    """Tables of the 24 orders of the four operations.

    Returns:
        float32 `(24, len(blends), 3)`, the one-hot kind of each blend, and
        int32 `(24,)`, how many blends come before the hue.
    """
    kinds = np.zeros((24, len(blends), 3), "float32")
    places = np.zeros((24,), "int32")
    for row, order in enumerate(itertools.permutations(range(4))):
        sequence = [op for op in order if op in blends]
        for step, op in enumerate(sequence):
            kinds[row, step, op] = 1.0
        before = order[: order.index(_HUE)]
        places[row] = sum(op in blends for op in before)
    return kinds, places
