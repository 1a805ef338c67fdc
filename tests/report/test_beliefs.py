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


def equally_popular(model, probabilities, sets):
    """Belief in closed form, of the temperature and the rates of a model."""
    sizes, num_classes = sets.sum(axis=1), sets.shape[1]
    rates = model.rate_by_size[sizes]
    lam = ops.instance_lambda(rates, sizes, num_classes, "size")[:, None]
    scaled = np.exp(model.scaled(probabilities))
    expected = scaled * np.where(sets, 1, lam)
    return expected / expected.sum(axis=1, keepdims=True)


def test_all_classes_equally_popular_is_the_closed_form(monkeypatch):
    monkeypatch.setattr(beliefs, "_LARGEST", 5 * 5 * 3 - 1)
    probabilities, sets, _ = planted(300, confused=True)
    model = SetModel(probabilities, sets)
    assert (model.popularity == 1).all()
    np.testing.assert_allclose(
        model.belief(probabilities, sets),
        equally_popular(model, probabilities, sets),
        rtol=1e-4,
        atol=1e-7,
    )


def test_the_noise_rate_and_its_sizes_are_found():
    probabilities, sets, truth = planted(noise=0.1)
    wrong = ~sets[np.arange(len(sets)), truth]
    model = SetModel(probabilities, sets)
    assert model.value == pytest.approx(wrong.mean(), abs=0.02)
    for size in (1, 2, 3):
        rate = wrong[sets.sum(axis=1) == size].mean()
        assert model.rate_by_size[size] == pytest.approx(rate, abs=0.03)


def test_the_temperature_is_found():
    probabilities, sets, _ = planted()
    found = SetModel(probabilities, sets).temperature
    assert found == pytest.approx(1, abs=0.15)
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
    lam = ops.instance_lambda(rates, sizes, 5, "size")[:, None]
    alike = (probabilities * np.where(sets, 1, lam)).argmax(axis=1)
    better = (belief.argmax(axis=1) == truth).mean()
    assert better > (alike == truth).mean() + 0.004


def drawn_from_the_model(count, num_classes=6, size=4, ratio=20, eta=0.1):
    """Probabilities, sets of one size, and the truth; r is a cycle.

    Sets of class y hold class y + 1 `ratio` times as readily as another.
    """
    stream = np.random.default_rng(0)
    truth = stream.integers(0, num_classes, count)
    logits = stream.normal(size=(count, num_classes))
    logits[np.arange(count), truth] += 1
    probabilities = np.exp(logits)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    sets = np.zeros((count, num_classes), bool)
    for row, label in enumerate(truth):
        weights = np.ones(num_classes)
        weights[(label + 1) % num_classes] = ratio
        others = [j for j in range(num_classes) if j != label]
        wrong = stream.random() < eta
        subsets = list(itertools.combinations(others, size - 1 + wrong))
        products = np.array([weights[list(one)].prod() for one in subsets])
        chosen = stream.choice(len(subsets), p=products / products.sum())
        sets[row, list(subsets[chosen])] = True
        sets[row, label] = not wrong
    return probabilities.astype("float32"), sets, truth


@pytest.mark.parametrize("size, low", [(2, 12), (3, 8), (4, 4.5)])
def test_learnt_popularity_is_nearly_as_good_as_the_true_one(size, low):
    probabilities, sets, truth = drawn_from_the_model(6000, size=size)
    model = SetModel(probabilities, sets)
    found = model.belief(probabilities, sets).argmax(axis=1)
    cycle = np.arange(6)
    following = model.popularity[cycle, (cycle + 1) % 6]
    others = (model.popularity.sum(axis=1) - 1 - following) / 4
    # What stands in nearly every set anyway is drawn to 1 the most.
    assert low < (following / others).mean() < 20
    model.popularity = np.ones((6, 6))
    model.popularity[cycle, (cycle + 1) % 6] = 20
    model._update()
    best = model.belief(probabilities, sets).argmax(axis=1)
    assert (found == truth).mean() > (best == truth).mean() - 0.025


def test_full_sets_change_nothing_and_cannot_be_wrong():
    probabilities, sets, _ = drawn_from_the_model(2000, size=3)
    plain = SetModel(probabilities, sets)
    full = np.ones_like(sets)
    both = SetModel(
        np.concatenate([probabilities, probabilities]),
        np.concatenate([sets, full]),
    )
    assert both.temperature == plain.temperature
    np.testing.assert_allclose(both.popularity, plain.popularity, rtol=1e-4)
    np.testing.assert_allclose(both.rate_by_size, plain.rate_by_size, rtol=1e-4)
    assert both.rate_by_size[6] == 0
    np.testing.assert_allclose(
        both.belief(probabilities, full),
        np.exp(both.scaled(probabilities)),
        rtol=1e-5,
    )


def test_polynomials_by_enumeration():
    values = np.random.default_rng(0).uniform(0.1, 3, (5, 5))
    found = np.exp(log_symmetric(np.log(values), 5))
    for row in range(5):
        others = np.delete(values[row], row)
        for degree in range(5):
            subsets = itertools.combinations(others, degree)
            expected = sum(np.prod(chosen) for chosen in subsets)
            assert found[row, degree] == pytest.approx(expected)
    # There are but four others.
    assert found[0, 5] == 0


def test_expected_counts_by_enumeration():
    stream = np.random.default_rng(0)
    weights = stream.uniform(0.1, 9, (5, 5))
    draws = stream.uniform(0, 100, (5, 5))

    def polynomial(values, degree):
        subsets = itertools.combinations(values, degree)
        return sum(np.prod(chosen) for chosen in subsets)

    found = expected_counts(weights, draws)
    for row, label in itertools.product(range(5), repeat=2):
        if row == label:
            assert found[row, label] == 0
            continue
        others = np.delete(weights[row], row)
        rest = np.delete(weights[row], [row, label])
        expected = sum(
            draws[row, k] * polynomial(rest, k - 1) / polynomial(others, k)
            for k in range(1, 5)
        )
        assert found[row, label] == pytest.approx(expected, rel=1e-10)
