"""`Audit`: the result of `examine`, its tables, files and page."""

import dataclasses
import functools
import os

import numpy as np

from alim_keras.data.images import DiskImages
from alim_keras.data.images import image_rows
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.files import check_is_no_folder
from alim_keras.files import write_atomically
from alim_keras.report import words
from alim_keras.report.labels import write_labels
from alim_keras.report.labels import write_table


@dataclasses.dataclass(eq=False)
class Audit:
    """The result of `examine`: pandas data frames, and the report.

    Attributes:
        labels: A row per example, as in labels.csv, see `report.write_labels`;
            `candidates` and `suggested` are lists of class names.
        review: The examples that a person should look at first, see
            `report.tables.review`.
        classes: A row per class, the noisiest first, see
            `report.tables.classes`.
        confusions: Pairs of classes that were confused, see
            `report.tables.confusions`.
        confusion_counts: Sparse floats `(C, C)`, see
            `report.tables.confusion_counts`; `confusion_matrix` is the same
            as an array.
        annotators: A row per annotator, see `report.votes.annotator_table`,
            or None.
        truth: Precision and recall of the flags where true labels are known,
            see `report.tables.truth`, or None.
        summary: Dict of plain values: `num_examples`, `num_classes`,
            `outside`, `undecided`, `suspect` (the expected number of wrong
            sets), `suspect_share` (the expected share of them where the
            truth was not told), `mean_set_size`, `noise_rate`,
            `noise_rate_reason`, `lambda` (the mean over the examples),
            `temperature`, `kind` (in
            words), `kinds` (how many examples of each source), `name`,
            `epochs` (that the model has behind it: of a run's selected
            model fewer than `run_epochs`), `test_accuracy` (of that model),
            `known_labels`, `realised_noise` (the share of their sets that
            miss them), `realised_noise_low` and `realised_noise_high` (its
            95 % interval, of at least 50 known labels), `settled_accuracy`,
            `compared_labels` (of how many). None where it is not known.
        ratio: Floats `(N,)`, the candidate ratio of each example (Eq. 6), or
            None.
        history: Data frame of metrics.csv, or None.
        class_names: C strings.
        votes: `report.votes.VoteArrays`, or None.
        looked_at: How many examples a person has looked at already.
    """

    labels: object
    review: object
    classes: object
    confusions: object
    confusion_counts: object
    annotators: object
    truth: object
    summary: dict
    ratio: np.ndarray | None
    history: object
    class_names: list
    votes: object = None
    looked_at: int = 0

    @property
    def confusion_matrix(self):
        """Floats `(C, C)`: rows what was given, columns what was settled."""
        return self.confusion_counts.toarray()

    def files(self):
        """Returns the files of an audit with a few words on each, a dict."""
        files = {
            "report.html": "the report, for a browser; it needs no network",
            "labels.csv": "every item: given set, settled label, suggested set",
            "review.csv": "the items to look at first",
            "noise_by_class.csv": "a row per class",
            "confusions.csv": "which classes were taken for which",
        }
        if not len(self.review):
            files["review.csv"] = f"empty: {words.no_review(self)}"
        if self.annotators is not None:
            files["annotators.csv"] = "a row per annotator"
        return files

    def describe(self):
        """Returns the result in a few sentences, for a terminal."""
        text = "\n".join(words.sentences(self.summary))
        return text.replace("\N{NO-BREAK SPACE}", " ")

    def write(self, folder):
        """Writes the tables into a folder, which is made if need be.

        labels.csv, review.csv, noise_by_class.csv, confusions.csv, and
        annotators.csv where annotators are known. The settled label is called
        `settled` in review.csv, so that nobody takes that file for one of true
        labels. Lists of classes are JSON, and a number that does not exist
        is an empty cell.
        labels.csv can be read again as a file of candidate sets, with the
        column `candidates` or `suggested`.

        Args:
            folder: Path of the folder.

        Returns:
            A list of the paths written.

        Raises:
            ConfigError: If there is a file of this name.
        """
        try:
            os.makedirs(folder, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise ConfigError(
                "`folder` must be a folder, new or not, and this is a file, "
                f"or lies in one. Received: folder={os.fspath(folder)}"
            ) from error
        tables = {
            "review.csv": self.review.rename(columns={"label": "settled"}),
            "noise_by_class.csv": self.classes,
            "confusions.csv": self.confusions,
            "annotators.csv": self.annotators,
        }
        paths = [os.path.join(folder, "labels.csv")]
        write_labels(paths[0], self.labels)
        for name, frame in tables.items():
            if frame is not None:
                paths.append(os.path.join(folder, name))
                write_table(paths[-1], frame)
        return paths

    def to_html(self, path=None, images=None, review_images=60):
        """Returns the report as one self-contained page.

        Args:
            path: File to write it to as well, or None.
            images: The N pictures, uint8 `(N, H, W, channels)` or
                `DiskImages`, or None for a page without.
            review_images: Examples in each of the three groups of pictures,
                at most. Defaults to `60`.

        Returns:
            A string, the HTML.

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
        if images is None:
            return None
        shape = tuple(getattr(images, "shape", ()))
        count = len(self.labels)
        if len(shape) != 4 or shape[0] != count:
            raise DataError(
                f"Argument `images` must be (N, H, W, channels), a picture for "
                f"each of {count} examples. Received: "
                f"{shape or type(images).__name__}"
            )
        if shape[1:3] == (1, 1):
            # Feature vectors have no picture.
            return None
        if isinstance(images, DiskImages):
            # Show files as they are, not as the network sees them.
            return images.pictures
        return functools.partial(image_rows, images)
