"""What the model believes about every training example."""

import keras

from alim_keras import backend
from alim_keras import ops


@keras.saving.register_keras_serializable(package="alim_keras")
class PseudoLabelTable(keras.layers.Layer):
    """The pseudo labels `w` of all N examples, and what ALIM steers them by.

    A row that was never touched is zero and counts as `S / |S|`. All of
    this is replicated on every device: `4 N C` bytes for the table.

    Args:
        num_examples: N, the number of training examples.
        num_classes: C.

    Weights (none trainable):
        table: `(N, C)` float32; rows sum to 1, or are zero if untouched.
        candidate_ratio: `(N,)` float32, Eq. 6's value of each example in the
            current epoch; `nan` where it was not seen yet.
        lam: Scalar lambda of Eq. 3.
        momentum: Scalar phi of the moving average `w <- phi w + (1 - phi)
            Normalize(...)`.
        use_onehot: Scalar, 1.0 for Eq. 4 and 0.0 for Eq. 5.
        scale_factor: Scalar K of Eq. 5.
        update_in_step: Scalar, 1.0 if every training step refreshes the rows
            of its batch, 0.0 if they change between epochs only.
    """

    def __init__(self, num_examples, num_classes, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.num_examples = num_examples
        self.num_classes = num_classes

        def weight(name, shape=(), initializer="zeros"):
            return self.add_weight(
                name=name,
                shape=shape,
                initializer=initializer,
                trainable=False,
                dtype="float32",
            )

        nan = keras.initializers.Constant(float("nan"))
        self.table = weight("table", (num_examples, num_classes))
        self.candidate_ratio = weight("candidate_ratio", (num_examples,), nan)
        self.lam = weight("lam")
        self.momentum = weight("momentum")
        self.use_onehot = weight("use_onehot", initializer="ones")
        self.scale_factor = weight("scale_factor", initializer="ones")
        self.update_in_step = weight("update_in_step", initializer="ones")
        self.built = True

    def rows(self, index, candidates):
        """Returns the current pseudo labels of a batch, `(B, C)`.

        Args:
            index: Integer tensor `(B,)`.
            candidates: Multi-hot tensor `(B, C)`.
        """
        index = keras.ops.convert_to_tensor(index)
        rows = keras.ops.take(self.table, index, axis=0)
        # An accelerator clamps an index out of range without a word.
        valid = keras.ops.logical_and(index >= 0, index < self.num_examples)
        rows = keras.ops.where(
            keras.ops.expand_dims(valid, 1), rows, float("nan")
        )
        untouched = keras.ops.max(rows, axis=-1, keepdims=True) <= 0.0
        start = ops.uniform_over_candidates(candidates)
        return keras.ops.where(untouched, start, rows)

    def labels_from(self, scores, candidates):
        """Eq. 3 under the current lambda and norm, `(B, C)`."""
        z = ops.weighted_probabilities(scores, candidates, self.lam)
        return keras.ops.where(
            self.use_onehot > 0.5,
            ops.onehot(z),
            ops.scale(z, self.scale_factor),
        )

    def refresh(self, index, scores, candidates, active=True):
        """Moves a batch's rows towards Eq. 3 and returns them, `(B, C)`.

        Args:
            index: Integer tensor `(B,)`, no example twice.
            scores: Tensor `(B, C)`: the P of Eq. 3 and Eq. 6.
            candidates: Multi-hot tensor `(B, C)`.
            active: Boolean, scalar. False only records the candidate ratios.
        """
        rows = self.rows(index, candidates)
        phi = self.momentum
        moved = phi * rows + (1.0 - phi) * self.labels_from(scores, candidates)
        moving = keras.ops.logical_and(active, self.update_in_step > 0.5)
        rows = keras.ops.where(moving, moved, rows)
        ratio = ops.candidate_ratio(scores, candidates)
        everywhere = backend.all_gather(index)
        backend.scatter_rows(self.table, everywhere, backend.all_gather(rows))
        backend.scatter_rows(
            self.candidate_ratio, everywhere, backend.all_gather(ratio)
        )
        return rows

    def forget_ratios(self):
        """Marks all candidate ratios as not seen; called as an epoch begins."""
        self.candidate_ratio.assign(
            keras.ops.full((self.num_examples,), float("nan"))
        )

    def get_config(self):
        return {
            **super().get_config(),
            "num_examples": self.num_examples,
            "num_classes": self.num_classes,
        }
