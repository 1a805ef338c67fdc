import itertools

import numpy as np
import pytest

from alim_keras import ops
from alim_keras.noise_rate import em
from alim_keras.report import beliefs
from alim_keras.report.beliefs import SetModel
from alim_keras.report.beliefs import expected_counts
from alim_keras.report.beliefs import log_symmetric


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


def test_all_classes_equally_popular_is_the_closed_form(monkeypatch):
    monkeypatch.setattr(beliefs, "_LARGEST", 5 * 5 * 3 - 1)
    probabilities, sets, _ = planted(300, confused=True)
    model = SetModel(probabilities, sets)
    assert (model.popularity == 1).all()
    sizes = sets.sum(axis=1)
    rates = model.rate_by_size[sizes]
    lam = ops.closed_form_lambda(rates, sizes, 5)[:, None]
    expected = np.exp(
        beliefs.tempered(probabilities, model.temperature)
    ) * np.where(sets, 1, lam)
    expected /= expected.sum(axis=1, keepdims=True)
    found = model.belief(probabilities, sets)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)


def test_the_noise_rate_its_sizes_and_the_temperature_are_learnt():
    probabilities, sets, truth = planted(noise=0.1)
    wrong = ~sets[np.arange(len(sets)), truth]
    model = SetModel(probabilities, sets)
    assert model.value == pytest.approx(wrong.mean(), abs=0.02)
    for size in (1, 2, 3):
        rate = wrong[sets.sum(axis=1) == size].mean()
        assert model.rate_by_size[size] == pytest.approx(rate, abs=0.03)
    assert model.temperature == pytest.approx(1, abs=0.15)
    dull = np.sqrt(probabilities)
    dull /= dull.sum(axis=1, keepdims=True)
    assert SetModel(dull, sets).temperature == pytest.approx(0.5, abs=0.08)


def test_what_goes_together_is_learnt_and_helps():
    probabilities, sets, truth = planted(confused=True)
    model = SetModel(probabilities, sets)
    # 1 is in the sets of 0 twice as often as an average class or more.
    assert model.popularity[0, 1] > 2
    assert (model.popularity[0, 2:] < 0.8).all()
    assert np.abs(model.popularity[2, 3:] - 1).max() < 0.25
    belief = model.belief(probabilities, sets)
    plain = em(np.log(probabilities), sets)
    sizes = sets.sum(axis=1)
    rates = np.array(plain.details["rate_by_size"])[sizes]
    lam = ops.closed_form_lambda(rates, sizes, 5)[:, None]
    alike = (probabilities * np.where(sets, 1, lam)).argmax(axis=1)
    better = (belief.argmax(axis=1) == truth).mean()
    assert better > (alike == truth).mean() + 0.004


def test_full_sets_change_nothing_and_cannot_be_wrong():
    probabilities, sets, _ = planted(1000)
    plain = SetModel(probabilities, sets)
    full = np.ones_like(sets)
    both = SetModel(
        np.concatenate([probabilities, probabilities]),
        np.concatenate([sets, full]),
    )
    assert both.temperature == plain.temperature
    np.testing.assert_allclose(both.popularity, plain.popularity, rtol=1e-4)
    np.testing.assert_allclose(both.rate_by_size, plain.rate_by_size, rtol=1e-4)
    assert both.rate_by_size[5] == 0
    np.testing.assert_allclose(
        both.belief(probabilities, full),
        np.exp(beliefs.tempered(probabilities, both.temperature)),
        rtol=1e-5,
    )


def polynomial(values, degree):
    """Sums the products of all subsets of a size."""
    subsets = itertools.combinations(values, degree)
    return sum(np.prod(chosen) for chosen in subsets)


def test_polynomials_by_enumeration():
    values = np.random.default_rng(0).uniform(0.1, 3, (5, 5))
    found = np.exp(log_symmetric(np.log(values), 5)[-1])
    for row, degree in itertools.product(range(5), repeat=2):
        expected = polynomial(np.delete(values[row], row), degree)
        assert found[row, degree] == pytest.approx(expected)
    # There are but four others.
    assert found[0, 5] == 0


def test_expected_counts_by_enumeration():
    stream = np.random.default_rng(0)
    weights = stream.uniform(0.1, 9, (5, 5))
    draws = stream.uniform(0, 100, (5, 5))
    found = expected_counts(weights, draws)
    np.testing.assert_allclose(np.diag(found), 0, atol=1e-9)
    for row, label in itertools.permutations(range(5), 2):
        others = np.delete(weights[row], row)
        rest = np.delete(weights[row], [row, label])
        expected = sum(
            draws[row, k] * polynomial(rest, k - 1) / polynomial(others, k)
            for k in range(1, 5)
        )
        assert found[row, label] == pytest.approx(expected, rel=1e-10)
