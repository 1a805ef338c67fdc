"""Compares methods, with and without ALIM, over noise levels and seeds.

    python -m alim_keras.compare --methods=rc,rc+alim --dataset=fashion_mnist

The same command continues where it was stopped. docs/compare.md describes the
rows and the files.
"""

import contextlib
import dataclasses
import datetime
import gc
import hashlib
import itertools
import os
import pathlib
import re
import shutil
import sys
import time

from alim_keras.app import cli
from alim_keras.app import process
from alim_keras.app.config import TRAINING
from alim_keras.app.config import Config
from alim_keras.app.values import path
from alim_keras.app.values import switch
from alim_keras.app.values import text
from alim_keras.errors import CheckpointError
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError
from alim_keras.errors import NonFiniteError


@dataclasses.dataclass(frozen=True)
class CompareConfig:
    """Comparison.

    Attributes:
        methods: Rows, separated by commas: NAME is the method alone (--lam=0),
            NAME+alim with ALIM as --lam says; +mixup and +nomixup set
            --mixup_weight to 1 and 0; NAME[flag=value;flag=value] sets any flag
            of training for this row.
        seeds: How many seeds, from 0; or the seeds themselves, separated by
            commas (7, is the seed 7 alone).
        ambiguities: Values of q, separated by commas. Without it: that of
            --ambiguity.
        noise_levels: Values of eta, separated by commas. Without it: that of
            --noise_level.
        out: Folder of the cells, tables and plot; the same command continues
            what is there. Without it: runs/compare.
        table_only: Write the tables and the plot from the finished cells; run
            nothing.
    """

    methods: str = text("pico,pico+alim")
    seeds: str = text("3")
    ambiguities: str | None = text()
    noise_levels: str | None = text()
    out: str | None = path()
    table_only: bool = switch(False)


COMMAND = cli.Command(
    name="compare",
    doc=(
        "Trains a grid of methods, noise and seeds, one run after the other, "
        "and writes tables of mean and standard deviation and a plot. The "
        "same command continues. It takes training's flags, for all cells."
    ),
    groups=(CompareConfig, *TRAINING),
    examples=("compare --methods=rc,rc+alim --noise_levels=0,0.3",),
)
_ROW = re.compile(
    r"([^+\[\]]+)((?:\+(?:alim|mixup|nomixup))*)(?:\[([^\[\]]+)\])?"
)
_MARKS = {"mixup": "mixup_weight=1", "nomixup": "mixup_weight=0"}
# A row without ALIM has the defaults of ALIM's flags, so it is the method.
_ALONE = {"lam": 0.0} | {
    name: Config().as_dict()[name]
    for name in ("lam_per_class", "scale_factor", "noise_rate")
}
# What the rows share, or what has a spelling of its own.
_SHARED = (
    "method seed ambiguity noise_level run_dir backend distribute replicas "
    "candidates_file save_candidates dataset data_dir download train_size "
    "progress deterministic"
).split()
_LISTS = {"ambiguity": "ambiguities", "noise_level": "noise_levels"}
# Errors that are about the wish and not about one training: where the first
# cell ends with one, so would the others.
_OF_ALL = (ConfigError, DataError, CheckpointError, EnvironmentLacksError)
# In a cell's folder: why it failed.
_FAILURE = "failure.json"


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes:
        name: As in `--methods`.
        alim: Whether ALIM adjusts the method's pseudo labels.
        config: The `Config` of its cells, but for noise, seed and folder.
        effect: The same with the weight of mixup written out, so that equal
            runs are equal.
    """

    name: str
    alim: bool
    config: Config
    effect: Config


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run of the grid.

    Attributes:
        row: Its `Row`.
        column: String, the name of the column.
        config: The `Config` of the run.
    """

    row: Row
    column: str
    config: Config

    @property
    def folder(self):
        """A new `RunFolder`: one that has trained keeps its model alive."""
        from alim_keras.app.run_folder import RunFolder

        return RunFolder(self.config.run.run_dir)


