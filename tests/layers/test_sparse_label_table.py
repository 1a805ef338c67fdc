"""The sparse table against the dense one."""

import keras
import numpy as np
import pytest
from compiling import updating

from alim_keras import backend
from alim_keras.layers import PseudoLabelTable
from alim_keras.layers import SparsePseudoLabelTable

COUNT, CLASSES = 20, 12


def candidates(largest=3, seed=0):
    """Sets of 1 to `largest` classes; both sizes occur."""
    stream = np.random.default_rng(seed)
    sets = np.zeros((COUNT, CLASSES), "float32")
    for row in range(COUNT):
        size = 1 + row % largest
        sets[row, stream.choice(CLASSES, size, replace=False)] = 1.0
    return sets


def pair(sets, num_others, **values):
    """A dense and a sparse table with the same scalars."""
    largest = int(sets.sum(axis=1).max())
    dense = PseudoLabelTable(COUNT, CLASSES)
    sparse = SparsePseudoLabelTable(COUNT, CLASSES, largest, num_others)
    for table in (dense, sparse):
        for name, value in values.items():
            getattr(table, name).assign(value)
    return dense, sparse


def steps(count, batch=5, seed=1, sharpness=0.3):
    """Batches of rows and random probabilities."""
    stream = np.random.default_rng(seed)
    for _ in range(count):
        index = stream.permutation(COUNT)[:batch]
        p = stream.dirichlet(np.full(CLASSES, sharpness), batch)
        yield index, p.astype("float32")


def outside_labels(sets, only):
    """Scores whose largest entry outside the set is one of a few classes."""
    stream = np.random.default_rng(2)
    for index, p in steps(80, sharpness=1.0):
        outside = p * (1 - sets[index])
        for row, place in enumerate(index):
            allowed = np.flatnonzero(sets[place] == 0)[:only]
            best = stream.choice(allowed)
            outside[row] *= 0.5
            outside[row, best] = 1.0
        p = (p * sets[index] + outside).astype("float32")
        yield index, p / p.sum(axis=1, keepdims=True)


def compress(row, members, slots):
    """Keeps the set and the strongest others, spreads the rest."""
    rest = np.lexsort((-row, -members))[slots:]
    out = np.array(row, "float64")
    out[rest] = out[rest].sum() / max(len(rest), 1)
    return out


@pytest.mark.parametrize(
    "num_others, jit_compile",
    [
        pytest.param(
            *(3, None),
            marks=pytest.mark.tensorflow("on JAX operations compile singly"),
        ),
        (3, False),
        (3, True),
        (5, False),
    ],
)
def test_it_is_the_dense_table_while_k_classes_suffice(num_others, jit_compile):
    # Onehot with lambda 1: 80 steps onto 3 classes outside each set.
    sets = candidates()
    dense, sparse = pair(sets, num_others, momentum=0.8, lam=1.0)
    refresh = sparse.refresh
    if jit_compile is not None:
        refresh = updating(refresh, sparse.weights, jit_compile)
    exact = updating(dense.refresh, dense.weights)
    for index, p in outside_labels(sets, only=3):
        rows = exact(index, p, sets[index])
        got = refresh(index, p, sets[index])
        np.testing.assert_allclose(got, rows, atol=1e-6)
    expected = dense.table.numpy()
    assert (((expected > 0) & (sets == 0)).sum(axis=1) == 3).all()
    got = sparse.numpy()
    np.testing.assert_allclose(got, expected, atol=1e-6)
    np.testing.assert_allclose(got.sum(axis=1), 1.0, atol=1e-6)
    # What was never touched is exactly zero: nothing is spread.
    np.testing.assert_array_equal(got == 0, expected == 0)


@pytest.mark.parametrize("norm", ["onehot", "scale"])
@pytest.mark.parametrize("num_others", [1, 2, 4])
def test_the_error_is_bounded_where_k_does_not_suffice(num_others, norm):
    sets = candidates()
    phi = 0.9
    dense, sparse = pair(
        sets,
        num_others,
        momentum=phi,
        lam=0.8,
        use_onehot=float(norm == "onehot"),
    )
    slots = 3 + num_others
    bound = np.zeros(COUNT)

    def step(index, p, s):
        before = sparse.rows(index, s)
        labels = sparse.labels_from(index, p, s)
        moved = phi * before + (1 - phi) * labels
        sparse.refresh(index, p, s)
        return moved, sparse.rows(index, s), dense.refresh(index, p, s)

    step = updating(step, dense.weights + sparse.weights)
    for index, p in steps(60):
        found = step(index, p, sets[index])
        moved, got, exact = map(keras.ops.convert_to_numpy, found)
        # One step is what the loop says.
        slow = np.array(
            [compress(r, s, slots) for r, s in zip(moved, sets[index])]
        )
        np.testing.assert_allclose(got, slow, atol=1e-6)
        # The candidates and the sum of all others are exact.
        inside = sets[index] > 0
        np.testing.assert_allclose(got[inside], exact[inside], atol=1e-6)
        np.testing.assert_allclose(got.sum(axis=1), 1.0, atol=1e-6)
        # What a step gives up fades by phi in each later one.
        given_up = np.abs(moved - slow).sum(axis=1)
        bound[index] = phi * bound[index] + given_up
        error = np.abs(got - exact).sum(axis=1)
        assert (error <= bound[index] + 1e-5).all()
        # And never more than twice what lies outside the set.
        outside = (exact * (1 - sets[index])).sum(axis=1)
        assert (error <= 2 * outside + 1e-5).all()
        assert (np.abs(got - exact).max(axis=1) <= outside + 1e-5).all()
    # The test would be empty if nothing had been given up.
    assert bound.max() > 0.01


