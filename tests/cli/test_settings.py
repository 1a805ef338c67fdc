"""run.flags and --print_config."""

import pytest

from alim_keras import cli
from alim_keras.cli import train_flags


def round_trip(settings, tmp_path):
    path = tmp_path / "run.flags"
    path.write_text(cli.flags_as_text(settings))
    return cli.read_flags(path, settings.command)


def test_the_text_of_run_flags(published):
    settings = published.parse(
        ["--dataset=cifar100", "--run_dir=r", "--nodownload", "--lam=0.1"]
    )
    assert cli.flags_as_text(settings) == (
        "# Repeats this run: python -m alim_keras.toy --flagfile=THIS_FILE "
        "--run_dir=NEW_FOLDER\n"
        "# Preset in force: c100\n"
        "--preset=none\n"
        "\n"
        "# Toy\n"
        "--dataset=cifar100\n"
        "--epochs=1000\n"
        "--ambiguity=0.05\n"
        "--lam=0.1\n"
        "--norm=scale\n"
        "--nodownload\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--dataset=cifar100", "--epochs=20"],
        ["--preset=cub200", "--ambiguity=0.1", "--weight_decay=1e-7"],
        ["--lam=0.30000000000000004", "--weights=a b=c", "--nodownload"],
        ["--preset=smoke", "--verbose", "--tensorboard", "--width=3"],
    ],
)
def test_run_flags_repeat_the_run(arguments, tmp_path):
    settings = train_flags.COMMAND.parse(arguments)
    again = round_trip(settings, tmp_path)
    changed = {"preset", "flagfile", "verbose"}
    before, after = settings.as_dict(), again.as_dict()
    assert {k: v for k, v in before.items() if k not in changed} == {
        k: v for k, v in after.items() if k not in changed
    }
    # The values of the preset stand in the file: it is not applied again.
    assert again.preset is None
    assert again.warnings == ()
    assert again.origin("epochs").startswith("flagfile run.flags:")


def test_a_command_without_presets(toy, tmp_path):
    settings = toy.parse(["--epochs=3"])
    assert "preset" not in cli.flags_as_text(settings)
    assert round_trip(settings, tmp_path).epochs == 3


def test_the_text_of_print_config(published):
    settings = published.parse(["--dataset=cifar100", "--norm=onehot"])
    lines = cli.describe(settings).splitlines()
    assert lines[0] == "# Toy"
    assert "--dataset=cifar100    # command line" in lines
    assert "--epochs=1000         # preset c100 (c100.flags:4)" in lines
    assert "--norm=onehot         # command line" in lines
    assert "--download            # default" in lines
    assert "--rate (not set)      # default" in lines
    assert "--preset=c100         # implied by --dataset=cifar100" in lines
    flags = [line for line in lines if line.startswith("--")]
    assert len(flags) == len(settings.origins)
