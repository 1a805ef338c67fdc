"""A table that keeps the rows of some examples only."""

import keras
import numpy as np
import pytest
from compiling import updating

from alim_keras.layers import PseudoLabelTable
from alim_keras.layers import SparsePseudoLabelTable

COUNT, CLASSES = 10, 6


def make(kind, **options):
    if kind == "dense":
        table = PseudoLabelTable(COUNT, CLASSES, **options)
    else:
        table = SparsePseudoLabelTable(COUNT, CLASSES, 2, 4, **options)
    table.momentum.assign(0.5)
    table.lam.assign(0.7)
    return table


def batches(count):
    stream = np.random.default_rng(0)
    sets = np.zeros((COUNT, CLASSES), "float32")
    sets[np.arange(COUNT), np.arange(COUNT) % CLASSES] = 1.0
    sets[::2, 0] = 1.0
    for _ in range(count):
        index = stream.permutation(COUNT)[:6].astype("int32")
        p = stream.dirichlet(np.ones(CLASSES), 6).astype("float32")
        yield index, p, sets[index]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_shards_together_are_the_whole_table(kind):
    whole = make(kind)
    shards = [make(kind, num_rows=4), make(kind, row_offset=4)]
    assert [len(t.storage[0].numpy()) for t in shards] == [5, 7]
    tables = [whole, *shards]
    steps = [updating(t.refresh, t.weights) for t in tables]
    for index, p, s in batches(12):
        rows, *parts = (
            keras.ops.convert_to_numpy(step(index, p, s)) for step in steps
        )
        for part, kept in zip(parts, (index < 4, index >= 4)):
            np.testing.assert_array_equal(part[kept], rows[kept])
            assert np.isnan(part[~kept]).all()
    dense = whole.pseudo_labels.numpy()
    first, second = (t.pseudo_labels.numpy() for t in shards)
    np.testing.assert_array_equal(first[:4], dense[:4])
    np.testing.assert_array_equal(second[4:], dense[4:])
    # What is not kept is zero, and read as untouched.
    assert not first[4:].any() and not second[:4].any()
    labels, touched = whole.settled()
    assert touched.all()
    for table, kept in zip(shards, (slice(0, 4), slice(4, COUNT))):
        found, known = table.settled()
        np.testing.assert_array_equal(found[kept], labels[kept])
        assert known[kept].all() and known.sum() == table.num_rows
    # Every shard has seen every ratio.
    lam = whole.adaptive_lambda(0.4)
    assert 0.0 < lam < 1.0
    assert [t.adaptive_lambda(0.4) for t in shards] == [lam, lam]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_shard_replaces_its_rows_only(kind):
    table = make(kind, row_offset=3, num_rows=2)
    rows = np.eye(CLASSES, dtype="float32")[[1, 2, 3]]
    table.replace([(np.array([2, 4, 5]), rows, rows)])
    expected = np.zeros((COUNT, CLASSES))
    expected[4, 2] = 1.0
    np.testing.assert_array_equal(table.pseudo_labels.numpy(), expected)
    again = type(table).from_config(table.get_config())
    assert (again.row_offset, again.num_rows) == (3, 2)


@pytest.mark.parametrize(
    "options",
    [{"row_offset": -1}, {"num_rows": 0}, {"num_rows": 11}, {"row_offset": 10}],
)
def test_rows_that_are_not_there_are_refused(options):
    with pytest.raises(ValueError, match="row_offset.*num_rows.*Received"):
        make("dense", **options)
