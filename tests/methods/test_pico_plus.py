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


def trained(**options):
    model = tiny.pico(compile_options=tiny.RARE_SHAPE, **options)
    images, candidates, _ = tiny.examples(24)
    return model, tiny.fit(model, tiny.batches(images, candidates, 12), 2)


def test_with_all_examples_reliable_it_is_pico(monkeypatch):
    # What is left is PiCO with mixup, at temperature 1.
    pico, first = trained(prototype_temperature=1.0)
    monkeypatch.setattr(PiCOPlus, "cls_weight", 1.0)
    monkeypatch.setattr(PiCOPlus, "unreliable_weight", 0.0)
    options = {**TINY, "pure_ratio": 1.0, "start": 0, "knn_start": 0}
    plus, second = trained(method=PiCOPlus, **options)
    parts = ("backbone", "classifier", "projection", "key_encoder", "queue")
    for name in (*parts, "prototypes", "pseudo_label_table"):
        for a, b in zip(
            getattr(pico, name).weights, getattr(plus, name).weights
        ):
            np.testing.assert_allclose(a.numpy(), b.numpy(), atol=2e-5)
    for name in ("loss", "cls_loss", "mix_loss", "outside"):
        np.testing.assert_allclose(first[name], second[name], atol=2e-5)
    # PiCO's weight is outside its log.
    np.testing.assert_allclose(
        0.5 * np.array(first["cont_loss"]), second["cont_loss"], atol=2e-5
    )


@SLOW_ON_JAX
def test_sample_weights_scale_the_losses():
    weak, strong, index, candidates = next(pico_steps.batches())

    def logs(*sample_weight):
        model, slow = build(mixup_weight=0.0)
        begin(model, slow, 2)
        distrust(model, slow, index[:2])
        return model.train_on_batch(
            {"weak": weak, "strong": strong, "index": index},
            candidates,
            sample_weight=np.array(sample_weight, "float32"),
            return_dict=True,
        )

    whole, none = logs(1, 1, 1, 1), logs(0, 0, 0, 0)
    half = logs(2, 2, 0, 0), logs(0, 0, 2, 2)
    for name in ("cls_loss", "guess_loss", "cont_loss", "relaxed_loss"):
        assert none[name] == 0.0
        mean = (half[0][name] + half[1][name]) / 2
        assert mean == pytest.approx(whole[name], rel=1e-5)
    assert half[0]["cls_loss"] == half[1]["guess_loss"] == 0.0
