"""Equations 1 to 8, prototypes, XLA."""

import hypothesis
import keras
import numpy as np
import pytest
import references
import tiny
from compiling import gradient
from hypothesis import strategies as st

from alim_keras import backend
from alim_keras import ops

FACTORS = (0.05, 0.1, 0.5, 1.0, 2.0)


def numpy(x):
    return keras.ops.convert_to_numpy(x)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16"])
def test_rows_by_hand(dtype):
    # S = 1 keeps 1; S = 0 becomes lambda, one for all or one for each row.
    s = np.array([[1, 0, 1], [0, 1, 0]], dtype)
    w = ops.candidate_weights(s, 0.25)
    assert keras.backend.standardize_dtype(w.dtype) == "float32"
    np.testing.assert_array_equal(w, [[1, 0.25, 1], [0.25, 1, 0.25]])
    w = ops.candidate_weights(s, [[0.5], [0.125]])
    np.testing.assert_array_equal(w, [[1, 0.5, 1], [0.125, 1, 0.125]])
    uniform = ops.uniform_over_candidates(s)
    np.testing.assert_array_equal(uniform, [[0.5, 0, 0.5], [0, 1, 0]])
    # Equal largest entries share the 1: no class is preferred.
    np.testing.assert_array_equal(ops.onehot(s), uniform)
    np.testing.assert_allclose(ops.onehot(np.zeros((1, 3))), 1 / 3, rtol=1e-6)


# Eq. 4 and Eq. 5.


def test_scale_by_hand():
    for z, factor, expected in [
        # K = 0.5 squares: .1, .3 -> .01, .09; also if it is a variable.
        ([0.1, 0.3], 0.5, [0.1, 0.9]),
        ([0.1, 0.3], keras.Variable(0.5), [0.1, 0.9]),
        # K = 2 takes the root: .04, .16 -> .2, .4.
        ([0.04, 0.16], 2.0, [1 / 3, 2 / 3]),
        # K = 1 only normalises: .1 / .4, .3 / .4.
        ([0.1, 0.3], 1.0, [0.25, 0.75]),
        # However large K is, 0^(1/K) is 0. A row of zeros becomes uniform.
        ([0.0, 0.5, 0.5], 100.0, [0, 0.5, 0.5]),
        ([0.0, 0.0, 0.0], 100.0, [1 / 3, 1 / 3, 1 / 3]),
    ]:
        np.testing.assert_allclose(ops.scale([z], factor), [expected], 1e-6)


@pytest.mark.parametrize("factor", FACTORS)
def test_scale_does_not_underflow(factor):
    # K1-K2 of the case log: z^(1/K) itself is 0 in float32.
    rows = [[1e-5, 2e-5, 1e-4], [0, 0, 0], [0, 1e-6, 0], [1, 0, 1e-7]]
    tiny_rows = [[1e-30, 3e-30, 2e-30], [1e-30, 1.0, 0.5], [2e-30, 0.0, 1e-28]]
    for z, dtype, atol in [
        (rows, "float32", 2e-5),
        (rows, "float16", 2e-5),
        (tiny_rows, "float32", 5e-4),
    ]:
        z = np.array(z, dtype)
        out = numpy(ops.scale(z, factor))
        expected = references.scale(z.astype("float64"), factor)
        assert out.dtype == np.float32
        np.testing.assert_allclose(out, expected, atol=atol)


def test_a_wrong_norm_is_named():
    with pytest.raises(ValueError, match="norm='soft'"):
        ops.pseudo_labels([[1.0]], [[1.0]], 0.0, norm="soft")


# Eq. 1 to 3.


