"""The table of pseudo labels."""

import numpy as np
import pytest
from compiling import updating

from alim_keras.layers import PseudoLabelTable

P = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]], "float32")
S = np.array([[0.0, 1.0, 1.0], [1.0, 1.0, 0.0]], "float32")
INDEX = np.array([4, 1])


def table(**values):
    layer = PseudoLabelTable(6, 3)
    for name, value in values.items():
        getattr(layer, name).assign(value)
    return layer


def test_an_untouched_row_is_uniform_over_its_set():
    layer = table()
    np.testing.assert_array_equal(
        layer.rows(INDEX, S), [[0, 0.5, 0.5], [0.5, 0.5, 0]]
    )
    # Reading leaves no trace.
    np.testing.assert_array_equal(layer.table.numpy(), 0.0)


def test_a_refresh_by_hand():
    # phi .9, Onehot, lambda 0. Row 4: S P = (0, .2, .1), label 1:
    # .9 (0, .5, .5) + .1 (0, 1, 0). Row 1: S P = (.3, .3, 0), a tie:
    # .9 (.5, .5, 0) + .1 (.5, .5, 0).
    layer = table(momentum=0.9)
    expected = [[0, 0.55, 0.45], [0.5, 0.5, 0]]
    rows = layer.refresh(INDEX, P, S)
    np.testing.assert_allclose(rows, expected, rtol=1e-6)
    np.testing.assert_allclose(layer.table.numpy()[INDEX], expected, rtol=1e-6)
    np.testing.assert_array_equal(layer.table.numpy()[[0, 2, 3, 5]], 0.0)
    # Again: .9 * .55 + .1 = .595, .9 * .45 = .405.
    rows = layer.refresh(INDEX, P, S)
    np.testing.assert_allclose(
        rows, [[0, 0.595, 0.405], [0.5, 0.5, 0]], rtol=1e-6
    )
    # A tie decides for no class, nor does an untouched row.
    labels, decided = layer.settled()
    assert labels[4] == 1
    assert decided.tolist() == [False] * 4 + [True, False]


def test_the_candidate_ratio_is_recorded():
    layer = table()
    assert np.isnan(layer.candidate_ratio.numpy()).all()
    layer.refresh(INDEX, P, S)
    ratio = layer.candidate_ratio.numpy()
    # .2 / .7 and .3 / .4.
    np.testing.assert_allclose(ratio[INDEX], [2 / 7, 0.75], rtol=1e-6)
    assert np.isnan(ratio[[0, 2, 3, 5]]).all()
    layer.forget_ratios()
    assert np.isnan(layer.candidate_ratio.numpy()).all()


@pytest.mark.parametrize("how", ["inactive", "update_in_step"])
def test_rows_can_be_held(how):
    layer = table(momentum=0.5)
    layer.refresh(INDEX, P, S)
    before = layer.table.numpy()
    layer.forget_ratios()
    if how == "update_in_step":
        layer.update_in_step.assign(0.0)
    rows = layer.refresh(INDEX, P[::-1], S, active=how != "inactive")
    np.testing.assert_array_equal(rows, before[INDEX])
    np.testing.assert_array_equal(layer.table.numpy(), before)
    # The ratios are recorded all the same: .3 / .3 and .7 / .1.
    np.testing.assert_allclose(
        layer.candidate_ratio.numpy()[INDEX], [4 / 3, 7.0], rtol=1e-6
    )


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_compiled_refresh_is_the_same(jit_compile):
    first, second = table(momentum=0.9, lam=0.3), table(momentum=0.9, lam=0.3)
    compiled = updating(second.refresh, second.weights, jit_compile)
    for p in (P, P[::-1].copy()):
        eager = first.refresh(INDEX, p, S)
        rows = compiled(INDEX, p, S)
        np.testing.assert_allclose(rows, eager, rtol=1e-6)
    for a, b in zip(first.weights, second.weights):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)
    # A new lambda reaches a function that is compiled already (case 35).
    second.lam.assign(1.0)
    second.momentum.assign(0.0)
    rows = compiled(INDEX, P, S)
    np.testing.assert_array_equal(rows, [[1, 0, 0], [0, 0, 1]])
