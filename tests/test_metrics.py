"""Metrics that look at candidate sets."""

import keras
import numpy as np
import pytest

from alim_keras import metrics

KINDS = (
    metrics.CandidateAccuracy,
    metrics.CoveringRate,
    metrics.ApproximatedAccuracy,
)
# Case 84 of the case log.
P = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]]
S = [[1, 1, 0], [1, 0, 1]]


def value(kind, y_true, y_pred, **options):
    metric = kind()
    metric.update_state(y_true, y_pred, **options)
    return float(metric.result())


def test_metrics_by_hand():
    # .6 is in its set, .5 is not.
    assert value(metrics.CoveringRate, S, P) == 0.5
    # (.6 / (.6 + .3) + 0) / 2
    found = value(metrics.ApproximatedAccuracy, S, P)
    assert found == pytest.approx(1 / 3, abs=1e-6)
    # Case 27: Keras's own metric takes the first of the set only.
    y, p = [[0, 1, 1]], [[0.1, 0.2, 0.7]]
    assert value(metrics.CandidateAccuracy, y, p) == 1.0
    assert value(keras.metrics.CategoricalAccuracy, y, p) == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_metrics_add_up_over_batches_and_weigh_examples(kind):
    metric = kind()
    metric.update_state(S[:1], P[:1])
    metric.update_state(S[1:], P[1:])
    assert float(metric.result()) == pytest.approx(value(kind, S, P))
    # All the weight on the first row.
    first = value(kind, S[:1], P[:1])
    assert value(kind, S, P, sample_weight=[3.0, 0.0]) == pytest.approx(first)
    metric.reset_state()
    metric.update_state(S[:1], P[:1])
    assert float(metric.result()) == pytest.approx(first)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_metrics_are_finite_for_a_set_without_probability(kind, dtype):
    p = np.array([[1.0, 0.0], [0.0, 0.0]], dtype)
    s = np.array([[0, 1], [0, 1]], "bool")
    assert value(kind, s, p) == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_metrics_serialise(kind):
    names = "candidate_accuracy", "covering_rate", "approximated_accuracy"
    assert kind().name == names[KINDS.index(kind)]
    metric = kind(name="mine")
    config = keras.saving.serialize_keras_object(metric)
    again = keras.saving.deserialize_keras_object(config)
    assert type(again) is kind and again.name == "mine"
    again.update_state(S, P)
    assert float(again.result()) == pytest.approx(value(kind, S, P))
