"""Equations 1 to 5, 7 and 8, prototypes, XLA."""

import itertools

import hypothesis
import keras
import numpy as np
import pytest
import references
import tiny
from gradients import gradient
from hypothesis import strategies as st

from alim_keras import backend
from alim_keras import ops

FACTORS = (0.05, 0.1, 0.5, 1.0, 2.0)


def numpy(x):
    return keras.ops.convert_to_numpy(x)


# Eq. 3's bracket.


def test_candidate_weights_by_hand():
    # S = 1 keeps 1; S = 0 becomes lambda.
    w = ops.candidate_weights([[1, 0, 1], [0, 1, 0]], 0.25)
    np.testing.assert_array_equal(w, [[1, 0.25, 1], [0.25, 1, 0.25]])


def test_candidate_weights_take_one_lambda_per_row():
    w = ops.candidate_weights([[1, 0], [0, 1]], [[0.5], [0.125]])
    np.testing.assert_array_equal(w, [[1, 0.5], [0.125, 1]])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16"])
def test_candidate_weights_take_any_dtype_and_return_float32(dtype):
    w = ops.candidate_weights(np.array([[1, 0]], dtype), 0.5)
    assert keras.backend.standardize_dtype(w.dtype) == "float32"
    np.testing.assert_array_equal(w, [[1.0, 0.5]])


# Eq. 4 and Eq. 5.


def test_onehot_by_hand():
    z = [[0.1, 0.7, 0.2], [0.4, 0.2, 0.4], [0.0, 0.0, 0.0]]
    # Row 2 is a tie of classes 0 and 2, row 3 of all: no class is preferred.
    np.testing.assert_allclose(
        ops.onehot(z),
        [[0, 1, 0], [0.5, 0, 0.5], [1 / 3, 1 / 3, 1 / 3]],
        rtol=1e-6,
    )


def test_scale_by_hand():
    # K = 0.5 squares: .1, .3 -> .01, .09 -> .1, .9.
    np.testing.assert_allclose(
        ops.scale([[0.1, 0.3]], 0.5), [[0.1, 0.9]], rtol=1e-6
    )
    # K = 2 takes the root: .04, .16 -> .2, .4 -> 1/3, 2/3.
    np.testing.assert_allclose(
        ops.scale([[0.04, 0.16]], 2.0), [[1 / 3, 2 / 3]], rtol=1e-6
    )
    # K = 1 only normalises: .1 / .4, .3 / .4.
    np.testing.assert_allclose(
        ops.scale([[0.1, 0.3]]), [[0.25, 0.75]], rtol=1e-6
    )


