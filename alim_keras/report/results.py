"""`Audit`: the result of `examine`, its files, and its words."""

import dataclasses
import functools
import math
import numbers
import os

import numpy as np

from alim_keras.data.images import DiskImages
from alim_keras.data.images import image_rows
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.files import check_is_no_folder
from alim_keras.files import write_atomically
from alim_keras.report.labels import write_labels
from alim_keras.report.labels import write_table

UNKNOWN = "-"
_SPACE = "\N{NO-BREAK SPACE}"


@dataclasses.dataclass(eq=False)
class Audit:
    """The result of `examine`: pandas data frames, and the report.

    Attributes:
        labels: A row per example, see `report.write_labels`; `candidates` and
            `suggested` are lists of class names.
        review: The examples that a person should look at first, see
            `tables.review`.
        classes: A row per class, the noisiest first, see `tables.classes`.
        confusions: Pairs of confused classes, see `tables.confusions`.
        confusion_counts: Sparse floats `(C, C)`, see
            `tables.confusion_counts`.
        annotators: A row per annotator, see `votes.annotator_table`, or None.
        truth: Precision and recall of the flags where true labels are known,
            see `tables.truth`, or None.
        summary: Dict of plain values, None where they are not known:
            `num_examples`, `num_classes`, `outside`, `undecided`, `suspect`
            (the expected number of wrong sets), `suspect_share` (the expected
            share of them where the truth was not told), `mean_set_size`,
            `noise_rate`, `noise_rate_reason`, `lambda` (the mean over the
            examples), `temperature`, `kind` (in words), `kinds` (how many
            examples of each source), `name`, `epochs` (that the model has
            behind it: of a run's selected model fewer than `run_epochs`),
            `test_accuracy` (of that model), `known_labels`, `realised_noise`
            (the share of their sets that miss them), `realised_noise_low` and
            `realised_noise_high` (its 95 % interval, of at least 50 known
            labels), `settled_accuracy`, `compared_labels` (of how many).
        ratio: Floats `(N,)`, the candidate ratios (Eq. 6), or None.
        history: Data frame of metrics.csv, or None.
        class_names: C strings.
        votes: `votes.VoteArrays`, or None.
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
        total = self.summary["num_examples"]
        if self.looked_at == total:
            files["review.csv"] = (
                f"empty: the true labels of all {total:,} items were given, so "
                "that none is left to look at"
            )
        elif not len(self.review):
            files["review.csv"] = "empty: no item calls for a look"
        if self.annotators is not None:
            files["annotators.csv"] = "a row per annotator"
        return files

    def describe(self):
        """Returns the result in a few lines, for a terminal."""
        text = "\n".join(sentences(self.summary))
        return text.replace(_SPACE, " ")

    def write(self, folder):
        """Writes the tables into a folder, which is made if need be.

        labels.csv, review.csv, noise_by_class.csv, confusions.csv, and
        annotators.csv where annotators are known. In review.csv the settled
        label is called `settled`, so that nobody takes it for the true one.
        Lists of classes are JSON, and a number that does not exist is an
        empty cell. labels.csv can be read again as a file of candidate sets.

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

    def to_html(self, path=None, images=None, review_images=200):
        """Returns the report as one self-contained page.

        Args:
            path: File to write it to as well, or None.
            images: The N pictures, uint8 `(N, H, W, channels)` or
                `DiskImages`, or None for a page without.
            review_images: Examples of the review list on the page, at most.
                Defaults to `200`.

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


def is_known(value):
    """Returns whether a value is neither None nor NaN nor infinite."""
    if value is None:
        return False
    return not isinstance(value, numbers.Real) or math.isfinite(value)


def count(value):
    """Returns a whole number with thousands separators; "-" if not known."""
    return f"{round(float(value)):,}" if is_known(value) else UNKNOWN


def number(value):
    """Returns a number with three significant digits; "-" if not known."""
    if not is_known(value):
        return UNKNOWN
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.3g}"


def percent(share):
    """Returns a share as a percentage; "-" if not known.

    A share that is not quite 0 or 1 is never written as if it were. The space
    before the sign does not break.

    >>> percent(0.1234), percent(0.0), percent(0.00001), percent(0.99999)
    ('12.3 %', '0 %', '<0.1 %', '>99.9 %')
    """
    if not is_known(share):
        return UNKNOWN
    text = f"{100 * share:.1f}"
    if share in (0.0, 1.0):
        text = f"{100 * share:.0f}"
    elif text == "0.0":
        text = "<0.1"
    elif text == "100.0":
        text = ">99.9"
    return f"{text}{_SPACE}%"


def listed(names, most=12):
    """Returns names with commas; beyond `most` of them how many are left.

    >>> listed(["cat", "dog", "owl"], 2)
    'cat, dog + 1 more'
    """
    text = ", ".join(map(str, names[:most])) or UNKNOWN
    return f"{text} + {len(names) - most} more" if len(names) > most else text


def sentences(facts):
    """Returns the result of an audit as sentences.

    Args:
        facts: `Audit.summary`.
    """
    total, epochs = facts["num_examples"], facts["epochs"]
    shares = {
        name: f"{count(facts[name])} ({percent(facts[name] / total)})"
        for name in ("outside", "undecided", "suspect")
    }
    texts = [
        f"{count(total)} items, {count(facts['num_classes'])} classes. Settled "
        f"labels outside their set: {shares['outside']}; undecided: "
        f"{shares['undecided']}; sets expected to miss the true class: "
        f"{shares['suspect']}.",
        f"Labels are {facts['kind']}.",
    ]
    if "folds" not in facts["kinds"]:
        if epochs != facts["run_epochs"]:
            texts.append(
                f"The network is that of epoch {epochs} of "
                f"{facts['run_epochs']}, selected."
            )
        texts.append(
            "A network that was trained on these very sets can have learnt "
            "their mistakes, so that some wrong sets look right. An audit with "
            "--folds asks networks that never saw the set."
        )
    if is_known(facts["noise_rate"]):
        reason = facts["noise_rate_reason"] or "a number that was given."
        rate = percent(facts["noise_rate"])
        texts.append(f"The noise rate is taken as {rate}: {reason}")
    if facts["undecided"] > 0.2 * total:
        texts.append(
            "More than a fifth of the examples are undecided. Train longer or "
            "with a larger network before you trust single labels."
        )
    return [*texts, *counted(facts)]


def counted(facts):
    """Returns how many sets are wrong where the truth is known.

    Args:
        facts: `Audit.summary`.

    Returns:
        A list of a text, empty where fewer than 50 true labels are known.
    """
    if facts["realised_noise_low"] is None:
        return []
    share, total = facts["realised_noise"], facts["num_examples"]
    known = facts["known_labels"]
    wrong = round(share * known)
    text = (
        f"Of the {count(known)} examples whose true label is known "
        f"{count(wrong)} ({percent(share)}) have a set that misses it."
    )
    if known == total:
        return [text]
    # Those that were counted are certain.
    low = max(facts["realised_noise_low"] * total, wrong)
    high = min(facts["realised_noise_high"] * total, total - known + wrong)
    estimate = (facts["suspect_share"] or 0) * total
    fits = "which agrees with"
    if not low <= estimate <= high:
        fits = "more than" if estimate < low else "fewer than"
    return [
        f"{text} If they are typical of all, as a random sample is, between "
        f"{count(low)} and {count(high)} of the {count(total)} sets do, {fits} "
        f"the estimate of {count(estimate)}."
    ]


def figures(facts):
    """Returns the numbers of `Audit.summary` that are known, by name."""
    return {
        name.replace("_", " "): count(value)
        if isinstance(value, int)
        else number(value)
        for name, value in facts.items()
        if isinstance(value, (int, float))
    }
