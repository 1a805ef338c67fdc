"""The run folder: its lock, what is read from it, and what is refused."""

import json
import os
import shutil

import commands
import own
import pytest
from comparing import checkpoint

from alim_keras.app.run_folder import RunFolder
from alim_keras.errors import CheckpointError

FLAGS = (*commands.SMOKE, "--epochs=3", "--select=aa")


@pytest.fixture
def run_dir(finished_run, tmp_path):
    """A copy of the finished run, to be changed."""
    return shutil.copytree(finished_run, tmp_path / "run")


def test_a_link_as_lock_leaves_its_target_alone(run_dir, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in (".lock", "run.flags", "candidates.npz"):
        (run_dir / name).rename(tmp_path / "kept")
        (run_dir / name).symlink_to(victim)
        code, line = commands.fails("audit", run_dir)
        assert code == 5 and "regular file" in line, name
        (run_dir / name).unlink()
        (tmp_path / "kept").rename(run_dir / name)
        assert victim.read_text() == "precious"
    # Nor is the other end of a pipe waited for.
    (run_dir / ".lock").unlink()
    os.mkfifo(run_dir / ".lock")
    code, line = commands.fails("export", run_dir)
    assert code == 5 and "regular file" in line


def test_the_lock_keeps_what_stands_in_it(tmp_path):
    folder = RunFolder(tmp_path / "run")
    # What a killed process left goes away.
    (tmp_path / "run" / ".partial-2" / "new").mkdir(parents=True)
    with folder.lock():
        assert os.listdir(folder.path) == [".lock"]
        with open(folder.file(".lock"), "w") as file:
            file.write("mine")
        (tmp_path / "run" / "x").touch()
        with pytest.raises(CheckpointError, match="Another process"):
            with RunFolder(folder.path).lock():
                raise AssertionError
    with folder.lock():
        assert folder.read_text(".lock") == "mine"


def test_a_folder_that_was_not_begun_goes_away(tmp_path):
    with pytest.raises(ValueError):
        with RunFolder(tmp_path / "run").lock():
            raise ValueError
    assert not (tmp_path / "run").exists()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError):
        with RunFolder(tmp_path / "file").lock():
            raise AssertionError
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("text", ["{", "[1]", "3", ""])
def test_a_damaged_file_is_named(tmp_path, text):
    folder = RunFolder(tmp_path)
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(CheckpointError, match="json cannot be read.*remove it"):
        folder.read("run.json")
    assert folder.read("absent.json") is None


def test_damaged_reports_do_not_block_a_sound_checkpoint(run_dir):
    """Cut metrics.csv, no results.json, no run.flags, no candidates."""
    (run_dir / "results.json").unlink()
    path = run_dir / "metrics.csv"
    path.write_bytes(path.read_bytes()[:300])
    (run_dir / "run.flags").unlink()
    (run_dir / "candidates.npz").unlink()
    out = commands.works("train", *FLAGS, f"--run_dir={run_dir}")
    assert "Continuing" in out
    for name in ("results.json", "run.flags", "candidates.npz", "labels.csv"):
        assert (run_dir / name).is_file()
    commands.works("export", run_dir)


@pytest.mark.parametrize(
    "name, content, word",
    [
        ("checkpoints/state.json", b"{", "state.json"),
        ("checkpoints/state.json", b'{"epochs": "x"}', "state.json"),
        ("run.json", b"{", "run.json cannot be read"),
        ("candidates.npz", b"PK", "remove it: the train command"),
        ("run.json", None, "other candidate sets"),
    ],
)
def test_damage_that_stops_is_named(run_dir, name, content, word):
    (run_dir / "results.json").unlink()
    if content is None:
        run = json.loads((run_dir / name).read_text())
        content = json.dumps({**run, "candidates_hash": "0" * 64}).encode()
    (run_dir / name).write_bytes(content)
    code, line = commands.fails("train", *FLAGS, f"--run_dir={run_dir}")
    assert code == 5 and word in line


def test_code_of_a_run_folder_needs_trust(finished_run, run_dir, tmp_path):
    evil = tmp_path / "evil.py"
    evil.write_text(
        "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n"
        "from alim_keras import PiCO\n"
    )
    flags = (run_dir / "run.flags").read_text()
    text = flags.replace("--method=pico", f"--method={evil}:PiCO")
    (run_dir / "run.flags").write_text(text)
    for command in ("audit", "export"):
        code, line = commands.fails(command, run_dir)
        assert code == 2 and "--trust_code" in line and "evil.py" in line
    assert not (tmp_path / "ran").exists()
    out = f"--out={tmp_path / 'out'}"
    commands.works("audit", run_dir, "--trust_code", out)
    assert (tmp_path / "ran").exists()
    # Flagfiles that run.flags includes are not read.
    (run_dir / "run.flags").write_text(f"--flagfile={evil}\n{flags}")
    assert commands.fails("audit", run_dir)[0] == 2


def test_a_table_that_changed(own_run, photos, tmp_path):
    """Other items, tests, known labels or pixels end with 5."""
    place = shutil.copytree(photos, tmp_path / "own")
    run_dir = tmp_path / "run"
    flags = (
        f"--images={place / 'photos'}",
        f"--test_labels={place / 'test.csv'}",
        f"--known_labels={place / 'known.csv'}",
    )

    table = place / "labels.csv"

    def train():
        return commands.train_own(run_dir, table, *flags)

    commands.stop_after_an_epoch(train)
    assert not (run_dir / "results.json").exists()

    def refused(word):
        code, _, err = train()
        assert code == 5 and word in err, err

    text = table.read_text()
    shutil.copy(place / "photos" / "0001.png", place / "photos" / "new.png")
    table.write_text(f"{text}new.png,eve,{own.NAMES[0]}\n")
    refused("other items")
    table.write_text(text)
    for name, word in (("test", "test items"), ("known", "true labels")):
        path = place / f"{name}.csv"
        kept = path.read_text()
        path.write_text(kept.rstrip().rpartition("\n")[0] + "\n")
        refused(word)
        path.write_text(kept)
    one = place / "photos" / "0001.png"
    pixels = one.read_bytes()
    shutil.copy(place / "photos" / "0002.png", one)
    refused("other pixels under the same names")
    one.write_bytes(pixels)
    before = checkpoint(run_dir).keys()
    commands.trained_own(run_dir, table, *flags)
    assert checkpoint(run_dir).keys() == before
    # The run is finished, and its labels change.
    path = place / "known.csv"
    path.write_text(path.read_text() + "\n")
    refused("known.csv has changed since")
