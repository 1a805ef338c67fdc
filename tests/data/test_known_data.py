"""The .npz and IDX forms, the digits, and parts of a `TrainingSet`."""

import dataclasses
import gzip
import hashlib
import struct

import numpy as np
import pytest
from sklearn.datasets import load_digits

from alim_keras.data import CIFAR100_SUPERCLASSES
from alim_keras.data import holdout_split
from alim_keras.data import known_data
from alim_keras.data import load
from alim_keras.data import stratified_subset
from alim_keras.data.images import channel_statistics
from alim_keras.data.known_data import KNOWN
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

pytestmark = pytest.mark.usefixtures("nothing_installed")


def pictures(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def arrays(**changes):
    return {
        "train_images": pictures(6, 8, 8, 3),
        "train_labels": np.array([0, 1, 2, 0, 1, 2], np.uint8),
        "test_images": pictures(2, 8, 8, 3, seed=1),
        "test_labels": np.array([2, 1], np.uint8),
        **changes,
    }


def test_a_path(tmp_path):
    path = tmp_path / "own.npz"
    np.savez(path, **arrays(label_names=["cat", "dog", "owl"]))
    data = load(path)
    assert np.array_equal(data.images, arrays()["train_images"])
    assert data.labels.dtype == np.int64
    assert data.labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert data.ids[-1] == "train_00005"
    assert "has no train_ids" in data.notes[0]
    assert data.class_names == ("cat", "dog", "owl")
    assert data.source == str(path) and data.protocol == "flip"
    assert data.superclasses is None
    pixels = data.images / 255.0
    assert data.mean == pytest.approx(tuple(pixels.mean((0, 1, 2))))
    assert data.std == pytest.approx(tuple(pixels.std((0, 1, 2))))
    data = load(path, image_size=4)
    assert data.images.shape == (6, 4, 4, 3)
    assert data.test_images.shape == (2, 4, 4, 3)


def test_optional_arrays(tmp_path):
    path = tmp_path / "own.npz"
    grey = {"train_images": pictures(6, 8, 8), "test_images": pictures(2, 8, 8)}
    ids = {"train_ids": [*"abcdef"], "test_ids": ["x", "y"]}
    np.savez(path, **arrays(**grey, **ids, superclasses=[0, 1, 0]))
    data = load(str(path))
    assert data.images.shape == (6, 8, 8, 1)
    assert data.ids.tolist() == list("abcdef")
    assert data.test_ids.tolist() == ["x", "y"]
    assert data.superclasses.tolist() == [0, 1, 0]
    assert data.class_names == ("0", "1", "2")


def test_a_name_in_data_dir(tmp_path):
    for name in ("cifar10", "flowers_of_mine"):
        np.savez(tmp_path / f"{name}.npz", **arrays())
        data = load(name, data_dir=tmp_path, download=False)
        assert len(data.images) == 6
        known = data.mean == (0.4914, 0.4822, 0.4465)
        assert known == (name == "cifar10")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"train_labels": np.arange(5)}, "6 images, 5 labels, 6 ids"),
        ({"train_ids": [*"abcdea"]}, "more than once: a"),
        (
            {"train_labels": [*"010101"], "label_names": ["a", "b"]},
            "must be whole numbers. Received: <U1",
        ),
        ({"test_labels": np.array([0, -1])}, "test.*outside 0.*test_00001"),
        ({"label_names": [*"ab"]}, r"outside 0\.\.1.*train_00002.*train_00005"),
        ({"train_images": np.zeros((6, 8, 8, 2))}, "1 or 3 channels"),
        ({"train_images": np.full((6, 8, 8, 3), np.nan)}, "NaN"),
        ({"test_images": np.zeros((2, 9, 8, 3))}, "differ in shape"),
    ],
)
def test_unsound_arrays_are_refused(changes, text, tmp_path):
    path = tmp_path / "own.npz"
    np.savez(path, **arrays(**changes))
    with pytest.raises(DataError, match=text) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_files_that_are_none(tmp_path):
    path = tmp_path / "x.npz"
    with pytest.raises(DataError, match="No such file"):
        load(path)
    path.write_bytes(b"")
    with pytest.raises(DataError, match="No data left"):
        load(path)
    np.savez(path, **arrays())
    # Its list of files is damaged.
    path.write_bytes(path.read_bytes().replace(b"PK\1\2", b"XX\1\2"))
    assert known_data.is_table(str(path))
    with pytest.raises(DataError, match="cannot be read as arrays"):
        load(path)
    empty = {"train_images": np.zeros((0, 8, 8, 3)), "train_labels": []}
    np.savez(path, **arrays(**empty))
    with pytest.raises(DataError, match="train_images holds no image"):
        load(path)
    values = arrays()
    del values["test_labels"]
    np.savez(path, **values)
    with pytest.raises(DataError, match="test_labels are missing.*train_image"):
        load(path)


