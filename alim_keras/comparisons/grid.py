"""The grid of a comparison: rows, columns and seeds, checked as a whole."""

import dataclasses
import hashlib
import os
import re

from alim_keras.cli import train_flags
from alim_keras.cli.settings import DEFAULT
from alim_keras.cli.settings import Settings
from alim_keras.comparisons import rows as row_module
from alim_keras.data.sources import is_own
from alim_keras.errors import CheckpointError
from alim_keras.errors import ConfigError
from alim_keras.methods import arguments_of
from alim_keras.runs import build
from alim_keras.runs import choice
from alim_keras.runs.folder import RunFolder

# What the comparison sets for each cell, and by which flags.
_OWN = {
    "method": "methods",
    "seed": "seeds",
    "run_dir": "out",
    "save_candidates": None,
}
_LISTS = {"ambiguity": "ambiguities", "noise_level": "noise_levels"}


@dataclasses.dataclass(frozen=True)
class Column:
    """How noisy the sets of a column are.

    Attributes:
        ambiguity: q, or None where the sets come from a file.
        noise_level: eta, or None likewise.
        name: What to call the column.
    """

    ambiguity: float | None
    noise_level: float | None
    name: str


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run of the grid.

    Attributes:
        row: Its `Row`.
        column: Its `Column`.
        seed: Its seed.
        settings: The train command's settings.
        path: Its run folder.
    """

    row: row_module.Row
    column: Column
    seed: int
    settings: Settings
    path: str

    @property
    def folder(self):
        """A new `RunFolder`: one that has trained keeps its model alive."""
        return RunFolder(self.path)

    @property
    def name(self):
        """The row, column and seed, for a line of progress."""
        return f"{self.row.name} {self.column.name} seed {self.seed}"


@dataclasses.dataclass(frozen=True)
class Grid:
    """All cells, in the order in which they run.

    The seeds come last to change: after the first of them the table has a
    number in every place.
    """

    out: str
    rows: tuple
    columns: tuple
    seeds: tuple
    cells: tuple


def make(settings):
    """Returns the `Grid` that the settings describe.

    Args:
        settings: The compare command's settings.

    Raises:
        ConfigError: For whatever cannot work, before anything has run.
        CheckpointError: If cells of other settings stand in the folder.
    """
    _check_flags(settings)
    known = train_flags.COMMAND.new_flags()
    rows = tuple(row_module.parse_rows(settings.methods, known))
    columns = tuple(_columns(settings))
    seeds = tuple(_seeds(settings.seeds))
    out = settings.out or os.path.abspath(os.path.join("runs", "compare"))
    made = {}
    for row in rows:
        # Once for each row, whatever the column: the rest cannot go wrong.
        key = _effect(_check_row(row, _settings(settings, row)))
        if key in made:
            raise ConfigError(
                f"The rows {made[key].name} and {row.name} are the same run; "
                f"leave one out. Received: --methods={settings.methods}"
            )
        made[key] = row
    cells = []
    for seed in seeds:
        for column in columns:
            for row in rows:
                name = f"{_slug(row.name)}-{_slug(column.name)}-seed{seed}"
                path = os.path.join(out, "cells", name)
                of_cell = _settings(settings, row, column, seed, path)
                cells.append(Cell(row, column, seed, of_cell, path))
    for cell in cells:
        check_same(cell)
    return Grid(out, rows, columns, seeds, tuple(cells))


def check_same(cell):
    """Raises if the cell's folder holds a run of other settings."""
    run = cell.folder.read("run.json")
    if run is None:
        return
    before = run.get("settings", {})
    flags = cell.settings.flag_values
    # A flag that an older version did not know stood at its default.
    values = {
        name: value
        for name, value in cell.settings.as_dict().items()
        if name in before or value != flags[name].default
    }
    try:
        cell.folder.check_same(values)
    except CheckpointError as error:
        text = str(error).replace("--run_dir", "--out")
        raise CheckpointError(text) from error


def _check_flags(settings):
    for flag, instead in _OWN.items():
        if settings.is_typed(flag):
            hint = f"use --{instead}" if instead else "each makes its own sets"
            raise ConfigError(
                f"--{flag} is not for all cells: {hint}. Received: "
                f"--{flag}={getattr(settings, flag)}"
            )
    for flag, own in _LISTS.items():
        if getattr(settings, own) is None:
            continue
        if settings.is_typed(flag):
            raise ConfigError(
                f"Either --{own} or --{flag}. Received: --{own}="
                f"{getattr(settings, own)} --{flag}={getattr(settings, flag)}"
            )
        if _given(settings):
            raise ConfigError(
                f"--{own} is for simulated sets; those of {_given(settings)} "
                f"are as they are. Received: --{own}={getattr(settings, own)}"
            )
    if settings.distribute == "multi_worker":
        raise ConfigError(
            "A comparison does not run in many workers; start the same "
            "command on each machine with an --out that all see. Received: "
            "--distribute=multi_worker"
        )


