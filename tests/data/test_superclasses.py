import numpy as np
import pytest

from alim_keras.data import CIFAR100_SUPERCLASSES
from alim_keras.data import superclasses_of
from alim_keras.errors import ConfigError


def test_the_table_is_twenty_by_five():
    assert len(CIFAR100_SUPERCLASSES) == 20
    assert {len(members) for members in CIFAR100_SUPERCLASSES.values()} == {5}
    assert len({n for m in CIFAR100_SUPERCLASSES.values() for n in m}) == 100


def test_the_join_is_by_name():
    names = [n for members in CIFAR100_SUPERCLASSES.values() for n in members]
    assert superclasses_of(names).tolist() == [n // 5 for n in range(100)]
    assert superclasses_of(names[::-1]).tolist() == [
        19 - n // 5 for n in range(100)
    ]
    assert superclasses_of(["Maple tree", "sweet-pepper"]).tolist() == [17, 4]


def test_the_official_numbering():
    # The coarse label of the first and last fine labels in CIFAR-100.
    first = ["apple", "aquarium_fish", "baby", "bear", "beaver"]
    assert superclasses_of(first).tolist() == [4, 1, 14, 8, 0]
    last = ["willow_tree", "wolf", "woman", "worm"]
    assert superclasses_of(last).tolist() == [17, 8, 14, 13]


def test_other_names_are_refused():
    with pytest.raises(ConfigError, match="1 of 2 classes.*: digit"):
        superclasses_of(["apple", "digit"])


def test_an_own_table():
    table = {"pets": ("cat", "dog"), "birds": ("owl",)}
    found = superclasses_of(["owl", "cat"], table)
    assert np.array_equal(found, [1, 0])
