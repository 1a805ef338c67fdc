"""Arguments of the methods: names, defaults, refusals, saving."""

import keras
import numpy as np
import pytest
import tiny

import alim_keras
from alim_keras import methods
from alim_keras.errors import ConfigError
from alim_keras.methods import METHODS

# Values that are not the defaults.
SHARED = {
    "mean": 0.1,
    "std": 0.9,
    "mixup_weight": 0.7,
    "mixup_alpha": 2.0,
    "pseudo_label_momentum": (0.8, 0.7),
    "pseudo_label_start": 4,
    "weight_decay": 0.01,
    "folds": 3,
    "seed": 11,
}
PICO = {
    "embedding_dim": 3,
    "queue_size": 7,
    "key_momentum": 0.5,
    "prototype_momentum": 0.25,
    "temperature": 0.3,
    "prototype_temperature": 0.4,
    "scores_from": "classifier",
    "contrastive_weight": 0.6,
}
PLUS = {"start": 3, "knn_start": 5, "pure_ratio": 0.7, "num_neighbours": 2}
OPTIONS = {
    **dict.fromkeys(METHODS, {}),
    **dict.fromkeys(("lwc", "lws"), {"beta": 2.0}),
    "pico": PICO,
    "irnet": {**PICO, "tau": 0.3, "correct_start": 0.7, "label_loss": "ce"},
    "pico_plus": {**PICO, **PLUS},
}


@pytest.mark.parametrize("name", METHODS)
def test_every_option_survives_saving(name):
    options = {**SHARED, **OPTIONS[name]}
    method = METHODS[name]
    model = method(tiny.backbone(), tiny.CLASSES, 24, **options)
    again = method.from_config(model.get_config())
    assert model.get_config() == again.get_config()
    for option, value in options.items():
        assert getattr(again, option) == value, option
    arguments = set(methods.arguments_of(method))
    given = {"backbone", "num_classes", "num_examples", "views", "table"}
    # No argument of the class is left out above.
    assert arguments - given == set(options)
    if "temperature" in options:
        assert again.contrastive_loss.temperature == 0.3
        assert again.prototypes.momentum == 0.25


@pytest.mark.parametrize("mean", [(0.5,), np.array([0.5]), np.float32(0.5)])
def test_any_kind_of_mean_survives_saving(mean):
    model, image = tiny.plain(mean=mean), np.ones((1, *tiny.SHAPE))
    config = keras.saving.serialize_keras_object(model.get_config())
    config = keras.saving.deserialize_keras_object(config)
    again = tiny.Plain.from_config(config)
    np.testing.assert_array_equal(model.prepare(image), again.prepare(image))


@keras.saving.register_keras_serializable(package="test_arguments")
class Dropping(methods.RC):
    """A layer and a weight have the names of the arguments they come from."""

    def __init__(self, *args, dropout=0.5, share=0.1, rates=(), **kwargs):
        super().__init__(*args, **kwargs)
        self.dropout = keras.layers.Dropout(dropout)
        self.share = self.add_weight((), "zeros", name="share", trainable=False)
        self.share.assign(share)
        self.rates = rates


def test_an_argument_that_became_a_layer_does_not_hinder_loading(tmp_path):
    model = Dropping(tiny.backbone(), 3, 24, share=0.2, rates=(1, 2.5))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert float(again.share) == pytest.approx(0.2)
    assert (again.dropout.rate, tuple(again.rates)) == (0.5, (1, 2.5))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("pico", {"scores_from": "nearest"}, "scores_from='nearest'"),
        ("pico", {"temperature": 0.0}, "temperature"),
        ("pico", {"queue_size": 0}, "queue_size"),
        ("pico", {"key_momentum": 1.5}, "key_momentum"),
        ("pico", {"contrastive_weight": float("nan")}, "contrastive_weight"),
        ("rc", {"std": 0.0}, "std"),
        ("rc", {"mean": float("nan")}, "mean"),
        ("rc", {"mixup_alpha": 0.0}, "mixup_alpha"),
        ("rc", {"weight_decay": -1.0}, "weight_decay"),
        ("rc", {"folds": -1}, "folds=-1"),
        ("rc", {"folds": 1}, "from 2 to the number of examples, 24"),
        ("rc", {"folds": 25}, "folds=25"),
        ("rc", {"folds": 2, "mixup_weight": 1.0}, "mixup needs 3"),
        ("rc", {"pseudo_label_momentum": (0.9, 1.2)}, "pseudo_label_momentum"),
        ("lwc", {"beta": -1.0}, "beta"),
        ("irnet", {"tau": -0.1}, "`tau`.*-0.1"),
        ("irnet", {"correct_start": 7}, "`correct_start`.*7"),
        ("irnet", {"label_loss": "mse"}, "`label_loss`.*mse"),
        ("pico_plus", {"start": 9, "knn_start": 8}, "start=9, knn_start=8"),
        ("pico_plus", {"pure_ratio": 1.1}, "`pure_ratio`.*1.1"),
        ("pico_plus", {"num_neighbours": 0}, "`num_neighbours`.*0"),
        ("pico_plus", {"num_neighbours": 11}, "queue_size=10"),
    ],
)
def test_an_argument_out_of_range_is_named(name, options, words):
    if issubclass(METHODS[name], alim_keras.PiCO):
        options = {"embedding_dim": 4, "queue_size": 10, **options}
    with pytest.raises(ValueError, match=words):
        METHODS[name](tiny.backbone(), 3, 24, **options)


def test_a_sparse_table_is_refused_by_irnet():
    with pytest.raises(ConfigError, match="--table=dense.*SparsePseudoLabel"):
        tiny.pico(method=methods.IRNet, table="sparse")


def test_every_method_has_a_name_and_a_class():
    for name, method in METHODS.items():
        assert getattr(methods, method.__name__) is method
        assert methods.find_method(name) is method
        plain = name.replace("_plus", "plus")
        assert plain == method.__name__.lower().replace("_", "")
