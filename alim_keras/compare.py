"""Compares methods, with and without ALIM, over noise levels and seeds.

Trains the grid, one run after the other, and writes a table of mean and
standard deviation. The same command continues. It takes training's flags.
"""

import contextlib
import dataclasses
import gc
import itertools
import os
import re
import shutil
import sys
import time

import pandas as pd

from alim_keras import errors
from alim_keras import train
from alim_keras.app import cli
from alim_keras.app import load
from alim_keras.app import process
from alim_keras.app import values
from alim_keras.app.config import TRAINING
from alim_keras.app.config import Config
from alim_keras.data import known_data
from alim_keras.files import write_atomically


@dataclasses.dataclass(frozen=True)
class CompareConfig:
    """Comparison.

    Attributes:
        methods: Rows, separated by commas: NAME is the method alone (--lam=0),
            NAME+alim with ALIM as --lam says; NAME[flag=value;flag=value] sets
            any flag of training for this row.
        seeds: How many seeds, from --seed on.
        ambiguities: Values of q, separated by commas. Without it: --ambiguity.
        noise_levels: Values of eta, likewise. Without it: --noise_level.
        out: Folder of the cells and the table. Without it: runs/compare.
    """

    methods: str = values.text("pico,pico+alim")
    seeds: int = values.whole(3, low=1)
    ambiguities: str | None = values.text()
    noise_levels: str | None = values.text()
    out: str | None = values.path()


COMMAND = cli.Command(
    name="compare",
    doc=__doc__,
    groups=(CompareConfig, *TRAINING),
    examples=("compare --methods=rc,rc+alim --noise_levels=0,0.3",),
)
_ROW = re.compile(r"([^+\[\]]+)(\+alim)?(?:\[([^\[\]]+)\])?")
# A row without ALIM has the defaults of ALIM's flags, so it is the method.
_ALONE = {"lam": 0.0} | {
    name: Config().as_dict()[name] for name in ("scale_factor", "noise_rate")
}
# What the rows share, or what has a place of its own.
_SHARED = (
    "method seed ambiguity noise_level run_dir backend distribute replicas "
    "candidates_file dataset data_dir download train_size progress"
).split()
_LISTS = {"ambiguity": "ambiguities", "noise_level": "noise_levels"}
# Columns of cells.csv that are settings, and those of results.json.
_SETTINGS = "method lam mixup_weight ambiguity noise_level seed".split()
_RESULTS = (
    "test_accuracy test_accuracy_selected pseudo_label_accuracy lambda "
    "noise_rate realised_noise epochs train_seconds images_per_second"
).split()


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run of the grid: its row, its column and its `Config`."""

    row: str
    column: str
    config: Config

    @property
    def folder(self):
        """A new `RunFolder`: one that has trained keeps its model alive."""
        from alim_keras.app.run_folder import RunFolder

        return RunFolder(self.config.run.run_dir)


def main(line):
    """Runs the cells that are not finished, and writes the table."""
    out = line.options.out or os.path.abspath(os.path.join("runs", "compare"))
    cells = make_cells(line, out)
    code = run(cells, out)
    finished = (write(cells, out).status == "finished").sum()
    print(
        f"Finished cells: {finished} of {len(cells)}. In {out}: table.md, and "
        "every run in cells.csv"
    )
    return code


def make_cells(line, out):
    """Returns the grid in the folder `out`, a list of `Cell`, seed by seed.

    What cannot work is refused, and a folder with cells of other settings.
    """
    load.check_use(line)
    dataset = line.config.data.dataset
    given = line.config.candidates.candidates_file
    if not given and known_data.is_table(dataset):
        given = dataset
    line.refuse_typed(
        ["method", "run_dir", *(_LISTS.values() if given else ())],
        "is not for all cells: --methods, --seeds, --out and, for simulated "
        "sets, --ambiguities and --noise_levels tell them apart",
    )
    if line.config.machine.distribute == "multi_worker":
        raise errors.ConfigError(
            "A comparison does not run in many workers. Received: "
            "--distribute=multi_worker"
        )
    columns = {os.path.splitext(os.path.basename(given or ""))[0]: {}}
    if not given:
        lists = [_listed(line, own, flag) for flag, own in _LISTS.items()]
        columns = {
            f"q={q:.12g} eta={eta:.12g}": {"ambiguity": q, "noise_level": eta}
            for q, eta in itertools.product(*lists)
        }
    # Commas within brackets belong to a value.
    names = re.split(r",(?![^\[]*\])", line.options.methods)
    rows = {name.strip(): make_row(name.strip(), line.config) for name in names}
    first = line.config.run.seed
    seeds = range(first, first + line.options.seeds)
    cells = []
    for seed, column, row in itertools.product(seeds, columns, rows):
        name = f"{row}-{column}-seed{seed}".replace("q=", "q")
        name = re.sub(r"[^\w.+=-]+", "_", name.replace(" eta=", "-eta"))
        folder = os.path.join(out, "cells", name)
        config = rows[row].replace(seed=seed, run_dir=folder, **columns[column])
        cells.append(Cell(row, column, config))
        cells[-1].folder.check_same(config)
    return cells


def make_row(name, config):
    """Returns the `Config` of a row such as `"rc+alim[lam=0.3]"`."""
    from alim_keras.app import build

    match = _ROW.fullmatch(name)
    if not match:
        raise errors.ConfigError(
            "A row must be NAME or NAME+alim, and may end with "
            f"[flag=value;flag=value]. Received: {name!r} in --methods"
        )
    has_alim = match[2] is not None
    own = {} if has_alim else dict(_ALONE)
    for option in match[3].split(";") if match[3] else ():
        flag, _, value = option.strip().removeprefix("--").partition("=")
        if flag in _SHARED or flag in own:
            raise errors.ConfigError(
                f"--{flag} is not for one row alone, or is set twice: a row "
                f"without +alim sets it, too. Received: {name} in --methods"
            )
        own[flag] = _parse(flag, value)
    if not has_alim:
        # Unlike ALIM's other flags, the norm is also the method's own.
        own.setdefault("norm", None)
    config = config.replace(method=_parse("method", match[1]), **own)
    build.check(config)
    # Also refuses an unknown method.
    keeps_labels = build.keeps_pseudo_labels(config)
    if has_alim and (config.alim.lam == 0 or not keeps_labels):
        raise errors.ConfigError(
            f"ALIM has nothing to adjust in {name}: it needs a method that "
            "keeps pseudo labels, and another lambda than 0. Received: "
            f"{name} in --methods, --lam={config.alim.lam}"
        )
    return config


def _listed(line, own, flag):
    """Returns the values that a flag lists, or that of training's flag."""
    given = line.values[own]
    if given is None:
        return [line.values[flag]]
    parts = given.strip().removesuffix(",").split(",")
    return list(dict.fromkeys(_parse(flag, part) for part in parts))


