"""Serves the review page of an audited run to a browser on this machine.

It shows whole images from the disk, and writes answers.csv as answers are
given: true labels for --known_labels.
"""

import contextlib
import dataclasses
import sys

from alim_keras.app import cli
from alim_keras.app import process
from alim_keras.app import values
from alim_keras.app.config import ReopenConfig
from alim_keras.errors import CheckpointError
from alim_keras.errors import one_line


@dataclasses.dataclass(frozen=True)
class ReviewConfig:
    """Review.

    Attributes:
        answers: Take the answers in an export of Label Studio, CVAT or
            FiftyOne, or in any file that --dataset reads, into answers.csv,
            and serve nothing.
        out: Folder where audit --out wrote. Without it: the run's own.
        port: Port of 127.0.0.1 to listen on. Without it: any that is free.
    """

    answers: str | None = values.path()
    out: str | None = values.path()
    port: int | None = values.whole(None, low=1, high=65535)


COMMAND = cli.Command(
    name="review",
    doc=__doc__,
    groups=(ReviewConfig, ReopenConfig),
    words=("run",),
    examples=("review runs/mine", "review runs/mine --answers=export.json"),
)


def main(line):
    """Serves the review list of the run named on the command line."""
    from alim_keras.app import build
    from alim_keras.app import load
    from alim_keras.app.run_folder import RunFolder
    from alim_keras.data import read_votes
    from alim_keras.report import server
    from alim_keras.report import tasks
    from alim_keras.report.page import Items
    from alim_keras.report.page import pictures

    folder = RunFolder(line.words["run"])
    out = RunFolder(line.options.out or folder.path)
    for name in ("report.html", "labels.csv", "review.csv"):
        if out.existing(name) is None:
            raise CheckpointError(
                f"There is no {name} in {out.path}. The audit command writes "
                "it, for this run."
            )
    with out.lock():
        config = build.settings(line, folder)
        training = load.training_set(config, folder, reopen=True)
        labels = _read(out, "labels.csv", "id label")
        lists = "candidates choices chances neighbours"
        # An older audit wrote no votes.
        lists += "" if training.votes is None else " votes"
        review = _read(out, "review.csv", f"id reason {lists}")
        if labels["id"].tolist() != training.ids.tolist():
            raise CheckpointError(
                f"{out.file('labels.csv')} is not about the items of the run."
            )
        names = training.class_names
        show = pictures(training.images, len(training))
        address = server.address if show else None
        items = Items(review, labels, address)
        answers = server.Answers(out.path, items.ids, names)
        if line.options.answers:
            votes = read_votes(line.options.answers, class_names=names)
            given = tasks.answers(votes, training.ids.tolist(), names)
            answers.put(given)
            print(
                f"{len(given):,} answers to {votes['item'].nunique():,} items "
                f"of {line.options.answers} are in {out.file('answers.csv')}."
            )
            return
        if not len(items):
            print(f"{out.file('review.csv')} lists no item.")
            return
        text, port = out.read_text("report.html"), line.options.port or 0
        with server.Server(text, items, answers, show, port) as started:
            print(
                f"{len(items):,} items; the answers go to "
                f"{out.file('answers.csv')}\nOpen {started.address} in a "
                "browser; Ctrl-C ends this.",
                flush=True,
            )
            with contextlib.suppress(KeyboardInterrupt):
                started.serve_forever()


def _read(out, name, columns):
    """Returns a table that an audit wrote, all of it as text."""
    import pandas as pd

    path = out.file(name)
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
        return frame[columns.split()]
    except (KeyError, ValueError) as error:
        raise CheckpointError(
            f"{path} is damaged or of another version ({one_line(error)}); the "
            "audit command writes it again."
        ) from error


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main))
