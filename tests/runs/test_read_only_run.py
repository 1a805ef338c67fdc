"""Runs that lie where nobody may write, and what else is no run folder."""

import importlib
import os
import shutil

import own
import pytest
from own_runs import run_audit
from own_runs import run_train

from alim_keras import cli
from alim_keras import export
from alim_keras.cli import export_flags
from alim_keras.runs import beliefs

FOLDS = ("--folds=2", "--fold_epochs=1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("read_only")
    own.write_folder(place, count=60)
    return place


@pytest.fixture(scope="module")
def trained(folder):
    images = f"--images={folder / 'photos'}"
    assert run_train(folder / "run", folder / "labels.csv", images) == 0
    return folder / "run"


@pytest.fixture
def run_dir(trained, tmp_path):
    """A copy of the run, to be changed."""
    return shutil.copytree(trained, tmp_path / "run")


@pytest.fixture
def read_only(run_dir, monkeypatch):
    """The run, in a folder where not even root may write."""

    def refusing(usual, writes):
        def function(path, *args, **options):
            inside = str(path).startswith(f"{run_dir}")
            if inside and writes(*args, **options):
                raise PermissionError(13, "Permission denied", str(path))
            return usual(path, *args, **options)

        return function

    writing = os.O_WRONLY | os.O_RDWR
    for place, writes in (
        ("builtins.open", lambda mode="r", *_, **__: set("wax+") & set(mode)),
        ("os.open", lambda flags, *_, **__: flags & writing),
        ("os.mkdir", lambda *_, **__: True),
    ):
        module, name = place.split(".")
        usual = getattr(importlib.import_module(module), name)
        monkeypatch.setattr(place, refusing(usual, writes))
    return run_dir


def content(folder):
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_a_run_that_cannot_be_written_to(read_only, tmp_path, capsys):
    before = content(read_only)
    assert run_audit(read_only) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{read_only} cannot be written to: Permission denied" in line
    assert line.endswith("--out=FOLDER")
    out = tmp_path / "out"
    assert run_audit(read_only, f"--out={out}") == 0
    assert (out / "report.html").exists()
    assert len(own.read_rows(out / "labels.csv")) == 60
    assert run_audit(read_only, f"--out={read_only / 'inside'}") == 2
    assert "Give another folder" in capsys.readouterr().err
    assert content(read_only) == before


def test_folds_that_cannot_be_kept(read_only, tmp_path, capsys):
    out = tmp_path / "out"
    assert run_audit(read_only, f"--out={out}", *FOLDS) == 0
    told = capsys.readouterr().out
    file = read_only / beliefs.FILE
    assert f"{file} cannot be written (Permission denied): the netw" in told
    assert not file.exists()
    rows = own.read_rows(out / "labels.csv")
    assert {row["source"] for row in rows} == {"folds"}


def test_what_must_write_says_that_it_cannot(read_only, capsys):
    command = export_flags.COMMAND
    assert cli.run(command, export.main, [str(read_only)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{read_only} cannot be written to: Permission denied" in line
    assert "a copy of this one" in line


def test_a_cache_that_cannot_be_written_to_is_left_alone(
    folder, run_dir, tmp_path, request
):
    flags = (run_dir / "run.flags").read_text()
    assert "--image_cache=auto" in flags
    flags = flags.replace("--image_cache=auto", "--image_cache=disk")
    (run_dir / "run.flags").write_text(flags)
    request.getfixturevalue("read_only")
    assert run_audit(run_dir, f"--out={tmp_path / 'out'}") == 0
    assert not (run_dir / "images.npy").exists()


@pytest.mark.parametrize("flags", [(), ("--out=elsewhere",)])
def test_a_file_is_no_run(run_dir, flags, capsys):
    model = run_dir / "model.keras"
    assert run_audit(model, *flags) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "RUN must be the folder of a run" in line and "--out" not in line
    assert f"Received: {model}" in line
    command = export_flags.COMMAND
    assert cli.run(command, export.main, [str(model)]) == 2
    assert "RUN must be the folder of a run" in capsys.readouterr().err


def test_counted_wrong_sets_are_told(folder, tmp_path, capsys):
    """Also those of items whose set an answer has replaced."""
    table, images = folder / "labels.csv", f"--images={folder / 'photos'}"
    rows = own.read_rows(table)
    names = sorted({row["image"] for row in rows})[:55]
    wrong = [[name, sorted(own.NAMES)[0]] for name in names]
    own.write_rows(tmp_path / "known.csv", [["id", "label"], *wrong])
    known = f"--known_labels={tmp_path / 'known.csv'}"
    lines = []
    for flags in ((), ("--known_as_sets",)):
        run = tmp_path / f"run{len(flags)}"
        assert run_train(run, table, images, known, *flags) == 0
        capsys.readouterr()
        assert run_audit(run) == 0
        out = capsys.readouterr().out
        lines += [line for line in out.splitlines() if "true label is" in line]
    first, second = (line.split(" If ")[0] for line in lines)
    assert first == second
    assert first.startswith("Of the 55 examples whose true label is known ")
    assert "known 0 " not in first and "\N{NO-BREAK SPACE}" not in lines[0]
