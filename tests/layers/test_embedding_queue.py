"""The memory of embeddings: first in, first out."""

import keras
import numpy as np
import pytest

from alim_keras import backend
from alim_keras.layers import EmbeddingQueue


def items(first, last):
    """Rows that name their item: (i, -i), labelled i."""
    number = np.arange(first, last)
    return np.stack([number, -number], axis=1).astype("float32"), number


def fill(size, batches):
    queue = EmbeddingQueue(size, 2)
    start = 0
    for batch in batches:
        queue.enqueue(*items(start, start + batch))
        start += batch
    return queue.embeddings.numpy(), queue.labels.numpy()


def test_a_short_last_batch_and_a_queue_of_no_multiple():
    # Case 20: 15 items through 10 places; 5..14 stay, in order.
    rows, labels = fill(10, [4, 4, 4, 3])
    np.testing.assert_array_equal(labels, np.arange(5, 15))
    np.testing.assert_array_equal(rows, items(5, 15)[0])


def test_a_batch_larger_than_the_queue_keeps_the_newest():
    rows, labels = fill(10, [16])
    np.testing.assert_array_equal(labels, np.arange(6, 16))
    np.testing.assert_array_equal(rows, items(6, 16)[0])


@pytest.mark.parametrize("batches", [[1], [3, 3], [10], [9, 2], [7] * 5])
def test_labels_stay_paired_with_their_rows(batches):
    rows, labels = fill(10, batches)
    old = labels == -1
    assert old.sum() == max(0, 10 - sum(batches))
    np.testing.assert_array_equal(rows[~old, 0], labels[~old])
    np.testing.assert_array_equal(rows[~old, 1], -labels[~old])


def test_it_starts_full_of_unit_rows_of_no_class():
    queue = EmbeddingQueue(50, 8)
    np.testing.assert_array_equal(queue.labels.numpy(), -1)
    rows = queue.embeddings.numpy()
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    # In all directions: no two rows alike, no column of one sign.
    assert np.abs(rows @ rows.T - np.eye(50)).max() < 0.999
    assert np.all((rows > 0).any(axis=0) & (rows < 0).any(axis=0))


def test_weights_are_frozen_and_of_fixed_dtype():
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    try:
        queue = EmbeddingQueue(5, 3)
    finally:
        keras.config.set_dtype_policy(policy)
    assert not queue.trainable_weights
    assert queue.embeddings.dtype == "float32"
    assert queue.labels.dtype == backend.INTEGER
    queue.enqueue(np.ones((2, 3), "float16"), np.array([1, 2], "int32"))
    np.testing.assert_array_equal(queue.labels.numpy(), [-1, -1, -1, 1, 2])


def test_it_serialises():
    queue = EmbeddingQueue(7, 3, name="memory")
    again = EmbeddingQueue.from_config(queue.get_config())
    assert again.size == 7 and again.embedding_dim == 3
    assert again.name == "memory"
    assert [v.shape for v in again.weights] == [v.shape for v in queue.weights]
