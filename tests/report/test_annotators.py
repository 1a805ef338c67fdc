import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from alim_keras.data.tables import Votes
from alim_keras.report.annotators import COLUMNS
from alim_keras.report.annotators import annotators

NAMES = ["cat", "dog", "elk"]
LABEL = np.array([0, 1, 1, 2])


def votes(entries, names):
    rows, who, classes = np.array(entries).T
    return Votes(
        rows.astype("int64"),
        who.astype("int32"),
        classes.astype("int32"),
        None,
        tuple(names),
    )


# ann: cat right, dog right, cat for dog. bob: cat right, cat right again for
# the same example, elk for elk. cy: nothing.
VOTES = votes(
    [(0, 0, 0), (1, 0, 1), (2, 0, 0), (0, 1, 0), (0, 1, 0), (3, 1, 2)],
    ["ann", "bob", "cy"],
)


def test_each_column_by_hand():
    belief = np.array([0.9, 0.8, 0.1, 0.9, 0.9, 0.6])
    found = annotators(VOTES, LABEL, belief, NAMES)
    assert tuple(found.columns) == COLUMNS
    assert found["annotator"].tolist() == ["ann", "bob", "cy"]
    assert found["votes"].tolist() == [3, 3, 0]
    np.testing.assert_allclose(found["agreement"], [2 / 3, 1, np.nan])
    np.testing.assert_allclose(found["expected_agreement"], [0.6, 0.8, np.nan])
    # Both gave cat to the first; nobody but ann dog, and her cat for dog;
    # nobody but bob elk.
    np.testing.assert_allclose(found["adds"], [1 / 3, 1 / 3, np.nan])
    np.testing.assert_allclose(found["alone"], [2 / 3, 1 / 3, np.nan])
    assert found["bias"].tolist() == [
        "cat +1; most often cat for dog (1)",
        "",
        "",
    ]


def test_chance_is_corrected_as_by_scikit_learn():
    stream = np.random.default_rng(0)
    label = stream.integers(0, 3, 300)
    said = np.where(stream.random(300) < 0.6, label, stream.integers(0, 3, 300))
    entries = [(i, i % 2, said[i]) for i in range(300)]
    found = annotators(votes(entries, ["a", "b"]), label, np.ones(300), NAMES)
    for one in (0, 1):
        expected = cohen_kappa_score(said[one::2], label[one::2])
        assert found["chance_corrected"][one] == pytest.approx(expected)


def test_the_bias_is_the_class_that_is_given_too_often():
    # Four dogs, of which she calls three cats, and a cat that she calls dog.
    label = np.array([1, 1, 1, 1, 0])
    found = annotators(
        votes([(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 1), (4, 0, 1)], ["x"]),
        label,
        np.ones(5),
        NAMES,
    )
    assert found["bias"][0] == "cat +2; most often cat for dog (3)"


def test_kappa_of_a_single_class_is_not_known():
    found = annotators(
        votes([(1, 0, 1), (2, 0, 1)], ["x"]), LABEL, np.ones(2), NAMES
    )
    assert found["agreement"][0] == 1
    assert np.isnan(found["chance_corrected"][0])


def test_many_annotators_and_classes_give_what_tables_of_them_give():
    stream = np.random.default_rng(0)
    people, classes, count = 40, 12, 3000
    label = stream.integers(0, classes, 500)
    rows = stream.integers(0, 500, count)
    # The last three said nothing.
    who = stream.integers(0, people - 3, count)
    said = np.where(
        stream.random(count) < 0.6,
        label[rows],
        stream.integers(0, classes, count),
    )
    names = [f"c{i}" for i in range(classes)]
    found = annotators(
        votes(np.stack([rows, who, said], 1), [f"p{i}" for i in range(people)]),
        label,
        np.ones(count),
        names,
    )
    given, settled = np.zeros((2, people, classes))
    np.add.at(given, (who, said), 1)
    np.add.at(settled, (who, label[rows]), 1)
    number = given.sum(axis=1)[: people - 3]
    chance = (given * settled).sum(axis=1)[: people - 3] / number**2
    agreement = found["agreement"][: people - 3]
    np.testing.assert_allclose(
        found["chance_corrected"][: people - 3],
        (agreement - chance) / (1 - chance),
        rtol=1e-12,
    )
    assert found["chance_corrected"][people - 3 :].isna().all()
    excess = given - settled
    for one in range(people - 3):
        most = excess[one].argmax()
        assert found["bias"][one].startswith(
            f"{names[most]} +{excess[one, most]:.0f}; most often "
        )
    assert found["bias"][people - 3 :].tolist() == [""] * 3


def test_annotators_who_say_little_take_little_memory():
    people, classes = 20_000, 1000
    rows = np.arange(people)
    said = rows % classes
    given = votes(
        np.stack([rows, rows, said], 1), [str(one) for one in range(people)]
    )
    names = [f"c{i}" for i in range(classes)]
    tracemalloc.start()
    try:
        found = annotators(given, said, np.ones(people), names)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found["agreement"] == 1).all()
    # One number for each annotator and class is 160 MB.
    assert peak < 40e6
