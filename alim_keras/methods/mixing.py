"""Mixup within a batch, with a coefficient for each example."""

import keras
import numpy as np

from alim_keras import draws
from alim_keras import ops


class Mixup:
    """What `PartialLabelModel` does if `mixup_weight` is not 0."""

    def mixup_partner(self, batch_size):
        """Which example of the batch each one is mixed with, `(B,)`.

        Neighbours: the batch is in random order already, and a pair stays
        together over replicas. The reference draws a second batch instead.
        """
        return neighbour(batch_size)

    def _mixup_loss(self, targets, batch):
        share = coefficient(
            self.mixup_quantile, self.seed, self.epoch, batch.index
        )
        partner = self.mixup_partner(keras.ops.shape(batch.index)[0])

        def mixed(rows):
            other = keras.ops.take(rows, partner, axis=0)
            return ops.mixup(rows, other, share)

        logits = self.encode(mixed(batch.weak), training=True)["logits"]
        logits = self.adjusted(logits)
        weight = 1.0 if batch.sample_weight is None else batch.sample_weight
        own = self.classification_loss(
            logits, targets, batch.candidates, weight * share
        )
        others = self.classification_loss(
            logits,
            keras.ops.take(targets, partner, axis=0),
            keras.ops.take(batch.candidates, partner, axis=0),
            weight * (1.0 - share),
        )
        return own + others


class BetaQuantile:
    """Quantile function of Beta(alpha, alpha), by a table of 4,097 points.

    A uniform draw goes in, a Beta draw comes out; linear between the points.

    Args:
        alpha: Positive float.
    """

    def __init__(self, alpha):
        if not alpha > 0:
            raise ValueError(
                "Argument `mixup_alpha` must be positive. "
                f"Received: mixup_alpha={alpha}"
            )
        from scipy import special

        self.points = special.betaincinv(
            alpha, alpha, np.linspace(0.0, 1.0, 4097)
        ).astype("float32")

    def __call__(self, uniform):
        """Maps `(B,)` uniform draws to `(B,)` Beta draws, float32."""
        ops = keras.ops
        points = ops.convert_to_tensor(self.points)
        place = uniform * (len(self.points) - 1)
        below = ops.clip(ops.cast(place, "int32"), 0, len(self.points) - 2)
        share = place - ops.cast(below, "float32")
        low, high = ops.take(points, below), ops.take(points, below + 1)
        return low + share * (high - low)


def coefficient(quantile, seed, epoch, index):
    """Draws `a` of each example, `(B,)`: `max(b, 1 - b)`, b ~ Beta.

    The larger share stays with the example itself, so a mixture is never
    closer to its partner.
    """
    draw = quantile(draws.uniform(seed, epoch, index, 1, "mixup")[:, 0])
    return keras.ops.maximum(draw, 1.0 - draw)


def neighbour(batch_size):
    """Pairs neighbours, `(B,)`: 1, 0, 3, 2, ...; an odd last one gets 0."""
    index = keras.ops.arange(batch_size)
    partner = keras.ops.bitwise_xor(index, keras.ops.ones_like(index))
    return keras.ops.where(partner < batch_size, partner, 0)
