"""One mean embedding per class, on the unit sphere."""

import keras

from alim_keras import backend
from alim_keras import ops


@keras.saving.register_keras_serializable(package="alim_keras")
class Prototypes(keras.layers.Layer):
    """Class means of the embeddings, as a moving average.

    A class that was never assigned keeps its zero row; one that stops being
    assigned keeps its last mean.

    Args:
        num_classes: C.
        embedding_dim: D.
        momentum: Of the moving average. Defaults to `0.99`.

    Call arguments:
        embeddings: Tensor `(B, D)` of unit rows.

    Returns:
        Cosine similarities to all prototypes, `(B, C)` float32.
    """

    def __init__(self, num_classes, embedding_dim, momentum=0.99, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.num_classes = num_classes
        self.embedding_dim = embedding_dim
        self.momentum = momentum
        self.means = self.add_weight(
            name="means",
            shape=(num_classes, embedding_dim),
            initializer="zeros",
            trainable=False,
            dtype="float32",
        )
        self.built = True

    def call(self, embeddings):
        return keras.ops.matmul(
            keras.ops.cast(embeddings, "float32"),
            keras.ops.transpose(self.means),
        )

    def update(self, embeddings, labels):
        """Takes a batch in; see `ops.prototype_update`.

        Args:
            embeddings: Tensor `(B, D)` of this replica's unit rows.
            labels: Integer tensor `(B,)` of their pseudo classes.
        """
        embeddings, labels = backend.all_gather(embeddings, labels)
        self.means.assign(
            ops.prototype_update(self.means, embeddings, labels, self.momentum)
        )

    def get_config(self):
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "embedding_dim": self.embedding_dim,
            "momentum": self.momentum,
        }
