"""Training and evaluation batches; the order depends on (seed, epoch).

They are the same on TensorFlow, from tf.data, and on other Keras backends,
from a `keras.utils.PyDataset` that gathers them on the device.
"""

import contextlib
import gc
import math
import threading
import types
import warnings

import keras
import numpy as np

from alim_keras import backend
from alim_keras import errors
from alim_keras.data import checks
from alim_keras.data import images as disk
from alim_keras.data.candidates import CandidateSets

# Share of the device's memory that images may take; the networks and their
# activations need the rest.
_SHARE = 0.4


def shuffled(num_examples, seed, epoch):
    """Returns the order of an epoch: a permutation of `range(num_examples)`."""
    stream = np.random.default_rng([seed, epoch, 0x0DDE])
    return stream.permutation(num_examples)


def train_dataset(
    images,
    candidates,
    batch_size=256,
    seed=0,
    shard=(0, 1),
    check_pixels=True,
):
    """Returns the training batches of one epoch after another.

    Every epoch is a fresh permutation; the last, incomplete batch is left
    out, as the reference does.

    Args:
        images: Array `(N, H, W, channels)`, uint8 or float in `[0, 255]`, or
            `DiskImages`.
        candidates: `CandidateSets`, or a multi-hot array `(N, C)`.
        batch_size: Global batch size. Defaults to `256`.
        seed: Defaults to `0`.
        shard: Pair (this process, number of processes), which each get an
            equal part of each batch. Defaults to `(0, 1)`, the whole batch.
        check_pixels: Whether `errors.check_pixels` refuses float images that
            look scaled to [0, 1] or [-1, 1]. Defaults to `True`.

    Returns:
        A `tf.data.Dataset`, or on other backends a `keras.utils.PyDataset`,
        of pairs: a dict with `"image"` `(B, H, W, channels)` and `"index"`
        `(B,)`, integers, and the candidate sets, `(B, C)` float32. Its
        `epoch_counter.epoch` is the epoch that comes next, from 0.

    Raises:
        DataError: Lengths that differ, fewer images than a batch, or scaled.
        ConfigError: A batch that cannot be cut evenly.

    Example:

    >>> data = alim_keras.data.train_dataset(images, candidates, batch_size=8)
    >>> x, candidates = next(iter(data))
    >>> x["index"].shape
    (8,)
    """
    errors.check_number("batch_size", batch_size, 1, whole=True)
    part, parts = shard
    if batch_size % parts:
        raise errors.ConfigError(
            f"{parts} processes cannot share a batch of batch_size={batch_size}"
        )
    images, sets = _checked(images, candidates, look=check_pixels)
    steps = len(sets) // batch_size
    if steps == 0:
        raise errors.DataError(
            f"A batch of {batch_size} is larger than the {len(sets)} "
            "training examples. Use a smaller batch_size."
        )
    # It advances with each pass, and `fit` sets it before each epoch.
    counter = types.SimpleNamespace(epoch=0)

    def one_pass():
        order = shuffled(len(sets), seed, counter.epoch)
        counter.epoch += 1
        order = order[: steps * batch_size].reshape(steps, parts, -1)
        return order[:, part]

    data = _batches(images, sets, one_pass, steps)
    data.epoch_counter, data.share = counter, (part, parts)
    return data


def eval_dataset(
    images, labels, num_classes, batch_size=256, check_pixels=True
):
    """Returns batches for evaluation and inference, in the given order.

    Arguments and batches are as of `train_dataset`, but that `labels` may
    also be integers `(N,)`, which become sets of one of the `num_classes`,
    and that the last batch may be smaller.
    """
    errors.check_number("batch_size", batch_size, 1, whole=True)
    images, sets = _checked(images, labels, num_classes, check_pixels)
    everything = np.arange(len(sets))
    steps = range(0, len(sets), batch_size)
    order = [everything[start : start + batch_size] for start in steps]
    return _batches(images, sets, lambda: order, len(order))


def examples_of(dataset):
    """Returns the images and `CandidateSets` behind a data set or in a pair."""
    if isinstance(dataset, (tuple, list)) and len(dataset) == 2:
        return _checked(*dataset)
    if hasattr(dataset, "examples"):
        return dataset.examples
    raise errors.DataError(
        "What train_dataset or eval_dataset returns, or a pair of images and "
        f"candidate sets, was expected. Received: {type(dataset).__name__}"
    )


