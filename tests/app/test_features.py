"""Runs on a pretrained network: features once, head, served classifier."""

import csv
import io
import shutil
import sys

import commands
import keras
import numpy as np
import own
import pytest

from alim_keras.app import features
from alim_keras.app.predictor import load_predictor
from alim_keras.data import DiskImages
from alim_keras.networks import find

SIZE = 16
FROZEN = ("--train_backbone=none", f"--image_size={SIZE}", "--learning_rate=2")
OWN = [flag for flag in commands.OWN if not flag.startswith("--width")]


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    """A .keras file: pixels of any size in [0, 255] to five features."""
    keras.utils.set_random_seed(1)
    inputs = keras.Input((None, None, 3))
    x = keras.layers.Rescaling(1 / 255)(inputs)
    # As the layers of some published networks are called.
    x = keras.layers.Conv2D(4, 3, name="_stem", activation="relu")(x)
    x = keras.layers.BatchNormalization()(x)
    x = keras.layers.Conv2D(5, 3, strides=2, activation="relu")(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    path = tmp_path_factory.mktemp("backbone") / "tiny.keras"
    keras.Model(inputs, x).save(path)
    return path


def data(photos, backbone, *flags):
    """The flags of the pictures and their network."""
    return (
        *(f"--dataset={photos / 'labels.csv'}", "--none_of_these=unsure"),
        *(f"--images={photos / 'photos'}", f"--network={backbone}"),
        *(f"--test_labels={photos / 'test.csv'}", *flags),
    )


def line(run_dir, *parts):
    """The words of a command that trains on the pictures."""
    return ("train", *OWN, f"--run_dir={run_dir}", *data(*parts))


def train(*parts):
    """Trains on the pictures; returns what was printed."""
    return commands.works(*line(*parts))


@pytest.fixture(scope="module")
def frozen_run(photos, backbone, tmp_path_factory):
    """The folder of a finished run, and what it printed."""
    folder = tmp_path_factory.mktemp("frozen") / "run"
    return folder, train(folder, photos, backbone, *FROZEN)


def kept(folder, num_views):
    (path,) = (folder.parent / "features").glob(f"*px-{num_views}views.npz")
    with np.load(path) as content:
        return dict(content)


def by_views(path, network):
    """The features of a file, view by view, in plain words."""
    plain = DiskImages([path], SIZE).read().astype("float32")
    large = DiskImages([path], round(SIZE / 0.8)).read().astype("float32")
    views = [plain]
    # 20 pixels wide: a margin of 4.
    for top, left in ((0, 0), (0, 4), (4, 0), (4, 4), (2, 2)):
        views.append(large[:, top : top + SIZE, left : left + SIZE])
    views += [view[:, :, ::-1] for view in views]
    return np.mean([network(view)[0] for view in views], axis=0)


def test_features_are_the_mean_over_views(frozen_run, photos, backbone):
    folder, out = frozen_run
    assert "Features: 96 of 96 in " in out
    assert "by tiny (16 px, mean of 12 views): 96 computed" in out
    assert "by tiny (16 px, test): 12 computed" in out
    network, content = keras.saving.load_model(backbone), kept(folder, 12)
    assert content["features"].dtype == np.float16
    assert content["features"].shape == (96, 5)
    rows = dict(zip(content["digests"].tolist(), content["features"]))
    for name in ("0000.png", "0095.png"):
        path = str(photos / "photos" / name)
        found = rows[DiskImages([path], SIZE).digests()[0]]
        np.testing.assert_allclose(found, by_views(path, network), rtol=2e-3)


def test_what_is_kept_is_not_computed_again(
    frozen_run, photos, backbone, tmp_path
):
    folder, _ = frozen_run
    place = shutil.copytree(photos, tmp_path / "own")
    shutil.copytree(folder.parent / "features", tmp_path / "features")
    out = train(tmp_path / "one", place, backbone, *FROZEN, "--method=pico")
    assert "0 computed in 0 s, 96 read from" in out
    assert "0 computed in 0 s, 12 read from" in out
    shutil.copy(place / "photos" / "test_0003.png", place / "photos/0003.png")
    out = train(tmp_path / "two", place, backbone, *FROZEN, "--seed=2")
    assert ": 1 computed" in out and ", 95 read from" in out
    # A damaged file of features is written again.
    (path,) = (tmp_path / "features").glob("*-1views.npz")
    path.write_bytes(b"PK")
    out = train(tmp_path / "three", place, backbone, *FROZEN, "--seed=3")
    assert ": 12 computed" in out


def test_the_served_classifier_takes_pixels(frozen_run, photos, backbone):
    folder, _ = frozen_run
    paths = [str(photos / "photos" / f"test_{n:04d}.png") for n in range(12)]
    # Centred by the mean of the training images, of length 1, then the head.
    vectors = kept(folder, 12)["features"].astype("float64")
    network = keras.saving.load_model(backbone)
    x = np.asarray(network(DiskImages(paths, SIZE).read().astype("float32")))
    x = x - vectors.mean(axis=0)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    # Without anything of this package, in safe mode.
    model = keras.saving.load_model(folder / "model.keras")
    kernel, bias = (w.numpy() for w in model.layers[-1].weights[-2:])
    expected = np.asarray(keras.ops.softmax(x @ kernel + bias))
    for name in ("saved_model", "model.keras"):
        predictor = load_predictor(folder / name)
        assert predictor.input_shape == (SIZE, SIZE, 3)
        images = DiskImages(paths, *predictor.form).read()
        found = predictor.probabilities(images)
        np.testing.assert_allclose(found, expected, atol=2e-3)
    out = commands.works("predict", folder, *paths, "--top_k=1")
    rows = list(csv.DictReader(io.StringIO(out)))
    labels = [sorted(own.NAMES)[c] for c in expected.argmax(axis=1)]
    assert [row["label"] for row in rows] == labels


def test_audit_and_export(frozen_run, tmp_path):
    folder, _ = frozen_run
    out = tmp_path / "audit"
    commands.works("audit", folder, f"--out={out}")
    assert "data:image" in (out / "report.html").read_text("utf-8")
    assert len(own.read_rows(out / "labels.csv")) == 96
    before = (folder / "labels.csv").read_bytes()
    (folder / "model.keras").unlink()
    commands.works("export", folder)
    assert (folder / "labels.csv").read_bytes() == before
    assert (folder / "model.keras").exists()


def test_a_continued_run_is_the_uninterrupted_one(
    frozen_run, photos, backbone, tmp_path
):
    folder, _ = frozen_run
    own_backbone = shutil.copy(backbone, tmp_path / backbone.name)
    flags = (tmp_path / "run", photos, own_backbone, *FROZEN)
    with pytest.raises(AssertionError):
        commands.stop_after_an_epoch(lambda: train(*flags))
    network = keras.saving.load_model(own_backbone)
    network.set_weights([2 * value for value in network.get_weights()])
    network.save(own_backbone)
    with pytest.raises(AssertionError, match="tiny.keras has changed since"):
        train(*flags)
    shutil.copy(backbone, own_backbone)
    assert "after epoch 1" in train(*flags)
    for name in ("labels.csv", "classes.csv"):
        assert (flags[0] / name).read_bytes() == (folder / name).read_bytes()


def test_compare_computes_features_once(photos, backbone, tmp_path):
    flags = [flag for flag in OWN if not flag.startswith("--method")]
    flags += ["--methods=irnet,rc+alim", "--seeds=1", f"--out={tmp_path}"]
    commands.works("compare", *flags, *data(photos, backbone, *FROZEN))
    logs = sorted((tmp_path / "cells").glob("*/log.txt"))
    texts = " ".join(log.read_text() for log in logs)
    assert texts.count("96 computed") == texts.count("12 computed") == 1
    assert texts.count(" 0 computed") == 2


def test_images_of_an_array(backbone, tmp_path):
    """Grey pixels of 8 x 8: resized and coloured, as in the classifier."""
    pixels = np.random.default_rng(0).integers(0, 256, (64, 8, 8, 1), np.uint8)
    sets = np.eye(2, dtype=int)[np.arange(64) % 2]
    table = tmp_path / "t.npz"
    np.savez(table, images=pixels, candidates=sets, labels=np.arange(64) % 2)
    commands.works(
        *("train", *OWN, f"--run_dir={tmp_path / 'run'}"),
        *(f"--dataset={table}", f"--network={backbone}", *FROZEN),
    )
    predictor = load_predictor(tmp_path / "run" / "model.keras")
    assert predictor.input_shape == (8, 8, 1)
    found = features._features(
        find(str(backbone), None, SIZE), pixels, 1, str(tmp_path)
    )
    large = keras.layers.Resizing(SIZE, SIZE)(pixels.repeat(3, axis=3))
    expected = keras.saving.load_model(backbone)(large)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-3)
    assert predictor.probabilities(pixels).shape == (64, 2)


