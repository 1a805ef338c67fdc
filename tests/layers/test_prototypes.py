"""Class means of the embeddings."""

import numpy as np
import references

from alim_keras.layers import Prototypes


def unit_rows(count, dim, seed):
    rows = np.random.default_rng(seed).standard_normal((count, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(
        "float32"
    )


def test_similarities_are_cosines_to_the_means():
    layer = Prototypes(3, 2)
    layer.means.assign([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    # (.6, .8) against (1, 0), (0, 1) and a class that was never seen.
    np.testing.assert_allclose(
        layer(np.array([[0.6, 0.8]], "float32")), [[0.6, 0.8, 0.0]], rtol=1e-6
    )


def test_before_the_first_batch_all_is_zero():
    layer = Prototypes(3, 4)
    np.testing.assert_array_equal(layer(unit_rows(2, 4, 0)), 0.0)


def test_updates_follow_the_loop():
    layer = Prototypes(4, 5, momentum=0.9)
    means = np.zeros((4, 5))
    for step in range(6):
        q = unit_rows(7, 5, step)
        labels = np.random.default_rng(step).integers(0, 3, 7)
        layer.update(q, labels)
        means = references.prototype_update(means, q, labels, 0.9)
        np.testing.assert_allclose(layer.means.numpy(), means, atol=2e-6)
    # Case 26: class 3 never came, its row is a documented zero.
    np.testing.assert_array_equal(layer.means.numpy()[3], 0.0)


def test_a_class_that_stops_coming_keeps_its_mean():
    layer = Prototypes(2, 3)
    layer.update(unit_rows(2, 3, 0), np.array([0, 1]))
    before = layer.means.numpy()
    layer.update(unit_rows(5, 3, 1), np.zeros(5, "int64"))
    np.testing.assert_allclose(layer.means.numpy()[1], before[1], atol=1e-7)
    assert np.abs(layer.means.numpy()[0] - before[0]).max() > 1e-3


def test_weights_are_frozen_and_float32():
    layer = Prototypes(3, 4, dtype="mixed_float16")
    assert not layer.trainable_weights
    assert layer.means.dtype == "float32"


def test_it_serialises():
    layer = Prototypes(3, 4, momentum=0.5, name="means")
    again = Prototypes.from_config(layer.get_config())
    assert (again.num_classes, again.embedding_dim) == (3, 4)
    assert again.momentum == 0.5 and again.name == "means"
