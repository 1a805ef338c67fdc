"""The same training on TensorFlow and on JAX."""

import os
import subprocess
import sys

import numpy as np
import pytest
from comparing import assert_equal_numbers
from comparing import assert_something_happened

pytest.importorskip("jax", reason="needs JAX, of the extra `test`")


@pytest.fixture(scope="module")
def ends(repository, tmp_path_factory):
    """Compares the weights after 20 steps on each backend."""
    folder = tmp_path_factory.mktemp("parity")
    found = {}
    for backend in ("tensorflow", "jax"):
        end = folder / f"{backend}.npz"
        subprocess.run(
            [
                sys.executable,
                repository / "tests" / "parity_run.py",
                folder / "start.npz",
                end,
            ],
            env={
                **os.environ,
                "KERAS_BACKEND": backend,
                "PYTHONPATH": str(repository),
                "JAX_PLATFORMS": "cpu",
                "CUDA_VISIBLE_DEVICES": "",
            },
            check=True,
        )
        with np.load(end) as arrays:
            found[backend] = {name: arrays[name] for name in arrays.files}
    return found


def test_weights_state_and_history_agree(ends):
    ours, theirs = ends["tensorflow"], ends["jax"]
    assert_equal_numbers(theirs, ours, rtol=0, atol=1e-4)


def test_the_run_was_one_that_could_differ(ends):
    ours = ends["tensorflow"]
    (iterations,) = (v for k, v in ours.items() if k.endswith("iteration"))
    assert iterations == 20
    assert_something_happened(ours, least=1e-3)
