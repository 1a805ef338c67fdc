"""Evaluates further data sets as an epoch ends."""

import math

import keras


class Evaluation(keras.callbacks.Callback):
    """Adds a data set's loss and compiled metrics to the logs of an epoch.

    Args:
        data: Batches `(x, y)`; see `alim_keras.data.eval_dataset`.
        names: Dict from the model's metric names to names in the logs, for
            example `{"accuracy": "test_accuracy"}`.
        every: Evaluate in the epochs, counted from 1, whose number this
            divides, and in the last; the others log NaN. Defaults to `1`.
    """

    def __init__(self, data, names, every=1):
        super().__init__()
        self.data = data
        self.names = names
        self.every = every

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % self.every and epoch + 1 < self.params["epochs"]:
            logs.update(dict.fromkeys(self.names.values(), math.nan))
            return
        results = self.model.evaluate(self.data, verbose=0, return_dict=True)
        for metric, name in self.names.items():
            logs[name] = results[metric]