def test_the_names_of_data_sets():
    names = ["CIFAR-10", "Fashion MNIST", "CUB_200_2011", "kmnist", "a/b:1.0"]
    plain = "cifar10 fashion_mnist cub200 kmnist a/b:1.0".split()
    assert [known_data.plain_name(name) for name in names] == plain


IDX = {
    "train-images-idx3-ubyte": pictures(6, 28, 28),
    "train-labels-idx1-ubyte": np.arange(6, dtype=np.uint8),
    "t10k-images-idx3-ubyte": pictures(2, 28, 28),
    "t10k-labels-idx1-ubyte": np.array([3, 9], np.uint8),
}


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_idx_files(tmp_path, monkeypatch, ending):
    digests = []
    for name, values in IDX.items():
        shape = struct.pack(f">{values.ndim}I", *values.shape)
        content = bytes([0, 0, 8, values.ndim]) + shape + values.tobytes()
        digests.append(hashlib.md5(content).hexdigest())
        packed = gzip.compress(content) if ending else content
        (tmp_path / (name + ending)).write_bytes(packed)
    changed = dataclasses.replace(KNOWN["mnist"], idx=tuple(digests))
    monkeypatch.setitem(KNOWN, "mnist", changed)
    data = load("mnist", data_dir=tmp_path, download=False)
    np.testing.assert_array_equal(
        data.images[..., 0], IDX["train-images-idx3-ubyte"]
    )
    assert data.test_labels.tolist() == [3, 9]
    assert data.ids[-1] == "train_00005" and data.mean == (0.1307,)
    # Fashion-MNIST's files have the same names.
    with pytest.raises(DataError, match="MNIST and Fashion-MNIST use"):
        load("fashion_mnist", data_dir=tmp_path, download=False)
    path = tmp_path / f"t10k-images-idx3-ubyte{ending}"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(DataError, match="damaged"):
        load("mnist", data_dir=tmp_path, download=False)


def test_digits():
    data = load("digits")
    assert data.images.shape == (1437, 8, 8, 1)
    assert data.images.dtype == np.uint8
    assert data.test_images.shape == (360, 8, 8, 1)
    assert data.class_names == tuple("0123456789")
    # load_digits has 178 182 177 183 181 182 181 179 174 180 of 0 to 9;
    # times 360 / 1797 that is 35.659 36.461 35.459 36.661 36.260 36.461
    # 36.260 35.860 34.858 36.060. Rounded down 355, and one more for each of
    # the largest remainders: 7, 8, 3, 0 and, at a tie with 5, 1.
    expected = [36, 37, 35, 37, 36, 36, 36, 36, 35, 36]
    assert np.bincount(data.test_labels).tolist() == expected
    bunch = load_digits()
    rows = [int(name.split("_")[1]) for name in [*data.ids, *data.test_ids]]
    assert sorted(rows) == list(range(1797))
    pixels = np.concatenate([data.images, data.test_images])[..., 0]
    assert np.abs(pixels - bunch.images[rows] * 255 / 16).max() <= 0.5
    labels = np.concatenate([data.labels, data.test_labels])
    assert np.array_equal(labels, bunch.target[rows])


