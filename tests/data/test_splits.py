import numpy as np
import pytest

from alim_keras.data import holdout_split
from alim_keras.data import long_tailed_subset
from alim_keras.data import stratified_subset
from alim_keras.data.training_set import long_tailed_sizes
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


@pytest.mark.parametrize(
    "choose",
    [
        lambda seed: stratified_subset(np.arange(300) % 3, 30, seed),
        lambda seed: long_tailed_subset(np.arange(300) % 3, 3, 10, seed),
        lambda seed: holdout_split([str(n) for n in range(60)], 0.3, seed)[1],
    ],
)
def test_a_part_is_a_function_of_the_seed(choose):
    assert np.array_equal(choose(1), choose(1))
    assert not np.array_equal(choose(1), choose(2))


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


def test_copies_stay_on_one_side():
    # 150 pictures under two names each: whole pairs are held out.
    ids = [f"x{n:03d}" for n in range(300)]
    copies = np.arange(300) % 150
    train, held_out = holdout_split(ids, 0.2, seed=1, copies=copies)
    assert len(held_out) == 60
    assert not set(copies[train]) & set(copies[held_out])
    # Without copies the split is the same as if nothing was said of them.
    for with_copies, plain in zip(
        holdout_split(ids, 0.2, 1, np.arange(300)), holdout_split(ids, 0.2, 1)
    ):
        assert np.array_equal(with_copies, plain)
    # A group of three can make the part larger.
    _, held_out = holdout_split(list("abcd"), 0.25, 0, [7, 7, 7, 1])
    assert len(held_out) in (1, 3)
    with pytest.raises(ConfigError, match="leaves none"):
        holdout_split(["a", "b"], 0.5, 0, [1, 1])


def test_holdout_ends():
    train, held_out = holdout_split(["a", "b"], 0.0)
    assert (train.tolist(), held_out.tolist()) == ([0, 1], [])
    assert len(holdout_split(["a", "b"], 0.01)[1]) == 1
    for share in (1.0, 0.9):
        with pytest.raises(ConfigError, match="leaves none"):
            holdout_split(["a", "b"], share)
    with pytest.raises(ConfigError, match="`share`"):
        holdout_split(["a", "b"], float("nan"))


# Long tails.


def test_sizes_fall_exponentially():
    # 5000 x 100^(-c / 9), rounded down: CIFAR-10 at a ratio of 100.
    expected = [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    assert long_tailed_sizes(5000, 10, 100).tolist() == expected
    # 81 x 81^(-c / 4): three times fewer each.
    assert long_tailed_sizes(81, 5, 81).tolist() == [81, 27, 9, 3, 1]
    assert long_tailed_sizes(7, 3, 1).tolist() == [7, 7, 7]
    # At least one, and a single class keeps all.
    assert long_tailed_sizes(4, 3, 1000).tolist() == [4, 1, 1]
    assert long_tailed_sizes(4, 1, 10).tolist() == [4]


def test_subset_keeps_members_of_each_class():
    labels = np.arange(300) % 3
    chosen = long_tailed_subset(labels, 3, 100, seed=2)
    assert np.bincount(labels[chosen]).tolist() == [100, 10, 1]
    assert np.array_equal(chosen, np.unique(chosen))


def test_a_smaller_class_keeps_what_it_has():
    # The largest class counts: 8, 8 / 2 = 4 and 8 / 4 = 2 are wanted.
    labels = np.array([0] * 6 + [1] * 8 + [2] * 1)
    chosen = long_tailed_subset(labels, 3, 4)
    assert np.bincount(labels[chosen]).tolist() == [6, 4, 1]
    # A class without examples stays without.
    chosen = long_tailed_subset(labels, 4, 8)
    assert np.bincount(labels[chosen], minlength=4).tolist() == [6, 4, 1, 0]


@pytest.mark.parametrize("ratio", [0.5, 0, -3, float("nan"), float("inf")])
def test_ratios_that_cannot_be(ratio):
    with pytest.raises(ConfigError, match="`ratio`.*ratio="):
        long_tailed_subset([0, 1], 2, ratio)
