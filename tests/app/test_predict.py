"""`python -m alim_keras.predict`: a model, images, and a CSV file."""

import csv
import functools
import io
import json
import shutil
import types

import commands
import keras
import numpy as np
import pytest
from PIL import Image

from alim_keras.app.predictor import load_predictor
from alim_keras.data.images import decode
from alim_keras.errors import CheckpointError
from alim_keras.methods import METHODS
from alim_keras.networks import mlp

NAMES = ("ant", "bee", "cat, big", "döner")
SIZE, FEATURES, COUNT = 8, 5, 7


def make_run(folder, backbone, shape, **options):
    """Leaves what a run leaves, of a model that never trained."""
    model = METHODS["rc"](backbone, len(NAMES), 10, **options)
    # Far apart, so that no rounding decides who is the likeliest.
    stream = np.random.default_rng(1)
    kernel = model.classifier.kernel
    kernel.assign(stream.normal(size=kernel.shape))
    model.export(str(folder / "saved_model"), class_names=NAMES)
    model.save(folder / "model.keras")
    data = {"class_names": NAMES, "image_shape": shape}
    (folder / "run.json").write_text(json.dumps({"data": data}))
    return types.SimpleNamespace(folder=folder, model=model)


@pytest.fixture(scope="module")
def model_run(tmp_path_factory):
    keras.utils.set_random_seed(5)
    inputs = keras.Input((SIZE, SIZE, 1))
    outputs = keras.layers.Dense(6)(keras.layers.Flatten()(inputs))
    folder = tmp_path_factory.mktemp("r")
    backbone = keras.Model(inputs, outputs)
    return make_run(folder, backbone, [SIZE, SIZE, 1], mean=0.4, std=0.3)


@pytest.fixture(scope="module")
def tabular(tmp_path_factory):
    keras.utils.set_random_seed(6)
    backbone, folder = mlp((1, 1, FEATURES), 6), tmp_path_factory.mktemp("t")
    return make_run(folder, backbone, [1, 1, FEATURES], std=1 / 255)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder of grey pictures at the network's size, and their pixels."""
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "more").mkdir()
    stream = np.random.default_rng(2)
    pixels = stream.integers(0, 256, (COUNT, SIZE, SIZE, 1)).astype("uint8")
    # The listing gives files of a folder before its folders.
    files = [f"{row}.png" for row in range(4)]
    files += [f"more/{row}.png" for row in range(4, COUNT)]
    for file, one in zip(files, pixels):
        Image.fromarray(one[..., 0]).save(folder / file)
    return types.SimpleNamespace(folder=folder, files=files, pixels=pixels)


def rows(*arguments):
    """Runs the command; returns the rows that it wrote to stdout."""
    code, out, err = commands.call("predict", *arguments)
    assert (code, err) == (0, "")
    return list(csv.DictReader(io.StringIO(out)))


error = functools.partial(commands.fails, "predict")


def check(found, expected, top=3):
    """Compares rows with what `model.predict` gave."""
    assert len(found) == len(expected)
    for row, p in zip(found, expected):
        order = np.argsort(-p)[:top]
        for place, one in enumerate(order, start=1):
            suffix = "" if place == 1 else f"_{place}"
            assert row[f"label{suffix}"] == NAMES[one]
            share = float(row[f"probability{suffix}"])
            assert share == pytest.approx(p[one], abs=1e-5)
        assert f"label_{top + 1}" not in row


@pytest.mark.parametrize("model", ["", "saved_model", "model.keras"])
def test_each_form_of_model(model_run, pictures, model):
    place = model_run.folder / model
    found = rows(place, pictures.folder, "--batch_size=3")
    files = [str(pictures.folder / file) for file in pictures.files]
    assert [row["id"] for row in found] == files
    expected = model_run.model.predict(pictures.pixels, verbose=0)
    check(found, expected)
    check(rows(place, pictures.folder, "--top_k=9"), expected, top=4)


def test_colour_and_other_sizes(model_run, pictures, tmp_path):
    colour = pictures.pixels[0].repeat(3, axis=2)
    Image.fromarray(colour).save(tmp_path / "a.png")
    large = pictures.pixels[1].repeat(2, axis=0).repeat(3, axis=1)
    Image.fromarray(large[..., 0]).save(tmp_path / "b.png")
    found = rows(model_run.folder, tmp_path)
    # Grey in colour is the same grey; a larger image is scaled and cropped as
    # for training.
    scaled = decode(str(tmp_path / "b.png"), SIZE, 1)
    expected = np.stack([pictures.pixels[0], scaled])
    check(found, model_run.model.predict(expected, verbose=0))