def test_channel_statistics_of_floats_and_constant_channels():
    images = np.zeros((1, 1, 4, 3), np.float32)
    images[0, 0, :, 0] = [0, 0, 255, 255]
    images[0, 0, :, 1] = 51
    mean, std = channel_statistics(images)
    assert mean == pytest.approx((0.5, 0.2, 0.0))
    assert std == pytest.approx((0.5, 1.0, 1.0))
    as_bytes = channel_statistics(images.astype(np.uint8))
    assert np.allclose(as_bytes, (mean, std))


def test_superclasses_of_cifar100(tmp_path):
    # Of apple, aquarium_fish, baby, bear, beaver; willow_tree to worm.
    assert CIFAR100_SUPERCLASSES[:5] == (4, 1, 14, 8, 0)
    assert CIFAR100_SUPERCLASSES[-4:] == (17, 8, 14, 13)
    assert np.bincount(CIFAR100_SUPERCLASSES).tolist() == [5] * 20
    names = [f"{n:02d}" for n in range(100)]
    for order, is_known in ((names, True), (names[::-1], False)):
        changed = arrays(label_names=np.array(order))
        np.savez(tmp_path / "cifar100h.npz", **changed)
        data = load("cifar100h", data_dir=tmp_path, download=False)
        assert (data.superclasses is not None) == is_known
        assert data.protocol == "superclass"


def test_subset_has_the_class_shares_and_the_exact_size():
    labels = np.array([0] * 50 + [1] * 30 + [2] * 20)
    # 25 * (.5, .3, .2) = 12.5, 7.5, 5: the tie goes to class 0.
    chosen = stratified_subset(labels, 25)
    assert np.bincount(labels[chosen]).tolist() == [13, 7, 5]
    assert np.array_equal(chosen, np.unique(chosen))
    for size in (1, 7, 99, 100):
        assert len(np.unique(stratified_subset(labels, size, 4))) == size
    for size in (0, 101, -1, 2.5, True):
        with pytest.raises(ConfigError, match="size"):
            stratified_subset(labels, size)


def test_a_part_is_a_function_of_the_seed():
    ids = [str(n) for n in range(60)]
    for choose in (
        lambda seed: stratified_subset(np.arange(300) % 3, 30, seed),
        lambda seed: holdout_split(ids, 0.3, seed)[1],
    ):
        assert np.array_equal(choose(1), choose(1))
        assert not np.array_equal(choose(1), choose(2))


def test_holdout_is_disjoint_complete_and_follows_the_ids():
    ids = np.array([f"train_{n:05d}" for n in range(101)])
    train, held_out = holdout_split(ids, 0.1, seed=3)
    assert len(held_out) == 10
    both = np.concatenate([train, held_out])
    assert np.array_equal(np.sort(both), np.arange(101))
    order = np.random.default_rng(0).permutation(101)
    _, shuffled = holdout_split(ids[order], 0.1, seed=3)
    assert set(ids[order][shuffled]) == set(ids[held_out])


def test_copies_stay_on_one_side():
    # 150 pictures under two names each: whole pairs are held out.
    ids = [f"x{n:03d}" for n in range(300)]
    copies = np.arange(300) % 150
    train, held_out = holdout_split(ids, 0.2, seed=1, copies=copies)
    assert len(held_out) == 60
    assert not set(copies[train]) & set(copies[held_out])
    # Without copies the split is the same as if nothing was said of them.
    _, held_out = holdout_split(ids, 0.2, 1, np.arange(300))
    assert np.array_equal(held_out, holdout_split(ids, 0.2, 1)[1])
    with pytest.raises(ConfigError, match="leaves none"):
        holdout_split(["a", "b"], 0.5, 0, [1, 1])


def test_holdout_ends():
    train, held_out = holdout_split(["a", "b"], 0.0)
    assert (train.tolist(), held_out.tolist()) == ([0, 1], [])
    assert len(holdout_split(["a", "b"], 0.01)[1]) == 1
    for share, text in ((0.9, "leaves none"), (float("nan"), "`share`")):
        with pytest.raises(ConfigError, match=text):
            holdout_split(["a", "b"], share)
