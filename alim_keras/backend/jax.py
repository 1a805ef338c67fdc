"""JAX: the gradient step as a pure function, devices, worker processes.

A step sees the global batch, however many devices share it: the sharding is
the compiler's business, so collectives are the identity here.
"""

import atexit
import contextlib
import os
import random
import sys
import zlib

import jax
import keras
import numpy as np
from jax.sharding import Mesh
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

from alim_keras import errors
from alim_keras.backend.phases import Phases

# JAX has no 64-bit integers unless it is told to.
INTEGER = "int32"
# Seconds until a process that is silent, but not known to be gone, is lost.
_SILENCE = 20
# Words in the errors that are raised when another process is gone.
_LOST = (
    *("gloo", "nccl", "coordination service", "coordination_service"),
    *("heartbeat", "socket closed", "connection reset"),
)


def process():
    """Returns this process's number, and how many there are."""
    return jax.process_index(), jax.process_count()


class Devices:
    """The devices of a step: variables lie whole on each, batches are cut."""

    # That of the scope of `make_strategy("multi_worker")`, or None.
    of_workers = None

    def __init__(self, mesh):
        self.whole = NamedSharding(mesh, PartitionSpec())
        self.rows = NamedSharding(mesh, PartitionSpec(mesh.axis_names[0]))

    def spread(self, state):
        """Returns a state's arrays on all devices of all processes."""

        def place(array):
            if array.sharding == self.whole:
                return array
            return jax.make_array_from_process_local_data(self.whole, array)

        return jax.tree.map(place, state)

    def cut(self, batch, shares):
        """Returns a batch, of which a process has a share, cut into rows."""

        def place(leaf):
            # What is not even, each device computes whole: correct, but slow.
            is_even = leaf.shape[0] * shares % self.rows.num_devices == 0
            sharding = self.rows if is_even else self.whole
            if shares == jax.process_count():
                return jax.make_array_from_process_local_data(sharding, leaf)
            return jax.make_array_from_callback(
                leaf.shape, sharding, leaf.__getitem__
            )

        return jax.tree.map(place, batch)


class Trainer(Phases):
    """The gradient step around `PartialLabelModel.training_loss`.

    A model that is made under a `keras.distribution.DataParallel`, or in the
    scope of `make_strategy`, trains on its devices. It places the batches
    itself: Keras refuses one that cannot be cut evenly. Between the steps the
    variables are arrays of their process: `predict` and `save` do not wait.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._devices = Devices.of_workers
        distribution = keras.distribution.distribution()
        if distribution is not None:
            self._devices = Devices(distribution.device_mesh.backend_mesh)

    def train_step(self, state, data):
        trainable, non_trainable, optimizer, metrics = state
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        changing = self.non_trainable_variables + self.metrics_variables
        variables = self.trainable_variables + changing
        before = (*non_trainable, *metrics)

        def loss_of(trainable):
            everything = variables + self.optimizer.variables
            mapping = list(zip(everything, (*trainable, *before, *optimizer)))
            with keras.StatelessScope(mapping, collect_losses=True) as scope:
                loss, *rest = self.training_loss(x, y, sample_weight)
                loss = self.optimizer.scale_loss(loss + self.regularisation())
            return loss, (*rest, _values(scope, changing, before))

        gradient = jax.grad(loss_of, has_aux=True)
        gradients, (probabilities, batch, changed) = gradient(trainable)
        trainable, optimizer = self.optimizer.stateless_apply(
            optimizer, gradients, trainable
        )
        mapping = list(zip(variables, (*trainable, *changed)))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            self.after_step(batch)
            logs = self.compute_metrics(x, y, probabilities, sample_weight)
        changed = _values(scope, changing, changed)
        count = len(self.non_trainable_variables)
        state = trainable, changed[:count], optimizer, changed[count:]
        if self._devices is not None:
            # The compiler might leave the queue in parts.
            state = jax.lax.with_sharding_constraint(state, self._devices.whole)
        return logs, state

    def fit(self, x=None, *args, **kwargs):
        if jax.process_count() > 1 and self._devices is not None:
            self._check_workers(x)
        with self._running():
            return super().fit(x, *args, **kwargs)

    def make_train_function(self, force=False):
        if force or self.train_function is None:
            super().make_train_function(force)
            shares = jax.process_count()
            self.train_function = self._placed(self.train_function, shares)

    def make_test_function(self, force=False):
        if force or self.test_function is None:
            super().make_test_function(force)
            self.test_function = self._placed(self.test_function)

    def make_predict_function(self, force=False):
        if force or self.predict_function is None:
            super().make_predict_function(force)
            # Each process that calls `predict` predicts everything.
            if jax.process_count() == 1:
                self.predict_function = self._placed(self.predict_function)

    def jax_state_sync(self):
        super().jax_state_sync()
        if self._devices is not None and jax.process_count() > 1:
            optimizer = self.optimizer.variables if self.optimizer else []
            for v in self.variables + optimizer + self.metrics_variables:
                v.assign(v.value.addressable_data(0))

    def _placed(self, function, shares=1):
        """Returns a step's function that places its state and its batches."""
        devices = self._devices
        if devices is None:
            return function

        def run(state, iterator):
            batches = (devices.cut(batch, shares) for batch in iterator)
            return function(devices.spread(state), batches)

        return run

    @contextlib.contextmanager
    def _running(self):
        """Keeps Keras from placing the batches; ends with a lost worker."""
        distribution = keras.distribution.distribution()
        keras.distribution.set_distribution(None)
        try:
            yield
        except BaseException as error:
            if jax.process_count() > 1:
                _end_alone(error)
            raise
        finally:
            keras.distribution.set_distribution(distribution)

    def _check_workers(self, data):
        """Raises unless this process's data and initial weights fit."""
        share = getattr(data, "share", None)
        if share != process():
            raise errors.ConfigError(
                "A process trains on its part of each batch: train_dataset("
                f"..., shard={process()}). Received: shard={share}"
            )
        digests = [zlib.crc32(v.numpy()) >> 1 for v in self.trainable_variables]
        if np.ptp(gather_processes(digests), axis=0).any():
            raise errors.ConfigError(
                "The workers begin with different weights: seed all alike, by "
                "alim_keras.backend.set_random_seed, before the model is made."
            )


