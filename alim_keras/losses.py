"""Losses of partial label learning, each a `keras.losses.Loss`.

The last section chooses the positives of a contrastive loss and the entries
that take no part in it. Arithmetic is float32 whatever the inputs' dtype.
"""

import keras

from alim_keras import backend
from alim_keras.errors import check_number
from alim_keras.errors import check_ranges
from alim_keras.ops import TINY
from alim_keras.ops import members

# Marks an entry of `SupervisedContrastive`'s `y_true` that takes no part.
LEFT_OUT = -1.0
# A logit that no exponential notices.
_NEVER = -1e9
# Leveraged losses add this to each logarithm's argument.
_SMALLEST = 1e-8


def _float32(x):
    return keras.ops.cast(x, "float32")


class _Loss(keras.losses.Loss):
    """A loss without a name of its own, and `options`, its attributes."""

    options = ()

    def __init__(self, *values, **kwargs):
        super().__init__(**{"name": None, **kwargs})
        for name, value in zip(self.options, values):
            setattr(self, name, value)

    def get_config(self):
        options = {name: getattr(self, name) for name in self.options}
        return {**super().get_config(), **options}


# Against the candidate set.


@keras.saving.register_keras_serializable(package="alim_keras")
class CandidateCrossentropy(_Loss):
    """Classifier-consistent loss: `-log sum_{c in S} P_c`.

    For a set of one it is the cross-entropy, so one loss serves candidate
    sets and clean labels; for a full set it is zero. Of graded sets it is
    `-log sum_c S_c P_c`.

    Args:
        from_logits: Whether `y_pred` is logits, which loses no gradient where
            the set's probability underflows. Defaults to `False`.

    Call arguments:
        y_true: Tensor `(B, C)`; `S`, multi-hot or weights in [0, 1].
        y_pred: Tensor `(B, C)` of probabilities, `P`, or of logits.

    Example:

    >>> loss = alim_keras.losses.CandidateCrossentropy()
    >>> loss([[1.0, 0.0, 1.0]], [[0.2, 0.5, 0.3]])  # -log 0.5
    0.6931472

    Reference:
    - [Feng et al., 2020](https://arxiv.org/abs/2007.08929)
    """

    options = ("from_logits",)

    def __init__(self, from_logits=False, **kwargs):
        super().__init__(from_logits, **kwargs)

    def call(self, y_true, y_pred):
        ops = keras.ops
        if self.from_logits:
            logits, sets = _float32(y_pred), _float32(y_true)
            logs = ops.log(ops.where(sets > 0.0, sets, 1.0))
            inside = ops.where(sets > 0.0, logits + logs, _NEVER)
            return ops.logsumexp(logits, -1) - ops.logsumexp(inside, -1)
        inside = ops.sum(_float32(y_true) * _float32(y_pred), axis=-1)
        # Rounding may carry a sum of probabilities past 1.
        return -ops.log(ops.clip(inside, TINY, 1.0))


@keras.saving.register_keras_serializable(package="alim_keras")
class CandidateExponential(_Loss):
    """Exponential loss of the set: `exp(-sum_{c in S} P_c)`.

    The form of ALIM's authors; the method's own code multiplies it by `(C - 1)
    / (C - |S|)`, which is infinite for a set of all classes. Call arguments as
    `CandidateCrossentropy`'s.

    Example:

    >>> loss = alim_keras.losses.CandidateExponential()
    >>> loss([[1.0, 0.0, 1.0]], [[0.2, 0.5, 0.3]])  # exp(-0.5)
    0.60653067

    Reference:
    - [Feng et al., 2020](https://arxiv.org/abs/1912.12927), whose multiple
      complementary labels are the classes outside S.
    """

    def call(self, y_true, y_pred):
        inside = keras.ops.sum(_float32(y_true) * _float32(y_pred), axis=-1)
        return keras.ops.exp(-inside)


@keras.saving.register_keras_serializable(package="alim_keras")
class NonCandidateLogLoss(_Loss):
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

    def call(self, y_true, y_pred):
        # The smallest float32 above 1: finite at P = 1.
        rest = keras.ops.log(1.0000001 - _float32(y_pred))
        return -keras.ops.sum(_float32(y_true) * rest, axis=-1)


class _Leveraged(_Loss):
    """A loss that weighs candidates against the other labels."""

    options = ("beta",)

    def __init__(self, beta=1.0, **kwargs):
        super().__init__(beta, **kwargs)

    def call(self, y_true, y_pred):
        weights, candidates = _float32(y_true[0]), members(y_true[1])
        up, down = self.penalties(_float32(y_pred))
        inside = keras.ops.sum(candidates * weights * up, axis=-1)
        outside = keras.ops.sum((1.0 - candidates) * weights * down, axis=-1)
        return inside + self.beta * outside


