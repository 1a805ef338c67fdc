import numpy as np
import pytest

from alim_keras.report.truth import hits
from alim_keras.report.truth import hits_at
from alim_keras.report.truth import truth


def test_precision_and_recall_by_hand():
    # Two of three flags are right, two of four are found.
    flagged = np.array([1, 1, 1, 0, 0, 0])
    wrong = np.array([1, 1, 0, 1, 1, 0])
    assert hits(flagged, wrong) == (pytest.approx(2 / 3), 0.5)
    assert np.isnan(hits(flagged * 0, wrong)[0])
    assert np.isnan(hits(flagged, wrong * 0)[1])


def test_budgets_round_up_and_ties_go_to_the_earlier():
    score = np.array([0.5, 0.5, 0.9, 0.1])
    wrong = np.array([1, 0, 1, 0])
    assert hits_at(score, wrong, [0.25, 0.3, 1.0]) == [
        (1, 1.0, 0.5),
        (2, 1.0, 1.0),
        (4, 0.5, 1.0),
    ]
    # 7 % of 100 are 7, although 0.07 * 100 is a little more.
    assert hits_at(np.zeros(100), np.ones(100), [0.07])[0][0] == 7


def test_the_frame():
    settled = {
        "label": np.array([0, 1, 1, 1]),
        "outside": np.array([False, True, True, False]),
    }
    found = truth(
        np.array([0, 1, 0, 0]),
        settled,
        np.array([False, True, False, False]),
        {"suspicion": np.array([0.1, 0.9, 0.8, 0.2])},
    )
    assert found["what"].tolist()[:3] == [
        "settled label right",
        "outside its set",
        "suspicion, top 1 %",
    ]
    # Two of four labels; one of two flags; the first of the ranking.
    assert found["items"].tolist()[:3] == [4, 2, 1]
    assert found["precision"].tolist()[:3] == [0.5, 0.5, 1.0]
    assert np.isnan(found["recall"][0])
    assert found["recall"].tolist()[1:3] == [1.0, 1.0]
