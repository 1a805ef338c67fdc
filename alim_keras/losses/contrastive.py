"""Contrastive losses, over embeddings and a memory of them."""

import keras

from alim_keras import backend

# Marks an entry of `SupervisedContrastive`'s `y_true` that takes no part.
LEFT_OUT = -1.0


def positive_mask(labels, memory_labels):
    """Which memory entries are positives of which anchor (PiCO, Eq. 3).

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
    labels = ops.expand_dims(ops.cast(labels, backend.INTEGER), 1)
    memory_labels = ops.expand_dims(ops.cast(memory_labels, backend.INTEGER), 0)
    return ops.cast(ops.equal(labels, memory_labels), "float32")


@keras.saving.register_keras_serializable(package="alim_keras")
class SupervisedContrastive(keras.losses.Loss):
    """Supervised contrastive loss over anchors and a memory.

    For each anchor: minus the mean, over its positives, of the log-softmax of
    `similarity / temperature` over all entries that take part.

    Args:
        temperature: tau. Defaults to `0.07`.

    Call arguments:
        y_true: Tensor `(B, M)`: 1 positive, 0 negative, -1 left out (the
            anchor itself). An anchor without a positive costs 0.
        y_pred: Tensor `(B, M)` of cosine similarities.

    Reference:
    - [Khosla et al., 2020](https://arxiv.org/abs/2004.11362)
    - [Wang et al., 2022](https://arxiv.org/abs/2201.08984) (PiCO, Eq. 3)
    """

    def __init__(
        self,
        temperature=0.07,
        reduction="sum_over_batch_size",
        name="supervised_contrastive",
        dtype=None,
    ):
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        if not temperature > 0:
            raise ValueError(
                "Argument `temperature` must be positive. "
                f"Received: temperature={temperature}"
            )
        self.temperature = temperature

    def call(self, y_true, y_pred):
        ops = keras.ops
        y_true = ops.cast(y_true, "float32")
        logits = ops.cast(y_pred, "float32") / self.temperature
        logits = ops.where(y_true == LEFT_OUT, -1e9, logits)
        positive = ops.cast(y_true > 0.0, "float32")
        log_softmax = logits - ops.logsumexp(logits, axis=-1, keepdims=True)
        count = ops.sum(positive, axis=-1)
        total = ops.sum(positive * log_softmax, axis=-1)
        return -total / ops.maximum(count, 1.0)

    def get_config(self):
        return {**super().get_config(), "temperature": self.temperature}


@keras.saving.register_keras_serializable(package="alim_keras")
class QueueContrastive(SupervisedContrastive):
    """`SupervisedContrastive` over a batch and a queue that takes no gradient.

    The same numbers in about half the time: the similarities to an anchor's
    positives in the queue are summed by class before they are computed,
    instead of after, so there is no mask `(B, Q)`.

    Args:
        num_classes: C.
        temperature: tau. Defaults to `0.07`.

    Call arguments:
        y_true: Triple: the mask `(B, M)` of the batch's entries as in
            `SupervisedContrastive`; the anchors' classes `(B,)`; the queue's
            classes `(Q,)`, -1 for none.
        y_pred: Triple: cosine similarities to the batch's entries `(B, M)`;
            the anchors `(B, D)` and the queue `(Q, D)`, unit rows.

    Reference:
    - [Wang et al., 2022](https://arxiv.org/abs/2201.08984) (PiCO, Eq. 3)
    """

    def __init__(
        self,
        num_classes,
        temperature=0.07,
        reduction="sum_over_batch_size",
        name="queue_contrastive",
        dtype=None,
    ):
        super().__init__(temperature, reduction, name, dtype)
        self.num_classes = num_classes

    def call(self, y_true, y_pred):
        ops = keras.ops
        mask, labels, queue_labels = y_true
        similarities, anchors, queue = (ops.cast(y, "float32") for y in y_pred)
        labels = ops.cast(labels, "int32")
        queue_labels = ops.cast(queue_labels, "int32")
        near = similarities / self.temperature
        near = ops.where(mask == LEFT_OUT, -1e9, near)
        positive = ops.relu(ops.cast(mask, "float32"))
        scaled = anchors / self.temperature
        far = ops.matmul(scaled, ops.transpose(queue))
        # One row more, for the entries of no class.
        owner = ops.where(queue_labels < 0, self.num_classes, queue_labels)

        def by_class(values):
            sums = ops.segment_sum(values, owner, self.num_classes + 1)
            return ops.take(sums, labels, axis=0)

        count = ops.sum(positive, axis=-1)
        count = count + by_class(ops.ones_like(queue[:, 0]))
        total = ops.sum(positive * near, axis=-1)
        total = total + ops.sum(scaled * by_class(queue), axis=-1)
        log_sum = ops.logaddexp(
            ops.logsumexp(near, axis=-1), ops.logsumexp(far, axis=-1)
        )
        loss = log_sum - total / ops.maximum(count, 1.0)
        return ops.where(count > 0.0, loss, 0.0)

    def get_config(self):
        return {**super().get_config(), "num_classes": self.num_classes}
