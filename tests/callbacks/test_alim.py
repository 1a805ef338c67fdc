"""The ALIM callback: lambda, norm, phi, truth, Algorithm 1."""

import keras
import numpy as np
import pytest
import references
import tiny
from scipy.special import softmax

import alim_keras
from alim_keras.callbacks import ALIM


def plain(learning_rate=0.02, **options):
    """A classifier that is unsure at first, so that ratios lie around 1."""
    return tiny.plain(learning_rate=learning_rate, momentum=0.0, **options)


class Spy(keras.callbacks.Callback):
    """Notes what the table holds when an epoch begins and ends."""

    def __init__(self):
        super().__init__()
        self.begin, self.end = [], []

    def _state(self):
        table = self.model.pseudo_label_table
        return {v.name: v.numpy() for v in table.weights}

    def on_epoch_begin(self, epoch, logs=None):
        self.begin.append(self._state())

    def on_epoch_end(self, epoch, logs=None):
        self.end.append(self._state())


def fit(model, alim, epochs=4, batch_size=7, count=24, start=0, before=()):
    """Returns a spy and the history; a batch of 7 leaves 3 examples out."""
    images, candidates, _ = tiny.examples(count)
    spy = Spy()
    history = tiny.fit(
        model,
        tiny.batches(images, candidates, batch_size),
        epochs=epochs,
        initial_epoch=start,
        callbacks=[*before, alim, spy],
    )
    return spy, history


# Lambda.


@pytest.mark.parametrize("warmup", [1, 3])
def test_lambda_is_the_order_statistic_after_the_warm_up(warmup):
    alim = ALIM(norm="scale", noise_rate=0.3, warmup_epochs=warmup)
    spy, history = fit(plain(), alim, epochs=5)
    used = [float(state["lam"]) for state in spy.begin]
    # Epochs 1..e0 train with 0.
    assert used[:warmup] == [0.0] * warmup
    for epoch in range(warmup, 5):
        ratios = spy.end[epoch - 1]["candidate_ratio"]
        # Three of 24 were in no batch.
        assert np.isnan(ratios).sum() == 3
        seen = sorted(ratios[~np.isnan(ratios)])
        assert used[epoch] == pytest.approx(min(seen[int(21 * 0.3)], 1.0))
        assert 0.0 < used[epoch] < 1.0
    # The log of an epoch is the lambda that its end has set.
    np.testing.assert_allclose(history["lambda"][:-1], used[1:])


def test_a_fixed_lambda_after_the_warm_up():
    spy, history = fit(plain(), ALIM(lam=0.25, warmup_epochs=2), epochs=4)
    assert [float(s["lam"]) for s in spy.begin] == [0.0, 0.0, 0.25, 0.25]
    assert history["lambda"] == [0.0, 0.25, 0.25, 0.25]


@pytest.mark.parametrize("lam", ["adaptive", 0.5])
def test_a_noise_rate_of_zero_keeps_lambda_at_zero(lam):
    alim = ALIM(lam=lam, noise_rate=0.0, warmup_epochs=1)
    assert fit(plain(), alim, epochs=2)[1]["lambda"] == [0.0, 0.0]


def test_a_continued_fit_keeps_its_lambda():
    model = plain()
    fit(model, ALIM(noise_rate=0.3, warmup_epochs=1), epochs=2)
    lam = float(model.pseudo_label_table.lam)
    alim = ALIM(noise_rate=0.3, warmup_epochs=1)
    spy, _ = fit(model, alim, epochs=3, start=2)
    assert float(spy.begin[0]["lam"]) == lam > 0.0


def test_a_new_lambda_reaches_a_compiled_step():
    # Pitfall P7: a Python number would be frozen when the step is traced.
    model = plain(compile_options={"jit_compile": False})
    alim = ALIM(lam=1.0, warmup_epochs=2, pseudo_label_momentum=0.0)
    spy, history = fit(model, alim, epochs=4)
    assert history["outside"][:2] == [0.0, 0.0]
    assert history["outside"][3] > 0.1


# Norm and phi.


def test_one_epoch_by_the_loop():
    # One batch per epoch, phi .5, Scale with K = .5, lambda .4 in the second.
    images, candidates, _ = tiny.examples(8)
    model = plain(count=8)
    rows = candidates / candidates.sum(axis=1, keepdims=True)
    alim = ALIM(
        "scale", 0.5, lam=0.4, warmup_epochs=1, pseudo_label_momentum=0.5
    )
    for epoch, lam in enumerate([0.0, 0.4]):
        p = model.predict(images, verbose=0)
        label = references.pseudo_labels(p, candidates, lam, "scale", 0.5)
        rows = 0.5 * rows + 0.5 * label
        fit(model, alim, epoch + 1, batch_size=8, count=8, start=epoch)
        np.testing.assert_allclose(model.pseudo_labels.numpy(), rows, atol=1e-5)
        ratio = model.pseudo_label_table.candidate_ratio.numpy()
        np.testing.assert_allclose(
            ratio, references.candidate_ratio(p, candidates), rtol=1e-4
        )


