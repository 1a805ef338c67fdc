"""Imports stay cheap, names are exported, docstring examples run."""

import doctest
import importlib
import subprocess
import sys

import pytest

import alim_keras.data

MODULES = ("candidates", "images", "known_data", "simulate", "training_set")
# They show files that are not there.
SHOWN_ONLY = ("DiskImages", "scan", "TrainingSet")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"alim_keras.data.{name}")
    ran = 0
    for test in doctest.DocTestFinder().find(module):
        if test.name.rpartition(".")[2] in SHOWN_ONLY:
            continue
        result = doctest.DocTestRunner().run(test)
        assert result.failed == 0
        ran += result.attempted
    assert ran > 0


def test_every_exported_name_is_there():
    for name in alim_keras.data.__all__:
        assert callable(getattr(alim_keras.data, name)) or name.isupper()
    assert "train_dataset" in dir(alim_keras.data)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        alim_keras.data.nothing  # noqa: B018


def test_importing_loads_no_package_it_may_not_need():
    code = """
import sys
import alim_keras.data
loaded = {name.split(".")[0] for name in sys.modules}
print(sorted(loaded & {"tensorflow_datasets", "sklearn", "matplotlib",
                       "scipy", "pandas", "keras", "tensorflow"}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=str(alim_keras.__path__[0]) + "/..",
    )
    assert done.stdout == "[]\n"
