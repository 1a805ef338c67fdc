"""Exit codes, the one line on stderr, environment and signals."""

import errno
import os
import subprocess
import sys
import warnings

import pytest

from alim_keras import errors
from alim_keras import train
from alim_keras.app import process
from alim_keras.errors import DataWarning


@pytest.fixture(autouse=True)
def own_environment(monkeypatch):
    """Keeps what a command sets in os.environ inside the test."""
    monkeypatch.setattr(os, "environ", dict(os.environ))


def run(main, *arguments):
    return process.run(train.COMMAND, main, list(arguments))


def never(line):
    raise AssertionError(f"the command ran with {line}")


def raiser(error):
    def main(line):
        raise error

    return main


def test_the_line_reaches_main(monkeypatch):
    def epochs(line):
        return line.config.train.epochs

    monkeypatch.setattr(sys, "argv", ["train", "--epochs=5"])
    assert run(epochs, "--epochs=3") == 3
    assert process.run(train.COMMAND, epochs) == 5


@pytest.mark.parametrize(
    "error, code, expected",
    [
        (errors.ConfigError("a\n  b"), 2, "error: a b"),
        (errors.DataError("row 3"), 3, "error: row 3"),
        (errors.NonFiniteError("cls_loss"), 4, "error: cls_loss"),
        (errors.CheckpointError("other"), 5, "error: other"),
        (errors.EnvironmentLacksError("gpu"), 6, "error: gpu"),
        (errors.AlimError("plain"), 1, "error: plain"),
        (MemoryError("x"), 6, "error: out of memory."),
        (RuntimeError("RESOURCE_EXHAUSTED: oom"), 6, "error: out of memory."),
        (ModuleNotFoundError("no", name="sklearn.x"), 6, "error: the package"),
        (ModuleNotFoundError("a", name="alim_keras.x"), 1, "unexpected error"),
        (OSError(errno.ENOSPC, "No space", "/run/x"), 6, "error: No space: /r"),
        (FileNotFoundError(2, "No such", "a.npz"), 3, "error: No such: a.npz"),
        (KeyboardInterrupt(), 130, "interrupted; the same command goes on"),
        (KeyError("k"), 1, "unexpected error: KeyError: 'k' (--verbose"),
    ],
)
def test_every_error_has_its_code_and_line(capsys, error, code, expected):
    assert run(raiser(error)) == code
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1
    assert err.startswith(f"alim_keras.train: {expected}")


def test_messages_of_frameworks_are_cut_and_ours_are_not():
    full = type("ResourceExhaustedError", (Exception,), {})
    code, line = process.explain(full("OOM " * 500))
    assert code == 6 and "--batch_size" in line and len(line) < 500
    _, line = process.explain(errors.DataError("x" * 5000))
    assert line.count("x") == 5000


def test_verbose_shows_the_traceback(capsys):
    for code, arguments in ((3, ["--verbose"]), (2, ["--verbose", "--zz"])):
        assert run(raiser(errors.DataError("v")), *arguments) == code
        assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_warnings_about_data_are_one_line_each(capsys):
    def main(line):
        for text in ("two\nlines", "two\nlines", "three"):
            warnings.warn(text, DataWarning, stacklevel=1)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert run(main) == 0
    assert capsys.readouterr().err.splitlines() == [
        "alim_keras.train: warning: two lines",
        "alim_keras.train: warning: three",
    ]


def test_a_closed_pager_is_no_error(monkeypatch):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert run(never, "--help") == 0


@pytest.mark.parametrize(
    "before, arguments, after",
    [
        ({}, (), {"TF_ENABLE_ONEDNN_OPTS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}),
        ({}, (None, True), {"TF_ENABLE_ONEDNN_OPTS": "1"}),
        ({"TF_ENABLE_ONEDNN_OPTS": "0"}, (), {"TF_ENABLE_ONEDNN_OPTS": "0"}),
        ({"KERAS_BACKEND": "jax"}, ("torch",), {"KERAS_BACKEND": "torch"}),
    ],
)
def test_environment(monkeypatch, before, arguments, after):
    monkeypatch.setattr(os, "environ", dict(before))
    process.set_environment(*arguments)
    assert os.environ.items() >= after.items()
    assert ("TF_CPP_MIN_LOG_LEVEL" in os.environ) != (arguments[1:] == (True,))


PROGRAM = """
import os, signal, sys, time, types
from alim_keras import train
from alim_keras.app import process

def main(line):
    os.kill(os.getpid(), signal.{name})
    time.sleep(10)

def imports(line):
    process.importlib = types.SimpleNamespace(import_module=interrupted)
    process.import_keras()
    time.sleep(10)

def interrupted(name):
    os.kill(os.getpid(), signal.{name})
    try:
        time.sleep(0.01)
    except KeyboardInterrupt:
        print("lost")

def stubborn(line):
    try:
        os.kill(os.getpid(), signal.{name})
        time.sleep(10)
    finally:
        os.kill(os.getpid(), signal.{name})
        time.sleep(10)

def hushed(line):
    with process.without_stderr():
        os.write(2, b"chatter")

sys.exit(process.run(train.COMMAND, {main}, [], keras=False))
"""


@pytest.mark.parametrize(
    "main, name, code, err",
    [
        ("main", "SIGINT", 130, "interrupted; the same command"),
        ("main", "SIGTERM", 130, "interrupted; the same command"),
        ("imports", "SIGTERM", 130, "interrupted; the same command"),
        ("stubborn", "SIGINT", 130, ""),
        ("hushed", "SIGINT", 0, ""),
    ],
)
def test_signals_and_chatter(repository, main, name, code, err):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(main=main, name=name)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(repository)},
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert err in done.stderr and "Traceback" not in done.stderr
    assert bool(done.stderr) == bool(err)
