"""Whether a share that is measured in every epoch has stopped rising."""

import keras
import numpy as np

from alim_keras import backend

# Epochs that are remembered.
LENGTH = 256


@keras.saving.register_keras_serializable(package="alim_keras")
class Plateau(keras.layers.Layer):
    """The shares of the last epochs, and whether they have levelled off.

    All of it is a weight, so that a run that was interrupted decides as one
    that was not.

    Weights (none trainable):
        history: `(256,)` float32, the shares of the last epochs, the newest
            last; `nan` before the first.
        counts: Pair of float32: how many examples of the current epoch
            belong to the share, and how many there were.
    """

    def __init__(self, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.history = self.add_weight(
            name="history",
            shape=(LENGTH,),
            initializer=keras.initializers.Constant(float("nan")),
            trainable=False,
        )
        self.counts = self.add_weight(
            name="counts", shape=(2,), initializer="zeros", trainable=False
        )
        self.built = True

    def record(self, belongs):
        """Takes in a step's examples: float32 `(B,)`, 1 in the share, or 0."""
        belongs = backend.all_gather(belongs)
        new = [
            keras.ops.sum(belongs),
            keras.ops.sum(keras.ops.ones_like(belongs)),
        ]
        self.counts.assign(self.counts + keras.ops.stack(new))

    def close_epoch(self):
        """Moves the share of the epoch that has ended into the history."""
        inside, count = self.counts.numpy()
        if count:
            kept = self.history.numpy()[1:]
            self.history.assign(np.append(kept, inside / count))
            self.counts.assign([0.0, 0.0])

    def is_reached(self, window, gain):
        """Whether the average share rose by less than `gain`.

        Args:
            window: Number of epochs, at most 128. The average over the last
                ones is compared with that over as many before them.
            gain: Float.

        Returns:
            A bool; False before there were `2 * window` epochs.
        """
        history = self.history.numpy().astype("float64")[-2 * window :]
        rise = history[window:].mean() - history[:window].mean()
        # nan is less than nothing.
        return bool(rise < gain)
