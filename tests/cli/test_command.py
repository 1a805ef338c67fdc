"""Reading a command line: precedence, presets, words and origins."""

import itertools

import pytest
from absl import flags

from alim_keras import cli
from alim_keras.cli import train_flags
from alim_keras.errors import ConfigError


def message(command, *arguments):
    with pytest.raises(ConfigError) as caught:
        command.parse(list(arguments))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "arguments, name, value",
    [
        (["--epochs=3"], "epochs", 3),
        (["--epochs", "3"], "epochs", 3),
        (["-epochs=3"], "epochs", 3),
        (["--epochs=3", "--epochs=4"], "epochs", 4),
        (["--nodownload"], "download", False),
        (["--download=false"], "download", False),
        (["--nodownload", "--download"], "download", True),
        (["--run_dir=/a b=c"], "run_dir", "/a b=c"),
        (["--lam=0"], "lam", 0.0),
        (["--lam=adaptive"], "lam", "adaptive"),
        ([], "epochs", 20),
        ([], "rate", None),
    ],
)
def test_ways_to_write_a_flag(toy, arguments, name, value):
    settings = toy.parse(arguments)
    assert getattr(settings, name) == value
    expected = "command line" if arguments else "default"
    assert settings.origin(name) == expected


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["--epoch=3"], "Unknown flag --epoch. Did you mean --epochs?"),
        (["--zzz"], "Unknown flag --zzz. --help lists all."),
        (["--run-dir=x"], "Did you mean --run_dir?"),
        (["--norm=scales"], "Did you mean scale? Received: --norm=scales"),
        (["--ambiguity=nan"], "expected a number in [0, 1]. Received: --ambi"),
        (["--ambiguity=inf"], "Received: --ambiguity=inf (command line)"),
        (["--lam=nan"], "expected a number in [0, 1] or adaptive."),
        (["stray"], "Unexpected word 'stray'"),
        (["--epochs=3", "stray"], "Unexpected word 'stray'"),
        (["--download", "false"], "Unexpected word 'false'"),
        (["--", "--epochs=3"], "Unexpected word '--epochs=3'"),
        (["-"], "Unexpected word '-'"),
        (["--nodownload=false"], "write --download or --nodownload"),
        (["--epochs"], "--epochs needs a value: write --epochs=value."),
        (["--epochs", "--lam=1"], "--epochs needs a value"),
        (["--epochs="], "expected a whole number of at least 1."),
        (["--preset=x"], "Unknown flag --preset."),
    ],
)
def test_what_is_refused(toy, arguments, expected):
    assert expected in message(toy, *arguments)


def test_precedence_whatever_the_order(published, tmp_path):
    mine = tmp_path / "mine.flags"
    mine.write_text("--epochs=7\n--ambiguity=0.2\n")
    words = ["--epochs=3", f"--flagfile={mine}", "--preset=c100"]
    for order in itertools.permutations(words):
        settings = published.parse(list(order))
        assert settings.epochs == 3
        assert settings.origin("epochs") == "command line"
        assert settings.ambiguity == 0.2
        assert settings.origin("ambiguity") == "flagfile mine.flags:2"
        assert settings.norm == "scale"
        assert settings.origin("norm") == "preset c100 (c100.flags:5)"
        assert settings.download is True
        assert settings.origin("download") == "default"


def test_the_last_of_several_flagfiles_wins(toy, tmp_path):
    for name, epochs in (("a", 1), ("b", 2)):
        (tmp_path / name).write_text(f"--epochs={epochs}\n")
    files = [f"--flagfile={tmp_path / name}" for name in "ab"]
    assert toy.parse(files).epochs == 2
    assert toy.parse(files[::-1]).epochs == 1


def test_a_wrong_value_in_a_file_is_named_even_if_overridden(toy, tmp_path):
    (tmp_path / "a.flags").write_text("\n--epochs=none\n")
    text = message(toy, f"--flagfile={tmp_path / 'a.flags'}", "--epochs=3")
    assert "Received: --epochs=none (flagfile a.flags:2)" in text


def test_the_data_set_implies_its_preset(published):
    settings = published.parse(["--dataset=cifar100", "--norm=onehot"])
    assert settings.epochs == 1000
    assert settings.norm == "onehot"
    assert settings.preset == "c100"
    assert settings.origin("preset") == "implied by --dataset=cifar100"
    assert settings.warnings == ()


def test_a_preset_that_is_named_replaces_the_implied_one(published):
    settings = published.parse(["--dataset=cifar100", "--preset=c100_q0.01"])
    assert settings.ambiguity == 0.01
    assert settings.origin("ambiguity") == (
        "preset c100_q0.01 (c100_q0.01.flags:3)"
    )
    assert settings.origin("epochs") == "preset c100_q0.01 (c100.flags:4)"
    assert settings.origin("preset") == "command line"


def test_preset_none_forbids_the_implied_one(published):
    settings = published.parse(["--dataset=cifar100", "--preset=none"])
    assert settings.epochs == 20
    assert settings.preset is None


