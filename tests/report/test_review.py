import types

import numpy as np
import pytest

from alim_keras.report import LabelRows
from alim_keras.report.review import COLUMNS
from alim_keras.report.review import disagreements
from alim_keras.report.review import gains
from alim_keras.report.review import reason
from alim_keras.report.review import review

NAMES = ["cat", "dog", "elk"]
SETS = np.array(
    [[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 1, 0], [1, 0, 0], [1, 1, 1]], bool
)
WEIGHTS = np.array(
    [
        [1.0, 0.0, 0.0],  # cat, sure: gain 0
        [0.9, 0.1, 0.0],  # cat, outside: .9 + .1 = 1
        [0.4, 0.35, 0.25],  # cat, undecided: .25 + .6 = .85
        [0.0, 0.8, 0.2],  # dog: .2 + .2 = .4
        [0.1, 0.45, 0.45],  # dog, outside and undecided: .9 + .55 = 1.45
        [0.1, 0.3, 0.6],  # elk, full set: 0 + .4
    ]
)
IDS = ["a", "b", "c", "d", "e", "f"]
VOTES = types.SimpleNamespace(
    rows=np.array([2, 2, 2, 4, 5, 5]), classes=np.array([1, 0, 1, 0, 2, 2])
)


def listed(budget, **options):
    rows = LabelRows(IDS, NAMES)
    rows.add(np.arange(6), WEIGHTS, SETS)
    frame = rows.frame("folds")
    return review(frame, rows.settled, budget, NAMES, **options)


def test_gains_are_the_expected_wrong_entries():
    np.testing.assert_allclose(gains([0.9, 0.25], [0.9, 0.4]), [1.0, 0.85])


def test_classes_stay_together_and_come_by_what_there_is_to_gain():
    found = listed(200)
    # dog 1.45 + .4 and cat 1 + .85 are as good as equal; elk has .4.
    assert tuple(found.columns) == COLUMNS
    assert sorted(found["id"]) == ["b", "c", "d", "e", "f"]
    assert found["class"].tolist()[-1] == "elk"
    assert len(dict.fromkeys(found["class"])) == 3
    by_id = found.set_index("id")
    assert by_id["rank"][["e", "b", "c"]].tolist() == [1, 2, 3]
    np.testing.assert_allclose(
        by_id["gain"][["e", "b", "c", "d", "f"]],
        [1.45, 1, 0.85, 0.4, 0.4],
        atol=1e-6,
    )


def test_the_budget_is_spent_over_all_classes():
    found = listed(3)
    # cat 1.85 is ahead of dog 1.45.
    assert found["id"].tolist() == ["b", "c", "e"]
    assert found["rank"].tolist() == [2, 3, 1]
    assert listed(0).empty and tuple(listed(0).columns) == COLUMNS


def test_what_somebody_has_looked_at_is_left_out():
    found = listed(2, known=np.array([0, 1, 0, 0, 0, 0], bool))
    assert sorted(found["id"]) == ["c", "e"]


def test_reasons_in_words():
    found = listed(200, votes=VOTES).set_index("id")["reason"]
    assert found["b"] == "outside its set, 0.90 sure of cat"
    assert found["c"] == (
        "undecided between cat and dog; annotators disagree: dog 2, cat 1"
    )
    assert found["d"] == "its set is wrong with probability 0.20"
    assert found["e"] == "outside its set, undecided between dog and elk"
    assert found["f"] == "only 0.60 sure of elk"


def test_annotators_who_disagree():
    assert disagreements(None, [0], NAMES) == {}
    assert disagreements(VOTES, [2, 5], NAMES) == {2: "dog 2, cat 1"}
    assert disagreements(VOTES, [4, 5], NAMES) == {}


@pytest.mark.parametrize("name", ["<b>", "a|b", ""])
def test_names_are_left_as_they_are(name):
    row = {
        "outside": True,
        "undecided": False,
        "probability": 0.5,
        "label": name,
        "runner_up": "x",
        "suspicion": 0.5,
    }
    assert reason(row) == f"outside its set, 0.50 sure of {name}"
