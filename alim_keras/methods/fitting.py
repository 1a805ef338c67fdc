"""Keras's `fit` and evaluation, for candidate sets."""

from alim_keras.methods import checks
from alim_keras.methods.clock import EpochClock


class Fitting:
    """What `PartialLabelModel` changes in `keras.Model`'s own methods."""

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """Evaluation loss: `-log sum_{c in S} P_c`, for any candidate set."""
        checks.check_sets(y, self.num_classes)
        return self.evaluation_loss(y, y_pred, sample_weight=sample_weight)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        checks.check_sets(y, self.num_classes)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        verbose="auto",
        callbacks=None,
        **kwargs,
    ):
        """`keras.Model.fit`, with the epoch made known to step and data."""
        checks.check_fit(self, x, kwargs)
        counter = getattr(x, "epoch_counter", None)
        if counter is not None:
            # It shuffles itself; Keras would warn.
            kwargs.setdefault("shuffle", False)
        callbacks = EpochClock(counter).ahead_of(callbacks, self)
        return super().fit(
            x, y, batch_size, epochs, verbose, callbacks, **kwargs
        )

    def train_on_batch(self, x, y=None, sample_weight=None, **kwargs):
        """As Keras's, without `class_weight`."""
        checks.check_fit(self, x, kwargs)
        return super().train_on_batch(x, y, sample_weight, **kwargs)
