"""ALIM with an estimator in the place of a noise rate."""

import keras
import numpy as np
import pytest
import tiny

import alim_keras
from alim_keras import noise_rate
from alim_keras.callbacks import ALIM


class Stub:
    """Answers what it was given, and notes when it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def estimate(self, model, epoch):
        self.asked.append((model, epoch))
        value = self.answers.pop(0)
        if value is None:
            return None
        return noise_rate.Estimate(value, 0.0, 1.0, "stub", "it was told so.")


def fit(estimator, epochs, warmup_epochs, start=0, model=None, **options):
    model = model or tiny.plain(learning_rate=0.02)
    images, candidates, _ = tiny.examples()
    alim = ALIM(noise_rate=estimator, warmup_epochs=warmup_epochs, **options)
    data = tiny.batches(images, candidates, 8)
    epochs = {"initial_epoch": start, "epochs": epochs}
    return model, tiny.fit(model, data, callbacks=[alim], **epochs)


@pytest.mark.parametrize(
    "warmup, asked", [(3, [2, 3, 4]), (0, [0, 1, 2, 3, 4])]
)
def test_is_asked_from_the_end_of_the_warm_up_on(warmup, asked):
    stub = Stub(0.25, 0.5, None, 0.0, 0.75)
    model, history = fit(stub, 5, warmup)
    assert stub.asked == [(model, epoch) for epoch in asked]
    answers = [0.25, 0.5, 0.5, 0.0, 0.75][: len(asked)]
    assert history["noise_rate"] == [0.0] * (5 - len(asked)) + answers
    # A rate of 0 keeps lambda at 0, others let it rise.
    assert history["lambda"][:warmup][:-1] == [0.0] * max(warmup - 1, 0)
    assert [lam > 0 for lam in history["lambda"][5 - len(asked) :]] == [
        rate > 0 for rate in answers
    ]


def test_lambda_is_that_of_the_number_estimated():
    told = fit(0.25, 4, 2)
    estimated = fit(Stub(0.25, 0.25, 0.25), 4, 2)
    tiny.assert_same(tiny.snapshot(told[0]), tiny.snapshot(estimated[0]))
    assert told[1]["lambda"] == estimated[1]["lambda"]
    assert told[1]["noise_rate"] == [0.25] * 4


def test_the_estimate_in_force_is_in_the_checkpoint(tmp_path):
    """Interrupted before an epoch whose estimator has nothing to add."""
    # Its own phi would depend on how many epochs are to come.
    phi = {"pseudo_label_momentum": 0.9}
    whole, _ = fit(Stub(0.25, None, None), 4, 2, **phi)
    cut, _ = fit(Stub(0.25), 2, 2, **phi)
    cut.save_weights(tmp_path / "cut.weights.h5")
    resumed = tiny.plain(learning_rate=0.02)
    resumed.optimizer.build(resumed.trainable_variables)
    resumed.load_weights(tmp_path / "cut.weights.h5")
    assert resumed.pseudo_label_table.noise_rate.numpy() == 0.25
    fit(Stub(None, None), 4, 2, start=2, model=resumed, **phi)
    tiny.assert_same(tiny.snapshot(whole), tiny.snapshot(resumed))


def test_held_out_predicts_in_inference_mode(monkeypatch):
    images, candidates, _ = tiny.examples(10, seed=4)
    data = alim_keras.data.eval_dataset(images, candidates, 3, batch_size=4)
    seen = []

    def estimator(logits, sets):
        seen.append((logits, sets))
        return noise_rate.Estimate(0.1, 0.0, 1.0, "stub", "it was told so.")

    monkeypatch.setattr(noise_rate, "cautious", estimator)
    held_out = noise_rate.HeldOut(data)
    model, history = fit(held_out, 3, 2)
    assert len(seen) == 2
    assert history["noise_rate"][1:] == pytest.approx([0.1, 0.1])
    logits, sets = seen[-1]
    np.testing.assert_array_equal(sets, candidates)
    # The model has not moved since the end of the last epoch.
    got = keras.ops.softmax(logits)
    np.testing.assert_allclose(got, model(images), atol=1e-6)
    # Another model is not answered with the first one's predictions.
    other = tiny.plain(learning_rate=0.02, network=lambda: tiny.backbone())
    other.classifier.bias.assign([5.0, 0.0, 0.0])
    held_out.estimate(other, 0)
    assert (seen[-1][0].argmax(axis=1) == 0).all()