def test_the_order_is_that_of_the_line(model_run, pictures, tmp_path):
    np.save(tmp_path / "b.npy", pictures.pixels[2:4])
    first, last = (pictures.folder / pictures.files[row] for row in (0, 1))
    more = pictures.folder / "more"
    found = rows(model_run.folder, first, tmp_path / "b.npy", last, more)
    files = [str(pictures.folder / file) for file in pictures.files]
    ids = [str(first), "0", "1", str(last), *files[4:]]
    assert [row["id"] for row in found] == ids
    pixels = pictures.pixels[[0, 2, 3, 1, *range(4, COUNT)]]
    check(found, model_run.model.predict(pixels, verbose=0))


def test_arrays_and_their_ids(model_run, pictures, tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, images=pictures.pixels, ids=list("abcdefg"))
    found = rows(model_run.folder, path)
    assert [row["id"] for row in found] == list("abcdefg")
    check(found, model_run.model.predict(pictures.pixels, verbose=0))
    for ids in (["a", "", "b"], ["a", "b", "a"], ["a", "b"]):
        np.savez(path, images=pictures.pixels[:3], ids=ids)
        code, line = error(model_run.folder, path)
        assert code == 3 and "a.npz" in line and "id" in line


def test_a_bad_image_is_named_or_skipped(model_run, pictures, tmp_path):
    (tmp_path / "broken.png").write_bytes(b"none")
    (tmp_path / "empty.png").touch()
    arguments = (model_run.folder, pictures.folder, tmp_path)
    code, line = error(*arguments)
    assert code == 3 and "broken.png" in line
    assert "--on_bad_image=skip" in line
    skip = "--on_bad_image=skip"
    code, out, err = commands.call("predict", *arguments, skip)
    assert code == 0 and "2 of the images cannot be read and are left" in err
    found = list(csv.DictReader(io.StringIO(out)))
    check(found, model_run.model.predict(pictures.pixels, verbose=0))
    code, line = error(model_run.folder, tmp_path, skip)
    assert code == 3 and "none of the images can be read" in line


def test_what_the_model_does_not_take(model_run, tabular, pictures, tmp_path):
    np.savez(tmp_path / "a.npz", images=np.zeros((2, 8, 8, 3), "uint8"))
    np.save(tmp_path / "b.npy", np.zeros((2, 4)))
    (tmp_path / "c.csv").write_text("id,candidates\n")
    for folder, path, words in (
        (tabular.folder, pictures.folder, "of the shape (5,)"),
        (model_run.folder, tmp_path / "a.npz", "takes 1 channels"),
        (tabular.folder, tmp_path / "a.npz", "no array 'features'"),
        (tabular.folder, tmp_path / "b.npy", "takes 5 features. Received: 4"),
        (model_run.folder, tmp_path / "c.csv", "it is not an image of a known"),
        (model_run.folder, tmp_path / "x.png", "x.png: "),
    ):
        code, line = error(folder, path)
        assert code == 3 and words in line, line


def test_damaged_and_missing_models(model_run, pictures, tmp_path):
    picture = pictures.folder / pictures.files[0]
    (tmp_path / "model.keras").write_bytes(b"none")
    graph = shutil.copytree(model_run.folder / "saved_model", tmp_path / "g")
    for file in (graph / "variables").iterdir():
        file.write_bytes(file.read_bytes()[:50])
    absent, damaged = "There is no model in", "cannot be loaded"
    missing = dict.fromkeys(
        [tmp_path / "none", pictures.folder, picture], absent
    )
    broken = dict.fromkeys([tmp_path / "model.keras", graph], damaged)
    for path, words in (missing | broken).items():
        code, line = error(path, picture)
        assert code == 5 and words in line, line


def test_nothing_to_predict(model_run):
    assert error(model_run.folder)[0] == error()[0] == 2
    assert "Received: no images" in error(model_run.folder)[1]
    assert "Expected MODEL [PATHS...]" in error()[1]


def test_class_names_are_the_run_s(model_run, tmp_path):
    alone = tmp_path / "model.keras"
    alone.write_bytes((model_run.folder / "model.keras").read_bytes())
    assert load_predictor(alone).class_names == ("0", "1", "2", "3")
    data = {"class_names": NAMES[:2], "image_shape": [SIZE, SIZE, 1]}
    (tmp_path / "run.json").write_text(json.dumps({"data": data}))
    with pytest.raises(CheckpointError, match="4 classes.*2 names, ant, bee"):
        load_predictor(alone)


def test_feature_vectors(tabular, tmp_path):
    values = np.random.default_rng(3).normal(size=(6, FEATURES))
    np.savez(tmp_path / "a.npz", features=values, ids=list("abcdef"))
    np.save(tmp_path / "b.npy", values)
    expected = tabular.model.predict(values.reshape(6, 1, 1, -1), verbose=0)
    found = rows(tabular.folder, tmp_path / "a.npz")
    assert [row["id"] for row in found] == list("abcdef")
    check(found, expected)
    check(rows(tabular.folder, tmp_path / "b.npy"), expected)
