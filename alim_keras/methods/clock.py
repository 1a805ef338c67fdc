"""Tells the model, and its data, which epoch it is."""

import keras


class EpochClock(keras.callbacks.Callback):
    """Sets the epoch and the momentum of the pseudo labels as an epoch begins.

    `PartialLabelModel.fit` puts it first, so that random draws and schedules
    follow the epoch Keras counts, also after `initial_epoch=` or
    `BackupAndRestore`.

    Args:
        epoch_counter: The `EpochCounter` of the training data set, or None
            for data that was not made by `alim_keras.data.train_dataset`.
    """

    def __init__(self, epoch_counter=None):
        super().__init__()
        self.epoch_counter = epoch_counter

    def ahead_of(self, callbacks, model):
        """Returns what `fit` was given as `callbacks`, with this one first."""
        if isinstance(callbacks, keras.callbacks.CallbackList):
            callbacks.callbacks.insert(0, self)
            self.set_model(model)
            self.set_params(callbacks.params)
            return callbacks
        return [self, *keras.tree.flatten(callbacks or [])]

    def on_epoch_begin(self, epoch, logs=None):
        if self.epoch_counter is not None:
            self.epoch_counter.epoch = epoch
        model = self.model
        model.epoch.assign(epoch)
        model.progress.assign(epoch / self.params["epochs"])
        if model.keeps_pseudo_labels:
            table = model.pseudo_label_table
            table.momentum.assign(
                linear(model.pseudo_label_momentum, epoch, self.params)
            )
            table.forget_ratios()
        model.begin_epoch(epoch)


def linear(pair, epoch, params):
    """Returns the value at an epoch on the line between a pair of values."""
    start, end = pair
    return start + (end - start) * epoch / params["epochs"]
