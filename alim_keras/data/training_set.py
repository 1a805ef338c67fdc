"""`TrainingSet`: what is trained on and tested on, and parts of it."""

import dataclasses
import functools

import numpy as np

from alim_keras import errors
from alim_keras.data import checks
from alim_keras.data.candidates import CandidateSets
from alim_keras.data.images import DiskImages
from alim_keras.data.images import channel_statistics

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
        test_images, test_labels, test_ids: Images `(n, ...)`, int64 `(n,)` and
            strings `(n,)`. There may be none.
        candidates: `CandidateSets` in the order of `ids`, or None yet.
        labels: int64 `(N,)`, the true classes, -1 where they are not known,
            for simulated sets and reports; None if none is.
        known: int64 `(N,)`, those of them that somebody looked up, else -1;
            or None.
        known_as_sets: Whether `known` stands in place of the items' sets.
        votes: Data frame of item, annotator, label and confidence, or None.
        mean, std: Tuples of floats, one per channel, in units of [0, 1].
            Default to those of the images.
        superclasses, protocol: int64 `(C,)` or None, and a string: how the
            published tables simulate sets for it.
        source: String, where it was read from.
        kind: `"images"` or `"features"`.
        pictures, backbone: Of features, the images and the
            `networks.Backbone` that they were made of; or None.
        notes: Tuple of strings: how the data were read.
        scan, file_rows: What `images.scan` says of all files, and int64 `(N,)`,
            the row in it of each example; None where images are no files.
        listed: Strings, all ids before a part was taken. Defaults to `ids`.
        trained, held_out: int64, the rows that are trained on, by default
            all, and those that are not.

    Raises:
        DataError: Ids, images or labels that are unsound or do not fit.
        ConfigError: Candidate sets of other classes.

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
        names = tuple(map(str, self.class_names))
        new = {"class_names": names, **self._checked("", len(names))}
        new |= self._checked("test_", len(names))
        shape, test_shape = new["images"].shape, new["test_images"].shape
        if shape[1:] != test_shape[1:]:
            raise errors.DataError(
                f"{self.source}: training and test images differ in shape. "
                f"Received: {shape[1:]} and {test_shape[1:]}"
            )
        sets = self.candidates
        if sets is not None and sets.class_names != names:
            theirs, ours = map(errors.first_five, (sets.class_names, names))
            raise errors.ConfigError(
                f"{sets.source} is about the classes {theirs}, {self.name} has "
                f"{ours}; use sets of the same data"
            )
        if sets is not None and not np.array_equal(sets.ids, new["ids"]):
            raise errors.DataError(
                f"{sets.source}: not in the order of the ids"
            )
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
        labels = np.full(len(ids), UNKNOWN) if labels is None else labels
        if not len(images) == len(labels) == len(ids):
            raise errors.DataError(
                f"{where}: images, labels and ids must be as many. Received: "
                f"{len(images)} images, {len(labels)} labels, {len(ids)} ids"
            )
        checks.check_names(ids, where)
        with checks.in_file(where):
            if self.kind == "features":
                images = checks.validate_features(images, ids)
            # Files were looked at by whoever listed them.
            elif len(images) and not isinstance(images, DiskImages):
                images = checks.validate_images(images, ids)
            labels = checks.validate_labels(
                labels, num_classes, ids, not prefix
            )
        if not prefix and (labels == UNKNOWN).all():
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

        `notes` count sets without an image; `DataError` for the reverse.
        """
        chosen = candidates.select(self.ids, where=self.name)
        extra, notes = np.setdiff1d(candidates.ids, self.listed), self.notes
        if len(extra):
            notes += (
                f"{len(extra)} of {len(candidates)} sets in "
                f"{candidates.source} have ids that no image has: "
                f"{errors.first_five(extra)}",
            )
        return dataclasses.replace(self, candidates=chosen, notes=notes)

    def take(self, rows):
        """Returns the data with the training examples at rows `(n,)` only."""
        part = {"trained": None, "held_out": None}
        for name in "ids images pictures labels known file_rows".split():
            value = getattr(self, name)
            part[name] = None if value is None else value[rows]
        if self.candidates is not None:
            part["candidates"] = self.candidates.take(rows)
        if self.votes is not None:
            part["votes"] = self.votes[self.votes["item"].isin(part["ids"])]
        return dataclasses.replace(self, **part)

    def rows_of(self, ids):
        """Returns the rows of ids, int64 `(n,)`; KeyError for others."""
        places = {name: row for row, name in enumerate(self.ids.tolist())}
        return np.array([places[str(name)] for name in ids], np.int64)


def stratified_subset(labels, size, seed=0):
    """Returns the places of a subset with the class shares of the whole.

    They are `size`, from 1 to N, and rise. Every class of the integers
    `labels` `(N,)` gives its share of `size` rounded down; the places left
    over go to the largest remainders, at a tie to the lower class.

    Example:

    >>> np.asarray([0, 0, 1, 1])[stratified_subset([0, 0, 1, 1], 2)].tolist()
    [0, 1]
    """
    labels = np.asarray(labels)
    size = errors.check_number("size", size, 1, len(labels), whole=True)
    classes, counts = np.unique(labels, return_counts=True)
    # Whole-number arithmetic: no share can be lost to rounding.
    quota, remainder = np.divmod(counts * size, len(labels))
    order = np.argsort(-remainder, kind="stable")
    quota[order[: size - quota.sum()]] += 1
    rng = checks.generator(seed, "subset")
    chosen = [
        rng.permutation(np.flatnonzero(labels == label))[:wanted]
        for label, wanted in zip(classes, quota, strict=True)
    ]
    return np.sort(np.concatenate(chosen))


def holdout_split(ids, share, seed=0, copies=None):
    """Returns the places of a training and of a held-out part, both rising.

    The split is a seeded permutation of the sorted ids. It is *not*
    stratified: training must not look at true labels. `copies`, integers
    `(N,)`, are equal for copies of one image, which stay on one side: a few
    more than `share` may then be held out.

    Raises:
        ConfigError: `share` is not in [0, 1) or leaves nothing to train on.

    Example:

    >>> train, held_out = holdout_split(["a", "b", "c", "d"], 0.25)
    >>> len(train), len(held_out)
    (3, 1)
    """
    ids = np.asarray(ids, str)
    share = errors.check_number("share", share, 0, 1)
    count = int(np.floor(share * len(ids) + 0.5))
    count = max(count, 1) if share > 0 else 0
    order = np.argsort(ids, kind="stable")
    shuffled = order[checks.generator(seed, "holdout").permutation(len(ids))]
    if copies is not None and count:
        # Copies follow the first of them.
        first, own = {}, np.asarray(copies)[shuffled].tolist()
        turn = [first.setdefault(copy, n) for n, copy in enumerate(own)]
        shuffled, turn = shuffled[np.argsort(turn, kind="stable")], sorted(turn)
        count = int(np.searchsorted(turn, turn[count - 1], "right"))
    if count >= len(ids):
        raise errors.ConfigError(
            f"Holding out {count} of {len(ids)} examples leaves none to train "
            f"on; choose a smaller share. Received: share={share}"
        )
    return np.sort(shuffled[count:]), np.sort(shuffled[:count])
