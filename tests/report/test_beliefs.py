import numpy as np
import pytest

from alim_keras import ops
from alim_keras.data import CandidateSets
from alim_keras.noise_rate import em
from alim_keras.report import beliefs
from alim_keras.report.beliefs import Settler


def planted(count=3000, num_classes=5, noise=0.1, confused=False):
    """Probabilities, sets of one to three, and the truth.

    With `confused` the wrong members of the sets of 0 are 1s, mostly.
    """
    stream = np.random.default_rng(0)
    truth = stream.integers(0, num_classes, count)
    logits = stream.normal(size=(count, num_classes))
    logits[np.arange(count), truth] += 2
    # Bayes's rule for such features: the probabilities are honest.
    logits *= 2
    probabilities = np.exp(logits)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    sets = np.zeros((count, num_classes), bool)
    wrong = stream.random(count) < noise
    for row, label in enumerate(truth):
        weights = np.ones(num_classes)
        if confused and label == 0:
            weights[1] = 20
        weights[label] = 0
        size = stream.integers(1, 4)
        others = stream.choice(
            num_classes, size, replace=False, p=weights / weights.sum()
        )
        sets[row, others if wrong[row] else others[:-1]] = True
        sets[row, label] = not wrong[row]
    return probabilities.astype("float32"), sets, truth


def settler(probabilities, sets, noise_rate=None):
    """Returns the `Settler` of sets, and the belief in all classes."""
    ids = [str(row) for row in range(len(sets))]
    kinds = np.full(len(sets), "folds", object)
    candidates = CandidateSets.from_dense(sets, ids)
    made = Settler(noise_rate, probabilities, candidates, kinds)
    return made, made.belief(np.arange(len(sets)))


def closed_form(probabilities, sets, estimate):
    """Returns P(y | x) (S + lambda (1 - S)), normalised."""
    sizes = sets.sum(axis=1)
    rates = np.array(estimate.details["rate_by_size"])[sizes]
    lam = ops.closed_form_lambda(rates, sizes, sets.shape[1])[:, None]
    expected = probabilities * np.where(sets, 1, lam)
    return expected / expected.sum(axis=1, keepdims=True)


def test_a_given_estimate_is_the_closed_form_of_each_size():
    probabilities, sets, _ = planted(300, confused=True)
    estimate = em(np.log(probabilities), sets)
    made, belief = settler(probabilities, sets, estimate)
    assert (made.temperature, made.popularity) == (1, None)
    expected = closed_form(probabilities, sets, estimate)
    np.testing.assert_allclose(belief, expected, rtol=1e-4, atol=1e-7)


def test_of_many_classes_all_are_equally_popular(monkeypatch):
    monkeypatch.setattr(beliefs, "_MOST_CLASSES", 4)
    probabilities, sets, _ = planted(confused=True)
    estimate = em(np.log(probabilities), sets)
    made, belief = settler(probabilities, sets)
    assert made.popularity is None
    tempered = np.exp(beliefs.tempered(probabilities, made.temperature))
    expected = closed_form(tempered, sets, estimate)
    # The one goes to the best rates straight, the other by steps.
    np.testing.assert_allclose(belief, expected, atol=0.01)
    assert made.value == pytest.approx(estimate.value, abs=1e-3)


def test_the_noise_rate_and_the_temperature_are_learnt():
    probabilities, sets, truth = planted(noise=0.1)
    wrong = ~sets[np.arange(len(sets)), truth]
    made, _ = settler(probabilities, sets)
    assert made.learnt
    assert made.value == pytest.approx(wrong.mean(), abs=0.02)
    assert made.temperature == pytest.approx(1, abs=0.15)
    dull = np.sqrt(probabilities)
    dull /= dull.sum(axis=1, keepdims=True)
    made, _ = settler(dull, sets)
    assert made.temperature == pytest.approx(0.5, abs=0.08)


def test_what_goes_together_is_learnt_and_helps():
    probabilities, sets, truth = planted(confused=True)
    made, belief = settler(probabilities, sets)
    # 1 is in the sets of 0 twice as often as an average class or more.
    assert made.popularity[0, 1] > 2
    assert (made.popularity[0, 2:] < 0.8).all()
    assert np.abs(made.popularity[2, 3:] - 1).max() < 0.25
    np.testing.assert_array_equal(np.diag(made.popularity), 1)
    estimate = em(np.log(probabilities), sets)
    alike = closed_form(probabilities, sets, estimate).argmax(axis=1)
    better = (belief.argmax(axis=1) == truth).mean()
    assert better > (alike == truth).mean() + 0.004


def test_full_sets_change_nothing_and_cannot_be_wrong():
    probabilities, sets, _ = planted(1000)
    plain, _ = settler(probabilities, sets)
    both, belief = settler(
        np.concatenate([probabilities, probabilities]),
        np.concatenate([sets, np.ones_like(sets)]),
    )
    assert both.temperature == plain.temperature
    np.testing.assert_allclose(both.popularity, plain.popularity, rtol=1e-4)
    assert both.value == pytest.approx(plain.value / 2)
    expected = np.exp(beliefs.tempered(probabilities, both.temperature))
    np.testing.assert_allclose(belief[1000:], expected, rtol=1e-5)
