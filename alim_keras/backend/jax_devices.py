"""JAX: devices, worker processes, and what a lost worker looks like."""

import atexit
import contextlib
import ctypes
import functools
import os
import signal
import sys
import tempfile
import time

import jax
import keras
import numpy as np

from alim_keras.errors import ConfigError
from alim_keras.errors import EnvironmentLacksError

_ADDRESS, _COUNT, _INDEX = (
    "JAX_COORDINATOR_ADDRESS",
    "JAX_NUM_PROCESSES",
    "JAX_PROCESS_ID",
)
_EXAMPLE = f"{_ADDRESS}=host0:12345 {_COUNT}=2 {_INDEX}=0"
# Seconds until a process that is silent, but not known to be gone, counts as
# lost; and what the first process, which all others are connected to, gives
# them to end by themselves.
_SILENCE = 20
_GRACE = 2.0
# What errors say when another process is gone.
_LOST = (
    "gloo",
    "nccl",
    "coordination service",
    "coordination_service",
    "heartbeat",
    "socket closed",
    "connection reset",
)


def make_strategy(name, replicas=None):
    """Returns a distribution's scope for `--distribute`, and replica count.

    It comes first in a process: JAX sets devices and worker processes up
    once, with its first operation. A model that was made in the scope keeps
    the distribution.

    Args:
        name: `"none"`, `"mirrored"` or `"multi_worker"`. The last needs
            JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID in
            the environment, except where JAX finds them by itself (Slurm,
            Open MPI, Kubernetes, TPU), uses all devices of all processes and
            returns once all processes are there.
        replicas: How many devices `"mirrored"` uses. Defaults to all. More
            than one on a CPU splits it into that many devices.

    Returns:
        A pair: a context manager and the number of replicas.

    Raises:
        ConfigError: If `replicas` or the environment do not fit.
        EnvironmentLacksError: If no coordinator is named, or it cannot be
            reached.
    """
    if name == "none":
        return contextlib.nullcontext(), 1
    if name == "multi_worker":
        _join_workers()
        return _data_parallel(jax.local_devices()).scope(), jax.device_count()
    _split_cpu(replicas)
    devices = jax.local_devices()
    if replicas and replicas > len(devices):
        raise ConfigError(
            f"--distribute=mirrored found {len(devices)} "
            f"{devices[0].platform.upper()} device(s). Ask for at most that "
            "many; a CPU is split by XLA_FLAGS="
            f"--xla_force_host_platform_device_count={replicas}. "
            f"Received: replicas={replicas}"
        )
    devices = devices[:replicas] if replicas else devices
    return _data_parallel(devices).scope(), len(devices)


def _data_parallel(devices):
    return keras.distribution.DataParallel(
        devices=[f"{d.platform}:{d.id}" for d in devices],
        auto_shard_dataset=False,
    )


def _split_cpu(replicas):
    flag = "xla_force_host_platform_device_count"
    if not replicas or flag in os.environ.get("XLA_FLAGS", ""):
        return
    # Too late in this process: the count of devices decides.
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", replicas)


def workers_from_environment():
    """Returns address of the first worker, their number and this one's.

    All are None where the environment names none of them: JAX may find them
    by itself.

    Raises:
        ConfigError: If it names some only, or what cannot be.
    """
    given = [os.environ.get(name) for name in (_ADDRESS, _COUNT, _INDEX)]
    if not any(given):
        return None, None, None
    try:
        address, count, index = given[0], int(given[1]), int(given[2])
        fits = ":" in address and 0 <= index < count
    except (TypeError, ValueError):
        fits = False
    if not fits:
        received = " ".join(
            f"{name}={value}"
            for name, value in zip((_ADDRESS, _COUNT, _INDEX), given)
        )
        raise ConfigError(
            "The environment must name the first worker's address, how many "
            "processes there are, and this one's number from 0, as in "
            f"{_EXAMPLE}. Received: {received}"
        )
    return address, count, index


