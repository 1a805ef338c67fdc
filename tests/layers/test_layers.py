"""The layers: memories, and the tables of pseudo labels, dense and sparse."""

import keras
import numpy as np
import pytest
from compiling import updating
from numpy.testing import assert_allclose
from numpy.testing import assert_array_equal

from alim_keras import backend
from alim_keras.layers import EmbeddingQueue
from alim_keras.layers import Prototypes
from alim_keras.layers import PseudoLabelTable
from alim_keras.layers import SparsePseudoLabelTable


def items(first, last):
    """Rows that name their item: (i, -i), labelled i."""
    number = np.arange(first, last)
    return np.stack([number, -number], axis=1).astype("float32"), number


@pytest.mark.parametrize(
    "batches",
    [
        # Case 20: a short last batch, and a queue of no multiple.
        [4, 4, 4, 3],
        # A batch larger than the queue.
        [16],
        *([1], [3, 3], [10], [9, 2], [7] * 5),
    ],
)
def test_the_queue_keeps_the_newest_in_order(batches):
    queue, start = EmbeddingQueue(10, 2), 0
    for batch in batches:
        queue.enqueue(*items(start, start + batch))
        start += batch
    kept = min(start, 10)
    labels = queue.labels.numpy()
    assert_array_equal(labels[: 10 - kept], -1)
    expected, numbers = items(start - kept, start)
    assert_array_equal(labels[10 - kept :], numbers)
    rows = queue.embeddings.numpy()[10 - kept :]
    assert_array_equal(rows, expected)


def test_the_queue_starts_full_of_unit_rows_of_no_class():
    queue = EmbeddingQueue(50, 8)
    assert_array_equal(queue.labels.numpy(), -1)
    rows = queue.embeddings.numpy()
    assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    # In all directions: no two rows alike, no column of one sign.
    assert np.abs(rows @ rows.T - np.eye(50)).max() < 0.999
    assert np.all((rows > 0).any(axis=0) & (rows < 0).any(axis=0))


SIZES = {"num_examples": 4, "num_classes": 30}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (EmbeddingQueue, {"size": 7, "embedding_dim": 3}),
        (Prototypes, {"num_classes": 3, "embedding_dim": 4, "momentum": 0.5}),
        (PseudoLabelTable, SIZES),
        (SparsePseudoLabelTable, {**SIZES, "max_set_size": 7, "num_others": 2}),
    ],
)
def test_layers_are_frozen_and_serialise(kind, options):
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    try:
        layer = kind(**options, name="memory")
    finally:
        keras.config.set_dtype_policy(policy)
    assert not layer.trainable_weights
    if kind is not SparsePseudoLabelTable:
        dtypes = {weight.dtype for weight in layer.weights}
        assert dtypes <= {"float32", backend.INTEGER}
    config = layer.get_config()
    assert config.items() >= {**options, "name": "memory"}.items()
    again = kind.from_config(config)
    assert again.get_config() == config
    assert [v.shape for v in again.weights] == [v.shape for v in layer.weights]


def test_half_precision_goes_into_float32_and_integers():
    queue = EmbeddingQueue(5, 3)
    queue.enqueue(np.ones((2, 3), "float16"), np.array([1, 2], "int32"))
    assert_array_equal(queue.labels.numpy(), [-1, -1, -1, 1, 2])
    table = PseudoLabelTable(4, 3)
    p, s = np.eye(3, dtype="float16")[:1], np.ones((1, 3), "float16")
    table.refresh(np.array([1]), p, s)
    assert table.table.dtype == "float32"


# The table.

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
    assert_array_equal(layer.rows(INDEX, S), [[0, 0.5, 0.5], [0.5, 0.5, 0]])
    # Reading leaves no trace.
    assert_array_equal(layer.table.numpy(), 0.0)


def test_a_refresh_by_hand():
    # phi .9, Onehot, lambda 0. Row 4: S P = (0, .2, .1), label 1:
    # .9 (0, .5, .5) + .1 (0, 1, 0). Row 1: S P = (.3, .3, 0), a tie:
    # .9 (.5, .5, 0) + .1 (.5, .5, 0).
    layer = table(momentum=0.9)
    assert np.isnan(layer.candidate_ratio.numpy()).all()
    expected = [[0, 0.55, 0.45], [0.5, 0.5, 0]]
    rows = layer.refresh(INDEX, P, S)
    ratio = layer.candidate_ratio.numpy()
    # .2 / .7 and .3 / .4.
    assert_allclose(ratio[INDEX], [2 / 7, 0.75], rtol=1e-6)
    assert np.isnan(ratio[[0, 2, 3, 5]]).all()
    assert_allclose(rows, expected, rtol=1e-6)
    assert_allclose(layer.table.numpy()[INDEX], expected, rtol=1e-6)
    assert_array_equal(layer.table.numpy()[[0, 2, 3, 5]], 0.0)
    # Again: .9 * .55 + .1 = .595, .9 * .45 = .405.
    rows = layer.refresh(INDEX, P, S)
    assert_allclose(rows, [[0, 0.595, 0.405], [0.5, 0.5, 0]], rtol=1e-6)
    # A tie decides for no class, nor does an untouched row.
    labels, decided = layer.settled()
    assert labels[4] == 1
    assert decided.tolist() == [False] * 4 + [True, False]