def _values(scope, variables, before):
    values = [scope.get_current_value(v) for v in variables]
    return [b if v is None else v for v, b in zip(values, before)]


def num_replicas():
    """Returns 1: a step sees the whole batch."""
    return 1


def all_gather(*tensors):
    """Returns the tensor, or a list of several: they are global already."""
    return tensors[0] if len(tensors) == 1 else list(tensors)


def first_row(size):
    """Returns 0."""
    return 0


# Worker processes.


def join_workers():
    """Joins the other processes and returns once all are there.

    JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID name them,
    except where JAX finds them by itself (Slurm, Open MPI, Kubernetes, TPU).
    """
    if jax.distributed.is_initialized():
        return
    address = os.environ.get("JAX_COORDINATOR_ADDRESS")
    # Its handler would take SIGTERM from the process.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        given = [
            int(os.environ[name]) if name in os.environ else None
            for name in ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID")
        ]
        jax.distributed.initialize(
            address,
            *given,
            cluster_detection_method="deactivate" if address else None,
            heartbeat_timeout_seconds=_SILENCE,
            shutdown_timeout_seconds=_SILENCE,
        )
    except (ValueError, TypeError, IndexError) as error:
        raise errors.EnvironmentLacksError(
            "--distribute=multi_worker needs to know the workers: set, in "
            "every process, for example JAX_COORDINATOR_ADDRESS=host0:12345 "
            f"JAX_NUM_PROCESSES=2 JAX_PROCESS_ID=0. (JAX: {error})"
        ) from error
    except jax.errors.JaxRuntimeError as error:
        raise errors.EnvironmentLacksError(
            f"This worker could not join the others at {address}: start all "
            "within five minutes, where they can reach the first."
        ) from error
    if jax.local_device_count() > 1:
        raise errors.ConfigError(
            "--distribute=multi_worker runs one process for each device: let "
            "CUDA_VISIBLE_DEVICES name one in each. Received: "
            f"{jax.local_device_count()} devices in this process"
        )


def gather_processes(values):
    """Returns integers below 2**31 of all processes, which wait, as rows."""
    from jax.experimental import multihost_utils

    values = np.asarray([values], "int32")
    return multihost_utils.process_allgather(values, tiled=True)


