import csv
import os
import signal
import subprocess
import sys

import pytest
from comparing import metrics
from comparing import results

from alim_keras import cli
from alim_keras import compare
from alim_keras.cli import compare_flags
from alim_keras.comparisons import cells
from alim_keras.comparisons import runner
from alim_keras.errors import DataError
from alim_keras.errors import NonFiniteError
from alim_keras.runs.folder import RunFolder


@pytest.fixture
def trained(monkeypatch, leave_results):
    """Replaces training; a list of the cells' folders, in order of training.

    `trained.before` is called with the folder first, and may raise.
    """

    class Trained(list):
        before = staticmethod(lambda folder: None)

    done = Trained()

    def train(settings, folder):
        name = os.path.basename(folder.path)
        done.append(name)
        done.before(name)
        leave_results(settings, folder, 0.5)
        os.makedirs(folder.checkpoint.folder)

    monkeypatch.setattr(cells, "_train", train)
    monkeypatch.setattr(runner, "POLL", 0.01)
    return done


def _run(grid):
    said = []
    code = runner.Runner(grid, said.append).run()
    return code, said


def _status(grid):
    with open(os.path.join(grid.out, "cells.csv"), newline="") as file:
        return [row["status"] for row in csv.DictReader(file)]


def test_every_cell_once_and_a_line_for_each(make_grid, trained):
    grid = make_grid("--methods=rc,cc", "--seeds=2")
    code, said = _run(grid)
    assert code == 0
    assert trained == [os.path.basename(cell.path) for cell in grid.cells]
    assert "4 cells, 0 of them finished" in said[0]
    assert said[1].startswith("[1/4] rc q=0.3 eta=0.3 seed 0: test 50.0%, ")
    assert said[4].endswith("0:00:00 left") and len(said) == 5
    # What only a continuation would need is gone.
    left = {name for cell in grid.cells for name in os.listdir(cell.path)}
    assert left == {".lock", "run.json", "results.json", "metrics.csv"}
    assert _run(grid)[1][0].startswith("4 cells, 4 of them finished")
    assert len(trained) == 4


def test_a_failing_cell_is_reported_and_the_rest_goes_on(make_grid, trained):
    grid = make_grid("--methods=rc,cc", "--seeds=2")
    why = {1: NonFiniteError("loss is NaN"), 2: MemoryError("too much")}

    def fail(name):
        if len(trained) - 1 in why:
            raise why[len(trained) - 1]

    trained.before = fail
    code, said = _run(grid)
    # The exit code is that of the first failure: 4 for non-finite.
    assert code == 4
    assert "loss is NaN" in said[2] and "out of memory" in said[3]
    wanted = ["finished", "non-finite", "out of memory", "finished"]
    assert _status(grid) == wanted
    # The same command tries them again.
    trained.clear()
    trained.before = lambda name: None
    assert _run(grid)[0] == 0
    assert trained == ["cc-q0.3-eta0.3-seed0", "rc-q0.3-eta0.3-seed1"]
    assert _status(grid) == ["finished"] * 4


def test_what_would_fail_in_every_cell_ends_at_the_first(make_grid, trained):
    def fail(name):
        raise DataError("no images")

    trained.before = fail
    with pytest.raises(DataError, match="no images"):
        _run(make_grid("--methods=rc,cc"))
    assert len(trained) == 1


def test_a_cell_of_another_process_is_skipped_and_seen_to_at_the_end(
    make_grid, trained, leave_results
):
    grid = make_grid("--methods=rc,cc,gce", "--seeds=1")
    first, second, third = grid.cells
    with RunFolder(first.path).lock(), RunFolder(second.path).lock():

        def finish(name):
            # Meanwhile the other process comes to the end of the first.
            if name.startswith("gce"):
                leave_results(first.settings, RunFolder(first.path), 0.25)

        trained.before = finish
        # It waits for the second as long as that is locked.
        waits = []

        def sleep(seconds):
            waits.append(seconds)
            if len(waits) == 3:
                leave_results(second.settings, RunFolder(second.path), 0.75)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(runner.time, "sleep", sleep)
            code, said = _run(grid)
    assert code == 0 and len(waits) == 3
    assert trained == [os.path.basename(third.path)]
    assert "another process" in said[2]
    assert _status(grid) == ["finished"] * 3


def test_a_cell_that_its_process_left_is_taken_over(make_grid, trained):
    grid = make_grid("--methods=rc,cc", "--seeds=1")
    lock = RunFolder(grid.cells[0].path).lock()
    lock.__enter__()
    # Only its own cell's end frees the other.
    trained.before = lambda name: (
        lock.__exit__(None, None, None) if name.startswith("cc") else None
    )
    assert _run(grid)[0] == 0
    assert [name[:2] for name in trained] == ["cc", "rc"]


def test_table_only_runs_nothing(tiny, tmp_path, trained, capsys):
    out = tmp_path / "out"
    flags = [f"--out={out}", *tiny, "--methods=rc", "--table_only"]
    assert cli.run(compare_flags.COMMAND, compare.main, flags) == 0
    assert trained == []
    assert "0 of 3 cells are finished" in capsys.readouterr().out
    assert (out / "table.md").exists() and not (out / "cells").exists()


def test_a_refused_row_ends_with_one_line(tiny, tmp_path, trained, capsys):
    flags = [f"--out={tmp_path / 'out'}", *tiny, "--methods=cc+alim"]
    assert cli.run(compare_flags.COMMAND, compare.main, flags) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "cc+alim" in line and trained == []


def test_a_killed_comparison_goes_on_like_an_uninterrupted_one(
    tiny, tmp_path, repository, make_grid, capsys
):
    """Real training: killed in the second of three cells, by SIGKILL."""
    flags = [*tiny, "--methods=rc,rc+alim,cc", "--seeds=1", "--width=4"]
    cut, whole = tmp_path / "cut", tmp_path / "whole"
    process = subprocess.Popen(
        [sys.executable, "-m", "alim_keras.compare", *flags, f"--out={cut}"],
        env={**os.environ, "PYTHONPATH": str(repository)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    for line in process.stdout:
        if line.startswith("[1/3]"):
            process.send_signal(signal.SIGKILL)
            break
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    before = os.stat(cut / "cells" / "rc-q0.3-eta0.3-seed0" / "results.json")

    for out in (cut, whole):
        arguments = [*flags, f"--out={out}"]
        assert cli.run(compare_flags.COMMAND, compare.main, arguments) == 0
    said = capsys.readouterr().out
    assert "3 cells, 1 of them finished" in said
    names = sorted(os.listdir(whole / "cells"))
    assert names == [
        "cc-q0.3-eta0.3-seed0",
        "rc+alim-q0.3-eta0.3-seed0",
        "rc-q0.3-eta0.3-seed0",
    ]
    for name in names:
        one, two = cut / "cells" / name, whole / "cells" / name
        assert results(one) == results(two)
        assert metrics(one) == metrics(two)
        assert not (one / "checkpoints").exists()
        assert not (one / "model.keras").exists()
        assert "epoch 2/2" in (two / "log.txt").read_text()
    # What was finished before was not trained again.
    after = os.stat(cut / "cells" / "rc-q0.3-eta0.3-seed0" / "results.json")
    assert before.st_mtime_ns == after.st_mtime_ns
    plain, alim = (metrics(whole / "cells" / name) for name in names[:0:-1])
    assert [float(row["lambda"]) for row in plain] == [0, 0]
    assert float(alim[-1]["lambda"]) > 0
