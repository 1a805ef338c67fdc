"""Backbones by name: the package's own and those of keras.applications."""

import keras
import numpy as np
import pytest

from alim_keras import networks
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

# A corner pixel of (10, 20, 30), as the first layer of a family sees it.
SEEN = {
    # x / 127.5 - 1
    "MobileNetV2": [-0.921569, -0.843137, -0.764706],
    # (x / 255 - mean) / std
    "DenseNet121": [-1.946656, -1.685574, -1.281569],
    # Blue, green, red, less 103.939, 116.779, 123.68.
    "ResNet50": [-73.939, -96.779, -113.68],
    "EfficientNetV2B0": [10.0, 20.0, 30.0],
}


@pytest.mark.parametrize("name", SEEN)
def test_preprocessing_is_the_familys(name, monkeypatch):
    def maker(input_shape, **_):
        inputs = keras.Input(input_shape)
        return keras.Model(
            inputs, keras.layers.GlobalAveragePooling2D()(inputs)
        )

    maker.__module__ = getattr(keras.applications, name).__module__
    monkeypatch.setattr(keras.applications, name, maker)
    network, normalised = networks.make_backbone(name, (8, 8, 3))
    assert not normalised
    pixels = np.broadcast_to([10.0, 20.0, 30.0], (1, 8, 8, 3))
    pixels = pixels.astype("float32")
    np.testing.assert_allclose(network(pixels), [SEEN[name]], rtol=1e-4)
    # A key encoder is such a copy.
    copy = keras.models.clone_model(network)
    np.testing.assert_array_equal(copy(pixels), network(pixels))


@pytest.mark.parametrize(
    "name, shape, options, words",
    [
        ("MobileNetV2", (32, 32, 3), {"width": 8}, "fixed width.*width=8"),
        ("MobileNetV3", (32, 32, 3), {}, "mean MobileNetV.*=MobileNetV3"),
        ("small_cn", (32, 32, 3), {}, "mean small_cnn.*network=small_cn"),
        ("small_cnn", (32, 32, 3), {"weights": "imagenet"}, "no ImageNet"),
        ("MobileNetV2", (32, 32, 1), {}, "colour images.*input_shape="),
        ("small_cnn", (1, 1, 3), {}, "images of 1 x 1 x 3: .*--image_size"),
    ],
)
def test_wrong_arguments_are_refused(name, shape, options, words):
    with pytest.raises(ConfigError, match=words):
        networks.make_backbone(name, shape, **options)


# Keras warns before it raises.
@pytest.mark.filterwarnings("ignore:Skipping nested container")
def test_own_networks_are_made_by_name_with_weights_of_a_file(tmp_path):
    first, normalised = networks.make_backbone("mlp", (1, 1, 3), width=4)
    assert normalised
    assert (first.name, first.output_shape) == ("mlp", (None, 4))
    assert networks.make_backbone("mlp", (1, 1, 3))[0].output_shape[1] == 256
    path = str(tmp_path / "mlp.weights.h5")
    first.save_weights(path)
    second, _ = networks.make_backbone("mlp", (1, 1, 3), 4, weights=path)
    for one, two in zip(first.weights, second.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), two.numpy())
    with pytest.raises(DataError, match="do not fit mlp"):
        networks.make_backbone("mlp", (1, 1, 3), width=5, weights=path)
    with pytest.raises(DataError, match="no file of weights at none.h5"):
        networks.make_backbone("mlp", (1, 1, 3), weights="none.h5")


def saved(folder, shape, layers):
    """Writes a model of layers in a row; returns its path."""
    path = folder / "net.keras"
    keras.Sequential([keras.Input(shape), *layers]).save(path)
    return str(path)


def test_a_file_is_a_backbone(tmp_path):
    conv = keras.layers.Conv2D(4, 3)
    found = networks.find(saved(tmp_path, (None, None, 3), [conv]))
    assert (found.name, found.size) == ("net", 224)
    assert found.network.output_shape == (None, 4)
    found = networks.find(found.path, image_size=9)
    pixels = np.random.default_rng(0).uniform(0, 255, (2, 9, 9, 3))
    pixels = pixels.astype("float32")
    # A feature map is averaged.
    expected = np.mean(conv(pixels), axis=(1, 2))
    np.testing.assert_allclose(found.network(pixels), expected, rtol=1e-4)
    first = found.digest
    conv.bias.assign([1.0, 0.0, 0.0, 0.0])
    again = networks.find(saved(tmp_path, (None, None, 3), [conv]))
    assert again.digest != first
    fixed = networks.find(saved(tmp_path, (9, 9, 3), [conv]))
    assert fixed.size == 9
    with pytest.raises(ConfigError, match="takes images of 9 pixels"):
        networks.find(fixed.path, image_size=32)


@pytest.mark.parametrize(
    "shape, layer, words",
    [
        ((8, 8, 1), keras.layers.Flatten(), "8, 8, 1.*square colour images"),
        ((8, 4, 3), keras.layers.Flatten(), "8, 4, 3.*square colour images"),
        ((12,), keras.layers.Dense(2), "not a network from pixels"),
        ((8, 8, 3), keras.layers.Reshape((8, 24)), "must give one vector"),
        ((8, 8, 3), keras.layers.Lambda(lambda x: x), "without running code"),
    ],
)
def test_files_that_are_no_backbone(shape, layer, words, tmp_path):
    with pytest.raises(DataError, match=words):
        networks.find(saved(tmp_path, shape, [layer])).network


def test_nothing_is_pretrained_without_weights(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    for name in (None, "auto", "small_cnn", "MobileNetV2"):
        assert networks.find(name) is None
    assert networks.find("EfficientNetB3", "imagenet").size == 300
    assert networks.find("EfficientNetB3", "imagenet", 96).size == 96
    # What Keras fetched before is at hand.
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "efficientnetv2-b0_notop.h5").touch()
    assert networks.find("auto").name == "EfficientNetV2B0"


def test_sizes_are_those_of_keras():
    for name in ("Xception", "EfficientNetV2B1", "MobileNetV2"):
        maker = getattr(keras.applications, name)
        network = maker(weights=None)
        found = networks.find(name, "imagenet").size
        assert network.input_shape[1:3] == (found, found)


def test_the_last_layers_are_trained():
    dense = [keras.layers.Dense(2, name=name) for name in "abc"]
    inner = keras.Sequential([keras.Input((2,)), dense[0], dense[1]])
    network = keras.Sequential([keras.Input((2,)), inner, dense[2]])
    networks.train_last(network, 2)
    assert [layer.trainable for layer in dense] == [False, True, True]
    networks.train_last(network, 9)
    assert len(network.trainable_variables) == 4


def test_unit_features_have_length_one():
    vectors = np.array([[3.0, 4.0], [0.0, 0.0]], "float32")
    found = networks.unit_features(2)(vectors[:, None, None])
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.0, 0.0]], rtol=1e-6)
