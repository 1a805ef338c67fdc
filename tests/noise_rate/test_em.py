import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import softmax

from alim_keras import noise_rate
from alim_keras.data import simulate_candidates
from alim_keras.errors import DataError
from alim_keras.noise_rate import inside_mass


def certain(right, wrong):
    """Predictions without doubt: class 0 of three; sets of one class."""
    logits = np.tile([1000.0, 0.0, 0.0], (right + wrong, 1))
    return logits, np.eye(3)[[0] * right + [1] * wrong]


def planted(protocol, eta, count=6000, classes=6, sharpness=1.0, q=0.3):
    """Calibrated logits times `sharpness`, and simulated sets."""
    stream = np.random.default_rng(1)
    p = stream.dirichlet(np.full(classes, 0.15), count) + 1e-6
    p /= p.sum(axis=1, keepdims=True)
    labels = (p.cumsum(axis=1) < stream.random((count, 1))).sum(axis=1)
    options = {"ambiguity": q, "noise_level": eta, "protocol": protocol}
    labels = np.minimum(labels, classes - 1)
    found = simulate_candidates(labels, classes, **options)
    return np.log(p) * sharpness, found.dense(), found.provenance


def slow_em(logits, candidates, temperature, shrinkage=20.0, guess=(5.0, 0.2)):
    """E- and M-steps until nothing moves."""
    count, classes = logits.shape
    sizes = candidates.sum(axis=1)
    mass = (softmax(logits / temperature, axis=1) * candidates).sum(axis=1)

    def e_step(rate):
        # P(S | y outside) / P(S | y inside) = (C - 1 over s - 1)
        # / (C - 1 over s) = s / (C - s)
        outside = rate * (1 - mass) * sizes / (classes - sizes)
        return outside / ((1 - rate) * mass + outside)

    common, rates = 0.3, np.full(classes, 0.3)
    for _ in range(3000):
        common = e_step(common).sum() + guess[0] * guess[1]
        common /= count + guess[0]
    many = np.bincount(sizes, minlength=classes)
    for _ in range(3000):
        total = np.bincount(sizes, e_step(rates[sizes]), classes)
        rates = (total + shrinkage * common) / (many + shrinkage)
    return rates[sizes].mean(), {size: rates[size] for size in set(sizes)}


def test_certain_predictions_by_hand():
    found = noise_rate.em(*certain(30, 10))
    # The common rate: 10 of 40 wrong, with 5 examples of 0.2 added:
    # (10 + 1) / 45 = 0.24444. The only size, with 20 examples of it added:
    # (10 + 4.88889) / 60 = 0.248148.
    assert found.value == pytest.approx(0.248148, abs=1e-5)
    assert found.details["rate_by_size"][1] == pytest.approx(0.248148, abs=1e-5)
    # Sizes that do not occur have the common rate, full sets none.
    assert found.details["rate_by_size"][2] == pytest.approx(0.244444, abs=1e-5)
    assert found.details["rate_by_size"][3] == 0.0
    assert found.method == "em"


def test_the_interval_is_the_profile_likelihoods():
    found = noise_rate.em(*certain(30, 10))

    def drop(rate):
        def fit(r):
            return 10 * np.log(r) + 30 * np.log(1 - r)

        return fit(0.25) - fit(rate) - 1.9207

    assert found.low == pytest.approx(brentq(drop, 0.01, 0.25), abs=2e-3)
    assert found.high == pytest.approx(brentq(drop, 0.25, 0.9), abs=2e-3)


def test_equals_a_slow_loop():
    logits, candidates, _ = planted("flip", 0.2, count=60, classes=4)
    found = noise_rate.em(logits, candidates)
    usable = ~candidates.all(axis=1)
    value, rates = slow_em(
        logits[usable], candidates[usable], found.details["temperature"]
    )
    assert 0.05 < value < 0.5
    assert found.value == pytest.approx(value * usable.mean(), abs=1e-5)
    for size, rate in rates.items():
        by_size = found.details["rate_by_size"]
        assert by_size[size] == pytest.approx(rate, abs=1e-5)


@pytest.mark.parametrize("protocol", ["flip", "pico"])
@pytest.mark.parametrize("eta", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("sharpness", [0.5, 3.0])
def test_finds_what_was_planted_under_a_wrong_temperature(
    protocol, eta, sharpness
):
    logits, sets, made = planted(protocol, eta, sharpness=sharpness)
    found = noise_rate.em(logits, sets)
    assert abs(found.value - made["realised_noise"]) < 0.015
    assert found.details["temperature"] == pytest.approx(sharpness, rel=0.2)
    assert found.low - 0.005 < made["realised_noise"] < found.high + 0.005
    assert found.high - found.low < 0.06


def test_each_size_has_a_rate_of_its_own():
    logits, sets, _ = planted("pico", 0.3)
    rates = noise_rate.em(logits, sets).details["rate_by_size"]
    # pico: odds of size s = eta / (1 - eta) q / (1 - q) (C - s) / s
    for size in (1, 2, 3):
        odds = 0.3 / 0.7 * 0.3 / 0.7 * (6 - size) / size
        assert rates[size] == pytest.approx(odds / (1 + odds), abs=0.05)


def test_a_network_that_knows_nothing_leaves_the_interval_open():
    _, candidates = certain(30, 10)
    found = noise_rate.em(np.zeros((40, 3)), candidates)
    assert (found.low, found.high) == (0.0, 1.0)
    assert noise_rate.cautious(np.zeros((40, 3)), candidates).value == 0.0


def test_full_sets_cannot_be_wrong():
    logits, candidates = certain(30, 10)
    both = np.concatenate([candidates, np.ones((40, 3))])
    found = noise_rate.em(np.tile(logits, (2, 1)), both)
    alone = noise_rate.em(logits, candidates)
    assert found.value == pytest.approx(alone.value / 2)
    assert found.high == pytest.approx(alone.high / 2)
    found = noise_rate.em(logits, np.ones((40, 3)))
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)
    assert "all classes" in found.reason


def test_mass_by_hand():
    logits = np.log([[0.4, 0.2, 0.3, 0.1]])
    mass = inside_mass(logits, [[1, 1, 0, 0]])
    assert mass == pytest.approx([0.6])
    # T = 2: roots, (sqrt .4 + sqrt .2) / sum of all four
    roots = np.sqrt([0.4, 0.2, 0.3, 0.1])
    mass = inside_mass(logits, [[1, 1, 0, 0]], 2.0)
    assert mass == pytest.approx([(roots[0] + roots[1]) / roots.sum()])


@pytest.mark.parametrize(
    "logits, candidates, words",
    [
        (np.zeros((2, 3)), np.ones((3, 3)), "(2, 3)"),
        (np.zeros((0, 3)), np.zeros((0, 3)), "(0, 3)"),
        (np.full((1, 3), np.nan), np.ones((1, 3)), "3 that are not"),
        (np.zeros((2, 3)), np.eye(3)[[0, 0]] * [[1], [0]], "first row 1"),
    ],
)
def test_unsound_arrays_are_named(logits, candidates, words):
    with pytest.raises(DataError) as error:
        noise_rate.em(logits, candidates)
    assert words in str(error.value)
