import numpy as np
import pandas as pd
import pytest

from alim_keras.data import CandidateSets
from alim_keras.report import tables
from alim_keras.report.labels import label_rows

NAMES = ["ant", "bee", "cat", "dog"]
# Two sets of one and two of two; the second and the last are wrong.
SETS = CandidateSets.from_lists([[0], [0], [0, 1], [0, 1]], class_names=NAMES)
LABEL = np.array([0, 1, 1, 2])
OUTSIDE = ~SETS.contains(np.arange(4), LABEL)


def test_confusions_by_hand():
    counts, pairs = tables.confusions(SETS, LABEL, OUTSIDE)
    # Row ant: 1 as ant; 1 + 1/2 as bee; 1/2 as cat. Row bee: 1/2 and 1/2.
    expected = np.zeros((4, 4))
    expected[0, :3] = 1.0, 1.5, 0.5
    expected[1, 1:3] = 0.5, 0.5
    np.testing.assert_array_equal(counts.toarray(), expected)
    # Of sets that miss the settled class; four hold ant, and two bee.
    assert pairs.values.tolist() == [
        ["ant", "bee", 1, 0.25],
        ["ant", "cat", 1, 0.25],
        ["bee", "cat", 1, 0.5],
    ]


def test_a_row_per_class():
    frame = tables.classes(SETS, LABEL, OUTSIDE).set_index("class")
    # Nothing of nothing is not known.
    for column, expected in (
        ("given", [4, 2, 0, 0]),
        ("settled", [1, 2, 1, 0]),
        ("outside", [0, 1, 1, 0]),
        ("given_wrong", [2, 1, 0, 0]),
        ("outside_share", [0, 0.5, 1, np.nan]),
        ("given_wrong_share", [0.5, 0.5, np.nan, np.nan]),
        ("mean_set_size", [1.5, 2, np.nan, np.nan]),
    ):
        np.testing.assert_array_equal(frame[column][NAMES], expected)
    # One wrong set of one is no proof: cat is not ahead of ant and bee.
    assert frame.index.tolist()[-1] == "dog"


def test_a_class_that_is_noisy_for_sure_is_first():
    truth = np.repeat([0, 1, 2, 3], [1, 100, 100, 100])
    given = truth.copy()
    # One of one ant, and half of a hundred cats.
    given[0] = 1
    given[101:151] = 3
    sets = CandidateSets.from_lists(given[:, None], class_names=NAMES)
    frame = tables.classes(sets, truth, given != truth)
    assert frame["class"][0] == "cat"


PETS = ["cat", "dog", "elk"]
WEIGHTS = np.array(
    [
        [1.0, 0.0, 0.0],  # a: certain, no use.
        [0.9, 0.1, 0.0],  # b: outside and sure.
        [0.45, 0.4, 0.15],  # c: undecided; .3 outside: .15 + .55 + ...
        [0.2, 0.8, 0.0],  # d: its set is wrong with .2.
        [0.1, 0.45, 0.45 - 1e-3],  # e: outside, undecided.
        [0.4, 0.0, 0.6],  # f: only .6 sure.
    ]
)
GIVEN = np.array(
    [[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1]], bool
)


def listed(budget=200, **options):
    sets = CandidateSets.from_dense(GIVEN, list("abcdef"), PETS)
    frame = label_rows(sets, np.arange(6), WEIGHTS, "folds")
    label = pd.Index(PETS).get_indexer(frame["label"])
    return tables.review(frame, label, budget, **options)


def test_the_list_by_hand():
    found = listed()
    assert ",".join(found.columns) == (
        "rank,id,class,reason,candidates,label,probability,runner_up,suggested"
    )
    # To repair, cat: .1 and .55; dog: .2 and .55; elk: .4.
    ranks = found.set_index("id")["rank"]
    assert ranks[["c", "e", "f", "d", "b"]].tolist() == [1, 2, 3, 4, 5]
    # dog .75, cat .65, elk .4: classes by their total, then by rank.
    assert found["id"].tolist() == ["e", "d", "c", "b", "f"]
    assert found["class"].tolist() == ["dog", "dog", "cat", "cat", "elk"]


def test_the_budget_is_spent_over_all_classes():
    found = listed(3)
    assert found["id"].tolist() == ["c", "e", "f"]
    assert found["rank"].tolist() == [1, 2, 3]
    # What somebody has looked at is left out.
    known = np.array([0, 1, 0, 0, 0, 0], bool)
    assert sorted(listed(2, known=known)["id"]) == ["c", "e"]
    assert listed(0).empty and listed(0).columns.equals(found.columns)


def test_reasons_in_words():
    assert listed().set_index("id")["reason"].to_dict() == {
        "b": "outside its set, 90 % sure of cat",
        "c": "undecided between cat and dog",
        "d": "80 % sure of dog",
        "e": "outside its set, undecided between dog and elk",
        "f": "60 % sure of elk",
    }


def test_choices_by_hand():
    belief = np.array(
        [[0.5, 0.2, 0.29, 0.01, 0], [2, 2, 0, 0, 0], [0, 0, 0, 0.995, 0.005]]
    )
    given = np.array([[0, 1, 0, 0, 1], [0, 1, 0, 0, 0], [0, 0, 0, 1, 0]], bool)
    sets = CandidateSets.from_dense(given, list("xyz"), list("abcde"))
    # Two likeliest, candidates however unlikely, and all from 1 %; at a tie
    # the candidate is first.
    assert tables.choices(sets, np.arange(3), belief) == [
        (list("acbde"), [0.5, 0.29, 0.2, 0.01, 0.0]),
        (list("ba"), [0.5, 0.5]),
        (list("de"), [0.995, 0.005]),
    ]
    sets = CandidateSets.from_dense(np.ones((1, 12)), ["a"])
    ((many, _),) = tables.choices(sets, np.arange(1), np.ones((1, 12)))
    assert len(many) == 9


def test_known_labels_are_counted():
    many = CandidateSets.from_lists([[0]] * 200, class_names=NAMES)
    labels = np.where(np.arange(200) < 5, 1, 0)
    label, is_told = np.zeros(200, int), np.arange(200) < 3
    assert tables.count_known(label, labels, many, is_told) == {
        "known_labels": 200,
        "realised_noise": 0.025,
        "realised_noise_low": 0.025,
        "realised_noise_high": 0.025,
        # Two of those that were not told are settled as another class.
        "compared_labels": 197,
        "settled_accuracy": 195 / 197,
    }
    labels[100:] = -1
    found = tables.count_known(label, labels, many, is_told)
    # Wilson's interval of 5 of 100.
    assert found["realised_noise_low"] == pytest.approx(0.0215, abs=1e-4)
    assert found["realised_noise_high"] == pytest.approx(0.1118, abs=1e-4)
    found = tables.count_known(label, None, many, is_told)
    assert found["known_labels"] == found["compared_labels"] == 0
    assert found["realised_noise"] is found["settled_accuracy"] is None
