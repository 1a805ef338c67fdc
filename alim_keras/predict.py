"""Predicts new images, or feature vectors, with a trained model.

    python -m alim_keras.predict runs/digits-pico-seed0 photos > labels.csv

Writes a CSV file: `id`, `label`, `probability`, and the next classes. With
`--rank --candidates_file=TABLE` it puts the candidates of each item in order,
so that a person can pick.
"""

import contextlib
import csv
import io
import os
import sys
import time

from alim_keras import cli
from alim_keras.cli import predict_flags
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.files import check_is_no_folder
from alim_keras.files import replacing


def main(settings):
    """Predicts what the command line names."""
    _check(settings)

    from alim_keras.data import tables
    from alim_keras.data.messages import first_five
    from alim_keras.runs import inputs
    from alim_keras.runs import loading
    from alim_keras.runs.predictor import load_predictor

    names = settings.class_names
    predictor = load_predictor(
        settings.model, tables.read_class_names(names) if names else None
    )
    skipped = inputs.Skipped(settings.on_bad_image == "skip")
    if settings.candidates_file:
        found = inputs.from_table(
            settings.candidates_file,
            settings.images,
            predictor,
            skipped,
            **loading.reading(settings),
        )
    else:
        found = inputs.from_paths(settings.paths, predictor, skipped)
    try:
        with _output(settings.out) as file:
            count, outside = _write(settings, predictor, found, skipped, file)
    except BrokenPipeError:
        # Whoever read the lines has seen enough; Python would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    if settings.out:
        print(f"Wrote {count:,} predictions to {settings.out}")
        if settings.rank:
            print(f"The likeliest class is outside the set of {outside:,}")
    if skipped.count:
        print(
            f"alim_keras.predict: warning: {skipped.count:,} images could not "
            f"be read and are left out: {first_five(skipped.first)}",
            file=sys.stderr,
        )


def _check(settings):
    """Raises for flags that do not fit together."""
    if settings.rank and not settings.candidates_file:
        raise ConfigError(
            "--rank puts candidate sets in order; give the table that holds "
            "them as --candidates_file"
        )
    if bool(settings.paths) == bool(settings.candidates_file):
        given = " ".join(settings.paths)
        raise ConfigError(
            "Give either images to predict, or the table of items as "
            f"--candidates_file. Received: {given or 'neither'}"
            f"{' and --candidates_file' if given else ''}"
        )
    unread = "would not be read, since"
    if settings.rank:
        settings.refuse_typed(
            ["top_k"], f"{unread} --rank lists every candidate"
        )
    if settings.paths:
        settings.refuse_typed(
            predict_flags.OF_TABLE, f"{unread} PATHS are no table"
        )
    if settings.out:
        check_is_no_folder(settings.out, "--out")


def _write(settings, predictor, found, skipped, file):
    """Writes all rows; returns how many, and how many are outside their set."""
    from alim_keras.report import predictions

    writer = csv.writer(file, lineterminator="\n")
    names = predictor.class_names
    top = min(settings.top_k, len(names))
    header = predictions.RANKED_HEADER
    writer.writerow(header if settings.rank else predictions.top_header(top))
    totals = [one.total for one in found]
    progress = Progress(
        None if None in totals else sum(totals), bool(settings.out)
    )
    count = outside = 0
    try:
        for one in found:
            for batch in one.batches(settings.batch_size):
                p = predictor.probabilities(batch.values)
                if settings.rank:
                    rows = predictions.ranked_rows(
                        batch.ids, p, batch.sets, names
                    )
                    rows = list(rows)
                    outside += sum(row[4] == "1" for row in rows)
                else:
                    rows = predictions.top_rows(batch.ids, p, names, top)
                writer.writerows(rows)
                count += len(p)
                progress.show(count + skipped.count)
        if not count:
            raise DataError(
                f"There is nothing to predict: {skipped.count} images, and "
                "none of them can be read"
                if skipped.count
                else "There is nothing to predict: the files hold no items"
            )
    finally:
        progress.end()
    return count, outside


@contextlib.contextmanager
def _output(path):
    """Yields the text file to write to: a new file, or standard output."""
    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.flush()
        text.detach()


class Progress:
    """A line on stderr that says how far it is, if a person can see it.

    Args:
        total: How many items there are, or None.
        to_file: Whether the rows go to a file. If they go to the terminal,
            they are progress enough.
    """

    def __init__(self, total, to_file):
        self._of = "" if total is None else f" of {total:,}"
        self._shown = sys.stderr.isatty() and (
            to_file or not sys.stdout.isatty()
        )
        self._start = self._last = time.monotonic()
        self._width = 0

    def show(self, done):
        """Says how many items are done, a few times each second."""
        now = time.monotonic()
        if self._shown and now - self._last > 0.2:
            self._last = now
            rate = done / (now - self._start)
            self._put(f"{done:,}{self._of} predicted, {rate:,.0f} a second")

    def end(self):
        """Clears the line."""
        if self._width:
            self._put("")
            self._put("")

    def _put(self, text):
        sys.stderr.write(f"\r{text:<{self._width}}")
        self._width = len(text)
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(cli.run(predict_flags.COMMAND, main))
