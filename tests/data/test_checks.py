"""The bad-input table: every row of it, and every accepted form."""

import warnings

import numpy as np
import pytest

from alim_keras.data import DataWarning
from alim_keras.data import deduplicate
from alim_keras.data import validate_candidates
from alim_keras.data import validate_labels
from alim_keras.data.checks import check_truth_inside
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

# {0}, {1,2}, {0,2}, {1} over three classes (case 68).
EXPECTED = [[1, 0, 0], [0, 1, 1], [1, 0, 1], [0, 1, 0]]
LISTS = [[0], [1, 2], [0, 2], [1]]


def ragged_array(rows):
    array = np.empty(len(rows), object)
    array[:] = rows
    return array


class RaggedLike:
    """Has what a tf.RaggedTensor is recognised by."""

    def to_list(self):
        return LISTS


FORMS = {
    "list": LISTS,
    "tuples": tuple(map(tuple, LISTS)),
    "object array": ragged_array(LISTS),
    "list of arrays": [np.array(row) for row in LISTS],
    "ragged-like": RaggedLike(),
    "padded": np.array([[0, -1], [1, 2], [0, 2], [1, -1]]),
    "padded to C": np.array([[0, -1, -1], [1, 2, -1], [0, 2, -1], [1, -1, -1]]),
    "padded floats": np.array([[0, -1], [1, 2], [0, 2], [1, -1]], float),
    "multi-hot bool": np.array(EXPECTED, bool),
    "multi-hot int": np.array(EXPECTED),
    "multi-hot uint8": np.array(EXPECTED, np.uint8),
    "multi-hot float": np.array(EXPECTED, np.float32),
    "multi-hot lists": EXPECTED,
    "whole floats": [[0.0], [1.0, 2.0], [0.0, 2.0], [1.0]],
    "unordered": [[0], [2, 1], [2, 0], [1]],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_sets(form):
    sets = validate_candidates(FORMS[form], num_classes=3)
    assert sets.dtype == bool
    assert sets.astype(int).tolist() == EXPECTED


def test_a_ragged_tensor():
    tf = pytest.importorskip("tensorflow")
    sets = validate_candidates(tf.ragged.constant(LISTS), num_classes=3)
    assert sets.astype(int).tolist() == EXPECTED
    sets = validate_candidates(tf.constant(EXPECTED), num_classes=3)
    assert sets.astype(int).tolist() == EXPECTED


def test_names_are_looked_up():
    names = ("cat", "dog", "owl", "bat", "emu")
    sets = validate_candidates([["dog"], [" cat", b"owl"]], class_names=names)
    assert sets.astype(int).tolist() == [[0, 1, 0, 0, 0], [1, 0, 1, 0, 0]]


def test_flat_lists_are_sets_of_one():
    found = validate_candidates([2, 0], num_classes=3)
    assert found.astype(int).tolist() == [[0, 0, 1], [1, 0, 0]]
    found = validate_candidates(np.array([1, 0, 1]), num_classes=2)
    assert found.astype(int).tolist() == [[0, 1], [1, 0], [0, 1]]


def test_the_number_of_classes_is_worked_out():
    assert validate_candidates(LISTS).shape == (4, 3)
    assert validate_candidates(np.array(EXPECTED)).shape == (4, 3)


def test_form_settles_what_is_ambiguous():
    # Rows (1, 0): the set {0} as multi-hot, {0, 1} as class numbers.
    rows = np.array([[1, 0], [1, 0]])
    assert validate_candidates(rows, 2).sum() == 2
    assert validate_candidates(rows, 2, form="ids").sum() == 4
    with pytest.raises(DataError, match="rows of one length"):
        validate_candidates(LISTS, 3, form="multi_hot")
    with pytest.raises(ConfigError, match="auto, multi_hot, ids.*'dense'"):
        validate_candidates(LISTS, 3, form="dense")


@pytest.mark.parametrize(
    ("candidates", "text"),
    [
        # Empty sets.
        ([[0], [0, 1], []], r"1 candidate sets are empty, ids c \(row 2\)"),
        (np.array([[1, 0, 0], [0, 0, 0], [0, 1, 0]]), "are empty, ids b"),
        (np.array([[0, 1], [-1, -1], [2, -1]]), "are empty, ids b"),
        # Out of range.
        ([[0], [3], [1, 4]], r"2 labels are outside 0\.\.2, ids b.*c.* is 3$"),
        ([[0], [-2], [1]], r"outside 0\.\.2, ids b .* is -2"),
        ([[1], [2, 3], [1]], "the first is 3; they look 1-based"),
        # NaN, blanks, halves.
        (np.array([[1, 0, 0], [0, np.nan, 1], [1, 0, 0]]), "blank.*column 1"),
        ([[0], [None], [1]], "not whole, ids b.*blank"),
        ([[0], [float("nan"), 1], [1]], "not whole, ids b.*blank"),
        ([[0], [1.5, 1], [1]], "not whole, ids b.*1.5"),
        # Weights and other numbers in a multi-hot matrix.
        (np.array([[0.3, 1, 0], [1, 0, 0], [0.3, 0.7, 0]]), "3 other.*a.*0.3"),
        (np.array([[2, 1, 0], [1, 0, 0], [0, 0, 1]]), "1 other values.* is 2 "),
        # Width.
        (np.eye(4), "have 4 columns, but there are 3 classes"),
        (np.array([[0, 1], [1, 0], [1, 1]]), "2 columns.*form='ids'"),
        (np.ones((2, 2, 2)), r"shape=\(2, 2, 2\)"),
        # Types.
        ([[0], ["cat"], [1]], "Unknown class name 'cat'.*class_names"),
        ([[0], [object()], [1]], "number or name was expected.*ids b"),
        ([[True, False], [True], [False]], "multi-hot rows of one length"),
        ([[0], 1, [2]], "Row 1 .* must be a list"),
    ],
)
def test_unsound_sets_are_refused(candidates, text):
    ids = ["a", "b", "c", "d"][: len(candidates)]
    with pytest.raises(DataError, match=text) as caught:
        validate_candidates(candidates, num_classes=3, ids=ids)
    assert "\n" not in str(caught.value)


def test_the_first_five_offenders_and_the_count():
    with pytest.raises(DataError) as caught:
        validate_candidates([[0]] + [[]] * 9, num_classes=2)
    assert "9 candidate sets are empty, rows 1, 2, 3, 4, 5, ...;" in str(
        caught.value
    )


def test_nothing_at_all():
    with pytest.raises(DataError, match="empty"):
        validate_candidates([])


def test_an_unknown_name_gets_the_nearest_one():
    with pytest.raises(DataError, match="'catt' in rows 1; did you mean cat"):
        validate_candidates([["dog"], ["catt"]], class_names=["cat", "dog"])


def test_lengths_that_differ():
    with pytest.raises(DataError, match="9 candidate sets but 10 ids.*i9"):
        validate_candidates([[0]] * 9, 2, ids=[f"i{n}" for n in range(10)])


def test_duplicates_count_once_and_are_noted():
    with pytest.warns(DataWarning, match="1 candidate sets name a class more"):
        sets = validate_candidates([[0, 0], [1]], num_classes=2)
    assert sets.astype(int).tolist() == [[1, 0], [0, 1]]


def test_many_full_sets_are_noted():
    rows = np.eye(3)[np.arange(100) % 3]
    rows[:5] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        validate_candidates(rows, 3)
    rows[5] = 1
    with pytest.warns(DataWarning, match="6 of 100 candidate sets hold all 3"):
        validate_candidates(rows, 3)


def test_zero_used_as_padding_is_noticed():
    padded = np.array([[1, 0], [2, 0], [2, 1], [2, 0]] * 50)
    padded[2::4, 1] = 0
    with pytest.warns(DataWarning, match="Class 0 is in 100.0%.*Use -1"):
        validate_candidates(padded, num_classes=3)


def test_labels():
    found = validate_labels(np.array([0.0, 2.0]), 3)
    assert found.dtype == np.int64
    assert found.tolist() == [0, 2]
    assert validate_labels([1, 0], 2).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ([0, 3], r"1 labels are outside 0\.\.2, ids b \(row 1\).* is 3$"),
        ([0, -1], "is -1"),
        ([1, 2, 3], "1-based"),
        ([0, 1.5], "not whole.*1.5"),
        ([0, float("nan")], "blank"),
        ([[0], [1]], r"shape=\(2, 1\)"),
        (["0", "cat"], "Unknown class name"),
        ([0], "1 labels but 2 ids, the first without one is b"),
    ],
)
def test_unsound_labels_are_refused(labels, text):
    ids = ["a", "b", "c"][: max(2, len(labels))]
    with pytest.raises(DataError, match=text):
        validate_labels(labels, 3, ids=ids)


def test_repeated_ids_with_equal_sets_are_dropped():
    sets = np.array([[1, 0], [0, 1], [1, 0]], bool)
    with pytest.warns(DataWarning, match="1 rows repeat an id"):
        ids, kept = deduplicate(["b", "a", "b"], sets)
    assert ids.tolist() == ["b", "a"]
    assert kept.tolist() == [[True, False], [False, True]]


def test_repeated_ids_with_other_sets_are_refused():
    sets = np.array([[1, 0], [0, 1], [1, 1]], bool)
    with pytest.raises(DataError, match="x.csv: 1 ids have two.*: b;"):
        deduplicate(["b", "a", "b"], sets, where="x.csv")


def test_claimed_clean_but_truth_missing():
    sets = np.array([[1, 0], [1, 0], [0, 1]], bool)
    with pytest.warns(DataWarning, match="1 of 3 candidate sets leave out"):
        assert check_truth_inside(sets, [0, 1, 1], 0.0) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_truth_inside(sets, [0, 1, 1], 0.3) == 1
