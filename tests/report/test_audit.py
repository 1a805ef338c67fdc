import keras
import numpy as np
import pytest
import tiny
from scipy.special import softmax

from alim_keras.data import CandidateSets
from alim_keras.data import eval_dataset
from alim_keras.errors import DataError
from alim_keras.report import audit

IMAGES, SETS, LABELS = tiny.examples(40)
CLASSES = ["ant", "bee", "cat"]
WEIGHTS = np.array([0.5, 0.3, 0.2])


@pytest.fixture(scope="module")
def model():
    made = tiny.plain(count=40)
    made.pseudo_label_table.table.assign(
        np.tile(WEIGHTS, (40, 1)).astype("float32")
    )
    return made


def classifier(activation="softmax"):
    keras.utils.set_random_seed(0)
    return keras.Sequential(
        [
            keras.Input(tiny.SHAPE),
            keras.layers.Rescaling(1 / 255),
            keras.layers.Flatten(),
            keras.layers.Dense(3, activation=activation),
        ]
    )


@pytest.mark.parametrize("form", ["train", "eval", "pair", "sets"])
def test_pseudo_labels_of_every_example_in_order(model, form):
    data = {
        # Of 40 examples an epoch of batches of 16 leaves eight out.
        "train": lambda: tiny.batches(IMAGES, SETS, 16),
        "eval": lambda: eval_dataset(IMAGES, SETS, 3),
        "pair": lambda: (IMAGES, SETS),
        "sets": lambda: (IMAGES, CandidateSets.from_dense(SETS)),
    }[form]()
    found = audit(model, data, class_names=CLASSES, labels=LABELS)
    assert found.labels["id"].tolist() == [str(i) for i in range(40)]
    assert set(found.labels["source"]) == {"table"}
    assert set(found.labels["label"]) == {"ant"}
    np.testing.assert_allclose(found.labels["probability"], 0.5)
    given = [[CLASSES[c] for c in np.flatnonzero(row)] for row in SETS]
    assert found.labels["candidates"].tolist() == given
    np.testing.assert_allclose(
        found.labels["suspicion"], 1 - SETS @ WEIGHTS, atol=1e-6
    )
    # No training, no noise rate.
    assert found.summary["noise_rate"] is None
    assert found.summary["known_labels"] == 40


def test_what_the_table_knows_of_the_noise_rate():
    model = tiny.plain(count=40)
    model.pseudo_label_table.noise_rate.assign(0.1)
    ids = [f"{i}.png" for i in range(40)]
    found = audit(model, (IMAGES, CandidateSets.from_dense(SETS, ids, CLASSES)))
    assert found.summary["noise_rate"] == pytest.approx(0.1)
    assert found.class_names == CLASSES
    assert found.labels["id"].tolist() == ids


def test_predictions_of_any_keras_model():
    plain = tiny.plain(count=40, network=tiny.backbone)
    network = plain.inference_network()
    for one in (network, classifier()):
        found = audit(one, (IMAGES, SETS), noise_rate=0.0)
        assert set(found.labels["source"]) == {"prediction"}
        p = one.predict(IMAGES, verbose=0) * SETS
        expected = [str(c) for c in p.argmax(axis=1)]
        assert found.labels["label"].tolist() == expected


def test_folds_take_the_place_of_the_model():
    folds = softmax(np.random.default_rng(0).normal(size=(40, 3)), axis=1)
    found = audit(None, (IMAGES, SETS), folds=folds, noise_rate=0.0)
    assert set(found.labels["source"]) == {"folds"}
    expected = (folds * SETS).argmax(axis=1)
    assert found.labels["label"].astype(int).tolist() == expected.tolist()
    # Single labels are sets of one.
    single = eval_dataset(IMAGES, LABELS, 3)
    found = audit(None, single, folds=np.eye(3)[LABELS], noise_rate=0.1)
    given = [int(row[0]) for row in found.labels["candidates"]]
    assert given == LABELS.tolist()
    assert not found.labels["outside"].any()


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda m: (m, (IMAGES[:30], SETS[:30])), "30 examples, a table of 40"),
        (lambda m: (m, [IMAGES]), "pair of images and candidate sets"),
        (lambda m: (classifier(None), (IMAGES, SETS)), "softmax"),
    ],
)
def test_what_does_not_fit_is_named(model, make, message):
    with pytest.raises(DataError, match=message):
        audit(*make(model))
    with pytest.raises(DataError, match="Received: 2 ids"):
        audit(model, (IMAGES, SETS), ids=["a", "b"])
