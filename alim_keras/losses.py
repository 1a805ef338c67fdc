"""Losses of partial label learning: functions to `(B,)`, and two classes.

`candidates` is S, multi-hot or weights in [0, 1]; `probabilities` P; `weights`
w, a distribution over the labels such as `S / |S|`: tensors `(B, C)`. The last
section chooses the positives of a contrastive loss and the entries that take
no part in it. Arithmetic is float32 whatever the inputs' dtype.
"""

import keras

from alim_keras import backend
from alim_keras.errors import check_ranges
from alim_keras.ops import TINY
from alim_keras.ops import members

# Marks an entry of `SupervisedContrastive`'s `y_true` that takes no part.
LEFT_OUT = -1.0
# A logit that no exponential notices.
_NEVER = -1e9


def _float32(x):
    return keras.ops.cast(x, "float32")


class _Mean(keras.losses.Loss):
    """The mean of losses that were computed already."""

    def call(self, y_true, y_pred):
        return y_pred


def over_batch(losses, sample_weight=None):
    """Returns the mean of losses `(B,)`, each times its `sample_weight` `(B,)`.

    As every loss of Keras it is divided by the number of replicas.
    """
    # No scope of TensorFlow begins with "_", as the name of the class does.
    return _Mean(name="over_batch")(losses, losses, sample_weight)


# Against the candidate set.


@keras.saving.register_keras_serializable(package="alim_keras")
class CandidateCrossentropy(keras.losses.Loss):
    """Classifier-consistent loss: `-log sum_{c in S} P_c`.

    For a set of one it is the cross-entropy, so one loss serves candidate
    sets and clean labels. Of graded sets it is `-log sum_c S_c P_c`.
    [Feng et al., 2020](https://arxiv.org/abs/2007.08929)

    Args:
        from_logits: Whether `y_pred` is logits, which loses no gradient where
            the set's probability underflows. Defaults to `False`.

    Call arguments:
        y_true: Tensor `(B, C)`; S.
        y_pred: Tensor `(B, C)`; P, or logits.

    >>> loss = alim_keras.losses.CandidateCrossentropy()
    >>> loss([[1.0, 0.0, 1.0]], [[0.2, 0.5, 0.3]])  # -log 0.5
    0.6931472
    """

    def __init__(self, from_logits=False, **kwargs):
        super().__init__(**kwargs)
        self.from_logits = from_logits

    def get_config(self):
        return {**super().get_config(), "from_logits": self.from_logits}

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


def candidate_exponential(candidates, probabilities):
    """Exponential loss of the set: `exp(-sum_{c in S} P_c)`, `(B,)`.

    The form of ALIM's authors; the code of
    [Feng et al., 2020](https://arxiv.org/abs/1912.12927) multiplies it by `(C -
    1) / (C - |S|)`, which is infinite for a set of all classes.

    >>> candidate_exponential([[1.0, 0.0, 1.0]], [[0.2, 0.5, 0.3]])
    [0.60653067]
    """
    inside = _float32(candidates) * _float32(probabilities)
    return keras.ops.exp(-keras.ops.sum(inside, axis=-1))


def non_candidate_log_loss(candidates, probabilities):
    """Pushes all labels outside S down: `-sum_{c not in S} log(1 - P_c)`.

    [Wu et al., 2022](https://proceedings.mlr.press/v162/wu22l.html), CRDPLL.

    >>> non_candidate_log_loss([[1.0, 0.0, 0.0]], [[0.4, 0.5, 0.1]])
    [0.7985077]
    """
    # The smallest float32 above 1: finite at P = 1.
    rest = keras.ops.log(1.0000001 - _float32(probabilities))
    return -keras.ops.sum((1.0 - members(candidates)) * rest, axis=-1)


def leveraged(weights, candidates, up, down, beta=1.0):
    """Leveraged weighted loss: `sum_S v up + beta sum_{not S} v down`.

    The weights v sum to 1 over the candidates and to 1 over the others. `up`
    and `down`, `(B, C)`, are the penalties of a label for being unlikely, and
    for being likely. [Wen et al., 2021](https://arxiv.org/abs/2106.05731)

    >>> leveraged([[1.0, 1.0]], [[1.0, 0.0]], [[0.5, 0.5]], [[0.5, 0.5]], 2.0)
    [1.5]
    """
    weights, candidates = _float32(weights), members(candidates)
    inside = keras.ops.sum(candidates * weights * up, axis=-1)
    outside = keras.ops.sum((1.0 - candidates) * weights * down, axis=-1)
    return inside + beta * outside


# Against a weight on every label, as in
# [Feng et al., 2020](https://arxiv.org/abs/1912.12927). The cross-entropy of
# this form is Keras's own.


def squared_error(weights, probabilities):
    """Squared error: `sum_c (P_c - w_c)^2`.

    >>> squared_error([[0.5, 0.5, 0.0]], [[0.7, 0.2, 0.1]])  # .04 + .09 + .01
    [0.14]
    """
    difference = _float32(probabilities) - _float32(weights)
    return keras.ops.sum(keras.ops.square(difference), axis=-1)


