import os

import pytest

from alim_keras.cli import compare_flags
from alim_keras.cli import train_flags
from alim_keras.comparisons import cells
from alim_keras.errors import CheckpointError
from alim_keras.errors import ConfigError


def test_order_is_seed_then_column_then_row(make_grid):
    grid = make_grid(
        "--methods=rc,rc+alim",
        "--seeds=4,2",
        "--ambiguities=0.1,0.5",
        "--noise_levels=0.2",
    )
    assert [cell.name for cell in grid.cells] == [
        "rc q=0.1 eta=0.2 seed 4",
        "rc+alim q=0.1 eta=0.2 seed 4",
        "rc q=0.5 eta=0.2 seed 4",
        "rc+alim q=0.5 eta=0.2 seed 4",
        "rc q=0.1 eta=0.2 seed 2",
        "rc+alim q=0.1 eta=0.2 seed 2",
        "rc q=0.5 eta=0.2 seed 2",
        "rc+alim q=0.5 eta=0.2 seed 2",
    ]
    folders = [os.path.basename(cell.path) for cell in grid.cells]
    assert folders[1] == "rc+alim-q0.1-eta0.2-seed4"
    assert len(set(folders)) == 8


@pytest.mark.parametrize(
    "text, seeds", [("2", [0, 1]), ("5,1", [5, 1]), ("7,", [7])]
)
def test_seeds_are_a_count_or_a_list(text, seeds, make_grid):
    assert list(make_grid("--methods=rc", f"--seeds={text}").seeds) == seeds


def test_a_cell_has_the_flags_of_its_row(make_grid):
    grid = make_grid(
        "--methods=rc+nomixup,rc+alim,pico+mixup",
        "--seeds=3,",
        "--noise_levels=0.1",
        "--norm=scale",
        "--lam_per_class",
        "--noise_rate=0.2",
        "--width=8",
        "--mixup_weight=0.7",
    )
    found = [cell.settings.as_dict() for cell in grid.cells]
    names = "method seed noise_level lam norm lam_per_class noise_rate width"
    names = [*names.split(), "mixup_weight"]
    # Without ALIM its flags have their defaults, but for lam.
    alone = (0.0, None, False, train_flags.COMMAND.parse([]).noise_rate)
    assert [[f[name] for name in names] for f in found[:2]] == [
        ["rc", 3, 0.1, *alone, 8, 0.0],
        ["rc", 3, 0.1, "adaptive", "scale", True, 0.2, 8, 0.7],
    ]
    assert found[2]["lam"] == 0.0 and found[2]["mixup_weight"] == 1.0


def test_one_row_may_have_other_flags(make_grid):
    grid = make_grid("--methods=rc+alim,rc+alim[lam=0.5;width=4]", "--width=8")
    plain, other = (cell.settings for cell in grid.cells[:2])
    assert (plain.lam, plain.width) == ("adaptive", 8)
    assert (other.lam, other.width) == (0.5, 4)
    # The folder's name is made of plain characters only.
    assert set("[];").isdisjoint(os.path.basename(grid.cells[1].path))


def test_a_cell_repeats_as_a_run_of_the_train_command(make_grid, tmp_path):
    from alim_keras import cli

    cell = make_grid("--methods=rc+alim+mixup", "--seeds=2").cells[1]
    path = tmp_path / "run.flags"
    path.write_text(cli.flags_as_text(cell.settings))
    again = cli.read_flags(path, train_flags.COMMAND).as_dict()
    wanted = cell.settings.as_dict()
    for name in ("run_dir", "flagfile", "preset"):
        again.pop(name), wanted.pop(name)
    assert again == wanted


