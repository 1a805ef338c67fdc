"""One cell of a comparison: running it, and reading what it left."""

import contextlib
import gc
import os
import shutil
import statistics

import keras

from alim_keras import backend
from alim_keras import train
from alim_keras.callbacks.metrics_log import read_metrics
from alim_keras.cli.main import explain
from alim_keras.errors import NonFiniteError
from alim_keras.files import write_atomically
from alim_keras.runs import choice

# In a cell's folder: what training printed, and why it failed.
LOG = "log.txt"
FAILURE = "failure.json"
UNFINISHED, FINISHED = "unfinished", "finished"
# Columns of cells.csv that stand in a run's results.json under this name.
FROM_RESULTS = (
    "test_accuracy",
    "test_accuracy_selected",
    "pseudo_label_accuracy",
    "lambda",
    "noise_rate",
    "realised_noise",
)
COLUMNS = (
    "row",
    "method",
    "alim",
    "mixup",
    "ambiguity",
    "noise_level",
    "seed",
    "status",
    *FROM_RESULTS,
    "epochs",
    "seconds",
    "seconds_per_epoch",
    "folder",
)


def run(cell):
    """Trains a cell, unless that is done; continues what was begun.

    Raises:
        BusyError: If another process trains it.
    """
    folder = cell.folder
    with folder.lock():
        if folder.finished() is None:
            _remove(folder.file(FAILURE))
            # What the cell before left: graphs and models keep each other
            # alive in circles.
            keras.utils.clear_session(free_memory=False)
            gc.collect()
            _train(cell.settings, folder)
        # Results are there: what only a continuation would need can go.
        shutil.rmtree(folder.checkpoint.folder, ignore_errors=True)
        _remove(folder.file("candidates.npz"))


def _train(settings, folder):
    scope, replicas = backend.make_strategy(
        settings.distribute, settings.replicas
    )
    with (
        open(folder.file(LOG), "a", encoding="utf-8") as log,
        contextlib.redirect_stdout(log),
    ):
        train.train(settings, folder, scope, replicas, publish=False)


def note_failure(cell, error):
    """Writes why a cell failed to its folder; returns exit code and line."""
    code, line = explain(error)
    status = "error"
    if isinstance(error, NonFiniteError):
        status = "non-finite"
    elif "out of memory" in line:
        status = "out of memory"
    cell.folder.write(
        FAILURE, {"status": status, "exit_code": code, "message": line}
    )
    return code, line


def failure(cell, since=0.0):
    """Returns the dict that tells of a cell's failure, or None.

    Args:
        cell: The `Cell`.
        since: Time in seconds since the epoch; older failures do not count.
    """
    path = cell.folder.file(FAILURE)
    try:
        if os.path.getmtime(path) < since:
            return None
    except FileNotFoundError:
        return None
    return cell.folder.read(FAILURE)


def is_finished(cell):
    """Returns whether the cell's results are there."""
    return os.path.exists(cell.folder.file("results.json"))


def read(cell):
    """Returns a cell's row of cells.csv: a dict of `COLUMNS`.

    Numbers that are not there, or not known, are None.
    """
    settings, column = cell.settings, cell.column
    row = dict.fromkeys(COLUMNS)
    row.update(
        row=cell.row.name,
        method=cell.row.method,
        alim=settings.lam if cell.row.alim else 0,
        mixup=choice.mixup_weight(settings),
        ambiguity=column.ambiguity,
        noise_level=column.noise_level,
        seed=cell.seed,
        status=UNFINISHED,
        folder=os.path.basename(cell.path),
    )
    results = cell.folder.finished()
    if results is None:
        failed = failure(cell)
        if failed is not None:
            row["status"] = failed["status"]
        return row
    row["status"] = FINISHED
    row.update({name: results.get(name) for name in FROM_RESULTS})
    row["epochs"] = results["epochs"]
    row["seconds"] = results["train_seconds"]
    row["seconds_per_epoch"] = _seconds_per_epoch(cell)
    return row


def _seconds_per_epoch(cell):
    """Median over the epochs, of the steps alone: no compiling, no tests."""
    trained_on = cell.folder.read("run.json")["data"]["trained_on"]
    batch = cell.settings.batch_size
    rates = [
        float(row["images_per_second"])
        for row in read_metrics(cell.folder.file("metrics.csv"))
    ]
    return trained_on // batch * batch / statistics.median(rates)


def _remove(path):
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


def write_lines(path, lines):
    """Writes lines of text to a file, in one stroke."""
    write_atomically(path, "".join(f"{line}\n" for line in lines))