def _checked(images, sets, num_classes=None, look=False):
    """Returns images and `CandidateSets`, or raises where they differ."""
    if not isinstance(images, disk.DiskImages):
        images = np.asarray(images)
    if look:
        errors.check_pixels(images)
    kind = "candidate sets"
    if not isinstance(sets, CandidateSets):
        sets = np.asarray(sets)
        kind = "labels" if sets.ndim == 1 else kind
    if len(images) != len(sets) or not len(images):
        raise errors.DataError(
            f"Images and {kind} must be as many, at least one. Received: "
            f"{len(images)} images, {len(sets)} {kind}"
        )
    names = None if num_classes is None else range(num_classes)
    if kind == "labels":
        sets = CandidateSets.from_lists(sets[:, None], class_names=names)
    elif not isinstance(sets, CandidateSets):
        sets = CandidateSets.from_dense(sets, class_names=names)
        for text in checks.odd_sets(sets):
            warnings.warn(text, errors.DataWarning, stacklevel=3)
    return images, sets


def _batches(images, sets, one_pass, steps):
    """Returns the batches of index arrays for this Keras backend."""
    is_tensorflow = keras.config.backend() == "tensorflow"
    make = _tensorflow if is_tensorflow else IndexBatches
    data = make(images, sets, one_pass, steps)
    data.examples = images, sets
    return data


def _tensorflow(images, sets, one_pass, steps):
    import tensorflow as tf

    def read(index):
        try:
            with _no_collection():
                return disk.image_rows(images, index), sets.rows(index)
        except errors.AlimError as error:
            # tf.data hands on its text only.
            errors.remember(error)
            raise

    def batch_of(index):
        kinds = (images.dtype, np.float32)
        image, y = tf.numpy_function(read, [index], kinds)
        image = tf.ensure_shape(image, (None, *images.shape[1:]))
        y = tf.ensure_shape(y, (None, sets.num_classes))
        return {"index": index, "image": image}, y

    index = tf.TensorSpec((None,), tf.int64)
    data = tf.data.Dataset.from_generator(one_pass, output_signature=index)
    # So many batches are decoded at once as tf.data finds useful: memory does
    # not grow with the number of images.
    data = data.map(
        batch_of, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
    )
    data = data.apply(tf.data.experimental.assert_cardinality(steps))
    return data.prefetch(2)


_lock, _makers = threading.Lock(), []


@contextlib.contextmanager
def _no_collection():
    """Pauses the cyclic garbage collection while a batch is being made.

    It could destroy a half-read iterator in this thread, whose destructor
    waits, for ever, for the batches that this thread is to make.
    """
    with _lock:
        _makers.append(gc.isenabled())
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            was_enabled = _makers[0]
            _makers.pop()
            if not _makers and was_enabled:
                gc.enable()


class IndexBatches(keras.utils.PyDataset):
    """Batches of examples, gathered on the device or decoded from disk."""

    def __init__(self, images, sets, one_pass, num_batches):
        # Reading is a dispatch to the device: threads would only add to it.
        super().__init__(workers=0)
        self._images, self._sets = images, sets
        self._one_pass, self._num_batches = one_pass, num_batches
        self._order = self._gather = None

    def __len__(self):
        return self._num_batches

    def __getitem__(self, place):
        if place == 0 or self._order is None:
            self._order = self._one_pass()
        index = self._order[place].astype("int32")
        self._gather = self._gather or _gathering(self._images)
        x = {"image": self._gather(index), "index": index}
        return x, self._sets.rows(index)


def _gathering(images):
    """Returns a function from an index to rows, where the images lie."""
    limit = _SHARE * (backend.device_memory() or math.inf)
    if isinstance(images, disk.DiskImages) or images.nbytes > limit:
        return lambda index: disk.image_rows(images, index)
    resident = keras.ops.convert_to_tensor(images)
    take = backend.compiled(lambda x, index: keras.ops.take(x, index, axis=0))
    return lambda index: take(resident, index)
