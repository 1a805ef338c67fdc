"""Evaluates further data sets as an epoch ends."""

import keras


class Evaluation(keras.callbacks.Callback):
    """Adds a data set's loss and compiled metrics to the logs of an epoch.

    Args:
        data: Batches `(x, y)`; see `alim_keras.data.eval_dataset`.
        names: Dict from the model's metric names to names in the logs, for
            example `{"accuracy": "test_accuracy"}`.
    """

    def __init__(self, data, names):
        super().__init__()
        self.data = data
        self.names = names

    def on_epoch_end(self, epoch, logs=None):
        results = self.model.evaluate(self.data, verbose=0, return_dict=True)
        for metric, name in self.names.items():
            logs[name] = results[metric]