@pytest.mark.parametrize(
    ("phi", "expected"),
    [
        # start + (end - start) e / E for e = 0..3 of E = 4.
        (None, [0.95, 0.9125, 0.875, 0.8375]),
        ((0.9, 0.5), [0.9, 0.8, 0.7, 0.6]),
        (0.25, [0.25] * 4),
        (0, [0.0] * 4),
    ],
)
def test_the_momentum_moves_linearly(phi, expected):
    alim = ALIM(lam=0.0, warmup_epochs=1, pseudo_label_momentum=phi)
    spy, _ = fit(plain(), alim, batch_size=24)
    got = [float(state["momentum"]) for state in spy.begin]
    np.testing.assert_allclose(got, expected, rtol=1e-6)


# Truth is for reporting only.


def test_labels_change_nothing_but_a_log():
    # Case 23: random labels, not one bit of difference.
    random = np.random.default_rng(0).integers(0, 3, 24)
    results, histories = [], []
    for labels in (None, random):
        model = plain(learning_rate=0.2, mixup_weight=1.0)
        alim = ALIM("scale", noise_rate=0.5, warmup_epochs=1, labels=labels)
        _, history = fit(model, alim, epochs=2, batch_size=8)
        results.append(tiny.snapshot(model))
        histories.append(history)
    tiny.assert_same(*results)
    accuracy = histories[1].pop("pseudo_label_accuracy")
    assert histories[0] == histories[1]
    settled, decided = model.pseudo_label_table.settled()
    right = (settled == random)[decided]
    assert accuracy[-1] == pytest.approx(right.mean())


def test_alim_corrects_noisy_sets_of_separable_classes():
    # Cases 2, 24 and 26: three blobs and a class that never occurs.
    stream = np.random.default_rng(0)
    labels = stream.integers(0, 3, 90)
    centres = stream.uniform(40, 215, (3, 4, 4, 1))
    images = centres[labels] + stream.normal(0, 10, (90, 4, 4, 1))
    images = np.clip(images, 0, 255).astype("uint8")
    candidates = np.eye(4, dtype="float32")[labels]
    noisy = np.arange(90) % 5 == 0
    candidates[noisy] = np.eye(4)[(labels[noisy] + 1) % 3]
    candidates[np.arange(90) % 3 == 0, 0] = 1.0
    wrong = candidates[np.arange(90), labels] == 0.0

    keras.utils.set_random_seed(0)
    options = {"embedding_dim": 8, "queue_size": 60, "std": 0.25, "mean": 0.5}
    options |= {"key_momentum": 0.9, "prototype_momentum": 0.9}
    model = alim_keras.PiCO(tiny.backbone(), 4, 90, **options)
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), jit_compile=False)
    alim = ALIM(
        noise_rate=float(wrong.mean()),
        warmup_epochs=5,
        labels=labels,
        pseudo_label_momentum=(0.9, 0.6),
    )
    data = tiny.batches(images, candidates, 15)
    history = tiny.fit(model, data, epochs=15, callbacks=[alim])
    accuracy = history["pseudo_label_accuracy"]
    assert wrong.sum() > 8
    # Without ALIM no wrong set can be mended.
    assert accuracy[4] <= 1 - wrong.mean() + 1e-6
    assert accuracy[-1] > 0.95
    assert all(np.isfinite(values).all() for values in history.values())
    means = model.prototypes.means.numpy()
    np.testing.assert_allclose(np.linalg.norm(means[:3], axis=1), 1, atol=1e-3)
    np.testing.assert_array_equal(means[3], 0.0)
    cosines = means[:3] @ means[:3].T
    assert (1 - cosines[np.triu_indices(3, 1)]).min() > 0.2
    assert set(model.pseudo_labels.numpy().argmax(axis=1)) == {0, 1, 2}


# update="epoch" is the paper's Algorithm 1.


