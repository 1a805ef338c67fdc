"""TensorFlow: the gradient step, replicas, devices, and SavedModels."""

import contextlib
import functools
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

from alim_keras import errors
from alim_keras.backend.phases import Phases

# The dtype of labels and indices in weights and in the step: TensorFlow keeps
# int32 tensors in host memory even when it has a GPU.
INTEGER = "int64"


class Trainer(Phases):
    """The gradient step around `PartialLabelModel.training_loss`."""

    def train_step(self, data):
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        x = _check_shares(x, even=bool(self.mixup_weight))
        with tf.GradientTape() as tape:
            loss, probabilities, batch = self.training_loss(x, y, sample_weight)
            loss = loss + self.regularisation() / num_replicas()
            loss = self.optimizer.scale_loss(loss)
        weights = self.trainable_weights
        self.optimizer.apply_gradients(
            zip(tape.gradient(loss, weights), weights)
        )
        self.after_step(batch)
        return self.compute_metrics(x, y, probabilities, sample_weight)

    def fit(self, *args, **kwargs):
        replicas = self.distribute_strategy.num_replicas_in_sync
        if replicas > 1 and self.steps_per_execution > 1:
            raise ValueError(
                "Under a distribution strategy Keras needs steps_per_execution"
                "=1 (keras issue 19246). Received: steps_per_execution="
                f"{self.steps_per_execution}"
            )
        # A step that made the optimizer's variables would be traced twice.
        if self.optimizer is not None and not self.optimizer.built:
            with self.distribute_strategy.scope():
                self.optimizer.build(self.trainable_variables)
        with self._running():
            return super().fit(*args, **kwargs)

    @contextlib.contextmanager
    def _running(self):
        """Raises errors of this package where TensorFlow quotes them."""
        try:
            yield
        except tf.errors.OpError as error:
            quoted = errors.original(error)
            if quoted is None:
                raise
            raise quoted from error

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # Keras builds metrics from a batch that it averages over the replicas,
        # which fails on unequal shares. Their form is the same in any batch.
        y = keras.ops.ones((1, self.num_classes))
        with self.distribute_strategy.scope(), keras.StatelessScope():
            self.compute_metrics(None, y, y)


def _context():
    """Returns that of a step which several replicas share, or None."""
    context = tf.distribute.get_replica_context()
    is_shared = context is not None and context.num_replicas_in_sync > 1
    return context if is_shared else None


def num_replicas():
    """Returns the number of replicas that take part in the current step."""
    return tf.distribute.get_strategy().num_replicas_in_sync


def all_gather(*tensors):
    """Concatenates `(B, ...)` tensors over all replicas; has a gradient.

    Every update of training state is a function of gathered tensors, so all
    replicas assign the same value and none drifts away.
    """
    context = _context()
    if context is not None:
        tensors = [context.all_gather(tensor, axis=0) for tensor in tensors]
    return tensors[0] if len(tensors) == 1 else list(tensors)


def first_row(size):
    """Returns where this replica's `size` examples begin in the batch."""
    context = _context()
    return 0 if context is None else context.replica_id_in_sync_group * size


def _check_shares(x, even):
    """Raises if replicas hold unequal shares of a batch, or unwanted odd ones.

    What is made of the tensors that it returns, `x`, waits for the check.
    """
    context = _context()
    if context is None:
        return x
    error = errors.ConfigError(
        "The replicas hold unequal shares of a batch, or odd ones, which mixup "
        "cannot pair. Use a batch size that is a multiple of twice the number "
        "of replicas, and drop the last, incomplete batch."
    )
    errors.remember(error)
    size = tf.shape(tf.nest.flatten(x)[0])[:1]
    sizes = context.all_gather(size, axis=0)
    good = tf.reduce_all(sizes == sizes[0])
    if even:
        good = tf.logical_and(good, sizes[0] % 2 == 0)
    check = tf.debugging.Assert(good, [str(error)], summarize=1)
    with tf.control_dependencies([check]):
        return tf.nest.map_structure(tf.identity, x)


def gather_rows(x, index):
    """Returns `x[index]` of a tensor or a Keras variable, in O(rows)."""
    if isinstance(x, keras.Variable):
        # Any other read of one that was scattered to copies all of it.
        x = x.value
    if isinstance(x, tf.distribute.DistributedValues):
        context = tf.distribute.get_replica_context()
        replica = context.replica_id_in_sync_group if context else 0
        x = x.values[int(tf.get_static_value(replica))]
    # `keras.ops.take` looks for negative indices first, which takes as long.
    return tf.gather(x, index)


def scatter_rows(variable, index, rows):
    """Sets `variable[index] = rows` in place, in a compiled step in O(rows)."""
    rows = tf.cast(rows, variable.dtype)
    variable.value.scatter_update(tf.IndexedSlices(rows, index))


def normalise_batch(x, scale, offset, epsilon):
    """Returns normalised images `(B, H, W, channels)`, mean and variance.

    It is None on a backend that has nothing faster than Keras.
    """
    options = {"mean": [], "variance": [], "is_training": True}
    y, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=x, scale=scale, offset=offset, epsilon=epsilon, **options
    )
    # TensorFlow returns the unbiased estimate.
    count = tf.cast(tf.reduce_prod(tf.shape(x)[:-1]), "float32")
    return y, mean, variance * ((count - 1.0) / count)


