"""Which examples' candidate sets are trusted, by distance to a prototype."""

import keras
import numpy as np

from alim_keras import backend


@keras.saving.register_keras_serializable(package="alim_keras")
class Reliability(keras.layers.Layer):
    """The reliable examples, chosen between epochs by their distances.

    Args:
        num_examples: N.

    Weights (none trainable):
        distance: `(N,)` float32, each example's when it was last seen; `nan`
            before that.
        reliable: `(N,)` float32, 1 or 0. All are reliable at first.
    """

    def __init__(self, num_examples, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.num_examples = num_examples
        self.distance = self.add_weight(
            name="distance",
            shape=(num_examples,),
            initializer=keras.initializers.Constant(float("nan")),
            trainable=False,
        )
        self.reliable = self.add_weight(
            name="reliable",
            shape=(num_examples,),
            initializer="ones",
            trainable=False,
        )
        self.built = True

    def of(self, index):
        """Returns whether the examples of a batch are reliable, `(B,)`."""
        return backend.gather_rows(self.reliable, index) > 0.5

    def record(self, index, distance):
        """Notes the distances of a batch, tensors `(B,)`."""
        index, distance = backend.all_gather(index, distance)
        backend.scatter_rows(self.distance, index, distance)

    def select(self, share):
        """Makes the examples with the smallest distances the reliable ones.

        Args:
            share: Float in [0, 1], of the examples whose distance is known:
                `floor(share * n)` of n. An example that was never seen stays
                reliable, as nothing speaks against it.
        """
        distance = self.distance.numpy()
        (known,) = np.nonzero(np.isfinite(distance))
        order = known[np.argsort(distance[known], kind="stable")]
        reliable = np.ones((self.num_examples,), "float32")
        reliable[order[int(share * len(order)) :]] = 0.0
        self.reliable.assign(reliable)

    def get_config(self):
        return {**super().get_config(), "num_examples": self.num_examples}
