"""`python -m alim_keras.train` as a user's shell sees it."""

import os
import subprocess
import sys

import pytest


@pytest.fixture
def train(repository, tmp_path):
    def call(*arguments, **variables):
        return subprocess.run(
            [sys.executable, "-m", "alim_keras.train", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(repository), **variables},
        )

    return call


@pytest.mark.parametrize(
    "argument",
    [
        "--epoch=3",
        "--norm=twohot",
        "--ambiguity=nan",
        "cifar100",
        "--nomixup=false",
        "--preset=cifar11",
        "--flagfile=nowhere.flags",
    ],
)
def test_a_wrong_call_is_one_line_and_two(train, argument):
    result = train(argument)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("alim_keras.train: error: ")


def test_help_and_print_config_come_before_keras(train):
    # A backend that does not exist: importing Keras would fail.
    result = train("--help", KERAS_BACKEND="nonsense")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("python -m alim_keras.train")
    line = ["--preset=cifar100_q0.05_eta0.3", "--print_config"]
    result = train(*line, KERAS_BACKEND="nonsense")
    assert (result.returncode, result.stderr) == (0, "")
    assert "--epochs=1000 " in result.stdout


def test_a_closed_pager(repository, tmp_path):
    # The shell's own way: head leaves after one line.
    result = subprocess.run(
        [
            "bash",
            "-c",
            'set -o pipefail; "$0" -m alim_keras.train --help | head -n 1',
            sys.executable,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(repository)},
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "python -m alim_keras.train [--flag=value ...]\n"
