"""Runs on rare classes, and with the other kind of views."""

import csv
import json

import numpy as np
import pytest
from comparing import checkpoint

from alim_keras.augment import AutoAugmentViews
from alim_keras.augment import Views
from alim_keras.cli import train_flags
from alim_keras.data import CandidateSets
from alim_keras.data import sources
from alim_keras.runs import build


def test_imbalance_thins_out_the_subset(run_train, tmp_path):
    flags = ("--train_size=400", "--imbalance=8", "--epochs=1")
    assert run_train(tmp_path, *flags) == 0
    expected = sources.load("digits").subset(400, 3).long_tailed(8, 3)
    counts = np.bincount(expected.labels)
    # 40 or so of each digit; 8^(-1/9) = 0.794 times fewer each, 5 at the end.
    assert counts[0] > 35 and counts[-1] == 5
    candidates = CandidateSets.load(tmp_path / "candidates.npz")
    assert candidates.ids.tolist() == expected.ids.tolist()
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["data"]["imbalance"] == 8
    assert run["data"]["training_images_per_class"] == counts.tolist()
    with open(tmp_path / "classes.csv") as file:
        rows = list(csv.DictReader(file))
    found = [int(row["training_images"]) for row in rows]
    assert found == counts.tolist()
    # Simulated sets hold a digit for its own images and for a third of the
    # others, so the mass falls with the class, though not as steeply.
    mass = [float(row["given_mass"]) for row in rows]
    assert sum(mass[:3]) > sum(mass[-3:])
    assert sum(mass) == pytest.approx(len(expected.labels), abs=0.06)


def test_augmentation_chooses_the_views(spawn):
    settings = train_flags.COMMAND.parse([*spawn.smoke, "--flip=0.25"])
    assert isinstance(build.views(settings, (8, 8, 1)), Views)
    flags = [*spawn.smoke, "--flip=0.25", "--augmentation=autoaugment"]
    settings = train_flags.COMMAND.parse(flags)
    for side, padding, cutout in ((8, 1, 4), (32, 4, 16), (224, 28, 112)):
        views = build.views(settings, (side, side, 3))
        assert isinstance(views, AutoAugmentViews)
        assert views.get_config() == {
            "image_size": (side, side),
            "seed": 3,
            "padding": padding,
            "flip": 0.25,
            "cutout": cutout,
        }


@pytest.mark.slow
def test_its_views_on_the_host_and_on_the_device_are_the_same_run(
    run_train, tmp_path
):
    flags = ("--epochs=2", "--augmentation=autoaugment")
    assert run_train(tmp_path / "device", *flags) == 0
    assert run_train(tmp_path / "host", *flags, "--views=tf_data") == 0
    first, second = (
        checkpoint(tmp_path / "device"),
        checkpoint(tmp_path / "host"),
    )
    for name, value in first.items():
        np.testing.assert_allclose(
            value, second[name], atol=1e-4, rtol=1e-3, err_msg=name
        )
