"""PiCO's training step against the slow one; its key encoder."""

import keras
import numpy as np
import pico_steps
import pytest
import references_methods
import tiny


def build(**options):
    """A PiCO and its slow twin."""
    model = tiny.pico(
        pico_steps.COUNT,
        network=lambda: tiny.backbone(shape=pico_steps.SHAPE, features=3),
        learning_rate=0.2,
        momentum=0.9,
        **{**pico_steps.OPTIONS, **options},
    )
    return model, references_methods.SlowPiCO(model, 0.2, 0.9)


def run(model, slow, phi=0.9, lam=0.0, norm="onehot", factor=1.0, epoch=2):
    """Three steps of both; compares everything after each."""
    table = model.pseudo_label_table
    table.momentum.assign(phi)
    table.lam.assign(lam)
    table.use_onehot.assign(float(norm == "onehot"))
    table.scale_factor.assign(factor)
    model.epoch.assign(epoch)
    slow.phi, slow.lam, slow.epoch = phi, lam, epoch
    slow.norm, slow.scale_factor = norm, factor
    for weak, strong, index, candidates in pico_steps.batches():
        pico_steps.compare(model, slow, (weak, strong), index, candidates)


CLASSIFIER = {"scores_from": "classifier"}
COMPILED = {**CLASSIFIER, "compile_options": {"jit_compile": False}}


@pytest.mark.parametrize(
    ("options", "state"),
    [
        ({}, {}),
        ({}, {"lam": 0.4, "norm": "scale"}),
        (CLASSIFIER, {"lam": 0.4}),
        (COMPILED, {"lam": 0.3, "norm": "scale", "factor": 0.5, "phi": 0.0}),
        ({"pseudo_label_start": 3}, {}),
        ({"pseudo_label_start": 4}, {}),
        ({"mixup_weight": 0.0, "contrastive_weight": 0.0}, {}),
        # 0: the query encoder as it was when the keys were made, that is
        # before its gradient step. 1: unmoved.
        ({"key_momentum": 0.0}, {}),
        ({"key_momentum": 1.0}, {}),
    ],
)
def test_three_steps_equal_the_slow_ones(options, state):
    model, slow = build(**options)
    run(model, slow, **state)


def test_weights_of_examples_scale_their_losses():
    model, slow = build()
    weight = np.array([2.0, 0.0, 0.5, 1.0], "float32")
    weak, strong, index, candidates = next(pico_steps.batches())
    model.pseudo_label_table.momentum.assign(0.9)
    slow.phi = 0.9
    # Table, prototypes and queue take all examples in.
    pico_steps.compare(
        model, slow, (weak, strong), index, candidates, weight=(weight,)
    )


# The key encoder.


def test_the_key_encoder_starts_equal_to_the_query_encoder():
    model = tiny.pico(batch_norm=True)
    query = model.backbone.weights + model.projection.weights
    key = model.key_encoder.weights
    assert len(query) == len(key) == 10
    for q, k in zip(query, key):
        np.testing.assert_array_equal(q.numpy(), k.numpy())
        assert q is not k


def test_key_batch_normalisation_is_in_training_mode():
    # Case 19, pitfall P3: its own batch statistics, moved by its own views.
    x, y = tiny.batch()
    stream = np.random.default_rng(0)
    strong = stream.uniform(0, 255, x["image"].shape).astype("float32")
    model = tiny.pico(batch_norm=True, key_momentum=1.0)
    body = model.key_encoder.layers[0]
    inner = keras.Model(body.inputs, body.layers[-2].output)
    hidden = inner.predict(model.prepare(strong), verbose=0)
    mean, variance = hidden.mean(axis=0), hidden.var(axis=0)
    model.train_on_batch(
        {"weak": x["image"], "strong": strong, "index": x["index"]}, y
    )
    norm = body.layers[-1]
    # Moving: .9 (start) + .1 (batch).
    np.testing.assert_allclose(norm.moving_mean.numpy(), 0.1 * mean, atol=1e-5)
    np.testing.assert_allclose(
        norm.moving_variance.numpy(), 0.9 + 0.1 * variance, atol=1e-5
    )
    # The keys are made with the batch's statistics.
    normalised = (hidden - mean) / np.sqrt(variance + 1e-5)
    keys = model.key_encoder.layers[1].predict(normalised, verbose=0)
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    np.testing.assert_allclose(
        model.queue.embeddings.numpy()[-6:], keys, atol=1e-4
    )


def test_only_parameters_take_part_in_the_moving_average():
    x, y = tiny.batch()
    model = tiny.pico(batch_norm=True, key_momentum=0.0)
    model.train_on_batch(x, y)
    query = model.backbone.layers[-1].moving_mean.numpy()
    key = model.key_encoder.layers[0].layers[-1].moving_mean.numpy()
    # The query encoder has seen the mixed batch too, the key encoder not.
    assert np.abs(query - key).max() > 1e-4


def test_the_key_encoder_stays_frozen_through_trainable():
    model = tiny.pico()
    count = len(model.trainable_variables)
    model.trainable = False
    model.trainable = True
    assert len(model.trainable_variables) == count


def test_a_frozen_backbone_trains_its_heads():
    x, y = tiny.batch()

    def network():
        frozen = tiny.backbone(batch_norm=True)
        frozen.trainable = False
        return frozen

    model = tiny.pico(network=network)
    assert len(model.trainable_variables) == 6
    before = model.backbone.get_weights()
    kernel = model.classifier.kernel.numpy()
    model.train_on_batch(x, y)
    for old, new in zip(before, model.backbone.get_weights()):
        np.testing.assert_array_equal(old, new)
    assert np.abs(kernel - model.classifier.kernel.numpy()).max() > 0
