"""Mixup's coefficient without a Beta sampler, which XLA lacks."""

import keras
import numpy as np

from alim_keras import draws


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
