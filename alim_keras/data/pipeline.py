"""Batches with tf.data; see `alim_keras.data.batches`."""

import numpy as np
import tensorflow as tf

from alim_keras.augment import make_views
from alim_keras.data import collection
from alim_keras.errors import AlimError
from alim_keras.errors import remember


def train_batches(
    examples, one_pass, steps, views, num_parallel_calls, view_names
):
    """Returns the training data set.

    Args:
        examples: `Examples`.
        one_pass: Function that begins an epoch and returns its number and
            the order of its examples, `(steps, B)`.
        steps: Batches of an epoch.
        views: `alim_keras.augment.Views`, or None to ship the images.
        num_parallel_calls: See `train_dataset`.
        view_names: See `train_dataset`.
    """

    def batches():
        epoch, order = one_pass()
        for index in order:
            with collection.paused():
                x = _inputs(examples, index)
                if views is not None:
                    x["epoch"] = np.int32(epoch)
                y = examples.sets(index)
            yield x, y

    extra = {}
    if views is not None:
        extra["epoch"] = tf.TensorSpec((), tf.int32)
    data = _from_generator(batches, examples, extra)
    if views is not None:

        def with_views(x, y):
            draw = (x["image"], x["epoch"], x["index"])
            made = make_views(views, view_names, draw)
            return {**made, "index": x["index"]}, y

        data = data.map(
            with_views,
            num_parallel_calls=num_parallel_calls or tf.data.AUTOTUNE,
            deterministic=True,
        )
    data = data.apply(tf.data.experimental.assert_cardinality(steps))
    return data.prefetch(2)


def eval_batches(examples, batch_size):
    """Returns the evaluation data set."""

    def batches():
        for start in range(0, len(examples), batch_size):
            stop = min(start + batch_size, len(examples))
            index = np.arange(start, stop)
            with collection.paused():
                x, y = _inputs(examples, index), examples.sets(index)
            yield x, y

    data = _from_generator(batches, examples)
    steps = -(-len(examples) // batch_size)
    data = data.apply(tf.data.experimental.assert_cardinality(steps))
    return data.prefetch(2)


def _inputs(examples, index):
    """Returns what the generator gives for a batch."""
    x = {"index": index.astype("int64")}
    if not examples.on_disk:
        x["image"] = examples.images[index]
    return x


def _from_generator(batches, examples, extra=()):
    images = examples.images
    image = tf.TensorSpec((None, *images.shape[1:]), images.dtype)
    x_spec = {"index": tf.TensorSpec((None,), tf.int64), **dict(extra)}
    if not examples.on_disk:
        x_spec["image"] = image
    y_spec = tf.TensorSpec((None, examples.num_classes), tf.float32)
    data = tf.data.Dataset.from_generator(
        batches, output_signature=(x_spec, y_spec)
    )
    if not examples.on_disk:
        return data

    def read(index):
        try:
            with collection.paused():
                return images.read(index)
        except AlimError as error:
            # tf.data hands on its text only.
            remember(error)
            raise

    def with_images(x, y):
        pixels = tf.numpy_function(read, [x["index"]], image.dtype)
        return {**x, "image": tf.ensure_shape(pixels, image.shape)}, y

    # So many batches are decoded at once as tf.data finds useful: memory
    # does not grow with the number of images.
    return data.map(
        with_images, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
    )
