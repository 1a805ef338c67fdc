"""The moving-average copy of the encoder."""

import keras
import numpy as np
import tiny


def test_the_key_encoder_starts_equal_to_the_query_encoder():
    model = tiny.pico(batch_norm=True)
    query = model.backbone.weights + model.projection.weights
    key = model.key_encoder.weights
    assert len(query) == len(key) == 10
    for q, k in zip(query, key):
        np.testing.assert_array_equal(q.numpy(), k.numpy())
        assert q is not k


def test_the_key_encoder_takes_no_gradient():
    model = tiny.pico(batch_norm=True)
    trained = {id(v) for v in model.trainable_variables}
    assert not trained & {id(v) for v in model.key_encoder.variables}
    assert len(trained) == 10
    model.train_on_batch(*tiny.batch())
    # A step count, a learning rate and one velocity for each.
    assert len(model.optimizer.variables) == 2 + 10


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
