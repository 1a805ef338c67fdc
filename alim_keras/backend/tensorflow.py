"""TensorFlow: the gradient step, and the names that every backend has."""

import contextlib
import math

import keras
import tensorflow as tf

from alim_keras.backend import tensorflow_cluster as cluster
from alim_keras.backend import tensorflow_replicas as replicas
from alim_keras.backend import tensorflow_serving as serving
from alim_keras.errors import original

all_gather = replicas.all_gather
check_rows = replicas.check_rows
check_shares = replicas.check_shares
first_row = replicas.first_row
gather_processes = cluster.gather_processes
is_chief = cluster.is_chief
make_strategy = cluster.make_strategy
process_count = cluster.process_count
num_replicas = replicas.num_replicas
process_index = cluster.process_index
save_served_model = serving.save_served_model
synchronise = replicas.synchronise
watching_workers = cluster.watching_workers

# TensorFlow keeps int32 tensors in host memory even when it has a GPU.
INTEGER = "int64"


@contextlib.contextmanager
def _own_errors():
    """Raises this package's errors as such where TensorFlow quotes them."""
    try:
        yield
    except tf.errors.OpError as error:
        found = original(error)
        if found is None:
            raise
        raise found from error


class Trainer:
    """`train_step` and `test_step` of `PartialLabelModel` on TensorFlow.

    All that is particular to a method happens in `training_loss`, written
    with `keras.ops`; here are only the tape, the loss scale and the update.
    """

    _sum_metrics_once = None

    def train_step(self, data):
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            loss, probabilities, batch = self.training_loss(x, y, sample_weight)
            loss = loss + self.regularisation() / num_replicas()
            loss = self.optimizer.scale_loss(loss)
        weights = self.trainable_weights
        self.optimizer.apply_gradients(
            zip(tape.gradient(loss, weights), weights)
        )
        self.after_step(batch)
        return self.compute_metrics(
            x, y, probabilities, sample_weight=sample_weight
        )

    def fit(self, x=None, *args, validation_data=None, **kwargs):
        strategy = self.distribute_strategy
        if validation_data is not None:
            validation_data = cluster.share_of_evaluation(
                strategy, validation_data
            )
        x = cluster.share_of_training(strategy, x)
        kwargs["validation_data"] = validation_data
        try:
            with cluster.undistributed(strategy), _own_errors():
                return super().fit(x, *args, **kwargs)
        except tf.errors.InvalidArgumentError as error:
            # What a running step found; see check_rows and check_shares.
            for message in (replicas.BAD_ROWS, replicas.BAD_SHARES):
                if message in str(error):
                    raise ValueError(message) from error
            raise

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # Under a strategy Keras averages a batch over the replicas to learn
        # its form, which fails on unequal shares. The form is known here.
        if self._distribute_strategy is None:
            # A step that made the optimizer's variables would be traced twice.
            if self.optimizer is not None and not self.optimizer.built:
                self.optimizer.build(self.trainable_variables)
            return
        x = {
            "image": keras.KerasTensor((1, *self.image_shape)),
            "index": keras.KerasTensor((1,), dtype="int64"),
        }
        y = keras.KerasTensor((1, self.num_classes))
        with self._distribute_strategy.scope():
            self._symbolic_build(data_batch=(x, y))

    def evaluate(self, x=None, *args, **kwargs):
        strategy = self.distribute_strategy
        # Within `fit` it has got its share already.
        if not kwargs.get("_use_cached_eval_dataset"):
            x = cluster.share_of_evaluation(strategy, x)
        with cluster.undistributed(strategy), _own_errors():
            return super().evaluate(x, *args, **kwargs)

    def predict(self, x, *args, **kwargs):
        # Every worker that calls it predicts all.
        with cluster.undistributed(self.distribute_strategy), _own_errors():
            return super().predict(x, *args, **kwargs)

    def make_train_function(self, force=False):
        if not cluster.is_multi_worker(self.distribute_strategy):
            super().make_train_function(force)
        elif force or self.train_function is None:
            self.train_function = self._by_each_worker(self.train_step)

    def make_test_function(self, force=False):
        if not cluster.is_multi_worker(self.distribute_strategy):
            super().make_test_function(force)
        elif force or self.test_function is None:
            self.test_function = self._by_each_worker(self.test_step)

    def make_predict_function(self, force=False):
        if not cluster.is_multi_worker(self.distribute_strategy):
            super().make_predict_function(force)
        elif force or self.predict_function is None:
            self.predict_function = self._by_each_worker(self.predict_step)

    def _by_each_worker(self, step):
        """Runs a step without reducing what it returns over the workers.

        Keras reduces every log in every step, along an axis that scalars do
        not have. The logs of an epoch come from the metrics, which are summed
        over the workers once, when read.
        """
        strategy = self.distribute_strategy

        def run(data):
            return strategy.run(step, args=(data,))

        if not self.run_eagerly:
            run = tf.function(
                run,
                autograph=False,
                reduce_retracing=True,
                jit_compile=self.jit_compile,
            )
        # `fit` and `evaluate` hand an iterator over, `predict` a list of one.
        return lambda data: run(next(iter(data)))

    def _sum_metrics(self):
        """The metrics over all workers, by one all-reduce.

        Read one by one, each of their variables would cost one.
        """

        def sum_up():
            variables = self.metrics_variables
            parts = [tf.reshape(v.value, [-1]) for v in variables]
            context = tf.distribute.get_replica_context()
            total = context.all_reduce("SUM", tf.concat(parts, axis=0))
            sums = tf.split(total, [math.prod(v.shape) for v in variables])
            mapping = [
                (v, tf.reshape(part, v.shape))
                for v, part in zip(variables, sums)
            ]
            with keras.StatelessScope(state_mapping=mapping):
                return self.get_metrics_result()

        return self.distribute_strategy.run(sum_up)

    def save(self, *args, **kwargs):
        with cluster.own_copies(self._distribute_strategy):
            return super().save(*args, **kwargs)

    def save_weights(self, *args, **kwargs):
        with cluster.own_copies(self._distribute_strategy):
            return super().save_weights(*args, **kwargs)

    def _get_metrics_result_or_logs(self, logs):
        # Keras takes the replicas' mean of means if a step left a log out.
        if cluster.is_multi_worker(self.distribute_strategy):
            if self._sum_metrics_once is None:
                self._sum_metrics_once = tf.function(self._sum_metrics)
            results = self._sum_metrics_once()
        else:
            results = self.get_metrics_result()
        return {name: results.get(name, logs[name]) for name in logs}

    def test_step(self, data):
        logs = super().test_step(data)
        # The loss parts are not computed on validation data: a 0.0 for them
        # in the history would be a lie.
        return {k: v for k, v in logs.items() if k not in self.training_logs}