@keras.saving.register_keras_serializable(package="alim_keras")
class LeveragedSigmoid(_Leveraged):
    """LWS: `sum_S v sigmoid(-z) + beta sum_{not S} v sigmoid(z)`.

    Arguments as `LeveragedCrossentropy`'s.

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

    With beta 0 it is the weighted cross-entropy of RC and PRODEN;
    `alim_keras.methods.LWC` lists the sources.

    Args:
        beta: Weight of the labels outside the set. Defaults to `1.0`; 2 is
            the other value that was published.

    Call arguments:
        y_true: Pair of tensors `(B, C)`: the weights v, which sum to 1 over
            the candidates and to 1 over the others; and the sets S.
        y_pred: Logits `(B, C)`.

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


# Against a weight on every label: w is a distribution over the labels, such as
# `S / |S|` or pseudo labels. The cross-entropy of this form is Keras's own.


@keras.saving.register_keras_serializable(package="alim_keras")
class AveragedSquared(_Loss):
    """Squared error: `sum_c (P_c - w_c)^2`.

    Call arguments:
        y_true: Tensor `(B, C)`; the weights w.
        y_pred: Tensor `(B, C)` of probabilities; `P`.

    Example:

    >>> loss = alim_keras.losses.AveragedSquared()
    >>> loss([[0.5, 0.5, 0.0]], [[0.7, 0.2, 0.1]])  # .04 + .09 + .01
    0.14
    """

    def call(self, y_true, y_pred):
        difference = _float32(y_pred) - _float32(y_true)
        return keras.ops.sum(keras.ops.square(difference), axis=-1)


@keras.saving.register_keras_serializable(package="alim_keras")
class AveragedAbsolute(_Loss):
    """Absolute error: `sum_c |P_c - w_c|`; arguments as `AveragedSquared`'s.

    Example:

    >>> loss = alim_keras.losses.AveragedAbsolute()
    >>> loss([[0.5, 0.5, 0.0]], [[0.7, 0.2, 0.1]])  # .2 + .3 + .1
    0.6
    """

    def call(self, y_true, y_pred):
        difference = _float32(y_pred) - _float32(y_true)
        return keras.ops.sum(keras.ops.absolute(difference), axis=-1)


@keras.saving.register_keras_serializable(package="alim_keras")
class AveragedGeneralised(_Loss):
    """Generalised cross-entropy: `sum_c w_c (1 - P_c^g) / g`.

    Args:
        exponent: g in (0, 1]: towards 0 the cross-entropy, at 1 half the
            absolute error of a single label. Defaults to `0.7`.

    Example:

    >>> loss = alim_keras.losses.AveragedGeneralised(exponent=0.5)
    >>> loss([[0.5, 0.5, 0.0]], [[0.64, 0.25, 0.11]])  # .5 (.4 + 1.0)
    0.7

    Reference:
    - [Zhang and Sabuncu, 2018](https://arxiv.org/abs/1805.07836)
    """

    options = ("exponent",)

    def __init__(self, exponent=0.7, **kwargs):
        check_number("exponent", exponent, 0, 1, low_open=True)
        super().__init__(exponent, **kwargs)

    def call(self, y_true, y_pred):
        ops = keras.ops
        # The slope of a power is infinite at 0.
        powers = ops.power(ops.maximum(_float32(y_pred), TINY), self.exponent)
        return ops.sum(_float32(y_true) * (1.0 - powers), -1) / self.exponent


@keras.saving.register_keras_serializable(package="alim_keras")
class SymmetricCrossentropy(_Loss):
    """Cross-entropy and its reverse: `alpha CE(w, P) + beta CE(P, w)`.

    P is cut off below 1e-7 and w below 1e-4, in both terms, as in the code of
    IRNet's authors.

    Args:
        alpha: Weight of the cross-entropy. Defaults to `6.0`, that of IRNet
            on CIFAR-10.
        beta: Weight of the reverse. Defaults to `1.0`.

    Example:

    >>> loss = alim_keras.losses.SymmetricCrossentropy(alpha=1.0, beta=1.0)
    >>> loss([[1.0, 0.0]], [[0.5, 0.5]])  # 1.0001 log 2 - .5 log 1e-4
    5.298387

    Reference:
    - [Wang et al., 2019](https://arxiv.org/abs/1908.06112)
    """

    options = ("alpha", "beta")

    def __init__(self, alpha=6.0, beta=1.0, **kwargs):
        super().__init__(alpha, beta, **kwargs)

    def call(self, y_true, y_pred):
        ops = keras.ops
        likely = ops.maximum(_float32(y_pred), 1e-7)
        targets = ops.maximum(_float32(y_true), 1e-4)
        forward = -ops.sum(targets * ops.log(likely), axis=-1)
        reverse = -ops.sum(likely * ops.log(targets), axis=-1)
        return self.alpha * forward + self.beta * reverse


# Contrastive.


@keras.saving.register_keras_serializable(package="alim_keras")
class SupervisedContrastive(_Loss):
    """Supervised contrastive loss over anchors and a memory of embeddings.

    For each anchor: minus the mean, over its positives, of the log-softmax of
    `similarity / temperature` over all entries that take part. The mean over
    the batch, on all replicas, is one over the anchors that have a positive.

    Args:
        temperature: tau. Defaults to `0.07`.

    Call arguments:
        y_true: Tensor `(B, M)`: 1 positive, 0 negative, -1 (`LEFT_OUT`) left
            out; see `contrast_mask`.
        y_pred: Tensor `(B, M)` of cosine similarities.

    Reference:
    - [Khosla et al., 2020](https://arxiv.org/abs/2004.11362)
    - [Wang et al., 2022](https://arxiv.org/abs/2201.08984) (PiCO, Eq. 3)
    """

    options = ("temperature",)

    def __init__(self, temperature=0.07, **kwargs):
        check_ranges(temperature=(temperature, "positive"))
        super().__init__(temperature, **kwargs)

    def call(self, y_true, y_pred):
        ops = keras.ops
        logits = _float32(y_pred) / self.temperature
        mask = _float32(y_true)
        logits = ops.where(mask == LEFT_OUT, _NEVER, logits)
        positive = _float32(mask > 0.0)
        count = ops.sum(positive, axis=-1)
        has_positive = _float32(count > 0.0)
        mean = ops.sum(positive * logits, axis=-1) / ops.maximum(count, 1.0)
        loss = (ops.logsumexp(logits, axis=-1) - mean) * has_positive
        if self.reduction not in ("sum_over_batch_size", "mean"):
            return loss
        # Keras divides by all anchors.
        counted = ops.mean(backend.all_gather(has_positive))
        return loss / ops.maximum(counted, TINY)


# Masks `(B, M)` for `SupervisedContrastive`. The M entries are the embeddings
# of the global batch, its keys, and then the queue where a method puts it.


def positive_mask(labels, memory_labels):
    """Marks the memory entries of each anchor's class (PiCO, Eq. 3).

    Args:
        labels: Integer tensor `(B,)`: the anchors' pseudo classes.
        memory_labels: Integer tensor `(M,)`: those of the entries compared
            with; -1 marks an entry without a class, a negative for all.

    Returns:
        A float32 tensor `(B, M)`: 1 where the classes are equal.

    Example:

    >>> alim_keras.losses.positive_mask([0, 1], [0, 1, -1])
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    ops = keras.ops
    mine, theirs = (
        ops.cast(part, backend.INTEGER) for part in (labels, memory_labels)
    )
    return _float32(ops.expand_dims(mine, 1) == ops.expand_dims(theirs, 0))


def neighbour_mask(similarities, count):
    """Marks the `count` entries most similar to each anchor, and equal ones.

    >>> alim_keras.losses.neighbour_mask([[0.9, 0.1, 0.5]], 2)
    [[1.0, 0.0, 1.0]]
    """
    similarities = keras.ops.convert_to_tensor(similarities)
    kth = keras.ops.top_k(similarities, count)[0][:, -1:]
    return _float32(similarities >= kth)


def contrast_mask(positives, is_self, is_own_key):
    """Leaves each anchor itself out, and makes its own key a positive.

    All are `(B, M)`; the latter two are boolean.
    """
    positives = keras.ops.where(is_own_key, 1.0, positives)
    return keras.ops.where(is_self, LEFT_OUT, positives)


def instance_mask(is_own_key, queue_size):
    """The own key against the queue; the rest of the global batch is out.

    Reference:
    - [He et al., 2020](https://arxiv.org/abs/1911.05722) (MoCo, InfoNCE)
    """
    ops = keras.ops
    count = ops.shape(is_own_key)[1]
    place = ops.expand_dims(ops.arange(count), 0)
    mask = ops.where(place < count - queue_size, LEFT_OUT, 0.0)
    return ops.where(is_own_key, 1.0, mask)
