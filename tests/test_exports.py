"""The classifier as SavedModel, LiteRT and ONNX: numbers, class names, NaN."""

import functools
import json
import sys
import zipfile

import keras
import numpy as np
import pytest
import tiny

import alim_keras
from alim_keras.backend.tensorflow import load_served_model
from alim_keras.data import CandidateSets
from alim_keras.errors import ConfigError
from alim_keras.errors import EnvironmentLacksError

NAMES = ["ant", "b ee", "cät"]
FILES = {"tf_saved_model": "s", "litert": "m.tflite", "onnx": "m.onnx"}


def network():
    inputs = keras.Input((8, 8, 3))
    x = keras.layers.Conv2D(4, 3, padding="same")(inputs)
    x = keras.layers.BatchNormalization()(x)
    x = keras.layers.GlobalAveragePooling2D()(keras.layers.ReLU()(x))
    return keras.Model(inputs, x)


@pytest.fixture(scope="module", params=["images", "features"])
def trained(request):
    """A model that `fit` has told the class names; its data; probabilities."""
    images, candidates, _ = tiny.examples(24, shape=(8, 8, 3))
    sets = CandidateSets.from_dense(candidates, class_names=NAMES)
    options = {"mean": 0.5, "std": 0.25}
    build = network
    if request.param == "features":
        images = images.reshape(24, 1, 1, -1).astype("float32") / 255 - 0.5
        options = {"mean": 0.0, "std": 1 / 255}
        shape = images.shape[1:]
        build = functools.partial(alim_keras.networks.mlp, shape, width=8)
    model = tiny.plain(build, **options)
    tiny.fit(model, alim_keras.data.train_dataset(images, sets, 6), epochs=2)
    images = images.astype("float32")
    return model, images, model.predict(images, verbose=0)


def run_litert(path, images):
    import tensorflow as tf

    interpreter = tf.lite.Interpreter(model_path=str(path))
    interpreter.allocate_tensors()
    (given,) = interpreter.get_input_details()
    (made,) = interpreter.get_output_details()
    found = []
    for image in images:
        interpreter.set_tensor(given["index"], image[None])
        interpreter.invoke()
        found.append(interpreter.get_tensor(made["index"])[0])
    return np.array(found)


@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated")
@pytest.mark.filterwarnings("ignore:.*np.object")
@pytest.mark.parametrize("format", FILES)
def test_it_holds_the_classifier_alone_and_the_names(trained, format, tmp_path):
    model, images, expected = trained
    path = tmp_path / "new" / FILES[format]
    if model.takes_features:
        images = images[:, 0, 0]
    if format == "onnx":
        pytest.importorskip("tf2onnx")
        runtime = pytest.importorskip("onnxruntime")
    model.export(path, format=format)
    if format == "tf_saved_model":
        import tensorflow as tf

        served = tf.saved_model.load(str(path))
        found = served.serve(images).numpy()
        signature = served.signatures["serving_default"]
        if model.takes_features:
            found = signature(features=images)["output_0"].numpy()
        serve, shape = load_served_model(str(path))
        assert shape == images.shape[1:]
        np.testing.assert_allclose(serve(images[:1]), expected[:1], atol=1e-5)
        names = (path / "assets/class_names.txt").read_text("utf-8").split("\n")
        assert names.pop() == ""
        sizes = [v.shape.num_elements() for v in served.network_variables]
        assert sum(sizes) == model.inference_network().count_params()
    elif format == "litert":
        found = run_litert(path, images)
        with zipfile.ZipFile(path) as archive:
            names = archive.read("class_names.txt").decode().splitlines()
        # No table, no optimizer: little more than the classifier's weights.
        weights = 4 * model.inference_network().count_params()
        assert path.stat().st_size < weights + 8000
    else:
        session = runtime.InferenceSession(str(path))
        (given,) = session.get_inputs()
        (found,) = session.run(None, {given.name: images})
        metadata = session.get_modelmeta().custom_metadata_map
        names = json.loads(metadata["class_names"])
        if not model.takes_features:
            large = images.repeat(2, 1).repeat(3, 2)
            (resized,) = session.run(None, {given.name: large})
            large = model.predict(large, verbose=0)
            np.testing.assert_allclose(resized, large, atol=1e-5)
    assert names == NAMES
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_names_travel_with_a_saved_model_and_can_be_given(tmp_path):
    images, candidates, _ = tiny.examples(24)
    sets = CandidateSets.from_dense(candidates, class_names=NAMES)
    model = tiny.plain()
    assert model.class_names is None
    # Class numbers are no names.
    tiny.fit(model, tiny.batches(images, candidates, 6))
    assert model.class_names is None
    tiny.fit(model, tiny.batches(images, sets, 6))
    model.save(tmp_path / "model.keras")
    custom = {"Plain": tiny.Plain}
    again = keras.saving.load_model(tmp_path / "model.keras", custom)
    assert again.class_names == NAMES and again.compiled
    again.export(tmp_path / "a")
    again.export(tmp_path / "b", class_names=["x", "y", "z"])
    for name, text in (("a", "ant\nb ee\ncät\n"), ("b", "x\ny\nz\n")):
        file = tmp_path / name / "assets" / "class_names.txt"
        assert file.read_text("utf-8") == text


def test_what_cannot_be_written_is_said_in_a_line(tmp_path, monkeypatch):
    model = tiny.plain()
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    for path, format, error, words in (
        ("m.onnx", "onnx", EnvironmentLacksError, "pip install .*tf2onnx"),
        ("m.onnx", "onxx", ConfigError, "Did you mean onnx"),
        ("m.lite", "litert", ConfigError, "ending .tflite.*m.lite"),
    ):
        with pytest.raises(error, match=words) as found:
            model.export(tmp_path / path, format=format)
        assert "\n" not in str(found.value)
    assert list(tmp_path.iterdir()) == []


def test_a_name_must_be_one_line_of_text(tmp_path):
    model = tiny.plain(count=40)
    for name in ("c\nat", "cat\r", "", " ", "\udcff"):
        with pytest.raises(ConfigError) as error:
            model.export(tmp_path / "saved", class_names=["ant", name, "bee"])
        *_, text = str(error.value).split("Received: ")
        assert text == f"class_names[1]={ascii(name)}"
        assert not (tmp_path / "saved").exists()


def test_names_empty_batches_and_broken_pixels(tmp_path):
    names = ["ant", "b\u2028ee", "c at"]
    model = tiny.plain(count=40)
    path = str(tmp_path / "saved")
    model.export(path, class_names=names)
    file = tmp_path / "saved" / "assets" / "class_names.txt"
    assert file.read_text(encoding="utf-8").split("\n") == [*names, ""]

    serve, shape = load_served_model(path)
    assert shape == tiny.SHAPE
    images = tiny.examples(3)[0]
    expected = model.predict(images, verbose=0)
    np.testing.assert_allclose(serve(images), expected, atol=1e-6)
    assert serve(images[:0]).shape == (0, 3)
    broken = images.astype("float32")
    broken[1, 2, 2] = np.nan
    broken[2, 0, 0] = np.inf
    for found in (serve(broken), model.predict(broken, verbose=0)):
        np.testing.assert_allclose(found[0], expected[0], atol=1e-6)
        assert np.isnan(found[1:]).all()