def _parse(flag, value):
    return train.COMMAND.parse([f"--{flag}={value}"]).values[flag]


def run(cells, out):
    """Trains the cells that are not finished, and writes the table after each.

    Returns the exit code: 0, or that of the first failure.
    """
    todo = [cell for cell in cells if cell.folder.finished() is None]
    done, code, has_trained = len(cells) - len(todo), 0, False
    print(f"Cells: {len(cells)}, finished: {done}, in {out}", flush=True)
    for cell in todo:
        began = time.monotonic()
        try:
            accuracy = train_cell(cell)["test_accuracy"]
        except Exception as error:
            # What is about the wish would end every other cell, too.
            of_one = (errors.NonFiniteError, errors.CheckpointError)
            is_of_one = has_trained or isinstance(error, of_one)
            if isinstance(error, errors.AlimError) and not is_of_one:
                raise
            failure, result = process.explain(error)
            code = code or failure
        else:
            has_trained = True
            done += 1
            share = "unknown" if accuracy is None else f"{accuracy:.1%}"
            result = f"test {share}, {time.monotonic() - began:.0f} s"
        write(cells, out)
        name = f"{cell.row} {cell.column} seed {cell.config.run.seed}"
        print(f"[{done}/{len(cells)}] {name}: {result}", flush=True)
    return code


def train_cell(cell):
    """Trains a cell, or goes on with it; returns its results."""
    import keras

    from alim_keras import backend

    config, folder = cell.config, cell.folder
    with folder.lock():
        # The cell before left graphs and models that keep each other alive.
        keras.utils.clear_session(free_memory=False)
        gc.collect()
        scope, replicas = backend.make_strategy(
            config.machine.distribute, config.machine.replicas
        )
        with (
            open(folder.file("log.txt"), "a", encoding="utf-8") as log,
            contextlib.redirect_stdout(log),
        ):
            results = train.train(
                config, folder, scope, replicas, publish=False
            )
        # Only a continuation would need them.
        shutil.rmtree(folder.checkpoint.folder, ignore_errors=True)
        os.remove(folder.file("candidates.npz"))
    return results


def write(cells, out):
    """Writes a table of what is finished; returns the frame of cells.csv."""
    frame = pd.DataFrame([_numbers(cell) for cell in cells])
    frame = frame.astype({"test_accuracy": float})
    seeds = frame.seed.nunique()
    table = (
        "Test accuracy after the last epoch in percent: mean ± standard "
        f"deviation over {seeds} seed(s); (n) where only n are finished.\n\n"
        + _markdown(frame, seeds)
    )
    write_atomically(os.path.join(out, "cells.csv"), frame.to_csv(index=False))
    write_atomically(os.path.join(out, "table.md"), table)
    return frame


def _numbers(cell):
    """Returns a cell's row of cells.csv, as a dict."""
    results = cell.folder.finished() or {}
    settings = cell.config.as_dict()
    return {
        "row": cell.row,
        "column": cell.column,
        **{name: settings[name] for name in _SETTINGS},
        "status": "finished" if results else "unfinished",
        **{name: results.get(name) for name in _RESULTS},
        "folder": os.path.basename(cell.folder.path),
    }


def _markdown(frame, seeds):
    """Returns mean and deviation of each row and column, in percent."""

    def show(values):
        values = 100 * values.dropna()
        if not len(values):
            return "–"
        shown = f"{values.mean():.2f}"
        shown += f" ± {values.std():.2f}" if len(values) > 1 else ""
        return shown if len(values) == seeds else f"{shown} ({len(values)})"

    groups = frame.groupby(["row", "column"], sort=False).test_accuracy
    texts = groups.agg(show).unstack("column", sort=False)
    lines = [["method", *texts.columns], ["---"] * (1 + len(texts.columns))]
    lines += [list(line) for line in texts.itertuples()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main))
