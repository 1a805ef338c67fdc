"""ALIM on other tables than the dense, exact one, and with known labels."""

import keras
import numpy as np
import pytest
import tiny
from numpy.testing import assert_allclose
from numpy.testing import assert_array_equal

from alim_keras import backend
from alim_keras.callbacks import ALIM
from alim_keras.layers import PseudoLabelTable
from alim_keras.layers import SparsePseudoLabelTable

COUNT, CLASSES = 24, 5


def examples():
    """Five classes, sets of one or two, a third of them wrong."""
    stream = np.random.default_rng(0)
    images = stream.integers(0, 256, (COUNT, 4, 4, 1)).astype("uint8")
    labels = stream.integers(0, CLASSES, COUNT)
    sets = np.zeros((COUNT, CLASSES), "float32")
    for row, label in enumerate(labels):
        sets[row, (label + row % 3 % 2) % CLASSES] = 1.0
        sets[row, (label + row % 2) % CLASSES] = 1.0
    return images, sets, labels


def sparse(num_others=1, **options):
    return SparsePseudoLabelTable(COUNT, CLASSES, 2, num_others, **options)


def train(table, update="step", **options):
    """Returns the model and its history."""
    images, sets, labels = examples()
    alim = {"noise_rate": 0.4, "pseudo_label_momentum": 0.5, "norm": "onehot"}
    options = {**alim, "labels": labels, **options}
    return tiny.fit_with_alim(images, sets, table, update, **options)


@pytest.mark.parametrize("update", ["step", "epoch"])
def test_a_sparse_table_that_suffices_gives_the_dense_run(update):
    # 2 + 3 slots are all classes.
    exact, first = train("dense", update)
    model, second = train(lambda: sparse(3), update)
    # A new lambda reaches a compiled step.
    assert first["outside"][0] == 0.0 and max(first["outside"]) > 0.1
    assert all(0.0 < lam < 1.0 for lam in first["lambda"])
    for name in first:
        assert_allclose(second[name], first[name], rtol=1e-5, err_msg=name)
    assert_allclose(
        model.pseudo_labels.numpy(), exact.pseudo_labels.numpy(), atol=1e-6
    )


@pytest.mark.parametrize("update", ["step", "epoch"])
def test_a_sparse_table_is_never_made_dense(update, monkeypatch):
    def refuse(*_):
        raise AssertionError("made dense")

    monkeypatch.setattr(SparsePseudoLabelTable, "numpy", refuse)
    _, history = train(sparse, update, epochs=2)
    assert len(history["pseudo_label_accuracy"]) == 2


@pytest.mark.tensorflow("replicas of tf.distribute")
def test_two_replicas_keep_what_one_device_keeps():
    import tensorflow as tf

    scope, _ = backend.make_strategy("mirrored", 2)
    with scope:
        strategy = tf.distribute.get_strategy()
    for update in ("step", "epoch"):
        options = {"update": update, "norm": "scale", "epochs": 2}
        one, first = train(sparse, **options)
        two, second = train(sparse, scope=strategy.scope(), **options)
        for name in first:
            assert_allclose(second[name], first[name], atol=1e-5, err_msg=name)
        table = two.pseudo_label_table
        for a, b in zip(one.pseudo_label_table.weights, table.weights):
            assert_allclose(b.numpy(), a.numpy(), atol=1e-5, err_msg=a.path)
            copies = b.value.values
            assert_array_equal(*(c.numpy() for c in copies))
        assert np.isfinite(table.candidate_ratio.numpy()).all()


def test_a_model_with_a_sparse_table_is_saved_whole(tmp_path):
    model, _ = train(lambda: sparse(), epochs=2)
    model.save(tmp_path / "model.keras")
    options = {"custom_objects": {"Plain": tiny.Plain}, "compile": False}
    again = keras.saving.load_model(tmp_path / "model.keras", **options)
    assert isinstance(again.pseudo_label_table, SparsePseudoLabelTable)
    assert_array_equal(again.pseudo_labels.numpy(), model.pseudo_labels.numpy())
    assert again.pseudo_labels.numpy().max() > 0.5


def test_tables_by_name_and_by_layer():
    def model(**options):
        return tiny.Plain(tiny.backbone(), CLASSES, COUNT, **options)

    assert type(model().pseudo_label_table) is PseudoLabelTable
    table = model(table="sparse").pseudo_label_table
    assert isinstance(table, SparsePseudoLabelTable)
    assert table.num_slots == CLASSES
    table = sparse()
    assert model(table=table).pseudo_label_table is table
    assert len(model(table=table).pseudo_labels) == COUNT
    with pytest.raises(ValueError, match="table='thin'"):
        model(table="thin")
    with pytest.raises(ValueError, match="24 examples and 5.*3 examples"):
        model(table=PseudoLabelTable(3, CLASSES))


# Examples whose set is a person's answer keep it, whatever lambda is.

KNOWN = np.arange(COUNT) % 2 == 0


def train_known(known, **options):
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
    _, moved = train_known(None, **options)
    # With lambda the answers would be lost too.
    assert moved[KNOWN].any()
    model, moved = train_known(KNOWN, **options)
    assert not moved[KNOWN].any()
    assert moved[~KNOWN].any()
    rows = model.pseudo_labels.numpy()[KNOWN]
    assert np.sort(rows, axis=1)[:, :-1].max() == 0
    factors = model.pseudo_label_table.lam_factor.numpy()
    assert (factors[KNOWN] == 0).all() and (factors[~KNOWN] == 1).all()


def test_a_sparse_table_keeps_them_too():
    def table():
        return SparsePseudoLabelTable(COUNT, 3, 1, 2)

    _, moved = train_known(KNOWN, table=table, lam=1.0, norm="onehot")
    assert not moved[KNOWN].any() and moved[~KNOWN].any()


def test_lambda_is_0_in_the_warm_up_after_an_earlier_fit():
    alim = ALIM(lam=0.5, warmup_epochs=2)
    alim.table = PseudoLabelTable(4, 3)
    alim.table.lam.assign(0.5)
    alim.table.lam_factor.assign([1.0, 0.0, 1.0, 1.0])
    lam = np.asarray(alim.table.lam_of(np.arange(3)))
    assert lam.tolist() == [[0.5], [0.0], [0.5]]
    alim.on_epoch_begin(0)
    assert (np.asarray(alim.table.lam_of(np.arange(4))) == 0).all()
