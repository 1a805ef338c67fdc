"""Equation 6: the candidate ratio and its quantile."""

import hypothesis
import keras
import numpy as np
import pytest
import references
import tiny
from hypothesis import strategies as st

from alim_keras import ops


def numpy(x):
    return keras.ops.convert_to_numpy(x)


def test_candidate_ratio_by_hand():
    p = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]
    s = [[0, 1, 1], [0, 1, 1], [1, 1, 0]]
    # .2 / .7, .5 / .2, .1 / .8.
    np.testing.assert_allclose(
        ops.candidate_ratio(p, s), [2 / 7, 2.5, 0.125], rtol=1e-6
    )


def test_candidate_ratio_equals_the_loop():
    for seed in range(5):
        p, s = tiny.grid(12, 4, seed)
        np.testing.assert_allclose(
            ops.candidate_ratio(p, s),
            references.candidate_ratio(p, s),
            rtol=1e-6,
        )


def test_candidate_ratio_of_full_and_dead_rows():
    p = np.array([[0.5, 0.5], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], "float32")
    s = np.array([[1, 1], [1, 0], [1, 0], [1, 0]], "float32")
    ratio = numpy(ops.candidate_ratio(p, s))
    assert ratio[0] == np.inf
    assert ratio[1] == 1.0  # 0 / 0 is no evidence.
    assert np.isfinite(ratio[2]) and ratio[2] > 1e30
    assert 0.0 <= ratio[3] < 1e-30


@hypothesis.given(row=tiny.rows(), lam=st.floats(0, 1))
@hypothesis.settings(max_examples=40)
def test_candidate_ratio_says_where_the_label_leaves(row, lam):
    p, s = row
    lam = float(np.float32(lam))
    ratio = float(numpy(ops.candidate_ratio(p, s))[0])
    assert not np.isnan(ratio) and ratio >= 0.0
    hypothesis.assume(p.max() > 0 and s.min() == 0 and (s * p).max() > 0)
    hypothesis.assume(abs(ratio - lam) > 1e-5 * lam + 1e-30)
    label = int(np.argmax(ops.pseudo_labels(p, s, lam)))
    assert (s[0, label] == 0.0) == (ratio < lam)


def test_adaptive_lambda_by_hand():
    ratios = [0.4, 0.1, 3.0, 0.2]
    # Sorted .1 .2 .4 3; rank floor(4 eta).
    for eta, expected in [
        (0.24, 0.1),
        (0.25, 0.2),
        (0.5, 0.4),
        (0.74, 0.4),
        (0.75, 1.0),  # 3.0, clamped.
        (1.0, 1.0),
        (0.0, 0.0),
    ]:
        lam = float(ops.adaptive_lambda(ratios, eta))
        assert lam == pytest.approx(expected, rel=1e-6), eta


@pytest.mark.parametrize(
    ("n", "eta"),
    [
        (100_000, 0.53),
        (100_000, 0.65),
        (200_000, 0.59),
        (1_000_000, 0.13),
        (1_281_167, 0.85),
        (3, 0.333),
        # A prime, a CIFAR epoch with and without its last batch.
        (97, 0.29),
        (49_920, 0.57),
        (50_000, 0.57),
        (7, 0.857),
    ],
)
def test_adaptive_lambda_is_the_order_statistic(n, eta):
    # n eta in decimals is whole, or just below the next whole number.
    ratios = (np.arange(n) + 0.5) / n
    expected = references.adaptive_lambda(ratios, eta)
    got = float(ops.adaptive_lambda(ratios, eta))
    assert round(got * n - 0.5, 1) == round(expected * n - 0.5, 1)


@hypothesis.given(
    ratios=st.lists(
        st.one_of(
            st.floats(0, 4, width=32),
            st.just(float("inf")),
            st.just(float("nan")),
        ),
        min_size=1,
        max_size=12,
    ),
    etas=st.tuples(st.integers(0, 100), st.integers(0, 100)),
)
@hypothesis.settings(max_examples=60)
def test_adaptive_lambda_is_a_clamped_monotone_quantile(ratios, etas):
    low, high = sorted(eta / 100 for eta in etas)
    first = float(ops.adaptive_lambda(ratios, low))
    second = float(ops.adaptive_lambda(ratios, high))
    assert 0.0 <= first <= second <= 1.0
    expected = references.adaptive_lambda(ratios, high)
    assert second == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "ratios", [[np.nan] * 3, [np.inf] * 3, [np.inf, np.nan], []]
)
def test_adaptive_lambda_with_nothing_to_go_by_is_0(ratios):
    assert float(ops.adaptive_lambda(np.array(ratios, "float32"), 0.5)) == 0.0
