"""ALIM with update="epoch" is the paper's Algorithm 1."""

import keras
import numpy as np
import pytest
import references
import tiny
from scipy.special import softmax

import alim_keras
from alim_keras.callbacks import ALIM


def plain(**options):
    """A classifier that is unsure, so that ratios lie around 1."""
    return tiny.plain(learning_rate=0.02, momentum=0.0, **options)


def fit(model, alim, epochs=1, batch_size=7, start=0):
    data = tiny.batches(*tiny.examples(24)[:2], batch_size)
    tiny.fit(model, data, epochs, initial_epoch=start, callbacks=[alim])


def _slow_algorithm_1(p, candidates, epoch, warmup, eta, norm, factor):
    ratios = references.candidate_ratio(p, candidates)
    lam = 0.0
    if epoch + 1 >= warmup:
        lam = references.adaptive_lambda(ratios, eta)
    return lam, references.pseudo_labels(p, candidates, lam, norm, factor)


@pytest.mark.parametrize("norm", ["onehot", "scale"])
def test_the_update_of_an_epoch_is_algorithm_1(norm):
    images, candidates, _ = tiny.examples(24)
    model = plain(network=lambda: tiny.backbone(batch_norm=True))
    data = alim_keras.data.eval_dataset(images, candidates, 3, 5)
    seen = []

    class Before(keras.callbacks.Callback):
        """Listed before ALIM: what it will find, and must not touch."""

        def on_epoch_end(self, epoch, logs=None):
            state = {
                v.path: v.numpy()
                for v in self.model.variables
                if "pseudo_label_table" not in v.path
            }
            p = self.model.predict(images, verbose=0)
            seen.append((p, state, model.pseudo_labels.numpy()))

    class After(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            p, state, table = seen[epoch]
            for variable in self.model.variables:
                if variable.path in state:
                    np.testing.assert_array_equal(
                        variable.numpy(), state[variable.path], variable.path
                    )
            lam, rows = _slow_algorithm_1(
                p, candidates, epoch, 2, 0.4, norm, 0.5
            )
            assert logs["lambda"] == pytest.approx(lam, rel=1e-5)
            np.testing.assert_allclose(
                model.pseudo_labels.numpy(), rows, atol=1e-5
            )
            if epoch:
                # No step has changed what the epoch before had set.
                p, _, _ = seen[epoch - 1]
                _, rows = _slow_algorithm_1(
                    p, candidates, epoch - 1, 2, 0.4, norm, 0.5
                )
                np.testing.assert_allclose(table, rows, atol=1e-5)
            checked.append(lam)

    checked = []
    alim = ALIM(
        norm, 0.5, noise_rate=0.4, warmup_epochs=2, update="epoch", data=data
    )
    tiny.fit(
        model,
        tiny.batches(images, candidates, 7),
        epochs=4,
        callbacks=[Before(), alim, After()],
    )
    assert len(checked) == 4 and checked[0] == 0.0
    assert all(0.0 < lam < 1.0 for lam in checked[1:])


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
