import keras
import numpy as np
import pytest
import tiny
from scipy.special import softmax

from alim_keras import methods
from alim_keras import networks
from alim_keras.data import CandidateSets
from alim_keras.data import eval_dataset
from alim_keras.errors import DataError
from alim_keras.report import audit
from alim_keras.report import embeddings
from alim_keras.report.examination import embedded

IMAGES, SETS, LABELS = tiny.examples(40)
CLASSES = ["ant", "bee", "cat"]
WEIGHTS = np.array([0.5, 0.3, 0.2])


@pytest.fixture(scope="module")
def model():
    made = tiny.plain(count=40)
    made.pseudo_label_table.table.assign(np.tile(WEIGHTS, (40, 1)))
    return made


def classifier(activation="softmax"):
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Rescaling(1 / 255), keras.layers.Flatten()]
    layers.append(keras.layers.Dense(3, activation=activation))
    return keras.Sequential([keras.Input(tiny.SHAPE), *layers])


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
    expected = 1 - SETS @ WEIGHTS
    np.testing.assert_allclose(found.labels["suspicion"], expected, atol=1e-6)
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


def small_cnn():
    """A model from random weights on pixels, and its images and sets.

    Images 3 and 30 are one picture, as are 8 and 9.
    """
    images, sets, _ = tiny.examples(40, seed=1, shape=(12, 12, 1))
    images[30], images[9] = images[3], images[8]
    keras.utils.set_random_seed(0)
    backbone = networks.small_cnn((12, 12, 1), width=4)
    model = methods.PRODEN(backbone, 3, 40)
    return model, images, sets


def test_what_a_network_of_pixels_shows_of_its_items():
    model, images, sets = small_cnn()
    # Labels of the first pair are settled apart.
    wanted = np.eye(3, dtype="float32")[np.arange(40) % 3]
    wanted[[3, 30, 8, 9]] = np.eye(3)[[0, 1, 2, 2]]
    model.pseudo_label_table.table.assign(wanted)
    found = audit(model, (images, sets))
    around = found.surroundings
    assert around.places.shape == (40, 2)
    np.testing.assert_allclose(around.places[3], around.places[30], atol=0.5)
    (pair,) = around.duplicates.drop(columns="distance").to_numpy().tolist()
    ends = [["3", "0"], ["30", "1"]]
    assert pair[0] == "training" and sorted([pair[1:3], pair[3:]]) == ends
    # The numbers are those in front of the classifier.
    features = embedded(model, images)
    assert features.dtype == "float16"
    logits = model.classifier(features.astype("float32"))
    found = softmax(keras.ops.convert_to_numpy(logits), axis=1)
    expected = model.predict(images, verbose=0)
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert audit(model, (images, sets), features=None).surroundings is None


def test_a_model_of_vectors_and_too_many_images_for_a_map(monkeypatch):
    model, images, _ = small_cnn()
    monkeypatch.setattr(embeddings, "MOST", 39)
    assert embedded(model, images) is None
    vectors = np.arange(6.0).reshape(2, 1, 1, 3)
    start = keras.Input((1, 1, 3))
    backbone = keras.Model(start, keras.layers.Flatten()(start))
    model = methods.PRODEN(backbone, 3, 2)
    np.testing.assert_array_equal(embedded(model, vectors), vectors[:, 0, 0])
