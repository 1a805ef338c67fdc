import itertools

import numpy as np
import pytest

from alim_keras.instance_lambda import instance_lambda
from alim_keras.noise_rate import em
from alim_keras.report import set_model
from alim_keras.report.set_model import SetModel


def planted(count=3000, num_classes=5, noise=0.1, seed=0, confused=False):
    """Probabilities, sets of one to three, and the truth.

    With `confused` the wrong members of the sets of 0 are 1s, mostly.
    """
    stream = np.random.default_rng(seed)
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


def test_all_classes_equally_popular_is_the_closed_form():
    probabilities, sets, _ = planted(200)
    model = SetModel(probabilities, sets)
    model.popularity = np.ones((5, 5))
    model.temperature = 1.0
    model._update()
    sizes = sets.sum(axis=1)
    lam = instance_lambda(model.rate_by_size[sizes], sizes, 5, "size")
    np.testing.assert_allclose(model.lam(sets), lam)
    expected = probabilities * np.where(sets, 1, lam[:, None])
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        model.belief(probabilities, sets), expected, rtol=1e-4, atol=1e-7
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
    assert SetModel(probabilities, sets).temperature == pytest.approx(
        1, abs=0.15
    )
    dull = np.sqrt(probabilities)
    dull /= dull.sum(axis=1, keepdims=True)
    model = SetModel(dull, sets)
    assert model.temperature == pytest.approx(0.5, abs=0.08)


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
    lam = instance_lambda(rates, sizes, 5, "size")[:, None]
    alike = (probabilities * np.where(sets, 1, lam)).argmax(axis=1)
    better = (belief.argmax(axis=1) == truth).mean()
    assert better > (alike == truth).mean() + 0.004


def drawn_from_the_model(count=6000, num_classes=6, size=4, ratio=20, eta=0.1):
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


def popularity_of_the_next(model):
    """r of the next class, over that of the others, mean of all classes."""
    places = np.arange(len(model.popularity))
    following = model.popularity[places, (places + 1) % len(places)]
    others = model.popularity.sum(axis=1) - 1 - following
    return (following / (others / (len(places) - 2))).mean()


@pytest.mark.parametrize(
    ("size", "ratio", "low"), [(2, 20, 12), (3, 20, 8), (4, 20, 4.5)]
)
def test_popularity_is_recovered(size, ratio, low):
    # What stands in nearly every set anyway is drawn to 1 the most.
    probabilities, sets, truth = drawn_from_the_model(size=size, ratio=ratio)
    model = SetModel(probabilities, sets)
    assert low < popularity_of_the_next(model) < ratio
    found = model.belief(probabilities, sets).argmax(axis=1)
    cycle = np.arange(6)
    model.popularity = np.ones((6, 6))
    model.popularity[cycle, (cycle + 1) % 6] = ratio
    model._update()
    best = model.belief(probabilities, sets).argmax(axis=1)
    assert (found == truth).mean() > (best == truth).mean() - 0.025


def test_full_sets_change_nothing():
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
    np.testing.assert_allclose(
        both.belief(probabilities, full),
        np.exp(both.scaled(probabilities)),
        rtol=1e-5,
    )


def test_one_full_set_of_many_classes_is_no_large_set(monkeypatch):
    monkeypatch.setattr(set_model, "_LARGEST", 6 * 6 * 3)
    probabilities, sets, _ = drawn_from_the_model(2000, size=3)
    sets[0] = True
    assert popularity_of_the_next(SetModel(probabilities, sets)) > 5


def test_sets_larger_than_those_learnt_from_are_equally_likely():
    probabilities, sets, _ = drawn_from_the_model(2000, size=2)
    model = SetModel(probabilities, sets)
    larger = np.zeros((1, 6), bool)
    larger[0, :4] = True
    scaled = np.exp(model.scaled(probabilities[:1]))
    expected = scaled * np.where(larger, 1, model.lam(larger)[:, None])
    expected /= expected.sum()
    np.testing.assert_allclose(
        model.belief(probabilities[:1], larger), expected, rtol=1e-4
    )


def test_full_sets_cannot_be_wrong():
    probabilities, sets, _ = planted(300)
    sets[:50] = True
    model = SetModel(probabilities, sets)
    assert model.rate_by_size[5] == 0
    belief = model.belief(probabilities, sets)
    np.testing.assert_allclose(belief.sum(axis=1), 1, rtol=1e-5)
    logs = np.log(probabilities[:50]) / model.temperature
    assert (belief[:50].argmax(axis=1) == logs.argmax(axis=1)).all()


def test_many_large_sets_fall_back_to_equal_popularity(monkeypatch):
    monkeypatch.setattr(set_model, "_LARGEST", 5 * 5 * 3 - 1)
    probabilities, sets, _ = planted(300, confused=True)
    assert (SetModel(probabilities, sets).popularity == 1).all()


def test_a_network_that_knows_nothing_flags_nothing():
    _, sets, _ = planted(2000)
    nothing = np.full(sets.shape, 0.2, "float32")
    belief = SetModel(nothing, sets).belief(nothing, sets)
    suspicion = np.where(sets, 0, belief).sum(axis=1)
    assert suspicion.max() < 0.5
