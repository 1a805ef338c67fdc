"""Stops a training whose loss is no longer a number."""

import keras
import numpy as np

from alim_keras.errors import NonFiniteError


class NonFiniteGuard(keras.callbacks.Callback):
    """Raises when a loss part became NaN or infinite in an epoch.

    The model notes inside the step where that happened first, so nothing has
    to be read from the device in between. List it first: no later callback
    then writes a broken checkpoint over a good one.

    Raises:
        NonFiniteError: At the end of the epoch, naming part and step.
    """

    def on_train_begin(self, logs=None):
        noted = self.model.non_finite_step
        noted.assign(np.full(noted.shape, -1))

    def on_epoch_end(self, epoch, logs=None):
        first = self.model.non_finite_step.numpy()
        broken = np.flatnonzero(first >= 0)
        if len(broken):
            part = broken[np.argmin(first[broken])]
            name = self.model.loss_names[part]
            raise NonFiniteError(
                f"The {name} loss became NaN or infinite in step "
                f"{first[part] + 1} (epoch {epoch + 1}). Look for "
                "images that are not numbers, or use a smaller learning rate "
                "in a new run; checkpoints of earlier epochs are intact."
            )
        for variable in self.model.trainable_variables:
            if not np.isfinite(variable.numpy()).all():
                raise NonFiniteError(
                    f"Weight {variable.path} became NaN or infinite in epoch "
                    f"{epoch + 1}. Use a smaller learning rate; checkpoints "
                    "of earlier epochs are intact."
                )
