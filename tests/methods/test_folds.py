"""Cross-fitted heads: no head learns from its own fold, or predicts another."""

import numpy as np
import pytest
import references
import tiny
from scipy.special import softmax

import alim_keras
from alim_keras.errors import ConfigError
from alim_keras.methods import METHODS

SMALL = {"embedding_dim": 4, "queue_size": 12}
# The simple methods' gradients are those of a loop: test_simple_methods.py.
OPTIONS = {
    "crdpll": {},
    "pico": {**SMALL, "scores_from": "classifier"},
    "irnet": {**SMALL, "tau": 0.0, "correct_start": 1},
    "pico_plus": {**SMALL, "start": 1, "knn_start": 1, "num_neighbours": 4},
}


def views(size):
    images, candidates, _ = tiny.examples(24)
    names = ("image", "weak", "strong", "weak2", "strong2")
    x = dict.fromkeys(names, images[:size])
    return {**x, "index": np.arange(size)}, candidates[:size]


def head_logits(model, images):
    """`(B, K, C)` from the weights, by numpy."""
    kernel, bias = model.classifier.kernel.numpy(), model.classifier.bias
    features = model.backbone.predict(np.float32(images) / 255, verbose=0)
    return np.einsum("bf,fkc->bkc", features, kernel) + bias.numpy()


@pytest.mark.parametrize("name", OPTIONS)
def test_no_head_learns_from_its_own_fold(name):
    x, y = views(2)
    for fold in ([2, 2], [2, 0]):
        options = {"folds": 4, "mixup_weight": 0.5, **OPTIONS[name]}
        model = tiny.build(METHODS[name], momentum=0.0, **options)
        model.progress.assign(1.0)
        model.epoch.assign(1)
        model.fold.assign(np.array(fold * 12))
        before = model.classifier.get_weights()[:2]
        model.train_on_batch(x, y)
        for old, new in zip(before, model.classifier.get_weights()[:2]):
            moved = np.abs(new - old).reshape(-1, 4, 3).max(axis=(0, 2))
            if fold == [2, 2]:
                assert moved[2] == 0
            # Head 2 learns from the second example, which is not of its fold.
            assert np.all(moved[[0, 1, 3]] > 0)


@pytest.mark.parametrize("mixup", [0.0, 1.0])
def test_sample_weights_scale_the_loss_of_an_example(mixup):
    # 2 l(0, 1) + 0 l(2, 3) + l(4, 5), partners with one weight each.
    x, y = tiny.batch(6)

    def loss(rows, weights=None):
        model = tiny.plain(learning_rate=0.0, folds=4, mixup_weight=mixup)
        part = {name: value[rows] for name, value in x.items()}
        logs = model.train_on_batch(part, y[rows], weights, return_dict=True)
        return logs["loss"]

    found = loss(np.arange(6), np.array([2.0, 2.0, 0.0, 0.0, 1.0, 1.0]))
    expected = (2 * loss([0, 1]) + loss([4, 5])) / 3
    assert found == pytest.approx(expected, rel=1e-5)


def test_inference_takes_the_mean_and_held_out_logits_the_own_head():
    images, candidates, _ = tiny.examples(24)
    model = tiny.plain(folds=3)
    logits = head_logits(model, images)
    p = model.predict(images, verbose=0)
    mean = softmax(logits.mean(axis=1), axis=1)
    np.testing.assert_allclose(p, mean, atol=1e-6)
    network = model.inference_network()
    np.testing.assert_allclose(network.predict(images, verbose=0), p, atol=1e-6)
    # One linear layer: 5 features, 3 classes.
    assert [w.shape for w in network.layers[-2].weights] == [(5, 3), (3,)]
    index = np.arange(24)[::-1].copy()
    found = model.held_out_logits({"image": images[::-1], "index": index})
    own = logits[index, model.fold.numpy()[index]]
    np.testing.assert_allclose(found, own, atol=1e-6)
    one = tiny.plain()
    found = one.held_out_logits({"image": images, "index": index})
    p = one.predict(images, verbose=0)
    np.testing.assert_allclose(softmax(found, axis=1), p, atol=1e-6)


def test_the_update_of_an_epoch_takes_the_own_head():
    images, candidates, _ = tiny.examples(24)
    model = tiny.plain(learning_rate=0.0, folds=3)
    data = alim_keras.data.eval_dataset(images, candidates, 3, 7)
    options = {"noise_rate": 0.4, "warmup_epochs": 1, "update": "epoch"}
    alim = alim_keras.callbacks.ALIM("scale", data=data, **options)
    tiny.fit(model, tiny.batches(images, candidates, 8), callbacks=[alim])
    own = softmax(head_logits(model, images), axis=2)
    own = own[np.arange(24), model.fold.numpy()]
    ratios = references.candidate_ratio(own, candidates)
    lam = references.adaptive_lambda(ratios, 0.4)
    assert 0 < lam < 1
    assert float(model.pseudo_label_table.lam) == pytest.approx(lam, rel=1e-5)
    expected = references.pseudo_labels(own, candidates, lam, "scale")
    np.testing.assert_allclose(model.pseudo_labels.numpy(), expected, atol=1e-5)


def test_a_method_that_may_use_the_wrong_heads_is_refused():
    class Own(alim_keras.methods.PRODEN):
        def method_losses(self, outputs, targets, batch):
            return super().method_losses(outputs, targets, batch)

    with pytest.raises(ConfigError, match="Own has its own method_losses"):
        Own(tiny.backbone(), 3, 24, folds=3)

    class Sure(Own):
        takes_folds = True

    assert Sure(tiny.backbone(), 3, 24, folds=3).folds == 3
