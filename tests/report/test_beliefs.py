import numpy as np
import pytest
from sample_report import planted

from alim_keras import ops
from alim_keras.data import CandidateSets
from alim_keras.noise_rate import em
from alim_keras.report import beliefs
from alim_keras.report.beliefs import Settler


def confused():
    """As `planted`, but the other member of a set of 0 is mostly a 1."""
    probabilities, sets, truth = planted(10_000, signal=1.5)
    rows = np.flatnonzero(truth == 0)
    rows = rows[np.arange(len(rows)) % 5 > 0]
    has_other = sets[rows, 1:].any(axis=1)
    sets[rows, 1:] = False
    sets[rows, 1] = has_other
    return probabilities, sets, truth


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
    probabilities, sets, _ = confused()
    estimate = em(np.log(probabilities), sets)
    made, belief = settler(probabilities, sets, estimate)
    assert (made.temperature, made.popularity) == (1, None)
    expected = closed_form(probabilities, sets, estimate)
    np.testing.assert_allclose(belief, expected, rtol=1e-4, atol=1e-7)


def test_of_many_classes_all_are_equally_popular(monkeypatch):
    monkeypatch.setattr(beliefs, "_MOST_CLASSES", 4)
    probabilities, sets, _ = confused()
    estimate = em(np.log(probabilities), sets)
    made, belief = settler(probabilities, sets)
    assert made.popularity is None
    tempered = np.exp(beliefs.tempered(probabilities, made.temperature))
    expected = closed_form(tempered, sets, estimate)
    # The one goes to the best rates straight, the other by steps.
    np.testing.assert_allclose(belief, expected, atol=0.01)
    assert made.value == pytest.approx(estimate.value, abs=1e-3)


def test_the_noise_rate_and_the_temperature_are_learnt():
    probabilities, sets, truth = planted(3000, signal=1.5)
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
    probabilities, sets, truth = confused()
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
    probabilities, sets, _ = planted(1000, signal=1.5)
    plain, _ = settler(probabilities, sets)
    both, belief = settler(
        np.concatenate([probabilities, probabilities]),
        np.concatenate([sets, np.ones_like(sets)]),
    )
    assert both.temperature == pytest.approx(plain.temperature, rel=1e-6)
    np.testing.assert_allclose(both.popularity, plain.popularity, rtol=1e-4)
    assert both.value == pytest.approx(plain.value / 2)
    expected = np.exp(beliefs.tempered(probabilities, both.temperature))
    np.testing.assert_allclose(belief[1000:], expected, rtol=1e-5)


def test_networks_that_answer_at_random_accuse_no_set():
    rng = np.random.default_rng(0)
    _, sets, _ = planted(300, signal=1.5)
    probabilities = rng.dirichlet(np.full(sets.shape[1], 20.0), 300)
    made, belief = settler(probabilities, sets)
    assert made.learnt and made.value == 0
    assert not belief[~np.asarray(sets, bool)].any()