def compiled(function, variables=(), jit_compile=False):
    """Returns a function of tensors, and of these Keras variables, compiled."""
    return tf.function(function, jit_compile=jit_compile)


def make_strategy(name, replicas=None):
    """Returns a strategy's scope for `--distribute`, and its replica count.

    It comes first in a process: devices are set up once, with the first
    operation. `"mirrored"` uses as many devices as `replicas` says, or all
    GPUs, or the one CPU; more than one on a CPU splits it. Raises ConfigError
    if there are fewer, EnvironmentLacksError for `"multi_worker"`.
    """
    if name == "none":
        return contextlib.nullcontext(), 1
    if name == "multi_worker":
        raise errors.EnvironmentLacksError(
            "--distribute=multi_worker needs --backend=jax (python -m pip "
            "install jax). --distribute=mirrored uses all GPUs of a machine."
        )
    gpus = tf.config.list_physical_devices("GPU")
    kind = "GPU" if gpus else "CPU"
    if not gpus and replicas and replicas > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        # Too late in this process: the count of devices decides.
        with contextlib.suppress(RuntimeError, ValueError):
            tf.config.set_logical_device_configuration(
                cpu, [tf.config.LogicalDeviceConfiguration()] * replicas
            )
    devices = tuple(d.name for d in tf.config.list_logical_devices(kind))
    if replicas and replicas > len(devices):
        raise errors.ConfigError(
            f"--distribute=mirrored found {len(devices)} {kind} device(s). "
            f"Ask for at most that many. Received: replicas={replicas}"
        )
    devices = devices[:replicas]
    return _mirrored(devices).scope(), len(devices)


@functools.cache
def _mirrored(devices):
    # Two strategies of the same devices would clash.
    return tf.distribute.MirroredStrategy(devices)


def process():
    """Returns this process's number and their count, of which there is one."""
    return 0, 1


def gather_processes(values):
    """Returns integers below 2**31 of all processes, which wait, as rows."""
    return np.asarray([values], "int64")


def device_memory():
    """Returns the bytes of a GPU's memory; None: TensorFlow does not tell."""


def gpu_names():
    """Returns the names of this machine's GPUs that TensorFlow can use."""
    return [gpu.name for gpu in tf.config.list_physical_devices("GPU")]


# Seeds a model's initial weights.
set_random_seed = keras.utils.set_random_seed


def save_served_model(network, path, image_shape, class_names=None):
    """Writes `network` (images to probabilities) as a SavedModel.

    Its `serve` takes a batch of images of any size, `(B, H, W, C)`, uint8
    (signature `serving_default`) or float32 (`serve_float`) in `[0, 255]`, and
    returns `(B, num_classes)` float32: NaN for an image with a pixel that is
    not finite. A network of feature vectors takes float32 `(B, d)`, as
    `serving_default`. `input_shape` returns the shape of one image or vector.
    Class names, one per line, are the asset `class_names.txt`.
    """
    num_classes = network.outputs[0].shape[-1]
    served = tf.Module()
    served.network_variables = [v.value for v in network.variables]

    @tf.function
    def serve(images):
        images = tf.cast(images, tf.float32)
        # Resizing and pooling cannot do with no images.
        if tf.shape(images)[0] == 0:
            return tf.zeros((0, num_classes))
        pixels = tf.reshape(images, (tf.shape(images)[0], -1))
        finite = tf.reduce_all(tf.math.is_finite(pixels), axis=1, keepdims=True)
        # ReLU and pooling turn NaN pixels into ordinary features.
        return tf.where(finite, network(images, training=False), float("nan"))

    shape, name = (None, None, None, image_shape[-1]), "images"
    dtypes = {"serving_default": "uint8", "serve_float": "float32"}
    if len(network.inputs[0].shape) == 2:
        image_shape, shape, name = image_shape[-1:], shape[2:], "features"
        dtypes = {"serving_default": "float32"}
    signatures = {
        key: serve.get_concrete_function(tf.TensorSpec(shape, dtype, name))
        for key, dtype in dtypes.items()
    }
    served.serve = serve
    served.input_shape = tf.function(
        lambda: tf.constant(image_shape), input_signature=()
    )
    with tempfile.TemporaryDirectory() as folder:
        if class_names is not None:
            names = os.path.join(folder, "class_names.txt")
            with open(names, "w", encoding="utf-8") as file:
                file.writelines(f"{name}\n" for name in class_names)
            served.class_names = tf.saved_model.Asset(names)
        tf.saved_model.save(served, path, signatures)


def load_served_model(path):
    """Reads a SavedModel that `save_served_model` wrote.

    Returns a function from arrays to arrays of probabilities, and the shape of
    one input.
    """
    served = tf.saved_model.load(path)
    shape = tuple(served.input_shape().numpy().tolist())
    # The function `served.serve` alone would not keep its variables.
    return lambda batch: served.serve(batch).numpy(), shape
