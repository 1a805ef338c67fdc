"""Every method shares the step, its logs, epochs and mixup."""

import keras
import numpy as np
import pytest
import references
import tiny

import alim_keras

PARTS = ("cls_loss", "cont_loss", "mix_loss")


def test_history_is_the_mean_over_examples():
    # Case 40. Batches of 6, 6, 6, 3: the mean weighs them by size.
    x, y = tiny.batch(21)
    first, second = tiny.pico(), tiny.pico()
    history = tiny.fit(first, x, y=y, batch_size=6)
    sizes, logs = [], []
    second.pseudo_label_table.momentum.assign(0.95)
    for start in range(0, 21, 6):
        part = slice(start, start + 6)
        some = {name: value[part] for name, value in x.items()}
        second.reset_metrics()  # Keras 3.13 averages over calls.
        logs.append(second.train_on_batch(some, y[part], return_dict=True))
        sizes.append(len(y[part]))
    assert sizes == [6, 6, 6, 3]
    for name in ("loss", *PARTS, "candidate_accuracy", "outside"):
        expected = np.average([log[name] for log in logs], weights=sizes)
        assert history[name][0] == pytest.approx(expected, abs=1e-5), name
    tiny.assert_same(tiny.snapshot(first), tiny.snapshot(second))


def test_validation_logs_hold_no_training_parts():
    images, candidates, labels = tiny.examples()
    validation = alim_keras.data.eval_dataset(images, labels, 3, 5)
    batches = tiny.batches(images, candidates, 6)
    # Keras warns of nothing: that would be an error.
    fitted = tiny.pico().fit(batches, validation_data=validation, verbose=0)
    both = {"loss", "candidate_accuracy"}
    validated = {f"val_{name}" for name in both}
    assert set(fitted.history) == {*both, *PARTS, "outside", *validated}


@pytest.mark.parametrize("kind", ["sets", "labels"])
def test_evaluation_is_the_candidate_crossentropy(kind):
    images, candidates, labels = tiny.examples()
    model = tiny.pico()
    y = candidates if kind == "sets" else np.eye(3, dtype="float32")[labels]
    logs = model.evaluate(images, y, batch_size=7, verbose=0, return_dict=True)
    p = model.predict(images, verbose=0)
    expected = references.candidate_crossentropy(y, p).mean()
    assert set(logs) == {"loss", "candidate_accuracy"}
    assert logs["loss"] == pytest.approx(expected, rel=1e-5)
    expected = y[np.arange(24), p.argmax(axis=1)].mean()
    assert logs["candidate_accuracy"] == pytest.approx(expected)


def test_evaluation_changes_nothing():
    images, candidates, _ = tiny.examples()
    model = tiny.pico(batch_norm=True)
    x, y = tiny.batch()
    model.train_on_batch(x, y)
    before = tiny.snapshot(model)
    model.evaluate(images, candidates, verbose=0)
    model.test_on_batch(x, y)
    model.predict(images, verbose=0)
    tiny.assert_same(before, tiny.snapshot(model))


def test_accuracy_is_taken_on_unmixed_views():
    # Case 27: a perfect model whose mixed batch holds three classes at once.
    labels = np.array([0, 1, 2, 0, 2, 1])
    images = np.zeros((6, 1, 1, 3), "uint8")
    images[np.arange(6), 0, 0, labels] = 255
    options = {"count": 6, "learning_rate": 0.0, "mixup_weight": 1.0}
    model = tiny.plain(lambda: tiny.flat((1, 1, 3)), **options)
    model.classifier.set_weights([10 * np.eye(3), np.zeros(3)])
    x = {"image": images, "index": np.arange(6)}
    y = np.eye(3, dtype="float32")[labels]
    logs = model.train_on_batch(x, y, return_dict=True)
    assert logs["candidate_accuracy"] == 1.0
    assert logs["mix_loss"] > logs["cls_loss"]


def test_images_are_scaled_and_normalised_inside():
    mean, std = (0.5, 0.25, 0.0), (0.5, 0.25, 2.0)
    model = tiny.plain(lambda: tiny.flat((2, 2, 3)), mean=mean, std=std)
    images = np.full((1, 2, 2, 3), [255, 51, 102], "uint8")
    # (1 - .5) / .5, (.2 - .25) / .25, .4 / 2
    np.testing.assert_allclose(
        model.prepare(images)[0, 1, 1], [1.0, -0.2, 0.2], atol=1e-6
    )


def test_predictions_are_probabilities():
    images, candidates, _ = tiny.examples()
    model = tiny.pico()
    p = model.predict(images, verbose=0)
    assert p.dtype == np.float32 and p.shape == (24, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-5)
    dataset = alim_keras.data.eval_dataset(images, candidates, 3, 5)
    np.testing.assert_allclose(model.predict(dataset, verbose=0), p, atol=1e-6)
    network = model.inference_network()
    np.testing.assert_allclose(network.predict(images, verbose=0), p, atol=1e-6)
    owned = {id(v) for v in model.backbone.variables}
    owned |= {id(v) for v in model.classifier.variables}
    assert {id(v) for v in network.variables} == owned


def test_the_epoch_reaches_the_model_and_its_data():
    images, candidates, _ = tiny.examples()
    model, seen = tiny.plain(), []
    # Before any epoch it is that of the first.
    assert float(model.pseudo_label_table.momentum) == pytest.approx(0.95)
    dataset = tiny.batches(images, candidates, 6)

    def note(step, logs):
        # On JAX only a callback's model has its weights within an epoch.
        phi = float(spy.model.pseudo_label_table.momentum)
        seen.append((int(spy.model.epoch), round(phi, 6)))

    spy = keras.callbacks.LambdaCallback(on_train_batch_begin=note)
    tiny.fit(model, dataset, epochs=5, initial_epoch=2, callbacks=[spy])
    # phi = .95 - .15 e / 5 for e = 2, 3, 4.
    assert seen[::4] == [(2, 0.89), (3, 0.86), (4, 0.83)]
    assert len(seen) == 12


def test_mixup_changes_with_the_epoch_but_not_with_the_order():
    x, y = tiny.batch()

    def mix(epoch, order):
        model = tiny.plain(learning_rate=0.0, mixup_weight=1.0)
        model.epoch.assign(epoch)
        some = {name: value[order] for name, value in x.items()}
        return model.train_on_batch(some, y[order], return_dict=True)

    first = mix(0, np.arange(6))["mix_loss"]
    assert abs(first - mix(1, np.arange(6))["mix_loss"]) > 1e-5
    # The same pairs in another order.
    again = mix(0, np.array([4, 5, 0, 1, 2, 3]))["mix_loss"]
    assert again == pytest.approx(first, rel=1e-6)


def test_a_saved_model_goes_on_as_if_nothing_had_happened(tmp_path):
    images, candidates, _ = tiny.examples()

    def train(model, epochs, start):
        alim = alim_keras.callbacks.ALIM(
            "scale", noise_rate=0.4, warmup_epochs=1
        )
        options = {
            "epochs": epochs,
            "initial_epoch": start,
            "callbacks": [alim],
        }
        tiny.fit(model, tiny.batches(images, candidates, 6), **options)

    model = tiny.pico(
        batch_norm=True,
        compile_options=tiny.RARE_SHAPE,
        mean=(0.5,),
        std=(0.2,),
        weight_decay=1e-3,
        views=alim_keras.augment.Views(seed=3),
        folds=3,
    )
    model.fold.assign(np.arange(24) // 8)
    train(model, 2, 0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert type(again) is alim_keras.PiCO
    assert model.name == again.name == "pico" and again.folds == 3
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
