"""The files of a comparison: cells.csv, table.csv, table.md, accuracy.png."""

import csv
import importlib.util
import io
import os

from alim_keras.comparisons import cells
from alim_keras.comparisons.table import Table
from alim_keras.files import write_atomically

CELLS, TABLE = "cells.csv", "table.csv"
DIFFERENCES, MARKDOWN = "differences.csv", "table.md"
PLOT = "accuracy.png"


def write(grid):
    """Writes the tables and the plot from what is finished.

    Returns:
        Dict from a cell's name to its dict of `cells.COLUMNS`.
    """
    results = {cell.name: cells.read(cell) for cell in grid.cells}
    table = Table(grid, results)
    os.makedirs(grid.out, exist_ok=True)
    _write_csv(grid, CELLS, cells.COLUMNS, results.values())
    _write_csv(grid, TABLE, *_table_rows(table))
    _write_csv(grid, DIFFERENCES, *_difference_rows(table))
    write_atomically(os.path.join(grid.out, MARKDOWN), as_markdown(table))
    _draw(grid, table)
    return results


def finish(grid):
    """Writes everything once more; returns lines that say what is where."""
    results = write(grid).values()
    lines = []
    for found in results:
        if found["status"] not in (cells.FINISHED, cells.UNFINISHED):
            place = os.path.join(grid.out, "cells", found["folder"])
            lines.append(
                f"{found['row']}, seed {found['seed']}: {found['status']}; "
                f"see {os.path.join(place, cells.FAILURE)}"
            )
    done = sum(found["status"] == cells.FINISHED for found in results)
    lines.append(f"{done} of {len(results)} cells are finished. In {grid.out}:")
    lines += [
        f"  {MARKDOWN:<15} mean and deviation over the seeds, and differences",
        f"  {TABLE:<15} the same means as numbers; {DIFFERENCES}",
        f"  {CELLS:<15} a row for every run",
    ]
    if os.path.exists(os.path.join(grid.out, PLOT)):
        lines.append(f"  {PLOT:<15} accuracy against the noise level")
    if not _can_draw():
        lines.append(
            f"{PLOT} is left out: python -m pip install matplotlib, then the "
            "same command with --table_only."
        )
    return lines


def as_markdown(table):
    """Returns the tables as Markdown, accuracies in percent."""
    heads = [column.name for column in table.columns]
    lines = [
        "Test accuracy after the last epoch in percent: mean ± standard "
        f"deviation over {len(table.seeds)} seed(s); (n) where only n are "
        "finished. s/epoch: seconds of an epoch's training steps, median.",
        "",
        *_markdown_head(["method", *heads, "s/epoch"]),
    ]
    best = {
        column: max(
            (table.spread(row, column).mean or 0.0 for row in table.rows),
        )
        for column in table.columns
    }
    for row in table.rows:
        texts = []
        for column in table.columns:
            found = table.spread(row, column)
            text = _mean_text(found, len(table.seeds))
            if found.count and found.mean == best[column]:
                text = f"**{text}**"
            texts.append(text)
        seconds = table.seconds_per_epoch(row)
        texts.append("–" if seconds is None else f"{seconds:.3g}")
        lines.append(_markdown_row([row.name, *texts]))
    pairs = table.pairs()
    if not pairs:
        return "\n".join(lines) + "\n"
    lines += [
        "",
        "What a plug-in changes, in points of percent: mean over the seeds ± "
        "standard error of that mean, from the differences within each seed.",
        "",
        *_markdown_head(["method", *heads]),
    ]
    for pair in pairs:
        for row in (pair.base, pair.plus):
            means = [table.spread(row, column).mean for column in table.columns]
            lines.append(_markdown_row([row.name, *map(_percent, means)]))
        texts = []
        for column in table.columns:
            found = table.difference(pair, column)
            text = _mean_text(found, len(table.seeds), found.error, "+")
            texts.append(text)
        lines.append(_markdown_row([f"*{pair.plug_in}*", *texts]))
    return "\n".join(lines) + "\n"


def _table_rows(table):
    names = ["row"]
    for column in table.columns:
        names += [f"{column.name} {what}" for what in ("mean", "std", "seeds")]
    names.append("seconds_per_epoch")
    rows = []
    for row in table.rows:
        found = {"row": row.name}
        for column in table.columns:
            spread = table.spread(row, column)
            found[f"{column.name} mean"] = spread.mean
            found[f"{column.name} std"] = spread.deviation
            found[f"{column.name} seeds"] = spread.count
        found["seconds_per_epoch"] = table.seconds_per_epoch(row)
        rows.append(found)
    return names, rows


def _difference_rows(table):
    names = ("plug_in", "base", "with", "column", "ambiguity", "noise_level")
    names += ("difference", "standard_error", "seeds")
    rows = []
    for pair in table.pairs():
        for column in table.columns:
            found = table.difference(pair, column)
            values = (
                pair.plug_in,
                pair.base.name,
                pair.plus.name,
                column.name,
                column.ambiguity,
                column.noise_level,
                found.mean,
                found.error,
                found.count,
            )
            rows.append(dict(zip(names, values)))
    return names, rows


def _write_csv(grid, name, columns, rows):
    out = io.StringIO()
    # None becomes an empty field.
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(os.path.join(grid.out, name), out.getvalue())


def _can_draw():
    return importlib.util.find_spec("matplotlib") is not None


def _draw(grid, table):
    # A plot against eta needs etas.
    if not _can_draw() or table.columns[0].noise_level is None:
        return
    from alim_keras.comparisons import plot

    image = io.BytesIO()
    plot.figure(table).savefig(image, format="png", dpi=150)
    write_atomically(os.path.join(grid.out, PLOT), image.getvalue())


def _mean_text(found, seeds, deviation=None, sign=""):
    if not found.count:
        return "–"
    deviation = found.deviation if deviation is None else deviation
    text = f"{100 * found.mean:{sign}.2f}"
    if deviation is not None:
        text += f" ± {100 * deviation:.2f}"
    return text if found.count == seeds else f"{text} ({found.count})"


def _percent(share):
    return "–" if share is None else f"{100 * share:.2f}"


def _markdown_head(names):
    return [_markdown_row(names), "|" + "---|" * len(names)]


def _markdown_row(texts):
    return "| " + " | ".join(texts) + " |"
