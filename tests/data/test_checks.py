"""Checks of sets, labels, images and features, as arrays and lists."""

import warnings

import numpy as np
import pytest

from alim_keras.data import CandidateSets
from alim_keras.data import DataWarning
from alim_keras.data import check_truth_inside
from alim_keras.data import checks
from alim_keras.data import validate_features
from alim_keras.data import validate_images
from alim_keras.data import validate_labels
from alim_keras.errors import DataError

# {0}, {1,2}, {0,2}, {1} over three classes (case 68).
EXPECTED = [[1, 0, 0], [0, 1, 1], [1, 0, 1], [0, 1, 0]]
LISTS = [[0], [1, 2], [0, 2], [1]]


class Tensor:
    """Has what a backend's tensor is recognised by."""

    def numpy(self):
        return np.array(EXPECTED, np.float32)


@pytest.mark.parametrize(
    "sets",
    [
        CandidateSets.from_lists(LISTS),
        CandidateSets.from_lists([np.array(row) for row in LISTS]),
        CandidateSets.from_lists([[0.0], [1.0, 2.0], [0.0, 2.0], [1.0]]),
        CandidateSets.from_lists([[0], [2, 1, 2], [2, 0], [1]]),
        CandidateSets.from_dense(np.array(EXPECTED, bool)),
        CandidateSets.from_dense(EXPECTED),
        CandidateSets.from_dense(checks.to_array(Tensor())),
    ],
)
def test_every_form_gives_the_same_sets(sets):
    assert sets.dense().astype(int).tolist() == EXPECTED


@pytest.mark.parametrize(
    ("candidates", "text"),
    [
        ([], "0 sets"),
        ([[0], [], []], r"2 candidate sets are empty, ids b \(row 1\), c"),
        ([[0], [3], [-1]], r"2 labels are outside 0\.\.2.*b \(row 1\).*is 3"),
        ([[1], [2], [3]], "1-based"),
        ([[0], [1.5], [1]], "not whole.*b .row 1.*1.5"),
        ([[0], [float("nan")], [1]], "blank"),
        ([["cat"], ["dog"], ["cat"]], "whole numbers"),
        (np.array([[1, 0, 0], [0, 0, 0], [1, 1, 1]]), "1 candidate.*b"),
        (
            np.array([[1, 0, 0.3], [1, 0, 0], [2, 0, 0]]),
            "2 other.*0.3.*column 2",
        ),
        (np.array([[1, 0, np.nan], [1, 0, 0], [1, 0, 0]]), "blank"),
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
    ("lists", "text"),
    [
        ([[0, 1, 2]] * 2 + [[0], [1]] * 5, "2 of 12 .* all 3 classes"),
        ([[0, 1 + n % 2] for n in range(12)], "Class 0 is in 100.0%"),
    ],
)
def test_odd_sets_are_told(lists, text):
    with pytest.warns(DataWarning, match=text):
        checks.warn_of_odd_sets(CandidateSets.from_lists(lists))


def test_truth_outside_clean_sets_is_told():
    sets = CandidateSets.from_lists([[0], [1], [0, 1], [1]])
    with pytest.warns(DataWarning, match="1 of 3 candidate sets leave out"):
        assert check_truth_inside(sets, [0, 0, 1, -1], 0) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_truth_inside(sets, [0, 0, 1, 0], 0.5) == 2
        assert check_truth_inside(sets, [0, 1, 1, 1], 0) == 0


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ([[0]], r"shape=\(1, 1\)"),
        ([0, 1], r"shape=\(2,\)"),
        ([3], r"outside 0\.\.2, ids a \(row 0\)"),
        ([-1], "outside"),
        ([0.5], "not whole"),
    ],
)
def test_unsound_labels_are_refused(labels, text):
    with pytest.raises(DataError, match=text):
        validate_labels(labels, 3, ids=["a"])


def test_whole_floats_are_labels():
    labels = validate_labels(np.array([2.0, 0.0]), 3)
    assert labels.dtype == np.int64 and labels.tolist() == [2, 0]


