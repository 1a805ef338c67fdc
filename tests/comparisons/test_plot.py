import os

import numpy as np
import pytest

from alim_keras.comparisons import plot
from alim_keras.comparisons import report
from alim_keras.comparisons.rows import Row
from alim_keras.comparisons.table import Table


def _accuracy(cell):
    """0.7 - eta, less without ALIM, and 0.1 more for each seed."""
    without = 0.0 if cell.row.alim else 0.2 * cell.column.noise_level
    return 0.7 - cell.column.noise_level - without + 0.1 * cell.seed


@pytest.fixture
def table(make_grid, leave_results):
    grid = make_grid(
        "--methods=rc,rc+alim,pico+alim",
        "--seeds=3",
        "--ambiguities=0.1,0.5",
        "--noise_levels=0.3,0",
    )
    for cell in grid.cells:
        if cell.row.method == "pico" and cell.column.noise_level:
            continue
        os.makedirs(cell.path)
        leave_results(cell.settings, cell.folder, _accuracy(cell))
    results = report.write(grid)
    assert os.path.getsize(os.path.join(grid.out, "accuracy.png")) > 1000
    return Table(grid, results)


def test_the_lines_are_the_tables_means(table):
    figure = plot.figure(table)
    panels = figure.axes
    assert [panel.get_title() for panel in panels] == ["q = 0.1", "q = 0.5"]
    for panel in panels:
        rc, alim, pico = panel.containers
        assert [c.get_label() for c in panel.containers] == [
            "rc",
            "rc+alim",
            "pico+alim",
        ]
        # Seeds at -0.1, 0, 0.1 around the mean: deviation 0.1, 10 points.
        line, _, (bars,) = rc
        np.testing.assert_allclose(line.get_xdata(orig=False), [0, 0.3])
        np.testing.assert_allclose(line.get_ydata(orig=False), [80, 44])
        ends = [segment[:, 1] for segment in bars.get_segments()]
        np.testing.assert_allclose(ends, [[70, 90], [34, 54]])
        np.testing.assert_allclose(alim[0].get_ydata(orig=False), [80, 50])
        # Unfinished places have no point.
        np.testing.assert_allclose(pico[0].get_xdata(orig=False), [0])
        assert rc[0].get_color() == alim[0].get_color()
        assert rc[0].get_color() != pico[0].get_color()
        assert rc[0].get_linestyle() == "--"
        assert alim[0].get_linestyle() == "-"
    legends = [panel.get_legend() for panel in panels]
    assert legends[0] is None
    texts = [text.get_text() for text in legends[1].get_texts()]
    assert texts == ["rc", "rc+alim", "pico+alim"]


def test_no_panel_has_more_lines_or_methods_than_can_be_told_apart():
    rows = [Row(f"m{i}", alim) for i in range(9) for alim in (False, True)]
    groups = plot.split_rows(rows)
    assert [len(group) for group in groups] == [14, 4]
    assert [row for group in groups for row in group] == rows
    alone = plot.split_rows([Row(f"m{i}") for i in range(10)])
    assert [len(group) for group in alone] == [7, 3]
    assert len(set(plot.COLORS)) == 7


def test_variants_of_a_row_have_markers_of_their_own(make_grid):
    grid = make_grid("--methods=rc,rc+mixup,rc+alim,rc+alim[lam=0.3]")
    figure = plot.figure(Table(grid, report.write(grid)))
    lines = [container[0] for container in figure.axes[0].containers]
    kinds = {(line.get_linestyle(), line.get_marker()) for line in lines}
    assert len(kinds) == 4


def test_without_matplotlib_the_plot_is_left_out(make_grid, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    grid = make_grid("--methods=rc")
    report.write(grid)
    assert not os.path.exists(os.path.join(grid.out, "accuracy.png"))
    assert "pip install matplotlib" in "\n".join(report.finish(grid))


def test_options_are_left_out_of_a_name_that_is_unique():
    rows = [
        Row("rc"),
        Row("pico", alim=True, options=(("lam", "1"),)),
        Row("cc", options=(("width", "2"),)),
        Row("cc", options=(("width", "3"),)),
    ]
    assert list(plot.labels_of(rows).values()) == [
        "rc",
        "pico+alim",
        "cc[width=2]",
        "cc[width=3]",
    ]
    # Those with ALIM come first.
    ((first, *_),) = plot.split_rows(rows)
    assert first.method == "pico"
