"""Examples whose set is a person's answer keep it, whatever lambda is."""

import keras
import numpy as np
import pytest
import tiny

import alim_keras
from alim_keras.callbacks import ALIM
from alim_keras.layers import SparsePseudoLabelTable

COUNT = 24
KNOWN = np.arange(COUNT) % 2 == 0


def train(known, table="dense", update="step", **options):
    images, sets, labels = tiny.examples(COUNT)
    # The answers are right, and no other set holds the truth.
    sets = np.eye(3, dtype="float32")[np.where(KNOWN, labels, (labels + 1) % 3)]
    keras.utils.set_random_seed(1)
    model = tiny.Plain(tiny.backbone(), 3, COUNT, table=table)
    model.compile(keras.optimizers.SGD(0.05), jit_compile=False)
    data = None
    if update == "epoch":
        data = alim_keras.data.eval_dataset(images, sets, 3, 8)
    alim = ALIM(
        noise_rate=0.5,
        warmup_epochs=1,
        update=update,
        data=data,
        known=known,
        pseudo_label_momentum=0.1,
        **options,
    )
    tiny.fit(model, tiny.batches(images, sets, 8), epochs=6, callbacks=[alim])
    settled, _ = model.pseudo_label_table.settled()
    return model, settled != sets.argmax(axis=1)


@pytest.mark.parametrize("update", ["step", "epoch"])
@pytest.mark.parametrize("norm", ["onehot", "scale"])
@pytest.mark.parametrize("lam", [1.0, "adaptive", "instance"])
def test_what_is_known_stays_and_the_others_move(lam, norm, update):
    options = {"lam": lam, "norm": norm, "update": update, "protocol": "size"}
    _, moved = train(None, **options)
    # With lambda the answers would be lost too.
    assert moved[KNOWN].any()
    model, moved = train(KNOWN, **options)
    assert not moved[KNOWN].any()
    # The closed form leaves little to examples without a clear ratio.
    assert moved[~KNOWN].any() or lam == "instance"
    rows = model.pseudo_labels.numpy()[KNOWN]
    assert np.sort(rows, axis=1)[:, :-1].max() == 0
    factors = model.pseudo_label_table.noise_posterior.numpy()
    assert (factors[KNOWN] == 0).all() and (factors[~KNOWN] > 0).all()


def test_a_sparse_table_keeps_them_too():
    table = SparsePseudoLabelTable(COUNT, 3, 1, 2)
    _, moved = train(KNOWN, table, lam=1.0, norm="onehot")
    assert not moved[KNOWN].any() and moved[~KNOWN].any()


def test_knowing_none_changes_nothing():
    plain, _ = train(None, lam=0.5)
    none, _ = train(np.zeros(COUNT, bool), lam=0.5)
    for one, other in zip(plain.weights, none.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_what_cannot_be_kept_is_refused():
    with pytest.raises(ValueError, match="`known` must have one entry"):
        train(KNOWN[:-1])
