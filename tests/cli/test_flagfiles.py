"""Flagfiles: what is read, and the message for everything that is not."""

import pytest

from alim_keras.cli import flagfiles
from alim_keras.errors import ConfigError


def read(path, known):
    return [
        (entry.name, entry.text, entry.origin)
        for entry in flagfiles.read(path, known).entries
    ]


def message(path, known):
    with pytest.raises(ConfigError) as caught:
        flagfiles.read(path, known)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_lines_comments_and_blanks(tmp_path, known):
    path = tmp_path / "a.flags"
    path.write_text(
        "# comment\n\n// another\n--epochs=3\r\n  -norm=scale  \n--nodownload\n"
        "--run_dir=a folder # 1\n",
        encoding="utf-8-sig",
    )
    assert read(path, known) == [
        ("epochs", "3", "flagfile a.flags:4"),
        ("norm", "scale", "flagfile a.flags:5"),
        ("download", "false", "flagfile a.flags:6"),
        ("run_dir", "a folder # 1", "flagfile a.flags:7"),
    ]


def test_own_lines_win_over_includes_wherever_they_stand(tmp_path, known):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "base.flags").write_text("--flagfile=deep.flags\n")
    (tmp_path / "sub" / "deep.flags").write_text("--epochs=1\n--norm=scale\n")
    top = tmp_path / "top.flags"
    top.write_text("--epochs=9\n--flagfile=sub/base.flags\n")
    # The strongest comes last.
    assert read(top, known) == [
        ("epochs", "1", "flagfile deep.flags:1"),
        ("norm", "scale", "flagfile deep.flags:2"),
        ("epochs", "9", "flagfile top.flags:1"),
    ]


def test_the_nearest_setting_counts(tmp_path, known):
    (tmp_path / "base.flags").write_text("# setting: dataset=b ambiguity=0.1\n")
    plain = tmp_path / "plain.flags"
    plain.write_text("--flagfile=base.flags\n")
    own = tmp_path / "own.flags"
    own.write_text("--flagfile=base.flags\n# setting: dataset=c\n")
    setting = flagfiles.read(plain, known).setting
    assert setting == {"dataset": "b", "ambiguity": "0.1"}
    assert flagfiles.read(own, known).setting == {"dataset": "c"}


@pytest.mark.parametrize(
    "line, expected",
    [
        ("--epoch=3", "Did you mean --epochs?"),
        ("epochs=3", "expected a line --name=value"),
        ("--epochs", "--epochs needs a value"),
        ("--epochs 3", "Did you mean --epochs?"),
        ("--nodownload=false", "write --download or --nodownload"),
        ("--noepochs", "Unknown flag --noepochs"),
        ("# setting: dataset", "flag=value"),
        ("# setting: datset=x", "flag=value"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, known, line, expected):
    path = tmp_path / "a.flags"
    path.write_text(f"--norm=scale\n{line}\n")
    text = message(path, known)
    assert expected in text and f"{path}:2" in text


def test_cycles_are_named(tmp_path, known):
    (tmp_path / "a.flags").write_text("--flagfile=b.flags\n")
    (tmp_path / "b.flags").write_text("--flagfile=./a.flags\n")
    text = message(tmp_path / "a.flags", known)
    assert "includes itself: a.flags -> b.flags -> a.flags" in text


def test_one_file_may_be_included_twice(tmp_path, known):
    (tmp_path / "base.flags").write_text("--epochs=1\n")
    for name in ("a", "b"):
        (tmp_path / f"{name}.flags").write_text("--flagfile=base.flags\n")
    top = tmp_path / "top.flags"
    top.write_text("--flagfile=a.flags\n--flagfile=b.flags\n")
    assert [row[:2] for row in read(top, known)] == [("epochs", "1")] * 2


def test_missing_file_and_its_neighbours(tmp_path, known):
    (tmp_path / "cifar10.flags").write_text("")
    text = message(tmp_path / "cifar1.flags", known)
    assert f"There is no flagfile {tmp_path / 'cifar1.flags'}." in text
    assert "Did you mean cifar10.flags?" in text
    missing = tmp_path / "nowhere" / "a.flags"
    assert f"There is no flagfile {missing}." in message(missing, known)
    top = tmp_path / "top.flags"
    top.write_text("--flagfile=cifar1.flags\n")
    assert f"(included by {top})" in message(top, known)


def test_unreadable_files(tmp_path, known):
    (tmp_path / "binary.flags").write_bytes(b"\xff\xfe\x00\x01")
    assert "not a UTF-8 text" in message(tmp_path / "binary.flags", known)
    assert "cannot be read: Is a directory" in message(tmp_path, known)


def test_home_folder_in_an_include(tmp_path, known, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.flags").write_text("--epochs=4\n")
    top = tmp_path / "top.flags"
    top.write_text("--flagfile=~/mine.flags\n")
    assert read(top, known) == [("epochs", "4", "flagfile mine.flags:1")]


def test_the_presets_of_a_checkout_and_of_a_wheel(tmp_path, monkeypatch):
    package = tmp_path / "alim_keras"
    module = package / "cli" / "flagfiles.py"
    monkeypatch.setattr(flagfiles, "__file__", str(module))
    assert flagfiles.preset_folder() == tmp_path / "flags"
    # A wheel carries them inside; a folder beside it is somebody else's.
    (tmp_path / "flags").mkdir()
    (package / "flagfiles").mkdir(parents=True)
    assert flagfiles.preset_folder() == package / "flagfiles"