@pytest.mark.parametrize(
    ("p", "lam", "norm", "expected"),
    [
        # Eq. 1, lambda 0: (0, .2, .1) / .3.
        ([0.7, 0.2, 0.1], 0.0, "scale", [0, 2 / 3, 1 / 3]),
        # lambda .2: (.14, .2, .1) / .44; the largest is still class 1.
        ([0.7, 0.2, 0.1], 0.2, "scale", [14 / 44, 20 / 44, 10 / 44]),
        ([0.7, 0.2, 0.1], 0.2, "onehot", [0, 1, 0]),
        # lambda .4: .28 > .2, the label leaves its set.
        ([0.7, 0.2, 0.1], 0.4, "onehot", [1, 0, 0]),
        # Eq. 2, lambda 1: P itself.
        ([0.7, 0.2, 0.1], 1.0, "scale", [0.7, 0.2, 0.1]),
        # Case 24: sum(S P) = 0, so Eq. 1 is 0 / 0; the set itself then.
        ([1.0, 0.0, 0.0], 0.0, "onehot", [0, 0.5, 0.5]),
        ([1.0, 0.0, 0.0], 0.0, "scale", [0, 0.5, 0.5]),
        ([0.0, 0.0, 0.0], 0.5, "scale", [0, 0.5, 0.5]),
    ],
)
def test_pseudo_labels_by_hand(p, lam, norm, expected):
    w = ops.pseudo_labels([p], [[0.0, 1.0, 1.0]], lam, norm)
    np.testing.assert_allclose(w, [expected], rtol=1e-6)


@pytest.mark.parametrize("lam", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("factor", FACTORS)
def test_pseudo_labels_equal_the_loop(lam, factor):
    for seed, (batch, classes) in enumerate([(1, 2), (5, 3), (4, 10)]):
        p, s = tiny.grid(batch, classes, seed)
        np.testing.assert_allclose(
            ops.pseudo_labels(p, s, lam, "scale", factor),
            references.pseudo_labels(p, s, lam, "scale", factor),
            atol=3e-5,
        )
        np.testing.assert_array_equal(
            ops.pseudo_labels(p, s, lam, "onehot"),
            references.pseudo_labels(p, s, lam, "onehot"),
        )


@hypothesis.given(
    row=tiny.rows(), lam=st.floats(0, 1), k=st.sampled_from(FACTORS)
)
@hypothesis.settings(max_examples=40)
def test_pseudo_labels_sum_to_one_and_stay_inside_at_lambda_0(row, lam, k):
    p, s = row
    for norm in ("onehot", "scale"):
        w = numpy(ops.pseudo_labels(p, s, lam, norm, k))
        assert np.all(np.isfinite(w)) and np.all(w >= 0)
        np.testing.assert_allclose(w.sum(axis=1), 1.0, rtol=1e-5)
        w = numpy(ops.pseudo_labels(p, s, 0.0, norm, k))
        np.testing.assert_array_equal(w * (1.0 - s), 0.0)


# Eq. 6.


def test_candidate_ratio_by_hand():
    p = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]
    s = [[0, 1, 1], [0, 1, 1], [1, 1, 0]]
    # .2 / .7, .5 / .2, .1 / .8.
    ratio = ops.candidate_ratio(p, s)
    np.testing.assert_allclose(ratio, [2 / 7, 2.5, 0.125], rtol=1e-6)
    # Full and dead rows.
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
    # Sorted .1 .2 .4 3; rank floor(4 eta), and 3 is clamped.
    etas = (0.24, 0.25, 0.5, 0.74, 0.75, 1.0, 0.0)
    for eta, expected in zip(etas, (0.1, 0.2, 0.4, 0.4, 1.0, 1.0, 0.0)):
        lam = float(ops.adaptive_lambda(ratios, eta))
        assert lam == pytest.approx(expected, rel=1e-6), eta
    for nothing in ([np.nan] * 3, [np.inf] * 3, [np.inf, np.nan], []):
        assert ops.adaptive_lambda(np.array(nothing, "float32"), 0.5) == 0.0


def test_adaptive_lambda_is_the_order_statistic():
    # n eta in decimals is whole, or just below the next whole number. 97 is a
    # prime, 49,920 and 50,000 a CIFAR epoch without and with its last batch.
    sizes = (100_000, 100_000, 200_000, 1_000_000, 1_281_167)
    etas = (0.53, 0.65, 0.59, 0.13, 0.85, 0.333, 0.29, 0.57, 0.57, 0.857)
    for n, eta in zip((*sizes, 3, 97, 49_920, 50_000, 7), etas, strict=True):
        ratios = (np.arange(n) + 0.5) / n
        expected = references.adaptive_lambda(ratios, eta)
        got = float(ops.adaptive_lambda(ratios, eta))
        assert round(got * n - 0.5, 1) == round(expected * n - 0.5, 1)


