import numpy as np
import pytest

from alim_keras import noise_rate
from alim_keras.data import CandidateSets
from alim_keras.data.annotators import VoteArrays
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.noise_rate import wilson


def answers(right, wrong, classes=4, sure=6.0):
    """Logits of class 0, `sure` of it; sets {0}, then sets {1}."""
    logits = np.zeros((right + wrong, classes))
    logits[:, 0] = np.linspace(sure / 2, sure, right + wrong)
    sets = np.zeros_like(logits, bool)
    sets[:right, 0] = sets[right:, 1] = True
    return logits, sets


def test_a_narrow_interval_keeps_the_estimate():
    # The surest 8,000 of 10,000 hold the 100 wrong sets.
    both = zip(answers(9000, 100), answers(900, 0, sure=1.0))
    logits, sets = (np.concatenate(pair) for pair in both)
    plain = noise_rate.em(logits, sets)
    found = noise_rate.cautious(logits, sets)
    assert found.value == plain.value and found.low == plain.low
    assert found.high == max(plain.high, wilson(100, 8000)[1])
    assert found.reason == plain.reason and found.method == "em"
    assert found.details["missed"] == pytest.approx(0.01)


def test_labels_that_resemble_the_image_leave_the_lower_end():
    """The network says 0.7 and 0.3, and so do the sets, in the same places."""
    stream = np.random.default_rng(0)
    truth = stream.integers(0, 4, 3000)
    logits = np.full((3000, 4), -9.0)
    logits[np.arange(3000), truth] = np.log(0.7)
    logits[np.arange(3000), truth ^ 1] = np.log(0.3)
    wrong = stream.random(3000) < 0.3
    sets = np.eye(4)[np.where(wrong, truth ^ 1, truth)]
    assert noise_rate.em(logits, sets).high < 0.02
    found = noise_rate.cautious(logits, sets)
    assert found.low <= found.value == found.low < 0.01
    assert found.low < wrong.mean() < found.high < 0.35
    assert "50 labels" in found.reason and "resemble" in found.reason
    rates = np.array(found.details["rate_by_size"])
    assert rates.shape == (5,) and (rates < 0.01).all()


def test_the_surest_are_counted_class_by_class():
    # Class 0: 10 sure answers, the least sure 2 miss their sets. Class 1: 10
    # less sure ones, all in their sets. Of the surest 8 of each, none misses.
    logits = np.zeros((20, 3))
    logits[:10, 0] = np.linspace(9, 8, 10)
    logits[10:, 1] = np.linspace(3, 2, 10)
    sets = np.eye(3)[[0] * 8 + [2] * 2 + [1] * 10]
    found = noise_rate.cautious(logits, sets)
    plain = noise_rate.em(logits, sets)
    assert found.high == max(plain.high, wilson(0, 16)[1])
    assert found.details["missed"] == pytest.approx(0.1)


def test_answers_at_chance_leave_nothing():
    stream = np.random.default_rng(0)
    logits = stream.normal(size=(600, 4)) * 4
    sets = np.eye(4)[stream.integers(0, 4, 600)]
    found = noise_rate.cautious(logits, sets)
    # 0.75 of such sets are missed by chance.
    assert found.details["missed"] == pytest.approx(0.75, abs=0.05)
    assert (found.value, found.low) == (0.0, 0.0) and found.high > 0.7


def test_full_sets_count_as_right():
    logits, sets = answers(300, 100)
    alone = noise_rate.cautious(logits, sets)
    both = noise_rate.cautious(
        np.tile(logits, (2, 1)), np.concatenate([sets, np.ones_like(sets)])
    )
    assert both.high == pytest.approx(alone.high / 2)
    assert noise_rate.cautious(logits, np.ones_like(sets)).high == 0.0


def test_votes_of_annotators_who_err_apart():
    stream = np.random.default_rng(1)
    rows = np.arange(2000)
    truth = stream.integers(0, 5, 2000)
    wrong = stream.random((2000, 3)) < [0.1, 0.2, 0.3]
    votes = truth[:, None] + wrong * stream.integers(1, 5, wrong.shape)
    votes %= 5
    people = np.tile(np.arange(3), 2000)
    names = np.array(["a", "b", "c"], object)
    given = VoteArrays(np.repeat(rows, 3), people, votes.ravel(), names)
    dense = np.eye(5, dtype=bool)[votes].any(axis=1)
    sets = CandidateSets.from_dense(dense, rows.astype(str))
    found = noise_rate.from_votes(given, sets)
    # 0.1 x 0.2 x 0.3
    assert found.value == pytest.approx(0.006, abs=0.004)
    assert found.low <= 1 - dense[rows, truth].mean() <= found.high
    alone = [row.count(vote) == 1 for row in votes.tolist() for vote in row]
    assert found.details == {"examples": 2000, "alone": np.mean(alone)}
    assert found.high == np.mean(alone) and found.method == "votes"


def test_wilson_by_hand():
    # z^2 = 3.84146; (.25 + 3.84146 / 40) / (1 + 3.84146 / 20) = 0.290289;
    # z sqrt(.25 * .75 / 20 + 3.84146 / 1600) / 1.192073 = 0.178428
    low, high = wilson(5, 20)
    assert low == pytest.approx(0.290289 - 0.178428, abs=1e-4)
    assert high == pytest.approx(0.290289 + 0.178428, abs=1e-4)
    # None of 10: 0 to z^2 / (n + z^2) = 3.84146 / 13.84146
    assert wilson(0, 10) == (0.0, pytest.approx(0.277533, abs=1e-5))
    assert wilson(10, 10) == (pytest.approx(1 - 0.277533, abs=1e-5), 1.0)


def test_counts_labels_outside_their_sets():
    candidates = np.tile([[1, 1, 0]], (20, 1))
    labels = [0] * 9 + [1] * 6 + [2] * 5
    found = noise_rate.annotated(labels, candidates)
    assert found.value == 0.25
    assert (found.low, found.high) == wilson(5, 20)
    assert found.details["wrong"] == 5 and found.details["labels"] == 20
    assert "5 of 20" in found.reason and "60 more would" in found.reason


def test_no_labels_are_refused():
    with pytest.raises(DataError, match="0 labels"):
        noise_rate.annotated([], np.zeros((0, 3)))


@pytest.mark.parametrize("folds", [2, 3, 7])
def test_every_row_is_predicted_once_without_having_been_trained_on(folds):
    calls = []

    def fit_predict(train_rows, predict_rows):
        calls.append(predict_rows)
        assert (np.diff(train_rows) > 0).all()
        assert sorted([*train_rows, *predict_rows]) == list(range(7))
        assert 7 // folds <= len(predict_rows) <= -(-7 // folds)
        # A prediction that shows whose it is, and by which call.
        return [(row, len(calls)) for row in predict_rows]

    logits = noise_rate.out_of_fold(fit_predict, 7, folds, seed=1)
    assert logits[:, 0].tolist() == list(range(7))
    assert len(calls) == folds
    for number, rows in enumerate(calls, 1):
        assert (logits[rows, 1] == number).all()


def test_groups_stay_in_one_fold():
    groups, parts = np.arange(7) // 2, []

    def fit_predict(train_rows, predict_rows):
        parts.append(set(groups[predict_rows]))
        return np.zeros(len(predict_rows))

    noise_rate.out_of_fold(fit_predict, 7, 2, groups=groups)
    assert not parts[0] & parts[1]


@pytest.mark.parametrize("folds", [1, 5])
def test_impossible_folds_are_refused(folds):
    with pytest.raises(ConfigError, match=f"folds={folds}"):
        noise_rate.out_of_fold(None, 4, folds)
