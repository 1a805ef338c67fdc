"""`Audit`: the result of `examine`, its files, and its words."""

import dataclasses
import functools
import os

import numpy as np

from alim_keras.data.images import DiskImages
from alim_keras.data.images import image_rows
from alim_keras.errors import DataError
from alim_keras.files import check_is_no_folder
from alim_keras.files import write_atomically
from alim_keras.report.labels import write_table


@dataclasses.dataclass(eq=False)
class Audit:
    """The result of `examine`: pandas data frames, and the report.

    Attributes:
        labels: A row per example, see `labels.label_rows`.
        review: The examples to look at first, see `tables.review`.
        classes: A row per class, see `tables.classes`.
        confusions: Pairs of confused classes, see `tables.confusions`.
        confusion_counts: Sparse floats `(C, C)`, likewise.
        annotators: A row per annotator, see `votes.annotator_table`, or None.
        summary: Dict of plain values, None where they are not known: `name`,
            `num_examples`, `num_classes`, `outside`, `undecided`, `suspect`
            (the expected number of wrong sets), `suspect_share` (the expected
            share of them where the truth was not told), `mean_set_size`,
            `noise_rate`, `noise_rate_reason`, `temperature`, `kind` (in
            words), `kinds` (how many examples of each source), `looked_at`
            (by a person already), `settled_accuracy`, `compared_labels` (of
            how many), and those of `tables.count_known`.
        history: Data frame of metrics.csv, or None.
        class_names: C strings.
        votes: `votes.VoteArrays`, or None.
    """

    labels: object
    review: object
    classes: object
    confusions: object
    confusion_counts: object
    annotators: object
    summary: dict
    history: object
    class_names: list
    votes: object

    @property
    def confusion_matrix(self):
        """Floats `(C, C)`: rows what was given, columns what was settled."""
        return self.confusion_counts.toarray()

    def describe(self):
        """Returns the result in a few lines, for a terminal and the page."""
        facts = self.summary
        total, known = facts["num_examples"], facts["known_labels"]
        outside, undecided, suspect = (
            f"{facts[name]:,.0f} ({percent(facts[name] / total)})"
            for name in ("outside", "undecided", "suspect")
        )
        lines = [
            f"{total:,} items, {facts['num_classes']:,} classes. Settled "
            f"labels outside their set: {outside}; undecided: {undecided}; "
            f"sets expected to miss the true class: {suspect}.",
            f"To look at first: {len(self.review):,} items; looked at already: "
            f"{facts['looked_at']:,}.",
            f"Labels are {facts['kind']}.",
        ]
        if "folds" not in facts["kinds"]:
            lines.append(
                "A network that was trained on these very sets can have "
                "learnt their mistakes, so that some wrong sets look right. "
                "An audit with --folds asks networks that never saw the set."
            )
        if facts["noise_rate"] is not None:
            lines.append(
                f"The noise rate is taken as {percent(facts['noise_rate'])}: "
                f"{facts['noise_rate_reason']}"
            )
        if known:
            share = facts["realised_noise"]
            text = (
                f"Of the {known:,} items whose true label is known "
                f"{share * known:,.0f} ({percent(share)}) have a set that "
                "misses it"
            )
            if known < facts["num_examples"]:
                text += (
                    ". If they are a random sample, so do "
                    f"{percent(facts['realised_noise_low'])} to "
                    f"{percent(facts['realised_noise_high'])} of all"
                )
            lines.append(
                f"{text}; the estimate where it is not told is "
                f"{percent(facts['suspect_share'])}."
            )
        return "\n".join(lines)

    def write(self, folder):
        """Writes the tables into a folder; returns a list of the paths.

        In review.csv the settled label is called `settled`, so that nobody
        takes it for the true one. Lists of classes are JSON, and a number
        that does not exist is an empty cell. labels.csv can be read again as
        a file of candidate sets.
        """
        tables = {
            "labels.csv": self.labels,
            "review.csv": self.review.rename(columns={"label": "settled"}),
            "noise_by_class.csv": self.classes,
            "confusions.csv": self.confusions,
            "annotators.csv": self.annotators,
        }
        paths = []
        for name, frame in tables.items():
            if frame is not None:
                paths.append(os.path.join(folder, name))
                write_table(paths[-1], frame)
        return paths

    def to_html(self, path=None, images=None, review_images=200):
        """Returns the report as one self-contained page of HTML, a string.

        Args:
            path: File to write it to as well, or None.
            images: The N pictures, uint8 `(N, H, W, channels)` or
                `DiskImages`, or None for a page without.
            review_images: Rows of the review list on the page, at most.
                Defaults to `200`.

        Raises:
            ConfigError: If `path` is a folder.
            DataError: If there are not as many pictures as examples.
        """
        if path is not None:
            check_is_no_folder(path)
        # Imported here: it draws, and takes a second.
        from alim_keras.report.page import page

        text = page(self, self._pictures(images), review_images)
        if path is not None:
            write_atomically(path, text)
        return text

    def _pictures(self, images):
        """Returns a function from row numbers to pictures, or None."""
        # Feature vectors have no picture.
        if images is None or np.shape(images)[1:3] == (1, 1):
            return None
        if len(np.shape(images)) != 4 or len(images) != len(self.labels):
            raise DataError(
                "Argument `images` must be (N, H, W, channels), a picture for "
                f"each of {len(self.labels)} examples. Received: "
                f"shape={np.shape(images)}"
            )
        if isinstance(images, DiskImages):
            # Show files as they are, not as the network sees them.
            return images.pictures
        return functools.partial(image_rows, images)


def percent(share):
    """Returns a share as a percentage of three digits; "-" if not known."""
    return "-" if share is None else f"{100 * share:.3g} %"


def listed(names, most=12):
    """Returns names with commas; beyond `most` of them how many are left."""
    text = ", ".join(map(str, names[:most])) or "-"
    return f"{text} + {len(names) - most} more" if len(names) > most else text