def main(line):
    """Runs the cells that are not finished, and writes tables and plot."""
    cells, out = make_cells(line), _out(line)
    code = 0 if line.options.table_only else run(cells, out)
    frame = write(cells, out)
    for cell in frame.itertuples():
        if cell.status not in ("finished", "unfinished"):
            file = os.path.join(out, "cells", cell.folder, _FAILURE)
            print(f"{cell.row}, seed {cell.seed}: {cell.status}; see {file}")
    print(
        f"{(frame.status == 'finished').sum()} of {len(cells)} cells are "
        f"finished. In {out}: table.md; the same in table.csv and "
        "differences.csv; every run in cells.csv; accuracy.png"
    )
    return code


# The grid.


def make_cells(line):
    """Returns the grid of a command line, a list of `Cell`.

    The seeds come last to change: after the first of them the table has a
    number in every place.

    Args:
        line: The `cli.Line`.

    Raises:
        ConfigError: For whatever cannot work, before anything has run.
        CheckpointError: Cells of other settings stand in the folder.
    """
    _check_flags(line)
    given = _given(line.config)
    columns = {os.path.splitext(os.path.basename(given or ""))[0]: {}}
    if not given:
        values = [_values(line, own, flag) for flag, own in _LISTS.items()]
        columns = {
            f"q={q:.12g} eta={eta:.12g}": {"ambiguity": q, "noise_level": eta}
            for q, eta in itertools.product(*values)
        }
    made = []
    # Commas within brackets belong to a value.
    for piece in re.split(r",(?![^\[]*\])", line.options.methods):
        row = make_row(piece.strip(), line.config)
        for other in made:
            if row.effect == other.effect:
                raise ConfigError(
                    f"The rows {other.name} and {row.name} are the same run; "
                    f"leave one out. Received: --methods={line.options.methods}"
                )
        made.append(row)
    cells = []
    for seed in _seeds(line):
        for (column, noise), row in itertools.product(columns.items(), made):
            name = f"{_slug(row.name)}-{_slug(column)}-seed{seed}"
            run_dir = os.path.join(_out(line), "cells", name)
            config = row.config.replace(seed=seed, run_dir=run_dir, **noise)
            cells.append(Cell(row, column, config))
    for cell in cells:
        try:
            cell.folder.check_same(cell.config)
        except CheckpointError as error:
            message = str(error).replace("--run_dir", "--out")
            raise CheckpointError(message) from error
    return cells


def make_row(name, config):
    """Returns the `Row` of a name in `--methods`.

    Args:
        name: String, such as `"rc+alim[lam=0.3]"`.
        config: The `Config` of all rows.

    Raises:
        ConfigError: It is malformed, or cannot be trained.
    """
    from alim_keras.app import build

    match = _ROW.fullmatch(name)
    if not match:
        raise ConfigError(
            "A row must be NAME, NAME+alim, NAME+mixup, NAME+nomixup, "
            "NAME+alim+mixup or one of these and [flag=value;flag=value]. "
            f"Received: {name!r} in --methods"
        )
    marks = match[2].split("+")[1:]
    is_alim = "alim" in marks
    options = [_MARKS[mark] for mark in marks if mark in _MARKS]
    options += match[3].split(";") if match[3] else []
    own = {} if is_alim else dict(_ALONE)
    for option in options:
        flag, _, value = option.strip().removeprefix("--").partition("=")
        if flag in _SHARED or flag not in config.as_dict():
            why = "it is not for one row alone"
        elif flag in own:
            why = "it is set twice, since +mixup, +nomixup or no +alim sets it"
        else:
            try:
                own[flag] = _kind(flag).parse(value)
                continue
            except ValueError as error:
                why = error
        raise ConfigError(f"--{flag}: {why} Received: {name} in --methods")
    if not is_alim:
        # Unlike ALIM's other flags, the norm is also the method's own.
        own.setdefault("norm", None)
    config = config.replace(method=_kind("method").parse(match[1]), **own)
    build.check(config)
    if is_alim and not (config.alim.lam and build.keeps_pseudo_labels(config)):
        raise ConfigError(
            f"ALIM has nothing to adjust in {name}: it needs a method that "
            "keeps pseudo labels, and another lambda than 0. Received: "
            f"{name} in --methods, --lam={config.alim.lam}"
        )
    mixup = build.mixup_weight(config)
    return Row(name, is_alim, config, config.replace(mixup_weight=mixup))


