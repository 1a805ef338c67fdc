"""Short trainings on a folder of `own`, and their audits, by command."""

import importlib

import keras
import pytest

from alim_keras import cli
from alim_keras import train
from alim_keras.callbacks import RunCheckpoint
from alim_keras.cli import audit_flags
from alim_keras.cli import train_flags

# The command; `alim_keras.audit` is also a function.
audit = importlib.import_module("alim_keras.audit")

SMALL = (
    "--width=4 --batch_size=32 --epochs=2 --method=proden --noise_rate=0.1 "
    "--warmup_epochs=1 --progress=none"
).split()


def run_train(run_dir, table, *flags):
    """Trains; returns the exit code."""
    if str(table).endswith("labels.csv"):
        flags = ("--none_of_these=unsure", *flags)
    policy = keras.config.dtype_policy()
    try:
        return cli.run(
            train_flags.COMMAND,
            train.main,
            [*SMALL, f"--run_dir={run_dir}", f"--dataset={table}", *flags],
        )
    finally:
        keras.config.set_dtype_policy(policy)


def run_audit(run_dir, *flags):
    """Audits a run; returns the exit code."""
    command = audit_flags.COMMAND
    return cli.run(command, audit.main, [str(run_dir), *flags])


class _Stopped(Exception):
    pass


def stop_after_an_epoch(run_dir, table, *flags):
    """Begins a training that something ends after its first epoch."""
    usual = RunCheckpoint.on_epoch_end

    def stop(checkpoint, epoch, logs=None):
        usual(checkpoint, epoch, logs)
        raise _Stopped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunCheckpoint, "on_epoch_end", stop)
        assert run_train(run_dir, table, *flags) == 1
    assert (run_dir / "checkpoints").exists()
    assert not (run_dir / "results.json").exists()
