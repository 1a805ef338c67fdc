"""A run on images and one on feature vectors, and how to ask them."""

import csv
import io
import types

import keras
import numpy as np
import pytest
from PIL import Image
from predicting import COUNT
from predicting import FEATURES
from predicting import SIZE
from predicting import call
from predicting import leave
from predicting import make_model

from alim_keras.networks import mlp


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """The folder of a run on images, and its model."""
    keras.utils.set_random_seed(5)
    inputs = keras.Input((SIZE, SIZE, 1))
    x = keras.layers.Flatten()(inputs)
    backbone = keras.Model(inputs, keras.layers.Dense(6)(x))
    model = make_model(backbone, mean=0.4, std=0.3)
    folder = tmp_path_factory.mktemp("run")
    leave(folder, model, [SIZE, SIZE, 1])
    return types.SimpleNamespace(folder=folder, model=model)


@pytest.fixture(scope="session")
def tabular(tmp_path_factory):
    """The folder of a run on feature vectors, and its model."""
    keras.utils.set_random_seed(6)
    model = make_model(mlp((1, 1, FEATURES), 6), mean=0.01, std=1 / 255)
    folder = tmp_path_factory.mktemp("tabular")
    leave(folder, model, [1, 1, FEATURES])
    return types.SimpleNamespace(folder=folder, model=model)


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    """A folder of grey pictures at the network's size, and their pixels."""
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "more").mkdir()
    stream = np.random.default_rng(2)
    pixels = stream.integers(0, 256, (COUNT, SIZE, SIZE, 1)).astype("uint8")
    files = [f"{row}.png" for row in range(4)]
    files = [f"more/{row}.png" for row in range(4, COUNT)] + files
    # The listing gives files of a folder before its folders.
    files = files[COUNT - 4 :] + files[: COUNT - 4]
    for file, one in zip(files, pixels):
        Image.fromarray(one[..., 0]).save(folder / file)
    return types.SimpleNamespace(folder=folder, files=files, pixels=pixels)


@pytest.fixture
def rows(capsys):
    """Runs the command; returns the rows that it wrote to stdout."""

    def read(*arguments):
        capsys.readouterr()
        code = call(*arguments)
        found = capsys.readouterr()
        assert (code, found.err) == (0, "")
        return list(csv.DictReader(io.StringIO(found.out)))

    return read


@pytest.fixture
def error(capsys):
    """Runs the command; returns its exit code and its one line on stderr."""

    def read(*arguments):
        capsys.readouterr()
        code = call(*arguments)
        (line,) = capsys.readouterr().err.strip().splitlines()
        return code, line

    return read
