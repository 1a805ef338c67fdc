"""Weights of the labels on both sides of every example's set."""

import keras

from alim_keras import backend
from alim_keras.ops import TINY


@keras.saving.register_keras_serializable(package="alim_keras")
class LeveragedWeights(keras.layers.Layer):
    """The weights v of the leveraged weighted losses, for all N examples.

    Args:
        num_examples: N.
        num_classes: C.

    Weights (none trainable):
        table: `(N, C)`, `4 N C` bytes. A row sums to 1 over the candidates
            and to 1 over the others; a row that was never touched is zero
            and counts as `1 / C` everywhere.

    Reference:
    - [Wen et al., 2021](https://arxiv.org/abs/2106.05731)
    """

    def __init__(self, num_examples, num_classes, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.num_examples = num_examples
        self.num_classes = num_classes
        self.table = self.add_weight(
            name="table",
            shape=(num_examples, num_classes),
            initializer="zeros",
            trainable=False,
        )
        self.built = True

    def rows(self, index):
        """Returns the weights of a batch, `(B, C)`."""
        rows = backend.gather_rows(self.table, index)
        untouched = keras.ops.max(rows, axis=-1, keepdims=True) <= 0.0
        return keras.ops.where(untouched, 1.0 / self.num_classes, rows)

    def refresh(self, index, scores, candidates):
        """Sets a batch's rows from P and S; returns them, `(B, C)`.

        Args:
            index: Integer tensor `(B,)`, no example twice.
            scores: Tensor `(B, C)`; `P`.
            candidates: Multi-hot tensor `(B, C)`; `S`.
        """
        inside, outside = candidates * scores, (1.0 - candidates) * scores
        rows = sum(
            part
            / keras.ops.maximum(
                keras.ops.sum(part, axis=-1, keepdims=True), TINY
            )
            for part in (inside, outside)
        )
        index, all_rows = backend.all_gather(index, rows)
        backend.scatter_rows(self.table, index, all_rows)
        return rows

    def get_config(self):
        return {
            **super().get_config(),
            "num_examples": self.num_examples,
            "num_classes": self.num_classes,
        }
