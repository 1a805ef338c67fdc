"""`TrainingSet`: what is trained on and tested on, and parts of it."""

import dataclasses
import functools

import numpy as np

from alim_keras.data.candidates import CandidateSets
from alim_keras.data.checks import check_names
from alim_keras.data.checks import generator
from alim_keras.data.checks import in_file
from alim_keras.data.checks import known_labels
from alim_keras.data.checks import validate_features
from alim_keras.data.checks import validate_images
from alim_keras.data.checks import validate_labels
from alim_keras.data.images import DiskImages
from alim_keras.data.images import channel_statistics
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
        ids: Strings `(N,)`, unique, such as `"train_00017"`.
        images: uint8 `(N, H, W, channels)` in [0, 255]; or `DiskImages`; or,
            of the kind "features", float32 `(N, 1, 1, d)`.
        class_names: Tuple of strings `(C,)`.
        test_images: As `images`, `(n, ...)`. There may be none.
        test_labels: int64 `(n,)`.
        test_ids: Strings `(n,)`.
        candidates: `CandidateSets` in the order of `ids`, as they were given;
            None before they are simulated.
        labels: int64 `(N,)`, the true classes, -1 where they are not known,
            for simulated sets and reports; None if none is.
        known: int64 `(N,)`, the true labels that somebody looked up, -1
            elsewhere; or None. `labels` hold them, too.
        known_as_sets: Whether `known` stands in place of the items' sets.
        votes: Data frame with the columns item, annotator, label and
            confidence; None where nobody is named.
        mean: Tuple of floats, one per channel, in units of [0, 1]. Defaults
            to that of the images.
        std: Tuple of floats, likewise.
        superclasses: int64 `(C,)`, or None.
        protocol: String, the protocol the published tables use for it.
        source: String, where it was read from.
        kind: `"images"` or `"features"`.
        pictures: Of features that a backbone made, the images that these are
            of, as `images`; else None.
        backbone: That `networks.Backbone`, or None.
        notes: Tuple of strings: how the data were read.
        scan: What `images.scan` says of all files that were looked at, also
            those that were left out; None where the images are no files.
        file_rows: int64 `(N,)`, the row in `scan` of each example.
        listed: Strings, all ids before a part was taken. Defaults to `ids`.
        trained: int64, the rows that are trained on. Defaults to all.
        held_out: int64, the rows that are not.

    Example:

    >>> data = alim_keras.data.load("digits").take(range(200))
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
    pictures: np.ndarray | DiskImages | None = None
    backbone: object = None
    notes: tuple = ()
    scan: object = None
    file_rows: np.ndarray | None = None
    listed: np.ndarray | None = None
    trained: np.ndarray | None = None
    held_out: np.ndarray | None = None

    def __post_init__(self):
        names = tuple(str(name) for name in self.class_names)
        new = {"class_names": names, **self._checked("", len(names))}
        new |= self._checked("test_", len(names))
        shape, test_shape = new["images"].shape, new["test_images"].shape
        if shape[1:] != test_shape[1:]:
            raise DataError(
                f"{self.source}: training and test images differ in shape. "
                f"Received: {shape[1:]} and {test_shape[1:]}"
            )
        sets = self.candidates
        if sets is not None and sets.class_names != names:
            raise ConfigError(
                f"{sets.source} is about the classes "
                f"{first_five(sets.class_names)}, {self.name} has "
                f"{first_five(names)}; use sets of the same data"
            )
        if sets is not None and not np.array_equal(sets.ids, new["ids"]):
            raise DataError(f"{sets.source}: not in the order of the ids")
        if self.mean is None or self.std is None:
            new["mean"], new["std"] = channel_statistics(new["images"])
        if self.listed is None:
            new["listed"] = new["ids"]
        if self.trained is None:
            new["trained"] = np.arange(len(self.ids))
            new["held_out"] = new["trained"][:0]
        self.__dict__.update(new)

    def _checked(self, prefix, num_classes):
        where = f"{self.source} ({'test' if prefix else 'train'})"
        names = [f"{prefix}{name}" for name in ("ids", "images", "labels")]
        ids, images, labels = (getattr(self, name) for name in names)
        ids = np.asarray(ids, str)
        num_labels = len(ids) if labels is None else len(labels)
        if not len(images) == num_labels == len(ids):
            raise DataError(
                f"{where}: images, labels and ids must be equally many. "
                f"Received: {len(images)} images, {num_labels} labels, "
                f"{len(ids)} ids"
            )
        check_names(ids, where)
        with in_file(where):
            # Files were looked at by whoever listed them.
            if len(images) and not isinstance(images, DiskImages):
                is_features = self.kind == "features"
                check = validate_features if is_features else validate_images
                images = check(images, ids)
            if labels is not None:
                check = validate_labels if prefix else known_labels
                labels = check(labels, num_classes, ids)
                if len(ids) and (labels == UNKNOWN).all():
                    labels = None
        return dict(zip(names, (ids, images, labels), strict=True))

    def __len__(self):
        return len(self.ids)

    @property
    def num_classes(self):
        """Integer C."""
        return len(self.class_names)

    @functools.cached_property
    def sets(self):
        """`CandidateSets` to train on: known labels in place, if asked."""
        if not self.known_as_sets or self.known is None:
            return self.candidates
        rows = np.flatnonzero(self.known != UNKNOWN)
        sets = self.candidates.replace(rows, self.known[rows])
        provenance = {**sets.provenance, "known_as_sets": len(rows)}
        return dataclasses.replace(sets, provenance=provenance)

    @property
    def copies(self):
        """int64 `(N,)`, equal for equal files; None without files."""
        if self.scan is None:
            return None
        return self.scan["copies"].to_numpy()[self.file_rows]

    def with_candidates(self, candidates):
        """Returns the data with `CandidateSets`, joined by id.

        Ids of the sets that no image has are counted in `notes`.

        Raises:
            DataError: An image has no set.
            ConfigError: The sets are about other classes.
        """
        chosen = candidates.select(self.ids, where=self.name)
        notes = list(self.notes)
        extra = candidates.ids[~np.isin(candidates.ids, self.listed)]
        if len(extra):
            notes.append(
                f"{len(extra)} of {len(candidates)} sets in "
                f"{candidates.source} have ids that no image has: "
                f"{first_five(extra)}"
            )
        return dataclasses.replace(self, candidates=chosen, notes=tuple(notes))

    def take(self, rows):
        """Returns the data with the training examples at rows `(n,)`.

        `mean` and `std` stay those of the whole; the test set stays.
        """
        rows = np.asarray(rows, np.int64)
        names = "ids images pictures labels known file_rows".split()
        part = {
            name: getattr(self, name)[rows]
            for name in names
            if getattr(self, name) is not None
        }
        if self.candidates is not None:
            part["candidates"] = self.candidates.take(rows)
        if self.votes is not None:
            part["votes"] = self.votes[self.votes["item"].isin(part["ids"])]
        return dataclasses.replace(self, **part, trained=None, held_out=None)

    def rows_of(self, ids):
        """Returns the rows of ids, int64 `(n,)`; KeyError for others."""
        places = {name: row for row, name in enumerate(self.ids.tolist())}
        return np.array([places[str(name)] for name in ids], np.int64)


