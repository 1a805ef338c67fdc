"""Lambda in closed form, against the generators, set by set."""

import itertools

import numpy as np
import pytest

from alim_keras.ops import instance_lambda

CLASSES = 4


def flip_probabilities(label, q, eta):
    """P(S | y) of the flip protocol, by going through all that can happen."""
    found = {}
    others = [c for c in range(CLASSES) if c != label]
    for drawn in itertools.product([0, 1], repeat=CLASSES - 1):
        p = np.prod([q if d else 1 - q for d in drawn])
        clean = {label, *(c for c, d in zip(others, drawn) if d)}
        free = [c for c in range(CLASSES) if c not in clean]
        key = frozenset(clean)
        # A full set is left clean.
        found[key] = found.get(key, 0) + p * (1 - eta if free else 1)
        for c in free:
            key = frozenset(clean - {label} | {c})
            found[key] = found.get(key, 0) + p * eta / len(free)
    return found


def pico_probabilities(label, q, eta):
    """P(S | y) of the pico protocol; empty sets are drawn again."""
    found = {}
    for drawn in itertools.product([0, 1], repeat=CLASSES):
        p = 1.0
        for c, d in enumerate(drawn):
            rate = 1 - eta if c == label else q
            p *= rate if d else 1 - rate
        if any(drawn):
            found[frozenset(np.flatnonzero(drawn).tolist())] = p
    total = sum(found.values())
    return {key: p / total for key, p in found.items()}


@pytest.mark.parametrize("eta", [0.1, 0.4])
@pytest.mark.parametrize("q", [0.2, 0.5])
@pytest.mark.parametrize(
    ("protocol", "generator"),
    [("flip", flip_probabilities), ("pico", pico_probabilities)],
)
def test_it_is_the_ratio_of_the_likelihoods(protocol, generator, q, eta):
    tables = [generator(label, q, eta) for label in range(CLASSES)]
    for size in range(1, CLASSES):
        for members in itertools.combinations(range(CLASSES), size):
            key = frozenset(members)
            inside = tables[members[0]][key]
            (outside, *_) = (c for c in range(CLASSES) if c not in key)
            ratio = tables[outside][key] / inside
            lam = instance_lambda(eta, size, CLASSES, protocol, q)
            assert lam == pytest.approx(ratio, rel=1e-9)


def test_by_hand():
    # eta 0.2: odds 1/4. s / (C - s): 1/3, 2/2, 3/1.
    lam = instance_lambda(0.2, [1, 2, 3, 4], 4)
    np.testing.assert_allclose(lam, [1 / 12, 1 / 4, 3 / 4, 0.0])
    # One noise rate for each example: odds 1 and 1/3.
    lam = instance_lambda([0.5, 0.25], [1, 1], 4, "size")
    np.testing.assert_allclose(lam, [1 / 3, 1 / 9])
    # 1/4 * .3 / .7, but a full set cannot be wrong.
    lam = instance_lambda(0.2, [1, 4], 4, "pico", ambiguity=0.3)
    np.testing.assert_allclose(lam, [0.3 / 2.8, 0.0])


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="protocol='swap'"):
        instance_lambda(0.1, [1], 4, "swap")
    with pytest.raises(ValueError, match="ambiguity=None"):
        instance_lambda(0.1, [1], 4, "pico")
