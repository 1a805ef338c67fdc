import itertools

import numpy as np
import pytest

from alim_keras.report import symmetric
from alim_keras.report.symmetric import expected_counts
from alim_keras.report.symmetric import log_symmetric


def polynomial(values, degree):
    """The sum of the products of all subsets, one by one."""
    subsets = itertools.combinations(values, degree)
    return sum(np.prod(chosen) for chosen in subsets)


def test_polynomials_by_enumeration():
    values = np.random.default_rng(0).uniform(0.1, 3, (5, 5))
    found = np.exp(log_symmetric(np.log(values), 4))
    for row in range(5):
        others = np.delete(values[row], row)
        for degree in range(5):
            expected = polynomial(others, degree)
            assert found[row, degree] == pytest.approx(expected)
    # There are but four others.
    assert np.exp(log_symmetric(np.log(values), 5))[0, 5] == 0


@pytest.mark.parametrize("block", [1, 1 << 22])
def test_expected_counts_by_enumeration(block, monkeypatch):
    monkeypatch.setattr(symmetric, "_BLOCK", block)
    stream = np.random.default_rng(0)
    weights = stream.uniform(0.1, 9, (5, 5))
    draws = stream.uniform(0, 100, (5, 5))
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


def test_repeated_steps_find_the_weights():
    """The counts that weights lead one to expect lead back to the weights."""
    weights = np.random.default_rng(0).uniform(0.2, 5, (6, 6))
    draws = np.tile([0.0, 3.0, 10.0, 7.0], (6, 1))
    counts = weights * expected_counts(weights, draws)
    # Every draw of k classes counts k times.
    np.testing.assert_allclose(counts.sum(axis=1), 3 + 2 * 10 + 3 * 7)
    found = np.ones((6, 6))
    for _ in range(500):
        found = counts / np.maximum(expected_counts(found, draws), 1e-30)
    np.fill_diagonal(weights, 0)
    weights /= weights.sum(axis=1, keepdims=True)
    found /= found.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, weights, atol=1e-6)


def test_many_classes_of_very_different_weights():
    stream = np.random.default_rng(0)
    weights = np.exp(3 * stream.normal(size=(200, 200)))
    draws = np.full((200, 100), 5.0)
    draws[:, 0] = 0
    counts = weights * expected_counts(weights, draws)
    expected = 5.0 * np.arange(100).sum()
    np.testing.assert_allclose(counts.sum(axis=1), expected, rtol=1e-9)
