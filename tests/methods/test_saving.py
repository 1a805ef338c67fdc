"""Saved models: all state, the same numbers, and training goes on."""

import keras
import numpy as np
import pytest
import tiny

import alim_keras

# Keras asks a variable for an array in a way that NumPy 2 warns about.
SAVING_NOISE = pytest.mark.filterwarnings("ignore:__array__ implementation")


@pytest.fixture(scope="module")
def data():
    return tiny.examples(24)


@SAVING_NOISE
def test_a_saved_model_goes_on_as_if_nothing_had_happened(data, tmp_path):
    images, candidates, _ = data

    def train(model, epochs, start):
        tiny.fit(
            model,
            tiny.batches(images, candidates, 6),
            epochs=epochs,
            initial_epoch=start,
            callbacks=[
                alim_keras.callbacks.ALIM(
                    norm="scale", noise_rate=0.4, warmup_epochs=1
                )
            ],
        )

    options = {"mean": (0.5,), "std": (0.2,), "weight_decay": 1e-3}
    options["views"] = alim_keras.augment.Views(seed=3)
    model = tiny.pico(
        batch_norm=True, compile_options=tiny.RARE_SHAPE, **options
    )
    train(model, 2, 0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert type(again) is alim_keras.PiCO
    assert model.name == again.name == "pico"
    tiny.assert_same(tiny.snapshot(model), tiny.snapshot(again))
    np.testing.assert_array_equal(
        model.predict(images, verbose=0), again.predict(images, verbose=0)
    )
    assert len(again.trainable_variables) == len(model.trainable_variables)
    again.run_eagerly = model.run_eagerly
    train(model, 3, 2)
    train(again, 3, 2)
    tiny.assert_same(tiny.snapshot(model), tiny.snapshot(again))
    for a, b in zip(model.optimizer.variables, again.optimizer.variables):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
