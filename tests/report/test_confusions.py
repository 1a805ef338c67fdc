import numpy as np
import pytest

from alim_keras.report.confusions import Confusions

NAMES = ["ant", "bee", "cat", "dog"]
# Two sets of one and two of two; the second and the last are wrong.
SETS = np.array([[1, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]], bool)
LABEL = np.array([0, 1, 1, 2])


def counted(blocks=((0, 1, 2, 3),)):
    found = Confusions(4)
    outside = ~SETS[np.arange(4), LABEL]
    for part in map(list, blocks):
        found.add(SETS[part], LABEL[part], outside[part])
    return found


def test_the_matrix_splits_each_set_evenly():
    # Row ant: 1 as ant; 1 + 1/2 as bee; 1/2 as cat. Row bee: 1/2 and 1/2.
    expected = np.zeros((4, 4))
    expected[0, :3] = 1.0, 1.5, 0.5
    expected[1, 1:3] = 0.5, 0.5
    np.testing.assert_array_equal(counted().matrix, expected)
    np.testing.assert_array_equal(counted([(0, 2), (1, 3)]).matrix, expected)


def test_confusions_are_of_sets_that_miss_the_settled_class():
    frame = counted().frame(NAMES)
    # ant has a mass of 3, bee of 1.
    assert frame.values.tolist() == [
        ["ant", "bee", 1.0, pytest.approx(1 / 3)],
        ["ant", "cat", 0.5, pytest.approx(0.5 / 3)],
        ["bee", "cat", 0.5, 0.5],
    ]


def test_a_row_per_class():
    frame = counted().classes(NAMES).set_index("class")
    assert frame["given"][NAMES].tolist() == [4, 2, 0, 0]
    assert frame["settled"][NAMES].tolist() == [1, 2, 1, 0]
    assert frame["outside"][NAMES].tolist() == [0, 1, 1, 0]
    assert frame["given_wrong"][NAMES].tolist() == [2, 1, 0, 0]
    # Nothing of nothing is not known.
    np.testing.assert_array_equal(
        frame["outside_share"][NAMES], [0, 0.5, 1, np.nan]
    )
    np.testing.assert_array_equal(
        frame["given_wrong_share"][NAMES], [0.5, 0.5, np.nan, np.nan]
    )
    np.testing.assert_array_equal(
        frame["mean_set_size"][NAMES], [1.5, 2, np.nan, np.nan]
    )
    assert frame["confusions"]["ant"] == "ant -> bee 1, ant -> cat 0.5"
    assert frame["confusions"]["cat"] == "ant -> cat 0.5, bee -> cat 0.5"
    assert frame["confusions"]["dog"] == ""
    # One wrong set of one is no proof: cat is not ahead of ant and bee.
    assert frame.index.tolist()[-1] == "dog"


@pytest.mark.parametrize("into", ["out of class 3", "into class 3"])
def test_a_noisy_class_is_first(into):
    stream = np.random.default_rng(0)
    truth = stream.integers(0, 10, 5000)
    given = truth.copy()
    hit = (truth == 3) & (stream.random(5000) < 0.2)
    other = (3 + stream.integers(1, 10, 5000)) % 10
    if into == "out of class 3":
        given[hit] = other[hit]
        column = "outside_share"
    else:
        # What is given as class 3 is another class in a fifth of the cases.
        truth[hit] = other[hit]
        column = "given_wrong_share"
    found = Confusions(10)
    found.add(np.eye(10, dtype=bool)[given], truth, given != truth)
    first = found.classes([f"c{i}" for i in range(10)]).iloc[0]
    assert first["class"] == "c3"
    assert abs(first[column] - 0.2) < 0.08
    assert "c3" in first["confusions"]
