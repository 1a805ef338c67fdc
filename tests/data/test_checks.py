"""Checks of sets, labels, images and features, as arrays and lists."""

import re

import numpy as np
import pytest

from alim_keras.data import CandidateSets
from alim_keras.data import DataWarning
from alim_keras.data import checks
from alim_keras.data import eval_dataset
from alim_keras.errors import DataError


@pytest.mark.parametrize(
    "candidates, text",
    [
        ([], "0 sets"),
        ([[0], [], []], "2 candidate sets are empty: b, c"),
        ([[0], [3], [-1]], r"outside 0\.\.2: 2 are.*b \(row 1\).*is 3"),
        ([[1], [2], [3]], "1-based"),
        ([[0], [1.5], [1]], "must be whole.*b .row 1.*1.5"),
        ([[0], [float("nan")], [1]], "must be whole.*nan"),
        ([["cat"], ["dog"], ["cat"]], "whole numbers"),
        (np.tri(3, 3, -1), "1 candidate.*a"),
        (np.array([[1, 0.3], [1, 0], [2, 0]]), "2 values.*a .0.3., c .2"),
        (np.array([[1, 0, np.nan], [1, 0, 0], [1, 0, 0]]), "0 or 1.*nan"),
        (np.eye(3, 4), "4 columns, but there are 3 classes"),
        (np.ones((3, 3, 1)), r"\(3, 3, 1\)"),
    ],
)
def test_unsound_sets_are_refused(candidates, text):
    is_list = isinstance(candidates, list)
    make = CandidateSets.from_lists if is_list else CandidateSets.from_dense
    ids = ["a", "b", "c"] if len(candidates) else []
    with pytest.raises(DataError, match=text):
        make(candidates, ids, range(3))


@pytest.mark.parametrize(
    "lists, text",
    [
        ([[0, 1, 2]] * 2 + [[0], [1]] * 5, "2 of 12 .* all 3 classes"),
        ([[0, 1 + n % 2] for n in range(12)], "Class 0 is in 100.0%"),
    ],
)
def test_odd_sets_are_told(lists, text):
    sets = CandidateSets.from_lists(lists)
    (doubt,) = checks.odd_sets(sets, "; cut them")
    assert re.search(text, doubt)
    images = np.full((12, 4, 4, 1), 9, np.uint8)
    with pytest.warns(DataWarning, match=text):
        eval_dataset(images, sets.dense(), 3)


def test_labels():
    labels = checks.validate_labels(np.array([2.0, 0.0]), 3)
    assert labels.dtype == np.int64 and labels.tolist() == [2, 0]
    for labels, text in (
        ([[0]], r"shape=\(1, 1\)"),
        ([0, 1], r"shape=\(2,\)"),
        ([-1], r"outside 0\.\.2: 1 are not, ids a \(row 0\)"),
        ([0.5], "must be whole"),
    ):
        with pytest.raises(DataError, match=text):
            checks.validate_labels(labels, 3, ids=["a"])
    labels = checks.validate_labels([2, -1], 3, ["a", "b"], optional=True)
    assert labels.tolist() == [2, -1]
    text = "Class numbers must be whole numbers. Received: <U1$"
    with pytest.raises(DataError, match=text):
        checks.validate_labels(
            np.array(["0", "1"]), 2, ["a", "b"], optional=True
        )


def test_an_npy_file_stays_on_disk(tmp_path):
    path = str(tmp_path / "a.npy")
    np.save(path, np.arange(6).reshape(3, 2))
    values = checks.read_npz(path, alone="images")["images"]
    assert isinstance(values, np.memmap)
    assert values.tolist() == [[0, 1], [2, 3], [4, 5]]
    for content in (np.array([{}]), np.arange(6)):
        np.save(path, content)
        if content.dtype != object:
            with open(path, "r+b") as file:
                file.truncate(150)
        with pytest.raises(DataError, match="a.npy: cannot be read as arrays"):
            checks.read_npz(path)


@pytest.mark.parametrize("given", "uint8 float32 int64 uint16 float64".split())
def test_images_become_bytes_or_float32(given):
    images = (np.arange(16).reshape(1, 4, 4, 1) * 17).astype(given)
    result = checks.validate_images(images)
    assert result.dtype == ("float32" if "float" in given else "uint8")
    assert result.ravel().tolist() == [17 * n for n in range(16)]
    assert (result is images) == (given in ("uint8", "float32"))


@pytest.mark.parametrize(
    "images, text",
    [
        (np.zeros((2, 4, 4)), r"images\[..., None\].*shape=\(2, 4, 4\)"),
        (np.zeros((2, 4, 4, 2)), "1 or 3 channels"),
        (np.zeros((0, 4, 4, 1)), r"shape=\(0, 4, 4, 1\)"),
        (np.zeros((2, 4, 4, 1), bool), "dtype=bool"),
        (np.zeros((2, 4, 4, 1), object), "dtype=object"),
        (np.full((2, 4, 4, 1), 256), r"2 images.*a \(row 0\).*256"),
        (np.full((2, 4, 4, 1), -1.0), r"outside \[0, 255\]"),
        (np.full((2, 4, 4, 1), np.nan), "outside.*nan"),
    ],
)
def test_unsound_images_are_refused(images, text):
    with pytest.raises(DataError, match=text):
        checks.validate_images(images, ["a", "b"])


@pytest.mark.filterwarnings("error")
def test_pixels_scaled_to_one_are_noticed():
    images = np.linspace(0, 1, 16).reshape(1, 4, 4, 1)
    with pytest.raises(DataError, match="Multiply.*hand them over as uint8"):
        checks.validate_images(images)
    checks.validate_images(images * 255)
    checks.validate_images(np.zeros((1, 4, 4, 1)))


@pytest.mark.parametrize("shape", [(2, 3), (2, 1, 1, 3)])
def test_features_become_float32_images_of_one_pixel(shape):
    result = checks.validate_features(
        np.array([1, 2, 3, 100, 5, 6]).reshape(shape)
    )
    assert result.dtype == "float32"
    assert result.tolist() == [[[[1, 2, 3]]], [[[100, 5, 6]]]]
    for bad in (np.nan, -np.inf, 1e39):
        # 1e39 is more than float32 holds.
        with pytest.raises(DataError, match=r"1 feature.*ids b \(row 1\)"):
            checks.validate_features([[1, 2], [bad, 1]], ids=["a", "b"])
    for bad in (np.zeros(3), np.zeros((2, 3, 4)), np.zeros((2, 0)), [["1"]]):
        with pytest.raises(DataError, match=r"\(num_examples, num_features\)"):
            checks.validate_features(bad)
