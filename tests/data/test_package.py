"""What importing costs, what is exported, and the docstrings' examples."""

import doctest
import importlib
import subprocess
import sys

import pytest

import alim_keras.data

MODULES = (
    "candidate_sets",
    "candidates",
    "checks",
    "image_checks",
    "sources.image_data",
    "sources.search",
    "splits",
    "superclasses",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"alim_keras.data.{name}")
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


def test_every_exported_name_is_there():
    for name in alim_keras.data.__all__:
        assert callable(getattr(alim_keras.data, name)) or name.isupper()
    assert "train_dataset" in dir(alim_keras.data)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        alim_keras.data.nothing  # noqa: B018


def test_importing_loads_no_package_it_may_not_need():
    code = """
import sys
import keras
before = set(sys.modules)
import alim_keras.data
added = {name.split(".")[0] for name in set(sys.modules) - before}
print(sorted(added & {"tensorflow_datasets", "sklearn", "PIL", "matplotlib",
                      "scipy", "pandas"}))
print("alim_keras.data.pipeline" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=str(alim_keras.__path__[0]) + "/..",
    )
    assert done.stdout.splitlines()[0] == "[]"
    assert done.stdout.splitlines()[1] == "False"
