"""Remembers the epoch that a noisy validation set likes best."""

import math

import keras


class Selection(keras.callbacks.Callback):
    """Keeps the weights of the best epoch so far, by one of the logs.

    The test set selects nothing: give the name of a log that comes from
    candidate sets held out of training. Ties go to the earlier epoch.

    Args:
        checkpoint: The `RunCheckpoint` that writes the weights.
        criterion: Name of a log where larger is better, or None, which
            selects the last epoch.
    """

    def __init__(self, checkpoint, criterion=None):
        super().__init__()
        self.checkpoint = checkpoint
        self.criterion = criterion

    def on_epoch_end(self, epoch, logs=None):
        value = logs[self.criterion] if self.criterion else epoch
        if math.isnan(value):
            # Not evaluated in this epoch.
            return
        best = self.checkpoint.state.get("best")
        if best is None or value > best["value"]:
            self.checkpoint.mark_best(epoch, float(value), dict(logs))