@pytest.mark.parametrize("part, count", [("all", 8), ("last:1", 4)])
def test_fine_tuning(part, count, photos, backbone, tmp_path):
    flags = (f"--train_backbone={part}", f"--image_size={SIZE}")
    out = train(tmp_path / "run", photos, backbone, *flags)
    assert "computed" not in out
    model = keras.saving.load_model(tmp_path / "run" / "model.keras")
    # Kernels and biases, scales and offsets; and the head's.
    assert len(model.trainable_variables) == count
    before = keras.saving.load_model(backbone).get_weights()
    stem, *_ = model.backbone.get_weights()
    assert np.array_equal(stem, before[0]) == (part != "all")


@pytest.mark.parametrize(
    "flags, code, words",
    [
        (("--network=none.keras",), 3, "No such file"),
        (("--network=hub:x",), 6, "needs the package keras-hub"),
        (("--weights=imagenet",), 2, "brings its weights"),
        (("--width=4",), 2, "fixed width"),
        (("--network=small_cnn",), 2, "about a pretrained network"),
        (("--train_backbone=last:0",), 2, "last:K or after:E"),
        (
            ("--network=image_statistics", "--train_backbone=after:2"),
            *(2, "about a pretrained network"),
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    flags, code, words, photos, backbone, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "keras_hub", None)
    found = commands.fails(*line(tmp_path, photos, backbone, *FROZEN, *flags))
    assert found[0] == code and words in found[1], found


def test_a_network_that_gives_nan_is_named(photos, tmp_path):
    inputs = keras.Input((None, None, 3))
    x = keras.layers.GlobalAveragePooling2D()(inputs)
    x = keras.layers.Rescaling(float("nan"))(x)
    path = tmp_path / "broken.keras"
    keras.Model(inputs, x).save(path)
    code, text = commands.fails(*line(tmp_path / "run", photos, path, *FROZEN))
    assert code == 3
    assert f"{path} gives features that are NaN or infinite" in text
    assert not list((tmp_path / "features").glob("*"))


def test_fine_tuning_goes_on_from_the_frozen_run(photos, backbone, tmp_path):
    flags = ("--train_backbone=after:2", f"--image_size={SIZE}", "--epochs=1")
    flags = (*flags, "--head_folds=2", "--learning_rate=1e-9")
    away = shutil.copytree(photos / "photos", tmp_path / "away")
    first = (*flags, f"--images={away}")
    out = train(tmp_path / "run", photos, backbone, *first)
    # Computed once; read when the frozen run is opened again.
    assert out.count(" 0 computed") == 2 == out.count("computed") - 2
    frozen = load_predictor(tmp_path / "run-frozen" / "model.keras")
    tuned = load_predictor(tmp_path / "run" / "model.keras")
    shape = (7, SIZE, SIZE, 3)
    pixels = np.random.default_rng(0).integers(0, 256, shape, "uint8")
    # At so small a rate nothing moves: the same classifier, two ways.
    expected = frozen.probabilities(pixels)
    np.testing.assert_allclose(tuned.probabilities(pixels), expected, atol=1e-4)
    model = keras.saving.load_model(tmp_path / "run" / "model.keras")
    assert len(model.trainable_variables) > 2
    before = (tmp_path / "run" / "labels.csv").read_text()
    # Another run than one that stays frozen.
    with pytest.raises(AssertionError, match="--train_backbone=after:2"):
        train(tmp_path / "run", photos, backbone, *first[1:])
    # The frozen run is finished, and its images were moved.
    shutil.rmtree(tmp_path / "run")
    shutil.rmtree(away)
    train(tmp_path / "run", photos, backbone, *flags)
    assert (tmp_path / "run" / "labels.csv").read_text() == before
    shutil.rmtree(tmp_path / "run-frozen")
    (tmp_path / "run" / "results.json").unlink()
    (tmp_path / "run" / "labels.csv").unlink()
    out = train(tmp_path / "run", photos, backbone, *flags)
    assert "Continuing" in out and "computed" not in out
    assert (tmp_path / "run" / "labels.csv").read_text() == before


def test_fine_tuning_that_is_interrupted_in_either_part(
    photos, backbone, tmp_path
):
    flags = ("--train_backbone=after:2", f"--image_size={SIZE}", "--epochs=2")
    flags = (photos, backbone, *flags, "--head_folds=2")
    train(tmp_path / "whole", *flags)
    for part in ("run-frozen", "run-frozen", "run"):
        with pytest.raises(AssertionError):
            commands.stop_after_an_epoch(
                lambda: train(tmp_path / "run", *flags)
            )
        assert (tmp_path / part / "checkpoints").exists()
    assert "after epoch 1" in train(tmp_path / "run", *flags)
    for name in ("labels.csv", "classes.csv"):
        whole = (tmp_path / "whole" / name).read_bytes()
        assert (tmp_path / "run" / name).read_bytes() == whole
