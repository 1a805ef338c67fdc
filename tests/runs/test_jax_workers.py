"""Two worker processes on JAX train as one does, and survive a kill."""

import os
import pathlib
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
from comparing import assert_same_run
from comparing import checkpoint
from comparing import metrics

from alim_keras.errors import ConfigError

pytest.importorskip("jax", reason="needs JAX, of the extra `test`")

# Light views: they take most of the time of a compilation.
FLAGS = (
    "--backend=jax --epochs=3 --width=4 --progress=line --nojitter "
    "--strong_operations=0"
).split()
SCRIPT = (
    pathlib.Path(__file__).resolve().parents[2] / "scripts" / "_two_workers.py"
)


@pytest.fixture(scope="module")
def environment(spawn, tmp_path_factory):
    """JAX on the CPU, with its compiled programs kept for the next process."""
    cache = tmp_path_factory.mktemp("compiled")
    kept = {**os.environ, **spawn.environment}
    # The command's own choice is under test.
    del kept["TF_CPP_MIN_LOG_LEVEL"]
    return {
        **kept,
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    }


def start_workers(spawn, environment, run_dir, folders, last=()):
    """Starts a worker in each of the folders; returns the processes.

    `last` are further flags of the last worker only.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [spawn.python, "-u", "-m", "alim_keras.train", *spawn.smoke]
    command += ["--distribute=multi_worker", f"--run_dir={run_dir}", *FLAGS]
    started = []
    cores = sorted(os.sched_getaffinity(0))
    for index, folder in enumerate(folders):
        # As the script does: how many cores there are decides how a sum is
        # cut into parts, so it shows in the last digit.
        os.sched_setaffinity(0, cores[index :: len(folders)] or cores)
        folder.mkdir(exist_ok=True)
        is_last = index == len(folders) - 1
        started.append(
            subprocess.Popen(
                [*command, *(last if is_last else ())],
                env={
                    **environment,
                    "JAX_COORDINATOR_ADDRESS": address,
                    "JAX_NUM_PROCESSES": str(len(folders)),
                    "JAX_PROCESS_ID": str(index),
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
    """Waits for all; returns their exit codes, and their stderr."""
    said = [worker.communicate(timeout=300) for worker in workers]
    return [w.returncode for w in workers], [err for _, err in said]


@pytest.fixture(scope="module")
def two_workers(spawn, environment, tmp_path_factory):
    """The folder of a run of two workers, started by the script."""
    folder = tmp_path_factory.mktemp("jax_workers") / "two"
    done = subprocess.run(
        [sys.executable, SCRIPT, *spawn.smoke, f"--run_dir={folder}", *FLAGS],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert any(line.startswith("[worker 0] epoch 3/3") for line in lines)
    assert not any(line.startswith("[worker 1]") for line in lines)
    return folder


@pytest.mark.slow
def test_two_workers_train_as_one_process_does(
    two_workers, spawn, environment, tmp_path
):
    one = tmp_path / "one"
    command = [spawn.python, "-m", "alim_keras.train", *spawn.smoke]
    subprocess.run(
        [*command, f"--run_dir={one}", *FLAGS], env=environment, check=True
    )
    expected, found = checkpoint(one), checkpoint(two_workers)
    assert expected.keys() == found.keys()
    assert len(expected) > 60
    for name, values in expected.items():
        np.testing.assert_allclose(
            found[name], values, rtol=1e-5, atol=1e-5, err_msg=name
        )
    for row, other in zip(metrics(one), metrics(two_workers), strict=True):
        assert row.keys() == other.keys()
        for name, value in row.items():
            assert float(other[name]) == pytest.approx(
                float(value), rel=1e-4, abs=1e-5
            ), name


# Where the chief is killed JAX aborts the others.
@pytest.mark.slow
def test_a_killed_worker_ends_the_job_and_it_resumes(
    two_workers, spawn, environment, tmp_path
):
    run_dir = tmp_path / "run"
    folders = [tmp_path / "cwd0", tmp_path / "cwd1"]
    workers = start_workers(spawn, environment, run_dir, folders)
    for line in workers[0].stdout:
        if line.startswith("epoch 2/3"):
            break
    workers[1].send_signal(signal.SIGKILL)
    codes, errors = ends_of(workers)
    assert codes == [6, -signal.SIGKILL], errors[0]
    assert "Worker 0 of 2 lost another worker" in errors[0]
    line = errors[0]
    assert "same command" in line
    assert 1 <= len(metrics(run_dir)) < 3
    assert not (run_dir / "results.json").exists()

    workers = start_workers(spawn, environment, run_dir, folders)
    codes, errors = ends_of(workers)
    assert codes == [0, 0], errors
    assert errors == ["", ""]
    assert_same_run(two_workers, run_dir)
    # Only the chief writes, and only into the run's folder.
    assert not any(any(folder.iterdir()) for folder in folders)


@pytest.mark.slow
def test_workers_that_differ_are_refused_on_all(spawn, environment, tmp_path):
    folders = [tmp_path / "cwd0", tmp_path / "cwd1"]
    workers = start_workers(
        spawn, environment, tmp_path / "run", folders, ["--epochs=4"]
    )
    codes, errors = ends_of(workers)
    assert codes == [2, 2], errors
    for error in errors:
        (line,) = error.strip().splitlines()
        assert "Worker 1 was started with other settings" in line


@pytest.mark.parametrize(
    "given",
    [
        ("host0:1", None, None),
        ("host0:1", "2", None),
        ("host0", "2", "0"),
        ("host0:1", "2", "2"),
        ("host0:1", "two", "0"),
        (None, "2", "0"),
    ],
)
def test_a_wrong_environment_is_named(given, monkeypatch):
    from alim_keras.backend import jax_workers

    names = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID")
    for name, value in zip(names, given):
        monkeypatch.delenv(name, raising=False)
        if value:
            monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match="Received: JAX_COORDINATOR_ADDRESS="):
        jax_workers.workers_from_environment()


def test_a_missing_environment_is_named(spawn, environment, tmp_path):
    command = [spawn.python, "-m", "alim_keras.train", *spawn.smoke]
    command += [f"--run_dir={tmp_path / 'run'}", "--distribute=multi_worker"]
    done = subprocess.run(
        [*command, "--backend=jax"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 6
    (line,) = done.stderr.strip().splitlines()
    assert "JAX_COORDINATOR_ADDRESS=host0:12345" in line
    assert not (tmp_path / "run").exists()
