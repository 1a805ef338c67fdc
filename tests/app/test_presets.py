"""Presets by name; `tests/golden` holds the values that were published."""

import pytest

from alim_keras import train
from alim_keras.app import cli

PUBLISHED = ("cifar10", "cifar100", "cifar100h", "cub200")


def test_base_files_are_no_presets():
    names = cli.preset_names()
    assert "smoke" in names and "pico_base" not in names


@pytest.mark.parametrize("name", cli.preset_names())
def test_a_preset_sets_what_its_name_says(name):
    values = train.COMMAND.parse([f"--preset={name}"]).values
    if "_q" in name:
        dataset, q, eta, *_ = name.split("_")
        assert values["dataset"] == dataset
        assert f"q{values['ambiguity']} eta{values['noise_level']}" == (
            f"{q} {eta}"
        )


@pytest.mark.parametrize("dataset", [*PUBLISHED, "digits", "mnist"])
def test_a_data_set_alone_means_its_published_setting(dataset):
    line = train.COMMAND.parse([f"--dataset={dataset}"])
    is_published = dataset in PUBLISHED
    assert line.values["preset"] == (dataset if is_published else None)
    assert line.config.data.dataset == dataset
