import csv

import numpy as np
import pytest

from alim_keras.data import CandidateSets
from alim_keras.report import labels
from alim_keras.report import write_classes

NAMES = ["ant", "bee, small", "cat", "dog"]
# Three sets of two, one of three, one of one.
SETS = CandidateSets.from_lists(
    [[0, 1], [0, 2], [0, 1], [0, 1, 2], [3]], class_names=NAMES
)


@pytest.mark.parametrize(
    "mass, expected",
    [
        ([5, 9, 1, 7], "medium many few many"),
        ([2, 2, 2], "many medium few"),
        ([1, 2], "medium many"),
        (range(9), "few few few medium medium medium many many many"),
    ],
)
def test_groups_are_thirds_by_mass(mass, expected):
    assert labels.mass_groups(mass).tolist() == expected.split()


@pytest.mark.parametrize("truth", [True, False])
def test_the_file(tmp_path, truth):
    mean = write_classes(
        tmp_path / "classes.csv",
        SETS,
        settled=np.array([0, 0, 1, 1, 3]),
        labels=np.array([0, 2, 1, 1, 3]) if truth else None,
        test=(np.array([0, 0, 0, 1, 1]), np.array([0, 0, 2, 1, 3]))
        if truth
        else None,
    )
    with open(tmp_path / "classes.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert ",".join(rows[0]) == (
        "class,group,given,given_mass,settled,training_images,test_images,"
        "test_accuracy"
    )
    expected = [
        ["ant", "many", "4", "1.8333", "2", "1", "3", "0.6667"],
        ["bee, small", "many", "3", "1.3333", "2", "2", "2", "0.5000"],
        ["cat", "few", "2", "0.8333", "0", "1", "0", ""],
        ["dog", "medium", "1", "1.0000", "1", "1", "0", ""],
    ]
    if truth:
        assert mean == pytest.approx((2 / 3 + 1 / 2) / 2)
    else:
        assert mean is None
        expected = [[*row[:5], "", "", ""] for row in expected]
    assert rows[1:] == expected
