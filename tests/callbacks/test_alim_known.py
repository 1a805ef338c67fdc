"""Examples whose set is a person's answer keep it, whatever lambda is."""

import numpy as np
import pytest
import tiny

from alim_keras.callbacks import ALIM
from alim_keras.layers import PseudoLabelTable
from alim_keras.layers import SparsePseudoLabelTable

COUNT = 24
KNOWN = np.arange(COUNT) % 2 == 0


def train(known, **options):
    """Returns the model, and whose label has left its set."""
    images, _, labels = tiny.examples(COUNT)
    # The answers are right, and no other set holds the truth.
    sets = np.eye(3, dtype="float32")[np.where(KNOWN, labels, (labels + 1) % 3)]
    options = {"noise_rate": 0.5, "pseudo_label_momentum": 0.1, **options}
    options |= {"known": known, "learning_rate": 0.05, "epochs": 6}
    model, _ = tiny.fit_with_alim(images, sets, **options)
    settled, _ = model.pseudo_label_table.settled()
    return model, settled != sets.argmax(axis=1)


@pytest.mark.parametrize("update", ["step", "epoch"])
@pytest.mark.parametrize("norm", ["onehot", "scale"])
@pytest.mark.parametrize("lam", [1.0, "adaptive"])
def test_what_is_known_stays_and_the_others_move(lam, norm, update):
    options = {"lam": lam, "norm": norm, "update": update}
    _, moved = train(None, **options)
    # With lambda the answers would be lost too.
    assert moved[KNOWN].any()
    model, moved = train(KNOWN, **options)
    assert not moved[KNOWN].any()
    assert moved[~KNOWN].any()
    rows = model.pseudo_labels.numpy()[KNOWN]
    assert np.sort(rows, axis=1)[:, :-1].max() == 0
    factors = model.pseudo_label_table.lam_factor.numpy()
    assert (factors[KNOWN] == 0).all() and (factors[~KNOWN] == 1).all()


def test_a_sparse_table_keeps_them_too():
    def table():
        return SparsePseudoLabelTable(COUNT, 3, 1, 2)

    _, moved = train(KNOWN, table=table, lam=1.0, norm="onehot")
    assert not moved[KNOWN].any() and moved[~KNOWN].any()


def test_what_cannot_be_kept_is_refused():
    with pytest.raises(ValueError, match="`known` must have one entry"):
        train(KNOWN[:-1])


def test_lambda_is_0_in_the_warm_up_after_an_earlier_fit():
    alim = ALIM(lam=0.5, warmup_epochs=2)
    alim.table = PseudoLabelTable(4, 3)
    alim.table.lam.assign(0.5)
    alim.table.lam_factor.assign([1.0, 0.0, 1.0, 1.0])
    lam = np.asarray(alim.table.lam_of(np.arange(3)))
    assert lam.tolist() == [[0.5], [0.0], [0.5]]
    alim.on_epoch_begin(0)
    assert (np.asarray(alim.table.lam_of(np.arange(4))) == 0).all()
