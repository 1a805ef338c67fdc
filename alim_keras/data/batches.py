"""Training and evaluation batches; the order depends on (seed, epoch).

On TensorFlow they come from tf.data (`pipeline`), on other Keras backends
from a `keras.utils.PyDataset` that gathers them on the device (`loader`).
"""

import importlib

import keras
import numpy as np

from alim_keras.data.checks import validate_candidates
from alim_keras.data.sources.disk_images import DiskImages
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
    shard=(0, 1),
    view_names=("weak", "strong"),
):
    """Returns the training batches of one epoch after another.

    Every epoch is a fresh permutation; the last, incomplete batch is left
    out, as the reference does, and its examples come in other epochs.

    On the JAX backend the images live on the device, where they fit, and a
    batch is gathered there by its index. `DiskImages` are decoded a few
    batches ahead; the batches are the same as those of an array.

    Args:
        images: Array `(N, H, W, channels)`, uint8 or float in `[0, 255]`, or
            `DiskImages`.
        candidates: Multi-hot array `(N, C)`, or an object with `shape`,
            `len()` and `rows(index)`, which returns the multi-hot float32
            rows of an index array, such as `SparseCandidates`.
        batch_size: Global batch size. Defaults to `256`.
        seed: Defaults to `0`.
        views: An `alim_keras.augment.Views` to make the views here, on the
            host, instead of inside the step. The numbers are the same.
            TensorFlow only. Defaults to None.
        num_parallel_calls: Batches whose views are made at once. Defaults to
            tf.data's own choice. It does not change the numbers.
        shard: Pair (this process, number of processes). Each global batch is
            cut into that many equal parts, and only this process's is
            returned. Defaults to `(0, 1)`, the whole batch.
        view_names: Which `views` are made: the `view_names` of the model.
            Defaults to `("weak", "strong")`, PiCO's.

    Returns:
        A `tf.data.Dataset`, or on other backends a `keras.utils.PyDataset`,
        of pairs: a dict with `"image"` `(B, H, W, channels)` and `"index"`
        `(B,)`, integers (with `views` also `"weak"` and `"strong"` instead of
        `"image"`), and the candidate sets, `(B, C)` float32. Its attribute
        `epoch_counter` tells which epoch comes next, `num_examples` is N,
        `share` is the `shard` that was given.

    Raises:
        DataError: If lengths differ or N is smaller than a batch.
        ConfigError: If a batch cannot be cut evenly, or `views` are asked of
            a backend that cannot make them on the host.

    Example:

    >>> data = alim_keras.data.train_dataset(images, candidates, batch_size=8)
    >>> x, candidates = next(iter(data))
    >>> x["index"].shape
    (8,)
    """
    _check_batch_size(batch_size)
    part, parts = shard
    if batch_size % parts:
        raise ConfigError(
            f"A batch must split evenly over {parts} processes. "
            f"Received: batch_size={batch_size}"
        )
    examples = Examples(images, candidates)
    steps = len(examples) // batch_size
    if steps == 0:
        raise DataError(
            f"A batch of {batch_size} is larger than the {len(examples)} "
            "training examples. Use a smaller batch_size."
        )
    counter = EpochCounter()
    share = batch_size // parts

    def one_pass():
        epoch = counter.advance()
        order = shuffled(len(examples), seed, epoch)
        order = order[: steps * batch_size].reshape(steps, parts, share)
        return epoch, order[:, part]

    data = _builder().train_batches(
        examples, one_pass, steps, views, num_parallel_calls, view_names
    )
    data.epoch_counter = counter
    data.examples = examples
    data.num_examples = len(examples)
    data.share = (part, parts)
    return data


def eval_dataset(images, labels, num_classes, batch_size=256):
    """Returns batches for evaluation and inference, in the given order.

    Args:
        images: Array `(N, H, W, channels)`, uint8 or float in `[0, 255]`, or
            `DiskImages`.
        labels: Integer array `(N,)`, which become sets of one, or candidate
            sets, as for `train_dataset`.
        num_classes: C.
        batch_size: Defaults to `256`.

    Returns:
        A `tf.data.Dataset` or `keras.utils.PyDataset` of pairs: a dict with
        `"image"` and `"index"`, and multi-hot float32 `(B, C)`. The last
        batch may be smaller.
    """
    _check_batch_size(batch_size)
    examples = Examples(images, labels, num_classes)
    data = _builder().eval_batches(examples, batch_size)
    data.examples = examples
    return data


class Examples:
    """Images and their candidate sets, in whatever form these are kept.

    Attributes:
        images: Array or `DiskImages`, `(N, H, W, channels)`.
        on_disk: Whether these are `DiskImages`.
        num_classes: C.
        dense: Multi-hot array `(N, C)`, or None where the sets are kept in
            another form.
    """

    def __init__(self, images, sets, num_classes=None):
        self.on_disk = isinstance(images, DiskImages)
        self.images = images if self.on_disk else np.asarray(images)
        self.dense = self._labels = self._stored = None
        if hasattr(sets, "rows"):
            self._stored, kind = sets, "candidate sets"
        elif np.ndim(sets) == 1:
            sets = self._labels = np.asarray(sets)
            kind = "labels"
        else:
            sets = validate_candidates(sets, num_classes, form="multi_hot")
            self.dense, kind = sets, "candidate sets"
        if len(self.images) != len(sets):
            raise DataError(
                f"Images and {kind} must be as many. Received: "
                f"{len(self.images)} images, {len(sets)} {kind}"
            )
        self.num_classes = num_classes or sets.shape[1]
        if self._labels is not None:
            _check_labels(sets, num_classes)

    def __len__(self):
        return len(self.images)

    def sets(self, index):
        """Returns the multi-hot rows of an index array, float32 `(B, C)`."""
        if self._stored is not None:
            return self._stored.rows(index)
        if self._labels is not None:
            return np.eye(self.num_classes, dtype="float32")[
                self._labels[index]
            ]
        return self.dense[index].astype("float32")


def _builder():
    """The module that makes batches for this Keras backend."""
    tensorflow = keras.config.backend() == "tensorflow"
    name = "pipeline" if tensorflow else "loader"
    return importlib.import_module(f"alim_keras.data.{name}")


def _check_labels(labels, num_classes):
    wrong = np.flatnonzero((labels < 0) | (labels >= num_classes))
    if len(wrong):
        raise DataError(
            f"Labels must lie in 0..{num_classes - 1}. Received: "
            f"{labels[wrong[0]]} in row {wrong[0]} ({len(wrong)} such rows)"
        )


def _check_batch_size(batch_size):
    if batch_size < 1:
        raise ConfigError(
            "Argument `batch_size` must be at least 1. "
            f"Received: batch_size={batch_size}"
        )