def stratified_subset(labels, size, seed=0):
    """Returns the places of a subset with the class shares of the whole.

    Every class gives its share of `size` rounded down; the places left over
    go to the largest remainders, at a tie to the lower class.

    Args:
        labels: Integers `(N,)`.
        size: Integer from 1 to N; exactly so many are returned, rising.
        seed: Integer >= 0.

    Example:

    >>> np.asarray([0, 0, 1, 1])[stratified_subset([0, 0, 1, 1], 2)].tolist()
    [0, 1]
    """
    labels = np.asarray(labels)
    size = check_number("size", size, 1, len(labels), whole=True)
    classes, counts = np.unique(labels, return_counts=True)
    # Whole-number arithmetic: no share can be lost to rounding.
    quota, remainder = np.divmod(counts * size, len(labels))
    order = np.argsort(-remainder, kind="stable")
    quota[order[: size - quota.sum()]] += 1
    rng = generator(seed, "subset")
    chosen = [
        rng.permutation(np.flatnonzero(labels == label))[:wanted]
        for label, wanted in zip(classes, quota, strict=True)
    ]
    return np.sort(np.concatenate(chosen)).astype(np.int64)


def holdout_split(ids, share, seed=0, copies=None):
    """Splits examples into a training and a held-out part.

    The split is a seeded permutation of the sorted ids. It is *not*
    stratified: training must not look at true labels, and where only
    candidate sets are known there are none.

    Args:
        ids: Strings `(N,)`, unique.
        share: Float in [0, 1), the held-out share, rounded to whole examples
            and at least one if it is above 0.
        seed: Integer >= 0.
        copies: Optional integers `(N,)`, equal for copies of one image. These
            stay on one side, so that the held-out part can be larger than
            `share` by a few copies.

    Returns:
        Two int64 arrays of places, both rising: the training part and the
        held-out part.

    Raises:
        ConfigError: `share` is out of range or leaves nothing to train on.

    Example:

    >>> train, held_out = holdout_split(["a", "b", "c", "d"], 0.25)
    >>> len(train), len(held_out)
    (3, 1)
    """
    ids = np.asarray(ids, str)
    share = check_number("share", share, 0, 1)
    count = int(np.floor(share * len(ids) + 0.5))
    count = max(count, 1) if share > 0 else 0
    order = np.argsort(ids, kind="stable")
    shuffled = order[generator(seed, "holdout").permutation(len(ids))]
    if copies is not None and count:
        # Copies follow the first of them.
        _, first, inverse = np.unique(
            np.asarray(copies)[shuffled], return_index=True, return_inverse=True
        )
        turn = first[inverse]
        by_turn = np.argsort(turn, kind="stable")
        shuffled, turn = shuffled[by_turn], turn[by_turn]
        count = int(np.searchsorted(turn, turn[count - 1], "right"))
    if count >= len(ids):
        raise ConfigError(
            f"Holding out {count} of {len(ids)} examples leaves none to train "
            f"on; choose a smaller share. Received: share={share}"
        )
    return np.sort(shuffled[count:]), np.sort(shuffled[:count])
