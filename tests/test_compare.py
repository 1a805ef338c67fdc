"""`python -m alim_keras.compare`: the grid, the running, the files."""

import json
import os

import commands
import own
import pytest

from alim_keras import compare
from alim_keras import errors

# Cells of seconds; a test adds what it is about.
TINY = (
    "--preset=smoke --train_size=64 --batch_size=32 --holdout=0 --epochs=2 "
    "--warmup_epochs=1 --strong_operations=0 --width=4"
).split()


@pytest.fixture
def make(tmp_path):
    """Makes the cells of a command line, in the test's own folder."""

    def make(*flags):
        out = str(tmp_path / "out")
        line = compare.COMMAND.parse([f"--out={out}", *TINY, *flags])
        return compare.make_cells(line, out)

    return make


def _leave_results(cell, accuracy):
    """Writes what a training would leave."""
    folder = cell.folder
    os.makedirs(folder.path, exist_ok=True)
    settings, data = cell.config.as_dict(), {"trained_on": 70}
    folder.write("run.json", {"settings": settings, "data": data, "files": {}})
    numbers = {"test_accuracy": accuracy, "epochs": 3}
    folder.write("results.json", numbers)
    return numbers


def test_order_is_seed_then_column_then_row(make):
    cells = make(
        *("--methods=rc,rc+alim", "--seeds=2", "--seed=4"),
        *("--ambiguities=0.1,0.5", "--noise_levels=0.2"),
    )
    folders = [os.path.basename(cell.folder.path) for cell in cells]
    assert folders == [
        f"{row}-q{q}-eta0.2-seed{seed}"
        for seed in (4, 5)
        for q in ("0.1", "0.5")
        for row in ("rc", "rc+alim")
    ]
    assert cells[1].column == "q=0.1 eta=0.2"


def test_a_cell_has_the_flags_of_its_row(make):
    cells = make(
        "--methods=rc[mixup_weight=0], rc+alim,rc+alim[lam=0.5;--width=4;"
        "scale_factor=2],"
        "lwc[method_options=beta=2.0,name=x]",
        *("--seeds=1", "--seed=3", "--noise_levels=0.1", "--norm=scale"),
        *("--scale_factor=0.5", "--noise_rate=0.2", "--mixup_weight=0.7"),
        "--width=8",
    )
    settings = [cell.config.as_dict() for cell in cells]
    names = "method seed noise_level lam norm scale_factor noise_rate width"
    names = [*names.split(), "mixup_weight"]
    # Without ALIM its flags have their defaults, but for lam.
    alone, alim = ([s[name] for name in names] for s in settings[:2])
    assert alone == ["rc", 3, 0.1, 0.0, None, 1.0, None, 8, 0.0]
    assert alim == ["rc", 3, 0.1, "adaptive", "scale", 0.5, 0.2, 8, 0.7]
    assert settings[2]["lam"] == 0.5 and settings[2]["width"] == 4
    assert settings[3]["method_options"] == "beta=2.0,name=x"
    # The folder's name is made of plain characters only.
    assert set("[];").isdisjoint(os.path.basename(cells[2].folder.path))


