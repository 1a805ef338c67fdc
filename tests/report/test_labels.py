import csv
import json

import numpy as np
import own
import pandas as pd
import pytest

from alim_keras.data import CandidateSets
from alim_keras.report import labels as module
from alim_keras.report.labels import label_rows
from alim_keras.report.labels import settled_labels
from alim_keras.report.labels import write_classes

NAMES = ["cat", 'dog, "small"', "ant\nhill", "Österreich"]
SETS = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 1], [1, 0, 0, 0]], bool)
# Inside and sure; outside and sure; undecided inside; unnormalised, outside.
WEIGHTS = np.array(
    [
        [0.7, 0.2, 0.1, 0.0],
        [0.0, 0.9, 0.1, 0.0],
        [0.25, 0.45, 0.0, 0.3],
        [0.6, 0.2, 0.4, 0.8],
    ]
)


def test_each_column_by_hand():
    found = settled_labels(WEIGHTS, SETS)
    assert found["label"].tolist() == [0, 1, 1, 3]
    assert found["runner_up"].tolist() == [1, 2, 3, 0]
    # The last row sums to 2.
    np.testing.assert_allclose(found["probability"], [0.7, 0.9, 0.45, 0.4])
    for column, expected in (
        ("margin", [0.5, 0.8, 0.15, 0.1]),
        ("suspicion", [0.1, 0.9, 0.25, 0.7]),
    ):
        np.testing.assert_allclose(found[column], expected, atol=1e-6)
    assert found["outside"].tolist() == [False, True, False, True]
    assert found["undecided"].tolist() == [False, False, True, True]
    # .9 and .75 are enough; .1 needs dog; .3 needs class 3 (.7 then).
    assert found["suggested"].astype(int).tolist() == [
        [1, 1, 0, 0],
        [0, 1, 1, 0],
        [0, 1, 0, 1],
        [1, 0, 0, 1],
    ]


@pytest.mark.parametrize(
    "weights, given, expected",
    [
        # The label is outside, but the set as a whole holds .55: it stays.
        ([0.3, 0.25, 0.45], [1, 1, 0], [1, 1, 0]),
        # The label is inside, and the set is wrong more likely than not.
        ([0.4, 0.35, 0.25], [1, 0, 0], [1, 1, 0]),
        # One class is not enough: .2 + .25 < .5.
        ([0.2, 0.25, 0.25, 0.2, 0.1], [1, 0, 0, 0, 0], [1, 1, 1, 0, 0]),
        # Exactly a half is enough; a row without any weight says nothing.
        ([0.5, 0.5], [1, 0], [1, 0]),
        ([0.25, 0.25, 0.25, 0.25], [1, 0, 0, 0], [1, 1, 0, 0]),
        ([0.0, 0.0], [1, 0], [1, 0]),
    ],
)
def test_suggested_sets_at_the_edges(weights, given, expected):
    found = settled_labels([weights], np.array([given]))
    assert found["suggested"][0].astype(int).tolist() == expected


@pytest.mark.parametrize(
    "weights, given, label, runner_up, undecided",
    [
        # A tie goes to the set, and is undecided whatever its share.
        ([0.0, 0.5, 0.5, 0.0], [0, 1, 1, 0], 1, 2, True),
        ([0.5, 0.5], [0, 1], 1, 0, True),
        ([0.25, 0.25, 0.25, 0.25], [0, 0, 1, 1], 2, 0, True),
        ([0.125, 0.375, 0.375, 0.125], [1, 0, 0, 0], 1, 2, True),
        # No tie: the set does not matter.
        ([0.5, 0.25, 0.25], [0, 1, 1], 0, 1, False),
        # Runners-up may be equal.
        ([0.6, 0.2, 0.2], [1, 0, 0], 0, 1, False),
    ],
)
def test_ties(weights, given, label, runner_up, undecided):
    found = settled_labels([weights], [given])
    assert found["label"].tolist() == [label]
    assert found["runner_up"].tolist() == [runner_up]
    assert found["outside"].tolist() == [not given[label]]
    assert found["undecided"].tolist() == [undecided]


