"""Two worker processes train as one process does, and survive a kill."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import types

import numpy as np
import pytest
from comparing import assert_same_run
from comparing import checkpoint
from comparing import metrics

from alim_keras import backend
from alim_keras.backend import tensorflow_cluster
from alim_keras.errors import CheckpointError
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.runs import workers
from alim_keras.runs.folder import RunFolder

FLAGS = ("--epochs=3", "--width=4", "--progress=line")
SCRIPT = (
    pathlib.Path(__file__).resolve().parents[2] / "scripts" / "_two_workers.py"
)


def start_workers(spawn, run_dir, folders):
    """Starts a worker in each of the folders; returns the processes."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in folders]
    hosts = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for one in sockets:
        one.close()
    started = []
    cores = sorted(os.sched_getaffinity(0))
    for index, folder in enumerate(folders):
        # As the script does: how many cores there are decides how TensorFlow
        # cuts a sum into parts, so it shows in the last digit.
        os.sched_setaffinity(0, cores[index :: len(folders)] or cores)
        folder.mkdir(exist_ok=True)
        task = {"type": "worker", "index": index}
        config = {"cluster": {"worker": hosts}, "task": task}
        command = [spawn.python, "-u", "-m", "alim_keras.train", *spawn.smoke]
        started.append(
            subprocess.Popen(
                [
                    *command,
                    "--distribute=multi_worker",
                    f"--run_dir={run_dir}",
                    *FLAGS,
                ],
                env={
                    **os.environ,
                    **spawn.environment,
                    "TF_CONFIG": json.dumps(config),
                },
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    os.sched_setaffinity(0, cores)
    return started


def ends_of(workers):
    """Waits for all; returns their exit codes and what each said at last."""
    said = [worker.communicate(timeout=120) for worker in workers]
    return [w.returncode for w in workers], [err for _, err in said]


@pytest.fixture(scope="module")
def two_workers(spawn, tmp_path_factory):
    """The folder of a run of two workers, started by the script."""
    folder = tmp_path_factory.mktemp("workers") / "two"
    done = subprocess.run(
        [sys.executable, SCRIPT, *spawn.smoke, f"--run_dir={folder}", *FLAGS],
        env={**os.environ, **spawn.environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert any(line.startswith("[worker 0] epoch 3/3") for line in lines)
    assert not any(line.startswith("[worker 1]") for line in lines)
    return folder


def test_two_workers_train_as_one_process_does(
    two_workers, run_train, tmp_path
):
    one = tmp_path / "one"
    assert run_train(one, *FLAGS) == 0
    # Both sum in float32, in another order.
    expected, found = checkpoint(one), checkpoint(two_workers)
    assert expected.keys() == found.keys()
    compared = 0
    for name, values in expected.items():
        # A metric is saved as its own process's part of the sum.
        if "metric" in name or name.startswith(("parts", "outside")):
            continue
        compared += 1
        np.testing.assert_allclose(
            found[name], values, rtol=1e-5, atol=1e-5, err_msg=name
        )
    assert compared > 40
    for row, other in zip(metrics(one), metrics(two_workers), strict=True):
        assert row.keys() == other.keys()
        for name, value in row.items():
            assert float(other[name]) == pytest.approx(
                float(value), rel=1e-4, abs=1e-5
            ), name


@pytest.mark.parametrize("killed", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_a_killed_worker_ends_the_job_and_it_resumes(
    killed, two_workers, spawn, tmp_path
):
    run_dir = tmp_path / "run"
    folders = [tmp_path / "cwd0", tmp_path / "cwd1"]
    started = start_workers(spawn, run_dir, folders)
    for line in started[0].stdout:
        if line.startswith("epoch 2/3"):
            break
    started[killed].send_signal(signal.SIGKILL)
    codes, errors = ends_of(started)
    survivor = 1 - killed
    assert codes[killed] == -signal.SIGKILL
    assert codes[survivor] == 6, errors[survivor]
    (line,) = errors[survivor].strip().splitlines()
    assert f"Worker {survivor} of 2 lost another worker" in line
    assert "same command" in line
    assert 1 <= len(metrics(run_dir)) < 3
    assert not (run_dir / "results.json").exists()

    codes, errors = ends_of(start_workers(spawn, run_dir, folders))
    assert codes == [0, 0], errors
    # TensorFlow counts traces, and a run this small has hardly more calls.
    said = "".join(errors).splitlines()
    assert [line for line in said if "tf.function retracing" not in line] == []
    assert_same_run(two_workers, run_dir)
    # Only the chief writes, and only into the run's folder.
    assert not any(any(folder.iterdir()) for folder in folders)


@pytest.mark.parametrize(
    "column, error, words",
    [
        (0, ConfigError, "Worker 1 was started with other settings"),
        (1, DataError, "Worker 1 has other images or candidate sets"),
        (2, CheckpointError, "3 finished epochs .* worker 0, 0 for worker 1"),
    ],
)
def test_workers_that_differ_are_told_before_training(
    column, error, words, tmp_path, monkeypatch
):
    folder = RunFolder(tmp_path)
    folder.checkpoint.state = {"epochs": 3, "weights": "w"}
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "state.json").write_text(
        json.dumps(folder.checkpoint.state)
    )
    sets = types.SimpleNamespace(content_hash="00000a" + "f" * 58)

    def gather(mine):
        other = list(mine)
        other[column] = 0
        return np.array([mine, other])

    monkeypatch.setattr(backend, "gather_processes", gather)
    with pytest.raises(error, match=words):
        workers.check_agreement({"seed": 1}, folder, sets)
    monkeypatch.setattr(backend, "gather_processes", lambda m: np.array([m, m]))
    workers.check_agreement({"seed": 1}, folder, sets)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"cluster": {"worker": ["a:1"]}}',
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "ps", "index": 0}}',
        '{"cluster": {"worker": ["a:1"]},'
        ' "task": {"type": "worker", "index": 1}}',
    ],
)
def test_a_wrong_tf_config_is_named(text, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ConfigError, match="Received: TF_CONFIG="):
        tensorflow_cluster.cluster_from_environment()


def test_a_missing_tf_config_is_named(run_train, tmp_path, monkeypatch, lines):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert run_train(tmp_path / "run", "--distribute=multi_worker") == 6
    (line,) = lines()
    assert "needs the environment variable TF_CONFIG" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "kind, index, place", [("chief", 0, 0), ("worker", 0, 1), ("worker", 1, 2)]
)
def test_a_chief_counts_as_the_first_worker(kind, index, place, monkeypatch):
    config = {
        "cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"]},
        "task": {"type": kind, "index": index},
    }
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert tensorflow_cluster.cluster_from_environment() == (place, 3)
