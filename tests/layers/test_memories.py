"""The memory of embeddings, the class means, and what layers have in common."""

import keras
import numpy as np
import pytest

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
    np.testing.assert_array_equal(labels[: 10 - kept], -1)
    expected, numbers = items(start - kept, start)
    np.testing.assert_array_equal(labels[10 - kept :], numbers)
    rows = queue.embeddings.numpy()[10 - kept :]
    np.testing.assert_array_equal(rows, expected)


def test_the_queue_starts_full_of_unit_rows_of_no_class():
    queue = EmbeddingQueue(50, 8)
    np.testing.assert_array_equal(queue.labels.numpy(), -1)
    rows = queue.embeddings.numpy()
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    # In all directions: no two rows alike, no column of one sign.
    assert np.abs(rows @ rows.T - np.eye(50)).max() < 0.999
    assert np.all((rows > 0).any(axis=0) & (rows < 0).any(axis=0))


LAYERS = [
    (EmbeddingQueue, {"size": 7, "embedding_dim": 3}),
    (Prototypes, {"num_classes": 3, "embedding_dim": 4, "momentum": 0.5}),
    (PseudoLabelTable, {"num_examples": 4, "num_classes": 3}),
    (
        SparsePseudoLabelTable,
        {
            "num_examples": 4,
            "num_classes": 30,
            "max_set_size": 7,
            "num_others": 2,
        },
    ),
]


@pytest.mark.parametrize(("kind", "options"), LAYERS)
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
    np.testing.assert_array_equal(queue.labels.numpy(), [-1, -1, -1, 1, 2])
    table = PseudoLabelTable(4, 3)
    p, s = np.eye(3, dtype="float16")[:1], np.ones((1, 3), "float16")
    table.refresh(np.array([1]), p, s)
    assert table.table.dtype == "float32"
