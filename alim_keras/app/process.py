"""The process of a command: environment, signals, warnings and exit code."""

import contextlib
import importlib
import os
import signal
import sys
import tempfile
import threading
import traceback
import warnings

import alim_keras
from alim_keras.errors import AlimError
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import DataWarning
from alim_keras.errors import EnvironmentLacksError
from alim_keras.errors import original

# oneDNN: TensorFlow leaves it off on processors without AVX-512 VNNI or AMX,
# where it still makes a ResNet step about a third faster. It changes results
# in the last digits, so it is set by the commands only, never by the library.
_FAST = {"TF_ENABLE_ONEDNN_OPTS": "1"}
# On a machine without a GPU even level 2 complains that CUDA does not start.
# What really fails is raised as an exception at any level.
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}
_UNEXPECTED, _INTERRUPTED = 1, 130
_LONGEST_QUOTE = 300


def run(command, main, arguments=None, keras=True):
    """Runs a command and returns its exit code.

    Args:
        command: A `Command`.
        main: Function of the `Line`; it returns `None` or an exit code. What
            needs Keras is imported inside it, so that `--help`,
            `--print_config` and a wrong flag answer at once.
        arguments: List of strings. Defaults to `sys.argv[1:]`.
        keras: Whether Keras is imported before `main`. Defaults to `True`.

    Returns:
        0 done; 1 unexpected error; 2 bad flag or configuration; 3 bad data; 4
        training became non-finite; 5 checkpoint does not fit; 6 the
        environment lacks something; 130 interrupted.
    """
    if arguments is None:
        arguments = sys.argv[1:]
    # Known before the line is parsed, for an error in the parsing itself.
    verbose = "--verbose" in arguments
    try:
        with interrupts_raised():
            line = command.parse(arguments)
            values, verbose = line.values, line.values["verbose"]
            if values["help"] or values["helpfull"]:
                return _print(command.help(values["helpfull"]))
            if values["version"]:
                return _print(f"alim_keras {alim_keras.__version__}\n")
            for warning in line.warnings:
                _report(command, f"warning: {warning}")
            if values["print_config"]:
                return _print(line.describe())
            backend = None
            if line.origins.get("backend", "default") != "default":
                backend = values["backend"]
            set_environment(backend, verbose)
            with _plain_warnings(command):
                if keras:
                    import_keras(backend, verbose)
                return main(line) or 0
    except KeyboardInterrupt as error:
        code, failure = _INTERRUPTED, error
        message = "interrupted; the same command continues the work."
    except Exception as error:
        code, message = explain(error, verbose)
        failure = error
    if verbose:
        traceback.print_exception(failure)
    _report(command, message)
    return code


def explain(error, verbose=False):
    """Returns the exit code and the one line for an exception.

    Args:
        error: The exception.
        verbose: Whether the traceback is shown too.
    """
    if not isinstance(error, AlimError):
        # tf.data hands on the text of an error only.
        error = original(error) or error
    if isinstance(error, AlimError):
        return error.exit_code, f"error: {_one_line(error)}"
    lacks = EnvironmentLacksError.exit_code
    # By name: JAX has no class for it, and TensorFlow may not be loaded.
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in (
        f"{error} {type(error).__name__}".replace(
            "ResourceExhaustedError", "RESOURCE_EXHAUSTED"
        )
    ):
        return lacks, (
            "error: out of memory. A smaller --batch_size, --queue_size or "
            f"--width needs less. ({_quote(error)})"
        )
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.split(".")[0]
        if package != "alim_keras":
            # JAX is a user's choice and stands in no requirement.
            wanted = "jax" if package == "jax" else "-r requirements.txt"
            return lacks, (
                f"error: the package {package} is not installed: "
                f"python -m pip install {wanted}"
            )
    if isinstance(error, OSError) and error.strerror:
        missing = isinstance(error, FileNotFoundError)
        place = f": {error.filename}" if error.filename else ""
        code = DataError.exit_code if missing else lacks
        return code, f"error: {error.strerror}{place}"
    hint = "" if verbose else " (--verbose shows the traceback)"
    kind = type(error).__name__
    return _UNEXPECTED, f"unexpected error: {kind}: {_quote(error)}{hint}"


