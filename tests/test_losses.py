"""Losses: loop references, cases with a closed form, gradients."""

import hypothesis
import keras
import numpy as np
import pytest
import references
from gradients import gradient
from hypothesis import strategies as st

from alim_keras import backend
from alim_keras import losses


def sets_and_probabilities(batch, classes, seed):
    stream = np.random.default_rng(seed)
    p = stream.dirichlet(np.ones(classes), batch).astype("float32")
    s = (stream.random((batch, classes)) < 0.4).astype("float32")
    s[np.arange(batch), stream.integers(0, classes, batch)] = 1.0
    return s, p


def similarities_and_mask(batch, memory, seed):
    """Cosines of unit rows; every anchor is left out of its own row."""
    stream = np.random.default_rng(seed)
    similarities = stream.uniform(-1, 1, (batch, memory)).astype("float32")
    mask = (stream.random((batch, memory)) < 0.3).astype("float32")
    mask[np.arange(batch), np.arange(batch)] = losses.LEFT_OUT
    return mask, similarities


def differences(function, x, step=1e-3):
    """Central differences of a function of a float64 array."""
    out = np.zeros(x.shape)
    for place in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        out[place] = (function(up) - function(down)) / (2 * step)
    return out


# Classifier-consistent.


def test_candidate_crossentropy_by_hand():
    loss = losses.CandidateCrossentropy(reduction=None)
    p = [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]
    # -log(.2 + .3) = log 2; -log .1 = log 10.
    np.testing.assert_allclose(
        loss([[1.0, 0, 1], [0, 1, 0]], p), np.log([2, 10]), rtol=1e-6
    )
    mean = losses.CandidateCrossentropy()([[1.0, 0, 1], [0, 1, 0]], p)
    assert float(mean) == pytest.approx(0.5 * np.log(20), rel=1e-6)


def test_candidate_crossentropy_of_a_full_set_is_zero():
    _, p = sets_and_probabilities(50, 7, 0)
    value = losses.CandidateCrossentropy(reduction=None)(np.ones_like(p), p)
    # Never below: rounding may carry the sum past 1.
    assert np.all(value >= 0)
    np.testing.assert_allclose(value, 0.0, atol=1e-6)


def test_candidate_crossentropy_of_a_single_label_is_cross_entropy():
    _, p = sets_and_probabilities(9, 5, 1)
    y = np.eye(5, dtype="float32")[np.arange(9) % 5]
    ours = losses.CandidateCrossentropy()(y, p)
    theirs = keras.losses.CategoricalCrossentropy()(y, p)
    assert float(ours) == pytest.approx(float(theirs), rel=1e-5)


def test_candidate_crossentropy_equals_the_loop():
    for seed in range(4):
        s, p = sets_and_probabilities(8, 6, seed)
        value = losses.CandidateCrossentropy(reduction=None)(s, p)
        np.testing.assert_allclose(
            value, references.candidate_crossentropy(s, p), rtol=1e-5
        )


@pytest.mark.parametrize("dtype", ["float16", "float32", "bool"])
def test_candidate_crossentropy_is_finite_where_p_is_zero(dtype):
    value = losses.CandidateCrossentropy()(
        np.array([[1, 0]], dtype), np.array([[0.0, 1.0]], "float16")
    )
    assert np.isfinite(value) and value > 50


def test_candidate_crossentropy_gradient():
    s, p = sets_and_probabilities(3, 4, 5)
    loss = losses.CandidateCrossentropy()
    found = gradient(lambda x: loss(s, x), p)
    # d/dp_c of -log(sum) / 3 is -1 / (3 sum) on candidates.
    inside = (s * p).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, -s / (3 * inside), rtol=1e-5)


def test_candidate_crossentropy_weights_examples():
    loss = losses.CandidateCrossentropy()
    p = [[0.5, 0.5], [0.25, 0.75]]
    value = loss([[1, 0], [1, 0]], p, sample_weight=[2.0, 0.0])
    # (2 log 2 + 0) / 2
    assert float(value) == pytest.approx(np.log(2), rel=1e-6)


# Against weights of the labels, in the published form.


