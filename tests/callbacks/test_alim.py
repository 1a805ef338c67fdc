"""The ALIM callback: lambda, norm, phi, truth, Algorithm 1, estimators."""

import keras
import numpy as np
import pytest
import references
import tiny
from scipy.special import softmax

import alim_keras
from alim_keras import noise_rate
from alim_keras.callbacks import ALIM
from alim_keras.methods import PiCOPlus


def plain(learning_rate=0.02, **options):
    """A classifier that is unsure at first, so that ratios lie around 1."""
    return tiny.plain(learning_rate=learning_rate, momentum=0.0, **options)


def fit(model, alim, epochs=4, batch_size=7, count=24, start=0, before=()):
    """Returns the table's values as epochs begin and end, and the history.

    A batch of 7 leaves 3 examples out.
    """
    images, candidates, _ = tiny.examples(count)
    weights, begin, end = model.pseudo_label_table.weights, [], []

    def noting(states):
        return lambda *_: states.append({v.name: v.numpy() for v in weights})

    spy = keras.callbacks.LambdaCallback(noting(begin), noting(end))
    data = tiny.batches(images, candidates, batch_size)
    options = {"epochs": epochs, "initial_epoch": start}
    callbacks = [*before, alim, spy]
    return begin, end, tiny.fit(model, data, callbacks=callbacks, **options)


# Lambda.


@pytest.mark.parametrize("warmup", [1, 3])
def test_lambda_is_the_order_statistic_after_the_warm_up(warmup):
    alim = ALIM(norm="scale", noise_rate=0.3, warmup_epochs=warmup)
    begin, end, history = fit(plain(), alim, epochs=5)
    used = [float(state["lam"]) for state in begin]
    # Epochs 1..e0 train with 0.
    assert used[:warmup] == [0.0] * warmup
    for epoch in range(warmup, 5):
        ratios = end[epoch - 1]["candidate_ratio"]
        # Three of 24 were in no batch.
        assert np.isnan(ratios).sum() == 3
        seen = sorted(ratios[~np.isnan(ratios)])
        assert used[epoch] == pytest.approx(min(seen[int(21 * 0.3)], 1.0))
        assert 0.0 < used[epoch] < 1.0
    # The log of an epoch is the lambda that its end has set.
    np.testing.assert_allclose(history["lambda"][:-1], used[1:])


def test_a_fixed_lambda_after_the_warm_up():
    alim = ALIM(lam=0.25, warmup_epochs=2)
    begin, _, history = fit(plain(), alim, epochs=4)
    assert [float(s["lam"]) for s in begin] == [0.0, 0.0, 0.25, 0.25]
    assert history["lambda"] == [0.0, 0.25, 0.25, 0.25]


@pytest.mark.parametrize("lam", ["adaptive", 0.5])
def test_a_noise_rate_of_zero_keeps_lambda_at_zero(lam):
    alim = ALIM(lam=lam, noise_rate=0.0, warmup_epochs=1)
    assert fit(plain(), alim, epochs=2)[2]["lambda"] == [0.0, 0.0]


def test_a_continued_fit_keeps_its_lambda():
    model, alim = plain(), ALIM(noise_rate=0.3, warmup_epochs=1)
    fit(model, alim, epochs=2)
    lam = float(model.pseudo_label_table.lam)
    begin, _, _ = fit(model, alim, epochs=3, start=2)
    assert float(begin[0]["lam"]) == lam > 0.0


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
    begin, _, _ = fit(plain(), alim, batch_size=24)
    found = [float(state["momentum"]) for state in begin]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


# Truth is for reporting only.


def test_labels_change_nothing_but_a_log():
    # Case 23: random labels, not one bit of difference.
    random = np.random.default_rng(0).integers(0, 3, 24)
    results, histories = [], []
    for labels in (None, random):
        model = plain(learning_rate=0.2, mixup_weight=1.0)
        alim = ALIM("scale", noise_rate=0.5, warmup_epochs=1, labels=labels)
        _, _, history = fit(model, alim, epochs=2, batch_size=8)
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

    def note(epoch, logs):
        seen.update({v.path: v.numpy() for v in model.variables})

    # Listed before ALIM: what it will find.
    before = keras.callbacks.LambdaCallback(on_epoch_end=note)
    options = {"noise_rate": 0.4, "warmup_epochs": 2, "update": "epoch"}
    alim = ALIM(norm, 0.5, data=data, **options)
    table, rows, lams = model.pseudo_label_table, None, []
    for epoch in range(4):
        fit(model, alim, epoch + 1, start=epoch, before=[before])
        if epoch:
            # No step has changed what the epoch before had set.
            found = seen[table.table.path]
            np.testing.assert_allclose(found, rows, atol=1e-5)
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


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (plain, {"pseudo_label_start": 2}),
        # Its warm-up is one epoch.
        (tiny.pico, {"method": PiCOPlus, "start": 1, "num_neighbours": 4}),
    ],
)
def test_rows_wait_for_the_start_of_the_table(make, options):
    images, candidates, _ = tiny.examples(24)
    data = alim_keras.data.eval_dataset(images, candidates, 3, 24)
    model = make(**options)
    uniform = candidates / candidates.sum(axis=1, keepdims=True)
    table = model.pseudo_label_table
    for epoch in range(2):
        alim = ALIM(lam=0.0, warmup_epochs=1, update="epoch", data=data)
        fit(model, alim, epoch + 1, start=epoch)
        rows = table.rows(np.arange(24), candidates)
        same = np.allclose(rows, uniform, atol=1e-6)
        assert same == (epoch == 0)


