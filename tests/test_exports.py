"""The classifier as SavedModel and LiteRT: numbers and class names."""

import functools

import keras
import numpy as np
import pytest
import tiny

import alim_keras
from alim_keras.data import CandidateSets

NAMES = ["ant", "b ee", "cät"]


def network():
    """What convolutions, pooling and batch normalisation become."""
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


def test_it_holds_the_classifier_alone_and_the_names(trained, tmp_path):
    import tensorflow as tf

    model, images, expected = trained
    if model.takes_features:
        images = images[:, 0, 0]
    path = tmp_path / "new" / "saved"
    model.export(path)
    served = tf.saved_model.load(str(path))
    np.testing.assert_allclose(served.serve(images), expected, atol=1e-5)
    names = (path / "assets/class_names.txt").read_text(encoding="utf-8")
    assert names.splitlines() == NAMES
    sizes = [v.shape.num_elements() for v in served.network_variables]
    assert sum(sizes) == model.inference_network().count_params()


@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated")
@pytest.mark.filterwarnings("ignore:.*np.object")
def test_keras_writes_litert_of_the_network(trained, tmp_path):
    import tensorflow as tf

    model, images, expected = trained
    if model.takes_features:
        images = images[:, 0, 0]
    # As docs/embedding.md has it.
    network = model.inference_network(resizes=False)
    network(np.zeros_like(images[:1]))
    path = str(tmp_path / "model.tflite")
    network.export(path, format="litert", verbose=False)
    interpreter = tf.lite.Interpreter(model_path=path)
    interpreter.allocate_tensors()
    (given,), (made,) = (
        interpreter.get_input_details(),
        interpreter.get_output_details(),
    )
    interpreter.set_tensor(given["index"], images[:1])
    interpreter.invoke()
    found = interpreter.get_tensor(made["index"])
    np.testing.assert_allclose(found, expected[:1], atol=1e-5)


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
    texts = [
        (tmp_path / name / "assets/class_names.txt").read_text("utf-8")
        for name in "ab"
    ]
    assert texts == ["ant\nb ee\ncät\n", "x\ny\nz\n"]
