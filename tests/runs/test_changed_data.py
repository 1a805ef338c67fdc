"""A run goes on, or is done, only with the data that it began with."""

import json
import shutil

import numpy as np
import own
import pytest
from own_runs import run_train
from own_runs import stop_after_an_epoch
from PIL import Image

from alim_keras.cli import train_flags
from alim_keras.errors import CheckpointError
from alim_keras.runs import identity
from alim_keras.runs import loading
from alim_keras.runs.folder import RunFolder
from alim_keras.runs.reopen import reopen


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A folder of pictures, and a run on it of one epoch of two."""
    place = tmp_path_factory.mktemp("begun")
    own.write_folder(place, count=96, tested=12)
    known = [tuple(row.values()) for row in own.read_rows(place / "truth.csv")]
    own.write_rows(place / "known.csv", [("id", "label"), *known[:20]])
    stop_after_an_epoch(place / "run", place / "labels.csv", *flags(place))
    return place


@pytest.fixture
def again(begun, tmp_path):
    """A copy of both, to be changed, and the flags to go on with."""
    place = shutil.copytree(begun, tmp_path / "again")
    # The paths of the labels are part of the settings, the run's folder not.
    for name in ("run.json", "run.flags"):
        path = place / "run" / name
        path.write_text(path.read_text().replace(str(begun), str(place)))
    return place


def flags(place):
    return (
        f"--images={place / 'photos'}",
        f"--test_labels={place / 'test.csv'}",
        f"--known_labels={place / 'known.csv'}",
    )


def goes_on(place):
    return run_train(place / "run", place / "labels.csv", *flags(place))


def change(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def last_line(path):
    return path.read_text(encoding="utf-8").rstrip().rpartition("\n")[2]


def add_a_row(place):
    Image.new("L", (8, 8), 255).save(place / "photos" / "new.png")
    with open(place / "labels.csv", "a", encoding="utf-8") as file:
        file.write(f"new.png,eve,{own.NAMES[0]}\n")


def drop_a_test(place):
    change(place / "test.csv", last_line(place / "test.csv"), "")


def drop_a_known_label(place):
    change(place / "known.csv", last_line(place / "known.csv"), "")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (add_a_row, "other items than now, 96 and not 97"),
        (drop_a_test, "another test set than now"),
        (drop_a_known_label, "other true labels than now"),
    ],
)
def test_what_has_changed_is_refused(again, changed, said, capsys):
    changed(again)
    before = (again / "run" / "metrics.csv").read_bytes()
    capsys.readouterr()
    assert goes_on(again) == 5
    error = capsys.readouterr().err
    assert said in error and "choose another --run_dir" in error
    assert (again / "run" / "metrics.csv").read_bytes() == before


def test_a_finished_run_says_that_its_labels_have_changed(again, capsys):
    assert goes_on(again) == 0
    results = (again / "run" / "results.json").read_bytes()
    capsys.readouterr()
    assert goes_on(again) == 0
    assert "nothing to do" in capsys.readouterr().out
    changes = {
        "labels.csv": add_a_row,
        "test.csv": drop_a_test,
        "known.csv": drop_a_known_label,
    }
    for name, changed in changes.items():
        kept = (again / name).read_bytes()
        changed(again)
        assert goes_on(again) == 5
        error = capsys.readouterr().err
        assert f"is finished, and {again / name} has changed since" in error
        (again / name).write_bytes(kept)
    assert (again / "run" / "results.json").read_bytes() == results
    assert goes_on(again) == 0


def test_a_file_of_sets_that_comes_or_goes_is_a_change(again, tmp_path, capsys):
    assert goes_on(again) == 0
    with np.load(again / "run" / "candidates.npz") as found:
        ids = found["ids"].tolist()
    rows = [(one, f"{own.NAMES[0]}|{own.NAMES[1]}") for one in ids]
    sets = own.write_rows(tmp_path / "s.csv", [("id", "candidates"), *rows])
    folder = RunFolder(again / "run")
    values = json.loads((again / "run" / "run.json").read_text())["settings"]
    folder.check_same(values)
    for path in (sets, tmp_path / "nowhere.csv"):
        with pytest.raises(CheckpointError, match=f"{path} was not read then"):
            folder.check_same({**values, "candidates_file": str(path)})
    # As if it had been trained on these.
    run = folder.read("run.json")
    run["settings"]["candidates_file"] = str(sets)
    run["files"] = identity.of_files(run["settings"])
    folder.write("run.json", run)
    with pytest.raises(CheckpointError, match="s.csv was read then"):
        folder.check_same(values)
    values["candidates_file"] = str(sets)
    folder.check_same(values)
    moved = shutil.copy(sets, tmp_path / "moved.csv")
    folder.check_same({**values, "candidates_file": str(moved)})
    sets.unlink()
    folder.check_same(values)
    capsys.readouterr()


def test_the_network_keeps_the_mean_it_was_trained_with(again):
    """An audit of a table that has grown shows the network what it knows."""
    run = json.loads((again / "run" / "run.json").read_text())
    mean = tuple(run["identity"]["mean"])
    add_a_row(again)
    folder = RunFolder(again / "run")
    with folder.lock():
        found = reopen(folder, train_flags.COMMAND)
    assert found.training.data.mean == mean
    assert len(found.training.listed) == 97
    everything = loading.own_data(found.settings)
    assert abs(everything.data.mean[0] - mean[0]) > 1e-3


def test_a_list_of_class_folders_is_part_of_what_a_run_is(tmp_path):
    for name in ("cat/1.png", "dog/2.png"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    names = "candidates_file known_labels test_labels class_names".split()
    settings = {**dict.fromkeys(names), "dataset": str(tmp_path)}
    before = identity.of_files(settings)
    assert set(before) == {"dataset"}
    assert identity.of_files(settings) == before
    (tmp_path / "cat/1.png").rename(tmp_path / "dog/1.png")
    assert identity.of_files(settings) != before
    # A list of names is no file, and digits is a data set with a name.
    settings = {**settings, "class_names": "cat,dog", "dataset": "digits"}
    assert identity.of_files(settings) == {}
