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


@SAVING_NOISE
def test_weights_alone_hold_all_state(tmp_path):
    # Case 35: marker values through .weights.h5.
    model = tiny.pico()
    table = model.pseudo_label_table
    markers = [
        model.epoch,
        model.prototypes.means,
        model.queue.embeddings,
        model.queue.labels,
        *table.weights,
    ]
    for number, variable in enumerate(markers):
        variable.assign(np.full(variable.shape, number + 2))
    path = tmp_path / "model.weights.h5"
    model.save_weights(path)
    again = tiny.pico()
    again.load_weights(path)
    tiny.assert_same(tiny.snapshot(model), tiny.snapshot(again))


@SAVING_NOISE
@pytest.mark.parametrize("mean", [(0.5,), np.array([0.5]), np.float32(0.5)])
def test_any_kind_of_mean_survives_saving(data, tmp_path, mean):
    model = tiny.pico(mean=mean)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    images = data[0][:3]
    np.testing.assert_array_equal(
        model.predict(images, verbose=0), again.predict(images, verbose=0)
    )


def test_every_option_survives_saving():
    options = {
        "embedding_dim": 3,
        "queue_size": 7,
        "key_momentum": 0.5,
        "prototype_momentum": 0.25,
        "temperature": 0.3,
        "prototype_temperature": 0.4,
        "scores_from": "classifier",
        "contrastive_weight": 0.6,
        "mixup_weight": 0.7,
        "mixup_alpha": 2.0,
        "mean": 0.1,
        "std": 0.9,
        "pseudo_label_momentum": (0.8, 0.7),
        "pseudo_label_start": 4,
        "weight_decay": 0.01,
        "seed": 11,
    }
    model = tiny.pico(**options)
    again = alim_keras.PiCO.from_config(model.get_config())
    for name, value in options.items():
        assert getattr(again, name) == value, name
    assert again.contrastive_loss.temperature == 0.3
    assert again.prototypes.momentum == 0.25
    assert model.get_config() == again.get_config()