def _kind(flag):
    fields = (f for group in TRAINING for f in dataclasses.fields(group))
    return next(f.metadata["kind"] for f in fields if f.name == flag)


def _given(config):
    """Returns the file of sets that are not simulated, or None."""
    from alim_keras.data import known_data

    is_table = known_data.is_table(config.data.dataset)
    own = config.data.dataset if is_table else None
    return config.candidates.candidates_file or own


def _check_flags(line):
    from alim_keras.app import load

    load.check_use(line)
    line.refuse_typed(
        ("method", "seed", "run_dir", "save_candidates"),
        "is not for all cells; --methods, --seeds and --out say their own",
    )
    given = _given(line.config)
    if given:
        line.refuse_typed(
            _LISTS.values(),
            f"is for simulated sets, and those of {given} are as they are",
        )
    for flag, own in _LISTS.items():
        if getattr(line.options, own) is not None:
            line.refuse_typed([flag], f"does not go with --{own}")
    if line.config.machine.distribute == "multi_worker":
        raise ConfigError(
            "A comparison does not run in many workers; start the same "
            "command on each machine with an --out that all see. Received: "
            "--distribute=multi_worker"
        )


def _values(line, own, flag):
    """Returns the values that a flag lists, or that of training's flag."""
    given = getattr(line.options, own)
    if given is None:
        return [line.values[flag]]
    try:
        parts = given.strip().removesuffix(",").split(",")
        values = [_kind(flag).parse(part) for part in parts]
        if len(set(values)) < len(values):
            raise ValueError("a value stands there twice.")
    except ValueError as error:
        raise ConfigError(
            f"--{own}, separated by commas: {error} Received: --{own}={given}"
        ) from None
    return values


def _seeds(line):
    seeds = _values(line, "seeds", "seed")
    if "," in line.options.seeds:
        return seeds
    if seeds == [0]:
        raise ConfigError("There must be a seed. Received: --seeds=0")
    return range(seeds[0])


def _out(line):
    return line.options.out or os.path.abspath(os.path.join("runs", "compare"))


def _slug(name):
    """Returns a name as part of a folder's; no two names have the same."""
    plain = re.sub(r"q=(\S+) eta=(\S+)", r"q\1-eta\2", name)
    slug = re.sub(r"[^\w.+=-]+", "_", plain)
    if slug != plain:
        slug += "-" + hashlib.sha256(name.encode()).hexdigest()[:6]
    return slug


# Running.


def run(cells, out):
    """Trains the cells that are not finished, and writes tables after each.

    Args:
        cells: List of `Cell`.
        out: Folder of the tables.

    Returns:
        The exit code: 0, or that of the first failure.
    """
    from alim_keras import backend
    from alim_keras.app import build
    from alim_keras.app.run_folder import BusyError

    # Before the data: reading them with TFDS starts TensorFlow, after which
    # devices cannot be set up any more.
    machine = cells[0].config.machine
    replicas = backend.make_strategy(machine.distribute, machine.replicas)[1]
    for cell in cells:
        build.check(cell.config, replicas)
    todo = [cell for cell in cells if cell.folder.finished() is None]
    done, code, seconds = len(cells) - len(todo), 0, []
    print(f"{len(cells)} cells, {done} of them finished, in {out}", flush=True)
    for number, cell in enumerate(todo, 1):
        began = time.monotonic()
        try:
            accuracy = train_cell(cell)["test_accuracy"]
        except BusyError:
            result = "another process trains it"
        except Exception as error:
            if not seconds and isinstance(error, _OF_ALL):
                raise
            failed, result = _note_failure(cell, error)
            code = code or failed
        else:
            seconds.append(time.monotonic() - began)
            share = "unknown" if accuracy is None else f"{accuracy:.1%}"
            result = f"test {share}, {seconds[-1]:.0f} s"
            done += 1
        write(cells, out)
        if seconds:
            left = (len(todo) - number) * sum(seconds) / len(seconds)
            result += f", {datetime.timedelta(seconds=round(left))} left"
        name = f"{cell.row.name} {cell.column} seed {cell.config.run.seed}"
        print(f"[{done}/{len(cells)}] {name}: {result}", flush=True)
    return code


