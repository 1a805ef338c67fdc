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
    ("name", "arguments"),
    [
        ("norm", {"norm": "soft", "lam": 0.1}),
        ("update", {"update": "batch", "lam": 0.1}),
        ("data", {"update": "epoch", "lam": 0.1}),
        ("noise_rate", {}),
        ("noise_rate", {"noise_rate": 1.5}),
        ("noise_rate", {"noise_rate": -0.1}),
        ("noise_rate", {"noise_rate": float("nan")}),
        ("noise_rate", {"noise_rate": "oracle"}),
        ("lam", {"lam": 1.5}),
        ("lam", {"lam": -0.5}),
        ("lam", {"lam": float("nan")}),
        ("lam", {"lam": "auto"}),
        ("lam", {"lam": None}),
        ("scale_factor", {"scale_factor": 0.0, "lam": 0.1}),
        ("scale_factor", {"scale_factor": -1.0, "lam": 0.1}),
        ("scale_factor", {"scale_factor": float("inf"), "lam": 0.1}),
        ("scale_factor", {"scale_factor": "1", "lam": 0.1}),
        ("pseudo_label_momentum", {"pseudo_label_momentum": 1.5, "lam": 0.1}),
        (
            "pseudo_label_momentum",
            {"pseudo_label_momentum": (0.9, float("nan")), "lam": 0.1},
        ),
        (
            "pseudo_label_momentum",
            {"pseudo_label_momentum": (0.9, 0.8, 0.7), "lam": 0.1},
        ),
        ("warmup_epochs", {"warmup_epochs": -1, "lam": 0.1}),
        ("warmup_epochs", {"warmup_epochs": float("nan"), "lam": 0.1}),
        ("warmup_epochs", {"warmup_epochs": "80", "lam": 0.1}),
    ],
)
def test_arguments_out_of_range_are_named(name, arguments):
    with pytest.raises(ValueError, match=name):
        ALIM(**arguments)
