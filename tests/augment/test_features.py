"""The views of feature vectors, against loops."""

import keras
import numpy as np
import pytest
from references_augment import to_numpy
from scipy.stats import norm

from alim_keras import draws
from alim_keras.augment import FeatureViews
from alim_keras.errors import DataError

RNG = np.random.default_rng(4)
MEAN, STD = np.array([10.0, -3.0, 0.5, 2e4]), np.array([2.0, 0.5, 1e-3, 1e3])


def vectors(count=40):
    values = MEAN + STD * RNG.normal(size=(count, 4))
    return values.astype("float32").reshape(count, 1, 1, 4)


def make(**options):
    return FeatureViews(MEAN / 255, STD / 255, **options)


def test_weak_view_is_the_vector_itself():
    images = vectors()
    result = to_numpy(make().weak(images, 3, np.arange(40)))
    np.testing.assert_array_equal(result, images)


def test_strong_view_equals_the_loop():
    images, index = vectors(), np.arange(40) + 7
    views = make(seed=5, dropout=0.3, noise=0.2)
    result = to_numpy(views.strong(images, 2, index))
    drop, noise = (
        to_numpy(draws.uniform(5, 2, index, 4, f"strong/{part}"))
        for part in ("dropout", "noise")
    )
    expected = images[:, 0, 0] + 0.2 * STD * norm.ppf(np.maximum(noise, 2**-24))
    expected = np.where(drop < 0.3, MEAN, expected)
    error = np.abs(result[:, 0, 0] - expected)
    assert (error < 1e-4 * STD + 1e-6 * np.abs(MEAN)).all()
    # 160 draws of 0.3: five standard deviations, sqrt(160 * 0.21) = 5.8.
    assert 19 < (drop < 0.3).sum() < 77


def test_the_extremes_of_the_draws_give_finite_noise(monkeypatch):
    # The ends of the 24-bit grid; Phi(-5.294) = 2 ** -24.
    for end, sign in ((0.0, -1.0), (1.0 - 2.0**-24, 1.0)):
        monkeypatch.setattr(
            draws,
            "uniform",
            lambda *_, end=end: keras.ops.full((2, 4), end, "float32"),
        )
        views = FeatureViews(noise=1.0, dropout=0.0)
        result = to_numpy(views.strong(np.zeros((2, 4)), 0, np.arange(2)))
        assert result == pytest.approx(sign * 5.294, abs=0.005)


def test_flat_vectors_get_the_same_views():
    images, index = vectors(6), np.arange(6)
    views = make()
    for view in (views.weak, views.strong):
        flat = to_numpy(view(images.reshape(6, 4), 1, index))
        assert flat.shape == (6, 4)
        np.testing.assert_array_equal(
            flat, to_numpy(view(images, 1, index)).reshape(6, 4)
        )


@pytest.mark.parametrize(
    "shape, words",
    [
        ((2, 3, 3, 4), "expected in the shape"),
        ((2, 1, 4), "expected in the shape"),
        ((2, 1, 1, 5), r"as many features as .*, \{4\}. Received"),
    ],
)
def test_bad_vectors_are_named(shape, words):
    with pytest.raises(DataError, match=words):
        make().strong(np.zeros(shape), 0, np.arange(2))