# An estimator in the place of the noise rate.


class Stub:
    """Answers what it was given, and notes when it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def estimate(self, model, epoch):
        self.asked.append((model, epoch))
        value = self.answers.pop(0)
        return None if value is None else estimate_of(value)


def estimate_of(value):
    return noise_rate.Estimate(value, 0.0, 1.0, "stub", "it was told so.")


@pytest.mark.parametrize(
    "warmup, asked", [(3, [2, 3, 4]), (0, [0, 1, 2, 3, 4])]
)
def test_is_asked_from_the_end_of_the_warm_up_on(warmup, asked):
    model, stub = plain(), Stub(0.25, 0.5, None, 0.0, 0.75)
    alim = ALIM(noise_rate=stub, warmup_epochs=warmup)
    _, _, history = fit(model, alim, 5)
    assert stub.asked == [(model, epoch) for epoch in asked]
    answers = [0.25, 0.5, 0.5, 0.0, 0.75][: len(asked)]
    assert history["noise_rate"] == [0.0] * (5 - len(asked)) + answers
    # A rate of 0 keeps lambda at 0, others let it rise.
    assert history["lambda"][:warmup][:-1] == [0.0] * max(warmup - 1, 0)
    assert [lam > 0 for lam in history["lambda"][5 - len(asked) :]] == [
        rate > 0 for rate in answers
    ]


def test_lambda_is_that_of_the_number_estimated():
    models = plain(), plain()
    histories = [
        fit(model, ALIM(noise_rate=rate, warmup_epochs=2))[2]
        for model, rate in zip(models, (0.25, Stub(0.25, 0.25, 0.25)))
    ]
    tiny.assert_same(*map(tiny.snapshot, models))
    assert histories[0]["lambda"] == histories[1]["lambda"]
    assert histories[0]["noise_rate"] == [0.25] * 4


def test_the_estimate_in_force_is_in_the_checkpoint(tmp_path):
    """Interrupted before an epoch whose estimator has nothing to add."""

    def train(model, answers, **options):
        # Its own phi would depend on how many epochs are to come.
        phi = {"warmup_epochs": 2, "pseudo_label_momentum": 0.9}
        fit(model, ALIM(noise_rate=Stub(*answers), **phi), **options)

    whole, cut, resumed = plain(), plain(), plain()
    train(whole, [0.25, None, None])
    train(cut, [0.25], epochs=2)
    cut.save_weights(tmp_path / "cut.weights.h5")
    resumed.optimizer.build(resumed.trainable_variables)
    resumed.load_weights(tmp_path / "cut.weights.h5")
    assert resumed.pseudo_label_table.noise_rate.numpy() == 0.25
    train(resumed, [None, None], start=2)
    tiny.assert_same(tiny.snapshot(whole), tiny.snapshot(resumed))


def test_held_out_predicts_in_inference_mode(monkeypatch):
    images, candidates, _ = tiny.examples(10, seed=4)
    data = alim_keras.data.eval_dataset(images, candidates, 3, batch_size=4)
    seen = []

    def estimator(logits, sets):
        seen.append((logits, sets))
        return estimate_of(0.1)

    monkeypatch.setattr(noise_rate, "cautious", estimator)
    model, held_out = plain(), noise_rate.HeldOut(data)
    _, _, history = fit(model, ALIM(noise_rate=held_out, warmup_epochs=2), 3)
    assert len(seen) == 2
    assert history["noise_rate"][1:] == pytest.approx([0.1, 0.1])
    logits, sets = seen[-1]
    np.testing.assert_array_equal(sets, candidates)
    # The model has not moved since the end of the last epoch.
    found = keras.ops.softmax(logits)
    np.testing.assert_allclose(found, model(images), atol=1e-6)
    # Another model is not answered with the first one's predictions.
    other = plain(network=lambda: tiny.backbone())
    other.classifier.bias.assign([5.0, 0.0, 0.0])
    held_out.estimate(other, 0)
    assert (seen[-1][0].argmax(axis=1) == 0).all()


# What it cannot work with.


@pytest.mark.parametrize("name", ["labels", "known"])
def test_another_model_or_length_is_refused(name):
    alim = ALIM(lam=0.1, **{name: np.zeros(23, "int64")})
    with pytest.raises(ValueError, match=f"`{name}` must have one.*24.*23"):
        fit(plain(), alim)
    with pytest.raises(TypeError, match="simple.*Sequential"):
        alim.set_model(keras.Sequential(name="simple"))


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
    with pytest.raises(ValueError, match="data=None"):
        ALIM(update="epoch", lam=0.1)
