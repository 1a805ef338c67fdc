"""Lambda for each example and for each class."""

import numpy as np
import pytest
import tiny

import alim_keras
from alim_keras.layers import PseudoLabelTable

ALIM = alim_keras.callbacks.ALIM


def run(epochs=3, **options):
    """Fits a small model; returns it and its history."""
    images, candidates, _ = tiny.examples(24)
    model = tiny.plain(count=24)
    data = tiny.batches(images, candidates, 6)
    callback = ALIM(warmup_epochs=1, **options)
    return model, tiny.fit(model, data, epochs=epochs, callbacks=[callback])


def on_table(count, warmup_epochs=1, **options):
    """Returns an ALIM and the table that it sets, without a training."""
    table = PseudoLabelTable(count, 3)
    alim = ALIM(warmup_epochs=warmup_epochs, **options)
    alim.table = table
    return alim, table


def test_the_factors_multiply():
    table = PseudoLabelTable(4, 3)
    table.lam.assign(0.5)
    table.lam_by_size.assign([9.0, 0.2, 0.4, 0.0])
    table.lam_by_class.assign([1.0, 0.5, 2.0])
    table.noise_posterior.assign([1.0, 1.0, 0.5, 1.0])
    sets = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], "float32")
    lam = np.asarray(table.lam_of(np.array([0, 2, 3]), sets))
    # .5 * .2; .5 * .4 * .5; a full set has none.
    expected = np.array([[0.1], [0.1], [0.0]]) * [1.0, 0.5, 2.0]
    np.testing.assert_allclose(lam, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # Odds 1/4, C = 3: 1/2 of it for one candidate, twice for two.
        ({"noise_rate": 0.2}, [1 / 8, 1 / 2, 0.0]),
        # 1.5 * 1/2 and 1.5 * 2, which is clamped.
        ({"noise_rate": 0.6}, [0.75, 1.0, 0.0]),
        (
            {"noise_rate": 0.2, "protocol": "pico", "ambiguity": 0.5},
            [0.25, 0.25, 0.0],
        ),
    ],
)
def test_instance_sets_the_closed_form_for_each_size(options, expected):
    model, history = run(lam="instance", **options)
    table = model.pseudo_label_table
    assert table.lam.numpy() == 1.0
    by_size = table.lam_by_size.numpy()
    np.testing.assert_allclose(by_size[1:], expected, rtol=1e-6)
    # The log is the mean over the examples of the epoch.
    sizes = tiny.examples(24)[1].sum(axis=1).astype(int)
    mean = (by_size[sizes] * table.noise_posterior.numpy()).mean()
    assert history["lambda"][0] == 0.0
    assert history["lambda"][-1] == pytest.approx(mean, rel=0.2)


def test_instance_takes_the_posterior_where_the_ratios_fall_into_two_groups():
    alim, table = on_table(200, lam="instance", noise_rate=0.3)
    stream = np.random.default_rng(0)
    wrong = stream.random(200) < 0.3
    logs = np.where(wrong, -3.0, 3.0) + 0.5 * stream.normal(size=200)
    ratios = np.exp(logs).astype("float32")
    ratios[:2] = [np.nan, np.inf]
    table.candidate_ratio.assign(ratios)
    alim.on_epoch_end(0)
    posterior = table.noise_posterior.numpy()
    # 12 deviations apart: no doubt about any. Not seen: 1. Full: 0.
    np.testing.assert_allclose(posterior[2:], wrong[2:], atol=1e-3)
    assert posterior[:2].tolist() == [1.0, 0.0]
    # One group: the closed form alone.
    one_group = np.exp(stream.normal(size=200)).astype("float32")
    table.candidate_ratio.assign(one_group)
    alim.on_epoch_end(1)
    assert (table.noise_posterior.numpy() == 1.0).all()


def test_lambda_of_a_class_is_the_quantile_among_its_rivals():
    alim, table = on_table(40, noise_rate=0.2, per_class=True)
    stream = np.random.default_rng(0)
    ratios = stream.random(40).astype("float32")
    table.candidate_ratio.assign(ratios)
    table.rival.assign(np.repeat([0, 1, 2], [20, 15, 5]))
    logs = {}
    alim.on_epoch_end(0, logs)
    # Ranks floor(20 * .2) and floor(15 * .2); five ratios are too few, and
    # that class gets floor(40 * .2) of all.
    expected = [
        np.sort(ratios[:20])[4],
        np.sort(ratios[20:35])[3],
        np.sort(ratios)[8],
    ]
    assert table.lam.numpy() == 1.0
    np.testing.assert_allclose(table.lam_by_class.numpy(), expected)
    assert logs["lambda"] == pytest.approx(np.mean(expected))


def test_in_the_warm_up_all_factors_are_1():
    alim, table = on_table(4, lam=0.5, warmup_epochs=2)
    table.lam.assign(1.0)
    table.lam_by_size.assign([0.5] * 4)
    table.lam_by_class.assign([0.5] * 3)
    table.noise_posterior.assign([0.5] * 4)
    alim.on_epoch_begin(0)
    assert table.lam.numpy() == 0.0
    table.lam.assign(1.0)
    sets = np.eye(3, dtype="float32")
    assert (np.asarray(table.lam_of(np.arange(3), sets)) == 1.0).all()