@functools.cache
def _join_workers():
    address, count, index = workers_from_environment()
    # Its handler would take SIGTERM from the process.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            address,
            count,
            index,
            cluster_detection_method="deactivate" if address else None,
            heartbeat_timeout_seconds=_SILENCE,
            shutdown_timeout_seconds=_SILENCE,
        )
    except ValueError as error:
        raise EnvironmentLacksError(
            "--distribute=multi_worker needs to know the workers: set, in "
            f"every process, for example {_EXAMPLE}. (JAX: {error})"
        ) from error
    except jax.errors.JaxRuntimeError as error:
        raise EnvironmentLacksError(
            f"Worker {index} of {count} could not join the others at "
            f"{address}: all must be started within five minutes, and the "
            "first must be reached from all."
        ) from error
    if jax.process_count() > 1:
        _answer_abort()
        with _hushed_stdout():
            # Gloo reports its connections.
            gather_processes([0])


def process_index():
    """Returns the number of this process, from 0."""
    return jax.process_index()


def process_count():
    """Returns how many processes train together."""
    return jax.process_count()


def is_chief():
    """Returns whether this process is the one that writes files."""
    return jax.process_index() == 0


def gather_processes(values):
    """Returns the integers that each process passes, as rows of an array.

    All processes must call it. It also makes them wait for each other.

    Args:
        values: List of n integers below 2**31.

    Returns:
        Array `(processes, n)`.
    """
    values = np.asarray([values], "int32")
    if jax.process_count() == 1:
        return values
    from jax.experimental import multihost_utils

    return multihost_utils.process_allgather(values, tiled=True)


@contextlib.contextmanager
def watching_workers():
    """Turns what JAX raises when a worker is lost into one line.

    It also makes a process that fails end at once. JAX would have it wait for
    the others, and these for it.

    Raises:
        EnvironmentLacksError: When another process ended or was cut off.
    """
    try:
        yield
    except BaseException as error:
        if not jax.distributed.is_initialized() or jax.process_count() == 1:
            raise
        if _tells_of_loss(error):
            atexit.register(_leave, EnvironmentLacksError.exit_code)
            raise EnvironmentLacksError(_lost_line()) from error
        interrupted = isinstance(error, KeyboardInterrupt)
        code = getattr(error, "exit_code", 130 if interrupted else 1)
        atexit.register(_leave, code)
        raise


def _tells_of_loss(error):
    while error is not None:
        # By their text: gloo's come as ValueError.
        if isinstance(error, (jax.errors.JaxRuntimeError, ValueError)):
            text = str(error).lower()
            if any(word in text for word in _LOST):
                return True
        error = error.__context__
    return False


def _lost_line():
    return (
        f"Worker {jax.process_index()} of {jax.process_count()} lost another "
        "worker, which ended, was killed or cannot be reached; see its own "
        "output. The same command, on all workers, continues from the last "
        "finished epoch."
    )


def _leave(code):
    sys.stdout.flush()
    sys.stderr.flush()
    if is_chief():
        # It holds the service without which the others are aborted.
        time.sleep(_GRACE)
    os._exit(code)


def _answer_abort():
    """Says in one line why JAX aborts the process, which it does from C++.

    It does so when the first worker is gone, or a silent one is given up.
    """
    line = f"{_program()}: error: {_lost_line()} (--verbose: more)\n".encode()

    def answer(number):
        del number
        os.write(2, line)
        os._exit(EnvironmentLacksError.exit_code)

    # Python's own handlers run in the main thread, which may hang by then.
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(answer)
    _handlers.append(handler)
    ctypes.CDLL(None).signal(signal.SIGABRT, handler)


_handlers = []


def _program():
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec.name if spec else os.path.basename(sys.argv[0])


@contextlib.contextmanager
def _hushed_stdout():
    sys.stdout.flush()
    with tempfile.TemporaryFile() as sink:
        kept = os.dup(1)
        os.dup2(sink.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)
