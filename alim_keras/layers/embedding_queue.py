"""The memory of earlier key embeddings that the contrastive loss looks at."""

import keras
import numpy as np

from alim_keras import backend

NO_CLASS = -1


def _random_unit_rows(shape, dtype=None):
    # Fixed numbers: all replicas and all runs start from the same queue.
    rows = np.random.default_rng(0).standard_normal(shape)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return keras.ops.convert_to_tensor(rows, dtype=dtype)


@keras.saving.register_keras_serializable(package="alim_keras")
class EmbeddingQueue(keras.layers.Layer):
    """First in, first out, for any batch size; the newest rows come last.

    It starts full of random unit vectors of class -1, which are negatives of
    every anchor.

    Args:
        size: Q, the number of embeddings kept.
        embedding_dim: D.

    Weights (none trainable):
        embeddings: `(Q, D)` float32.
        labels: `(Q,)` integers, the pseudo classes.
    """

    def __init__(self, size, embedding_dim, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.size = size
        self.embedding_dim = embedding_dim
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(size, embedding_dim),
            initializer=_random_unit_rows,
            trainable=False,
            dtype="float32",
        )
        self.labels = self.add_weight(
            name="labels",
            shape=(size,),
            initializer=keras.initializers.Constant(NO_CLASS),
            trainable=False,
            dtype=backend.INTEGER,
        )
        self.built = True

    def enqueue(self, embeddings, labels):
        """Appends a global batch, `(B, D)` and `(B,)`; the oldest rows go.

        Args:
            embeddings: Tensor `(B, D)`, gathered over all replicas.
            labels: Integer tensor `(B,)`, gathered likewise.
        """
        ops = keras.ops
        embeddings = ops.cast(embeddings, "float32")
        labels = ops.cast(labels, backend.INTEGER)
        both = ops.concatenate([self.embeddings, embeddings], axis=0)
        self.embeddings.assign(both[-self.size :])
        both = ops.concatenate([self.labels, labels], axis=0)
        self.labels.assign(both[-self.size :])

    def get_config(self):
        return {
            **super().get_config(),
            "size": self.size,
            "embedding_dim": self.embedding_dim,
        }
