"""One row per epoch in metrics.csv."""

import csv
import io
import math
import os

import keras

from alim_keras.errors import CheckpointError
from alim_keras.files import write_atomically


class MetricsLog(keras.callbacks.Callback):
    """Writes the logs of every epoch to a CSV file, in one stroke each.

    Columns: `epoch` (from 1), `step` (optimizer steps so far), then the logs
    by name, empty where a log is NaN: it was not computed in this epoch.
    After a restart the rows of unfinished epochs are dropped.

    Args:
        path: The file.
        finished_epochs: Rows to keep from an earlier start of the run.
            Defaults to `0`.
    """

    def __init__(self, path, finished_epochs=0):
        super().__init__()
        self.path = path
        self.rows = []
        if finished_epochs:
            self.rows = read_metrics(path)[:finished_epochs]
            if len(self.rows) != finished_epochs:
                raise CheckpointError(
                    f"{path} holds {len(self.rows)} epochs, the checkpoint "
                    f"{finished_epochs}. Use another run folder."
                )

    def on_epoch_end(self, epoch, logs=None):
        step = int(self.model.optimizer.iterations.numpy())
        logs = {
            name: "" if math.isnan(value) else float(value)
            for name, value in sorted(logs.items())
        }
        self.rows.append({"epoch": epoch + 1, "step": step, **logs})
        out = io.StringIO()
        writer = csv.DictWriter(out, list(self.rows[-1]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        write_atomically(self.path, out.getvalue())


def read_metrics(path):
    """Reads a metrics file; a list of dicts of strings, one per epoch."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
