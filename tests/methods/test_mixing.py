"""Beta draws by a table of quantiles."""

import keras
import numpy as np
import pytest
from scipy import stats

from alim_keras.methods.mixing import BetaQuantile


def numpy(x):
    return keras.ops.convert_to_numpy(x)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.0])
def test_quantiles_are_those_of_the_beta_distribution(alpha):
    u = np.linspace(0.01, 0.99, 301).astype("float32")
    np.testing.assert_allclose(
        numpy(BetaQuantile(alpha)(u)),
        stats.beta.ppf(u, alpha, alpha),
        atol=2e-5,
    )


@pytest.mark.parametrize("alpha", [0.1, 0.5, 4.0, 8.0])
def test_moments(alpha):
    u = (np.arange(20_000) + 0.5) / 20_000
    x = numpy(BetaQuantile(alpha)(u.astype("float32")))
    # Mean 1/2, variance 1 / (4 (2 alpha + 1)).
    assert x.mean() == pytest.approx(0.5, abs=1e-4)
    assert x.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=1e-2)


def test_alpha_1_is_uniform():
    u = np.random.default_rng(0).random(100).astype("float32")
    np.testing.assert_allclose(numpy(BetaQuantile(1.0)(u)), u, atol=1e-6)


def test_it_is_symmetric_monotone_and_stays_within_the_unit_interval():
    quantile = BetaQuantile(4.0)
    u = np.array([0.0, 2.0**-24, 0.25, 0.5, 0.75, 1 - 2.0**-24], "float32")
    x = numpy(quantile(u))
    assert x[0] == 0.0 and x[-1] <= 1.0 and np.all(np.diff(x) > 0)
    np.testing.assert_allclose(x + numpy(quantile(1 - u)), 1.0, atol=1e-5)


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan")])
def test_a_wrong_alpha_is_named(alpha):
    with pytest.raises(ValueError, match="mixup_alpha="):
        BetaQuantile(alpha)
