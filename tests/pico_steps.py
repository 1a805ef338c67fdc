"""Batches and comparisons of whole steps of PiCO and its relatives."""

import numpy as np
import pytest
import tiny

SHAPE = (3, 3, 1)
COUNT, BATCH = 12, 4
OPTIONS = {
    "embedding_dim": 3,
    "queue_size": 10,  # No multiple of the batch.
    "key_momentum": 0.7,
    "prototype_momentum": 0.8,
    "temperature": 0.2,
    "contrastive_weight": 0.5,
    "mixup_weight": 0.8,
    "weight_decay": 1e-2,
    "mean": 0.4,
    "std": 0.25,
    "seed": 3,
}


def batches():
    """Three batches of weak and strong views; the third meets old rows."""
    weak, candidates, _ = tiny.examples(COUNT, seed=5, shape=SHAPE)
    strong = tiny.examples(COUNT, seed=6, shape=SHAPE)[0]
    for index in ([7, 2, 9, 4], [0, 11, 3, 8], [9, 0, 7, 5]):
        index = np.array(index)
        yield weak[index], strong[index], index, candidates[index]


def compare(model, slow, views, index, candidates, atol=5e-5, weight=()):
    """A step of both; compares logs and state. Returns the logs of both."""
    x = dict(zip(("weak", "strong", "weak2"), views), index=index)
    model.reset_metrics()  # Keras 3.13 averages over calls.
    logs = model.train_on_batch(x, candidates, *weight, return_dict=True)
    expected = slow.step(*views, index, candidates, *weight)
    for name in expected.keys() & logs.keys():
        assert logs[name] == pytest.approx(expected[name], abs=atol), name
    assert_equal(model, slow, atol)
    return logs, expected


def assert_equal(model, slow, atol):
    def check(name, got, expected):
        np.testing.assert_allclose(
            got, expected, atol=atol, rtol=0, err_msg=name
        )

    for variable, expected in zip(model.trainable_variables, slow.parameters):
        check(variable.path, variable.numpy(), expected)
    for variable, expected in zip(model.key_encoder.weights, slow.key):
        check(f"key {variable.path}", variable.numpy(), expected)
    check("prototypes", model.prototypes.means.numpy(), slow.prototypes)
    check("queue", model.queue.embeddings.numpy(), slow.queue)
    np.testing.assert_array_equal(model.queue.labels.numpy(), slow.labels)
    check("table", model.pseudo_labels.numpy(), slow.table)
    ratio = model.pseudo_label_table.candidate_ratio.numpy()
    np.testing.assert_allclose(ratio, slow.ratio, rtol=20 * atol)
