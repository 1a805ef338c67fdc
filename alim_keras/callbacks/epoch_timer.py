"""How long an epoch trained, apart from what evaluates and writes."""

import time

import keras


class EpochTimer(keras.callbacks.Callback):
    """Logs `images_per_second` of the training steps alone.

    List it before whatever works between epochs. It waits for the device, so
    steps that were only dispatched are counted in full.

    Args:
        images_per_epoch: Number of images an epoch trains on.
    """

    def __init__(self, images_per_epoch):
        super().__init__()
        self.images_per_epoch = images_per_epoch

    def on_epoch_begin(self, epoch, logs=None):
        self._began = time.monotonic()

    def on_epoch_end(self, epoch, logs=None):
        # Reading a weight waits until the last step has written it.
        self.model.optimizer.iterations.numpy()
        seconds = max(time.monotonic() - self._began, 1e-9)
        logs["images_per_second"] = self.images_per_epoch / seconds
