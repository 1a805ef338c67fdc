"""IRNet against its slow twin, and when it begins to correct."""

import numpy as np
import pico_steps
import pytest
import references_methods
import tiny

import alim_keras
from alim_keras.methods import IRNet
from alim_keras.methods.irnet import missing_label

SLOW_ON_JAX = pytest.mark.tensorflow("compiles a step that others run, too")


def build(**options):
    """An IRNet on images of the slow twin's size."""
    return tiny.pico(
        pico_steps.COUNT,
        method=IRNet,
        network=lambda: tiny.backbone(shape=pico_steps.SHAPE, features=3),
        learning_rate=0.2,
        compile_options=tiny.RARE_SHAPE,
        **{**pico_steps.OPTIONS, "correct_start": 0.0, **options},
    )


def steps():
    """Batches; the last meets examples of the ones before."""
    again = tiny.examples(pico_steps.COUNT, seed=5, shape=pico_steps.SHAPE)[0]
    # The second weak view: the first with a little more light.
    again = np.minimum(again.astype(int) + 9, 255).astype("uint8")
    for weak, strong, index, candidates in pico_steps.batches():
        yield weak, strong, again[index], index, candidates


def run(model, lam):
    """Steps of the model and its slow twin; returns how many corrections."""
    slow = references_methods.SlowIRNet(model, 0.2, 0.9)
    model.pseudo_label_table.momentum.assign(0.9)
    model.pseudo_label_table.lam.assign(lam)
    model.epoch.assign(2)
    slow.phi, slow.lam, slow.epoch = 0.9, lam, 2
    corrected = []
    for *views, index, candidates in [*steps()] * 2:
        _, expected = pico_steps.compare(
            model, slow, views, index, candidates, atol=1e-4
        )
        added = model.added_labels.table.numpy()
        for i, row in zip(index, candidates):
            np.testing.assert_array_equal(
                np.maximum(row, added[i]), slow.sets.get(i, row)
            )
        corrected.append(expected["corrected"])
    return corrected


@pytest.mark.parametrize(("label_loss", "lam"), [("sce", 0.0), ("ce", 0.4)])
def test_steps_equal_the_slow_ones(label_loss, lam):
    corrected = run(build(tau=0.0, label_loss=label_loss), lam)
    # All prototypes are zero in the first step: no label leads. Later steps
    # meet sets that earlier ones enlarged.
    assert corrected[0] == 0.0
    assert sum(corrected[1:]) > 0.0


def test_missing_label_by_hand():
    # Lead over the candidates: .5 - .3; the views disagree; .36 - .34 < tau;
    # nothing is outside.
    sure = [0.5, 0.3, 0.2]
    first = [sure, sure, [0.36, 0.34, 0.3], sure]
    second = [[0.6, 0.3, 0.1], [0.2, 0.2, 0.6], [0.6, 0.3, 0.1], sure]
    sets = np.array([[0, 1, 1], [0, 1, 0], [0, 1, 1], [1, 1, 1]], "float32")
    label, noisy = missing_label(
        np.array(first, "float32"), np.array(second, "float32"), sets, 0.05
    )
    np.testing.assert_array_equal(np.array(label)[:3], [0, 0, 0])
    np.testing.assert_array_equal(noisy, [True, False, False, False])


@SLOW_ON_JAX
def test_sets_are_corrected_after_a_share_of_the_epochs():
    model = tiny.pico(
        method=IRNet,
        tau=0.0,
        correct_start=0.5,
        compile_options=tiny.RARE_SHAPE,
    )
    images, candidates, _ = tiny.examples(24)
    history = tiny.fit(model, tiny.batches(images, candidates, 6), epochs=4)
    assert history["corrected"][:2] == [0.0, 0.0]
    added = model.added_labels.table.numpy()
    assert sum(history["corrected"]) == added.sum() > 0
    assert not (added * candidates).any()
    assert "corrected" in model.training_logs


def test_alim_between_epochs_meets_the_corrected_sets():
    images, candidates, _ = tiny.examples(24)
    model = tiny.pico(
        method=IRNet, correct_start=1.0, compile_options=tiny.RARE_SHAPE
    )
    data = alim_keras.data.eval_dataset(images, candidates, 3, 6)
    # One-sided: the sets become full, whose ratio is infinite.
    model.added_labels.table.assign(np.ones((24, 3)))
    alim = alim_keras.callbacks.ALIM(
        lam=0.0, update="epoch", data=data, warmup_epochs=1
    )
    tiny.fit(
        model, tiny.batches(images, candidates, 6), callbacks=[alim], epochs=1
    )
    ratios = model.pseudo_label_table.candidate_ratio.numpy()
    assert np.isinf(ratios).all()
