"""Leveraged weighted losses: candidates up, all others down."""

import keras

_SMALLEST = 1e-8


class _Leveraged(keras.losses.Loss):
    """A loss that trades candidates off against the other labels.

    Args:
        beta: What the labels outside the set weigh against those inside.
            Defaults to `1.0`; 2 is the other value that was published.

    Call arguments:
        y_true: Pair of tensors `(B, C)`: the weights v, which sum to 1 over
            the candidates and to 1 over the others; and the sets S.
        y_pred: Logits `(B, C)`.
    """

    def __init__(
        self, beta=1.0, reduction="sum_over_batch_size", name=None, dtype=None
    ):
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        self.beta = beta

    def call(self, y_true, y_pred):
        ops = keras.ops
        weights, candidates = (ops.cast(y, "float32") for y in y_true)
        up, down = self.penalties(ops.cast(y_pred, "float32"))
        inside = ops.sum(candidates * weights * up, axis=-1)
        outside = ops.sum((1.0 - candidates) * weights * down, axis=-1)
        return inside + self.beta * outside

    def get_config(self):
        return {**super().get_config(), "beta": self.beta}


@keras.saving.register_keras_serializable(package="alim_keras")
class LeveragedSigmoid(_Leveraged):
    """LWS: `sum_S v sigmoid(-z) + beta sum_{not S} v sigmoid(z)`.

    Args:
        beta: See above; `alim_keras.methods.LWS` lists the sources.

    Example:

    >>> loss = alim_keras.losses.LeveragedSigmoid(beta=2.0)
    >>> loss(([[1.0, 1.0]], [[1.0, 0.0]]), [[0.0, 0.0]])  # .5 + 2 * .5
    1.5
    """

    def penalties(self, logits):
        return keras.ops.sigmoid(-logits), keras.ops.sigmoid(logits)


@keras.saving.register_keras_serializable(package="alim_keras")
class LeveragedCrossentropy(_Leveraged):
    """LWC: `sum_S -v log P + beta sum_{not S} -v log(1 - P)`.

    With beta 0 it is the weighted cross-entropy of RC and PRODEN.

    Args:
        beta: See above; `alim_keras.methods.LWC` lists the sources.

    Example:

    >>> loss = alim_keras.losses.LeveragedCrossentropy(beta=1.0)
    >>> loss(([[1.0, 1.0]], [[1.0, 0.0]]), [[0.0, 0.0]])  # 2 log 2
    1.3862944
    """

    def penalties(self, logits):
        ops = keras.ops
        probabilities = ops.softmax(logits)
        rest = ops.log(1.0 - probabilities + _SMALLEST)
        return -ops.log(probabilities + _SMALLEST), -rest
