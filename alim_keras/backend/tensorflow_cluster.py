"""TensorFlow: devices, worker processes, and what a lost worker looks like."""

import contextlib
import functools
import json
import os

import numpy as np
import tensorflow as tf
from tensorflow.python.saved_model import save_context

from alim_keras.errors import ConfigError
from alim_keras.errors import EnvironmentLacksError

_EXAMPLE = (
    '{"cluster": {"worker": ["host0:12345", "host1:12345"]}, '
    '"task": {"type": "worker", "index": 0}}'
)
# What collectives raise when a process is gone: its connection broke, or the
# coordination service missed its heartbeats for ten seconds.
_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.DeadlineExceededError,
)


def make_strategy(name, replicas=None):
    """Returns a strategy's scope for `--distribute`, and its replica count.

    It comes first in a process: TensorFlow sets devices and worker processes
    up once, with its first operation.

    Args:
        name: `"none"`, `"mirrored"` or `"multi_worker"`. The last needs
            TF_CONFIG in the environment, runs one replica in each process and
            returns once all processes are there.
        replicas: How many devices `"mirrored"` uses. Defaults to all GPUs, or
            the one CPU. More than one on a CPU splits it into logical
            devices.

    Returns:
        A pair: a context manager and the number of replicas.

    Raises:
        ConfigError: If `replicas` or TF_CONFIG do not fit.
        EnvironmentLacksError: If TF_CONFIG is missing.
    """
    if name == "none":
        return contextlib.nullcontext(), 1
    if name == "multi_worker":
        strategy = _multi_worker()
        return strategy.scope(), strategy.num_replicas_in_sync
    gpus = tf.config.list_physical_devices("GPU")
    kind = "GPU" if gpus else "CPU"
    if not gpus and replicas and replicas > 1:
        _split_cpu(replicas)
    devices = [d.name for d in tf.config.list_logical_devices(kind)]
    if replicas and replicas > len(devices):
        raise ConfigError(
            f"--distribute=mirrored found {len(devices)} {kind} device(s). "
            f"Ask for at most that many. Received: replicas={replicas}"
        )
    devices = devices[:replicas] if replicas else devices
    return _mirrored(tuple(devices)).scope(), len(devices)


