"""Prepared TFDS folders, read without the network; what is not found."""

import json
import os
import shutil

import numpy as np
import pytest
import small_archives

from alim_keras.data import load
from alim_keras.data.sources import tfds as source
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError

tfds = pytest.importorskip("tensorflow_datasets")

IMAGES = small_archives.pictures(20)
LABELS = np.arange(20) % 10
NAMES = [f"class {n}" for n in range(10)]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """cifar10 in small, prepared by TFDS's own builder from an archive."""
    from tensorflow_datasets.core.download import resource

    folder = tmp_path_factory.mktemp("tfds")
    builder_class = tfds.builder_cls("cifar10")
    ((url, info),) = builder_class.url_infos.items()
    name = resource.get_dl_fname(url, info.checksum)
    cached = folder / "downloads" / "cifar10" / name
    cached.parent.mkdir(parents=True)
    contents = small_archives.cifar10_binary(
        IMAGES, LABELS, IMAGES[:4], LABELS[:4], NAMES
    )
    small_archives.write_tar(cached, contents)
    origin = {
        "original_fname": info.filename,
        "dataset_names": ["cifar10"],
        "urls": [url],
    }
    cached.with_name(name + ".INFO").write_text(json.dumps(origin))
    tfds.builder("cifar10", data_dir=str(folder)).download_and_prepare()
    return folder


def build(builder_class, folder, num_shards=None):
    config = tfds.download.DownloadConfig(num_shards=num_shards)
    builder = builder_class(data_dir=str(folder))
    builder.download_and_prepare(download_config=config)


def make_builder(name, features, train, test, test_split="test"):
    """Returns a builder class that is not registered with TFDS."""

    def info(self):
        return tfds.core.DatasetInfo(builder=self, features=features)

    def splits(self, _):
        return {
            "train": self._generate_examples(train),
            test_split: self._generate_examples(test),
        }

    def examples(self, rows):
        yield from enumerate(rows)

    with tfds.core.registered.skip_registration():
        return type(
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


def test_examples_come_in_official_order_with_official_ids(prepared):
    data = load("cifar10", data_dir=prepared)
    assert data.source == str(prepared / "cifar10" / "3.0.2")
    assert data.ids.tolist() == [f"train_{n:05d}" for n in range(20)]
    assert np.array_equal(data.images, IMAGES)
    assert np.array_equal(data.labels, LABELS)
    assert data.test_ids.tolist() == [f"test_{n:05d}" for n in range(4)]
    assert np.array_equal(data.test_images, IMAGES[:4])
    assert data.class_names == tuple(NAMES)


def test_a_resized_prepared_set(prepared):
    data = load("cifar10", data_dir=prepared, image_size=8)
    assert data.images.shape == (20, 8, 8, 3)
    # Shrinking keeps the mean of random pixels.
    assert abs(data.images.mean() - IMAGES.mean()) < 2


def test_the_folder_of_the_set_or_version_will_do(prepared):
    for folder in ("cifar10", "cifar10/3.0.2"):
        found = source.find_prepared("cifar10", str(prepared / folder))
        assert found == str(prepared / "cifar10" / "3.0.2")
    data = load("cifar10", data_dir=f"{prepared}/cifar10/", download=False)
    assert len(data.images) == 20
    assert source.find_prepared("cifar100", str(prepared)) is None
    assert source.find_prepared("cifar10:3.0.1", str(prepared)) is None
    assert source.find_prepared("cifar10:3.0.2", str(prepared)) is not None


def test_the_default_folder_of_tfds_is_looked_at(prepared, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(prepared))
    assert load("cifar10", download=False).source.startswith(str(prepared))


def test_versions_and_configurations(tmp_path):
    for folder in ("a/1.0.0", "a/1.10.0", "a/1.9.0", "b/x/1.0.0", "b/y/1.0.0"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "dataset_info.json").write_text("{}")
    (tmp_path / "a" / "incomplete.ABC_2.0.0").mkdir()
    (tmp_path / "a" / "2.0.0").mkdir()
    found = source.find_prepared("a", str(tmp_path))
    assert found == str(tmp_path / "a" / "1.10.0")
    found = source.find_prepared("b/y", str(tmp_path))
    assert found == str(tmp_path / "b" / "y" / "1.0.0")
    with pytest.raises(ConfigError, match="2 configurations of b.*b/x, b/y"):
        source.find_prepared("b", str(tmp_path))


def test_damaged_files_are_refused(prepared, tmp_path):
    shutil.copytree(prepared / "cifar10", tmp_path / "cifar10")
    folder = tmp_path / "cifar10" / "3.0.2"
    (records,) = folder.glob("cifar10-train.tfrecord*")
    whole = records.read_bytes()
    records.write_bytes(whole[:-100])
    with pytest.raises(DataError, match="prepare it again") as caught:
        load("cifar10", data_dir=tmp_path, download=False)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)
    records.write_bytes(whole)
    (folder / "features.json").write_text("{")
    with pytest.raises(DataError, match="prepare it again"):
        load("cifar10", data_dir=tmp_path, download=False)


