import pytest
from absl import flags

from alim_keras import cli


def define(flag_values):
    """A small command's flags: one of every kind."""
    group = cli.Group(flag_values, "Toy")
    group.text("dataset", "digits", "Data set.")
    group.whole("epochs", 20, "Passes.", low=1)
    group.number("ambiguity", 0.3, "q.", low=0, high=1)
    group.number("lam", "adaptive", "l.", low=0, high=1, words=("adaptive",))
    group.choice("norm", "onehot", ("onehot", "scale"), "Norm.")
    group.switch("download", True, "Download.")
    other = cli.Group(flag_values, "Other")
    other.path("run_dir", None, "Folder.")
    other.number("rate", None, "A rate.", low=0)


@pytest.fixture
def toy():
    """A command without presets."""
    return cli.Command("alim_keras.toy", "A toy command.", define)


@pytest.fixture
def presets(tmp_path, monkeypatch):
    """A folder that stands for flags/; write presets into it."""
    folder = tmp_path / "presets"
    folder.mkdir()
    monkeypatch.setattr(
        "alim_keras.cli.flagfiles.preset_folder", lambda: folder
    )
    return folder


@pytest.fixture
def published(presets):
    """A command for which --dataset=cifar100 implies the preset c100."""
    (presets / "c100.flags").write_text(
        "# setting: dataset=cifar100 ambiguity=0.05\n"
        "--dataset=cifar100\n--ambiguity=0.05\n--epochs=1000\n--norm=scale\n"
    )
    (presets / "c100_q0.01.flags").write_text(
        "# setting: dataset=cifar100 ambiguity=0.01\n"
        "--flagfile=c100.flags\n--ambiguity=0.01\n"
    )
    (presets / "toy_base.flags").write_text("--epochs=5\n")
    return cli.Command(
        "alim_keras.toy", "A toy command.", define, {"cifar100": "c100"}
    )


@pytest.fixture
def known():
    """The toy command's flags, as the flagfile reader wants them."""
    flag_values = flags.FlagValues()
    define(flag_values)
    cli.Group(flag_values, "Command line").path("flagfile", None, "File.")
    return flag_values
