"""Prepared TFDS folders, read without the network; what is not found."""

import os
import shutil
import unittest.mock
import urllib.error

import numpy as np
import pytest

from alim_keras.data import known_data as module
from alim_keras.data import load
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

tfds = pytest.importorskip("tensorflow_datasets")


pytestmark = pytest.mark.usefixtures("nothing_installed")
# Whether each is trained on.
BIRDS = {
    "001.Black_footed_Albatross/Black_Footed_Albatross_0046_18": True,
    "001.Black_footed_Albatross/Black_Footed_Albatross_0009_34": False,
    "002.Laysan_Albatross/Laysan_Albatross_0002_1027": True,
    "002.Laysan_Albatross/Laysan_Albatross_0001_545": True,
    "002.Laysan_Albatross/Laysan_Albatross_0003_1033": False,
}
IMAGES = np.random.default_rng(0).integers(0, 256, (20, 32, 32, 3), np.uint8)
LABELS = np.arange(20) % 10
NAMES = [f"class {n}" for n in range(10)]
Image, Label = tfds.features.Image, tfds.features.ClassLabel


def prepare(folder, name, features, train, test, test_split="test"):
    """Has TFDS prepare rows, by a builder class that it does not register."""

    def info(self):
        features_dict = tfds.features.FeaturesDict(features)
        return tfds.core.DatasetInfo(builder=self, features=features_dict)

    def splits(self, _):
        return {
            "train": self._generate_examples(train),
            test_split: self._generate_examples(test),
        }

    def examples(self, rows):
        yield from enumerate(rows)

    with tfds.core.registered.skip_registration():
        builder_class = type(
            name,
            (tfds.core.GeneratorBasedBuilder,),
            {
                "VERSION": tfds.core.Version("1.2.3"),
                "_info": info,
                "_split_generators": splits,
                "_generate_examples": examples,
                "__module__": __name__,
            },
        )
    builder_class(data_dir=str(folder)).download_and_prepare()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """cifar10 in small; its rows are stored in another order."""
    features = {
        "id": tfds.features.Text(),
        "image": Image(shape=(32, 32, 3)),
        "label": Label(names=NAMES),
    }
    train, test = (
        [
            {"id": f"{split}_{n:05d}", "image": IMAGES[n], "label": LABELS[n]}
            for n in range(count)
        ]
        for split, count in (("train", 20), ("test", 4))
    )
    folder = tmp_path_factory.mktemp("tfds")
    prepare(folder, "Cifar10", features, train, test)
    return folder


def test_examples_come_in_official_order_with_official_ids(prepared):
    data = load("cifar10", data_dir=prepared)
    assert data.source == str(prepared / "cifar10" / "1.2.3")
    assert data.ids.tolist() == [f"train_{n:05d}" for n in range(20)]
    assert np.array_equal(data.images, IMAGES)
    assert np.array_equal(data.labels, LABELS)
    assert data.test_ids.tolist() == [f"test_{n:05d}" for n in range(4)]
    assert np.array_equal(data.test_images, IMAGES[:4])
    assert data.class_names == tuple(NAMES)


def test_names_with_versions(prepared):
    source, arrays = module.read_prepared("cifar10:1.2.3", str(prepared))
    assert source.endswith("1.2.3") and len(arrays["train_images"]) == 20
    for name in ("cifar10:3.0.1", "cifar100"):
        assert module.read_prepared(name, str(prepared)) is None


def test_damaged_files_are_refused(prepared, tmp_path):
    shutil.copytree(prepared / "cifar10", tmp_path / "cifar10")
    folder = tmp_path / "cifar10" / "1.2.3"
    (records,) = folder.glob("cifar10-train.tfrecord*")
    for file in (records, folder / "features.json"):
        whole = file.read_bytes()
        file.write_bytes(whole[:-100])
        with pytest.raises(DataError, match="prepare it again") as caught:
            load("cifar10", data_dir=tmp_path, download=False)
        assert "\n" not in str(caught.value)
        assert str(tmp_path / "cifar10") in str(caught.value)
        file.write_bytes(whole)


