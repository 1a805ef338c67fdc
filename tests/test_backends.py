"""TensorFlow, JAX, two of its devices and two processes train alike."""

import os
import socket
import subprocess
import sys

import numpy as np
import pytest
from comparing import assert_equal_numbers
from comparing import assert_something_happened

pytest.importorskip("jax", reason="needs JAX, of the extra `test`")


@pytest.fixture(scope="module")
def start(repository, tmp_path_factory):
    """Starts backend_run.py; returns the process and its result's path."""
    folder = tmp_path_factory.mktemp("backends")

    def start(distribute, end, **environment):
        script = repository / "tests" / "backend_run.py"
        places = folder / "start.npz", folder / end
        process = subprocess.Popen(
            [sys.executable, script, distribute, *places],
            env={
                **os.environ,
                "KERAS_BACKEND": "jax",
                "JAX_PLATFORMS": "cpu",
                "CUDA_VISIBLE_DEVICES": "",
                "PYTHONPATH": str(repository),
                # What one has compiled the next need not.
                "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
                **environment,
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        return process, places[1]

    return start


def results(*started):
    """Waits for the processes; returns what each wrote, as a dict."""
    found = []
    for process, end in started:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        with np.load(end) as arrays:
            found.append({name: arrays[name] for name in arrays.files})
    return found


@pytest.fixture(scope="module")
def one_device(start):
    (found,) = results(start("none", "one.npz"))
    return found


def test_the_run_was_one_that_could_differ(one_device):
    assert 0.0 < one_device["lam"] <= 1.0
    assert np.ptp(one_device["labels"]) > 0.5
    (steps,) = (v for k, v in one_device.items() if k.endswith("iteration"))
    assert steps == 9
    assert_something_happened(one_device, least=1e-2)


def test_tensorflow_trains_as_jax_does(start, one_device):
    (found,) = results(start("none", "tf.npz", KERAS_BACKEND="tensorflow"))
    assert_equal_numbers(found, one_device, rtol=0, atol=1e-4)


def test_two_devices_train_as_one_does(start, one_device):
    (found,) = results(start("mirrored", "mirrored.npz"))
    assert_equal_numbers(found, one_device)
    # Whole and equal on both.
    assert set(found["copies"]) == {2}


@pytest.mark.slow
def test_two_processes_train_as_one_does(start, one_device):
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    common = {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": "2"}
    workers = [
        start("multi_worker", f"{i}.npz", JAX_PROCESS_ID=str(i), **common)
        for i in range(2)
    ]
    for found in results(*workers):
        assert_equal_numbers(found, one_device)
        # Between steps a process's variables are its own.
        assert set(found["copies"]) == {1}
