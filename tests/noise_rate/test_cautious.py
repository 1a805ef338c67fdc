import numpy as np
import pytest

from alim_keras import noise_rate
from alim_keras.data import CandidateSets
from alim_keras.data.annotators import VoteArrays
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
    logits, sets = answers(9000, 100)
    logits = np.concatenate([logits, answers(900, 0, sure=1.0)[0]])
    sets = np.concatenate([sets, answers(900, 0)[1]])
    plain, found = (
        noise_rate.em(logits, sets),
        noise_rate.cautious(logits, sets),
    )
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
    truth = stream.integers(0, 5, 2000)
    votes = np.tile(truth[:, None], 3)
    wrong = stream.random(votes.shape) < [0.1, 0.2, 0.3]
    votes = np.where(
        wrong, (votes + stream.integers(1, 5, votes.shape)) % 5, votes
    )
    given = VoteArrays(
        np.repeat(np.arange(2000), 3),
        np.tile(np.arange(3), 2000),
        votes.ravel(),
        np.array(["a", "b", "c"], object),
    )
    dense = np.zeros((2000, 5), bool)
    dense[np.repeat(np.arange(2000), 3), votes.ravel()] = True
    sets = CandidateSets.from_dense(dense, [str(n) for n in range(2000)])
    found = noise_rate.from_votes(given, sets)
    # 0.1 x 0.2 x 0.3
    assert found.value == pytest.approx(0.006, abs=0.004)
    truly = 1 - dense[np.arange(2000), truth].mean()
    assert found.low <= truly <= found.high
    alone = [
        votes[n].tolist().count(vote) == 1
        for n in range(2000)
        for vote in votes[n]
    ]
    assert found.details == {"examples": 2000, "alone": np.mean(alone)}
    assert found.high == np.mean(alone) and found.method == "votes"
