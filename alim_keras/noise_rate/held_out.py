"""The estimator that `callbacks.ALIM` asks as training goes on."""

import keras
import numpy as np

from alim_keras import backend
from alim_keras.noise_rate.em import em


class HeldOut:
    """Estimates eta from a part of the training set that is held out.

    What `callbacks.ALIM(noise_rate=...)` expects of an estimator is its one
    method `estimate(model, epoch)`, with the epoch counted from 0. It is
    called at the end of epoch e0 and of each later one, before lambda is set,
    and returns an `Estimate`, or None to leave the one before in force. What
    it answers may depend on the model's weights and on the epoch, and on
    nothing else that changes: then a run that was interrupted goes on as if
    it had not been.

    Args:
        data: Batches `(x, candidates)` with the noisy sets, see
            `alim_keras.data.eval_dataset`.
        estimator: Function of logits and candidate sets, `em` or `gmm`.
            Defaults to `em`.

    Example:

    ```python
    held_out = alim_keras.data.eval_dataset(images, candidates, num_classes)
    model.fit(train, epochs=100, callbacks=[alim_keras.callbacks.ALIM(
        noise_rate=alim_keras.noise_rate.HeldOut(held_out))])
    ```
    """

    def __init__(self, data, estimator=em):
        self.data = data
        self.estimator = estimator
        self._model = self._infer = None

    def estimate(self, model, epoch):
        """Returns the `Estimate` at the end of an epoch."""
        del epoch
        if self._model is not model:
            self._model, self._infer = model, inference(model)
        logits, candidates = [], []
        for x, y in self.data:
            logits.append(to_numpy(self._infer(x["image"])))
            candidates.append(to_numpy(y))
        return self.estimator(
            np.concatenate(logits), np.concatenate(candidates)
        )


def inference(model):
    """Returns the function from images to logits, in inference mode."""

    def infer(images):
        return model.encode(model.prepare(images), training=False)["logits"]

    return backend.compiled(infer, model.variables)


def to_numpy(x):
    """Returns a tensor, or an array, as a numpy array."""
    return keras.ops.convert_to_numpy(x)