def test_images_of_many_sizes_without_ids(tmp_path):
    features = {
        "image": Image(shape=(None, None, 1)),
        "label": Label(names=["cat", "dog"]),
    }
    rows = [
        {"image": np.full((10 + n, 12, 1), 20 * n, np.uint8), "label": n % 2}
        for n in range(6)
    ]
    prepare(tmp_path, "OddSizes", features, rows, rows[:2], "validation")
    data = load("odd_sizes", data_dir=tmp_path, download=False, image_size=8)
    assert data.images.shape == (6, 8, 8, 1)
    # TFDS's own: the record of the file, and no place in official files.
    record = "odd_sizes-train.tfrecord-00000-of-00001__"
    assert data.ids.tolist() == [f"{record}{n}" for n in range(6)]
    shades = data.images[:, 0, 0, 0].astype(int)
    assert sorted(shades) == [0, 20, 40, 60, 80, 100]
    assert np.array_equal(shades // 20 % 2, data.labels)
    assert len(data.test_images) == 2
    data = load("odd_sizes", data_dir=tmp_path, download=False)
    assert data.images.shape == (6, 224, 224, 1)


def test_birds_are_named_after_their_files(tmp_path):
    features = {
        "image": Image(),
        "image/filename": tfds.features.Text(),
        "label": Label(num_classes=2),
        "segmentation_mask": Image(shape=(None, None, 1)),
    }
    rows = {True: [], False: []}
    for number, (file, train) in enumerate(BIRDS.items(), 1):
        row = {"image": np.full((9, 9 + number, 3), 40 * number, np.uint8)}
        row["image/filename"] = f"CUB_200_2011/images/{file}.jpg"
        row["label"] = int(file[:3]) - 1
        row["segmentation_mask"] = np.zeros((3, 3, 1), np.uint8)
        rows[train].append(row)
    both = rows[True], rows[False]
    prepare(tmp_path, "CaltechBirds2011", features, *both)
    data = load("cub200", data_dir=tmp_path, download=False, image_size=4)
    # The ids of the archive, in rising order.
    assert dict(zip(data.ids.tolist(), data.images[:, 0, 0, 0].tolist())) == {
        "Black_Footed_Albatross_0046_18": 40,
        "Laysan_Albatross_0001_545": 160,
        "Laysan_Albatross_0002_1027": 120,
    }
    assert data.ids.tolist() == sorted(data.ids)
    assert data.class_names == ("Black_footed_Albatross", "Laysan_Albatross")
    assert data.protocol == "pico"


def test_sets_of_another_kind_are_refused(tmp_path):
    image, pixels = Image(shape=(4, 4, 3)), np.zeros((4, 4, 3), np.uint8)
    scores = ("score", np.float32, "test")
    lonely = ("label", Label(num_classes=2), "extra")
    for name, (key, kind, split), text in (
        ("Scores", scores, "one class label.*image, score"),
        ("Lonely", lonely, "train and a test.*extra, train"),
    ):
        rows = [{"image": pixels, key: 1}]
        prepare(tmp_path, name, {"image": image, key: kind}, rows, rows, split)
        with pytest.raises(DataError, match=text):
            load(name.lower(), data_dir=tmp_path, download=False)


@pytest.mark.parametrize(
    "error, text",
    [
        (ValueError("wrong checksum:\ny"), "failed: wrong checksum. Put"),
        (OSError("SSL: certificate has expired"), "failed: SSL: cert"),
    ],
)
def test_failed_downloads(tmp_path, monkeypatch, error, text):
    def fail(self, download_config):
        assert download_config.try_download_gcs is False
        raise error

    monkeypatch.setattr(module.urllib.request, "urlopen", unittest.mock.Mock())
    builder = tfds.core.DatasetBuilder
    monkeypatch.setattr(builder, "download_and_prepare", fail)
    with pytest.raises(DataError, match=text) as caught:
        load("cifar10", data_dir=tmp_path)
    assert "\n" not in str(caught.value)
    assert "cifar-10-binary.tar.gz in" in str(caught.value)


def test_no_network(tmp_path, monkeypatch):
    fail = unittest.mock.Mock(side_effect=urllib.error.URLError("timed out"))
    monkeypatch.setattr(module.urllib.request, "urlopen", fail)
    text = (
        f"^cifar10 is not on this machine, looked in {tmp_path}, "
        f"{os.environ['TFDS_DATA_DIR']}; the download from https://.* failed: "
        "<urlopen error timed out>. Put cifar10.npz in --data_dir, or "
        f"cifar-10-binary.tar.gz in {tmp_path}/downloads/manual$"
    )
    with pytest.raises(DataError, match=text):
        load("cifar10", data_dir=tmp_path)


def test_official_archives_are_used_without_network(tmp_path, monkeypatch):
    manual = tmp_path / "downloads" / "manual"
    manual.mkdir(parents=True)
    (manual / "cifar-10-binary.tar.gz").write_bytes(b"x")
    # TFDS looks into it.
    text = "manual/cifar-10-binary.tar.gz, has wrong checksum. Put"
    with pytest.raises(DataError, match=text):
        load("cifar10", data_dir=tmp_path, download=False)


def test_a_forbidden_download_touches_nothing(tmp_path):
    with pytest.raises(DataError, match="downloading is forbidden. Put its"):
        load("mnist", data_dir=tmp_path, download=False)
    assert list(tmp_path.iterdir()) == []


def test_unknown_names():
    text = "Unknown data set. Names are cifar10, cifar100, cifar100h"
    with pytest.raises(ConfigError, match=text):
        load("qqqqqq")
    with pytest.raises(ConfigError, match="Did you mean cifar10 or cifar100"):
        load("cifar1O")