def _given(settings):
    """Returns the file of sets that are not simulated, or None."""
    if settings.candidates_file:
        return settings.candidates_file
    return settings.dataset if is_own(settings.dataset) else None


def _columns(settings):
    given = _given(settings)
    if given:
        stem = os.path.splitext(os.path.basename(given))[0]
        return [Column(None, None, stem)]
    return [
        Column(q, eta, f"q={_short(q)} eta={_short(eta)}")
        for q in _numbers(settings, "ambiguities", "ambiguity")
        for eta in _numbers(settings, "noise_levels", "noise_level")
    ]


def _numbers(settings, own, flag):
    text = getattr(settings, own)
    if text is None:
        return [getattr(settings, flag)]
    parser = settings.flag_values[flag].parser
    found = []
    for part in text.split(","):
        try:
            found.append(float(parser.parse(part.strip())))
        except ValueError:
            raise ConfigError(
                f"--{own} must be numbers in [0, 1], separated by commas. "
                f"Received: --{own}={text}"
            ) from None
    return _no_doubles(found, own, text)


def _seeds(text):
    parts = [part.strip() for part in text.split(",")]
    try:
        # "7," is a list of one.
        numbers = [int(part) for part in parts if part or len(parts) == 1]
    except ValueError:
        numbers = []
    count = len(parts) == 1
    if not numbers or min(numbers) < count or max(numbers) >= 2**31:
        raise ConfigError(
            "--seeds must be a count of at least 1, or whole numbers from 0, "
            f"separated by commas. Received: --seeds={text}"
        )
    return range(numbers[0]) if count else _no_doubles(numbers, "seeds", text)


def _no_doubles(numbers, flag, text):
    if len(set(numbers)) < len(numbers):
        raise ConfigError(
            f"--{flag} names a value twice. Received: --{flag}={text}"
        )
    return numbers


def _settings(settings, row, column=None, seed=0, run_dir=None):
    """Returns the train command's settings for a row, or for a cell."""
    flag_values = train_flags.COMMAND.new_flags()
    origins = {}
    for name in flag_values:
        flag_values[name].value = settings.flag_values[name].value
        origins[name] = settings.origin(name)

    def put(name, value, origin):
        flag_values[name].value = value
        origins[name] = origin

    put("method", row.method, f"--methods={row.name}")
    put("seed", seed, "--seeds")
    put("run_dir", run_dir, "--out")
    put("save_candidates", None, DEFAULT)
    if not row.alim:
        for name in row_module.ALIM_FLAGS:
            put(name, flag_values[name].default, f"--methods={row.name}")
        put("lam", 0.0, f"--methods={row.name}")
    if row.mixup is not None:
        put("mixup_weight", float(row.mixup), f"--methods={row.name}")
    for name, text in row.options:
        try:
            value = flag_values[name].parser.parse(text)
        except ValueError as error:
            raise ConfigError(
                f"--{name}: {error} Received: {row.name} in --methods"
            ) from None
        put(name, value, f"--methods={row.name}")
    if column is not None and column.ambiguity is not None:
        put("ambiguity", column.ambiguity, "--ambiguities")
        put("noise_level", column.noise_level, "--noise_levels")
    flag_values.mark_as_parsed()
    return Settings(train_flags.COMMAND, flag_values, origins, {})


def _check_row(row, settings):
    """Raises for a row that cannot work; returns its settings."""
    method = choice.method(settings)
    if row.alim and settings.lam == 0:
        raise ConfigError(
            f"With --lam=0 {row.name} would be {row.method} alone; give "
            "another --lam, or leave +alim out. Received: --lam=0"
        )
    if row.alim and not choice.keeps_pseudo_labels(settings):
        raise ConfigError(
            f"{row.method} keeps no pseudo labels, so ALIM has nothing to "
            f"adjust. Received: {row.name} in --methods"
        )
    if row.mixup and "mixup_weight" not in arguments_of(method):
        raise ConfigError(
            f"{row.method} takes no mixup. Received: {row.name} in --methods"
        )
    build.check_settings(settings)
    choice.method_options(settings)
    return settings


def _effect(settings):
    """Returns what tells two rows apart: what they compute, not its name."""
    values = {
        **settings.as_dict(),
        "mixup_weight": choice.mixup_weight(settings),
    }
    return repr(sorted(values.items()))


def _short(number):
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


def _slug(text):
    """Returns text as part of a folder's name; no two texts have the same."""
    plain = re.sub(r"q=(\S+) eta=(\S+)", r"q\1-eta\2", text)
    slug = re.sub(r"[^\w.+=-]+", "_", plain)
    if slug != plain:
        slug += "-" + hashlib.sha256(text.encode()).hexdigest()[:6]
    return slug
