"""Losses that look at the candidate set as a whole."""

import keras

from alim_keras.ops import TINY


@keras.saving.register_keras_serializable(package="alim_keras")
class CandidateCrossentropy(keras.losses.Loss):
    """Classifier-consistent loss: `-log sum_{c in S} P_c`.

    For a set of one it is the cross-entropy, so one loss serves candidate
    sets and clean labels; for a full set it is zero.

    Args:
        from_logits: Whether `y_pred` is logits, which loses no gradient where
            the set's probability underflows. Defaults to `False`.

    Call arguments:
        y_true: Multi-hot tensor `(B, C)`; `S`.
        y_pred: Tensor `(B, C)` of probabilities, `P`, or of logits.

    Example:

    >>> loss = alim_keras.losses.CandidateCrossentropy()
    >>> loss([[1.0, 0.0, 1.0]], [[0.2, 0.5, 0.3]])  # -log 0.5
    0.6931472

    Reference:
    - [Feng et al., 2020](https://arxiv.org/abs/2007.08929)
    """

    def __init__(
        self,
        from_logits=False,
        reduction="sum_over_batch_size",
        name="candidate_crossentropy",
        dtype=None,
    ):
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        self.from_logits = from_logits

    def call(self, y_true, y_pred):
        ops = keras.ops
        if self.from_logits:
            logits = ops.cast(y_pred, "float32")
            inside = ops.where(ops.cast(y_true, "bool"), logits, -1e9)
            return ops.logsumexp(logits, axis=-1) - ops.logsumexp(
                inside, axis=-1
            )
        inside = ops.sum(
            ops.cast(y_true, "float32") * ops.cast(y_pred, "float32"), axis=-1
        )
        # Rounding may carry a sum of probabilities past 1.
        return -ops.log(ops.clip(inside, TINY, 1.0))

    def get_config(self):
        return {**super().get_config(), "from_logits": self.from_logits}


@keras.saving.register_keras_serializable(package="alim_keras")
class CandidateExponential(keras.losses.Loss):
    """Bounded-from-above loss: `(C - 1) / (C - |S|) exp(-sum_{c in S} P_c)`.

    A set of all classes says nothing; it weighs 0 here, where the formula
    would divide by 0.

    Call arguments:
        y_true: Multi-hot tensor `(B, C)`; `S`.
        y_pred: Tensor `(B, C)` of probabilities; `P`.

    Example:

    >>> loss = alim_keras.losses.CandidateExponential()
    >>> loss([[1.0, 0.0, 0.0]], [[0.2, 0.5, 0.3]])  # 2 / 2 exp(-0.2)
    0.8187308

    Reference:
    - [Feng et al., 2020](https://arxiv.org/abs/1912.12927), whose multiple
      complementary labels are the classes outside S.
    """

    def __init__(
        self,
        reduction="sum_over_batch_size",
        name="candidate_exponential",
        dtype=None,
    ):
        super().__init__(name=name, reduction=reduction, dtype=dtype)

    def call(self, y_true, y_pred):
        ops = keras.ops
        y_true = ops.cast(y_true, "float32")
        inside = ops.sum(y_true * ops.cast(y_pred, "float32"), axis=-1)
        num_classes = y_true.shape[-1]
        outside = num_classes - ops.sum(y_true, axis=-1)
        weight = (num_classes - 1) / ops.maximum(outside, 1.0)
        weight = ops.where(outside > 0.0, weight, 0.0)
        return weight * ops.exp(-inside)


@keras.saving.register_keras_serializable(package="alim_keras")
class NonCandidateLogLoss(keras.losses.Loss):
    """Pushes all labels outside the set down: `-sum_c u_c log(1 - P_c)`.

    Call arguments:
        y_true: Tensor `(B, C)`; `u`, usually `1 - S`: 0 on candidates.
        y_pred: Tensor `(B, C)` of probabilities; `P`.

    Example:

    >>> loss = alim_keras.losses.NonCandidateLogLoss()
    >>> loss([[0.0, 1.0, 1.0]], [[0.4, 0.5, 0.1]])  # -log .5 - log .9
    0.7985077

    Reference:
    - [Wu et al., 2022](https://proceedings.mlr.press/v162/wu22l.html)
      (CRDPLL, the supervised term)
    """

    def __init__(
        self,
        reduction="sum_over_batch_size",
        name="non_candidate_log_loss",
        dtype=None,
    ):
        super().__init__(name=name, reduction=reduction, dtype=dtype)

    def call(self, y_true, y_pred):
        ops = keras.ops
        y_true = ops.cast(y_true, "float32")
        # The smallest float32 above 1 keeps the logarithm finite at P = 1.
        rest = ops.log(1.0000001 - ops.cast(y_pred, "float32"))
        return -ops.sum(y_true * rest, axis=-1)
