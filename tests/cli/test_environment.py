import os
import signal
import subprocess
import sys

import pytest

from alim_keras import cli
from alim_keras.cli import environment as environment_module

FILE = environment_module.__file__


@pytest.fixture
def environment(monkeypatch):
    values = {"PATH": "/bin"}
    monkeypatch.setattr(os, "environ", values)
    return values


def test_what_is_set(environment):
    before = set(environment)
    cli.prepare_environment()
    added = {k: v for k, v in environment.items() if k not in before}
    assert added == {"TF_ENABLE_ONEDNN_OPTS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}


def test_verbose_leaves_the_log_alone(environment):
    cli.prepare_environment(verbose=True)
    assert environment["TF_ENABLE_ONEDNN_OPTS"] == "1"
    assert "TF_CPP_MIN_LOG_LEVEL" not in environment


def test_the_users_values_win(environment):
    environment.update(TF_ENABLE_ONEDNN_OPTS="0", TF_CPP_MIN_LOG_LEVEL="0")
    before = dict(environment)
    cli.prepare_environment()
    assert environment == before


def test_the_backend_that_was_asked_for(environment):
    environment["KERAS_BACKEND"] = "jax"
    cli.prepare_environment("tensorflow")
    assert environment["KERAS_BACKEND"] == "tensorflow"


def run_hushed(body):
    """Runs code in a process whose stderr can be read as a whole."""
    program = (
        "import importlib.util as u, os, sys\n"
        f"spec = u.spec_from_file_location('e', {FILE!r})\n"
        "e = u.module_from_spec(spec)\n"
        "spec.loader.exec_module(e)\n" + body
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )


def test_hushed_stderr_keeps_the_chatter():
    result = run_hushed(
        "with e._hushed_stderr():\n    os.write(2, b'chatter')\n"
        "os.write(2, b'after')\n"
    )
    assert (result.returncode, result.stderr) == (0, "after")


def test_hushed_stderr_shows_it_if_the_import_fails():
    result = run_hushed(
        "with e._hushed_stderr():\n    os.write(2, b'chatter\\n')\n"
        "    raise SystemExit(4)\n"
    )
    assert (result.returncode, result.stderr) == (4, "chatter\n")


def test_a_closed_stderr_is_no_error():
    result = run_hushed(
        "os.close(2)\nwith e._hushed_stderr():\n    print('inside')\n"
    )
    assert (result.returncode, result.stdout) == (0, "inside\n")


@pytest.fixture
def interrupts():
    """Ctrl-C as in a shell, also where the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_waits_for_the_import_and_is_not_lost(interrupts):
    done = []
    with pytest.raises(KeyboardInterrupt):
        with environment_module.interrupts_kept():
            os.kill(os.getpid(), signal.SIGINT)
            # What TensorFlow's import does to it somewhere.
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                done.append("lost")
            done.append("whole")
    assert done == ["whole"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupts_that_are_ignored_stay_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with environment_module.interrupts_kept():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
