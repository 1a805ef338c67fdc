"""JAX: the gradient step as a pure function, devices, export.

A step sees the global batch, however many devices share it: the sharding is
the compiler's business (`keras.distribution.DataParallel`), so collectives
are the identity here.
"""

import importlib.util
import os
import random

import jax
import keras
import numpy as np

from alim_keras.backend import jax_devices as devices
from alim_keras.backend import jax_placement as placement
from alim_keras.backend.jax_many import OnManyDevices
from alim_keras.backend.serving_process import save_in_tensorflow
from alim_keras.errors import EnvironmentLacksError

gather_processes = devices.gather_processes
is_chief = devices.is_chief
make_strategy = devices.make_strategy
process_count = devices.process_count
process_index = devices.process_index
watching_workers = devices.watching_workers

# JAX has no 64-bit integers unless it is told to.
INTEGER = "int32"


class Trainer(OnManyDevices):
    """`train_step` and `test_step` of `PartialLabelModel` on JAX.

    What `training_loss` assigns (table, prototypes, queue, key encoder, batch
    statistics, logs) is collected by a stateless scope and handed on.
    """

    def compile(self, *args, jit_compile="auto", **kwargs):
        # JAX compiles a step or runs it operation by operation, which is
        # what `run_eagerly` asks for.
        del jit_compile
        super().compile(*args, **kwargs)

    def compile_from_config(self, config):
        # Keras only reads a config for a `compile` that is its own.
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.built:
            self.optimizer.build(self.trainable_variables)

    def train_step(self, state, data):
        trainable, non_trainable, optimizer, metrics = state
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        changing = self.non_trainable_variables + self.metrics_variables
        before = (*non_trainable, *metrics)

        def loss_of(trainable):
            mapping = zip(
                self.trainable_variables + changing + self.optimizer.variables,
                (*trainable, *before, *optimizer),
            )
            with keras.StatelessScope(
                state_mapping=list(mapping), collect_losses=True
            ) as scope:
                loss, probabilities, batch = self.training_loss(
                    x, y, sample_weight
                )
                loss = self.optimizer.scale_loss(loss + self.regularisation())
            values = _values(scope, changing, before)
            return loss, (probabilities, batch, values)

        gradient = jax.grad(loss_of, has_aux=True)
        gradients, (probabilities, batch, changed) = gradient(trainable)
        trainable, optimizer = self.optimizer.stateless_apply(
            optimizer, gradients, trainable
        )
        mapping = zip(
            self.trainable_variables + changing, (*trainable, *changed)
        )
        with keras.StatelessScope(state_mapping=list(mapping)) as scope:
            self.after_step(batch)
        changed = _values(scope, changing, changed)
        count = len(self.non_trainable_variables)
        non_trainable, metrics = changed[:count], changed[count:]
        mapping = zip(self.metrics_variables, metrics)
        with keras.StatelessScope(state_mapping=list(mapping)) as scope:
            logs = self.compute_metrics(x, y, probabilities, sample_weight)
        metrics = _values(scope, self.metrics_variables, metrics)
        return logs, (trainable, non_trainable, optimizer, metrics)

    def test_step(self, state, data):
        logs, state = super().test_step(state, data)
        # The loss parts are not computed on validation data: a 0.0 for them
        # in the history would be a lie.
        logs = {k: v for k, v in logs.items() if k not in self.training_logs}
        return logs, state

    def _get_metrics_result_or_logs(self, logs):
        # Keras takes the last batch's logs if a step left one out.
        results = self.get_metrics_result()
        return {name: results.get(name, logs[name]) for name in logs}


def _values(scope, variables, before):
    """What the variables stand at as a scope ends."""
    values = [scope.get_current_value(v) for v in variables]
    return [b if v is None else v for v, b in zip(values, before)]


def num_replicas():
    """Returns 1: a step sees the global batch."""
    return 1


def check_rows(index, num_examples):
    """Nothing: a compiled step cannot raise; the table answers with NaN."""


def check_shares(x, even):
    """Returns `x`: the step sees the whole batch."""
    return x


def check_executions(model):
    """Nothing: Keras runs several steps per call on any devices."""


def first_row(size):
    """Returns 0, where the `size` examples of the step begin in the batch."""
    return 0


def all_gather(*tensors):
    """Returns the tensor, or a list of several: they are global already."""
    return tensors[0] if len(tensors) == 1 else list(tensors)


def synchronise(layer):
    """Nothing: batch statistics are those of the global batch already."""


def gather_rows(variable, index):
    """Returns `variable[index]`, in O(rows)."""
    return keras.ops.take(variable, index, axis=0)


def normalise_batch(x, scale, offset, epsilon):
    """Normalises images by their own statistics; returns those, too."""
    mean, variance = keras.ops.moments(x, axes=(0, 1, 2))
    y = keras.ops.batch_normalization(
        x, mean, variance, -1, offset, scale, epsilon
    )
    return y, mean, variance


def take_rows(x, index):
    """Returns `x[index]` of an array, for indices from 0 to `len(x) - 1`."""
    return jax.numpy.take(x, index, axis=0, mode="clip")


def scatter_rows(variable, index, rows):
    """Sets `variable[index] = rows`; a compiled step does it in O(rows).

    Rows outside the variable are left out, as on an accelerator.
    """
    # A negative index would count from the end.
    index = jax.numpy.where(index < 0, variable.shape[0], index)
    rows = keras.ops.cast(rows, variable.dtype)
    variable.assign(variable.value.at[index].set(rows, mode="drop"))


def compiled(function, variables=(), jit_compile=True):
    """Returns `function`, compiled.

    Args:
        function: Function of tensors.
        variables: The Keras variables that it reads. Their values at each
            call count; those of any other variable are frozen at the first.
        jit_compile: Ignored: JAX compiles always.
    """
    variables = list(variables)

    @jax.jit
    def run(values, arguments):
        mapping = list(zip(variables, values))
        with keras.StatelessScope(state_mapping=mapping):
            return function(*arguments)

    def call(*arguments):
        arguments = placement.beside(variables, arguments)
        return run([v.value for v in variables], arguments)

    return call


def device_memory():
    """Returns the bytes of a device's memory; None on a CPU."""
    stats = jax.local_devices()[0].memory_stats()
    return stats.get("bytes_limit") if stats else None


def gpu_names():
    """Returns the names of this machine's GPUs that JAX can use."""
    return [d.device_kind for d in jax.local_devices() if d.platform == "gpu"]


def set_random_seed(seed):
    """Seeds Python and numpy: a model's initial weights.

    Keras's own function would load TensorFlow for it, where it is installed.
    """
    random.seed(seed)
    np.random.seed(seed)


def make_deterministic():
    """Makes operations deterministic on a GPU too; slower."""
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_deterministic_ops=true"


def save_served_model(network, path, image_shape, class_names=None):
    """Writes `network` as a SavedModel, with TensorFlow's own process.

    See the TensorFlow backend's function of the same name.

    Raises:
        EnvironmentLacksError: If TensorFlow is not installed.
    """
    if importlib.util.find_spec("tensorflow") is None:
        raise EnvironmentLacksError(
            "A SavedModel is written by TensorFlow, which is not installed "
            "here. Keep the run folder, or model.keras, and export where it "
            "is: python -m alim_keras.export RUN_FOLDER."
        )
    save_in_tensorflow(network, path, image_shape, class_names)