def test_uint8_and_float32_pass_through():
    images = np.full((2, 4, 4, 3), 7, np.uint8)
    assert validate_images(images) is images
    floats = images.astype(np.float32)
    assert validate_images(floats) is floats


@pytest.mark.parametrize(
    ("given", "returned"),
    [(np.int64, np.uint8), (np.uint16, np.uint8), (np.float64, np.float32)],
)
def test_other_numbers_are_converted(given, returned):
    images = np.arange(16, dtype=given).reshape(1, 4, 4, 1) * 17
    found = validate_images(images)
    assert found.dtype == returned
    assert found.ravel().tolist() == [17 * n for n in range(16)]


@pytest.mark.parametrize(
    ("images", "text"),
    [
        (np.zeros((2, 4, 4)), r"images\[..., None\].*shape=\(2, 4, 4\)"),
        (np.zeros((2, 4, 4, 2)), "1 or 3 channels"),
        (np.zeros((2, 3, 4, 4)), "channels go last"),
        (np.zeros((0, 4, 4, 1)), r"shape=\(0, 4, 4, 1\)"),
        (np.zeros((2, 4, 4, 1), bool), "dtype=bool"),
        (np.zeros((2, 4, 4, 1), object), "dtype=object"),
        (np.full((2, 4, 4, 1), 256), "2 images have pixels outside.*256"),
        (np.full((2, 4, 4, 1), -1.0), "outside"),
    ],
)
def test_unsound_images_are_refused(images, text):
    with pytest.raises(DataError, match=text):
        validate_images(images)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_finite_pixels_are_named_by_id(bad):
    images = np.zeros((3, 4, 4, 1), np.float32)
    images[1, 2, 2, 0] = bad
    with pytest.raises(DataError, match=r"1 images.*NaN or inf.*b \(row 1\)"):
        validate_images(images, ids=["a", "b", "c"])


def test_rows_are_counted_across_blocks(monkeypatch):
    monkeypatch.setattr("alim_keras.data.checks._BLOCK", 32)
    images = np.zeros((9, 4, 4, 1))
    images[7] = 300
    with pytest.raises(DataError, match="rows 7"):
        validate_images(images)


def test_pixels_scaled_to_one_are_noticed():
    images = np.linspace(0, 1, 16).reshape(1, 4, 4, 1)
    with pytest.warns(DataWarning, match="multiply them by 255"):
        validate_images(images)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        validate_images(images * 255)
        validate_images(np.zeros((1, 4, 4, 1)))


def test_lengths_that_differ():
    with pytest.raises(DataError, match="2 images but 3 ids"):
        validate_images(np.zeros((2, 4, 4, 1)), ids=["a", "b", "c"])


@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8", "int16"])
@pytest.mark.parametrize("shape", [(2, 3), (2, 1, 1, 3)])
def test_features_become_float32_images_of_one_pixel(dtype, shape):
    values = np.array([1, 2, 3, 100, 5, 6], dtype).reshape(shape)
    found = validate_features(values)
    assert found.dtype == "float32"
    assert found.tolist() == [[[[1, 2, 3]]], [[[100, 5, 6]]]]


@pytest.mark.parametrize("bad", [np.nan, -np.inf, 1e39])
def test_features_that_are_no_numbers_are_named_by_id(bad):
    # 1e39 is more than float32 holds.
    values = np.zeros((3, 4))
    values[1, 2] = bad
    with pytest.raises(DataError, match=r"1 feature.*ids b \(row 1\)"):
        validate_features(values, ids=["a", "b", "c"])


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(3),
        np.zeros((2, 3, 4)),
        np.zeros((2, 2, 1, 4)),
        np.zeros((2, 0)),
        np.array([["1", "2"]]),
        np.array([[True]]),
    ],
)
def test_features_of_another_form(values):
    with pytest.raises(DataError, match=r"\(num_examples, num_features\)"):
        validate_features(values)
