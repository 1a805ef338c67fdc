"""What both backends' `Trainer` share: losses, metrics of two phases."""

import contextlib

import keras
from keras import ops

from alim_keras.errors import ConfigError


class Phases:
    """Part of both backends' `Trainer`, which gives it `_running`.

    Evaluation does not compute the loss parts: 0.0 would be wrong. The model's
    `total_loss` is the loss of training, Keras's own that of evaluation.
    """

    _evaluating = False

    @property
    def metrics(self):
        """The metrics of the current phase."""
        metrics = super().metrics
        if self._evaluating:
            names = self.training_logs
            metrics = [m for m in metrics if m is not self.total_loss]
            return [m for m in metrics if m.name not in names]
        return [m for m in metrics if m is self.total_loss or m.name != "loss"]

    def compile(self, optimizer="rmsprop", loss=None, **kwargs):
        """`keras.Model.compile` without `loss`: a method has its own."""
        losses = (loss, kwargs.get("loss_weights"))
        if losses != (None, None):
            raise ConfigError(
                "A partial label learning method brings its own loss; one of "
                "Keras would never be computed. Leave `loss` and "
                "`loss_weights` out; docs/own_method.md shows how to change a "
                f"method's. Received: (loss, loss_weights)={losses}"
            )
        super().compile(optimizer, **kwargs)

    def compile_from_config(self, config):
        """Compiles a loaded model, which Keras leaves to a custom `compile`."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    @property
    def training_logs(self):
        """Names of the logs that exist in training only."""
        names = {part.name for part in self.parts.values()}
        return names | ({"outside"} if self.keeps_pseudo_labels else set())

    def regularisation(self):
        """Returns coupled weight decay plus the layers' own losses."""
        total = sum(self.losses)
        if self.weight_decay:
            squares = [ops.sum(ops.square(v)) for v in self.trainable_variables]
            total = total + 0.5 * self.weight_decay * sum(squares)
        return total

    @contextlib.contextmanager
    def _evaluation(self):
        before, self._evaluating = self._evaluating, True
        try:
            yield
        finally:
            self._evaluating = before

    def evaluate(self, *args, **kwargs):
        """`keras.Model.evaluate`; the loss is `-log sum_{c in S} P_c`."""
        with self._evaluation(), self._running():
            return super().evaluate(*args, **kwargs)

    def predict(self, *args, **kwargs):
        with self._running():
            return super().predict(*args, **kwargs)

    def test_on_batch(self, *args, **kwargs):
        """`keras.Model.test_on_batch`; see `evaluate`."""
        with self._evaluation():
            return super().test_on_batch(*args, **kwargs)
