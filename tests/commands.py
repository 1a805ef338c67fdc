"""Commands run in this process, on small pictures or digits."""

import contextlib
import importlib
import io
import os
import runpy
import warnings

import keras
import pytest

from alim_keras.app import process
from alim_keras.callbacks import RunCheckpoint
from alim_keras.errors import DataWarning

# A whole run in seconds; each test adds what it is about.
SMOKE = (
    "--preset=smoke --train_size=96 --batch_size=32 --progress=none "
    "--holdout=0.1 --seed=3"
).split()
# The same for tables of `own.write_folder`.
OWN = (
    "--width=4 --batch_size=32 --epochs=2 --method=proden --noise_rate=0.1 "
    "--warmup_epochs=1 --progress=none"
).split()


def named(name):
    """Returns the flags of a command, and what runs it."""
    if name == "audit":
        # An import would put the module in the place of the function.
        names = runpy.run_module("alim_keras.audit")
        return names["COMMAND"], names["main"]
    module = importlib.import_module(f"alim_keras.{name}")
    return module.COMMAND, module.main


def run(name, *arguments):
    """Runs a command; returns its exit code."""
    policy = keras.config.dtype_policy()
    environment = dict(os.environ)
    try:
        command, main = named(name)
        with warnings.catch_warnings():
            # Shown as lines, as in a process of its own.
            warnings.simplefilter("always", DataWarning)
            return process.run(command, main, [str(a) for a in arguments])
    finally:
        keras.config.set_dtype_policy(policy)
        os.environ.clear()
        os.environ.update(environment)


def call(name, *arguments):
    """Runs a command; returns its exit code, stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(name, *arguments)
    return code, out.getvalue(), err.getvalue()


def works(name, *arguments):
    """Runs a command that ends with 0; returns its stdout."""
    code, out, err = call(name, *arguments)
    assert code == 0, err
    return out


def fails(name, *arguments):
    """Runs a command that fails; returns its exit code and its one line."""
    code, _, err = call(name, *arguments)
    (line,) = err.strip().splitlines()
    assert line.startswith(f"alim_keras.{name}: ")
    return code, line


def train_own(run_dir, table, *flags, how=call):
    """Trains on a table of `own.write_folder`; returns code, out and err."""
    if str(table).endswith("labels.csv"):
        flags = ("--none_of_these=unsure", *flags)
    places = (f"--run_dir={run_dir}", f"--dataset={table}")
    return how("train", *OWN, *places, *flags)


def trained_own(run_dir, table, *flags):
    """Trains as `train_own` and must end with 0; returns its stdout."""
    return train_own(run_dir, table, *flags, how=works)


def stop_after_an_epoch(start):
    """Calls `start`, which trains; something ends it after its first epoch."""
    usual = RunCheckpoint.on_epoch_end

    def stop(checkpoint, epoch, logs=None):
        usual(checkpoint, epoch, logs)
        raise RuntimeError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunCheckpoint, "on_epoch_end", stop)
        start()
