import numpy as np
import pytest

from alim_keras.data import long_tailed_subset
from alim_keras.data import sources
from alim_keras.data.long_tail import long_tailed_sizes
from alim_keras.errors import ConfigError


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


def test_subset_is_a_function_of_the_seed():
    labels = np.arange(300) % 3
    one, again, other = (
        long_tailed_subset(labels, 3, 10, seed) for seed in (1, 1, 2)
    )
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("ratio", [0.5, 0, -3, float("nan"), float("inf")])
def test_ratios_that_cannot_be(ratio):
    with pytest.raises(ConfigError, match="imbalance.*ratio="):
        long_tailed_subset([0, 1], 2, ratio)


def test_image_data_follows():
    data = sources.load("digits")
    tail = data.long_tailed(20, seed=1)
    keep = long_tailed_subset(data.labels, 10, 20, seed=1)
    assert tail.ids.tolist() == data.ids[keep].tolist()
    np.testing.assert_array_equal(tail.images, data.images[keep])
    np.testing.assert_array_equal(tail.labels, data.labels[keep])
    np.testing.assert_array_equal(tail.test_images, data.test_images)
    assert (tail.mean, tail.std) == (data.mean, data.std)