def test_a_flagfile_may_choose_data_set_and_preset(published, tmp_path):
    mine = tmp_path / "mine.flags"
    mine.write_text("--dataset=cifar100\n")
    assert published.parse([f"--flagfile={mine}"]).epochs == 1000
    mine.write_text("--preset=c100_q0.01\n")
    assert published.parse([f"--flagfile={mine}"]).ambiguity == 0.01
    # The command line is stronger here too.
    line = [f"--flagfile={mine}", "--preset=c100"]
    assert published.parse(line).ambiguity == 0.05


def test_other_data_sets_imply_nothing(published):
    settings = published.parse(["--dataset=mnist"])
    assert settings.preset is None and settings.epochs == 20


def test_an_unknown_preset_lists_all(published):
    text = message(published, "--preset=c10")
    assert "Unknown preset 'c10'. Did you mean c100?" in text
    assert "Presets: c100, c100_q0.01." in text
    # A base file is to be included, not chosen.
    assert "Unknown preset" in message(published, "--preset=toy_base")
    assert "Unknown preset" in message(published, "--preset=../presets/c100")


def test_warning_outside_the_published_setting(published):
    (text,) = published.parse(["--preset=c100", "--ambiguity=0.01"]).warnings
    assert text == (
        "the preset c100 is the published setting for dataset=cifar100 "
        "ambiguity=0.05, but this run has ambiguity=0.01; for that there is "
        "--preset=c100_q0.01."
    )
    (text,) = published.parse(["--preset=c100", "--dataset=mnist"]).warnings
    assert text.endswith(
        "this run has dataset=mnist; no preset is published for that."
    )
    # Compared as numbers; flags that the setting does not name are free.
    line = ["--preset=c100", "--ambiguity=5e-2", "--epochs=2"]
    assert published.parse(line).warnings == ()


def test_words_that_a_command_asks_for(toy):
    one = cli.Command("alim_keras.toy", "Doc.", toy.define, words=("run",))
    assert one.parse(["runs/a", "--epochs=3"]).run == "runs/a"
    assert one.parse(["--epochs=3", "--", "--odd"]).run == "--odd"
    assert "Expected RUN after alim_keras.toy. Received: nothing" in message(
        one
    )
    assert "Unexpected word 'b'" in message(one, "a", "b")
    many = cli.Command(
        "alim_keras.toy", "Doc.", toy.define, words=("model", "images...")
    )
    settings = many.parse(["m", "a.png", "--nodownload", "b.png"])
    assert settings.model == "m" and settings.images == ["a.png", "b.png"]
    assert "Expected MODEL IMAGES..." in message(many, "m")
    free = cli.Command(
        "alim_keras.toy", "Doc.", toy.define, words=("model", "[paths...]")
    )
    assert free.parse(["m"]).paths == []
    assert free.parse(["m", "a.png", "b.png"]).paths == ["a.png", "b.png"]
    assert "Expected MODEL [PATHS...]" in message(free)


def test_validators_of_absl_are_heard():
    def define(flag_values):
        group = cli.Group(flag_values, "Toy")
        group.whole("warmup", 0, "Warm-up.")
        group.whole("epochs", 20, "Passes.")
        flags.register_multi_flags_validator(
            ["warmup", "epochs"],
            lambda values: values["warmup"] <= values["epochs"],
            message="--warmup is longer than --epochs",
            flag_values=flag_values,
        )

    command = cli.Command("alim_keras.toy", "Doc.", define)
    assert command.parse(["--warmup=20"]).warmup == 20
    text = message(command, "--warmup=21")
    assert "--warmup is longer than --epochs" in text


def test_parsing_leaves_nothing_behind(toy):
    assert toy.parse(["--epochs=3"]).epochs == 3
    assert toy.parse([]).epochs == 20
    assert "epochs" not in flags.FLAGS


def test_settings_as_a_dict_and_unknown_names(toy):
    settings = toy.parse(["--epochs=3"])
    values = settings.as_dict()
    assert values["epochs"] == 3 and values["rate"] is None
    assert set(values) == set(settings.origins)
    with pytest.raises(AttributeError, match="no flag --epoch"):
        _ = settings.epoch


def test_a_relative_path_is_one_of_the_current_folder(
    toy, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    settings = toy.parse(["--run_dir=new/run"])
    assert settings.run_dir == str(tmp_path / "new" / "run")


@pytest.mark.parametrize(
    "written, preset, dataset",
    [
        ("CIFAR100", "cifar100", "cifar100"),
        ("caltech_birds2011", "cub200", "cub200"),
        ("cub", "cub200", "cub200"),
        ("mnist", None, "mnist"),
    ],
)
def test_a_data_set_has_one_spelling(written, preset, dataset):
    settings = train_flags.COMMAND.parse([f"--dataset={written}"])
    assert (settings.preset, settings.dataset) == (preset, dataset)
    assert settings.warnings == ()
