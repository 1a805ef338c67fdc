"""State of the methods beside the pseudo labels, as Keras weights.

No weight of these layers is trainable.
"""

import keras
import numpy as np

from alim_keras import backend
from alim_keras import ops
from alim_keras.ops import TINY


class Memory(keras.layers.Layer):
    """A float32 layer without trainable weights, built at once.

    `arguments` names those of the constructor, which become attributes.
    """

    arguments = ()

    def __init__(self, *values, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        for name, value in zip(self.arguments, values):
            setattr(self, name, value)
        self.built = True

    def frozen(self, name, shape=(), initializer="zeros", dtype="float32"):
        """Adds a weight; an initializer may be the number to begin with."""
        if isinstance(initializer, float | int):
            initializer = keras.initializers.Constant(initializer)
        return self.add_weight(
            shape, initializer, dtype, trainable=False, name=name
        )

    def get_config(self):
        own = {name: getattr(self, name) for name in self.arguments}
        return {**super().get_config(), **own}


@keras.saving.register_keras_serializable(package="alim_keras")
class Prototypes(Memory):
    """Class means of the embeddings on the unit sphere, a moving average.

    A class that was never assigned keeps its zero row; one that stops being
    assigned keeps its last mean. Called with unit rows `(B, D)`, it returns
    their cosine similarities to all prototypes, `(B, C)` float32. Weights:
    `means` `(C, D)`.
    """

    arguments = ("num_classes", "embedding_dim", "momentum")

    def __init__(self, num_classes, embedding_dim, momentum=0.99, **kwargs):
        super().__init__(num_classes, embedding_dim, momentum, **kwargs)
        self.means = self.frozen("means", (num_classes, embedding_dim))

    def call(self, embeddings):
        means = keras.ops.transpose(self.means)
        return keras.ops.matmul(keras.ops.cast(embeddings, "float32"), means)

    def update(self, embeddings, labels):
        """Takes in a replica's unit rows `(B, D)` and their classes `(B,)`."""
        embeddings, labels = backend.all_gather(embeddings, labels)
        self.means.assign(
            ops.prototype_update(self.means, embeddings, labels, self.momentum)
        )


def _random_unit_rows(shape, dtype=None):
    # Fixed numbers: all replicas and all runs start from the same queue.
    rows = np.random.default_rng(0).standard_normal(shape)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return keras.ops.convert_to_tensor(rows, dtype=dtype)


@keras.saving.register_keras_serializable(package="alim_keras")
class EmbeddingQueue(Memory):
    """The last Q embeddings, first in, first out; the newest come last.

    It takes batches of any size, and starts full of random unit vectors of
    class -1, which are negatives of every anchor. Weights: `embeddings`
    `(Q, D)`, and `labels` `(Q,)`, the pseudo classes.
    """

    arguments = ("size", "embedding_dim")

    def __init__(self, size, embedding_dim, **kwargs):
        super().__init__(size, embedding_dim, **kwargs)
        self.embeddings = self.frozen(
            "embeddings", (size, embedding_dim), _random_unit_rows
        )
        self.labels = self.frozen("labels", (size,), -1, backend.INTEGER)

    def enqueue(self, embeddings, labels):
        """Appends a global batch: embeddings `(B, D)` and labels `(B,)`."""
        queues = (self.embeddings, self.labels)
        for queue, new in zip(queues, (embeddings, labels)):
            new = keras.ops.cast(new, queue.dtype)
            both = keras.ops.concatenate([queue, new], axis=0)
            queue.assign(both[-self.size :])


class _ExampleRows(Memory):
    """A table `(N, C)` beside the pseudo labels, zero at first."""

    arguments = ("num_examples", "num_classes")
    table_dtype = "float32"

    def __init__(self, num_examples, num_classes, **kwargs):
        super().__init__(num_examples, num_classes, **kwargs)
        shape = (num_examples, num_classes)
        self.table = self.frozen("table", shape, dtype=self.table_dtype)

    def _read(self, index):
        rows = backend.gather_rows(self.table, index)
        return keras.ops.cast(rows, "float32")


@keras.saving.register_keras_serializable(package="alim_keras")
class AddedLabels(_ExampleRows):
    """Labels added to candidate sets for good (IRNet): 1 in `table`, int8."""

    # TensorFlow scatters int8 on a GPU, bool with int64 indices not.
    table_dtype = "int8"

    def joined(self, index, candidates):
        """Returns a batch's sets with the added labels, `(B, C)` float32."""
        candidates = keras.ops.cast(candidates, "float32")
        return keras.ops.maximum(candidates, self._read(index))

    def add(self, index, labels):
        """Adds the labels that are 1 in `(B, C)` to the sets of a batch."""
        index, labels = backend.all_gather(index, labels)
        backend.scatter_rows(self.table, index, self.joined(index, labels))


@keras.saving.register_keras_serializable(package="alim_keras")
class LeveragedWeights(_ExampleRows):
    """The weights v of the leveraged weighted losses, for all N examples.

    A row of `table` sums to 1 over the candidates and to 1 over the others; one
    that was never touched is zero and counts as `1 / C` everywhere.
    """

    def rows(self, index):
        """Returns the weights of a batch, `(B, C)`."""
        rows = self._read(index)
        untouched = keras.ops.max(rows, axis=-1, keepdims=True) <= 0.0
        return keras.ops.where(untouched, 1.0 / self.num_classes, rows)

    def refresh(self, index, scores, candidates):
        """Sets a batch's rows from P and S `(B, C)`; returns them."""
        rows = 0.0
        outside = 1.0 - ops.members(candidates)
        for part in (candidates * scores, outside * scores):
            total = keras.ops.sum(part, axis=-1, keepdims=True)
            rows = rows + part / keras.ops.maximum(total, TINY)
        index, all_rows = backend.all_gather(index, rows)
        backend.scatter_rows(self.table, index, all_rows)
        return rows


@keras.saving.register_keras_serializable(package="alim_keras")
class Reliability(Memory):
    """The reliable examples, chosen between epochs by distances (PiCO+).

    Weights: `distance` `(N,)`, when last seen, `nan` before that; `reliable`
    `(N,)`, 1 or 0, all 1 at first.
    """

    arguments = ("num_examples",)

    def __init__(self, num_examples, **kwargs):
        super().__init__(num_examples, **kwargs)
        self.distance = self.frozen("distance", (num_examples,), np.nan)
        self.reliable = self.frozen("reliable", (num_examples,), "ones")

    def of(self, index):
        """Returns whether the examples of a batch are reliable, `(B,)`."""
        return backend.gather_rows(self.reliable, index) > 0.5

    def record(self, index, distance):
        """Notes the distances of a batch, tensors `(B,)`."""
        index, distance = backend.all_gather(index, distance)
        backend.scatter_rows(self.distance, index, distance)

    def select(self, share):
        """Makes `floor(share * n)` of the n examples seen the reliable ones.

        Those of the smallest distances; what was never seen stays reliable.
        """
        distance = self.distance.numpy()
        (seen,) = np.nonzero(np.isfinite(distance))
        order = seen[np.argsort(distance[seen], kind="stable")]
        reliable = np.ones((self.num_examples,), "float32")
        reliable[order[int(share * len(order)) :]] = 0.0
        self.reliable.assign(reliable)
