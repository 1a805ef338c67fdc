"""The process of a command: environment, signals, warnings and exit code."""

import contextlib
import importlib
import os
import signal
import sys
import textwrap
import traceback
import warnings

import alim_keras
from alim_keras import errors

_UNEXPECTED, _INTERRUPTED = 1, 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LONGEST_QUOTE = 300


def run(command, main, arguments=None, keras=True):
    """Calls `main` with the `Line` of a `cli.Command`; returns the exit code.

    That is what `main` returns, None for 0. What needs Keras is imported inside
    `main`, so that `--help` and a wrong flag answer at once; `keras` says
    whether Keras is imported before. `arguments` default to `sys.argv[1:]`.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    # Known before the line is parsed, for an error in the parsing itself.
    verbose = "--verbose" in arguments
    name = f"alim_keras.{command.name}"
    try:
        with _signals_to(_interrupt), _plain_warnings(name):
            line = command.parse(arguments)
            values, verbose = line.values, line.values["verbose"]
            text = ""
            if values["help"] or values["helpfull"]:
                text = command.help(values["helpfull"])
            elif values["version"]:
                text = f"alim_keras {alim_keras.__version__}\n"
            elif values["print_config"]:
                text = line.describe()
            if text:
                print(text, end="", flush=True)
                return 0
            is_asked = line.origins.get("backend", "default") != "default"
            set_environment(values["backend"] if is_asked else None, verbose)
            if keras:
                import_keras(verbose)
            return main(line) or 0
    except BrokenPipeError:
        # A reader of stdout left early. Python would complain at its own end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Exception, KeyboardInterrupt) as error:
        code, message = explain(error, verbose)
        if verbose:
            traceback.print_exception(error)
        report(name, message)
        return code


def explain(error, verbose=False):
    """Returns the exit code and the one line for an exception."""
    if isinstance(error, KeyboardInterrupt):
        text = "interrupted; the same command goes on, or begins anew"
        return _INTERRUPTED, text
    if not isinstance(error, errors.AlimError):
        # tf.data hands on the text of an error only.
        error = errors.original(error) or error
    if isinstance(error, errors.AlimError):
        return error.exit_code, f"error: {_joined(error)}"
    lacks, kind = errors.EnvironmentLacksError.exit_code, type(error).__name__
    # The frameworks' messages run to pages.
    quote = textwrap.shorten(str(error), _LONGEST_QUOTE, placeholder=" ...")
    # By name: JAX has no class for it, and TensorFlow may not be loaded.
    is_full = kind == "ResourceExhaustedError" or "RESOURCE_EXHAUSTED" in quote
    if is_full or isinstance(error, MemoryError):
        hint = "A smaller --batch_size, --queue_size or --width needs less."
        return lacks, f"error: out of memory. {hint} ({quote})"
    package = (getattr(error, "name", None) or "alim_keras").split(".")[0]
    if isinstance(error, ModuleNotFoundError) and package != "alim_keras":
        # JAX is a user's choice and stands in no requirement.
        wanted = "jax" if package == "jax" else "-r requirements.txt"
        hint = f"python -m pip install {wanted}"
        return lacks, f"error: the package {package} is not installed: {hint}"
    if isinstance(error, OSError) and error.strerror:
        path = f": {error.filename}" if error.filename else ""
        is_missing = isinstance(error, FileNotFoundError)
        code = errors.DataError.exit_code if is_missing else lacks
        return code, f"error: {error.strerror}{path}"
    hint = "" if verbose else " (--verbose shows the traceback)"
    return _UNEXPECTED, f"unexpected error: {kind}: {quote}{hint}"


def _joined(error):
    return " ".join(str(error).split())


def report(name, line):
    """Prints a line on stderr, after what stdout has so far."""
    sys.stdout.flush()
    print(f"{name}: {line}", file=sys.stderr, flush=True)


def set_environment(backend=None, verbose=False):
    """Sets a command's environment variables, before Keras is imported.

    The user's own values win, but not over the flag --backend.
    """
    if backend is not None:
        os.environ["KERAS_BACKEND"] = backend
    # TensorFlow leaves oneDNN off on processors without AVX-512 VNNI or AMX,
    # where it still makes a ResNet step about a third faster. It changes
    # results in the last digits, so the library never sets it.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    if not verbose:
        # Without a GPU even level 2 complains that CUDA does not start. What
        # really fails is raised as an exception at any level.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def import_keras(verbose=False):
    """Imports Keras without the messages of TensorFlow's C++ on stderr."""
    # Ctrl-C is sometimes lost while TensorFlow is imported. A mask of this
    # thread would not do: others receive the signal then.
    received = []
    quiet = contextlib.nullcontext() if verbose else without_stderr()
    with _signals_to(lambda number, _: received.append(number)), quiet:
        importlib.import_module("keras")
        # Keras imports it on any backend, if installed, once a layer is copied.
        with contextlib.suppress(ImportError):
            importlib.import_module("tensorflow")
    if received:
        signal.raise_signal(received[0])


def _interrupt(*_):
    # A second Ctrl-C does not wait until the first is answered: files are
    # written whole or not at all.
    for number in _SIGNALS:
        signal.signal(number, lambda *_: os._exit(_INTERRUPTED))
    raise KeyboardInterrupt


@contextlib.contextmanager
def _signals_to(handler):
    """Lets a function handle Ctrl-C and SIGTERM in the block."""
    usual = {number: signal.signal(number, handler) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, before in usual.items():
            if signal.getsignal(number) is handler:
                signal.signal(number, before)


@contextlib.contextmanager
def without_stderr():
    """Drops what is written to stderr, also by C++ code."""
    sys.stderr.flush()
    stderr, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nothing)


def show_progress(done, total):
    """Writes how much is done on stderr, if a person can see it."""
    if sys.stderr.isatty():
        end = "\r" if done < total else "\n"
        print(f"{done:,} of {total:,}", end=end, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _plain_warnings(name):
    """Shows each warning as one line, without a place in code."""

    def show(message, *_, **__):
        report(name, f"warning: {_joined(message)}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
