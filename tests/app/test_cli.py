"""How command lines are read: precedence, origins, refusals, help."""

import dataclasses
import pathlib

import commands
import pytest

from alim_keras.app import cli
from alim_keras.app import load
from alim_keras.app import values
from alim_keras.app.config import TRAINING
from alim_keras.app.config import Config
from alim_keras.data import tables
from alim_keras.errors import ConfigError
from alim_keras.methods import PiCO
from alim_keras.methods import arguments_of

NAMES = "train check audit review predict export".split()
COMMANDS = {name: commands.named(name)[0] for name in NAMES}
parse = COMMANDS["train"].parse


@pytest.mark.parametrize(
    "field, text, value",
    [
        (values.whole(2, low=1), " 3 ", 3),
        (values.number(0.0, low=0, high=1), "1e-1", 0.1),
        (values.number(0.0, words=("adaptive",)), "adaptive", "adaptive"),
        (values.switch(default=False), "yes", True),
        (values.choice("a", "a", "b"), "b", "b"),
        (values.noise_rate(), "0.25", 0.25),
        (values.noise_rate(), "votes", "votes"),
        (values.path(), "~/x", str(pathlib.Path.home() / "x")),
        (values.code(), "pico", "pico"),
        (values.dataset(), "CIFAR-10", "cifar10"),
    ],
)
def test_values(field, text, value):
    assert field.metadata["parser"].parse(text) == value


@pytest.mark.parametrize(
    "field, texts",
    [
        (values.count(1), ["0", "1.5", "", "x", "1e3"]),
        (values.share(0), ["nan", "inf", "-0.1", "1.1", "-nan"]),
        (values.share(1, low_open=True), ["0", "1.1"]),
        (values.share(0, high_open=True), ["1", "-0.1"]),
        (values.switch(default=True), ["maybe"]),
        (values.noise_rate(), ["em", "1.5", "nan", "votes:x"]),
        (values.text(), [" ", "two\nlines"]),
    ],
)
def test_values_that_do_not_fit(field, texts):
    for text in texts:
        with pytest.raises(ValueError, match="expected"):
            field.metadata["parser"].parse(text)


def test_files_of_own_code_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = parse(["--method=own.py:Mine", "--format=f.py:read"]).config
    assert config.method.method == f"{tmp_path / 'own.py'}:Mine"
    assert config.table.format == f"{tmp_path / 'f.py'}:read"


def test_precedence_and_origins(tmp_path):
    (tmp_path / "base.flags").write_text("--epochs=5\n--seed=5\n--width=5\n")
    text = "# A comment\n--epochs=6\n// another\n\n--flagfile=base.flags\n"
    (tmp_path / "mine.flags").write_text(text)
    # Whatever their order on the line.
    file = f"--flagfile={tmp_path / 'mine.flags'}"
    line = parse(["--seed=7", file, "--dataset=cifar100"])
    values = line.config.as_dict()
    assert [values[n] for n in ("seed", "epochs", "width")] == [7, 6, 5]
    # The preset, which --dataset implies, is weaker than the file.
    assert values["queue_size"] == 8192
    origins = line.origins
    assert origins["seed"] == "command line"
    assert origins["epochs"] == "flagfile mine.flags"
    assert origins["width"] == "flagfile base.flags"
    assert origins["queue_size"] == "preset cifar100"
    assert origins["preset"] == "implied by --dataset=cifar100"
    assert origins["progress"] == "default"
    none = parse(["--dataset=cifar100", "--preset=none"])
    assert none.config.train.epochs == 80
    text = line.describe()
    assert "--seed=7 " in text and "# flagfile base.flags" in text


def test_a_data_set_alone_means_its_published_setting():
    names = cli.preset_names()
    assert "smoke" in names and "pico_base" not in names
    for dataset in "cifar10 cifar100 cifar100h cub200 digits mnist".split():
        line = parse([f"--dataset={dataset}"])
        preset = None if dataset in ("digits", "mnist") else dataset
        assert line.values["preset"] == preset
        assert line.config.data.dataset == dataset


@pytest.mark.parametrize(
    "words, expected",
    [
        (["--where=a=1", "--where=b!=2"], ("a=1", "b!=2")),
        (["--where=a=1,b!=2", "--where", "c>3"], ("a=1", "b!=2", "c>3")),
        # A stronger source takes the place of a weaker one.
        (["--flagfile"], ("x=1", "y=2")),
        (["--flagfile", "--where=a=1", "--where=b=2"], ("a=1", "b=2")),
    ],
)
def test_conditions_of_one_source_add_up(words, expected, tmp_path):
    file = tmp_path / "mine.flags"
    file.write_text("--where=x=1\n--seed=7\n--where=y=2\n")
    words = [f"{w}={file}" if w == "--flagfile" else w for w in words]
    config = parse(words).config
    assert load.reading(config.table)["where"] == expected
    # As run.flags has it.
    again = cli.read_flags(cli.flags_as_text(config))
    assert again.table.where == ",".join(expected)


