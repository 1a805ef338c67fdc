"""Callbacks of a training run: timing, evaluation, printing, selection."""

import contextlib
import csv
import math
import sys
import time
import warnings

import keras
import numpy as np
import pandas as pd

from alim_keras.errors import NonFiniteError
from alim_keras.files import write_atomically

# Logs shown in an epoch's line, in this order: log, label, format. The line is
# shorter than 120 characters; metrics.csv has the others, too.
SHOWN = (
    ("loss", "loss", "{:.2f}"),
    ("lambda", "lambda", "{:.2f}"),
    ("outside", "outside", "{:.0%}"),
    ("pseudo_label_accuracy", "labels*", "{:.1%}"),
    ("holdout_covering_rate", "held out", "{:.0%}"),
    ("test_accuracy", "test*", "{:.1%}"),
)
_NOTE = (
    "* share right, by true labels that training never sees. outside: labels "
    "outside their set.\n"
    "held out: predictions inside the sets that are held out"
)


class EpochTimer(keras.callbacks.Callback):
    """Logs `images_per_second` of the training steps alone.

    List it before the callbacks that work between epochs.
    """

    def __init__(self, images_per_epoch):
        super().__init__()
        self.images_per_epoch = images_per_epoch

    def on_epoch_begin(self, epoch, logs=None):
        self._began = time.monotonic()

    def on_epoch_end(self, epoch, logs=None):
        # Reading a weight waits until the last step has written it.
        self.model.trainable_variables[-1].numpy()
        seconds = max(time.monotonic() - self._began, 1e-9)
        logs["images_per_second"] = self.images_per_epoch / seconds


class NonFiniteGuard(keras.callbacks.Callback):
    """Raises `NonFiniteError` at the end of an epoch, naming loss or weight.

    List it before all callbacks that write, so that no broken checkpoint
    replaces a good one.
    """

    def on_epoch_end(self, epoch, logs=None):
        # The parts of the loss before their sum.
        names = (*sorted(self.model.training_logs), "loss")
        numbers = {f"Loss {name}": logs.get(name, 0.0) for name in names}
        # Pooling and ReLU may swallow a NaN on its way to the loss; the
        # averages of batch normalisation keep it.
        averages = self.model.backbone.non_trainable_variables
        for variable in (*self.model.trainable_variables, *averages):
            numbers[f"Weight {variable.path}"] = variable.numpy()
        for name, values in numbers.items():
            if not np.isfinite(values).all():
                intact = f" The checkpoint of epoch {epoch}, if any, is intact."
                raise NonFiniteError(
                    f"{name} became NaN or infinite in epoch {epoch + 1}. Look "
                    "for images that are not numbers, or use a smaller "
                    f"learning rate in a new run.{intact if epoch else ''}"
                )


class Evaluation(keras.callbacks.Callback):
    """Adds a data set's loss and compiled metrics to the logs of an epoch.

    `data` are batches `(x, y)`, see `alim_keras.data.eval_dataset`, and `names`
    a dict from metrics to logs such as `{"covering_rate": "test_accuracy"}`.
    """

    def __init__(self, data, names):
        super().__init__()
        self.data = data
        self.names = names

    def on_epoch_end(self, epoch, logs=None):
        results = self.model.evaluate(self.data, verbose=0, return_dict=True)
        for metric, name in self.names.items():
            logs[name] = results[metric]


class Progress(keras.callbacks.Callback):
    """Prints a line per epoch: loss, lambda, rates and the time left.

    Also adds `seconds` to the logs. Numbers marked * use true labels, which
    training never sees. `style` is `"line"`, `"bar"`, which also shows the
    share of the epoch that is done if `file` is a terminal, or `"none"`.
    """

    # It reads no logs within an epoch: Keras need not wait for them.
    async_safe = True

    def __init__(self, style="bar", file=None):
        super().__init__()
        self.file = file or sys.stdout
        self.style = style
        self.live = style == "bar" and self.file.isatty()

    def on_train_begin(self, logs=None):
        self._is_first = True
        if self.style != "none":
            print(_NOTE, file=self.file)

    def on_epoch_begin(self, epoch, logs=None):
        self._began = self._stepped = self._drawn = time.monotonic()

    def on_train_batch_end(self, batch, logs=None):
        now = time.monotonic()
        if self._is_first:
            # Compiling, before it, says nothing of the epochs to come.
            self._stepped, self._is_first = now, False
        if self.live and now - self._drawn > 0.5:
            self._drawn = now
            share = (batch + 1) / (self.params["steps"] or batch + 1)
            self.file.write(f"\r  {share:4.0%} of the epoch")
            self.file.flush()

    def on_epoch_end(self, epoch, logs=None):
        now, epochs = time.monotonic(), self.params["epochs"]
        logs["seconds"] = now - self._began
        if self.style == "none":
            return
        left = (now - self._stepped) * (epochs - epoch - 1)
        parts = [f"epoch {epoch + 1}/{epochs}"]
        parts += [
            f"{label} {form.format(logs[name])}".strip()
            for name, label, form in SHOWN
            if not math.isnan(logs.get(name, math.nan))
        ]
        parts.append(f"about {duration(left)} left" if left else "done")
        start = "\r\x1b[K" if self.live else ""
        print(start + "  ".join(parts), file=self.file, flush=True)


def duration(seconds):
    """Returns a time as people say it, such as `"3 min"` or `"2 h 10 min"`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    hours = f"{minutes // 60} h " if minutes >= 60 else ""
    return f"{hours}{minutes % 60} min"


class MetricsLog(keras.callbacks.Callback):
    """Writes the logs of every epoch to a CSV file, replaced whole each time.

    Columns: `epoch` (from 1), `step` (optimizer steps so far), then the logs
    by name, empty where a log is NaN: it was not computed in this epoch. The
    rows of `finished_epochs` of an earlier start are kept, with a warning if
    some are lost.
    """

    def __init__(self, path, finished_epochs=0):
        super().__init__()
        self.path = path
        rows = read_metrics(path) if finished_epochs else []
        self.rows = [r for r in rows if int(r["epoch"]) <= finished_epochs]
        if len(self.rows) < finished_epochs:
            warnings.warn(
                f"{path} is damaged or missing: it has {len(self.rows)} of the "
                f"{finished_epochs} finished epochs. The training goes on from "
                "its checkpoint; the numbers of the others are lost.",
                stacklevel=2,
            )

    def on_epoch_end(self, epoch, logs=None):
        step = int(self.model.optimizer.iterations.numpy())
        logs = {name: float(value) for name, value in sorted(logs.items())}
        self.rows.append({"epoch": epoch + 1, "step": step, **logs})
        frame = pd.DataFrame(self.rows, columns=list(self.rows[-1]))
        write_atomically(self.path, frame.to_csv(index=False))


def read_metrics(path):
    """Reads a metrics file; a list of dicts of strings, one per epoch.

    Rows that are cut short or hold something else than numbers are left out.
    """
    rows = []
    # No file is no row; a reader may stop at a NUL.
    with (
        contextlib.suppress(FileNotFoundError, csv.Error),
        open(path, encoding="utf-8", errors="replace", newline="") as file,
    ):
        for row in csv.DictReader(file):
            # A cell too few is None, and those too many are a list.
            with contextlib.suppress(TypeError, ValueError):
                cells = [float("0" if x == "" else x) for x in row.values()]
                is_epoch = row.get("epoch", "").isdigit()
                if is_epoch and np.isfinite(cells).all():
                    rows.append(row)
    return rows
