"""Weights of candidates in the formulas: Eq. 3 to 6, tables, losses."""

import keras
import numpy as np
import pytest
import references
import tiny

from alim_keras import layers
from alim_keras import losses
from alim_keras import metrics
from alim_keras import ops
from alim_keras.methods.irnet import missing_label


def numpy(x):
    return keras.ops.convert_to_numpy(x)


def weighted(batch, classes, seed):
    """Probabilities, and sets whose candidates weigh 1, less or little."""
    p, s = tiny.grid(batch, classes, seed)
    stream = np.random.default_rng(seed + 100)
    return p, s * stream.choice([1, 0.5, 0.25, 1e-3], s.shape).astype("float32")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lam", [0.0, 0.3, 1.0])
def test_pseudo_labels_equal_the_loop(seed, lam):
    p, s = weighted(12, 4, seed)
    for options in (("onehot", 1.0), ("scale", 1.0), ("scale", 0.5)):
        slow = references.pseudo_labels(p, s, lam, *options)
        ours = ops.pseudo_labels(p, s, lam, *options)
        np.testing.assert_allclose(ours, slow, atol=2e-6)
    start = s / s.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ops.uniform_over_candidates(s), start, rtol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_the_ratio_is_where_the_label_leaves_its_set(seed):
    p, s = weighted(40, 4, seed)
    slow = references.candidate_ratio(p, s)
    ratio = numpy(ops.candidate_ratio(p, s))
    full = s.min(axis=1) > 0
    assert np.isinf(ratio[full]).all() and np.isfinite(ratio[~full]).all()
    # One that no lambda can move is large.
    never = ~full & np.isinf(slow)
    assert never.any() and (ratio[never] > 1e3).all()
    some = ~full & ~never & (slow < 1e3)
    np.testing.assert_allclose(ratio[some], slow[some], rtol=1e-3)
    for lam in (0.05, 0.2, 0.7):
        label = numpy(ops.pseudo_labels(p, s, lam)).argmax(axis=1)
        leaves = s[np.arange(len(s)), label] == 0
        sure = np.abs(ratio - lam) > 1e-4
        assert (leaves == (ratio < lam))[sure].all()


def test_ratio_by_hand():
    p, s = [[0.4, 0.5, 0.1]], [[0.5, 0.0, 1.0]]
    # .5 * .4 / (.5 - .5 * .4) = .2 / .3, and 1 * .1 / .5.
    np.testing.assert_allclose(ops.candidate_ratio(p, s), [2 / 3], rtol=1e-6)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_tables_start_and_move_by_the_weights(is_sparse):
    p, s = weighted(12, 6, 3)
    s[0], s[1] = [0.5, 0, 0, 0, 0, 1], [0.001, 0.002, 0.001, 0, 0, 0]
    largest = int((s > 0).sum(axis=1).max())
    table = layers.PseudoLabelTable(12, 6)
    if is_sparse:
        table = layers.SparsePseudoLabelTable(12, 6, largest, 6)
    index, start = np.arange(12), s / s.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(table.rows(index, s), start, rtol=1e-6)
    factor = np.linspace(0.1, 0.7, 12)
    table.lam_factor.assign(factor)
    table.lam.assign(0.5)
    table.momentum.assign(0.75)
    table.use_onehot.assign(0.0)
    table.refresh(index, p, s)
    lam = 0.5 * factor[:, None]
    moved = references.pseudo_labels(p, s, lam, "scale")
    wanted = 0.75 * start + 0.25 * moved
    np.testing.assert_allclose(table.rows(index, s), wanted, atol=1e-6)
    ratio = numpy(table.candidate_ratio)
    np.testing.assert_allclose(ratio, ops.candidate_ratio(p, s), rtol=1e-6)


def test_the_sparse_table_keeps_light_candidates():
    # The candidate of weight .001 has less than any class outside.
    s = np.array([[0.001, 1, 0, 0, 0, 0, 0, 0]], "float32")
    p = np.array([[0.02, 0.1, 0.3, 0.2, 0.1, 0.1, 0.1, 0.08]], "float32")
    table = layers.SparsePseudoLabelTable(1, 8, 2, 1)
    table.lam.assign(1.0)
    table.momentum.assign(0.0)
    table.use_onehot.assign(0.0)
    table.refresh(np.arange(1), p, s)
    rows = numpy(table.rows(np.arange(1), s))[0]
    np.testing.assert_allclose(rows[:3], p[0, :3], rtol=1e-5)


def test_metrics_count_members():
    s = [[0.2, 0.0, 1.0], [0.0, 0.5, 0.0]]
    p = [[0.6, 0.1, 0.3], [0.5, 0.3, 0.2]]
    assert numpy(metrics.covering(s, p)).tolist() == [1.0, 0.0]
    # .6 / .9, whatever the weights are.
    share = metrics.approximated(s, p)
    np.testing.assert_allclose(share, [2 / 3, 0], rtol=1e-6)


def test_losses_by_hand():
    s, p = np.array([[[0.5, 0.0, 1.0]], [[0.2, 0.5, 0.3]]], "float32")
    # -log(.5 * .2 + .3), from probabilities and from logits.
    expected = -np.log(0.4)
    for loss, pred in (
        (losses.CandidateCrossentropy(), p),
        (losses.CandidateCrossentropy(from_logits=True), np.log(p)),
    ):
        np.testing.assert_allclose(loss(s, pred), expected, rtol=1e-5)
    value = losses.candidate_exponential(s, p)
    np.testing.assert_allclose(value, np.exp(-0.4), rtol=1e-6)
    # -log(1 - .5): a candidate of any weight is none outside.
    value = losses.non_candidate_log_loss(s, p)
    np.testing.assert_allclose(value, np.log(2), rtol=1e-5)
    # The weights hold S already: .2 * .5 + .8 * .5 and 2 * 1 * .5.
    half = np.full((1, 3), 0.5, "float32")
    value = losses.leveraged([[0.2, 1.0, 0.8]], s, half, half, 2.0)
    np.testing.assert_allclose(value, 1.5, rtol=1e-6)
    # .5 * .2 and .3 of .4; the only class outside.
    value = layers.LeveragedWeights(1, 3).refresh(np.arange(1), p, s)
    np.testing.assert_allclose(value, [[0.25, 1.0, 0.75]], rtol=1e-6)


def test_a_light_candidate_is_no_missing_label():
    first, second = [[0.6, 0.3, 0.1]], [[0.5, 0.4, 0.1]]
    label, noisy = missing_label(first, second, [[0.1, 0.0, 1.0]], 0.1)
    assert numpy(label).tolist() == [1]
    assert numpy(noisy).tolist() == [True]  # .3 > .1 + .1
