"""Subsets, long tails and the held-out part."""

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
    for size in (1, 7, 99, 100):
        assert len(np.unique(stratified_subset(labels, size, 4))) == size
    for size in (0, 101, -1, 2.5, True):
        with pytest.raises(ConfigError, match="size"):
            stratified_subset(labels, size)


@pytest.mark.parametrize(
    "choose",
    [
        lambda seed: stratified_subset(np.arange(300) % 3, 30, seed),
        lambda seed: holdout_split([str(n) for n in range(60)], 0.3, seed)[1],
    ],
)
def test_a_part_is_a_function_of_the_seed(choose):
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
    for with_copies, plain in zip(
        holdout_split(ids, 0.2, 1, np.arange(300)), holdout_split(ids, 0.2, 1)
    ):
        assert np.array_equal(with_copies, plain)
    with pytest.raises(ConfigError, match="leaves none"):
        holdout_split(["a", "b"], 0.5, 0, [1, 1])


def test_holdout_ends():
    train, held_out = holdout_split(["a", "b"], 0.0)
    assert (train.tolist(), held_out.tolist()) == ([0, 1], [])
    assert len(holdout_split(["a", "b"], 0.01)[1]) == 1
    with pytest.raises(ConfigError, match="leaves none"):
        holdout_split(["a", "b"], 0.9)
    with pytest.raises(ConfigError, match="`share`"):
        holdout_split(["a", "b"], float("nan"))
