"""`Audit`: the result of `examine`, its files, and its words."""

import dataclasses
import os

import numpy as np

from alim_keras.data.images import DiskImages
from alim_keras.data.images import image_rows
from alim_keras.errors import DataError
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
        annotators: A row per annotator, see `tables.annotators`, or None.
        summary: Dict of plain values, None where they are not known: `name`,
            `num_examples`, `num_classes`, `outside`, `undecided`, `suspect`
            (the expected number of wrong sets), `mean_set_size`,
            `noise_rate`, `noise_rate_reason`, `noise_rate_learnt` (from the
            sets, not told), `temperature`, `kind` (in words), `kinds` (how many
            examples of each source), `looked_at` (by a person already),
            `known_labels` (how many are known), `realised_noise` (of these)
            and its 95 % interval (one point, where all labels are known),
            `realised_noise_low` to `_high`, `settled_accuracy` and
            `compared_labels` (of how many).
        history: Data frame of metrics.csv, or None.
        class_names: C strings.
        votes: `data.annotators.VoteArrays`, or None.
        identity: String, the hash of the sets: answers on a page with another
            one are not taken.
        surroundings: `embeddings.Surroundings`, or None without features.
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
    identity: str
    surroundings: object = None

    @property
    def confusion_matrix(self):
        """Floats `(C, C)`: rows what was given, columns what was settled."""
        return self.confusion_counts.toarray()

    def figures(self):
        """Returns the result as a dict: the name of a figure, and its text.

        Each stands on the page once, under its name.
        """
        facts = self.summary
        total, known = facts["num_examples"], facts["known_labels"]

        def counted(name):
            return f"{facts[name]:,.0f} ({percent(facts[name] / total)})"

        figures = {
            "Items": f"{total:,}",
            "Classes": f"{facts['num_classes']:,}",
            "Settled labels outside their set": counted("outside"),
            "Settled labels undecided": counted("undecided"),
            "Sets expected to miss the true class": counted("suspect"),
            "Listed for review": f"{len(self.review):,}",
            "Looked at already": f"{facts['looked_at']:,}",
            "Settled labels are": facts["kind"],
        }
        if "folds" not in facts["kinds"]:
            figures["Settled labels are"] += (
                ". A network can have learnt the mistakes of sets that it was "
                "trained on; an audit with --folds asks networks that never "
                "saw the set"
            )
        if facts["noise_rate"] is not None and not facts["noise_rate_learnt"]:
            rate = percent(facts["noise_rate"])
            reason = facts["noise_rate_reason"]
            figures["Noise rate assumed"] = f"{rate}: {reason}"
        if known:
            share = facts["realised_noise"]
            figures["Sets that miss a known true label"] = (
                f"{share * known:,.0f} of {known:,} ({percent(share)})"
            )
        if 0 < known < total:
            low, high = (
                facts["realised_noise_low"],
                facts["realised_noise_high"],
            )
            figures["The same of all sets"] = (
                f"{percent(low)} to {percent(high)}, if those items are a "
                "random sample"
            )
        return figures

    def describe(self):
        """Returns `figures` as lines of text, for a terminal."""
        lines = (f"{name}: {text}" for name, text in self.figures().items())
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
        if self.surroundings is not None:
            tables["duplicates.csv"] = self.surroundings.duplicates
            tables["outliers.csv"] = self.surroundings.outliers
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
        # Imported here: it draws, and takes a second.
        from alim_keras.report.page import page

        text = page(self, pictures(images, len(self.labels)), review_images)
        if path is not None:
            write_atomically(path, text)
        return text


def pictures(images, count):
    """Returns a function from rows and a size to pictures, or None.

    `images` are uint8 `(N, H, W, channels)` or `DiskImages`; feature vectors
    have no picture.

    Raises:
        DataError: If they are not `count` pictures.
    """
    if images is None or np.shape(images)[1:3] == (1, 1):
        return None
    if len(np.shape(images)) != 4 or len(images) != count:
        raise DataError(
            "Argument `images` must be (N, H, W, channels), a picture for "
            f"each of {count} examples. Received: shape={np.shape(images)}"
        )
    if isinstance(images, DiskImages):
        # Show files as they are, not as the network sees them.
        return images.pictures
    return lambda rows, largest: image_rows(images, rows)


def percent(share):
    """Returns a share as a percentage of three digits; "-" if not known."""
    unknown = share is None or share != share
    return "-" if unknown else f"{100 * share:.3g} %"
