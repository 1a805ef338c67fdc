"""From arrays to batches with tf.data; the order depends on (seed, epoch)."""

import numpy as np
import tensorflow as tf

from alim_keras.data.checks import validate_candidates
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError


class EpochCounter:
    """The epoch that a training data set is to shuffle for.

    `PartialLabelModel.fit` sets it before each epoch. By itself it advances
    with each pass over the data.

    Attributes:
        epoch: Integer from 0; of the next pass.
    """

    def __init__(self, epoch=0):
        self.epoch = epoch

    def advance(self):
        """Returns the epoch of the pass that begins, and counts it."""
        epoch = self.epoch
        self.epoch += 1
        return epoch


def shuffled(num_examples, seed, epoch):
    """Returns the order of an epoch: a permutation of `range(num_examples)`."""
    stream = np.random.default_rng([seed, epoch, 0x0DDE])
    return stream.permutation(num_examples)


def train_dataset(
    images,
    candidates,
    batch_size=256,
    seed=0,
    views=None,
    num_parallel_calls=None,
):
    """Returns the training batches of one epoch after another.

    Every epoch is a fresh permutation; the last, incomplete batch is left
    out, as the reference does, and its examples come in other epochs.

    Args:
        images: Array `(N, H, W, channels)`, uint8 or float in `[0, 255]`.
        candidates: Multi-hot array `(N, C)`.
        batch_size: Global batch size. Defaults to `256`.
        seed: Defaults to `0`.
        views: An `alim_keras.augment.Views` to make the views here, on the
            host, instead of inside the step. The numbers are the same.
            Defaults to None.
        num_parallel_calls: Batches whose views are made at once. Defaults to
            tf.data's own choice. It does not change the numbers.

    Returns:
        A `tf.data.Dataset` of pairs: a dict with `"image"` `(B, H, W,
        channels)` and `"index"` `(B,)` int64 (with `views` also `"weak"` and
        `"strong"` instead of `"image"`), and the candidate sets, `(B, C)`
        float32. Its attribute `epoch_counter` tells which epoch comes next.

    Raises:
        DataError: If lengths differ or N is smaller than a batch.

    Example:

    >>> data = alim_keras.data.train_dataset(images, candidates, batch_size=8)
    >>> x, candidates = next(iter(data))
    >>> x["index"].shape
    (8,)
    """
    _check_batch_size(batch_size)
    images = np.asarray(images)
    candidates = validate_candidates(candidates, form="multi_hot")
    if len(images) != len(candidates):
        raise DataError(
            "Images and candidate sets must be as many. Received: "
            f"{len(images)} images, {len(candidates)} candidate sets"
        )
    steps = len(images) // batch_size
    if steps == 0:
        raise DataError(
            f"A batch of {batch_size} is larger than the {len(images)} "
            "training examples. Use a smaller batch_size."
        )
    counter = EpochCounter()

    def batches():
        epoch = counter.advance()
        order = shuffled(len(images), seed, epoch)
        for step in range(steps):
            index = order[step * batch_size : (step + 1) * batch_size]
            x = {"image": images[index], "index": index.astype("int64")}
            if views is not None:
                x["epoch"] = np.int32(epoch)
            yield x, candidates[index].astype("float32")

    x_spec = {
        "image": _spec(images, images.dtype),
        "index": tf.TensorSpec((None,), tf.int64),
    }
    if views is not None:
        x_spec["epoch"] = tf.TensorSpec((), tf.int32)
    data = tf.data.Dataset.from_generator(
        batches, output_signature=(x_spec, _spec(candidates, "float32"))
    )
    if views is not None:

        def with_views(x, y):
            draw = (x["image"], x["epoch"], x["index"])
            made = {
                "weak": views.weak(*draw),
                "strong": views.strong(*draw),
                "index": x["index"],
            }
            return made, y

        data = data.map(
            with_views,
            num_parallel_calls=num_parallel_calls or tf.data.AUTOTUNE,
            deterministic=True,
        )
    data = data.apply(tf.data.experimental.assert_cardinality(steps))
    data = data.prefetch(2)
    data.epoch_counter = counter
    return data


def eval_dataset(images, labels, num_classes, batch_size=256):
    """Returns batches for evaluation and inference, in the given order.

    Args:
        images: Array `(N, H, W, channels)`, uint8 or float in `[0, 255]`.
        labels: Integer array `(N,)`, which become sets of one, or candidate
            sets `(N, C)`.
        num_classes: C.
        batch_size: Defaults to `256`.

    Returns:
        A `tf.data.Dataset` of pairs: a dict with `"image"` and `"index"`,
        and multi-hot float32 `(B, C)`. The last batch may be smaller.
    """
    _check_batch_size(batch_size)
    images, labels = np.asarray(images), np.asarray(labels)
    if labels.ndim == 2:
        labels = validate_candidates(labels, num_classes, form="multi_hot")
    if len(images) != len(labels):
        raise DataError(
            "Images and labels must be as many. Received: "
            f"{len(images)} images, {len(labels)} labels"
        )
    if labels.ndim == 1:
        wrong = np.flatnonzero((labels < 0) | (labels >= num_classes))
        if len(wrong):
            raise DataError(
                f"Labels must lie in 0..{num_classes - 1}. Received: "
                f"{labels[wrong[0]]} in row {wrong[0]}"
                f" ({len(wrong)} such rows)"
            )

    def batches():
        for start in range(0, len(images), batch_size):
            part = slice(start, start + batch_size)
            sets = labels[part]
            if labels.ndim == 1:
                sets = np.eye(num_classes, dtype="float32")[sets]
            index = np.arange(start, start + len(sets), dtype="int64")
            x = {"image": images[part], "index": index}
            yield x, sets.astype("float32")

    x_spec = {
        "image": _spec(images, images.dtype),
        "index": tf.TensorSpec((None,), tf.int64),
    }
    y_spec = tf.TensorSpec((None, num_classes), tf.float32)
    data = tf.data.Dataset.from_generator(
        batches, output_signature=(x_spec, y_spec)
    )
    steps = -(-len(images) // batch_size)
    data = data.apply(tf.data.experimental.assert_cardinality(steps))
    return data.prefetch(2)


def _check_batch_size(batch_size):
    if batch_size < 1:
        raise ConfigError(
            "Argument `batch_size` must be at least 1. "
            f"Received: batch_size={batch_size}"
        )


def _spec(array, dtype):
    return tf.TensorSpec((None, *array.shape[1:]), dtype)
