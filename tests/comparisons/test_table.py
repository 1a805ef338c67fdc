import csv
import os

import pytest

from alim_keras.comparisons import report
from alim_keras.comparisons.table import Table
from alim_keras.comparisons.table import spread

# Accuracies by row, column and seed. Seed 2 of rc+alim at eta 0.3 is missing.
ACCURACY = {
    ("rc", 0.0): (0.5, 0.6, 0.7),
    ("rc+alim", 0.0): (0.5, 0.6, 0.7),
    ("rc", 0.3): (0.1, 0.2, 0.6),
    ("rc+alim", 0.3): (0.4, 0.7, None),
}


@pytest.fixture
def grid(make_grid, leave_results):
    made = make_grid("--methods=rc,rc+alim", "--noise_levels=0,0.3")
    for cell in made.cells:
        place = (cell.row.name, cell.column.noise_level)
        accuracy = ACCURACY[place][cell.seed]
        if accuracy is not None:
            os.makedirs(cell.path)
            leave_results(cell.settings, cell.folder, accuracy)
    return made


def test_spread_by_hand():
    # Mean of 1, 2, 6 is 3; squares 4 + 1 + 9 = 14, over n - 1 = 2 is 7.
    found = spread([1.0, 2.0, 6.0])
    assert (found.mean, found.count) == (3.0, 3)
    assert found.deviation == pytest.approx(7**0.5)
    assert found.error == pytest.approx((7 / 3) ** 0.5)
    one = spread([2.0])
    assert (one.mean, one.deviation, one.error, one.count) == (2, None, None, 1)
    assert spread([]).mean is None and spread([]).count == 0


def test_paired_difference_by_hand(grid):
    table = Table(grid, report.write(grid))
    (pair,) = table.pairs()
    assert (pair.plug_in, pair.base.name) == ("alim", "rc")
    none, noisy = (table.difference(pair, c) for c in grid.columns)
    assert (none.mean, none.deviation, none.count) == (0, 0, 3)
    # Seeds 0 and 1 alone: 0.4 - 0.1 = 0.3 and 0.7 - 0.2 = 0.5; mean 0.4,
    # deviation sqrt(0.01 + 0.01) and error that over sqrt(2), 0.1.
    assert noisy.count == 2
    assert noisy.mean == pytest.approx(0.4)
    assert noisy.error == pytest.approx(0.1)


def test_pairs_need_a_base_that_differs_in_one_thing(make_grid):
    grid = make_grid(
        "--methods=rc,rc+alim,rc+alim[lam=0.3],rc+mixup,pico+nomixup,pico+alim,"
        "pico",
        "--seeds=1",
    )
    table = Table(grid, report.write(grid))
    found = [(p.plug_in, p.base.name, p.plus.name) for p in table.pairs()]
    assert found == [
        ("alim", "rc", "rc+alim"),
        ("alim", "rc", "rc+alim[lam=0.3]"),
        ("alim", "pico", "pico+alim"),
        ("mixup", "rc", "rc+mixup"),
        ("mixup", "pico+nomixup", "pico"),
    ]


def _read(grid, name):
    with open(os.path.join(grid.out, name), newline="") as file:
        return list(csv.DictReader(file))


def test_table_csv(grid):
    report.write(grid)
    rc, alim = _read(grid, "table.csv")
    assert rc["row"] == "rc"
    assert float(rc["q=0.3 eta=0.3 mean"]) == pytest.approx(0.3)
    # Of 0.1, 0.2, 0.6: (0.04 + 0.01 + 0.09) / 2 = 0.07.
    assert float(rc["q=0.3 eta=0.3 std"]) == pytest.approx(0.07**0.5)
    assert rc["q=0.3 eta=0.3 seeds"] == "3"
    assert alim["q=0.3 eta=0.3 seeds"] == "2"
    # Epochs of 0.2, 0.5 and 1 s: the median.
    assert float(alim["seconds_per_epoch"]) == 0.5


def test_differences_csv(grid):
    report.write(grid)
    last = _read(grid, "differences.csv")[-1]
    assert (last["base"], last["with"], last["seeds"]) == ("rc", "rc+alim", "2")
    assert last["noise_level"] == "0.3"
    assert float(last["difference"]) == pytest.approx(0.4)
    assert float(last["standard_error"]) == pytest.approx(0.1)


def test_cells_csv(grid):
    report.write(grid)
    rows = _read(grid, "cells.csv")
    assert len(rows) == 12
    last = rows[-1]
    assert (last["row"], last["noise_level"], last["seed"]) == (
        "rc+alim",
        "0.3",
        "2",
    )
    assert (last["status"], last["test_accuracy"]) == ("unfinished", "")
    first = rows[0]
    expected = {
        "row": "rc",
        "method": "rc",
        "alim": "0",
        "mixup": "0.0",
        "ambiguity": "0.3",
        "noise_level": "0.0",
        "status": "finished",
        "test_accuracy": "0.5",
        "test_accuracy_selected": "0.25",
        "pseudo_label_accuracy": "0.5",
        "lambda": "0.25",
        "realised_noise": "0.31",
        "seconds": "12.5",
        "seconds_per_epoch": "0.5",
        "folder": "rc-q0.3-eta0-seed0",
    }
    assert {name: first[name] for name in expected} == expected
    assert rows[1]["alim"] == "adaptive"


def test_markdown(grid):
    lines = report.as_markdown(Table(grid, report.write(grid))).splitlines()
    assert lines[2:6] == [
        "| method | q=0.3 eta=0 | q=0.3 eta=0.3 | s/epoch |",
        "|---|---|---|---|",
        # 100 x sqrt(0.07) = 26.46; sqrt((0.15**2) * 2) = 0.2121.
        "| rc | **60.00 ± 10.00** | 30.00 ± 26.46 | 0.5 |",
        "| rc+alim | **60.00 ± 10.00** | **55.00 ± 21.21 (2)** | 0.5 |",
    ]
    assert lines[-3:] == [
        "| rc | 60.00 | 30.00 |",
        "| rc+alim | 60.00 | 55.00 |",
        "| *alim* | +0.00 ± 0.00 | +40.00 ± 10.00 (2) |",
    ]


def test_nothing_finished_is_a_table_too(make_grid):
    grid = make_grid("--methods=rc,cc", "--seeds=1")
    lines = report.as_markdown(Table(grid, report.write(grid))).splitlines()
    assert lines[-1] == "| cc | – | – |"
    assert "0 of 2 cells" in "\n".join(report.finish(grid))
