import pathlib
import sys
import types

import keras
import pytest

from alim_keras import cli
from alim_keras import train
from alim_keras.cli import train_flags

# A whole run in seconds; each test adds what it is about.
SMOKE = (
    "--preset=smoke --train_size=96 --batch_size=32 --progress=none "
    "--holdout=0.1 --seed=3"
).split()


@pytest.fixture(scope="session")
def run_train():
    """Runs the train command in this process; returns its exit code."""

    def run(run_dir, *flags):
        policy = keras.config.dtype_policy()
        try:
            return cli.run(
                train_flags.COMMAND,
                train.main,
                [*SMOKE, f"--run_dir={run_dir}", *flags],
            )
        finally:
            keras.config.set_dtype_policy(policy)

    return run


@pytest.fixture(scope="session")
def finished_run(run_train, tmp_path_factory):
    """The folder of a run of three epochs."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    assert run_train(folder, "--epochs=3", "--select=aa") == 0
    return folder


@pytest.fixture(scope="session")
def spawn(repository):
    """What starts a fresh Python that finds this checkout."""
    return types.SimpleNamespace(
        python=sys.executable,
        environment={
            "PYTHONPATH": str(repository),
            "TF_CPP_MIN_LOG_LEVEL": "3",
        },
        smoke=SMOKE,
    )


@pytest.fixture
def lines(capsys):
    """The lines that the last command wrote to stderr."""
    return lambda: capsys.readouterr().err.strip().splitlines()


def read(path):
    return pathlib.Path(path).read_text(encoding="utf-8")
