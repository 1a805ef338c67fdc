import numpy as np
import pytest

from alim_keras.data import holdout_split
from alim_keras.data import stratified_subset
from alim_keras.errors import ConfigError


def test_subset_has_the_class_shares_and_the_exact_size():
    labels = np.array([0] * 50 + [1] * 30 + [2] * 20)
    # 25 * (.5, .3, .2) = 12.5, 7.5, 5: the tie goes to class 0.
    chosen = stratified_subset(labels, 25)
    assert np.bincount(labels[chosen]).tolist() == [13, 7, 5]
    assert np.array_equal(chosen, np.unique(chosen))


@pytest.mark.parametrize("size", [1, 7, 99, 100])
def test_every_size_is_exact(size):
    labels = np.arange(100) % 13
    chosen = stratified_subset(labels, size, seed=4)
    assert len(np.unique(chosen)) == size
    share = np.bincount(labels) * size / 100
    assert np.all(np.abs(np.bincount(labels[chosen], minlength=13) - share) < 1)


def test_subset_is_a_function_of_the_seed():
    labels = np.arange(300) % 3
    one, again, other = (stratified_subset(labels, 30, s) for s in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("size", [0, 11, -1, 2.5, True])
def test_subset_sizes_that_cannot_be(size):
    with pytest.raises(ConfigError, match="size"):
        stratified_subset(np.zeros(10, int), size)


def test_holdout_is_disjoint_complete_and_rounded():
    ids = [f"train_{n:05d}" for n in range(101)]
    train, held_out = holdout_split(ids, 0.1, seed=3)
    assert len(held_out) == 10
    both = np.concatenate([train, held_out])
    assert np.array_equal(np.sort(both), np.arange(101))


def test_holdout_follows_the_ids_not_the_rows():
    ids = np.array([f"x{n}" for n in range(50)])
    order = np.random.default_rng(0).permutation(50)
    _, straight = holdout_split(ids, 0.2, seed=5)
    _, shuffled = holdout_split(ids[order], 0.2, seed=5)
    assert set(ids[order][shuffled]) == set(ids[straight])


def test_holdout_is_a_function_of_the_seed():
    ids = [str(n) for n in range(60)]
    one, again, other = (holdout_split(ids, 0.3, s)[1] for s in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_holdout_ends():
    train, held_out = holdout_split(["a", "b"], 0.0)
    assert (train.tolist(), held_out.tolist()) == ([0, 1], [])
    assert len(holdout_split(["a", "b"], 0.01)[1]) == 1
    for share in (1.0, 0.9):
        with pytest.raises(ConfigError, match="leaves none"):
            holdout_split(["a", "b"], share)
    with pytest.raises(ConfigError, match="`share`"):
        holdout_split(["a", "b"], float("nan"))
