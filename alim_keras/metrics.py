"""Metrics that understand candidate sets.

Keras's own `CategoricalAccuracy` compares with the first candidate only. The
last two are from [Wang et al., 2025](https://arxiv.org/abs/2502.10184).
"""

import keras

from alim_keras.ops import TINY
from alim_keras.ops import members


def covering(y_true, y_pred):
    """1 where the set covers the largest prediction, else 0, `(B,)`."""
    ops = keras.ops
    top = ops.expand_dims(ops.argmax(y_pred, axis=-1), -1)
    inside = ops.take_along_axis(members(y_true), top, axis=-1)
    return ops.squeeze(inside, -1)


def approximated(y_true, y_pred):
    """Prediction restricted to the set, renormalised, at its argmax, `(B,)`.

    0 where the largest prediction lies outside the set.
    """
    ops = keras.ops
    inside = members(y_true) * ops.cast(y_pred, "float32")
    total = ops.maximum(ops.sum(inside, axis=-1), TINY)
    return covering(y_true, y_pred) * ops.max(inside, axis=-1) / total


class _OfSets(keras.metrics.MeanMetricWrapper):
    """A mean of `function`, under a name of its own."""

    def __init__(self, name=None, dtype=None):
        super().__init__(self.function, name or self.named, dtype)

    def get_config(self):
        return {"name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable(package="alim_keras")
class CandidateAccuracy(_OfSets):
    """Share of examples whose prediction lies in the candidate set.

    With sets of one (clean labels) this is plain accuracy.

    >>> metric = alim_keras.metrics.CandidateAccuracy()
    >>> metric.update_state([[0, 1, 1]], [[0.1, 0.2, 0.7]])
    >>> metric.result()
    1.0
    """

    named, function = "candidate_accuracy", staticmethod(covering)


@keras.saving.register_keras_serializable(package="alim_keras")
class CoveringRate(CandidateAccuracy):
    """`CandidateAccuracy` under the name of the model-selection criterion.

    A perfect classifier reaches 1 - eta on noisy sets, not 1.
    """

    named = "covering_rate"


@keras.saving.register_keras_serializable(package="alim_keras")
class ApproximatedAccuracy(_OfSets):
    """Mean probability of the predicted label, renormalised within the set.

    An example whose prediction lies outside its set counts 0.

    >>> metric = alim_keras.metrics.ApproximatedAccuracy()
    >>> metric.update_state([[1, 1, 0]], [[0.6, 0.3, 0.1]])  # 0.6 / 0.9
    >>> metric.result()
    0.6666667
    """

    named, function = "approximated_accuracy", staticmethod(approximated)