def _split_cpu(replicas):
    cpu = tf.config.list_physical_devices("CPU")[0]
    # Too late in this process: the count of devices decides.
    with contextlib.suppress(RuntimeError, ValueError):
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * replicas
        )
        # The replicas share the process's threads. With all cores for each
        # operation they would get in each other's way.
        if "TF_NUM_INTRAOP_THREADS" not in os.environ:
            cores = os.cpu_count() or 1
            tf.config.threading.set_intra_op_parallelism_threads(
                max(1, cores // replicas)
            )
        if "TF_NUM_INTEROP_THREADS" not in os.environ:
            tf.config.threading.set_inter_op_parallelism_threads(replicas)


@functools.cache
def _mirrored(devices):
    """One strategy per list of devices: two in a process would clash.

    TensorFlow numbers its collective operations process-wide.
    """
    return tf.distribute.MirroredStrategy(devices)


@functools.cache
def _multi_worker():
    cluster_from_environment()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    if len(strategy.extended.worker_devices) > 1:
        raise ConfigError(
            "--distribute=multi_worker runs one process for each GPU. Let "
            "CUDA_VISIBLE_DEVICES name one in each process, and TF_CONFIG all "
            "processes. Received: "
            f"{len(strategy.extended.worker_devices)} GPUs in this process"
        )
    return strategy


def cluster_from_environment():
    """Reads TF_CONFIG; returns this process's number and how many there are.

    Raises:
        ConfigError: If TF_CONFIG does not describe a cluster of workers.
        EnvironmentLacksError: If it is not set.
    """
    text = os.environ.get("TF_CONFIG")
    if not text:
        raise EnvironmentLacksError(
            "--distribute=multi_worker needs the environment variable "
            f"TF_CONFIG in every process, for example TF_CONFIG='{_EXAMPLE}'."
        )
    try:
        config = json.loads(text)
        cluster, task = config["cluster"], config["task"]
        chiefs, workers = cluster.get("chief", []), cluster.get("worker", [])
        kind, index = task["type"], int(task["index"])
        place = index if kind == "chief" else len(chiefs) + index
        count = len(chiefs) + len(workers)
        fits = kind in ("chief", "worker") and index < len(cluster[kind])
    except (KeyError, TypeError, ValueError, AttributeError):
        fits = False
    if not fits:
        raise ConfigError(
            "TF_CONFIG must name the workers' addresses and this process's "
            f"place among them, as in TF_CONFIG='{_EXAMPLE}'. Received: "
            f"TF_CONFIG={text!r}"
        )
    return place, count


def is_multi_worker(strategy):
    """Returns whether a strategy spans several processes."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy) and (
        strategy.num_replicas_in_sync > 1
    )


def _strategy():
    """The strategy of this process, also where its scope is not entered."""
    current = tf.distribute.get_strategy()
    if _multi_worker.cache_info().currsize and not is_multi_worker(current):
        return _multi_worker()
    return current


def process_index():
    """Returns the number of this process, from 0."""
    if is_multi_worker(_strategy()):
        return cluster_from_environment()[0]
    return 0


def process_count():
    """Returns how many processes train together."""
    if is_multi_worker(_strategy()):
        return cluster_from_environment()[1]
    return 1


def is_chief():
    """Returns whether this process is the one that writes files."""
    return process_index() == 0


def gather_processes(values):
    """Returns the integers that each process passes, as rows of an array.

    All processes must call it. It also makes them wait for each other.

    Args:
        values: List of n integers below 2**63.

    Returns:
        Array `(processes, n)`, int64.
    """
    values = np.asarray([values], "int64")
    strategy = _strategy()
    if not is_multi_worker(strategy):
        return values
    return strategy.gather(tf.constant(values), axis=0).numpy()


@contextlib.contextmanager
def watching_workers():
    """Turns what TensorFlow raises when a worker is lost into one line.

    Raises:
        EnvironmentLacksError: When another process ended or was cut off.
    """
    try:
        yield
    except _LOST as error:
        if process_count() == 1:
            raise
        raise EnvironmentLacksError(
            f"Worker {process_index()} of {process_count()} lost another "
            "worker, which ended, was killed or cannot be reached; see its "
            "own output. The same command, on all workers, continues from "
            "the last finished epoch."
        ) from error


@contextlib.contextmanager
def own_copies(strategy):
    """Lets one process read variables by itself, to save them.

    Metrics are summed over the processes when read, which would wait for the
    others for ever.
    """
    if not is_multi_worker(strategy):
        yield
        return
    with save_context.save_context(tf.saved_model.SaveOptions()):
        yield


def share_of_training(strategy, data):
    """Returns the data set of which `fit` shall train on each element.

    Args:
        strategy: The model's.
        data: A `tf.data.Dataset` of global batches, or of this process's
            shares of them if its attribute `share` says so.
    """
    if not is_multi_worker(strategy):
        return data
    _check_data(strategy, data)
    index, count = cluster_from_environment()
    if getattr(data, "share", (0, 1)) == (0, 1):

        def rows_of_this_worker(*batch):
            def part(x):
                share = tf.shape(x)[0] // count
                return x[index * share : (index + 1) * share]

            return tf.nest.map_structure(part, batch)

        data = data.map(rows_of_this_worker)
    elif data.share != (index, count):
        raise ConfigError(
            f"This process trains on part {index} of {count} of each batch. "
            f"Received: train_dataset(..., shard={data.share})"
        )
    return data


def share_of_evaluation(strategy, data):
    """Returns the batches that this process evaluates.

    Each takes every n-th batch; where there are fewer batches than processes
    all take all, since the metrics are means.
    """
    if not is_multi_worker(strategy):
        return data
    _check_data(strategy, data)
    index, count = cluster_from_environment()
    if int(data.cardinality()) >= count:
        data = data.shard(count, index)
    return data


@contextlib.contextmanager
def undistributed(strategy):
    """Keeps Keras from distributing data that are this process's share.

    `tf.distribute` would shard them once more, and would have the processes
    agree before every step on whether all have a batch left.
    """
    if not is_multi_worker(strategy):
        yield
        return
    name = "experimental_distribute_dataset"
    before = vars(strategy).get(name)
    setattr(strategy, name, lambda data, options=None: data)
    try:
        yield
    finally:
        # `fit` evaluates: what the outer call set must stay.
        if before is None:
            delattr(strategy, name)
        else:
            setattr(strategy, name, before)


def _check_data(strategy, data):
    if not isinstance(data, tf.data.Dataset):
        raise ConfigError(
            "With several workers data must be a tf.data.Dataset of global "
            "batches in the same order on all, such as that of "
            "alim_keras.data.train_dataset. Received: data of type "
            f"{type(data).__name__}"
        )
    if len(strategy.extended.worker_devices) > 1:
        raise ConfigError(
            "MultiWorkerMirroredStrategy needs one process for each GPU "
            "here; let CUDA_VISIBLE_DEVICES name one. Received: "
            f"{len(strategy.extended.worker_devices)} GPUs in this process"
        )
