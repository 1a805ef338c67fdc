"""Losses against a weight on every label, as the average-based methods use.

`y_true` is a distribution over the labels `(B, C)`, such as `S / |S|` or
pseudo labels, and `y_pred` the probabilities `(B, C)`. With a single weight of
1 each is the loss of the same name for an ordinary label. Cross-entropy of
this form is Keras's own `CategoricalCrossentropy`; its members here, unlike
it, are bounded or nearly so, and give wrong labels less of a say.
"""

import keras

from alim_keras.ops import TINY

# Symmetric cross-entropy cuts predictions and targets here, as its authors do.
_LOWEST_PROBABILITY = 1e-7
_LOWEST_TARGET = 1e-4


class _Averaged(keras.losses.Loss):
    """A loss of two float32 tensors `(B, C)`."""

    def __init__(self, reduction="sum_over_batch_size", name=None, dtype=None):
        super().__init__(name=name, reduction=reduction, dtype=dtype)

    def call(self, y_true, y_pred):
        return self.of(
            keras.ops.cast(y_true, "float32"), keras.ops.cast(y_pred, "float32")
        )


@keras.saving.register_keras_serializable(package="alim_keras")
class AveragedSquared(_Averaged):
    """Mean squared error without the mean: `sum_c (P_c - w_c)^2`.

    Example:

    >>> loss = alim_keras.losses.AveragedSquared()
    >>> loss([[0.5, 0.5, 0.0]], [[0.7, 0.2, 0.1]])  # .04 + .09 + .01
    0.14
    """

    def of(self, weights, probabilities):
        return keras.ops.sum(keras.ops.square(probabilities - weights), axis=-1)


@keras.saving.register_keras_serializable(package="alim_keras")
class AveragedAbsolute(_Averaged):
    """Mean absolute error of each label, averaged: `2 sum_c w_c (1 - P_c)`.

    `2 (1 - P_c)` is `sum_j |P_j - [j = c]|`.

    Example:

    >>> loss = alim_keras.losses.AveragedAbsolute()
    >>> loss([[0.5, 0.5, 0.0]], [[0.7, 0.2, 0.1]])  # .3 + .8
    1.1
    """

    def of(self, weights, probabilities):
        return 2.0 * keras.ops.sum(weights * (1.0 - probabilities), axis=-1)


@keras.saving.register_keras_serializable(package="alim_keras")
class AveragedGeneralised(_Averaged):
    """Generalised cross-entropy: `sum_c w_c (1 - P_c^g) / g`.

    Args:
        exponent: g in (0, 1]: towards 0 the cross-entropy, at 1 half the
            absolute error. Defaults to `0.7`.

    Example:

    >>> loss = alim_keras.losses.AveragedGeneralised(exponent=0.5)
    >>> loss([[0.5, 0.5, 0.0]], [[0.64, 0.25, 0.11]])  # .5 (.4 + 1.0)
    0.7

    Reference:
    - [Zhang and Sabuncu, 2018](https://arxiv.org/abs/1805.07836)
    """

    def __init__(
        self,
        exponent=0.7,
        reduction="sum_over_batch_size",
        name=None,
        dtype=None,
    ):
        super().__init__(reduction, name, dtype)
        if not 0 < exponent <= 1:
            raise ValueError(
                "Argument `exponent` must be in (0, 1]. "
                f"Received: exponent={exponent}"
            )
        self.exponent = exponent

    def of(self, weights, probabilities):
        ops = keras.ops
        # The slope of a power is infinite at 0.
        powers = ops.power(ops.maximum(probabilities, TINY), self.exponent)
        return ops.sum(weights * (1.0 - powers), axis=-1) / self.exponent

    def get_config(self):
        return {**super().get_config(), "exponent": self.exponent}


@keras.saving.register_keras_serializable(package="alim_keras")
class SymmetricCrossentropy(_Averaged):
    """Cross-entropy and its reverse: `alpha CE(w, P) + beta CE(P, w)`.

    P is cut off below 1e-7 and w below 1e-4, where a logarithm is taken.

    Args:
        alpha: Weight of the cross-entropy. Defaults to `6.0`, that of IRNet
            on CIFAR-10.
        beta: Weight of the reverse. Defaults to `1.0`.

    Example:

    >>> loss = alim_keras.losses.SymmetricCrossentropy(alpha=1.0, beta=1.0)
    >>> loss([[1.0, 0.0]], [[0.5, 0.5]])  # log 2 - .5 log 1e-4
    5.2983174

    Reference:
    - [Wang et al., 2019](https://arxiv.org/abs/1908.06112)
    """

    def __init__(
        self,
        alpha=6.0,
        beta=1.0,
        reduction="sum_over_batch_size",
        name=None,
        dtype=None,
    ):
        super().__init__(reduction, name, dtype)
        self.alpha = alpha
        self.beta = beta

    def of(self, weights, probabilities):
        ops = keras.ops
        likely = ops.maximum(probabilities, _LOWEST_PROBABILITY)
        forward = -ops.sum(weights * ops.log(likely), axis=-1)
        targets = ops.maximum(weights, _LOWEST_TARGET)
        reverse = -ops.sum(likely * ops.log(targets), axis=-1)
        return self.alpha * forward + self.beta * reverse

    def get_config(self):
        return {**super().get_config(), "alpha": self.alpha, "beta": self.beta}
