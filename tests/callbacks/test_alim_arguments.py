"""ALIM names what it cannot work with."""

import keras
import numpy as np
import pytest
import tiny

from alim_keras.callbacks import ALIM


def test_a_model_without_a_table_is_refused():
    model = keras.Sequential(
        [keras.Input((2,)), keras.layers.Dense(1)], name="simple"
    )
    model.compile("sgd", "mse", run_eagerly=True)
    with pytest.raises(TypeError, match="simple.*Sequential"):
        model.fit(
            np.ones((2, 2)),
            np.ones((2, 1)),
            verbose=0,
            callbacks=[ALIM(lam=0.1)],
        )


def test_labels_of_another_length_are_refused():
    alim = ALIM(lam=0.1, labels=np.zeros(23, "int64"))
    with pytest.raises(ValueError, match="24.*23"):
        x, y = tiny.batch(6)
        tiny.fit(tiny.plain(), x, y=y, callbacks=[alim])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("norm", ["soft"]),
        ("update", ["batch"]),
        ("noise_rate", [None, 1.5, -0.1, np.nan, "oracle"]),
        ("lam", [1.5, -0.5, np.nan, "auto", None]),
        ("scale_factor", [0.0, -1.0, np.inf, "1"]),
        ("pseudo_label_momentum", [1.5, (0.9, np.nan), (0.9, 0.8, 0.7)]),
        ("warmup_epochs", [-1, np.nan, "80"]),
    ],
)
def test_arguments_out_of_range_are_named(name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"`?{name}.*{name}="):
            ALIM(**{"noise_rate": 0.2, name: value})


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("data=None", {"update": "epoch", "lam": 0.1}),
    ],
)
def test_arguments_that_need_others_are_named(words, arguments):
    with pytest.raises(ValueError, match=words):
        ALIM(**arguments)
