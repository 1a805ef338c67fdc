"""Fixtures and options of all tests."""

import os
import pathlib
import sys

import hypothesis
import pytest

# Before the first import of Keras or matplotlib, wherever it happens.
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("MPLBACKEND", "Agg")

KERAS_BACKEND = os.environ["KERAS_BACKEND"]
REPOSITORY = pathlib.Path(__file__).resolve().parent.parent

# What runs on every Keras backend, `KERAS_BACKEND=jax ./scripts/test`: what
# computes in a step of its own. JAX compiles each operation of an eager step
# for each shape, about 30 ms apiece, so what is only another use of the same
# code stays out: the leg is to take less than five minutes.
CORE = (
    "test_draws.py",
    "test_losses.py",
    "test_metrics.py",
    "test_ops.py",
    "layers/",
    "augment/test_autoaugment.py",
    "augment/test_views.py",
    "methods/",
    "callbacks/test_alim.py",
    "networks/test_batch_norm.py",
    "data/test_pipeline.py",
)

# No deadline: a first call compiles. Derandomized: the same examples on every
# machine, so that a failure can be repeated.
hypothesis.settings.register_profile(
    "suite", deadline=None, derandomize=True, print_blob=True
)
hypothesis.settings.load_profile("suite")


def pytest_ignore_collect(collection_path):
    """Leaves out, on another Keras backend, what is not the core.

    A file that is named on the command line runs all the same.
    """
    if KERAS_BACKEND == "tensorflow" or collection_path.suffix != ".py":
        return None
    place = collection_path.relative_to(REPOSITORY / "tests").as_posix()
    return None if place.startswith(CORE) else True


def pytest_collection_modifyitems(items):
    """Skips, on another Keras backend, what is for TensorFlow only."""
    if KERAS_BACKEND == "tensorflow":
        return
    for item in items:
        marker = item.get_closest_marker("tensorflow")
        if marker is not None:
            reason = f"{marker.args[0]}; the backend is {KERAS_BACKEND}"
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish(session):
    """Gives TensorFlow two logical CPUs: two replicas on any machine."""
    # Devices are fixed at the first operation, so it is done before any test,
    # and only where a collected test has loaded TensorFlow anyway.
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None:
        return
    (cpu,) = tensorflow.config.list_physical_devices("CPU")
    if len(tensorflow.config.get_logical_device_configuration(cpu) or ()) < 2:
        tensorflow.config.set_logical_device_configuration(
            cpu, [tensorflow.config.LogicalDeviceConfiguration()] * 2
        )


@pytest.fixture(scope="session")
def repository():
    """The top of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared():
    """The folder of real data beside the checkout; skips where it is absent."""
    folder = REPOSITORY.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"needs the real data of {folder}, which is not here")
    return folder