@pytest.mark.parametrize(
    ("kind", "w", "p", "expected"),
    [
        # .2^2 + .3^2 + .1^2.
        (losses.AveragedSquared(), [0.5, 0.5, 0.0], [0.7, 0.2, 0.1], 0.14),
        # .2 + .3 + .1; for one label 2 (1 - P).
        (losses.AveragedAbsolute(), [0.5, 0.5, 0.0], [0.7, 0.2, 0.1], 0.6),
        (losses.AveragedAbsolute(), [1.0, 0.0, 0.0], [0.7, 0.2, 0.1], 0.6),
        # .5 (1 - .8 + 1 - .5) / .5.
        (
            losses.AveragedGeneralised(0.5),
            [0.5, 0.5, 0.0],
            [0.64, 0.25, 0.11],
            0.7,
        ),
        # w is cut at 1e-4 in both terms.
        (
            losses.SymmetricCrossentropy(1.0, 1.0),
            [1.0, 0.0],
            [0.5, 0.5],
            1.0001 * np.log(2) - 0.5 * np.log(1e-4),
        ),
        (losses.CandidateExponential(), [1, 0, 1], [0.2, 0.5, 0.3], 0.60653066),
        # A full set: exp(-1).
        (losses.CandidateExponential(), [1, 1, 1], [0.2, 0.5, 0.3], 0.36787944),
        # -log .5 - log .9.
        (losses.NonCandidateLogLoss(), [0, 1, 1], [0.4, 0.5, 0.1], 0.7985077),
    ],
)
def test_losses_of_labels_by_hand(kind, w, p, expected):
    assert float(kind([w], [p])) == pytest.approx(expected, rel=1e-5)
    again = type(kind).from_config(kind.get_config())
    assert float(again([w], [p])) == float(kind([w], [p]))


# Positives.


def test_positive_mask_by_hand():
    # Case 3 of the case log.
    np.testing.assert_array_equal(
        losses.positive_mask([0, 1, 0], [0, 1, 2, 0]),
        [[1, 0, 0, 1], [0, 1, 0, 0], [1, 0, 0, 1]],
    )


def test_entries_without_a_class_are_nobodys_positives():
    np.testing.assert_array_equal(
        losses.positive_mask([0, 1], [-1, 0, -1]), [[0, 1, 0], [0, 0, 0]]
    )


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


@pytest.mark.parametrize("count", [1, 2, 17])
def test_contrastive_loss_of_equal_entries_is_log_n(count):
    value = losses.SupervisedContrastive()(
        np.ones((3, count)), np.full((3, count), 0.8)
    )
    assert float(value) == pytest.approx(np.log(count), rel=1e-5, abs=1e-6)


def test_contrastive_loss_of_one_positive_alone_is_zero():
    value = losses.SupervisedContrastive()([[-1.0, 1.0, -1.0]], [[1, 0.2, 1]])
    assert float(value) == pytest.approx(0.0, abs=1e-6)


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


@pytest.mark.parametrize("temperature", [0.07, 0.5])
def test_contrastive_gradient_equals_differences(temperature):
    mask, similarities = similarities_and_mask(3, 7, 1)
    loss = losses.SupervisedContrastive(temperature)

    def reference(s):
        rows = references.supervised_contrastive(mask, s, temperature)
        return rows.mean()

    expected = differences(reference, similarities.astype("float64"), 1e-5)
    found = gradient(lambda x: loss(mask, x), similarities)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found[mask == -1.0], 0.0)


def test_contrastive_loss_of_half_precision_is_finite():
    mask, similarities = similarities_and_mask(4, 9, 2)
    value = losses.SupervisedContrastive()(mask, similarities.astype("float16"))
    full = losses.SupervisedContrastive()(mask, similarities)
    assert keras.backend.standardize_dtype(value.dtype) == "float32"
    assert float(value) == pytest.approx(float(full), rel=1e-2)


@hypothesis.given(
    seed=st.integers(0, 999),
    temperature=st.sampled_from([0.01, 0.07, 1.0, 10.0]),
)
@hypothesis.settings(max_examples=25)
def test_contrastive_loss_is_finite_and_not_negative(seed, temperature):
    mask, similarities = similarities_and_mask(4, 9, seed)
    loss = losses.SupervisedContrastive(temperature, reduction=None)
    value = keras.ops.convert_to_numpy(loss(mask, similarities))
    assert np.all(np.isfinite(value)) and np.all(value >= -1e-5)


