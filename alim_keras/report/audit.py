"""What is in each picture, and which labels a person should look at again."""

import dataclasses
import functools
import os

import numpy as np

from alim_keras.data import image_rows
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.files import check_is_no_folder
from alim_keras.files import write_atomically
from alim_keras.report.labels import write_labels
from alim_keras.report.labels import write_table


@dataclasses.dataclass(eq=False)
class Audit:
    """The result of `examine`: pandas data frames, and the report.

    Attributes:
        labels: A row per example, as in labels.csv, see `report.write_labels`;
            `candidates` and `suggested` are lists of class names.
        review: What a person should look at first, see `report.review`.
        classes: A row per class, the noisiest first, see
            `Confusions.classes`.
        confusions: Pairs of classes that were confused, see
            `Confusions.frame`.
        confusion_matrix: Floats `(C, C)`: rows what was given, a set's mass
            of 1 split evenly over its classes; columns what was settled.
        annotators: A row per annotator, see `report.annotators`, or None.
        truth: What the flags are worth where true labels are known, see
            `report.truth`, or None.
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
        votes: The `Votes`, or None.
    """

    labels: object
    review: object
    classes: object
    confusions: object
    confusion_matrix: np.ndarray
    annotators: object
    truth: object
    summary: dict
    ratio: np.ndarray | None
    history: object
    class_names: list
    votes: object = None

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
            review_images: Examples in each of the three grids of pictures,
                at most. Defaults to `60`.

        Returns:
            A string, the HTML.

        Raises:
            ConfigError: If `path` is a folder.
            DataError: If there are not as many pictures as examples.
        """
        if path is not None:
            check_is_no_folder(path)
        if images is not None:
            _check_images(images, len(self.labels))
        # Imported here: it draws, and takes a second.
        from alim_keras.report.html import page

        pictures = None
        # Feature vectors travel as images of one pixel, and show nothing.
        if images is not None and tuple(images.shape[1:3]) != (1, 1):
            # Files are shown as they are, not as the network sees them.
            on_disk = getattr(images, "pictures", None)
            pictures = on_disk or functools.partial(image_rows, images)
        text = page(self, pictures, review_images)
        if path is not None:
            write_atomically(path, text)
        return text


def _check_images(images, count):
    """Raises `DataError` unless there is a picture for each example."""
    shape = tuple(getattr(images, "shape", ()))
    if len(shape) != 4 or shape[0] != count:
        received = shape or type(images).__name__
        raise DataError(
            f"Argument `images` must be (N, H, W, channels), a picture for "
            f"each of {count} examples. Received: {received}"
        )
