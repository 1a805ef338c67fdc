"""Batches without TensorFlow; see `alim_keras.data.batches`.

Where the images fit on the device they live there, as they are, and a batch
is gathered by its index: no image crosses from the host in a step.
"""

import concurrent.futures

import keras
import numpy as np

from alim_keras import backend
from alim_keras.errors import ConfigError

# Share of the device's memory that images and candidate sets may take; the
# networks and their activations need the rest.
_SHARE = 0.4
# Batches of images on disk that are decoded before they are asked for.
_BATCHES_AHEAD = 2


class IndexBatches(keras.utils.PyDataset):
    """Batches of examples, gathered on the device or decoded from disk.

    Args:
        examples: `Examples`.
        one_pass: Function that begins a pass and returns the index arrays of
            its batches, in order.
        num_batches: Their number.

    Attributes:
        share: See `alim_keras.data.train_dataset`.
    """

    def __init__(self, examples, one_pass, num_batches):
        # Reading is a dispatch to the device: threads would only add to it.
        super().__init__(workers=0)
        self.share = (0, 1)
        self._examples = examples
        self._one_pass = one_pass
        self._num_batches = num_batches
        self._order = self._read = None
        self._ahead = _Ahead(examples.images) if examples.on_disk else None

    def __len__(self):
        return self._num_batches

    def __getitem__(self, place):
        if self._read is None and not self._examples.on_disk:
            self._read = _reader(self._examples)
        if place == 0 or self._order is None:
            self._order = self._one_pass()
        index = self._order[place].astype("int32")
        if self._examples.on_disk:
            pixels = self._ahead.read(self._order, place)
            x = {"image": pixels, "index": index}
            return x, self._examples.sets(index)
        return self._read(index)


class _Ahead:
    """Reads batches of `DiskImages`, and the next ones meanwhile.

    Args:
        images: `DiskImages`.
    """

    def __init__(self, images):
        self._images = images
        self._order, self._waiting = None, {}
        self._pool = None

    def read(self, order, place):
        """Returns the images of `order[place]`; later batches follow."""
        if self._pool is None:
            self._pool = concurrent.futures.ThreadPoolExecutor(_BATCHES_AHEAD)
        if order is not self._order:
            self._forget()
            self._order = order
        wanted = range(place, min(place + _BATCHES_AHEAD + 1, len(order)))
        for one in set(self._waiting).difference(wanted):
            self._waiting.pop(one).cancel()
        for one in wanted:
            if one not in self._waiting:
                task = self._pool.submit(self._images.read, order[one])
                self._waiting[one] = task
        try:
            return self._waiting.pop(place).result()
        except BaseException:
            self._forget()
            raise

    def _forget(self):
        for task in self._waiting.values():
            task.cancel()
        self._waiting.clear()


def train_batches(
    examples, one_pass, steps, views, num_parallel_calls, view_names
):
    """Returns the training batches; see `pipeline.train_batches`."""
    del view_names  # The model's own matter.
    if views is not None or num_parallel_calls is not None:
        raise ConfigError(
            "Views are made on the host by tf.data only; leave them to the "
            "model (--views=device), or use the TensorFlow backend. Received: "
            f"keras.config.backend()={keras.config.backend()!r}"
        )
    return IndexBatches(examples, lambda: one_pass()[1], steps)


def eval_batches(examples, batch_size):
    """Returns the evaluation batches."""
    starts = range(0, len(examples), batch_size)
    order = [
        np.arange(start, min(start + batch_size, len(examples)))
        for start in starts
    ]
    return IndexBatches(examples, lambda: order, len(order))


def _reader(examples):
    """Returns a function from an index array to the batch `(x, y)`."""
    images, sets = examples.images, examples.dense
    resident = images.nbytes + (0 if sets is None else sets.nbytes)
    limit = backend.device_memory()
    if limit is not None and resident > _SHARE * limit:

        def from_host(index):
            x = {"image": images[index], "index": index}
            return x, examples.sets(index)

        return from_host

    rows = backend.compiled(_rows)
    images = keras.ops.convert_to_tensor(images)
    if sets is not None:
        sets = keras.ops.convert_to_tensor(sets)

    def from_device(index):
        x = {"image": rows(images, index), "index": index}
        if sets is None:
            return x, examples.sets(index)
        return x, keras.ops.cast(rows(sets, index), "float32")

    return from_device


def _rows(array, index):
    return keras.ops.take(array, index, axis=0)
