import importlib
import importlib.util

import keras
import numpy as np
import pytest
import tiny
from scipy.special import softmax

import alim_keras
from alim_keras.data import SparseCandidates
from alim_keras.data import eval_dataset
from alim_keras.errors import DataError

IMAGES, SETS, LABELS = tiny.examples(40)
CLASSES = ["ant", "bee", "cat"]


@pytest.fixture(scope="module")
def model():
    made = tiny.plain(count=40)
    made.pseudo_label_table.table.assign(
        np.tile([[0.5, 0.3, 0.2]], (40, 1)).astype("float32")
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


@pytest.mark.parametrize("form", ["train", "eval", "pair", "sparse"])
def test_pseudo_labels_of_every_example_in_order(model, form):
    sparse = SparseCandidates.from_multi_hot(SETS)
    data = {
        # Of 40 examples an epoch of batches of 16 leaves eight out.
        "train": lambda: tiny.batches(IMAGES, SETS, 16),
        "eval": lambda: eval_dataset(IMAGES, SETS, 3),
        "pair": lambda: (IMAGES, SETS),
        "sparse": lambda: eval_dataset(IMAGES, sparse, 3),
    }[form]()
    found = alim_keras.report.audit(
        model, data, class_names=CLASSES, labels=LABELS
    )
    assert found.labels["id"].tolist() == [str(i) for i in range(40)]
    assert set(found.labels["source"]) == {"table"}
    assert set(found.labels["label"]) == {"ant"}
    np.testing.assert_allclose(found.labels["probability"], 0.5)
    given = [[CLASSES[c] for c in np.flatnonzero(row)] for row in SETS]
    assert found.labels["candidates"].tolist() == given
    np.testing.assert_allclose(
        found.labels["suspicion"], 1 - SETS @ [0.5, 0.3, 0.2], atol=1e-6
    )
    # No training, no candidate ratios, no lambda.
    assert found.ratio is None
    assert found.summary["lambda"] is None
    assert found.summary["known_labels"] == 40


def test_what_the_table_knows_of_lambda_and_ratios(model):
    table = model.pseudo_label_table
    ratios = np.arange(40, dtype="float32")
    table.candidate_ratio.assign(ratios)
    table.lam.assign(0.25)
    table.noise_rate.assign(0.1)
    found = alim_keras.report.audit(model, (IMAGES, SETS))
    assert found.ratio.tolist() == ratios.tolist()
    assert found.summary["lambda"] == 0.25
    assert found.summary["noise_rate"] == pytest.approx(0.1)
    assert found.class_names == ["0", "1", "2"]
    for variable, value in (
        (table.candidate_ratio, np.full(40, np.nan)),
        (table.lam, 0.0),
        (table.noise_rate, 0.0),
    ):
        variable.assign(value)


def test_predictions_of_any_keras_model():
    network = classifier()
    found = alim_keras.report.audit(
        network, (IMAGES, SETS), class_names=CLASSES, noise_rate=0.0
    )
    assert set(found.labels["source"]) == {"prediction"}
    p = network.predict(IMAGES, verbose=0) * SETS
    expected = [CLASSES[one] for one in p.argmax(axis=1)]
    assert found.labels["label"].tolist() == expected
    assert found.summary["noise_rate"] == 0


def test_predictions_of_a_method_without_pseudo_labels():
    method = tiny.plain(count=40, network=tiny.backbone).inference_network()
    found = alim_keras.report.audit(method, (IMAGES, SETS), noise_rate=0.0)
    p = method.predict(IMAGES, verbose=0) * SETS
    assert found.labels["label"].tolist() == [
        str(one) for one in p.argmax(axis=1)
    ]


def test_folds_take_the_place_of_the_model():
    folds = softmax(np.random.default_rng(0).normal(size=(40, 3)), axis=1)
    found = alim_keras.report.audit(
        None, (IMAGES, SETS), folds=folds, noise_rate=0.0
    )
    assert set(found.labels["source"]) == {"folds"}
    expected = (folds * SETS).argmax(axis=1)
    assert found.labels["label"].astype(int).tolist() == expected.tolist()


def test_single_labels_are_sets_of_one():
    found = alim_keras.report.audit(
        None,
        eval_dataset(IMAGES, LABELS, 3),
        folds=np.eye(3)[LABELS],
        noise_rate=0.1,
    )
    given = [row[0] for row in found.labels["candidates"]]
    assert list(map(int, given)) == LABELS.tolist()
    assert not found.labels["outside"].any()


def test_the_page_shows_the_pictures(tmp_path, model):
    found = alim_keras.report.audit(model, (IMAGES, SETS))
    path = tmp_path / "report.html"
    text = found.to_html(path, np.repeat(IMAGES, 3, axis=3))
    assert path.read_text(encoding="utf-8") == text
    assert text.count("data:image/") > 5
    # Feature vectors are images of one pixel, and show nothing.
    bare = found.to_html(images=np.zeros((40, 1, 1, 7), "float32"))
    assert "data:image/" not in bare and "<html" in bare


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda m: (m, (IMAGES[:30], SETS[:30])), "30 examples, a table of 40"),
        (lambda m: (m, [IMAGES]), "further map or batch"),
        (lambda m: (classifier(None), (IMAGES, SETS)), "softmax"),
    ],
)
def test_what_does_not_fit_is_named(model, make, words):
    with pytest.raises(DataError, match=words):
        alim_keras.report.audit(*make(model))


def test_folds_must_be_probabilities():
    with pytest.raises(DataError, match="sum 6"):
        alim_keras.report.audit(
            None, (IMAGES, SETS), folds=np.full((40, 3), 2.0)
        )


@pytest.mark.skipif(
    importlib.util.find_spec("alim_keras.audit") is None,
    reason="the command is not there",
)
def test_the_command_of_this_name_can_be_called_as_well():
    folds = np.eye(3)[LABELS]
    module = importlib.import_module("alim_keras.audit")
    # The import put the module in the place of the function.
    assert alim_keras.audit is module
    found = alim_keras.audit(None, (IMAGES, SETS), folds=folds)
    assert found.summary["num_examples"] == 40
    assert callable(module.main)