def set_environment(backend=None, verbose=False):
    """Sets the environment variables of a command; the user's values win.

    It has an effect only before the first import of `keras`.

    Args:
        backend: String or `None`. The Keras backend that was asked for; it
            replaces KERAS_BACKEND, since a flag is the stronger wish.
        verbose: Whether TensorFlow's own log is to be seen.
    """
    if backend is not None:
        os.environ["KERAS_BACKEND"] = backend
    for name, value in {**_FAST, **({} if verbose else _QUIET)}.items():
        os.environ.setdefault(name, value)


def import_keras(backend=None, verbose=False):
    """Imports Keras without the messages of TensorFlow's C++ on stderr.

    Args:
        backend: String or `None`. The Keras backend that was asked for.
        verbose: Whether the messages are to be seen.

    Raises:
        ConfigError: Keras runs on another backend already.
    """
    if "keras" not in sys.modules:
        # TensorFlow's first messages come before it reads any log level.
        quiet = contextlib.nullcontext() if verbose else _without_stderr()
        with interrupts_deferred(), quiet:
            importlib.import_module("keras")
            # Keras imports it on any backend, if installed, once a layer is
            # copied.
            with contextlib.suppress(ImportError):
                importlib.import_module("tensorflow")
    running = sys.modules["keras"].config.backend()
    if backend not in (None, running):
        raise ConfigError(
            f"Keras was loaded with another backend, {running}, before the "
            f"flag was read; set KERAS_BACKEND={backend} before this process "
            f"starts. Received: --backend={backend}"
        )


class _Signals:
    """Whether a signal may interrupt now, and whether one came."""

    deferred = False
    received = False


def _on_signal(*_):
    if _Signals.received and not _Signals.deferred:
        # A second Ctrl-C while the first is answered: files are written whole
        # or not at all, so the process may end at any point.
        os._exit(_INTERRUPTED)
    _Signals.received = True
    if not _Signals.deferred:
        raise KeyboardInterrupt


@contextlib.contextmanager
def interrupts_raised():
    """Raises `KeyboardInterrupt` in the block for Ctrl-C and SIGTERM."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {
        number: signal.signal(number, _on_signal)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    _Signals.received = False
    try:
        yield
    finally:
        # After an interrupt the process is about to end: another one must
        # not show a traceback.
        if not _Signals.received:
            for number, handler in usual.items():
                signal.signal(number, handler)


@contextlib.contextmanager
def interrupts_deferred():
    """Raises an interrupt of the block only after the block.

    While TensorFlow is imported Ctrl-C is sometimes swallowed.
    """
    _Signals.deferred = True
    try:
        yield
    finally:
        _Signals.deferred = False
    if _Signals.received:
        raise KeyboardInterrupt


@contextlib.contextmanager
def _without_stderr():
    """Keeps what C++ code writes to stderr; shows it if an error is raised."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as kept:
        try:
            stderr = os.dup(2)
        except OSError:
            # stderr is closed: there is nothing to keep quiet.
            yield
            return
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            kept.seek(0)
            os.write(stderr, kept.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


@contextlib.contextmanager
def progress_bar(text):
    """Gives a function of (done, total) that draws a bar on a terminal.

    Yields:
        The function, or None if stderr is no terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    # Keras brings it along.
    from rich import console
    from rich import progress

    with progress.Progress(
        console=console.Console(stderr=True), transient=True
    ) as drawn:
        task = drawn.add_task(text, total=None)
        yield lambda done, total: drawn.update(
            task, completed=done, total=total
        )


@contextlib.contextmanager
def _plain_warnings(command):
    """Shows warnings about data as one line each, without a place in code."""
    usual, shown = warnings.showwarning, set()

    def show(message, category, *place, **more):
        if not issubclass(category, DataWarning):
            usual(message, category, *place, **more)
        elif str(message) not in shown:
            shown.add(str(message))
            _report(command, f"warning: {_one_line(message)}")

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


def _one_line(error):
    return " ".join(str(error).split())


def _quote(error):
    # The frameworks' messages run to pages.
    text_ = _one_line(error)
    if len(text_) > _LONGEST_QUOTE:
        text_ = f"{text_[:_LONGEST_QUOTE]} ..."
    return text_


def _report(command, line):
    sys.stdout.flush()
    print(f"alim_keras.{command.name}: {line}", file=sys.stderr, flush=True)


def _print(content):
    try:
        sys.stdout.write(content)
        sys.stdout.flush()
    except BrokenPipeError:
        # A pager that was closed early; Python would complain at its own end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
