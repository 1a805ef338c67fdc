"""Labels that were added to candidate sets in training."""

import keras

from alim_keras import backend

# One byte each. TensorFlow scatters int8 on a GPU, bool with int64 indices not.
_DTYPE = "int8"


@keras.saving.register_keras_serializable(package="alim_keras")
class AddedLabels(keras.layers.Layer):
    """Which labels were added to which set, for good.

    Args:
        num_examples: N.
        num_classes: C.

    Weights (none trainable):
        table: `(N, C)` int8, `N C` bytes: 1 where a label was added.
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
            dtype=_DTYPE,
        )
        self.built = True

    def joined(self, index, candidates):
        """Returns the sets of a batch with what was added, `(B, C)` float32.

        Args:
            index: Integer tensor `(B,)`.
            candidates: Multi-hot tensor `(B, C)`.
        """
        added = backend.gather_rows(self.table, index)
        return keras.ops.maximum(
            keras.ops.cast(candidates, "float32"),
            keras.ops.cast(added, "float32"),
        )

    def add(self, index, label, chosen):
        """Adds a label each to the sets of some examples of a batch.

        Args:
            index: Integer tensor `(B,)`, no example twice.
            label: Integer tensor `(B,)`.
            chosen: Boolean tensor `(B,)`: to whose sets.
        """
        label = keras.ops.cast(label, backend.INTEGER)
        label = keras.ops.where(chosen, label, -1)
        index, label = backend.all_gather(index, label)
        # -1 is a row of zeros.
        new = keras.ops.one_hot(label, self.num_classes, dtype="float32")
        backend.scatter_rows(self.table, index, self.joined(index, new))

    def get_config(self):
        return {
            **super().get_config(),
            "num_examples": self.num_examples,
            "num_classes": self.num_classes,
        }
