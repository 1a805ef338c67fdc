"""`TrainingSet`: what is trained on, and what is tested on."""

import dataclasses
import functools

import numpy as np

from alim_keras.data import splits
from alim_keras.data.candidates import CandidateSets
from alim_keras.data.checks import generator
from alim_keras.data.images import DiskImages
from alim_keras.data.images import channel_statistics
from alim_keras.data.validation import validate_features
from alim_keras.data.validation import validate_images
from alim_keras.data.validation import validate_labels
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import check_number
from alim_keras.errors import first_five

# A true label that is not known.
UNKNOWN = -1


@dataclasses.dataclass(frozen=True, eq=False)
class TrainingSet:
    """Images or feature vectors, their candidate sets, and a test set.

    Args:
        name: String, the name it was asked for by.
        ids: Strings `(num_train,)`, unique, such as `"train_00017"`.
        images: uint8 `(num_train, height, width, channels)` in [0, 255]; or
            `DiskImages`, which are decoded as they are needed; or, of the
            kind "features", float32 `(num_train, 1, 1, num_features)`.
        class_names: Tuple of strings `(num_classes,)`.
        test_images: As `images`, `(num_test, ...)`. There may be none.
        test_labels: int64 `(num_test,)`.
        test_ids: Strings `(num_test,)`.
        candidates: `CandidateSets` in the order of `ids`, as they were given;
            None before they are simulated.
        labels: int64 `(num_train,)`, the true classes, -1 where they are not
            known; None if none is. Training does not use them; simulated
            candidate sets and reports do.
        known: int64 `(num_train,)`, true labels that somebody looked up, -1
            elsewhere; or None. `labels` hold them, too.
        known_as_sets: Whether `known` stands in place of the items' sets.
        votes: Data frame with the columns item, annotator, label and
            confidence; None where nobody is named.
        mean: Tuple of floats, one per channel, in units of [0, 1]. Defaults
            to that of the images.
        std: Tuple of floats, one per channel, in units of [0, 1].
        superclasses: int64 `(num_classes,)`, or None if there are none.
        protocol: String, the protocol the published tables use for it.
        source: String, where it was read from.
        kind: `"images"` or `"features"`.
        notes: Tuple of strings: how the data were read.
        scan: `images.Scan` of all files that were looked at, also those that
            were left out; None where the images are no files.
        file_rows: int64 `(num_train,)`, the row in `scan` of each example.
        listed: Strings, all ids before a part was taken. Defaults to `ids`.
        trained: int64, the rows that are trained on. Defaults to all.
        held_out: int64, the rows that are not.

    Example:

    >>> data = alim_keras.data.load("digits").subset(200, seed=0)
    >>> len(data.ids), data.num_classes
    (200, 10)
    """

    name: str
    ids: np.ndarray
    images: np.ndarray | DiskImages
    class_names: tuple
    test_images: np.ndarray | DiskImages
    test_labels: np.ndarray
    test_ids: np.ndarray
    candidates: CandidateSets | None = None
    labels: np.ndarray | None = None
    known: np.ndarray | None = None
    known_as_sets: bool = False
    votes: object = None
    mean: tuple | None = None
    std: tuple | None = None
    superclasses: np.ndarray | None = None
    protocol: str = "flip"
    source: str = ""
    kind: str = "images"
    notes: tuple = ()
    scan: object = None
    file_rows: np.ndarray | None = None
    listed: np.ndarray | None = None
    trained: np.ndarray | None = None
    held_out: np.ndarray | None = None

    def __post_init__(self):
        names = tuple(str(name) for name in self.class_names)
        self.__dict__.update(class_names=names)
        for split, prefix in (("train", ""), ("test", "test_")):
            self._check_split(split, prefix, len(names))
        if self.images.shape[1:] != self.test_images.shape[1:]:
            raise DataError(
                f"{self.source}: training and test images differ in shape. "
                f"Received: {self.images.shape[1:]} and "
                f"{self.test_images.shape[1:]}"
            )
        if self.candidates is not None:
            if not np.array_equal(self.candidates.ids, self.ids):
                raise DataError(
                    f"{self.source}: the candidate sets must be in the order "
                    "of the ids"
                )
            if self.candidates.class_names != names:
                raise ConfigError(
                    f"{self.candidates.source} is about the classes "
                    f"{first_five(self.candidates.class_names)}, {self.name} "
                    f"has {first_five(names)}; use sets of the same data"
                )
        if self.mean is None or self.std is None:
            is_features = self.kind == "features"
            measure = feature_statistics if is_features else channel_statistics
            mean, std = measure(self.images)
            self.__dict__.update(mean=mean, std=std)
        if self.listed is None:
            self.__dict__.update(listed=self.ids)
        if self.trained is None:
            everything = np.arange(len(self.ids))
            self.__dict__.update(trained=everything, held_out=everything[:0])

    def _check_split(self, split, prefix, num_classes):
        where = f"{self.source} ({split})"
        ids = np.asarray(getattr(self, f"{prefix}ids"), str)
        images = getattr(self, f"{prefix}images")
        labels = getattr(self, f"{prefix}labels")
        num_labels = len(ids) if labels is None else len(labels)
        if not len(images) == num_labels == len(ids):
            raise DataError(
                f"{where}: images, labels and ids must be equally many. "
                f"Received: {len(images)} images, {num_labels} labels, "
                f"{len(ids)} ids"
            )
        if len(set(ids.tolist())) < len(ids):
            values, counts = np.unique(ids, return_counts=True)
            raise DataError(
                f"{where}: {np.sum(counts > 1)} ids occur more than once: "
                f"{first_five(values[counts > 1])}"
            )
        try:
            # Files were looked at by whoever listed them.
            if len(images) and not isinstance(images, DiskImages):
                is_features = self.kind == "features"
                check = validate_features if is_features else validate_images
                images = check(images, ids)
            check = validate_labels if prefix else _with_unknown
            labels = check(labels, num_classes, ids)
        except DataError as error:
            raise DataError(f"{where}: {error}") from error
        self.__dict__.update(
            **{
                f"{prefix}ids": ids,
                f"{prefix}images": images,
                f"{prefix}labels": labels,
            }
        )

    def __len__(self):
        return len(self.ids)

    @property
    def num_classes(self):
        """Integer C."""
        return len(self.class_names)

    @property
    def all_labels_known(self):
        """Whether every training example has a true label."""
        return self.labels is not None and UNKNOWN not in self.labels

    @functools.cached_property
    def sets(self):
        """`CandidateSets` to train on: known labels in place, if asked."""
        if self.candidates is None:
            raise DataError(
                f"{self.name} has no candidate sets yet; see `with_candidates`"
            )
        if not self.known_as_sets or self.known is None:
            return self.candidates
        rows = np.flatnonzero(self.known != UNKNOWN)
        sets = self.candidates.replace(rows, self.known[rows])
        provenance = {**sets.provenance, "known_as_sets": len(rows)}
        return dataclasses.replace(sets, provenance=provenance)

    @property
    def copies(self):
        """int64 `(num_train,)`, equal for equal files; None without files."""
        return None if self.scan is None else self.scan.copies[self.file_rows]

    def stamps(self):
        """Returns a list of (id, bytes, time of change in ns) of the files.

        They show whether images changed under the same names. None where the
        images are no files.
        """
        if self.scan is None:
            return None
        sizes = self.scan.bytes[self.file_rows].tolist()
        times = self.scan.modified[self.file_rows].tolist()
        return list(zip(self.ids.tolist(), sizes, times, strict=True))

    def with_candidates(self, candidates):
        """Returns the data with `CandidateSets`, joined by id.

        Ids of the sets that no image has are counted in `notes`.

        Raises:
            DataError: An image has no set.
            ConfigError: The sets are about other classes.
        """
        chosen = candidates.select(self.ids, where=self.name)
        notes = self.notes
        listed = set(self.listed.tolist())
        extra = [name for name in candidates.ids.tolist() if name not in listed]
        if extra:
            notes = (
                *notes,
                f"{len(extra)} of {len(candidates)} sets in "
                f"{candidates.source} have ids that no image has: "
                f"{first_five(extra)}",
            )
        return dataclasses.replace(self, candidates=chosen, notes=notes)

    def take(self, rows):
        """Returns the data with the training examples at these rows.

        `mean` and `std` stay those of the whole; the test set stays.

        Args:
            rows: Integers `(n,)`, each once. Their order is kept.
        """
        rows = np.asarray(rows, np.int64)
        part = {
            name: getattr(self, name)[rows]
            for name in ("ids", "images", "labels", "known", "file_rows")
            if getattr(self, name) is not None
        }
        if self.candidates is not None:
            part["candidates"] = self.candidates.take(rows)
        if self.votes is not None:
            stays = self.votes["item"].isin(part["ids"])
            part["votes"] = self.votes[stays]
        return dataclasses.replace(self, **part, trained=None, held_out=None)

    def rows_of(self, ids):
        """Returns the rows of ids, int64 `(n,)`; KeyError for others."""
        if np.array_equal(self.ids, ids):
            return np.arange(len(ids))
        places = {name: row for row, name in enumerate(self.ids.tolist())}
        return np.array([places[str(name)] for name in ids], np.int64)

    def subset(self, size, seed=0):
        """Returns the data with a part of the training set.

        The part is stratified if all true labels are known, and random if
        not.

        Args:
            size: Integer, how many training examples to keep.
            seed: Integer >= 0.
        """
        if self.all_labels_known:
            return self.take(splits.stratified_subset(self.labels, size, seed))
        size = check_number("size", size, 1, len(self), whole=True)
        order = generator(seed, "subset").permutation(len(self))
        return self.take(np.sort(order[:size]))

    def long_tailed(self, ratio, seed=0):
        """Returns the data with training classes of falling size.

        Args:
            ratio: Float >= 1, the first class's size over the last one's;
                see `long_tailed_subset`.
            seed: Integer >= 0.
        """
        if not self.all_labels_known:
            raise ConfigError(
                "A long tail is cut by true labels, and not all of "
                f"{self.name}'s are known. Received: imbalance={ratio}"
            )
        return self.take(
            splits.long_tailed_subset(
                self.labels, self.num_classes, ratio, seed
            )
        )

    def hold_out(self, share, seed=0):
        """Returns the data with `trained` and `held_out` filled in.

        Args:
            share: Float in [0, 1); see `holdout_split`. Copies of one image
                stay on one side.
            seed: Integer >= 0.
        """
        trained, held_out = splits.holdout_split(
            self.ids, share, seed, self.copies
        )
        return dataclasses.replace(self, trained=trained, held_out=held_out)


def _with_unknown(labels, num_classes, ids):
    """Returns labels as int64, or None where not one of them is known."""
    if labels is None:
        return None
    labels = np.asarray(labels)
    known = np.flatnonzero(labels != UNKNOWN)
    if not len(known) and len(labels):
        return None
    checked = np.full(labels.shape, UNKNOWN, np.int64)
    checked[known] = validate_labels(labels[known], num_classes, ids[known])
    return checked


def feature_statistics(features):
    """Returns mean and standard deviation per feature, in units of 255.

    The unit is that of images, which models divide by 255.

    Args:
        features: float32 `(n, 1, 1, d)`.

    Returns:
        Two tuples of floats. A constant feature has a deviation of 1 in its
        own units.
    """
    values = features.reshape(len(features), -1).astype(np.float64)
    mean, std = values.mean(axis=0), values.std(axis=0)
    std = np.where(std > 1e-6 * np.maximum(np.abs(mean), 1e-30), std, 1.0)
    return tuple((mean / 255.0).tolist()), tuple((std / 255.0).tolist())
