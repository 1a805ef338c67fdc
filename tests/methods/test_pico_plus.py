"""PiCO+ against its slow twin, and its special cases."""

import numpy as np
import pico_steps
import pytest
import references_methods
import tiny

from alim_keras.methods import PiCOPlus

SLOW_ON_JAX = pytest.mark.tensorflow("compiles a step that others run, too")

TINY = {"start": 1, "knn_start": 2, "num_neighbours": 4}
# Large enough that no two embeddings are the same: neighbours would tie.
OPTIONS = {**pico_steps.OPTIONS, "embedding_dim": 4, **TINY}


def build(**options):
    """A PiCO+ on images of the slow twin's size, and the twin."""
    model = tiny.pico(
        pico_steps.COUNT,
        method=PiCOPlus,
        network=lambda: tiny.backbone(shape=pico_steps.SHAPE, features=4),
        learning_rate=0.2,
        compile_options=tiny.RARE_SHAPE,
        **{**OPTIONS, **options},
    )
    slow = references_methods.SlowPiCOPlus(model, 0.2, 0.9)
    model.pseudo_label_table.momentum.assign(0.9)
    slow.phi = 0.9
    return model, slow


def compare_steps(model, slow, size=4, atol=1e-4):
    """Three steps of both; compares everything after each."""
    for batch in pico_steps.batches():
        *views, index, candidates = (part[:size] for part in batch)
        pico_steps.compare(model, slow, views, index, candidates, atol)
        got = model.reliability.distance.numpy()
        np.testing.assert_allclose(got, slow.distance, atol=atol)


def begin(model, slow, epoch):
    model.epoch.assign(epoch)
    model.begin_epoch(epoch)
    slow.begin_epoch(epoch)
    reliable = model.reliability.reliable.numpy()
    np.testing.assert_array_equal(reliable, slow.reliable)


def distrust(model, slow, index):
    """Makes some examples unreliable, and all others reliable."""
    slow.reliable[:] = True
    slow.reliable[index] = False
    model.reliability.reliable.assign(np.float32(slow.reliable))


@pytest.mark.parametrize("lam", [0.0, 0.4])
def test_three_epochs_equal_the_slow_ones(lam):
    model, slow = build(pseudo_label_start=3 if lam else 1)
    model.pseudo_label_table.lam.assign(lam)
    slow.lam = lam
    for epoch in range(3):
        begin(model, slow, epoch)
        # 9 examples are known: floor(.6 * 9) = 5 of them are reliable.
        assert (~slow.reliable).sum() == (4 if epoch else 0)
        compare_steps(model, slow)


@pytest.mark.parametrize("epoch", [1, 2])
@pytest.mark.parametrize("reliable", [False, True])
def test_a_subset_may_be_empty(epoch, reliable):
    model, slow = build()
    begin(model, slow, epoch)
    distrust(model, slow, [] if reliable else slice(None))
    compare_steps(model, slow)
    assert np.isfinite(model.backbone.get_weights()[0]).all()


@SLOW_ON_JAX
@pytest.mark.parametrize("mixup_weight", [0.0, 1.0])
def test_a_batch_of_three(mixup_weight):
    model, slow = build(mixup_weight=mixup_weight)
    begin(model, slow, 2)
    distrust(model, slow, [7, 11, 0])
    compare_steps(model, slow, size=3)


def test_weights_of_examples_scale_their_losses():
    model, slow = build()
    begin(model, slow, 2)
    weight = np.array([2.0, 0.0, 0.5, 1.0], "float32")
    *views, index, candidates = next(pico_steps.batches())
    distrust(model, slow, index[:2])
    pico_steps.compare(
        model, slow, views, index, candidates, atol=1e-4, weight=(weight,)
    )