def check_executions(model):
    """Refuses several steps per call where Keras cannot run them."""
    strategy = model.distribute_strategy
    if strategy.num_replicas_in_sync > 1 and model.steps_per_execution > 1:
        raise ValueError(
            "`steps_per_execution` above 1 does not work under a distribution "
            "strategy in Keras (keras issue 19246). Compile with "
            "steps_per_execution=1. Received: steps_per_execution="
            f"{model.steps_per_execution}"
        )


def gather_rows(variable, index):
    """Returns `variable[index]`, in O(rows).

    Any other read of a variable that was scattered to copies all of it.
    """
    variable = variable.value
    if isinstance(variable, tf.distribute.DistributedValues):
        context = tf.distribute.get_replica_context()
        replica = context.replica_id_in_sync_group if context else 0
        replica = int(tf.get_static_value(replica))
        copies = variable.values  # Of this process.
        variable = copies[replica % len(copies)]
    return tf.gather(variable, index)


def normalise_batch(x, scale, offset, epsilon):
    """Normalises images `(B, H, W, channels)` by their own statistics.

    Args:
        x: Float32 tensor.
        scale: Float32 tensor `(channels,)`.
        offset: Likewise.
        epsilon: Float, added to the variance.

    Returns:
        The normalised images, their mean and their variance.
    """
    y, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=x,
        scale=scale,
        offset=offset,
        mean=[],
        variance=[],
        epsilon=epsilon,
        is_training=True,
    )
    # What it returns is the unbiased estimate.
    count = tf.cast(tf.reduce_prod(tf.shape(x)[:-1]), "float32")
    return y, mean, variance * ((count - 1.0) / count)


def take_rows(x, index):
    """Returns `x[index]` of a tensor, for indices from 0 to `len(x) - 1`.

    `keras.ops.take` goes through all indices first, looking for negative
    ones, which takes as long as the gathering.
    """
    return tf.gather(x, index)


def scatter_rows(variable, index, rows):
    """Sets `variable[index] = rows` in place, in O(rows)."""
    rows = tf.cast(rows, variable.dtype)
    variable.value.scatter_update(tf.IndexedSlices(rows, index))


def compiled(function, variables=(), jit_compile=False):
    """Returns `function` as a graph function.

    Args:
        function: Function of tensors.
        variables: The Keras variables that it reads; a graph reads them as
            they are at each call, whether named or not.
        jit_compile: Whether XLA compiles it.
    """
    return tf.function(function, jit_compile=jit_compile)


def device_memory():
    """Returns the bytes of a GPU's memory; None: TensorFlow does not say."""


def gpu_names():
    """Returns the names of this machine's GPUs that TensorFlow can use."""
    return [gpu.name for gpu in tf.config.list_physical_devices("GPU")]


def set_random_seed(seed):
    """Seeds Python, numpy and TensorFlow: a model's initial weights."""
    keras.utils.set_random_seed(seed)


def make_deterministic():
    """Makes operations deterministic on a GPU too; slower."""
    tf.config.experimental.enable_op_determinism()
