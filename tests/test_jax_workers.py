"""Two worker processes of a run on JAX: a kill, other flags, no address."""

import os
import signal
import socket
import subprocess
import sys

import own
import pytest
from comparing import assert_same_run

pytest.importorskip("jax", reason="needs JAX, of the extra `test`")

# Light views: they take most of the time of a compilation.
FLAGS = (
    "--backend=jax --preset=smoke --train_size=96 --batch_size=32 --seed=3 "
    "--epochs=3 --width=4 --progress=line --nojitter --strong_operations=0"
).split()
TRAIN = [sys.executable, "-u", "-m", "alim_keras.train", *FLAGS]


@pytest.fixture(scope="module")
def environment(repository, tmp_path_factory):
    """JAX on the CPU, with its compiled programs kept for the next process."""
    return {
        **os.environ,
        "PYTHONPATH": str(repository),
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("compiled")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    }


def start(environment, run_dir, last=()):
    """Starts two workers; `last` are further flags of the second."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [*TRAIN, "--distribute=multi_worker", f"--run_dir={run_dir}"]
    cores, workers = sorted(os.sched_getaffinity(0)), []
    for index in range(2):
        # How many cores there are decides how a sum is cut into parts, so it
        # shows in the last digit.
        os.sched_setaffinity(0, cores[index::2] or cores)
        workers.append(
            subprocess.Popen(
                [*command, *(last if index else ())],
                env={
                    **environment,
                    "JAX_COORDINATOR_ADDRESS": address,
                    "JAX_NUM_PROCESSES": "2",
                    "JAX_PROCESS_ID": str(index),
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    os.sched_setaffinity(0, cores)
    return workers


def ends_of(workers):
    """Waits for all; returns their exit codes, and their stderr."""
    errors = [worker.communicate(timeout=300)[1] for worker in workers]
    return [worker.returncode for worker in workers], errors


# Where the first worker is killed JAX aborts the others.
@pytest.mark.slow
def test_a_killed_worker_ends_the_job_and_it_resumes(environment, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    codes, errors = ends_of(start(environment, whole))
    assert codes == [0, 0], errors
    workers = start(environment, cut)
    for line in workers[0].stdout:
        if line.startswith("epoch 2/3"):
            break
    workers[1].send_signal(signal.SIGKILL)
    codes, errors = ends_of(workers)
    assert codes == [6, -signal.SIGKILL], errors[0]
    assert "Worker 0 of 2 lost another worker" in errors[0]
    assert 1 <= len(own.read_rows(cut / "metrics.csv")) < 3
    assert not (cut / "results.json").exists()
    codes, errors = ends_of(start(environment, cut))
    assert codes == [0, 0], errors
    assert_same_run(whole, cut)


@pytest.mark.slow
def test_workers_that_differ_are_refused_on_all(environment, tmp_path):
    workers = start(environment, tmp_path / "run", ["--epochs=4"])
    codes, errors = ends_of(workers)
    assert codes == [2, 2], errors
    assert all("other settings" in error for error in errors)


# Only what raises before any connection is tried.
ADDRESSES = """
import os
from alim_keras import backend, errors
partial = {"JAX_COORDINATOR_ADDRESS": "host0:1"}
wrong = {"JAX_NUM_PROCESSES": "two", "JAX_PROCESS_ID": "0"}
for variables in ({}, partial, partial | wrong):
    os.environ.update(variables)
    try:
        backend.make_strategy("multi_worker")
    except errors.EnvironmentLacksError as error:
        print(error)
"""


def test_missing_and_wrong_addresses_are_named():
    done = subprocess.run(
        [sys.executable, "-c", ADDRESSES],
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count("JAX_COORDINATOR_ADDRESS=host0:12345") == 3, (
        done.stderr
    )
