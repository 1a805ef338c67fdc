"""Random numbers that are a function of their keys."""

import keras
import numpy as np
import pytest
import references
from scipy import stats

from alim_keras import backend
from alim_keras import draws


def uniform(*arguments):
    return keras.ops.convert_to_numpy(draws.uniform(*arguments))


@pytest.mark.parametrize(
    ("seed", "epoch"),
    [(0, 0), (1, 7), (7, 1), (2**31 - 1, 999), (2**32 - 1, 3)],
)
def test_draws_equal_integer_arithmetic(seed, epoch):
    index = np.array([0, 1, 2, 49_999, 1_281_166])
    got = uniform(seed, epoch, index, 3, "weak")
    expected = [
        [references.draw(seed, epoch, int(i), k, "weak") for k in range(3)]
        for i in index
    ]
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, np.array(expected, "float32"))


def test_draws_are_uniform():
    x = uniform(0, 0, np.arange(20_000), 2, "weak").ravel()
    assert x.min() >= 0.0 and x.max() < 1.0
    # Standard error of the mean .29 / sqrt(40,000) = .0014.
    assert abs(x.mean() - 0.5) < 0.007
    assert abs(x.var() - 1 / 12) < 0.003
    counts = np.histogram(x, 20, (0, 1))[0]
    # Chi squared with 19 degrees of freedom; 50 has p = .0001.
    assert ((counts - 2000) ** 2 / 2000).sum() < 50
    successive = np.corrcoef(x[:-1], x[1:])[0, 1]
    assert abs(successive) < 0.03


@pytest.mark.parametrize("jit_compile", [False, True])
def test_compiled_draws_are_the_same(jit_compile):
    def draw(epoch, index):
        return draws.uniform(4, epoch, index, 3, "weak")

    index = np.array([5, 1_000_000, 0])
    got = backend.compiled(draw, jit_compile=jit_compile)(np.int32(6), index)
    np.testing.assert_array_equal(got, uniform(4, 6, index, 3, "weak"))


@pytest.mark.tensorflow("draws inside tf.data")
def test_draws_in_tf_data_are_the_same():
    import tensorflow as tf

    data = tf.data.Dataset.range(6).batch(3)
    data = data.map(lambda i: draws.uniform(4, 6, i, 2, "weak"))
    got = np.concatenate(list(data.as_numpy_iterator()))
    np.testing.assert_array_equal(got, uniform(4, 6, np.arange(6), 2, "weak"))


def beta(alpha, u):
    u = np.asarray(u, "float32")
    return keras.ops.convert_to_numpy(draws.beta_quantile(alpha, u))


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.0, 8.0])
def test_beta_draws_have_the_distribution(alpha):
    u = np.linspace(0.01, 0.99, 301)
    expected = stats.beta.ppf(u, alpha, alpha)
    np.testing.assert_allclose(beta(alpha, u), expected, atol=2e-5)


def test_beta_draws_are_symmetric_and_stay_within_the_unit_interval():
    u = np.array([0.0, 2.0**-24, 0.25, 0.5, 0.75, 1 - 2.0**-24])
    x = beta(4.0, u)
    assert x[0] == 0.0 and x[-1] <= 1.0 and np.all(np.diff(x) > 0)
    np.testing.assert_allclose(x + beta(4.0, 1 - u), 1.0, atol=1e-5)
    found = draws.beta(4.0, 0, 3, np.array([7, 8]), "mixup")
    uniform = draws.uniform(0, 3, np.array([7, 8]), 1, "mixup")[:, 0]
    np.testing.assert_array_equal(found, beta(4.0, uniform))


def test_folds_are_even_and_keep_groups_together():
    fold = draws.folds(23, 4, seed=0)
    assert np.bincount(fold).tolist() == [6, 6, 6, 5]
    assert (draws.folds(23, 4, seed=1) != fold).any()
    # Groups of one change nothing.
    np.testing.assert_array_equal(draws.folds(23, 4, 0, np.arange(23)), fold)
    groups = np.random.default_rng(0).integers(0, 150, 400)
    fold = draws.folds(400, 5, 0, groups)
    for group in range(150):
        assert len(set(fold[groups == group])) <= 1
    assert np.bincount(fold).min() > 60


@pytest.mark.parametrize("folds", [2, 3, 10])
def test_a_group_larger_than_a_fold_is_split_up(folds):
    # All but two, and a pair.
    fold = draws.folds(10, folds, 0, [0] * 8 + [1] * 2)
    assert np.bincount(fold, minlength=folds).min() >= 1
    assert len(set(fold[:8])) == min(folds, 8)
    if folds < 6:
        assert fold[8] == fold[9]
