"""What must be so in the process before TensorFlow is loaded."""

import contextlib
import os
import sys
import tempfile

# oneDNN: TensorFlow leaves it off on processors without AVX-512 VNNI or AMX,
# where it still makes a ResNet step about a third faster. It changes results
# in the last digits, so it is set by the commands only, never by the library.
_FAST = {"TF_ENABLE_ONEDNN_OPTS": "1"}
# On a machine without a GPU even level 2 complains that CUDA does not start.
# What really fails is raised as an exception at any level.
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}


def prepare_environment(backend=None, verbose=False):
    """Sets the environment variables of a command; the user's values win.

    It has an effect only before the first import of `keras`.

    Args:
        backend: String or `None`. The Keras backend that was asked for; it
            replaces KERAS_BACKEND, since a flag is the stronger wish.
        verbose: Whether TensorFlow's own log is to be seen.
    """
    wanted = _FAST if verbose else {**_FAST, **_QUIET}
    for name, value in wanted.items():
        os.environ.setdefault(name, value)
    if backend is not None:
        os.environ["KERAS_BACKEND"] = backend


def load_keras(verbose=False):
    """Imports Keras and its backend without their chatter on stderr.

    Args:
        verbose: Whether the chatter is to be seen.
    """
    if verbose or "keras" in sys.modules:
        import keras  # noqa: F401
    else:
        # TensorFlow's first messages come before it reads any log level.
        with _hushed_stderr():
            import keras  # noqa: F401


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
