"""Exit codes and the one line on stderr."""

import errno
import os
import sys

import pytest

from alim_keras import cli
from alim_keras import errors
from alim_keras.cli import main as main_module
from alim_keras.cli import train_flags


def never(settings):
    raise AssertionError(f"the command ran with {settings}")


@pytest.fixture(autouse=True)
def own_environment(monkeypatch):
    """Keeps what a command sets in os.environ inside the test."""
    monkeypatch.setattr(os, "environ", dict(os.environ))


def fails(capsys, command, main, arguments):
    """Runs a command that fails; returns its code and its one line."""
    code = cli.run(command, main, arguments)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("\n") and captured.err.count("\n") == 1
    return code, captured.err.rstrip("\n")


def raiser(error):
    def main(settings):
        raise error

    return main


def test_the_settings_reach_main(toy):
    seen = []
    assert cli.run(toy, lambda s: seen.append(s.epochs), ["--epochs=3"]) == 0
    assert seen == [3]
    assert cli.run(toy, lambda settings: 7, []) == 7


def test_arguments_come_from_the_command_line(toy, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["toy.py", "--epochs=5"])
    seen = []
    cli.run(toy, lambda s: seen.append(s.epochs))
    assert seen == [5]


# The six calls of a case that users reported: absl lets nan and stray words
# pass, ends --help with 1 and answers --nomixup=false with a traceback.
@pytest.mark.parametrize(
    "argument, expected",
    [
        ("--epoch=3", "Did you mean --epochs?"),
        ("--norm=twohot", "Did you mean onehot? Received: --norm=twohot"),
        ("--ambiguity=nan", "--ambiguity: expected a number in [0, 1]."),
        ("cifar100", "Unexpected word 'cifar100'"),
        ("--nomixup=false", "Unknown flag --nomixup."),
        ("--nodownload=false", "write --download or --nodownload."),
        ("--noise_rate=inf", "expected a number in [0, 1], oracle, auto, "),
        ("--flagfile=nowhere.flags", "There is no flagfile nowhere.flags."),
        ("--preset=cifar11", "Did you mean cifar10"),
        ("--seed=-1", "expected a whole number in [0, 2147483647]."),
        ("--learning_rate=0", "expected a number above 0."),
    ],
)
def test_wrong_calls_of_the_train_command(capsys, argument, expected):
    code, line = fails(capsys, train_flags.COMMAND, never, [argument])
    assert code == 2
    assert line.startswith("alim_keras.train: error: ")
    assert expected in line


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_help_ends_with_zero(capsys, word):
    assert cli.run(train_flags.COMMAND, never, ["--epochs=3", word]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    assert lines[0] == "python -m alim_keras.train [--flag=value ...]"
    assert "ALIM:" in lines and "Command line:" in lines
    assert "  --lam=<a number in [0, 1] or adaptive or instance>" in lines
    assert "  --[no]download" in lines
    assert max(map(len, lines)) <= 88
    for name in train_flags.COMMAND.new_flags():
        assert f"  --{name}=" in captured.out or f"]{name}\n" in captured.out


def test_print_config_ends_with_zero_and_does_nothing(capsys):
    line = ["--preset=cifar100_q0.05_eta0.3", "--print_config", "--epochs=7"]
    assert cli.run(train_flags.COMMAND, never, line) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    rows = dict(
        (text.strip() for text in line.split("  # ", 1))
        for line in captured.out.splitlines()
        if line.startswith("--")
    )
    assert rows["--epochs=7"] == "command line"
    assert rows["--norm=scale"] == (
        "preset cifar100_q0.05_eta0.3 (cifar100.flags:5)"
    )
    assert rows["--seed=0"] == "default"


def test_warnings_are_one_line_each(capsys, published):
    cli.run(published, lambda s: None, ["--preset=c100", "--dataset=mnist"])
    err = capsys.readouterr().err
    assert err.startswith("alim_keras.toy: warning: the preset c100 is the")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "error, code, expected",
    [
        (errors.ConfigError("a\n  b"), 2, "error: a b"),
        (errors.DataError("row 3"), 3, "error: row 3"),
        (errors.NonFiniteError("cls_loss"), 4, "error: cls_loss"),
        (errors.CheckpointError("other"), 5, "error: other"),
        (errors.EnvironmentLacksError("gpu"), 6, "error: gpu"),
        (errors.AlimError("plain"), 1, "error: plain"),
        (MemoryError("x"), 6, "error: out of memory."),
        (RuntimeError("RESOURCE_EXHAUSTED: oom"), 6, "error: out of memory."),
        (
            ModuleNotFoundError("no", name="sklearn.x"),
            6,
            "error: the package sklearn is not installed: ",
        ),
        (
            ModuleNotFoundError("No module", name="alim_keras.nix"),
            1,
            "unexpected error: ModuleNotFoundError: No module (--verbose ",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", "/run/x"),
            6,
            "error: No space left on device: /run/x",
        ),
        (
            FileNotFoundError(errno.ENOENT, "No such file", "a.npz"),
            3,
            "error: No such file: a.npz",
        ),
        (KeyboardInterrupt(), 130, "interrupted; the same command continues"),
        (
            ValueError("bad\nshape"),
            1,
            "unexpected error: ValueError: bad shape (--verbose shows the "
            "traceback)",
        ),
        (KeyError("k"), 1, "unexpected error: KeyError: 'k' (--verbose"),
    ],
)
def test_every_error_has_its_code_and_line(capsys, toy, error, code, expected):
    result, line = fails(capsys, toy, raiser(error), [])
    assert result == code
    assert line.startswith(f"alim_keras.toy: {expected}")


def test_out_of_memory_of_tensorflow_by_name():
    class ResourceExhaustedError(Exception):
        pass

    code, line = main_module.explain(ResourceExhaustedError("OOM " * 500))
    assert code == 6
    assert "--batch_size" in line and len(line) < 500


def test_a_long_message_of_ours_is_not_cut(capsys, toy):
    error = errors.DataError("x" * 5000)
    _, line = fails(capsys, toy, raiser(error), [])
    assert line.count("x") == 5000


@pytest.mark.parametrize("error", [ValueError("v"), errors.DataError("v")])
def test_verbose_shows_the_traceback(capsys, toy, error):
    cli.run(toy, raiser(error), ["--verbose"])
    err = capsys.readouterr().err
    assert "Traceback (most recent call last)" in err
    assert "shows the traceback" not in err.splitlines()[-1]


def test_verbose_holds_for_errors_of_the_line_itself(capsys, toy):
    assert cli.run(toy, never, ["--verbose", "--zzz"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_exit_codes_of_main_itself_pass(toy):
    with pytest.raises(SystemExit) as caught:
        cli.run(toy, raiser(SystemExit(9)), [])
    assert caught.value.code == 9


def test_a_closed_pager_is_no_error(toy, tmp_path):
    # A file object whose reader is gone, as after `... --help | head -1`.
    read_end, write_end = os.pipe()
    os.close(read_end)
    stream = os.fdopen(write_end, "w")
    saved, sys.stdout = sys.stdout, stream
    try:
        assert cli.run(toy, never, ["--help"]) == 0
    finally:
        sys.stdout = saved
        stream.close()


def test_the_backend_is_set_only_if_asked_for(monkeypatch):
    seen = []
    monkeypatch.setattr(
        main_module, "prepare_environment", lambda name, _: seen.append(name)
    )
    cli.run(train_flags.COMMAND, lambda settings: None, [])
    cli.run(
        train_flags.COMMAND, lambda settings: None, ["--backend=tensorflow"]
    )
    assert seen == [None, "tensorflow"]
