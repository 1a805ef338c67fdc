"""What a person sees while training."""

import math
import sys
import time

import keras

# Logs shown in an epoch's line, in this order: log, label, format.
SHOWN = (
    ("loss", "loss", "{:.3f}"),
    ("cls_loss", "cls", "{:.3f}"),
    ("cont_loss", "cont", "{:.3f}"),
    ("mix_loss", "mix", "{:.3f}"),
    ("lambda", "lambda", "{:.3f}"),
    ("outside", "outside", "{:.1%}"),
    ("pseudo_label_accuracy", "pseudo labels right*", "{:.1%}"),
    ("covering_rate", "covering", "{:.1%}"),
    ("holdout_covering_rate", "held out: covering", "{:.1%}"),
    ("holdout_approximated_accuracy", "approximated", "{:.1%}"),
    ("test_accuracy", "test*", "{:.1%}"),
    ("images_per_second", "", "{:.0f} images/s"),
)


class Progress(keras.callbacks.Callback):
    """A line per epoch: losses, lambda, rates, images/s, time left.

    Also adds `learning_rate` and `seconds` to the logs.
    Numbers marked * use true labels, which training never sees.

    Args:
        style: `"bar"` (a line per epoch, and within the epoch a share done if
            `file` is a terminal), `"line"` or `"none"`. Defaults to `"bar"`.
        file: Where to print. Defaults to `sys.stdout`.
    """

    # It reads no logs within an epoch: Keras need not wait for them.
    async_safe = True

    def __init__(self, style="bar", file=None):
        super().__init__()
        self.file = file or sys.stdout
        self.style = style
        self.live = style == "bar" and self.file.isatty()

    def on_train_begin(self, logs=None):
        self._first = None
        if self.style != "none":
            print(
                "* uses true labels, which training never sees", file=self.file
            )

    def on_epoch_begin(self, epoch, logs=None):
        self._began = self._drawn = time.monotonic()
        if self._first is None:
            self._first = (epoch, self._began)

    def on_train_batch_end(self, batch, logs=None):
        now = time.monotonic()
        if self.live and now - self._drawn > 0.5:
            self._drawn = now
            share = (batch + 1) / (self.params["steps"] or batch + 1)
            self.file.write(f"\r  {share:4.0%} of the epoch")
            self.file.flush()

    def on_epoch_end(self, epoch, logs=None):
        seconds = time.monotonic() - self._began
        optimizer = self.model.optimizer
        logs["learning_rate"] = float(optimizer.learning_rate.numpy())
        logs["seconds"] = seconds
        if self.style == "none":
            return
        first, began = self._first
        epochs = self.params["epochs"]
        pace = (time.monotonic() - began) / (epoch + 1 - first)
        parts = [f"epoch {epoch + 1}/{epochs}"]
        parts += [
            f"{label} {form.format(logs[name])}".strip()
            for name, label, form in SHOWN
            if not math.isnan(logs.get(name, math.nan))
        ]
        parts.append(f"{duration(pace * (epochs - epoch - 1))} left")
        start = "\r\x1b[K" if self.live else ""
        print(start + "  ".join(parts), file=self.file, flush=True)


def duration(seconds):
    """Returns seconds as hours:minutes:seconds."""
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
