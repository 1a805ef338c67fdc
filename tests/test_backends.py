"""TensorFlow, JAX, its devices and processes train alike; workers may fail."""

import os
import signal
import socket
import subprocess
import sys

import numpy as np
import own
import pytest
from comparing import assert_equal_numbers
from comparing import assert_same_run
from comparing import assert_something_happened

pytest.importorskip("jax", reason="needs JAX, of the extra `test`")

# Light views: they take most of the time of a compilation.
FLAGS = (
    "--backend=jax --preset=smoke --train_size=96 --batch_size=32 --seed=3 "
    "--epochs=3 --width=4 --progress=line --nojitter --strong_operations=0 "
    "--distribute=multi_worker"
).split()


@pytest.fixture(scope="module")
def environment(repository, tmp_path_factory):
    """JAX on the CPU; what one process has compiled the next need not."""
    return {
        **os.environ,
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONPATH": str(repository),
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("compiled")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    }


def of_workers():
    """The variables that tell two workers of each other."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    common = {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": "2"}
    return [{**common, "JAX_PROCESS_ID": str(index)} for index in range(2)]


def ends_of(processes):
    """Waits for all; returns their exit codes, and their stderr."""
    errors = [process.communicate(timeout=300)[1] for process in processes]
    return [process.returncode for process in processes], errors


@pytest.fixture(scope="module")
def trained(repository, environment, tmp_path_factory):
    """Runs backend_run.py once for each dict of variables; what they wrote."""
    folder = tmp_path_factory.mktemp("backends")
    script = repository / "tests" / "backend_run.py"

    def trained(distribute, *variables):
        ends = [folder / f"{distribute}{i}.npz" for i in range(len(variables))]
        processes = [
            subprocess.Popen(
                [sys.executable, script, distribute, folder / "start.npz", end],
                env={**environment, **some},
                stderr=subprocess.PIPE,
                text=True,
            )
            for end, some in zip(ends, variables)
        ]
        codes, errors = ends_of(processes)
        assert not any(codes), errors
        return [dict(np.load(end)) for end in ends]

    return trained


@pytest.fixture(scope="module")
def one_device(trained):
    return trained("none", {})[0]


def test_the_run_was_one_that_could_differ(one_device):
    assert 0.0 < one_device["lam"] <= 1.0
    assert np.ptp(one_device["labels"]) > 0.5
    (steps,) = (v for k, v in one_device.items() if k.endswith("iteration"))
    assert steps == 9
    assert_something_happened(one_device, least=1e-2)


def test_tensorflow_trains_as_jax_does(trained, one_device):
    (found,) = trained("none", {"KERAS_BACKEND": "tensorflow"})
    assert_equal_numbers(found, one_device, rtol=0, atol=1e-4)


def test_two_devices_train_as_one_does(trained, one_device):
    (found,) = trained("mirrored", {})
    assert_equal_numbers(found, one_device)
    # Whole and equal on both.
    assert set(found["copies"]) == {2}


@pytest.mark.slow
def test_two_processes_train_as_one_does(trained, one_device):
    for found in trained("multi_worker", *of_workers()):
        assert_equal_numbers(found, one_device)
        # Between steps a process's variables are its own.
        assert set(found["copies"]) == {1}


def start(environment, run_dir, last=()):
    """Starts two workers; `last` are further flags of the second."""
    train = [sys.executable, "-u", "-m", "alim_keras.train", *FLAGS]
    cores, workers = sorted(os.sched_getaffinity(0)), []
    for index, variables in enumerate(of_workers()):
        # How many cores there are decides how a sum is cut into parts, so it
        # shows in the last digit.
        os.sched_setaffinity(0, cores[index::2] or cores)
        workers.append(
            subprocess.Popen(
                [*train, f"--run_dir={run_dir}", *(last if index else ())],
                env={**environment, **variables},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    os.sched_setaffinity(0, cores)
    return workers


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


def test_missing_and_wrong_addresses_are_named(environment):
    done = subprocess.run(
        [sys.executable, "-c", ADDRESSES],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout.count("JAX_COORDINATOR_ADDRESS=host0:12345") == 3, (
        done.stderr
    )
