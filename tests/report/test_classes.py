import csv

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

from alim_keras.data import SparseCandidates
from alim_keras.report import classes
from alim_keras.report import write_classes

# Three sets of two, one of three, one of one.
SETS = np.array(
    [
        [1, 1, 0, 0],
        [1, 0, 1, 0],
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [0, 0, 0, 1],
    ],
    bool,
)


@pytest.mark.parametrize("sparse", [False, True])
def test_counts_and_masses(sparse, monkeypatch):
    sets = SparseCandidates.from_multi_hot(SETS) if sparse else SETS
    # Blocks of two rows.
    monkeypatch.setattr(classes, "_BLOCK", 8)
    given, mass = classes.given_counts(sets)
    assert given.tolist() == [4, 3, 2, 1]
    third = 1 / 3
    expected = [3 / 2 + third, 2 / 2 + third, 1 / 2 + third, 1]
    np.testing.assert_allclose(mass, expected)
    assert mass.sum() == pytest.approx(5)


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
    assert classes.mass_groups(mass).tolist() == expected.split()


def test_accuracies_are_those_of_each_class():
    labels = np.array([0, 0, 0, 1, 1, 3])
    predicted = np.array([0, 0, 1, 1, 3, 3])
    found = classes.class_accuracies(labels, predicted, 4)
    np.testing.assert_allclose(found, [2 / 3, 1 / 2, np.nan, 1])
    assert np.nanmean(found) == pytest.approx(
        balanced_accuracy_score(labels, predicted)
    )
    assert np.isnan(classes.class_accuracies([], [], 3)).all()


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_file(tmp_path):
    mean = write_classes(
        tmp_path / "classes.csv",
        ["ant", "bee, small", "cat", "dog"],
        SETS,
        settled=np.array([0, 0, 1, 1, 3]),
        labels=np.array([0, 2, 1, 1, 3]),
        test=(np.array([0, 0, 0, 1, 1]), np.array([0, 0, 2, 1, 3])),
    )
    assert mean == pytest.approx((2 / 3 + 1 / 2) / 2)
    found = rows(tmp_path / "classes.csv")
    assert tuple(found[0]) == classes.COLUMNS
    assert [list(row.values()) for row in found] == [
        ["ant", "many", "4", "1.83", "2", "1", "3", "0.6667"],
        ["bee, small", "many", "3", "1.33", "2", "2", "2", "0.5000"],
        ["cat", "few", "2", "0.83", "0", "1", "0", ""],
        ["dog", "medium", "1", "1.00", "1", "1", "0", ""],
    ]


def test_without_truth_its_columns_are_empty(tmp_path):
    mean = write_classes(
        tmp_path / "classes.csv",
        ["a", "b", "c", "d"],
        SETS,
        settled=np.array([0, 0, 1, 1, 3]),
        labels=None,
        test=None,
    )
    assert mean is None
    for row in rows(tmp_path / "classes.csv"):
        for name in ("training_images", "test_images", "test_accuracy"):
            assert row[name] == ""
        assert row["given"] and row["settled"]
