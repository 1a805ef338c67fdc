"""Presets by name; `tests/golden` holds the values that were published."""

import pytest

from alim_keras import train
from alim_keras.app import cli


@pytest.mark.parametrize("name", cli.preset_names())
def test_a_preset_lies_inside_the_setting_that_it_states(name):
    line = train.COMMAND.parse([f"--preset={name}"])
    assert line.warnings == ()
    values = line.config.as_dict()
    if "_q" in name:
        dataset, q, eta, *_ = name.split("_")
        assert values["dataset"] == dataset
        assert f"q{values['ambiguity']} eta{values['noise_level']}" == (
            f"{q} {eta}"
        )


def test_every_published_data_set_has_a_preset():
    assert set(cli.PUBLISHED) < set(cli.preset_names())


@pytest.mark.parametrize("dataset", [*cli.PUBLISHED, "digits", "mnist"])
def test_a_data_set_alone_means_its_published_setting(dataset):
    line = train.COMMAND.parse([f"--dataset={dataset}"])
    is_published = dataset in cli.PUBLISHED
    assert line.values["preset"] == (dataset if is_published else None)
    assert line.config.data.dataset == dataset


def test_the_call_of_the_paper():
    line = train.COMMAND.parse(["--dataset=cifar100", "--norm=scale"])
    values = line.config.as_dict()
    assert (values["ambiguity"], values["noise_level"]) == (0.05, 0.3)
    assert (values["warmup_epochs"], values["epochs"]) == (80, 1000)
    assert line.origins["norm"] == "command line"