def train_cell(cell):
    """Trains a cell, or goes on with it; keeps its numbers, not its weights.

    Returns:
        The content of results.json.

    Raises:
        BusyError: Another process trains it.
    """
    import keras

    from alim_keras import backend
    from alim_keras import train

    folder, machine = cell.folder, cell.config.machine
    with folder.lock():
        pathlib.Path(folder.file(_FAILURE)).unlink(missing_ok=True)
        # The cell before left graphs and models that keep each other alive.
        keras.utils.clear_session(free_memory=False)
        gc.collect()
        scope, replicas = backend.make_strategy(
            machine.distribute, machine.replicas
        )
        with (
            open(folder.file("log.txt"), "a", encoding="utf-8") as log,
            contextlib.redirect_stdout(log),
        ):
            results = train.train(
                cell.config, folder, scope, replicas, publish=False
            )
        # Only a continuation would need them.
        shutil.rmtree(folder.checkpoint.folder, ignore_errors=True)
        pathlib.Path(folder.file("candidates.npz")).unlink(missing_ok=True)
    return results


def _note_failure(cell, error):
    """Writes why a cell failed to its folder; returns exit code and line."""
    code, message = process.explain(error)
    status = "error"
    if isinstance(error, NonFiniteError):
        status = "non-finite"
    elif "out of memory" in message:
        status = "out of memory"
    content = {"status": status, "exit_code": code, "message": message}
    cell.folder.write(_FAILURE, content)
    return code, message


# Results.


def write(cells, out):
    """Writes the tables and the plot from what is finished.

    Returns:
        A data frame with a row for each cell, the content of cells.csv.
    """
    from alim_keras.report import comparison

    frame = comparison.frame_of([_numbers(cell) for cell in cells])
    rows = {cell.row.effect: cell.row.name for cell in cells}
    pairs = [
        (plug_in, rows[effect.replace(**without)], name)
        for plug_in, without in (
            ("alim", {**_ALONE, "norm": None}),
            ("mixup", {"mixup_weight": 0.0}),
        )
        for effect, name in rows.items()
        if rows.get(effect.replace(**without)) not in (None, name)
    ]
    comparison.write(frame, pairs, out)
    return frame


def _numbers(cell):
    """Returns what is known of a cell, as a dict of columns."""
    config, folder = cell.config, cell.folder
    failure = folder.read_if_sound(_FAILURE) or {"status": "unfinished"}
    numbers = {
        "row": cell.row.name,
        "column": cell.column,
        "method": config.method.method,
        "alim": config.alim.lam if cell.row.alim else 0,
        "mixup": cell.row.effect.method.mixup_weight,
        "seed": config.run.seed,
        "status": failure["status"],
        "folder": os.path.basename(folder.path),
    }
    if not _given(config):
        for name in _LISTS:
            numbers[name] = getattr(config.candidates, name)
    results = folder.finished()
    if results is not None:
        trained_on = folder.read("run.json")["data"]["trained_on"]
        images = trained_on // config.train.batch_size * config.train.batch_size
        numbers |= results | {
            "status": "finished",
            "seconds": results["train_seconds"],
            "seconds_per_epoch": images / results["images_per_second"],
        }
    return numbers


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main))
