"""The predict command, called as tests do; see tests/predict."""

import json

import numpy as np
import pytest

from alim_keras import cli
from alim_keras import predict
from alim_keras.cli import predict_flags
from alim_keras.methods import METHODS

NAMES = ("ant", "bee", "cat, big", "döner")
SIZE, FEATURES, COUNT = 8, 5, 7


def make_model(backbone, **options):
    model = METHODS["rc"](backbone, len(NAMES), 10, **options)
    # Far apart, so that no rounding decides who is the likeliest.
    stream = np.random.default_rng(1)
    shape = model.classifier.kernel.shape
    model.classifier.kernel.assign(stream.normal(size=shape))
    return model


def leave(folder, model, shape):
    """Writes what a run leaves."""
    model.export(str(folder / "saved_model"), class_names=NAMES)
    model.save(folder / "model.keras")
    data = {"class_names": NAMES, "image_shape": shape}
    (folder / "run.json").write_text(json.dumps({"data": data}))


def call(*arguments):
    words = [str(argument) for argument in arguments]
    return cli.run(predict_flags.COMMAND, predict.main, words)


def check(found, expected, top=3):
    """Compares rows with what `model.predict` gave."""
    assert len(found) == len(expected)
    for row, p in zip(found, expected):
        order = np.argsort(-p)[:top]
        for place, one in enumerate(order, start=1):
            suffix = "" if place == 1 else f"_{place}"
            assert row[f"label{suffix}"] == NAMES[one]
            share = float(row[f"probability{suffix}"])
            assert share == pytest.approx(p[one], abs=1e-5)
        assert f"label_{top + 1}" not in row
