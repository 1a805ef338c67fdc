import os

import pytest

from alim_keras import files
from alim_keras.errors import ConfigError


def test_text_is_written_whole(tmp_path):
    path = tmp_path / "new" / "a.txt"
    files.write_atomically(path, "über")
    assert path.read_bytes() == "über".encode()
    assert os.listdir(path.parent) == ["a.txt"]


def test_an_error_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("before")
    with pytest.raises(RuntimeError):
        with files.replacing(path) as file:
            file.write(b"half")
            raise RuntimeError
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_folder_is_not_written_to(tmp_path):
    with pytest.raises(ConfigError, match="--out must be.*--out=") as caught:
        files.check_is_no_folder(tmp_path, "--out")
    assert str(tmp_path) in str(caught.value)
    with pytest.raises(ConfigError, match="this is a folder"):
        files.write_atomically(tmp_path, "text")
    assert os.listdir(tmp_path) == []


def test_a_written_file_takes_its_name(tmp_path):
    (tmp_path / ".partial-a").write_bytes(b"new")
    (tmp_path / "a").write_bytes(b"old")
    files.move_written(tmp_path / ".partial-a", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


def test_what_a_killed_write_left_is_removed(tmp_path):
    for name in (".partial-xyz", "a.partial-", "b"):
        (tmp_path / name).write_text("")
    files.remove_partial(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["a.partial-", "b"]


def test_digest_by_hand(tmp_path):
    # The SHA-256 of "abc".
    (tmp_path / "a").write_bytes(b"abc")
    assert files.digest(tmp_path / "a").startswith("ba7816bf8f01cfea")
