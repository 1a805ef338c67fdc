"""Prepared TFDS folders, read without the network; what is not found."""

import dataclasses
import io
import json
import os
import shutil
import socket
import sys
import tarfile
import urllib.error

import numpy as np
import pytest

from alim_keras.data import load
from alim_keras.data import prepared as source
from alim_keras.data.known_data import KNOWN
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError

tfds = pytest.importorskip("tensorflow_datasets")


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch, tmp_path_factory):
    """Hides the data sets and the network that this machine may have."""

    def refuse(*args, **_):
        raise AssertionError(f"the network is asked for {args}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    folder = tmp_path_factory.mktemp("no_tfds")
    monkeypatch.setenv("TFDS_DATA_DIR", str(folder))
    for name, known in KNOWN.items():
        hidden = dataclasses.replace(known, system_folder=None)
        monkeypatch.setitem(KNOWN, name, hidden)


@pytest.fixture
def no_tfds(monkeypatch):
    """Makes `import tensorflow_datasets` fail."""
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)


def pictures(count, size=32, channels=3, seed=0):
    rng = np.random.default_rng(seed)
    shape = (count, size, size, channels)
    return rng.integers(0, 256, shape, dtype=np.uint8)


def write_tar(path, contents):
    """Writes {name: bytes} as a .tar.gz."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def _records(images, *columns):
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    heads = np.stack(columns, 1).astype(np.uint8)
    return np.concatenate([heads, planes], 1).tobytes()


def cifar10_binary(images, labels, test_images, test_labels, names):
    top = "cifar-10-batches-bin"
    parts = np.array_split(np.arange(len(images)), 5)
    contents = {
        f"{top}/data_batch_{n}.bin": _records(images[part], labels[part])
        for n, part in enumerate(parts, 1)
    }
    contents[f"{top}/test_batch.bin"] = _records(test_images, test_labels)
    contents[f"{top}/batches.meta.txt"] = "\n".join(names).encode() + b"\n\n"
    return contents


BIRDS = (
    ("001.Black_footed_Albatross", "Black_Footed_Albatross_0046_18", True),
    ("001.Black_footed_Albatross", "Black_Footed_Albatross_0009_34", False),
    ("002.Laysan_Albatross", "Laysan_Albatross_0002_1027", True),
    ("002.Laysan_Albatross", "Laysan_Albatross_0001_545", True),
    ("002.Laysan_Albatross", "Laysan_Albatross_0003_1033", False),
)


IMAGES = pictures(20)
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
    contents = cifar10_binary(IMAGES, LABELS, IMAGES[:4], LABELS[:4], NAMES)
    write_tar(cached, contents)
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


def test_the_folder_of_the_set_or_version_will_do(prepared):
    for folder in ("cifar10", "cifar10/3.0.2"):
        found = source.find("cifar10", str(prepared / folder))
        assert found == str(prepared / "cifar10" / "3.0.2")
    data = load("cifar10", data_dir=f"{prepared}/cifar10/", download=False)
    assert len(data.images) == 20
    assert source.find("cifar100", str(prepared)) is None
    assert source.find("cifar10:3.0.1", str(prepared)) is None
    assert source.find("cifar10:3.0.2", str(prepared)) is not None


def test_versions_and_configurations(tmp_path):
    for folder in ("a/1.0.0", "a/1.10.0", "a/1.9.0", "b/x/1.0.0", "b/y/1.0.0"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "dataset_info.json").write_text("{}")
    (tmp_path / "a" / "incomplete.ABC_2.0.0").mkdir()
    (tmp_path / "a" / "2.0.0").mkdir()
    found = source.find("a", str(tmp_path))
    assert found == str(tmp_path / "a" / "1.10.0")
    found = source.find("b/y", str(tmp_path))
    assert found == str(tmp_path / "b" / "y" / "1.0.0")
    with pytest.raises(ConfigError, match="2 configurations of b.*b/x, b/y"):
        source.find("b", str(tmp_path))


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
    for number, (folder, file, train) in enumerate(BIRDS, 1):
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


def test_mnist_gets_its_official_places_back(tmp_path):
    features = tfds.features.FeaturesDict(
        {
            "image": tfds.features.Image(shape=(28, 28, 1)),
            "label": tfds.features.ClassLabel(num_classes=10),
        }
    )
    # More than TFDS would read from one of the files before the next.
    pixels = pictures(90, 28, 1)
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


def test_nothing_here_and_not_installed(no_tfds):
    with pytest.raises(EnvironmentLacksError) as caught:
        load("cifar100")
    text = str(caught.value)
    assert "cifar100 is not on this machine, looked in " in text
    assert "pip install tensorflow-datasets" in text
    assert "Put cifar100.npz in --data_dir" in text
    with pytest.raises(EnvironmentLacksError, match="tensorflow-datasets"):
        load("some_tfds_set")
    with pytest.raises(ConfigError, match="did you mean cifar10"):
        load("cifar11")


# Downloads.


FIRST = "downloads/x.tar.gz.tmp." + "0" * 32
OLD = "downloads/old.tar.gz.tmp." + "f" * 32


class Builder:
    """Stands for a TFDS builder whose download ends in `error`."""

    def __init__(self, error):
        self.error = error

    def __call__(self, name, data_dir):
        self.name, self.data_dir = name, data_dir
        return self

    def download_and_prepare(self, download_config):
        for folder in (FIRST, "cifar10/incomplete.ABC_3.0.2"):
            os.makedirs(os.path.join(self.data_dir, folder))
        raise self.error


@pytest.fixture
def connected(monkeypatch):
    monkeypatch.setattr(source, "_reach", lambda url: None)


def failed(error, tmp_path, monkeypatch, kind=DataError):
    monkeypatch.setattr(tfds, "builder", Builder(error))
    (tmp_path / OLD).mkdir(parents=True)
    with pytest.raises(kind) as caught:
        load("cifar10", data_dir=tmp_path)
    # What was there before is another process's.
    assert (tmp_path / OLD).is_dir()
    assert not (tmp_path / FIRST).exists()
    assert os.listdir(tmp_path / "cifar10") == []
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_wrong_checksum(tmp_path, monkeypatch, connected):
    from tensorflow_datasets.core.download import download_manager

    error = download_manager.NonMatchingChecksumError
    text = failed(error("Artifact x\nExpected"), tmp_path, monkeypatch)
    assert "looked in" in text and "the download from https://" in text
    assert "cifar-10-binary.tar.gz failed: the file is not the one" in text
    assert "cifar-10-binary.tar.gz in" in text


def test_a_refused_certificate(tmp_path, monkeypatch, connected):
    error = OSError("SSL: CERTIFICATE_VERIFY_FAILED certificate has expired")
    text = failed(error, tmp_path, monkeypatch)
    assert "certificate of the host was refused" in text
    assert "REQUESTS_CA_BUNDLE" in text


def test_a_finished_download_is_read(tmp_path, monkeypatch, connected, capsys):
    class Prepared(Builder):
        def download_and_prepare(self, download_config):
            assert download_config.try_download_gcs is False

    def read(folder, name, size):
        raise DataError(f"reading {name} from {folder} at {size}")

    builder = Prepared(None)
    monkeypatch.setattr(tfds, "builder", builder)
    monkeypatch.setattr("alim_keras.data.prepared.read", read)
    with pytest.raises(DataError, match=f"reading cifar100 from {tmp_path} at"):
        load("cifar100h", data_dir=tmp_path)
    assert builder.name == "cifar100"


def test_no_network(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise urllib.error.URLError("timed out")

    monkeypatch.setattr(source.urllib.request, "urlopen", fail)
    with pytest.raises(DataError) as caught:
        load("cifar10", data_dir=tmp_path)
    text = str(caught.value)
    assert text.startswith(
        f"cifar10 is not on this machine, looked in {tmp_path}, "
        f"{os.environ['TFDS_DATA_DIR']}; the download from https://"
    )
    assert "there is no network to download it (<urlopen error timed" in text
    assert text.endswith(
        "Put cifar10.npz in --data_dir, or cifar-10-binary.tar.gz in "
        f"{tmp_path}/downloads/manual"
    )


def test_an_official_archive_is_prepared_without_network(tmp_path, monkeypatch):
    manual = tmp_path / "downloads" / "manual"
    manual.mkdir(parents=True)
    (manual / "cifar-10-binary.tar.gz").write_bytes(b"x")

    class Local(Builder):
        def download_and_prepare(self, download_config):
            assert download_config.manual_dir == str(manual)

    monkeypatch.setattr(tfds, "builder", Local(None))
    monkeypatch.setattr(source, "read", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        load("cifar10", data_dir=tmp_path, download=False)


def test_a_forbidden_download_touches_nothing(tmp_path):
    with pytest.raises(DataError, match="downloading is forbidden. Put its"):
        load("mnist", data_dir=tmp_path, download=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cifar1O", r"did you mean cifar10 or cifar100"),
        ("qqqqqq", r"Unknown data set. Names are cifar10, cifar100, cifar100h"),
    ],
)
def test_unknown_names(name, text):
    with pytest.raises(ConfigError, match=text) as caught:
        load(name)
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)