@pytest.mark.parametrize("temperature", [0, -0.1, float("nan")])
def test_contrastive_loss_names_a_wrong_temperature(temperature):
    with pytest.raises(ValueError, match="temperature="):
        losses.SupervisedContrastive(temperature)


@pytest.mark.parametrize("kind", ["cc", "contrastive"])
def test_losses_serialise(kind):
    if kind == "cc":
        loss = losses.CandidateCrossentropy(reduction="sum", name="x")
        y_true, y_pred = sets_and_probabilities(4, 5, 0)
    else:
        loss = losses.SupervisedContrastive(0.3, reduction="sum", name="x")
        y_true, y_pred = similarities_and_mask(4, 6, 0)
    config = keras.saving.serialize_keras_object(loss)
    again = keras.saving.deserialize_keras_object(config)
    assert type(again) is type(loss) and again.name == "x"
    assert float(again(y_true, y_pred)) == float(loss(y_true, y_pred))


@pytest.mark.parametrize("kind", ["cc", "contrastive"])
def test_losses_are_the_same_under_xla(kind):
    if kind == "cc":
        loss = losses.CandidateCrossentropy()
        data = sets_and_probabilities(4, 5, 0)
    else:
        loss = losses.SupervisedContrastive()
        data = similarities_and_mask(4, 6, 0)
    compiled = backend.compiled(lambda a, b: loss(a, b), jit_compile=True)
    value = compiled(*data)
    assert float(value) == pytest.approx(float(loss(*data)), rel=1e-5)


# Against a batch and a queue.


def batch_and_queue(seed, batch=6, queue=11, classes=4):
    """Classes, mask, anchors, batch entries and queue; class 3 never occurs."""
    stream = np.random.default_rng(seed)

    def rows(count):
        x = stream.standard_normal((count, 5)).astype("float32")
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    labels = stream.integers(0, classes - 1, batch)
    queue_labels = stream.integers(-1, classes - 1, queue)
    entries, anchors, memory = rows(2 * batch), rows(batch), rows(queue)
    mask = np.array(losses.positive_mask(labels, np.tile(labels, 2)))
    mask[np.arange(batch), np.arange(batch)] = losses.LEFT_OUT
    # An anchor of class 3, which has no positive anywhere.
    labels[0], mask[0, 1:] = classes - 1, 0.0
    return labels, queue_labels, mask, anchors, entries, memory


@pytest.mark.parametrize("temperature", [0.07, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_loss_with_a_queue_is_the_loss_over_both(temperature, seed):
    labels, queue_labels, mask, anchors, entries, queue = batch_and_queue(seed)
    by_class = losses.QueueContrastive(4, temperature, reduction=None)
    over_all = losses.SupervisedContrastive(temperature, reduction=None)
    ops = keras.ops

    def quick(x):
        similarities = ops.matmul(x, entries.T)
        return by_class((mask, labels, queue_labels), (similarities, x, queue))

    def slow(x):
        far = losses.positive_mask(labels, queue_labels)
        memory = np.concatenate([entries, queue])
        return over_all(
            np.concatenate([mask, far], axis=1), ops.matmul(x, memory.T)
        )

    expected = ops.convert_to_numpy(slow(anchors))
    assert expected[0] == 0.0 and expected[1:].min() > 0.01
    np.testing.assert_allclose(quick(anchors), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        gradient(lambda x: ops.sum(quick(x)), anchors),
        gradient(lambda x: ops.sum(slow(x)), anchors),
        rtol=1e-4,
        atol=2e-6,
    )


def test_loss_with_a_queue_weights_examples_and_keeps_its_config():
    labels, queue_labels, mask, anchors, entries, queue = batch_and_queue(5)
    loss = losses.QueueContrastive(4, 0.3)
    again = losses.QueueContrastive.from_config(loss.get_config())
    arguments = (
        (mask, labels, queue_labels),
        (anchors @ entries.T, anchors, queue),
    )
    each = losses.QueueContrastive(4, 0.3, reduction=None)(*arguments)
    weight = np.array([1.0, 0.0, 2.0, 0.5, 0.0, 1.0], "float32")
    value = again(*arguments, sample_weight=weight)
    # Of the six anchors, one has no positive.
    expected = float(keras.ops.sum(each * weight)) / 5
    assert float(value) == pytest.approx(expected, rel=1e-5)