def _end_alone(error):
    """Makes this process end at once; raises if another one was lost.

    JAX would wait for the others, and they for this one. Where the first
    worker is gone JAX itself aborts the others.
    """
    is_lost = _is_loss(error)
    is_interrupt = isinstance(error, KeyboardInterrupt)
    code = getattr(error, "exit_code", 130 if is_interrupt else 1)
    kind = errors.EnvironmentLacksError
    atexit.register(_leave, kind.exit_code if is_lost else code)
    if is_lost:
        raise kind(
            f"Worker {jax.process_index()} of {jax.process_count()} lost "
            "another worker, which ended, was killed or cannot be reached; "
            "see its own output. The same command, on all workers, continues "
            "from the last finished epoch."
        ) from error


def _is_loss(error):
    while error is not None:
        # By their text: gloo's come as ValueError.
        is_of_jax = isinstance(error, (jax.errors.JaxRuntimeError, ValueError))
        if is_of_jax and any(word in str(error).lower() for word in _LOST):
            return True
        error = error.__context__
    return False


def _leave(code):
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def gather_rows(x, index):
    """Returns `x[index]` of a tensor or a Keras variable."""
    return keras.ops.take(x, index, axis=0)


def scatter_rows(variable, index, rows):
    """Sets `variable[index] = rows`; rows outside are left out."""
    # A negative index would count from the end.
    index = jax.numpy.where(index < 0, variable.shape[0], index)
    rows = keras.ops.cast(rows, variable.dtype)
    variable.assign(variable.value.at[index].set(rows, mode="drop"))


# XLA makes one pass of what Keras does one by one.
normalise_batch = None


def compiled(function, variables=(), jit_compile=True):
    """Returns a function of tensors, compiled: always, on JAX.

    A variable that is not named here is frozen at the first call.
    """
    variables = list(variables)

    @jax.jit
    def run(values, arguments):
        mapping = list(zip(variables, values))
        with keras.StatelessScope(state_mapping=mapping):
            return function(*arguments)

    return lambda *arguments: run([v.value for v in variables], arguments)


def make_strategy(name, replicas=None):
    """As on TensorFlow; a model that was made in the scope keeps its devices.

    `"multi_worker"` trains on one device of each process, see `join_workers`.
    """
    if name == "none":
        return contextlib.nullcontext(), 1
    if name == "multi_worker":
        join_workers()
        return _worker_scope(), jax.device_count()
    if replicas and "device_count" not in os.environ.get("XLA_FLAGS", ""):
        # Too late in this process: the count of devices decides.
        with contextlib.suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", replicas)
    devices = jax.local_devices()
    if replicas and replicas > len(devices):
        raise errors.ConfigError(
            f"--distribute=mirrored found {len(devices)} "
            f"{devices[0].platform.upper()} device(s). Ask for at most that "
            "many; a CPU is split by XLA_FLAGS="
            f"--xla_force_host_platform_device_count={replicas}. "
            f"Received: replicas={replicas}"
        )
    devices = devices[:replicas]
    distribution = keras.distribution.DataParallel(
        devices=[f"{d.platform}:{d.id}" for d in devices]
    )
    return distribution.scope(), len(devices)


@contextlib.contextmanager
def _worker_scope():
    devices = sorted(jax.devices(), key=lambda d: d.process_index)
    Devices.of_workers = Devices(Mesh(np.array(devices), ("batch",)))
    try:
        yield
    finally:
        Devices.of_workers = None


def device_memory():
    """Returns the bytes of a device's memory; None on a CPU."""
    stats = jax.local_devices()[0].memory_stats()
    return stats.get("bytes_limit") if stats else None


def gpu_names():
    """Returns the names of this machine's GPUs that JAX can use."""
    return [d.device_kind for d in jax.local_devices() if d.platform == "gpu"]


def set_random_seed(seed):
    """Seeds Python and numpy: a model's initial weights."""
    # Keras's own function would load TensorFlow, where it is installed.
    random.seed(seed)
    np.random.seed(seed)


def save_served_model(network, path, image_shape, class_names=None):
    """Raises EnvironmentLacksError: it names the way through TensorFlow."""
    raise errors.EnvironmentLacksError(
        "A SavedModel is written by Keras on TensorFlow. For a run: python -m "
        "alim_keras.export RUN_FOLDER. For a model: save it as model.keras, "
        "load it with KERAS_BACKEND=tensorflow, and export it there."
    )
