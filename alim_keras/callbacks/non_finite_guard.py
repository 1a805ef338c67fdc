"""Stops a training whose loss is no longer a number."""

import keras
import numpy as np

from alim_keras.errors import NonFiniteError


class NonFiniteGuard(keras.callbacks.Callback):
    """Raises when a loss or a weight became NaN or infinite in an epoch.

    List it first: no later callback then writes a broken checkpoint over a
    good one.

    Raises:
        NonFiniteError: At the end of the epoch, naming the loss or the weight.
    """

    def on_epoch_end(self, epoch, logs=None):
        advice = (
            "Look for images that are not numbers, or use a smaller learning "
            "rate in a new run; checkpoints of earlier epochs are intact."
        )
        for name, value in (logs or {}).items():
            if "loss" in name and not np.isfinite(value):
                raise NonFiniteError(
                    f"{name} became NaN or infinite in epoch {epoch + 1}. "
                    f"{advice}"
                )
        # ReLU and pooling swallow NaN pixels; batch statistics keep them.
        model = self.model
        for weight in model.trainable_variables + model.backbone.weights:
            if not np.isfinite(weight.numpy()).all():
                raise NonFiniteError(
                    f"Weight {weight.path} became NaN or infinite in epoch "
                    f"{epoch + 1}. {advice}"
                )
