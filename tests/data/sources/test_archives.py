"""CIFAR, CUB-200 and IDX files in small, in their official layouts."""

import dataclasses
import hashlib
import itertools
import pickle

import numpy as np
import pytest
import small_archives

from alim_keras.data import CIFAR100_SUPERCLASSES
from alim_keras.data import load
from alim_keras.data import superclasses_of
from alim_keras.data.sources import cifar
from alim_keras.data.sources.known import KNOWN
from alim_keras.errors import DataError

IMAGES = small_archives.pictures(20)
LABELS = np.arange(20) % 10
TEST_IMAGES = small_archives.pictures(6, seed=1)
TEST_LABELS = np.arange(6)[::-1].copy()
NAMES = [f"class {n}" for n in range(10)]
SET = (IMAGES, LABELS, TEST_IMAGES, TEST_LABELS, NAMES)
FINE = sorted(itertools.chain(*CIFAR100_SUPERCLASSES.values()))


def assert_cifar10(data):
    assert np.array_equal(data.images, IMAGES)
    assert np.array_equal(data.labels, LABELS)
    assert np.array_equal(data.test_images, TEST_IMAGES)
    assert np.array_equal(data.test_labels, TEST_LABELS)
    assert data.ids[[0, 17]].tolist() == ["train_00000", "train_00017"]
    assert data.test_ids[-1] == "test_00005"
    assert data.class_names == tuple(NAMES)
    assert data.mean == (0.4914, 0.4822, 0.4465)
    assert data.superclasses is None


@pytest.mark.parametrize("folder", ["", "downloads", "downloads/manual"])
@pytest.mark.parametrize("kind", ["binary", "python"])
def test_cifar10_archives(kind, folder, tmp_path, accept, no_tfds):
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    path = tmp_path / folder / f"cifar-10-{kind}.tar.gz"
    make = getattr(small_archives, f"cifar10_{kind}")
    small_archives.write_tar(path, make(*SET))
    accept("cifar10", path)
    data = load("cifar10", data_dir=tmp_path, download=False)
    assert_cifar10(data)
    assert data.source == str(path)


@pytest.mark.parametrize("kind", ["binary", "python"])
def test_cifar10_unpacked(kind, tmp_path):
    for name, content in getattr(small_archives, f"cifar10_{kind}")(
        *SET
    ).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert_cifar10(load("cifar10", data_dir=str(tmp_path), download=False))


@pytest.mark.parametrize("kind", ["binary", "python"])
def test_cifar100_archives_and_superclasses(kind, tmp_path, accept):
    labels = np.array([3, 99, 0, 57])
    if kind == "binary":
        coarse = superclasses_of(FINE)[labels]
        contents = small_archives.cifar100_binary(
            IMAGES[:4], labels, coarse, FINE
        )
    else:
        contents = small_archives.cifar100_python(IMAGES[:4], labels, FINE)
    path = tmp_path / f"cifar-100-{kind}.tar.gz"
    small_archives.write_tar(path, contents)
    accept("cifar100h", path)
    data = load("cifar100h", data_dir=tmp_path, download=False)
    assert np.array_equal(data.labels, labels)
    assert np.array_equal(data.images, IMAGES[:4])
    assert np.array_equal(data.superclasses, superclasses_of(FINE))
    assert data.protocol == "superclass"
    assert data.std == (0.2673, 0.2564, 0.2762)


def refused(text, name, folder):
    with pytest.raises(DataError, match=text) as caught:
        load(name, data_dir=folder, download=False)
    assert "\n" not in str(caught.value)


def test_a_wrong_checksum_is_refused(tmp_path):
    path = tmp_path / "cifar-10-binary.tar.gz"
    small_archives.write_tar(path, small_archives.cifar10_binary(*SET))
    refused("not the official archive.*sha256", "cifar10", tmp_path)


def test_damaged_archives_are_refused(tmp_path, accept):
    path = tmp_path / "cifar-10-binary.tar.gz"
    small_archives.write_tar(path, small_archives.cifar10_binary(*SET))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    accept("cifar10", path)
    refused("damaged or was cut short", "cifar10", tmp_path)
    path.write_bytes(b"<html>not found</html>")
    accept("cifar10", path)
    refused("damaged or was cut short", "cifar10", tmp_path)
    small_archives.write_tar(path, {"cifar-100-binary/train.bin": b"x"})
    accept("cifar10", path)
    refused("another archive.*7 of 7 files are missing", "cifar10", tmp_path)
    contents = small_archives.cifar10_binary(*SET)
    contents["cifar-10-batches-bin/data_batch_3.bin"] += b"x"
    small_archives.write_tar(path, contents)
    accept("cifar10", path)
    refused("data_batch_3.bin: whole records of 3073", "cifar10", tmp_path)


def test_a_pickle_may_hold_arrays_only():
    class Trap:
        def __reduce__(self):
            return (print, ("this must not run",))

    with pytest.raises(DataError, match="holds a .*print"):
        cifar._unpickle(pickle.dumps(Trap()), "batch")
    with pytest.raises(DataError, match="damaged"):
        cifar._unpickle(b"\x80", "batch")


def test_a_batch_of_another_shape_is_refused(tmp_path):
    contents = small_archives.cifar10_python(*SET)
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    wrong = {b"data": np.zeros((2, 5), np.uint8), b"labels": [0, 1]}
    (folder / "data_batch_2").write_bytes(pickle.dumps(wrong))
    refused("data_batch_2: rows of 3072 bytes", "cifar10", tmp_path)
    (folder / "data_batch_2").write_bytes(pickle.dumps({b"data": 0}))
    refused("data_batch_2: has no entry b'labels'", "cifar10", tmp_path)


# --- CUB-200 ------------------------------------------------------------


