"""Runs a command: parse, act, and end with the right exit code and line."""

import contextlib
import os
import shutil
import sys
import textwrap
import traceback
import warnings

from alim_keras.cli.environment import load_keras
from alim_keras.cli.environment import prepare_environment
from alim_keras.cli.settings import DEFAULT
from alim_keras.cli.settings import describe
from alim_keras.cli.settings import flag_text
from alim_keras.cli.settings import groups
from alim_keras.data.messages import DataWarning
from alim_keras.errors import AlimError
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError
from alim_keras.errors import original

_HELP = ("--help", "-help", "-h", "-?")
_UNEXPECTED = 1
_INTERRUPTED = 130
_LONGEST_QUOTE = 300


def run(command, main, arguments=None, keras=True):
    """Runs `main` with the settings that the command line gives.

    Args:
        command: A `Command`.
        main: Function of the `Settings`. Returns `None` or an exit code.
            What needs Keras is imported inside it, so that `--help`,
            `--print_config` and a wrong flag answer at once.
        arguments: List of strings. Defaults to `sys.argv[1:]`.
        keras: Whether Keras is loaded before `main`; else `main` calls
            `cli.load` when it needs it. Defaults to `True`.

    Returns:
        The exit code: 0 done; 1 unexpected error; 2 bad flag or
        configuration; 3 bad data; 4 training became non-finite; 5 checkpoint
        does not fit; 6 the environment lacks something; 130 interrupted.

    Example:

    ```python
    if __name__ == "__main__":
        sys.exit(cli.run(train_flags.COMMAND, main))
    ```
    """
    if arguments is None:
        arguments = sys.argv[1:]
    # Known before the line is parsed, for an error in the parsing itself.
    verbose = any(word in ("--verbose", "-verbose") for word in arguments)
    try:
        if any(word in _HELP for word in arguments):
            return _print(help_text(command))
        settings = command.parse(arguments)
        verbose = settings.verbose
        for warning in settings.warnings:
            _say(command, f"warning: {warning}")
        if settings.print_config:
            return _print(describe(settings))
        with _plain_warnings(command):
            if keras:
                load(settings)
            return main(settings) or 0
    except KeyboardInterrupt:
        if verbose:
            traceback.print_exc()
        _say(command, "interrupted; the same command continues the work.")
        return _INTERRUPTED
    except Exception as error:
        if verbose:
            traceback.print_exc()
        code, line = explain(error, verbose)
        _say(command, line)
        return code


def load(settings):
    """Loads Keras on the backend that the settings ask for."""
    backend = _backend(settings)
    prepare_environment(backend, settings.verbose)
    load_keras(backend, settings.verbose)


def explain(error, verbose=False):
    """Returns the exit code and the one line for an exception.

    Args:
        error: The exception.
        verbose: Whether the traceback is shown already.

    Returns:
        `(code, line)`.
    """
    if not isinstance(error, AlimError):
        error = original(error) or error
    if isinstance(error, AlimError):
        return error.exit_code, f"error: {_one_line(error)}"
    lacks = EnvironmentLacksError.exit_code
    if _is_out_of_memory(error):
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


def help_text(command):
    """Returns the text of `--help`: the flags by group, with defaults."""
    words = "".join(f" {name.upper()}" for name in command.words)
    width = min(shutil.get_terminal_size().columns, 88)
    lines = [f"python -m {command.name}{words} [--flag=value ...]", ""]
    lines.extend(textwrap.wrap(" ".join(command.doc.split()), width))
    for title, members in groups(command.new_flags()):
        lines.extend(("", f"{title}:"))
        for flag in members:
            lines.append(f"  {_usage(flag)}")
            text = flag.help
            if flag.default is not None and flag.flag_type() != "bool":
                text += f" Default: {flag.default}."
            elif flag.default is not None:
                text += f" Default: {flag_text(flag.name, flag.default)}."
            lines.extend(
                textwrap.wrap(
                    text,
                    width,
                    initial_indent=" " * 6,
                    subsequent_indent=" " * 6,
                )
            )
    return "\n".join(lines) + "\n"


def _usage(flag):
    if flag.flag_type() == "bool":
        return f"--[no]{flag.name}"
    return f"--{flag.name}=<{flag.parser.syntactic_help}>"


def _backend(settings):
    """Returns the Keras backend if it was asked for by flag, else None."""
    if settings.origins.get("backend", DEFAULT) == DEFAULT:
        return None
    return settings.backend


def _is_out_of_memory(error):
    # By name: importing a framework for its exception class would be slow,
    # and JAX has no class of its own for it.
    names = [base.__name__ for base in type(error).__mro__]
    return (
        isinstance(error, MemoryError)
        or "ResourceExhaustedError" in names
        or "RESOURCE_EXHAUSTED" in str(error)
    )


def _one_line(error):
    return " ".join(str(error).split())


def _quote(error):
    # The frameworks' messages run to pages; their beginning says enough.
    text = _one_line(error)
    if len(text) > _LONGEST_QUOTE:
        text = f"{text[:_LONGEST_QUOTE]} ..."
    return text


@contextlib.contextmanager
def _plain_warnings(command):
    """Shows what is odd about data as one line, without a place in code."""
    usual = warnings.showwarning
    told = set()

    def show(message, category, *place, **more):
        if issubclass(category, DataWarning):
            # What is read twice is told once.
            if str(message) not in told:
                _say(command, f"warning: {_one_line(message)}")
            told.add(str(message))
        else:
            usual(message, category, *place, **more)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


def _say(command, line):
    sys.stdout.flush()
    print(f"{command.name}: {line}", file=sys.stderr, flush=True)


def _print(text):
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # A pager that was closed early; Python would complain at its own end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