@pytest.mark.parametrize(
    "flags, words",
    [
        (["--methods=rc,rd"], ["rd", "--method must be one of"]),
        (["--methods=cc,cc+alim"], ["cc+alim", "no pseudo labels"]),
        (["--methods=rc,rc"], ["rc", "same run"]),
        # pico mixes by itself.
        (["--methods=pico,pico+mixup"], ["pico+mixup", "same run"]),
        (["--methods=rc+alim", "--lam=0"], ["--lam=0", "rc+alim"]),
        (["--methods=rc+alim[lam=0]"], ["rc+alim[lam=0]", "--lam=0"]),
        (["--methods=rc[width=x]"], ["--width", "rc[width=x]"]),
        (["--methods=rc[method_options=zeta=1]"], ["zeta"]),
        (["--methods=rc[select=aa]"], ["--select=aa"]),
        (["--seeds=0"], ["--seeds=0"]),
        (["--seeds=1,1"], ["--seeds=1,1", "twice"]),
        (["--seeds=-1,2"], ["--seeds=-1,2"]),
        (["--noise_levels=0.1,1.5"], ["--noise_levels=0.1,1.5", "[0, 1]"]),
        (["--noise_levels=0.1,0.10"], ["twice"]),
        (["--ambiguities=0.1", "--ambiguity=0.2"], ["Either --ambiguities"]),
        (["--method=rc"], ["--methods"]),
        (["--seed=3"], ["--seeds"]),
        (["--run_dir=x"], ["--out"]),
        (["--save_candidates=x"], ["--save_candidates"]),
        (["--candidates_file=x", "--noise_levels=0"], ["x are as they are"]),
        (["--dataset=x.csv", "--ambiguities=0"], ["x.csv are as they are"]),
        (["--distribute=multi_worker"], ["multi_worker", "--out"]),
    ],
)
def test_what_cannot_work_is_refused_before_anything_runs(
    flags, words, make_grid, tmp_path
):
    with pytest.raises(ConfigError) as caught:
        make_grid(*flags)
    for word in words:
        assert word in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "flag", ["--candidates_file=some/human.npz", "--dataset=some/human.csv"]
)
def test_sets_from_a_file_are_one_column(flag, make_grid):
    grid = make_grid("--methods=rc", flag)
    (column,) = grid.columns
    assert (column.name, column.noise_level) == ("human", None)
    assert os.path.basename(grid.cells[1].path) == "rc-human-seed1"


def test_cells_of_other_labels_are_refused(make_grid, leave_results, tmp_path):
    table = tmp_path / "human.csv"
    table.write_text("id,candidates\na.png,cat|dog\n")
    flags = (f"--dataset={table}", "--methods=rc", "--seeds=1")
    (cell,) = make_grid(*flags).cells
    os.makedirs(cell.path)
    leave_results(cell.settings, cell.folder, 0.5)
    make_grid(*flags)
    table.write_text("id,candidates\na.png,cat\n")
    said = "is finished, and .*human.csv has changed since.*another --out"
    with pytest.raises(CheckpointError, match=said):
        make_grid(*flags)


def test_cells_of_other_settings_are_refused(make_grid, leave_results):
    (cell,) = make_grid("--methods=rc", "--seeds=1").cells
    os.makedirs(cell.path)
    leave_results(cell.settings, cell.folder, 0.5)
    with pytest.raises(CheckpointError, match="--out.*--epochs=3"):
        make_grid("--methods=rc", "--seeds=1", "--epochs=3")
    # A flag that the version of the run did not have yet stood at its default.
    run = cell.folder.read("run.json")
    del run["settings"]["evaluate_every"]
    cell.folder.write("run.json", run)
    assert cells.is_finished(make_grid("--methods=rc", "--seeds=1").cells[0])
    with pytest.raises(CheckpointError, match="evaluate_every"):
        make_grid("--methods=rc", "--seeds=1", "--evaluate_every=2")


def test_every_flag_says_what_it_is():
    flag_values = compare_flags.COMMAND.new_flags()
    for name in ("methods", "seeds", "ambiguities", "noise_levels", "out"):
        flag = flag_values[name]
        assert flag.help.endswith("."), name
        assert flag.default is not None or "Without it" in flag.help, name
