"""Losses: loop references, cases with a closed form, gradients."""

import keras
import numpy as np
import pytest
import references
import tiny
from compiling import gradient

from alim_keras import backend
from alim_keras import losses


def similarities_and_mask(batch, memory, seed):
    """Cosines of unit rows; every anchor is left out of its own row."""
    stream = np.random.default_rng(seed)
    similarities = stream.uniform(-1, 1, (batch, memory)).astype("float32")
    mask = (stream.random((batch, memory)) < 0.3).astype("float32")
    mask[np.arange(batch), np.arange(batch)] = losses.LEFT_OUT
    return mask, similarities


# Classifier-consistent.


def test_candidate_crossentropy_by_hand():
    loss = losses.CandidateCrossentropy(reduction=None)
    p, s = [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]], [[1.0, 0, 1], [0, 1, 0]]
    # -log(.2 + .3) = log 2; -log .1 = log 10.
    np.testing.assert_allclose(loss(s, p), np.log([2, 10]), rtol=1e-6)
    mean = losses.CandidateCrossentropy()(s, p)
    assert float(mean) == pytest.approx(0.5 * np.log(20), rel=1e-6)
    # Of a full set 0, and never below: rounding may carry the sum past 1.
    p, _ = tiny.grid(50, 7, 0)
    value = loss(np.ones_like(p), p)
    assert np.all(value >= 0)
    np.testing.assert_allclose(value, 0.0, atol=1e-6)
    # Finite where P is 0.
    for dtype in ("float16", "float32", "bool"):
        value = loss(np.eye(2, dtype=dtype), np.eye(2, dtype="float16")[::-1])
        assert np.isfinite(value).all() and np.min(value) > 50


# Against weights of the labels, in the published form.


@pytest.mark.parametrize(
    ("loss", "w", "p", "expected"),
    [
        # .2^2 + .3^2 + .1^2.
        (losses.squared_error, [0.5, 0.5, 0.0], [0.7, 0.2, 0.1], 0.14),
        # .2 + .3 + .1; for one label 2 (1 - P).
        (losses.absolute_error, [0.5, 0.5, 0.0], [0.7, 0.2, 0.1], 0.6),
        (losses.absolute_error, [1.0, 0.0, 0.0], [0.7, 0.2, 0.1], 0.6),
        # (1 - .4^.7 + 1 - .6^.7) .5 / .7, .4^.7 = .526551, .6^.7 = .699372.
        (
            losses.generalised_crossentropy,
            [0.5, 0.5, 0.0],
            [0.4, 0.6, 0.0],
            0.5529121,
        ),
        # w is cut at 1e-4 in both terms.
        (
            losses.symmetric_crossentropy,
            [1.0, 0.0],
            [0.5, 0.5],
            6 * 1.0001 * np.log(2) - 0.5 * np.log(1e-4),
        ),
        (losses.candidate_exponential, [1, 0, 1], [0.2, 0.5, 0.3], 0.60653066),
        # A full set: exp(-1).
        (losses.candidate_exponential, [1, 1, 1], [0.2, 0.5, 0.3], 0.36787944),
        # -log .5 - log .9.
        (losses.non_candidate_log_loss, [1, 0, 0], [0.4, 0.5, 0.1], 0.7985077),
    ],
)
def test_losses_of_labels_by_hand(loss, w, p, expected):
    assert np.array(loss([w], [p])) == pytest.approx([expected], rel=1e-5)


def test_the_mean_over_a_batch_weights_examples():
    values = np.array([1.0, 2.0, 6.0], "float32")
    assert float(losses.over_batch(values)) == 3.0
    weight = np.array([2.0, 0.0, 0.5])
    assert float(losses.over_batch(values, weight)) == pytest.approx(5 / 3)


# Supervised contrastive.


def test_contrastive_loss_by_hand():
    # tau .5: logits 2, 0, -2; entry 0 positive.
    loss = losses.SupervisedContrastive(0.5)
    value = loss([[1.0, 0.0, 0.0]], [[1.0, 0.0, -1.0]])
    expected = np.log(np.exp(2) + 1 + np.exp(-2)) - 2
    assert float(value) == pytest.approx(expected, abs=1e-6)
    # Left out, the middle entry is in neither sum.
    value = loss([[1.0, -1.0, 0.0]], [[1.0, 0.0, -1.0]])
    expected = np.log(np.exp(2) + np.exp(-2)) - 2
    assert float(value) == pytest.approx(expected, abs=1e-6)
    for temperature in (0, -0.1, float("nan")):
        with pytest.raises(ValueError, match="temperature="):
            losses.SupervisedContrastive(temperature)


@pytest.mark.parametrize("temperature", [0.07, 0.5, 2.0])
def test_contrastive_loss_equals_the_loop(temperature):
    for seed in range(3):
        mask, similarities = similarities_and_mask(5, 12, seed)
        loss = losses.SupervisedContrastive(temperature, reduction=None)
        np.testing.assert_allclose(
            loss(mask, similarities),
            references.supervised_contrastive(mask, similarities, temperature),
            rtol=2e-5,
            atol=1e-5,
        )


def test_an_anchor_without_a_positive_costs_nothing():
    # Case 22: an empty subset must not give NaN.
    loss = losses.SupervisedContrastive(reduction=None)
    mask = [[-1.0, 0.0, 0.0], [0.0, -1.0, 1.0], [0.0, 0.0, -1.0]]
    x = np.array([[1.0, 0.3, -0.2]] * 3, "float32")
    value = loss(mask, x)
    assert value[0] == 0.0 and value[1] > 0.0 and value[2] == 0.0
    found = gradient(lambda x: keras.ops.sum(loss(mask, x)), x)
    assert np.all(np.isfinite(found))
    np.testing.assert_array_equal(found[[0, 2]], 0.0)
    # Nor does it count in the mean.
    mean = losses.SupervisedContrastive()(mask, x)
    assert float(mean) == pytest.approx(float(value[1]), rel=1e-6)
    nobody = losses.SupervisedContrastive()(np.zeros((2, 3)), x[:2])
    assert float(nobody) == 0.0


@pytest.mark.parametrize(
    ("kind", "option", "make_data"),
    [
        (losses.CandidateCrossentropy, True, tiny.grid),
        (losses.SupervisedContrastive, 0.3, similarities_and_mask),
    ],
)
def test_losses_serialise_and_are_the_same_under_xla(kind, option, make_data):
    loss, data = kind(option, reduction="sum", name="x"), make_data(4, 6, 0)
    config = keras.saving.serialize_keras_object(loss)
    again = keras.saving.deserialize_keras_object(config)
    assert type(again) is kind and again.name == "x"
    assert float(again(*data)) == float(loss(*data))
    compiled = backend.compiled(lambda a, b: loss(a, b), jit_compile=True)
    assert float(compiled(*data)) == pytest.approx(float(loss(*data)), rel=1e-5)