def test_one_class_has_no_runner_up():
    frame = _frame(np.array([[1.0]]), np.array([[True]]), ["only"])
    assert frame["runner_up"].isna().all()
    assert frame["margin"].tolist() == [1.0]
    assert not frame["undecided"][0]


def _frame(weights, sets, names):
    ids = [f"id {i}" for i in range(len(sets))]
    sets = CandidateSets.from_dense(sets, ids, names)
    return label_rows(sets, np.arange(len(ids)), weights, "folds")


def test_the_file_is_read_back_as_the_same_sets_and_names(tmp_path):
    path = tmp_path / "labels.csv"
    module.write_table(path, _frame(WEIGHTS, SETS, NAMES))
    rows = own.read_rows(path)
    assert ",".join(rows[0]) == (
        "id,candidates,label,probability,runner_up,margin,outside,undecided,"
        "suggested,source,suspicion"
    )
    assert [row["id"] for row in rows] == ["id 0", "id 1", "id 2", "id 3"]
    settled = settled_labels(WEIGHTS, SETS)
    pairs = [("candidates", SETS), ("suggested", settled["suggested"])]
    for name, sets in pairs:
        read = [[one in json.loads(row[name]) for one in NAMES] for row in rows]
        assert read == sets.tolist()
    for name in ("label", "runner_up"):
        assert [row[name] for row in rows] == [NAMES[n] for n in settled[name]]
    assert list(rows[1].values())[-1] == rows[1]["probability"] == "0.9000"
    assert [row["undecided"] for row in rows] == ["0", "0", "1", "1"]
    assert {row["source"] for row in rows} == {"folds"}


def test_missing_cells_and_a_carriage_return(tmp_path):
    frame = pd.DataFrame(
        {
            "name": ["a\rb", None],
            "members": [["x\r", "y"], []],
            "share": [0.25, float("nan")],
            "count": [3, 4],
            "sure": [True, False],
        }
    )
    module.write_table(tmp_path / "t.csv", frame)
    with open(tmp_path / "t.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[1:] == [
        ["a\rb", json.dumps(["x\r", "y"]), "0.2500", "3", "1"],
        ["", "[]", "", "4", "0"],
    ]


def test_an_untouched_row_is_its_set():
    frame = _frame(np.zeros((1, 3)), np.array([[0, 1, 1]]), NAMES[:3])
    assert frame["label"][0] == NAMES[1]
    assert frame["probability"][0] == 0.5
    assert frame["suspicion"][0] == 0
    assert frame["undecided"][0]


ANIMALS = ["ant", "bee, small", "cat", "dog"]
# Three sets of two, one of three, one of one.
GIVEN = CandidateSets.from_lists(
    [[0, 1], [0, 2], [0, 1], [0, 1, 2], [3]], class_names=ANIMALS
)


@pytest.mark.parametrize("truth", [True, False])
def test_the_file_of_classes(tmp_path, truth):
    settled, labels, test = np.array([0, 0, 1, 1, 3]), None, None
    if truth:
        labels = np.array([0, 2, 1, 1, 3])
        test = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 2, 1, 3])
    path = tmp_path / "classes.csv"
    mean = write_classes(path, GIVEN, settled, labels, test)
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert ",".join(rows[0]) == (
        "class,given,given_mass,settled,training_images,test_images,"
        "test_accuracy"
    )
    expected = [
        ["ant", "4", "1.8333", "2", "1", "3", "0.6667"],
        ["bee, small", "3", "1.3333", "2", "2", "2", "0.5000"],
        ["cat", "2", "0.8333", "0", "1", "0", ""],
        ["dog", "1", "1.0000", "1", "1", "0", ""],
    ]
    if truth:
        assert mean == pytest.approx((2 / 3 + 1 / 2) / 2)
    else:
        assert mean is None
        expected = [[*row[:4], "", "", ""] for row in expected]
    assert rows[1:] == expected