def absolute_error(weights, probabilities):
    """Absolute error: `sum_c |P_c - w_c|`.

    >>> absolute_error([[0.5, 0.5, 0.0]], [[0.7, 0.2, 0.1]])  # .2 + .3 + .1
    [0.6]
    """
    difference = _float32(probabilities) - _float32(weights)
    return keras.ops.sum(keras.ops.absolute(difference), axis=-1)


def generalised_crossentropy(weights, probabilities, exponent=0.7):
    """Generalised cross-entropy: `sum_c w_c (1 - P_c^g) / g`.

    With `exponent` g in (0, 1] towards 0 it is the cross-entropy, and at 1 half
    the absolute error of a single label.
    [Zhang and Sabuncu, 2018](https://arxiv.org/abs/1805.07836)

    >>> generalised_crossentropy([[0.5, 0.5, 0.0]], [[0.64, 0.25, 0.11]], 0.5)
    [0.7]
    """
    ops = keras.ops
    # The slope of a power is infinite at 0.
    powers = ops.power(ops.maximum(_float32(probabilities), TINY), exponent)
    return ops.sum(_float32(weights) * (1.0 - powers), axis=-1) / exponent


def symmetric_crossentropy(weights, probabilities, alpha=6.0, beta=1.0):
    """Cross-entropy and its reverse: `alpha CE(w, P) + beta CE(P, w)`.

    P is cut off below 1e-7 and w below 1e-4, in both terms, as in the code of
    IRNet's authors, whose weights on CIFAR-10 are 6 and 1.
    [Wang et al., 2019](https://arxiv.org/abs/1908.06112)

    >>> symmetric_crossentropy([[1.0, 0.0]], [[0.5, 0.5]], 1.0, 1.0)
    [5.298387]
    """
    ops = keras.ops
    likely = ops.maximum(_float32(probabilities), 1e-7)
    targets = ops.maximum(_float32(weights), 1e-4)
    forward = -ops.sum(targets * ops.log(likely), axis=-1)
    reverse = -ops.sum(likely * ops.log(targets), axis=-1)
    return alpha * forward + beta * reverse


# Contrastive.


@keras.saving.register_keras_serializable(package="alim_keras")
class SupervisedContrastive(keras.losses.Loss):
    """Supervised contrastive loss over anchors and a memory of embeddings.

    For each anchor: minus the mean, over its positives, of the log-softmax of
    `similarity / temperature` over all entries that take part. The mean over
    the batch, on all replicas, is one over the anchors that have a positive.
    [Khosla et al., 2020](https://arxiv.org/abs/2004.11362)

    Call arguments:
        y_true: Tensor `(B, M)`: 1 positive, 0 negative, -1 (`LEFT_OUT`) left
            out; see `contrast_mask`.
        y_pred: Tensor `(B, M)` of cosine similarities.
    """

    def __init__(self, temperature=0.07, **kwargs):
        check_ranges(temperature=(temperature, "positive"))
        super().__init__(**kwargs)
        self.temperature = temperature

    def get_config(self):
        return {**super().get_config(), "temperature": self.temperature}

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
# of the global batch, its keys, and then the queue.
# [Wang et al., 2022](https://arxiv.org/abs/2201.08984) (PiCO)


def positive_mask(labels, memory_labels):
    """Marks the entries `(M,)` of each anchor's class `(B,)` (PiCO, Eq. 3).

    Class -1 is no class: its entries are negatives for all.

    >>> alim_keras.losses.positive_mask([0, 1], [0, 1, -1])
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    mine = keras.ops.cast(labels, backend.INTEGER)
    theirs = keras.ops.cast(memory_labels, backend.INTEGER)
    return _float32(keras.ops.expand_dims(mine, 1) == theirs)


def neighbour_mask(similarities, count):
    """Marks the `count` entries most similar to each anchor, and equal ones.

    >>> alim_keras.losses.neighbour_mask([[0.9, 0.1, 0.5]], 2)
    [[1.0, 0.0, 1.0]]
    """
    similarities = keras.ops.convert_to_tensor(similarities)
    kth = keras.ops.top_k(similarities, count)[0][:, -1:]
    return _float32(similarities >= kth)


def contrast_mask(positives, is_self, is_own_key):
    """Leaves each anchor itself out, and makes its own key a positive."""
    positives = keras.ops.where(is_own_key, 1.0, positives)
    return keras.ops.where(is_self, LEFT_OUT, positives)


def instance_mask(is_own_key, queue_size):
    """The own key against the queue; the rest of the global batch is out.

    MoCo's InfoNCE, [He et al., 2020](https://arxiv.org/abs/1911.05722).
    """
    count = keras.ops.shape(is_own_key)[1]
    in_batch = keras.ops.arange(count) < count - queue_size
    mask = keras.ops.where(in_batch, LEFT_OUT, 0.0)
    return keras.ops.where(is_own_key, 1.0, mask)