@pytest.mark.parametrize(
    "flags, words",
    [
        ("--methods=rc,rd", "--method must be one of.*rd"),
        ("--methods=rc,", "A row must be.*''"),
        ("--methods=rc[width=8]+alim", "A row must be"),
        ("--methods=rc[lam=0.3]", "--lam is.*twice"),
        ("--methods=rc[width=x]", "--width.*a whole number"),
        ("--methods=rc[wdth=8]", "--wdth.*Did you mean --width"),
        ("--methods=rc[seed=3]", "--seed is not for one row alone"),
        ("--methods=cc,cc+alim", "cc[+]alim.*pseudo labels"),
        ("--methods=rc+alim --lam=0", "rc[+]alim.*--lam=0"),
        ("--seeds=0", "--seeds=0.*from 1"),
        ("--noise_levels=0.1,1.5", "--noise_level=1.5"),
        ("--method=rc", "--methods"),
        ("--candidates_file=x --noise_levels=0", "simulated"),
        ("--dataset=/x.csv --ambiguities=0", "simulated"),
        ("--distribute=multi_worker", "multi_worker"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_runs(
    flags, words, make, tmp_path
):
    with pytest.raises(errors.ConfigError, match=words):
        make(*flags.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "flag", ["--candidates_file=some/human.npz", "--dataset=/some/human.csv"]
)
def test_sets_from_a_file_are_one_column(flag, make):
    first, second = make("--methods=rc", flag, "--seeds=2")
    assert first.column == second.column == "human"
    assert os.path.basename(second.folder.path) == "rc-human-seed1"


def test_cells_of_other_settings_are_refused(make):
    (cell,) = make("--methods=rc", "--seeds=1")
    _leave_results(cell, 0.5)
    make("--methods=rc,cc", "--seeds=2")
    with pytest.raises(errors.CheckpointError, match="--run_dir.*--epochs=3"):
        make("--methods=rc", "--seeds=1", "--epochs=3")


@pytest.fixture
def trained(monkeypatch):
    """Replaces training; a list of the cells, in order of training.

    `trained.errors` is a dict from their number to what they raise.
    """

    class Trained(list):
        errors = {}

    done = Trained()

    def train_cell(cell):
        with cell.folder.lock():
            done.append(os.path.basename(cell.folder.path))
            if len(done) in done.errors:
                raise done.errors[len(done)]
            return _leave_results(cell, 0.5)

    monkeypatch.setattr(compare, "train_cell", train_cell)
    return done


def _status(out):
    return [row["status"] for row in own.read_rows(out / "cells.csv")]


def test_every_cell_once_and_a_line_for_each(make, trained, tmp_path, capsys):
    cells = make("--methods=rc,cc", "--seeds=2")
    assert compare.run(cells, tmp_path / "out") == 0
    assert trained == [os.path.basename(c.folder.path) for c in cells]
    first, second, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("Cells: 4, finished: 0, in ")
    assert second.startswith("[1/4] rc q=0.3 eta=0.3 seed 0: test 50.0%, 0 s")
    assert len(others) == 3
    compare.run(cells, tmp_path / "out")
    assert "Cells: 4, finished: 4" in capsys.readouterr().out
    assert len(trained) == 4


def test_a_failing_cell_is_reported_and_the_rest_goes_on(
    make, trained, tmp_path, capsys
):
    cells, out = make("--methods=rc,cc", "--seeds=2"), tmp_path / "out"
    trained.errors = {
        2: errors.NonFiniteError("loss is NaN"),
        3: MemoryError("much"),
    }
    # The exit code is that of the first failure: 4 for non-finite.
    assert compare.run(cells, out) == 4
    lines = capsys.readouterr().out.splitlines()
    assert "loss is NaN" in lines[2] and "out of memory" in lines[3]
    assert _status(out) == ["finished", *["unfinished"] * 2, "finished"]
    # The same command tries them again.
    trained.clear()
    trained.errors = {}
    assert compare.run(cells, out) == 0
    assert trained == ["cc-q0.3-eta0.3-seed0", "rc-q0.3-eta0.3-seed1"]
    assert _status(out) == ["finished"] * 4


def test_what_would_fail_in_every_cell_ends_at_the_first(
    make, trained, tmp_path
):
    trained.errors = {1: errors.DataError("no images")}
    with pytest.raises(errors.DataError, match="no images"):
        compare.run(make("--methods=rc,cc"), tmp_path / "out")
    assert len(trained) == 1


def test_a_cell_of_another_process_is_left_to_it(make, trained, tmp_path):
    cells = make("--methods=rc,cc", "--seeds=1")
    with cells[0].folder.lock():
        assert compare.run(cells, tmp_path / "out") == 5
    assert _status(tmp_path / "out") == ["unfinished", "finished"]


def test_two_trainings(tmp_path):
    flags = [f"--out={tmp_path}", *TINY, "--methods=rc,rc+alim", "--seeds=1"]
    assert "Finished cells: 2 of 2" in commands.works("compare", *flags)
    alone, alim = own.read_rows(tmp_path / "cells.csv")
    assert (alone["lambda"], alone["lam"]) == ("0.0", "0.0")
    assert float(alim["lambda"]) > 0 and alim["epochs"] == "2"
    folder = tmp_path / "cells" / alim["folder"]
    results = json.loads((folder / "results.json").read_text())
    assert results["test_accuracy"] == float(alim["test_accuracy"])
    assert "epoch 2/2" in (folder / "log.txt").read_text()
    # What only a continuation would need, and models, are gone.
    gone = {"checkpoints", "candidates.npz", "model.keras", "saved_model"}
    assert gone.isdisjoint(os.listdir(folder))


def test_the_table_by_hand(make, tmp_path):
    accuracy = {
        ("rc", 0.0): (0.5, 0.6, 0.7),
        ("rc+alim", 0.0): (0.5, 0.6, 0.7),
        ("rc", 0.3): (0.1, 0.2, 0.6),
        ("rc+alim", 0.3): (0.4, 0.7, None),
    }
    cells = make("--methods=rc,rc+alim", "--noise_levels=0,0.3", "--seeds=3")
    for cell in cells:
        place = cell.row, cell.config.candidates.noise_level
        value = accuracy[place][cell.config.run.seed]
        if value is not None:
            _leave_results(cell, value)
    compare.write(cells, tmp_path)
    last = own.read_rows(tmp_path / "cells.csv")[-1]
    assert (last["row"], last["noise_level"]) == ("rc+alim", "0.3")
    assert (last["status"], last["test_accuracy"]) == ("unfinished", "")
    lines = (tmp_path / "table.md").read_text().splitlines()
    assert lines[2:] == [
        "| method | q=0.3 eta=0 | q=0.3 eta=0.3 |",
        "| --- | --- | --- |",
        # Of 0.1, 0.2, 0.6: mean 0.3, (0.04 + 0.01 + 0.09) / 2 = 0.07;
        # 100 x sqrt(0.07) = 26.46; sqrt((0.15**2) * 2) = 0.2121.
        "| rc | 60.00 ± 10.00 | 30.00 ± 26.46 |",
        "| rc+alim | 60.00 ± 10.00 | 55.00 ± 21.21 (2) |",
    ]
