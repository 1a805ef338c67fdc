"""The ALIM callback: lambda, norm, phi, truth, backups."""

import keras
import numpy as np
import pytest
import references
import tiny

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


def fit(model, alim, epochs=4, batch_size=7, count=24, start=0):
    """Returns a spy and the history; a batch of 7 leaves 3 examples out."""
    images, candidates, _ = tiny.examples(count)
    spy = Spy()
    history = tiny.fit(
        model,
        tiny.batches(images, candidates, batch_size),
        epochs=epochs,
        initial_epoch=start,
        callbacks=[alim, spy],
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


def test_lambda_zero_is_the_method_without_alim():
    first, second = plain(), plain()
    spy, history = fit(first, ALIM(lam=0.0, warmup_epochs=1), epochs=3)
    assert history["lambda"] == history["outside"] == [0.0, 0.0, 0.0]
    images, candidates, _ = tiny.examples(24)
    tiny.fit(second, tiny.batches(images, candidates, 7), epochs=3)
    tiny.assert_same(tiny.snapshot(first), tiny.snapshot(second))


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


def test_norm_and_scale_factor_reach_the_table():
    model = plain()
    fit(model, ALIM("scale", 0.5, lam=0.0, warmup_epochs=1), epochs=1)
    table = model.pseudo_label_table
    assert float(table.use_onehot) == 0.0 and float(table.scale_factor) == 0.5
    assert float(table.update_in_step) == 1.0
    fit(model, ALIM("onehot", lam=0.0, warmup_epochs=1), epochs=1)
    assert float(table.use_onehot) == 1.0


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


# Backups.


def test_a_killed_run_resumes_bit_for_bit(tmp_path):
    images, candidates, _ = tiny.examples(24)

    class Kill(keras.callbacks.Callback):
        def on_train_batch_begin(self, step, logs=None):
            if int(self.model.epoch) == 3 and step == 1:
                raise KeyboardInterrupt

    def train(model, *more):
        alim = ALIM("scale", noise_rate=0.3, warmup_epochs=2)
        data = tiny.batches(images, candidates, 12)
        return tiny.fit(model, data, epochs=5, callbacks=[alim, *more])

    whole, killed, resumed = (
        plain(learning_rate=0.2, mixup_weight=1.0) for _ in range(3)
    )
    history = train(whole)
    backup = keras.callbacks.BackupAndRestore(tmp_path / "backup")
    with pytest.raises(KeyboardInterrupt):
        train(killed, backup, Kill())
    backup = keras.callbacks.BackupAndRestore(tmp_path / "backup")
    again = train(resumed, backup)
    assert history["lambda"][3:] == again["lambda"]
    assert history["loss"][3:] == again["loss"]
    tiny.assert_same(tiny.snapshot(whole), tiny.snapshot(resumed))
