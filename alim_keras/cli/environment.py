"""What must be so in the process before TensorFlow is loaded."""

import contextlib
import importlib
import os
import signal
import sys
import tempfile
import threading

# oneDNN: TensorFlow leaves it off on processors without AVX-512 VNNI or AMX,
# where it still makes a ResNet step about a third faster. It changes results
# in the last digits, so it is set by the commands only, never by the library.
_FAST = {"TF_ENABLE_ONEDNN_OPTS": "1"}
# On a machine without a GPU even level 2 complains that CUDA does not start.
# What really fails is raised as an exception at any level.
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}
# JAX's workers end with a stack trace when one of them is lost, unless even
# that is hushed; the JAX backend then says it in a line.
_WORKERS_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "4"}


def prepare_environment(backend=None, verbose=False):
    """Sets the environment variables of a command; the user's values win.

    It has an effect only before the first import of `keras`.

    Args:
        backend: String or `None`. The Keras backend that was asked for; it
            replaces KERAS_BACKEND, since a flag is the stronger wish.
        verbose: Whether TensorFlow's own log is to be seen.
    """
    if backend is not None:
        os.environ["KERAS_BACKEND"] = backend
    wanted = dict(_FAST)
    if not verbose:
        on_jax = os.environ.get("KERAS_BACKEND") == "jax"
        is_worker = on_jax and "JAX_COORDINATOR_ADDRESS" in os.environ
        wanted.update(_WORKERS_QUIET if is_worker else _QUIET)
    for name, value in wanted.items():
        os.environ.setdefault(name, value)


def load_keras(backend=None, verbose=False):
    """Imports Keras and its backend without their chatter on stderr.

    Args:
        backend: String or `None`. The Keras backend that was asked for.
        verbose: Whether the chatter is to be seen.

    Raises:
        ConfigError: If Keras runs on another backend already.
    """
    if verbose or "keras" in sys.modules:
        import keras
    else:
        # TensorFlow's first messages come before it reads any log level.
        with interrupts_kept(), _hushed_stderr():
            import keras

            # Keras loads it on any backend, if installed, once a layer is
            # copied; here its chatter is kept.
            with contextlib.suppress(ImportError):
                importlib.import_module("tensorflow")
    running = keras.config.backend()
    if backend not in (None, running):
        from alim_keras.errors import ConfigError

        raise ConfigError(
            f"Keras was loaded with another backend, {running}, before the "
            f"flag was read; set KERAS_BACKEND={backend} before this process "
            f"starts. Received: --backend={backend}"
        )


@contextlib.contextmanager
def interrupts_kept():
    """Raises an interrupt of the block only after the block.

    While TensorFlow is imported Ctrl-C is sometimes swallowed.

    Raises:
        KeyboardInterrupt: After the block, if Ctrl-C was pressed in it.
    """
    is_main = threading.current_thread() is threading.main_thread()
    usual = signal.default_int_handler
    if not is_main or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return
    pressed = []
    signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if pressed:
        raise KeyboardInterrupt


@contextlib.contextmanager
def _hushed_stderr():
    """Keeps what C++ code writes to stderr; shows it if an error is raised."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as kept:
        try:
            stderr = os.dup(2)
        except OSError:
            # Closed by whoever started the process: nothing to keep quiet.
            yield
            return
        os.dup2(kept.fileno(), 2)
        failed = True
        try:
            yield
            failed = False
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            if failed:
                kept.seek(0)
                os.write(2, kept.read())