def test_columns_of_a_text_without_a_header(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("a.jpg,cat,1\nb.jpg,dog,2\na.jpg,dog,1\nc.jpg,cat,1\n")
    words = ["--header=none", "--columns=id,label,part"]

    def read(*words):
        options = load.reading(parse([*words, "--layout=long"]).config.table)
        sets, *_ = tables.read_labels(file, **options)
        return dict(zip(sets.ids.tolist(), sets.dense().astype(int).tolist()))

    found = read(*words, "--where=part=1", "--where=id!=c.jpg")
    assert found == {"a.jpg": [1, 1]}
    # Names of columns alone say that there is no header, too.
    assert read(words[1], "--where=part=1", "--where=id!=c.jpg") == found
    with pytest.raises(ConfigError, match="header=none needs the names"):
        read(words[0])


@pytest.mark.parametrize(
    "word, message",
    [
        ("--nojitter=false", "--nojitter=false does not take"),
        ("--epochs", "Missing value for flag --epochs"),
        ("--flagfile=", "--flagfile needs a file"),
        # Else what stands in a flagfile.
        ("epochs=3\n", "'epochs=3'.*a.flags"),
        ("--epoch=3\n", "--epochs.*a.flags"),
        ("\n--epochs=0\n", "--epochs=0.*a.flags"),
        ("--run_dir\n--seed=3\n", "Missing value for flag --run_dir"),
        ("--flagfile=a.flags\n", "includes itself"),
        ("--flagfile=b.flags\n", "b.flags cannot be read"),
        ("\xff\n", "UTF-8"),
    ],
)
def test_refusals(word, message, tmp_path):
    if word.endswith("\n"):
        path = tmp_path / "a.flags"
        path.write_bytes(word.encode("latin-1"))
        word = f"--flagfile={path}"
    with pytest.raises(ConfigError, match=message):
        parse([word])


def test_run_flags_repeat_the_configuration():
    flags = ["--dataset=cifar100", "--norm=scale", "--nodownload", "--lam=0.5"]
    config = parse([*flags, "--run_dir=/x", "--none_of_these=a,b"]).config
    again = cli.read_flags(cli.flags_as_text(config))
    assert again == config.replace(run_dir=None)


def test_words():
    line = COMMANDS["audit"].parse(["r", "--folds=3"])
    assert line.words == {"run": "r"} and line.values["folds"] == 3
    with pytest.raises(ConfigError, match="Expected RUN"):
        COMMANDS["audit"].parse([])
    read = COMMANDS["predict"].parse
    words = read(["m", "a", "--top_k=1", "b"]).words
    assert words == {"model": "m", "paths": ["a", "b"]}
    assert read(["m"]).words["paths"] == []


@pytest.mark.parametrize("name", NAMES)
def test_help(name):
    command = COMMANDS[name]
    text = command.help()
    assert text.startswith(f"python -m alim_keras.{command.name}")
    assert len(command.examples) >= 2
    flags = [line for line in text.splitlines() if line.startswith("  --")]
    assert len(flags) <= 13
    everything = command.help(full=True)
    for group in command.all_groups():
        for field, text in cli.help_texts(group):
            assert text.endswith("."), field.name
            assert f"--{field.name}" in everything.replace("[no]", "")
    # Every example is a line that the command takes.
    for example in command.examples:
        words = example.split(" > ")[0].split()
        assert words[0] == command.name
        command.parse(words[1:])


def test_config_replaces_by_flag_and_names_a_wrong_one():
    config = Config().replace(epochs=2, noise_rate="auto")
    assert (config.train.epochs, config.alim.noise_rate) == (2, "auto")
    with pytest.raises(TypeError, match="'epoch'"):
        config.replace(epoch=2)
    names = [f.name for group in TRAINING for f in dataclasses.fields(group)]
    assert len(names) == len(set(names)) == len(config.as_dict())


def test_defaults_that_stand_in_the_method_too_are_equal():
    both = Config().as_dict().items() & arguments_of(PiCO).items()
    assert {name for name, _ in both} >= set(
        "embedding_dim key_momentum prototype_momentum temperature "
        "contrastive_weight mixup_alpha".split()
    )