def test_a_step_by_hand():
    # Six classes, set {1}, k 1: two slots. Lambda 1, Scale: the label is P.
    # Row: .5 (0, 1, 0, 0, 0, 0) + .5 P = (.05, .75, .1, .04, .03, .03); the
    # best other is class 2, the remainder .15 over four classes.
    table = SparsePseudoLabelTable(3, 6, max_set_size=1, num_others=1)
    table.momentum.assign(0.5)
    table.lam.assign(1.0)
    table.use_onehot.assign(0.0)
    p = np.array([[0.1, 0.5, 0.2, 0.08, 0.06, 0.06]], "float32")
    s = np.eye(6, dtype="float32")[[1]]
    rows = table.refresh(np.array([2]), p, s)
    np.testing.assert_allclose(
        rows, [[0.05, 0.75, 0.1, 0.04, 0.03, 0.03]], rtol=1e-6
    )
    np.testing.assert_allclose(table.values.numpy()[2], [0.75, 0.1], rtol=1e-6)
    np.testing.assert_array_equal(table.classes.numpy()[2], [1, 2])
    assert table.remainder.numpy()[2] == pytest.approx(0.15, rel=1e-6)
    spread = [[0.0375, 0.75, 0.1, 0.0375, 0.0375, 0.0375]]
    np.testing.assert_allclose(table.rows([2], s), spread, rtol=1e-6)
    np.testing.assert_allclose(table.dense_rows(2, 3), spread, rtol=1e-6)
    np.testing.assert_array_equal(table.dense_rows(0, 2), np.zeros((2, 6)))
    labels, decided = table.settled()
    assert labels.tolist() == [0, 0, 1] and decided.tolist() == [0, 0, 1]


def test_a_set_that_is_too_large_is_not_answered():
    sets = np.ones((2, CLASSES), "float32")
    sets[1, 2:] = 0
    table = SparsePseudoLabelTable(4, CLASSES, 2)
    rows = keras.ops.convert_to_numpy(table.rows([0, 1], sets))
    assert np.isnan(rows[0]).all()
    np.testing.assert_array_equal(rows[1], sets[1] / 2)


def test_an_index_outside_the_table_is_not_answered():
    # Under XLA, which clamps it; TensorFlow's own gather raises on a CPU.
    table = SparsePseudoLabelTable(4, CLASSES, 3)
    read = backend.compiled(table.rows, table.weights, jit_compile=True)
    rows = read(np.array([-1, 4, 0]), candidates()[:3])
    rows = keras.ops.convert_to_numpy(rows)
    assert np.isnan(rows[:2]).all() and np.isfinite(rows[2]).all()


def test_class_numbers_above_2048_are_kept():
    table = SparsePseudoLabelTable(2, 5000, 1, 1)
    table.momentum.assign(0.5)
    table.lam.assign(1.0)
    sets = np.zeros((1, 5000), "float32")
    sets[0, 4099] = 1
    p = np.full((1, 5000), 1e-6, "float32")
    p[0, 2049] = 0.9
    table.refresh(np.array([1]), p, sets)
    row = table.dense_rows(1, 2)[0]
    assert np.flatnonzero(row).tolist() == [2049, 4099]
    assert table.classes.dtype == "float32"
    small = SparsePseudoLabelTable(1, 2048, 1, 1)
    last = np.eye(2048, dtype="float32")[[2047]]
    small.replace([([0], last, last)])
    assert small.classes.dtype == "float16"
    assert small.settled()[0].tolist() == [2047]


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_set_size", 0), ("max_set_size", 13), ("num_others", 0)],
)
def test_arguments_out_of_range_are_named(name, value):
    with pytest.raises(ValueError, match=f"{name}.*Received: {name}="):
        SparsePseudoLabelTable(COUNT, CLASSES, **{name: value})