@pytest.mark.parametrize("how", ["inactive", "update_in_step"])
def test_rows_can_be_held(how):
    layer = table(momentum=0.5)
    layer.refresh(INDEX, P, S)
    before = layer.table.numpy()
    layer.forget_ratios()
    assert np.isnan(layer.candidate_ratio.numpy()).all()
    if how == "update_in_step":
        layer.update_in_step.assign(0.0)
    rows = layer.refresh(INDEX, P[::-1], S, active=how != "inactive")
    assert_array_equal(rows, before[INDEX])
    assert_array_equal(layer.table.numpy(), before)
    # The ratios are recorded all the same: .3 / .3 and .7 / .1.
    ratio = layer.candidate_ratio.numpy()
    assert_allclose(ratio[INDEX], [4 / 3, 7.0], rtol=1e-6)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_compiled_refresh_is_the_same(jit_compile):
    first, second = table(momentum=0.9, lam=0.3), table(momentum=0.9, lam=0.3)
    compiled = updating(second.refresh, second.weights, jit_compile)
    for p in (P, P[::-1].copy()):
        eager = first.refresh(INDEX, p, S)
        rows = compiled(INDEX, p, S)
        assert_allclose(rows, eager, rtol=1e-6)
    for a, b in zip(first.weights, second.weights):
        assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)
    # A new lambda reaches a function that is compiled already (case 35).
    second.lam.assign(1.0)
    second.momentum.assign(0.0)
    rows = compiled(INDEX, P, S)
    assert_array_equal(rows, [[1, 0, 0], [0, 0, 1]])


# The sparse table against the dense one.

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
        p = np.where(sets[index] == 0, 0.5 * p, p)
        for row, place in enumerate(index):
            allowed = np.flatnonzero(sets[place] == 0)[:only]
            p[row, stream.choice(allowed)] = 1.0
        yield index, p / p.sum(axis=1, keepdims=True)


def compress(row, members, slots):
    """Keeps the set and the strongest others, spreads the rest."""
    rest = np.lexsort((-row, -members))[slots:]
    out = np.array(row, "float64")
    out[rest] = out[rest].sum() / max(len(rest), 1)
    return out


ON_TENSORFLOW = pytest.mark.tensorflow("on JAX operations compile singly")
EAGER = pytest.param(3, None, marks=ON_TENSORFLOW)


@pytest.mark.parametrize(
    "num_others, jit_compile", [EAGER, (3, False), (3, True), (5, False)]
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
        assert_allclose(got, rows, atol=1e-6)
    expected = dense.table.numpy()
    assert (((expected > 0) & (sets == 0)).sum(axis=1) == 3).all()
    got = sparse.numpy()
    assert_allclose(got, expected, atol=1e-6)
    assert_allclose(got.sum(axis=1), 1.0, atol=1e-6)
    # What was never touched is exactly zero: nothing is spread.
    assert_array_equal(got == 0, expected == 0)


@pytest.mark.parametrize("norm", ["onehot", "scale"])
@pytest.mark.parametrize("num_others", [1, 2, 4])
def test_the_error_is_bounded_where_k_does_not_suffice(num_others, norm):
    sets, phi, bound = candidates(), 0.9, np.zeros(COUNT)
    scalars = {"momentum": phi, "lam": 0.8}
    scalars["use_onehot"] = float(norm == "onehot")
    dense, sparse = pair(sets, num_others, **scalars)
    slots = 3 + num_others

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
        assert_allclose(got, slow, atol=1e-6)
        # The candidates and the sum of all others are exact.
        inside = sets[index] > 0
        assert_allclose(got[inside], exact[inside], atol=1e-6)
        assert_allclose(got.sum(axis=1), 1.0, atol=1e-6)
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
    assert_allclose(rows, [[0.05, 0.75, 0.1, 0.04, 0.03, 0.03]], rtol=1e-6)
    assert_allclose(table.values.numpy()[2], [0.75, 0.1], rtol=1e-6)
    assert_array_equal(table.classes.numpy()[2], [1, 2])
    assert table.remainder.numpy()[2] == pytest.approx(0.15, rel=1e-6)
    spread = [[0.0375, 0.75, 0.1, 0.0375, 0.0375, 0.0375]]
    assert_allclose(table.rows([2], s), spread, rtol=1e-6)
    assert_allclose(table.dense_rows(2, 3), spread, rtol=1e-6)
    assert_array_equal(table.dense_rows(0, 2), np.zeros((2, 6)))
    labels, decided = table.settled()
    assert labels.tolist() == [0, 0, 1] and decided.tolist() == [0, 0, 1]


def test_what_does_not_fit_is_not_answered():
    # A set that is too large.
    sets = np.ones((2, CLASSES), "float32")
    sets[1, 2:] = 0
    table = SparsePseudoLabelTable(4, CLASSES, 2)
    rows = keras.ops.convert_to_numpy(table.rows([0, 1], sets))
    assert np.isnan(rows[0]).all()
    assert_array_equal(rows[1], sets[1] / 2)
    # An index outside the table. Under XLA, which clamps it; TensorFlow's own
    # gather raises on a CPU.
    table = SparsePseudoLabelTable(4, CLASSES, 3)
    read = backend.compiled(table.rows, table.weights, jit_compile=True)
    rows = read(np.array([-1, 4, 0]), candidates()[:3])
    rows = keras.ops.convert_to_numpy(rows)
    assert np.isnan(rows[:2]).all() and np.isfinite(rows[2]).all()
    # Arguments.
    for name, value in (("max_set_size", 0), ("max_set_size", 13)):
        with pytest.raises(ValueError, match=f"{name}.*Received: {name}="):
            SparsePseudoLabelTable(COUNT, CLASSES, **{name: value})
    with pytest.raises(ValueError, match="Received: num_others=0"):
        SparsePseudoLabelTable(COUNT, CLASSES, num_others=0)


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