@pytest.mark.parametrize("norm", ["onehot", "scale"])
def test_the_update_of_an_epoch_is_algorithm_1(norm):
    images, candidates, _ = tiny.examples(24)
    model = plain(network=lambda: tiny.backbone(batch_norm=True))
    data = alim_keras.data.eval_dataset(images, candidates, 3, 5)
    seen = {}

    class Before(keras.callbacks.Callback):
        """Listed before ALIM: what it will find."""

        def on_epoch_end(self, epoch, logs=None):
            seen.update({v.path: v.numpy() for v in model.variables})

    options = {"noise_rate": 0.4, "warmup_epochs": 2, "update": "epoch"}
    alim = ALIM(norm, 0.5, data=data, **options)
    table, rows, lams = model.pseudo_label_table, None, []
    for epoch in range(4):
        fit(model, alim, epoch + 1, start=epoch, before=[Before()])
        if epoch:
            # No step has changed what the epoch before had set.
            before = seen[table.table.path]
            np.testing.assert_allclose(before, rows, atol=1e-5)
        for variable in model.variables:
            # It moves nothing but the table.
            if "pseudo_label_table" not in variable.path:
                np.testing.assert_array_equal(
                    variable.numpy(), seen[variable.path], variable.path
                )
        p = model.predict(images, verbose=0)
        lams.append(float(table.lam))
        lam = 0.0
        if epoch:
            ratios = references.candidate_ratio(p, candidates)
            lam = references.adaptive_lambda(ratios, 0.4)
        assert lams[-1] == pytest.approx(lam, rel=1e-5)
        rows = references.pseudo_labels(p, candidates, lam, norm, 0.5)
        np.testing.assert_allclose(table.numpy(), rows, atol=1e-5)
    assert lams[0] == 0.0 and all(0.0 < lam < 1.0 for lam in lams[1:])


def test_the_update_of_an_epoch_takes_the_methods_scores():
    # PiCO's P comes from the prototypes, in inference mode.
    images, candidates, _ = tiny.examples(24)
    model = tiny.pico(batch_norm=True)
    data = alim_keras.data.eval_dataset(images, candidates, 3, 24)
    alim = ALIM("scale", lam=0.3, warmup_epochs=1, update="epoch", data=data)
    fit(model, alim, epochs=1, batch_size=12)
    features = model.backbone.predict(model.prepare(images), verbose=0)
    embeddings = model.projection.predict(features, verbose=0)
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    cosines = embeddings @ model.prototypes.means.numpy().T
    p = softmax(cosines / 0.07, axis=1)
    rows = references.pseudo_labels(p, candidates, 0.3, "scale")
    np.testing.assert_allclose(model.pseudo_labels.numpy(), rows, atol=1e-4)


def test_rows_wait_for_the_start_of_the_table():
    images, candidates, _ = tiny.examples(24)
    data = alim_keras.data.eval_dataset(images, candidates, 3, 24)
    model = plain(pseudo_label_start=2)
    uniform = candidates / candidates.sum(axis=1, keepdims=True)
    table = model.pseudo_label_table
    for epoch in range(2):
        alim = ALIM(lam=0.0, warmup_epochs=1, update="epoch", data=data)
        fit(model, alim, epoch + 1, start=epoch)
        rows = table.rows(np.arange(24), candidates)
        same = np.allclose(rows, uniform, atol=1e-6)
        assert same == (epoch == 0)


# What it cannot work with.


def test_a_model_without_a_table_is_refused():
    model = keras.Sequential(
        [keras.Input((2,)), keras.layers.Dense(1)], name="simple"
    )
    model.compile("sgd", "mse", run_eagerly=True)
    with pytest.raises(TypeError, match="simple.*Sequential"):
        model.fit(
            np.ones((2, 2)),
            np.ones((2, 1)),
            verbose=0,
            callbacks=[ALIM(lam=0.1)],
        )


def test_labels_of_another_length_are_refused():
    alim = ALIM(lam=0.1, labels=np.zeros(23, "int64"))
    with pytest.raises(ValueError, match="24.*23"):
        x, y = tiny.batch(6)
        tiny.fit(tiny.plain(), x, y=y, callbacks=[alim])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("norm", ["soft"]),
        ("update", ["batch"]),
        ("noise_rate", [None, 1.5, -0.1, np.nan, "oracle"]),
        ("lam", [1.5, -0.5, np.nan, "auto", None]),
        ("scale_factor", [0.0, -1.0, np.inf, "1"]),
        ("pseudo_label_momentum", [1.5, (0.9, np.nan), (0.9, 0.8, 0.7)]),
        ("warmup_epochs", [-1, np.nan, "80"]),
    ],
)
def test_arguments_out_of_range_are_named(name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"`?{name}.*{name}="):
            ALIM(**{"noise_rate": 0.2, name: value})


def test_the_update_of_an_epoch_needs_data():
    with pytest.raises(ValueError, match="data=None"):
        ALIM(update="epoch", lam=0.1)