def test_cub_archive_keeps_the_order_of_its_list(tmp_path, accept):
    path = tmp_path / "CUB_200_2011.tgz"
    small_archives.write_tar(path, small_archives.cub())
    accept("cub200", path)
    data = load("cub200", data_dir=tmp_path, download=False, image_size=16)
    assert data.ids.tolist() == [
        "Black_Footed_Albatross_0046_18",
        "Laysan_Albatross_0002_1027",
        "Laysan_Albatross_0001_545",
    ]
    assert data.test_ids[0] == "Black_Footed_Albatross_0009_34"
    assert data.labels.tolist() == [0, 1, 1]
    assert data.test_labels.tolist() == [0, 1]
    assert data.class_names == ("Black_footed_Albatross", "Laysan_Albatross")
    assert data.images.shape == (3, 16, 16, 3)
    # Pictures 1, 3, 4 of one colour (s, s, 255 - s) with s = 40 n; JPEG
    # moves it a little. Picture 5 is grey.
    for image, shade in zip(data.images, (40, 120, 160), strict=True):
        assert (
            np.abs(image.mean((0, 1)) - [shade, shade, 255 - shade]).max() < 4
        )
    assert np.abs(data.test_images[1] - 200.0).max() < 4
    assert data.mean == (0.485, 0.456, 0.406)
    assert data.protocol == "pico"


def test_cub_default_size_and_alias(tmp_path):
    for name, content in small_archives.cub().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    data = load("caltech_birds2011", data_dir=tmp_path, download=False)
    assert data.images.shape == (3, 256, 256, 3)


def test_cub_problems_are_named(tmp_path, accept):
    path = tmp_path / "CUB_200_2011.tgz"
    contents = small_archives.cub()
    image = "CUB_200_2011/images/002.Laysan_Albatross/Laysan_Albatross_"

    def with_(**changes):
        small_archives.write_tar(path, {**contents, **changes})
        accept("cub200", path)

    with_(**{f"{image}0001_545.jpg": b"no picture"})
    refused("Laysan_Albatross_0001_545.jpg cannot be", "cub200", tmp_path)
    with_(**{"CUB_200_2011/images.txt": b"1 a.jpg extra\n"})
    refused("images.txt: lines of two words", "cub200", tmp_path)
    with_(**{"CUB_200_2011/train_test_split.txt": b"1 1\n"})
    refused("name different images.*5, 5 and 1", "cub200", tmp_path)
    contents.pop(f"{image}0001_545.jpg")
    with_()
    refused("1 of 5 images are missing: .*0001_545", "cub200", tmp_path)


# --- IDX ----------------------------------------------------------------

GREY = small_archives.pictures(7, 28, 1)[..., 0]


def idx_files():
    return {
        "train-images-idx3-ubyte": small_archives.idx(GREY),
        "train-labels-idx1-ubyte": small_archives.idx(np.arange(7)),
        "t10k-images-idx3-ubyte": small_archives.idx(GREY[:2]),
        "t10k-labels-idx1-ubyte": small_archives.idx(np.array([9, 8])),
    }


@pytest.fixture
def accept_idx(monkeypatch):
    def change(name, contents):
        sums = {k: hashlib.md5(v).hexdigest() for k, v in contents.items()}
        changed = dataclasses.replace(KNOWN[name], idx=sums)
        monkeypatch.setitem(KNOWN, name, changed)

    return change


@pytest.mark.parametrize("folder", ["", "fashion_mnist", "downloads"])
def test_idx_files(folder, tmp_path, accept_idx, no_tfds):
    small_archives.write_idx(tmp_path / folder, idx_files())
    accept_idx("fashion_mnist", idx_files())
    data = load("fashion_mnist", data_dir=tmp_path, download=False)
    assert np.array_equal(data.images[..., 0], GREY)
    assert data.labels.tolist() == list(range(7))
    assert data.test_labels.tolist() == [9, 8]
    assert data.test_ids.tolist() == ["test_00000", "test_00001"]
    assert data.class_names[9] == "Ankle boot"
    assert (data.mean, data.std) == ((0.2860,), (0.3530,))


def test_idx_files_of_the_other_data_set(tmp_path, accept_idx):
    small_archives.write_idx(tmp_path, idx_files())
    accept_idx("fashion_mnist", idx_files())
    refused("is not the file of this data set", "mnist", tmp_path)


def test_damaged_idx_files(tmp_path, accept_idx):
    contents = idx_files()
    small_archives.write_idx(tmp_path, contents)
    file = tmp_path / "t10k-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[:-20])
    accept_idx("mnist", contents)
    refused("t10k-images-idx3-ubyte.gz: is damaged", "mnist", tmp_path)
    contents["t10k-images-idx3-ubyte"] += b"x"
    small_archives.write_idx(tmp_path, contents)
    accept_idx("mnist", contents)
    refused(
        "no IDX file of bytes.*1585 bytes; expected 1584", "mnist", tmp_path
    )


def test_the_installed_fashion_mnist(monkeypatch):
    import os

    folder = "/usr/share/datasets/fashion-mnist"
    if not os.path.isdir(folder):
        pytest.skip("needs Debian's package dataset-fashion-mnist")
    real = dataclasses.replace(KNOWN["fashion_mnist"], system_folder=folder)
    monkeypatch.setitem(KNOWN, "fashion_mnist", real)
    data = load("fashion_mnist", download=False)
    assert data.images.shape == (60000, 28, 28, 1)
    assert np.bincount(data.labels).tolist() == [6000] * 10
    # The published constants, from the images themselves.
    from alim_keras.data.sources import channel_statistics

    mean, std = channel_statistics(data.images)
    assert mean[0] == pytest.approx(0.2860, abs=5e-5)
    assert std[0] == pytest.approx(0.3530, abs=5e-5)