RATIO = st.one_of(st.floats(0, 4, width=32), st.sampled_from([np.inf, np.nan]))


@hypothesis.given(
    ratios=st.lists(RATIO, min_size=1, max_size=12),
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


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
def test_mixup_takes_images_of_any_dtype(dtype):
    # Cases 44 and 45.
    first = np.full((1, 2, 2, 3), 200, dtype)
    second = np.full((1, 2, 2, 3), 100, dtype)
    out = numpy(ops.mixup(first, second, np.array([0.25], "float16")))
    assert out.dtype == np.float32 and out.shape == (1, 2, 2, 3)
    # .25 * 200 + .75 * 100
    np.testing.assert_array_equal(out, 125.0)


# Prototypes.


def test_unit_norm_by_hand():
    out = ops.unit_norm([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]])
    np.testing.assert_allclose(out, [[0.6, 0.8], [0, 0], [0, -1]], rtol=1e-6)
    # No NaN gradient at zero.
    weights = np.array([[1.0, 1.0], [1.0, 0.0]], "float32")
    found = gradient(
        lambda x: keras.ops.sum(ops.unit_norm(x) * weights),
        np.array([[0.0, 0.0], [3.0, 4.0]], "float32"),
    )
    assert np.all(np.isfinite(found))
    # d (x / |x|) / dx = 1/|x| - x^2/|x|^3 = .2 - 9/125; -xy/|x|^3 = -12/125.
    np.testing.assert_allclose(found[1], [0.128, -0.096], rtol=1e-5)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9, 0.99, 1.0])
def test_prototype_update_equals_the_sequential_loop(momentum):
    stream = np.random.default_rng(7)
    means = np.zeros((4, 6), "float32")
    for batch in (1, 5, 33):
        q = stream.standard_normal((batch, 6))
        q = (q / np.linalg.norm(q, axis=1, keepdims=True)).astype("float32")
        labels = stream.integers(0, 3, batch)
        expected = references.prototype_update(means, q, labels, momentum)
        means = numpy(ops.prototype_update(means, q, labels, momentum))
        np.testing.assert_allclose(means, expected, atol=1e-6)
        # Class 3 is never seen (case 26).
        np.testing.assert_array_equal(means[3], 0.0)


def test_xla_gives_the_same_values():
    p, s = tiny.grid(6, 4, 11)
    p[0], s[0] = [0, 0, 0, 1], [1, 1, 1, 0]
    s[1] = 1.0
    q = p / np.linalg.norm(p, axis=1, keepdims=True)
    labels = np.array([0, 1, 1, 2, 0, 1])
    means = np.eye(4, dtype="float32")
    half = np.full(6, 0.5, "float32")
    for function, *arguments in [
        (lambda a: ops.candidate_weights(a, 0.3), s),
        (ops.onehot, p),
        (lambda a: ops.scale(a, 0.05), p),
        (lambda a: ops.scale(a, 2.0), p),
        (lambda a, b: ops.pseudo_labels(a, b, 0.0), p, s),
        (lambda a, b: ops.pseudo_labels(a, b, 0.4, "scale"), p, s),
        (ops.uniform_over_candidates, s),
        (ops.candidate_ratio, p, s),
        (ops.mixup, p, s, half),
        (lambda *x: ops.prototype_update(*x, 0.99), means, q, labels),
    ]:
        eager = numpy(function(*arguments))
        compiled = backend.compiled(function, jit_compile=True)(*arguments)
        np.testing.assert_allclose(compiled, eager, rtol=2e-5, atol=1e-6)


def test_closed_form_lambda_by_hand():
    # eta 0.2: odds 1/4. s / (C - s): 1/3, 2/2, 3/1.
    lam = ops.closed_form_lambda(0.2, [1, 2, 3, 4], 4)
    np.testing.assert_allclose(lam, [1 / 12, 1 / 4, 3 / 4, 0.0])
    # One noise rate for each example: odds 1 and 1/3.
    lam = ops.closed_form_lambda([0.5, 0.25], [1, 1], 4)
    np.testing.assert_allclose(lam, [1 / 3, 1 / 9])
