"""The methods without networks of their own, against slow references."""

import keras
import numpy as np
import pytest
import references_methods as slow
import tiny

import alim_keras
from alim_keras.methods import METHODS
from alim_keras.methods import PiCO

SIMPLE = [n for n, kind in METHODS.items() if not issubclass(kind, PiCO)]
KEEPING = [name for name in SIMPLE if METHODS[name].keeps_pseudo_labels]


def batch(size=3, seed=0):
    """Three views that differ, and sets of which one is full."""
    stream = np.random.default_rng(seed)
    images, candidates, _ = tiny.examples(24)
    candidates[1] = 1.0
    x = {"index": np.arange(size), "image": images[:size]}
    for name in ("weak", "strong", "strong2"):
        shape = (24, *tiny.SHAPE)
        x[name] = stream.integers(0, 256, shape)[:size].astype("uint8")
    return x, candidates[:size]


def assert_rows(model, reference):
    """Raises unless the weights that are kept equal the reference's."""
    rows = np.zeros_like(reference.table)
    if model.keeps_pseudo_labels:
        rows = model.pseudo_labels.numpy()
        ratio = model.pseudo_label_table.candidate_ratio.numpy()
        np.testing.assert_allclose(ratio, reference.ratio, rtol=1e-3)
    elif hasattr(model, "leveraged_weights"):
        rows = model.leveraged_weights.table.numpy()
    np.testing.assert_allclose(rows, reference.table, atol=2e-5)


@pytest.mark.parametrize(
    ("name", "mixup", "lam", "folds"),
    [
        *((name, 0.0, 0.0, 0) for name in SIMPLE),
        *((name, 0.5, 0.0, 0) for name in SIMPLE),
        *((name, 0.0, 0.4, 0) for name in KEEPING),
        *((name, 0.5, 0.0, 4) for name in SIMPLE),
        *((name, 0.0, 0.4, 2) for name in KEEPING),
    ],
)
def test_three_steps_equal_the_loop(name, mixup, lam, folds):
    # The third step meets weights that the first two have set.
    decay = 0.1 if folds else 0.0
    options = {"mixup_weight": mixup, "folds": folds, "weight_decay": decay}
    model = tiny.build(METHODS[name], **options)
    if folds:
        # Two partners of one fold, and two of different ones.
        model.fold.assign(np.array([1, 1, 0, folds - 1] * 6))
    reference = slow.SlowMethod(model, 0.1, 0.9)
    if lam:
        model.pseudo_label_table.lam.assign(lam)
        reference.lam = lam
    size = 4 if mixup else 3
    for seed, progress in enumerate((0.2, 0.2, 0.6)):
        # The ramp has risen at .6.
        x, y = batch(size, seed)
        model.progress.assign(progress)
        loss = model.train_on_batch(x, y, return_dict=True)["loss"]
        expected = reference.step(x, y, progress=progress)
        model.reset_metrics()
        assert loss == pytest.approx(expected, rel=1e-4)
        for v, p in zip(model.trainable_variables, reference.parameters):
            np.testing.assert_allclose(v.numpy(), p, atol=5e-5)
        assert_rows(model, reference)


SMALL = {"embedding_dim": 4, "queue_size": 12}
LAMBDA_0 = {
    **dict.fromkeys(KEEPING, {}),
    "pico": SMALL,
    "irnet": {**SMALL, "tau": 0.0, "correct_start": 0.0},
    "pico_plus": {**SMALL, "start": 1, "knn_start": 1, "num_neighbours": 4},
}


@pytest.mark.parametrize("name", LAMBDA_0)
def test_alim_with_lambda_0_is_the_method_itself(name):
    images, candidates, _ = tiny.examples(12)
    found = []
    for callbacks in ([], [alim_keras.callbacks.ALIM(lam=0, warmup_epochs=1)]):
        options = {"count": 12, "mixup_weight": 1.0, **LAMBDA_0[name]}
        model = tiny.build(METHODS[name], **options)
        data = tiny.batches(images, candidates, 6)
        tiny.fit(model, data, epochs=2, callbacks=callbacks)
        found.append(tiny.snapshot(model))
    tiny.assert_same(*found)


@pytest.mark.parametrize("name", ["cc", "exp", "gce", "mse", "lwc", "lws"])
def test_alim_is_refused_by_name(name):
    model = tiny.build(METHODS[name])
    with pytest.raises(TypeError, match=f"{METHODS[name].__name__}.*pseudo"):
        alim_keras.callbacks.ALIM(noise_rate=0.2).set_model(model)
    with pytest.raises(AttributeError, match="keeps no pseudo labels"):
        _ = model.pseudo_labels


@pytest.mark.parametrize("name", ["lwc", "gce", "crdpll"])
def test_saved_and_loaded_it_goes_on_the_same(name, tmp_path):
    x, y = batch()
    model = tiny.build(METHODS[name])
    model.train_on_batch(x, y)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert type(again) is type(model)
    for each in (model, again):
        each.train_on_batch(x, y)
    tiny.assert_same(tiny.snapshot(model), tiny.snapshot(again), atol=1e-6)