def test_images_of_many_sizes_without_ids(tmp_path, capsys):
    features = tfds.features.FeaturesDict(
        {
            "image": tfds.features.Image(shape=(None, None, 1)),
            "label": tfds.features.ClassLabel(names=["cat", "dog"]),
        }
    )
    rows = [
        {"image": np.full((10 + n, 12, 1), 20 * n, np.uint8), "label": n % 2}
        for n in range(6)
    ]
    maker = make_builder("OddSizes", features, rows, rows[:2], "validation")
    build(maker, tmp_path)
    capsys.readouterr()
    data = load("odd_sizes", data_dir=tmp_path, download=False, image_size=8)
    assert data.images.shape == (6, 8, 8, 1)
    assert data.ids.tolist() == [f"train_{n:05d}" for n in range(6)]
    shades = data.images[:, 0, 0, 0].astype(int)
    assert sorted(shades) == [0, 20, 40, 60, 80, 100]
    assert np.array_equal(shades // 20 % 2, data.labels)
    assert len(data.test_images) == 2
    assert capsys.readouterr().err == ""
    data = load("odd_sizes", data_dir=tmp_path, download=False)
    assert data.images.shape == (6, 224, 224, 1)
    assert "224 x 224" in capsys.readouterr().err


def test_birds_are_named_after_their_files(tmp_path):
    features = tfds.features.FeaturesDict(
        {
            "image": tfds.features.Image(),
            "image/filename": tfds.features.Text(),
            "label": tfds.features.ClassLabel(num_classes=2),
            "segmentation_mask": tfds.features.Image(shape=(None, None, 1)),
        }
    )
    rows = {True: [], False: []}
    for number, (folder, file, train) in enumerate(small_archives.BIRDS, 1):
        rows[train].append(
            {
                "image": np.full((9, 9 + number, 3), 40 * number, np.uint8),
                "image/filename": f"CUB_200_2011/images/{folder}/{file}.jpg",
                "label": int(folder[:3]) - 1,
                "segmentation_mask": np.zeros((3, 3, 1), np.uint8),
            }
        )
    maker = make_builder("CaltechBirds2011", features, rows[True], rows[False])
    build(maker, tmp_path)
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
    features = tfds.features.FeaturesDict(
        {"image": tfds.features.Image(shape=(4, 4, 3)), "score": np.float32}
    )
    row = {"image": np.zeros((4, 4, 3), np.uint8), "score": 0.5}
    build(make_builder("Scores", features, [row], [row]), tmp_path)
    with pytest.raises(DataError, match="one class label.*image, score"):
        load("scores", data_dir=tmp_path, download=False)
    features = tfds.features.FeaturesDict(
        {
            "image": tfds.features.Image(shape=(4, 4, 3)),
            "label": tfds.features.ClassLabel(num_classes=2),
        }
    )
    row = {"image": np.zeros((4, 4, 3), np.uint8), "label": 1}
    build(make_builder("Lonely", features, [row], [row], "extra"), tmp_path)
    with pytest.raises(DataError, match="train and a test.*extra, train"):
        load("lonely", data_dir=tmp_path, download=False)


def test_hashed_order_is_that_of_tfds():
    hasher = tfds.core.hashing.Hasher("test")
    expected = sorted(range(2000), key=hasher.hash_key)
    assert source.hashed_order("test", 2000) == expected


def test_hashed_order_is_that_of_the_real_cifar10(shared):
    with np.load(shared / "data" / "cifar10n_labels.npz") as file:
        expected = file["image_order_tfds"]
    assert np.array_equal(source.hashed_order("train", 50000), expected)


def test_mnist_gets_its_official_places_back(tmp_path):
    features = tfds.features.FeaturesDict(
        {
            "image": tfds.features.Image(shape=(28, 28, 1)),
            "label": tfds.features.ClassLabel(num_classes=10),
        }
    )
    # More than TFDS would read from one of the files before the next.
    pixels = small_archives.pictures(90, 28, 1)
    rows = [{"image": one, "label": n % 10} for n, one in enumerate(pixels)]
    maker = make_builder("Mnist", features, rows, rows[:5])
    build(maker, tmp_path, num_shards=3)
    assert len(list(tmp_path.glob("mnist/*/mnist-train.tfrecord*"))) == 3
    data = load("mnist", data_dir=tmp_path, download=False)
    assert data.ids.tolist() == [f"train_{n:05d}" for n in range(90)]
    assert np.array_equal(data.images, pixels)
    assert np.array_equal(data.test_images, pixels[:5])


# --- without the package ------------------------------------------------


def test_prepared_but_not_installed(prepared, no_tfds):
    with pytest.raises(EnvironmentLacksError) as caught:
        load("cifar10", data_dir=prepared)
    assert str(prepared / "cifar10" / "3.0.2") in str(caught.value)
    assert "pip install tensorflow-datasets" in str(caught.value)


def test_another_form_is_used_where_it_is_not_installed(
    prepared, tmp_path, no_tfds
):
    os.symlink(prepared / "cifar10", tmp_path / "cifar10")
    np.savez(
        tmp_path / "cifar10.npz",
        train_images=IMAGES,
        train_labels=LABELS,
        test_images=IMAGES[:4],
        test_labels=LABELS[:4],
    )
    data = load("cifar10", data_dir=tmp_path, download=False)
    assert data.source.endswith("cifar10.npz")


def test_nothing_here_and_not_installed(no_tfds):
    with pytest.raises(EnvironmentLacksError) as caught:
        load("cifar100")
    text = str(caught.value)
    assert "cifar100 is not on this machine, looked in " in text
    assert "pip install tensorflow-datasets" in text
    assert "Put cifar-100-python.tar.gz" in text
    with pytest.raises(EnvironmentLacksError, match="tensorflow-datasets"):
        load("some_tfds_set")
    with pytest.raises(ConfigError, match="did you mean cifar10"):
        load("cifar11")
