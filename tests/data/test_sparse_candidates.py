"""Candidate sets as lists of classes."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import alim_keras
from alim_keras.data import SparseCandidates
from alim_keras.errors import DataError

LISTS = [[4, 0], [1], [2, 3, 0], [4]]
MULTI_HOT = np.array(
    [[1, 0, 0, 0, 1], [0, 1, 0, 0, 0], [1, 0, 1, 1, 0], [0, 0, 0, 0, 1]], bool
)


def test_lists_and_matrices_are_the_same_sets():
    for sets in (
        SparseCandidates.from_lists(LISTS, 5),
        SparseCandidates.from_multi_hot(MULTI_HOT),
        SparseCandidates([0, 2, 3, 6, 7], [0, 4, 1, 0, 2, 3, 4], 5),
    ):
        assert sets.shape == (4, 5) and len(sets) == 4
        assert sets.sizes.tolist() == [2, 1, 3, 1]
        assert [sets.members(i).tolist() for i in range(4)] == [
            sorted(row) for row in LISTS
        ]
        rows = sets.rows(np.array([2, 0, 2]))
        assert rows.dtype == "float32"
        np.testing.assert_array_equal(rows, MULTI_HOT[[2, 0, 2]])
        assert sets.rows(np.array([], int)).shape == (0, 5)
        # Seven classes of two bytes, five starts of eight.
        assert sets.nbytes == 7 * 2 + 5 * 8


@hypothesis.given(
    rows=st.lists(
        st.lists(st.booleans(), min_size=6, max_size=6).filter(any),
        min_size=1,
        max_size=9,
    ),
    data=st.data(),
)
@hypothesis.settings(max_examples=60)
def test_rows_and_subsets_are_those_of_the_matrix(rows, data):
    dense = np.array(rows)
    sets = SparseCandidates.from_multi_hot(dense)
    place = st.integers(0, len(rows) - 1)
    index = np.array(data.draw(st.lists(place, max_size=12)), int)
    np.testing.assert_array_equal(sets.rows(index), dense[index])
    part = sets[index]
    assert part.shape == (len(index), 6)
    everything = np.arange(len(index))
    np.testing.assert_array_equal(part.rows(everything), dense[index])


def test_many_blocks_are_put_together(monkeypatch):
    monkeypatch.setattr("alim_keras.data.sparse_candidates._BLOCK", 10)
    sets = SparseCandidates.from_multi_hot(np.concatenate([MULTI_HOT] * 5))
    np.testing.assert_array_equal(
        sets.rows(np.arange(20)), np.concatenate([MULTI_HOT] * 5)
    )


def test_class_numbers_above_int16_are_kept():
    sets = SparseCandidates.from_lists([[40000, 3]], 50000)
    assert sets.members(0).tolist() == [3, 40000]
    assert np.flatnonzero(sets.rows([0])[0]).tolist() == [3, 40000]


@pytest.mark.parametrize("views", [False, True])
def test_training_batches_are_those_of_the_matrix(views):
    stream = np.random.default_rng(0)
    images = stream.integers(0, 256, (4, 6, 6, 1)).astype("uint8")
    views = alim_keras.augment.Views((6, 6)) if views else None
    batches = [
        list(
            alim_keras.data.train_dataset(
                images, sets, batch_size=2, seed=1, views=views
            )
        )
        for sets in (MULTI_HOT, SparseCandidates.from_multi_hot(MULTI_HOT))
    ]
    assert len(batches[0]) == 2
    for (x, y), (again, sets) in zip(*batches):
        np.testing.assert_array_equal(x["index"], again["index"])
        np.testing.assert_array_equal(y, sets)


def test_evaluation_batches_are_those_of_the_matrix():
    images = np.zeros((4, 2, 2, 1), "uint8")
    sets = SparseCandidates.from_multi_hot(MULTI_HOT)
    data = alim_keras.data.eval_dataset(images, sets, 5, batch_size=3)
    found = np.concatenate([y for _, y in data])
    np.testing.assert_array_equal(found, MULTI_HOT)


@pytest.mark.parametrize(
    "starts, members, message",
    [
        ([0, 2, 2], [0, 1], "1 candidate sets are empty, rows.*1"),
        ([0, 2, 3], [0, 1], "from 0 to the number"),
        ([1, 2], [0, 1], "from 0 to the number"),
        ([0, 1, 2], [0, 5], "0..4 and ascend.*1"),
        ([0, 1, 2], [-1, 0], "0..4 and ascend.*0"),
        ([0, 1, 3], [4, 3, 3], "0..4 and ascend.*1"),
        ([0, 2], [3, 1], "0..4 and ascend.*0"),
    ],
)
def test_unsound_sets_are_refused(starts, members, message):
    with pytest.raises(DataError, match=message):
        SparseCandidates(starts, members, 5)


def test_an_empty_row_of_a_matrix_is_refused():
    with pytest.raises(DataError, match="1 candidate sets are empty"):
        SparseCandidates.from_multi_hot([[1, 0], [0, 0]])