def test_scale_keeps_zeros_and_makes_a_zero_row_uniform():
    out = numpy(ops.scale([[0.0, 0.5, 0.5], [0.0, 0.0, 0.0]], 100.0))
    # However large K is, 0^(1/K) is 0.
    np.testing.assert_allclose(
        out, [[0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]], rtol=1e-6
    )


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_scale_does_not_underflow(factor, dtype):
    # K1-K2 of the case log: z^(1/K) itself is 0 in float32.
    z = np.array(
        [[1e-5, 2e-5, 1e-4], [0, 0, 0], [0, 1e-6, 0], [1, 0, 1e-7]], dtype
    )
    out = numpy(ops.scale(z, factor))
    assert out.dtype == np.float32
    np.testing.assert_allclose(
        out, references.scale(z.astype("float64"), factor), atol=2e-5
    )
    np.testing.assert_allclose(out.sum(axis=1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("factor", FACTORS)
def test_scale_is_right_down_to_1e_30(factor):
    z = np.array(
        [[1e-30, 3e-30, 2e-30], [1e-30, 1.0, 0.5], [2e-30, 0.0, 1e-28]],
        "float32",
    )
    np.testing.assert_allclose(
        ops.scale(z, factor), references.scale(z, factor), atol=5e-4
    )


def test_scale_takes_a_tensor_as_factor():
    factor = keras.Variable(0.5)
    np.testing.assert_allclose(
        ops.scale([[0.1, 0.3]], factor), [[0.1, 0.9]], rtol=1e-6
    )


def test_normalise_names_a_wrong_norm():
    with pytest.raises(ValueError, match="norm='soft'"):
        ops.normalise([[1.0]], norm="soft")


# Eq. 1 to 3.


def test_pseudo_labels_by_hand():
    p, s = [[0.7, 0.2, 0.1]], [[0.0, 1.0, 1.0]]
    # Eq. 1, lambda 0: (0, .2, .1) / .3.
    np.testing.assert_allclose(
        ops.pseudo_labels(p, s, 0.0, "scale"), [[0, 2 / 3, 1 / 3]], rtol=1e-6
    )
    # lambda .2: (.14, .2, .1) / .44; the largest is still class 1.
    np.testing.assert_allclose(
        ops.pseudo_labels(p, s, 0.2, "scale"),
        [[14 / 44, 20 / 44, 10 / 44]],
        rtol=1e-6,
    )
    np.testing.assert_array_equal(
        ops.pseudo_labels(p, s, 0.2, "onehot"), [[0, 1, 0]]
    )
    # lambda .4: .28 > .2, the label leaves its set.
    np.testing.assert_array_equal(
        ops.pseudo_labels(p, s, 0.4, "onehot"), [[1, 0, 0]]
    )
    # Eq. 2, lambda 1: P itself.
    np.testing.assert_allclose(
        ops.pseudo_labels(p, s, 1.0, "scale"), p, rtol=1e-6
    )


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


@pytest.mark.parametrize("norm", ["onehot", "scale"])
def test_lambda_0_is_equation_1(norm):
    # Case 88: Normalize(S P) to 1e-6.
    p, s = tiny.grid(20, 6, 3)
    product = s * p
    expected = (
        references.onehot(product)
        if norm == "onehot"
        else product / product.sum(axis=1, keepdims=True)
    )
    np.testing.assert_allclose(
        ops.pseudo_labels(p, s, 0.0, norm), expected, atol=1e-6
    )


@pytest.mark.parametrize("norm", ["onehot", "scale"])
@pytest.mark.parametrize("factor", FACTORS)
def test_lambda_1_ignores_the_candidate_set(norm, factor):
    p, s = tiny.grid(20, 6, 4)
    np.testing.assert_array_equal(
        ops.pseudo_labels(p, s, 1.0, norm, factor),
        ops.pseudo_labels(p, 1.0 - s, 1.0, norm, factor),
    )


@hypothesis.given(
    row=tiny.rows(), lam=st.floats(0, 1), k=st.sampled_from(FACTORS)
)
@hypothesis.settings(max_examples=40)
def test_pseudo_labels_are_finite_and_sum_to_one(row, lam, k):
    p, s = row
    for norm in ("onehot", "scale"):
        w = numpy(ops.pseudo_labels(p, s, lam, norm, k))
        assert np.all(np.isfinite(w)) and np.all(w >= 0)
        np.testing.assert_allclose(w.sum(axis=1), 1.0, rtol=1e-5)


@hypothesis.given(row=tiny.rows(), k=st.sampled_from(FACTORS))
@hypothesis.settings(max_examples=40)
def test_lambda_0_never_leaves_the_set(row, k):
    p, s = row
    for norm in ("onehot", "scale"):
        w = numpy(ops.pseudo_labels(p, s, 0.0, norm, k))
        np.testing.assert_array_equal(w * (1.0 - s), 0.0)


@hypothesis.given(row=tiny.rows())
@hypothesis.settings(max_examples=40)
def test_a_label_outside_its_set_stays_outside_as_lambda_grows(row):
    p, s = (np.repeat(part, 12, axis=0) for part in row)
    lam = np.linspace(0.0, 1.0, 12).reshape(12, 1)
    label = np.argmax(ops.pseudo_labels(p, s, lam), axis=1)
    outside = [s[i, label[i]] == 0.0 for i in range(12)]
    assert outside == sorted(outside)


def test_half_precision_probabilities():
    p, s = tiny.grid(6, 5, 5)
    half = p.astype("float16")
    for norm, lam in itertools.product(("onehot", "scale"), (0.0, 0.3, 1.0)):
        w = numpy(ops.pseudo_labels(half, s.astype("float16"), lam, norm, 0.1))
        assert w.dtype == np.float32
        expected = references.pseudo_labels(
            half.astype("float64"), s, lam, norm, 0.1
        )
        np.testing.assert_allclose(w, expected, atol=1e-5)


@pytest.mark.parametrize("norm", ["onehot", "scale"])
def test_probabilities_lost_on_all_candidates_fall_back_to_the_set(norm):
    # Case 24: sum(S P) = 0, so Eq. 1 is 0 / 0.
    p = np.array([[1.0, 0.0, 0.0, 0.0]], "float32")
    s = np.array([[0.0, 0.0, 1.0, 1.0]], "float32")
    w = numpy(ops.pseudo_labels(p, s, 0.0, norm))
    np.testing.assert_allclose(w, [[0, 0, 0.5, 0.5]], rtol=1e-6)


@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_a_row_of_zero_probabilities_stays_within_its_set(lam):
    # "Falls back to a uniform belief over the candidate set."
    p, s = np.zeros((1, 4), "float32"), np.array([[0.0, 1.0, 0.0, 1.0]])
    np.testing.assert_allclose(
        ops.pseudo_labels(p, s, lam, "scale"), [[0, 0.5, 0, 0.5]], rtol=1e-6
    )


def test_uniform_over_candidates_by_hand():
    out = ops.uniform_over_candidates([[1, 1, 0, 0], [0, 0, 0, 1]])
    np.testing.assert_array_equal(out, [[0.5, 0.5, 0, 0], [0, 0, 0, 1]])


def test_scale_at_a_temperature_is_scale_with_that_factor():
    # Reference, section 5: softmax(c / T) with K = 1 equals softmax(c) with
    # K = T, if lambda is taken to the power 1 / T.
    c = np.random.default_rng(0).uniform(-1, 1, (5, 4)).astype("float32")
    s = np.tile(np.array([[1.0, 0.0, 1.0, 0.0]], "float32"), (5, 1))
    sharp = ops.pseudo_labels(
        keras.ops.softmax(c / 0.07), s, 0.6 ** (1 / 0.07), "scale"
    )
    flat = ops.pseudo_labels(keras.ops.softmax(c), s, 0.6, "scale", 0.07)
    np.testing.assert_allclose(sharp, flat, atol=1e-5)


# Eq. 7 and Eq. 8.


def test_mixup_by_hand():
    out = ops.mixup(
        [[4.0, 8.0], [1.0, 2.0]], [[0.0, 4.0], [3.0, 6.0]], [0.75, 0.5]
    )
    # .75 * 4 + .25 * 0, .75 * 8 + .25 * 4; the mean.
    np.testing.assert_allclose(out, [[3.0, 7.0], [2.0, 4.0]])


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
def test_mixup_takes_images_of_any_dtype(dtype):
    # Cases 44 and 45.
    first = np.full((1, 2, 2, 3), 200, dtype)
    second = np.full((1, 2, 2, 3), 100, dtype)
    out = numpy(ops.mixup(first, second, np.array([0.25], "float16")))
    assert out.dtype == np.float32 and out.shape == (1, 2, 2, 3)
    # .25 * 200 + .75 * 100
    np.testing.assert_array_equal(out, 125.0)


def test_mixed_targets_sum_to_one_and_the_ends_are_the_inputs():
    p, q = tiny.grid(3, 4, 0)[0], tiny.grid(3, 4, 1)[0]
    out = numpy(ops.mixup(p, q, [1.0, 0.0, 0.3]))
    np.testing.assert_allclose(out.sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(out[0], p[0])
    np.testing.assert_array_equal(out[1], q[1])


# Prototypes.


def test_unit_norm_by_hand():
    out = ops.unit_norm([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]])
    np.testing.assert_allclose(out, [[0.6, 0.8], [0, 0], [0, -1]], rtol=1e-6)


def test_unit_norm_has_no_nan_gradient_at_zero():
    weights = np.array([[1.0, 1.0], [1.0, 0.0]], "float32")
    found = gradient(
        lambda x: keras.ops.sum(ops.unit_norm(x) * weights),
        np.array([[0.0, 0.0], [3.0, 4.0]], "float32"),
    )
    assert np.all(np.isfinite(found))
    # d (x / |x|) / dx = 1/|x| - x^2/|x|^3 = .2 - 9/125; -xy/|x|^3 = -12/125.
    np.testing.assert_allclose(found[1], [0.128, -0.096], rtol=1e-5)


def test_prototype_update_by_hand():
    # m = .5. Class 0: (0, 1) -> .5 (0, 1) + .5 (1, 0) -> / sqrt(.5).
    # Class 1 gets (1, 0) then (0, 1): .25 * 0 + .25 (1, 0) + .5 (0, 1).
    start = [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    q = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    out = ops.prototype_update(start, q, [0, 1, 1], 0.5)
    half, length = 0.5**0.5, 0.3125**0.5
    np.testing.assert_allclose(
        out,
        [[half, half], [0.25 / length, 0.5 / length], [0.0, 0.0]],
        rtol=1e-6,
    )


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


@hypothesis.given(
    labels=st.lists(st.integers(0, 2), min_size=1, max_size=8),
    seed=st.integers(0, 99),
)
@hypothesis.settings(max_examples=30)
def test_prototypes_are_unit_or_zero(labels, seed):
    q = np.random.default_rng(seed).standard_normal((len(labels), 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    means = numpy(ops.prototype_update(np.zeros((3, 4)), q, labels, 0.9))
    for c in range(3):
        expected = 1.0 if c in labels else 0.0
        assert np.linalg.norm(means[c]) == pytest.approx(expected, abs=1e-5)


# XLA.


def _cases():
    p, s = tiny.grid(6, 4, 11)
    p[0], s[0] = [0, 0, 0, 1], [1, 1, 1, 0]
    s[1] = 1.0
    q = p / np.linalg.norm(p, axis=1, keepdims=True)
    labels = np.array([0, 1, 1, 2, 0, 1])
    means = np.eye(4, dtype="float32")
    half = np.full(6, 0.5, "float32")
    return {
        "weights": (lambda a: ops.candidate_weights(a, 0.3), (s,)),
        "onehot": (ops.onehot, (p,)),
        "sharp": (lambda a: ops.scale(a, 0.05), (p,)),
        "flat": (lambda a: ops.scale(a, 2.0), (p,)),
        "hard": (lambda a, b: ops.pseudo_labels(a, b, 0.0), (p, s)),
        "soft": (lambda a, b: ops.pseudo_labels(a, b, 0.4, "scale"), (p, s)),
        "uniform": (ops.uniform_over_candidates, (s,)),
        "ratio": (ops.candidate_ratio, (p, s)),
        "mixup": (ops.mixup, (p, s, half)),
        "prototypes": (
            lambda a, b, c: ops.prototype_update(a, b, c, 0.99),
            (means, q, labels),
        ),
    }


# By name: no tensor may be made while the tests are collected.
@pytest.mark.parametrize(
    "name",
    [
        "weights",
        "onehot",
        "sharp",
        "flat",
        "hard",
        "soft",
        "uniform",
        "ratio",
        "mixup",
        "prototypes",
    ],
)
def test_xla_gives_the_same_values(name):
    function, arguments = _cases()[name]
    eager = numpy(function(*arguments))
    compiled = backend.compiled(function, jit_compile=True)(*arguments)
    np.testing.assert_allclose(compiled, eager, rtol=2e-5, atol=1e-6)
