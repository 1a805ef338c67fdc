"""TensorFlow: the gradient step, collectives over replicas, SavedModel."""

import contextlib
import functools
import os
import tempfile

import keras
import tensorflow as tf

from alim_keras.errors import ConfigError

BAD_ROWS = (
    "x['index'] holds rows that the pseudo-label table does not have: they "
    "must be whole numbers from 0 to num_examples - 1."
)
BAD_SHARES = (
    "The replicas hold unequal shares of a batch, or odd ones, which mixup "
    "cannot pair as one device would. Use a batch size that is a multiple of "
    "twice the number of replicas, and drop the last, incomplete batch."
)


class Trainer:
    """`train_step` and `test_step` of `PartialLabelModel` on TensorFlow.

    All that is particular to a method happens in `training_loss`, written
    with `keras.ops`; here are only the tape, the loss scale and the update.
    """

    def train_step(self, data):
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            loss, probabilities = self.training_loss(x, y, sample_weight)
            loss = loss + self.regularisation() / num_replicas()
            loss = self.optimizer.scale_loss(loss)
        weights = self.trainable_weights
        self.optimizer.apply_gradients(
            zip(tape.gradient(loss, weights), weights)
        )
        return self.compute_metrics(
            x, y, probabilities, sample_weight=sample_weight
        )

    def fit(self, *args, **kwargs):
        try:
            return super().fit(*args, **kwargs)
        except tf.errors.InvalidArgumentError as error:
            # What a running step found; see check_rows and check_shares.
            for message in (BAD_ROWS, BAD_SHARES):
                if message in str(error):
                    raise ValueError(message) from error
            raise

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # Under a strategy Keras averages a batch over the replicas to learn
        # its form, which fails on unequal shares. The form is known here.
        if self._distribute_strategy is None:
            return
        x = {
            "image": keras.KerasTensor((1, *self.image_shape)),
            "index": keras.KerasTensor((1,), dtype="int64"),
        }
        y = keras.KerasTensor((1, self.num_classes))
        with self._distribute_strategy.scope():
            self._symbolic_build(data_batch=(x, y))

    def _get_metrics_result_or_logs(self, logs):
        # Keras takes the replicas' mean of means if a step left a log out.
        results = self.get_metrics_result()
        return {name: results.get(name, logs[name]) for name in logs}

    def test_step(self, data):
        logs = super().test_step(data)
        # The loss parts are not computed on validation data: a 0.0 for them
        # in the history would be a lie.
        return {k: v for k, v in logs.items() if k not in self.training_logs}


def num_replicas():
    """Returns the number of replicas that take part in the current step."""
    return tf.distribute.get_strategy().num_replicas_in_sync


def check_rows(index, num_examples):
    """Raises when a step meets an index outside the table (not under XLA)."""
    outside = tf.logical_or(index < 0, index >= num_examples)
    tf.debugging.Assert(
        tf.logical_not(tf.reduce_any(outside)), [BAD_ROWS], summarize=1
    )


def check_shares(index, even):
    """Raises when replicas hold unequal shares of a batch.

    Args:
        index: Tensor `(B,)` of this replica.
        even: Whether the shares must be even numbers, too.
    """
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return
    sizes = context.all_gather(tf.shape(index), axis=0)
    good = tf.reduce_all(sizes == sizes[0])
    if even:
        good = tf.logical_and(good, sizes[0] % 2 == 0)
    tf.debugging.Assert(good, [BAD_SHARES], summarize=1)


def first_row(size):
    """Returns where this replica's `size` examples begin in the batch."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return 0
    return context.replica_id_in_sync_group * size


def all_gather(x):
    """Concatenates a `(B, ...)` tensor over all replicas; has a gradient.

    Every update of training state is a function of gathered tensors, so all
    replicas assign the same value and none drifts away.
    """
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return x
    return context.all_gather(x, axis=0)


def scatter_rows(variable, index, rows):
    """Sets `variable[index] = rows` in place, in O(rows)."""
    rows = tf.cast(rows, variable.dtype)
    variable.value.scatter_update(tf.IndexedSlices(rows, index))


def compiled(function, jit_compile=False):
    """Returns `function` as a graph function."""
    return tf.function(function, jit_compile=jit_compile)


def gpu_names():
    """Returns the names of this machine's GPUs that TensorFlow can use."""
    return [gpu.name for gpu in tf.config.list_physical_devices("GPU")]


def make_deterministic():
    """Makes operations deterministic on a GPU too; slower."""
    tf.config.experimental.enable_op_determinism()


def make_strategy(name, replicas=None):
    """Returns a strategy's scope for `--distribute`, and its replica count.

    Args:
        name: `"none"` or `"mirrored"`.
        replicas: How many devices to use. Defaults to all GPUs, or the one
            CPU. More than one on a CPU splits it into logical devices, which
            is slower than one and serves to try a distributed run out.

    Returns:
        A pair: a context manager and the number of replicas.
    """
    if name == "none":
        return contextlib.nullcontext(), 1
    gpus = tf.config.list_physical_devices("GPU")
    kind = "GPU" if gpus else "CPU"
    if not gpus and replicas and replicas > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        try:
            tf.config.set_logical_device_configuration(
                cpu, [tf.config.LogicalDeviceConfiguration()] * replicas
            )
        except (RuntimeError, ValueError):
            pass  # Too late in this process; the count below decides.
    devices = [d.name for d in tf.config.list_logical_devices(kind)]
    if replicas and replicas > len(devices):
        raise ConfigError(
            f"--distribute=mirrored found {len(devices)} {kind} device(s). "
            f"Ask for at most that many. Received: replicas={replicas}"
        )
    devices = devices[:replicas] if replicas else devices
    return _mirrored(tuple(devices)).scope(), len(devices)


@functools.cache
def _mirrored(devices):
    """One strategy per list of devices: two in a process would clash.

    TensorFlow numbers its collective operations process-wide.
    """
    return tf.distribute.MirroredStrategy(devices)


def save_served_model(network, path, image_shape, class_names=None):
    """Writes `network` (images to probabilities) as a SavedModel.

    Its `serve` takes a batch of images of any size, `(B, H, W, C)`, uint8 or
    float32 in `[0, 255]`, and returns `(B, num_classes)` float32. Signatures:
    `serving_default` (uint8) and `serve_float` (float32). Class names, one
    per line, are the asset `class_names.txt`. Nothing else is inside.
    """
    channels = image_shape[-1]
    served = tf.Module()
    served.network_variables = [v.value for v in network.variables]

    @tf.function
    def serve(images):
        return network(tf.cast(images, tf.float32), training=False)

    def signature(dtype):
        spec = tf.TensorSpec((None, None, None, channels), dtype, "images")
        return serve.get_concrete_function(spec)

    served.serve = serve
    signatures = {
        "serving_default": signature(tf.uint8),
        "serve_float": signature(tf.float32),
    }
    if class_names is None:
        tf.saved_model.save(served, path, signatures)
        return
    with tempfile.TemporaryDirectory() as folder:
        names = os.path.join(folder, "class_names.txt")
        with open(names, "w", encoding="utf-8") as file:
            file.write("".join(f"{name}\n" for name in class_names))
        served.class_names = tf.saved_model.Asset(names)
        tf.saved_model.save(served, path, signatures)
