"""JAX: worker processes, and the error of a lost worker."""

import atexit
import contextlib
import os
import sys

import jax
import numpy as np

from alim_keras.errors import ConfigError
from alim_keras.errors import EnvironmentLacksError

_EXAMPLE = (
    "JAX_COORDINATOR_ADDRESS=host0:12345 JAX_NUM_PROCESSES=2 JAX_PROCESS_ID=0"
)
# Seconds until a process that is silent, but not known to be gone, is lost.
_SILENCE = 20
# Words in the errors that are raised when another process is gone.
_LOST = (
    *("gloo", "nccl", "coordination service", "coordination_service"),
    *("heartbeat", "socket closed", "connection reset"),
)


def join_workers():
    """Joins the processes that the environment names; once in a process."""
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
        raise EnvironmentLacksError(
            "--distribute=multi_worker needs to know the workers: set, in "
            f"every process, for example {_EXAMPLE}. (JAX: {error})"
        ) from error
    except jax.errors.JaxRuntimeError as error:
        raise EnvironmentLacksError(
            f"This worker could not join the others at {address}: all must be "
            "started within five minutes, and the first must be reached from "
            "all."
        ) from error
    if jax.local_device_count() > 1:
        raise ConfigError(
            "--distribute=multi_worker runs one process for each device: let "
            "CUDA_VISIBLE_DEVICES name one in each. Received: "
            f"{jax.local_device_count()} devices in this process"
        )


def gather_processes(values):
    """Returns the integers that each process passes, as rows of an array.

    They are below 2**31. All processes must call it, and wait for each other.
    """
    values = np.asarray([values], "int32")
    if jax.process_count() == 1:
        return values
    from jax.experimental import multihost_utils

    return multihost_utils.process_allgather(values, tiled=True)


@contextlib.contextmanager
def watching_workers():
    """Turns an error of JAX about a lost worker into one line.

    A process that fails ends at once: JAX would wait for the others, and they
    for it. Where the first worker is gone JAX itself aborts the others.
    """
    try:
        yield
    except BaseException as error:
        if jax.process_count() == 1:
            raise
        if not _is_loss(error):
            is_interrupt = isinstance(error, KeyboardInterrupt)
            code = getattr(error, "exit_code", 130 if is_interrupt else 1)
            atexit.register(_leave, code)
            raise
        atexit.register(_leave, EnvironmentLacksError.exit_code)
        raise EnvironmentLacksError(
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
