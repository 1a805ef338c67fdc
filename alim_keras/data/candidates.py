"""`CandidateSets`: which classes each example may have, joined by id.

Sets are kept as lists of classes (CSR), so that memory grows with the number
of candidates and not with the number of classes.
"""

import dataclasses
import functools
import hashlib
import warnings

import numpy as np

from alim_keras.data import candidate_file
from alim_keras.data import checks
from alim_keras.data.checks import row_ids
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import DataWarning
from alim_keras.errors import first_five
from alim_keras.errors import first_rows


@dataclasses.dataclass(frozen=True, eq=False)
class CandidateSets:
    """The candidate set of every example of a training set.

    Row i holds the classes `indices[indptr[i] : indptr[i + 1]]`. See also
    `from_dense`, `from_lists` and `from_pairs`.

    Args:
        ids: Strings `(num_examples,)`, unique.
        class_names: Strings `(num_classes,)`, unique.
        indptr: Integers `(num_examples + 1,)`.
        indices: Integers: the classes, ascending within a row.
        provenance: Dict of plain values: how the sets came about. It is kept
            in the file and shown, and is no part of the hash.
        source: String, the file the sets were read from, for messages.

    Raises:
        DataError: Shapes that do not fit, ids not unique or no UTF-8 text,
            an empty set, a class out of range.

    Example:

    >>> sets = CandidateSets.from_lists([[0], [0, 1]], ["a", "b"], ["x", "y"])
    >>> sets.select(["b", "a"]).dense().tolist()
    [[True, True], [True, False]]
    """

    ids: np.ndarray
    class_names: tuple
    indptr: np.ndarray
    indices: np.ndarray
    provenance: dict = dataclasses.field(default_factory=dict)
    source: str = "the candidate sets"

    def __post_init__(self):
        ids = np.array(self.ids, str)
        names = tuple(str(name) for name in self.class_names)
        indptr = np.array(self.indptr, np.int64)
        indices = np.asarray(self.indices)
        if ids.shape != (len(indptr) - 1,):
            raise DataError(
                f"{self.source}: one id for each set was expected. "
                f"Received: {ids.size} ids, {len(indptr) - 1} sets"
            )
        if len(set(names)) != len(names):
            raise DataError(
                f"{self.source}: the names of the classes must differ. "
                f"Received: {len(names)} names, {len(set(names))} different"
            )
        if not len(ids):
            raise DataError(f"{self.source}: there are no candidate sets")
        checks.check_text(self.source, "ids", ids)
        checks.check_text(self.source, "class names", np.array(names, str))
        if len(set(ids.tolist())) < len(ids):
            values, counts = np.unique(ids, return_counts=True)
            raise DataError(
                f"{self.source}: {np.sum(counts > 1)} ids occur more than "
                f"once: {first_five(values[counts > 1])}; every example needs "
                "one set"
            )
        checks.check_lists(indptr, indices, ids, len(names), self.source)
        indices = indices.astype(checks.class_type(len(names)))
        self._fill(ids, names, indptr, indices)

    def _fill(self, ids, names, indptr, indices):
        for array in (ids, indptr, indices):
            array.setflags(write=False)
        self.__dict__.update(
            ids=ids, class_names=names, indptr=indptr, indices=indices
        )

    @classmethod
    def from_dense(
        cls,
        sets,
        ids=None,
        class_names=None,
        provenance=None,
        source="the candidate sets",
    ):
        """Returns the sets of a multi-hot matrix.

        Args:
            sets: Array `(num_examples, num_classes)` of bool, or of numbers
                that are 0 or 1; no row is empty.
            ids: Defaults to `row_ids`.
            class_names: Defaults to the numbers of the classes.
            provenance: See the class.
            source: See the class.

        Raises:
            DataError: As of the class, or another value than 0 and 1.
        """
        sets = np.asarray(sets)
        if sets.ndim != 2:
            raise DataError(
                "A multi-hot matrix (num_examples, num_classes) was expected. "
                f"Received: shape={sets.shape}"
            )
        count, num_classes = sets.shape
        step = checks.rows_at_once(num_classes)
        blocks = (sets[start : start + step] for start in range(0, count, step))
        lists = checks.multi_hot_to_lists(blocks, num_classes, ids)
        ids = row_ids(count) if ids is None else ids
        names = range(num_classes) if class_names is None else class_names
        if len(names) != num_classes:
            raise DataError(
                f"{source}: one name for each of the {num_classes} classes "
                f"was expected. Received: {len(names)} names"
            )
        return cls(ids, names, *lists, provenance or {}, source)

    @classmethod
    def from_pairs(
        cls,
        rows,
        classes,
        ids,
        class_names,
        provenance=None,
        source="the candidate sets",
    ):
        """Returns the sets of pairs (row, class), in any order.

        Args:
            rows: Integers `(n,)`, places in `ids`.
            classes: Integers `(n,)`. A pair that is repeated counts once.
            ids: Strings `(num_examples,)`.
            class_names: Strings `(num_classes,)`.
            provenance: See the class.
            source: See the class.
        """
        width = max(len(class_names), 1)
        rows, classes = np.asarray(rows, np.int64), np.asarray(classes)
        if np.any((classes < 0) | (classes >= width)):
            checks.check_range(classes, rows, width, ids, 0)
        keys = np.unique(rows * width + classes.astype(np.int64))
        sizes = np.bincount(keys // width, minlength=len(ids))
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        return cls(
            ids, class_names, indptr, keys % width, provenance or {}, source
        )

    @classmethod
    def from_lists(cls, lists, ids=None, class_names=None):
        """Returns the sets of lists of class numbers, in any order.

        Args:
            lists: A list for each example. A class that is repeated counts
                once, with a `DataWarning`.
            ids: Defaults to `row_ids`.
            class_names: Strings, or their number. Defaults to the numbers up
                to the largest.

        Raises:
            DataError: As of the class, or a broken number.
        """
        rows = np.repeat(np.arange(len(lists)), [len(row) for row in lists])
        values = [value for row in lists for value in row]
        numbers = checks.class_numbers(values or np.zeros(0, int), rows, ids)
        if class_names is None:
            class_names = int(numbers.max(initial=0)) + 1
        if isinstance(class_names, int):
            class_names = range(class_names)
        sets = cls.from_pairs(
            rows,
            numbers,
            row_ids(len(lists)) if ids is None else ids,
            class_names,
        )
        short = np.flatnonzero(
            np.bincount(rows, minlength=len(sets)) > sets.sizes
        )
        if len(short):
            warnings.warn(
                f"{len(short)} candidate sets name a class more than once "
                f"({first_rows(short, ids)}); it counts once",
                DataWarning,
                stacklevel=2,
            )
        return sets

    def __len__(self):
        return len(self.ids)

    @property
    def shape(self):
        """Tuple (N, C)."""
        return (len(self), len(self.class_names))

    @property
    def num_classes(self):
        """Integer C."""
        return len(self.class_names)

    @functools.cached_property
    def sizes(self):
        """int64 `(N,)`: how many classes each set has."""
        return np.diff(self.indptr)

    @property
    def nbytes(self):
        """Integer, bytes of the sets in memory, without ids and names."""
        return self.indptr.nbytes + self.indices.nbytes

    def rows(self, index):
        """Returns the multi-hot rows of an index array, float32 `(B, C)`."""
        index = np.asarray(index)
        rows = np.zeros((len(index), self.num_classes), np.float32)
        places, owners = self._places(index)
        rows[owners, self.indices[places]] = 1.0
        return rows

    def dense(self):
        """Returns all sets as a multi-hot bool array `(N, C)`."""
        sets = np.zeros(self.shape, bool)
        sets[np.repeat(np.arange(len(self)), self.sizes), self.indices] = True
        return sets

    def members(self, row):
        """Returns the classes of one example, in rising order."""
        return self.indices[self.indptr[row] : self.indptr[row + 1]]

    def contains(self, rows, labels):
        """Returns whether the sets of rows hold labels, bool `(n,)`.

        Args:
            rows: Integers `(n,)`.
            labels: Integers `(n,)`; those outside 0..C-1 are in no set.
        """
        rows, labels = np.asarray(rows, np.int64), np.asarray(labels, np.int64)
        places, owners = self._places(rows)
        hits = owners[self.indices[places] == labels[owners]]
        return np.bincount(hits, minlength=len(rows)) > 0

    def _places(self, index):
        """Returns where the classes of rows stand, and whose each is."""
        sizes = self.sizes[index]
        owners = np.repeat(np.arange(len(index)), sizes)
        before = np.cumsum(sizes) - sizes
        places = np.arange(len(owners)) + np.repeat(
            self.indptr[index] - before, sizes
        )
        return places, owners

    def take(self, rows):
        """Returns the sets of rows, in their order.

        Args:
            rows: Integers `(n,)`, each once, a slice or a bool mask.
        """
        rows = np.arange(len(self))[rows]
        provenance = dict(self.provenance)
        if len(rows) < len(self):
            # These two were counted over all examples.
            for name in ("realised_noise", "left_clean"):
                provenance.pop(name, None)
            provenance["selected_from"] = len(self)
        places, _ = self._places(rows)
        indptr = np.concatenate([[0], np.cumsum(self.sizes[rows])])
        part = object.__new__(CandidateSets)
        part.__dict__.update(provenance=provenance, source=self.source)
        # A part of sound sets is sound; checking a million ids takes seconds.
        part._fill(
            self.ids[rows], self.class_names, indptr, self.indices[places]
        )
        return part

    def rows_of(self, ids, where="the images"):
        """Returns the rows of ids, int64 `(n,)`.

        Args:
            ids: Strings `(n,)`, unique.
            where: String, the file or object the ids come from.

        Raises:
            DataError: Some ids have no set, or occur twice.
        """
        ids = np.asarray(ids, str).reshape(-1)
        if np.array_equal(self.ids, ids):
            return np.arange(len(ids))
        place = {name: row for row, name in enumerate(self.ids.tolist())}
        rows = [place.get(name, -1) for name in ids.tolist()]
        rows = np.array(rows, np.int64)
        missing = rows < 0
        if missing.any():
            hint = "make the ids of both the same"
            if np.array_equal(self.ids, row_ids(len(self))):
                hint = (
                    "these sets have no ids, only the numbers of their rows; "
                    "give an .npz file with ids and sets, or a table with an "
                    "id column"
                )
            raise DataError(
                f"{missing.sum()} of the {len(ids)} examples in {where} have "
                f"no candidate set among the {len(self)} in {self.source}: "
                f"{first_five(ids[missing][:6])}; {hint}"
            )
        if len(set(rows.tolist())) != len(ids):
            raise DataError(
                f"{where}: {len(ids) - len(np.unique(ids))} of {len(ids)} ids "
                "repeat another; every example needs an id of its own"
            )
        return rows

    def select(self, ids, where="the images"):
        """Returns the sets of ids, in their order; see `rows_of`."""
        rows = self.rows_of(ids, where)
        is_whole = np.array_equal(rows, np.arange(len(self)))
        return self if is_whole else self.take(rows)

    def with_ids(self, ids):
        """Returns the same sets, joined by place to other ids `(N,)`."""
        return dataclasses.replace(self, ids=ids)

    def replace(self, rows, labels):
        """Returns the sets where those of rows hold one label only.

        Args:
            rows: Integers `(n,)`.
            labels: Integers `(n,)` in 0..C-1.
        """
        keep = np.ones(len(self), bool)
        keep[rows] = False
        owners = np.repeat(np.arange(len(self)), self.sizes)
        stays = keep[owners]
        return CandidateSets.from_pairs(
            np.concatenate([owners[stays], rows]),
            np.concatenate([self.indices[stays], labels]),
            self.ids,
            self.class_names,
            self.provenance,
            self.source,
        )

    def blocks(self, order=None):
        """Yields all multi-hot rows, float32, in blocks that fit in memory."""
        order = np.arange(len(self)) if order is None else order
        step = checks.rows_at_once(self.num_classes)
        for start in range(0, len(self), step):
            yield self.rows(order[start : start + step])

    @functools.cached_property
    def content_hash(self):
        """SHA-256 of ids, class names and sets, 64 hexadecimal digits.

        The rows enter in the order of their ids, so the order in which they
        are stored does not matter; the order of the classes does. The
        provenance does not enter.
        """
        digest = hashlib.sha256()

        def absorb(data):
            digest.update(len(data).to_bytes(8, "little") + data)

        absorb(b"alim_keras candidate sets 1")
        absorb(str(self.shape).encode())
        for name in self.class_names:
            absorb(name.encode())
        encoded = [name.encode() for name in self.ids.tolist()]
        order = sorted(range(len(encoded)), key=encoded.__getitem__)
        for row in order:
            absorb(encoded[row])
        size = len(self) * -(-self.num_classes // 8)
        digest.update(size.to_bytes(8, "little"))
        for block in self.blocks(np.array(order)):
            digest.update(np.packbits(block > 0, axis=1).tobytes())
        return digest.hexdigest()

    def statistics(self, labels=None):
        """Returns counts and shares that show what the sets give away.

        Args:
            labels: Optional integers `(num_examples,)`, the true classes in
                the order of `ids`, -1 where not known; for reporting only.

        Returns:
            Dict: num_examples, num_classes, size_min, size_mean, size_max,
            share_single, share_full, asked_ambiguity, asked_noise,
            realised_noise and left_clean (how many could not be made noisy);
            None where it is not known.
        """
        noise = self.provenance.get("realised_noise")
        if labels is not None:
            labels = np.asarray(labels)
            if labels.shape != (len(self),):
                raise DataError(
                    "`labels` must have one entry for each set. Received: "
                    f"shape={labels.shape}, {len(self)} sets"
                )
            rows = np.flatnonzero(labels >= 0)
            if len(rows):
                noise = 1.0 - float(self.contains(rows, labels[rows]).mean())
        return {
            "num_examples": len(self),
            "num_classes": self.num_classes,
            "size_min": int(self.sizes.min()),
            "size_mean": float(self.sizes.mean()),
            "size_max": int(self.sizes.max()),
            "share_single": float(np.mean(self.sizes == 1)),
            "share_full": float(np.mean(self.sizes == self.num_classes)),
            "asked_ambiguity": self.provenance.get("ambiguity"),
            "asked_noise": self.provenance.get("noise_level"),
            "realised_noise": noise,
            "left_clean": self.provenance.get("left_clean"),
        }

    def describe(self, labels=None):
        """Returns the statistics, the settings and the hash as text."""
        counts = self.statistics(labels)
        origin = self.provenance.get

        def show(name, form="{:.4f}"):
            value = counts[name]
            return "not known" if value is None else form.format(value)

        smallest, largest = counts["size_min"], counts["size_max"]
        lines = {
            "candidate sets": f"{len(self)} examples, {self.num_classes} "
            f"classes, from {self.source}",
            "made by": f"protocol {origin('protocol')}, stream "
            f"{origin('stream')}, seed {origin('seed')}",
            "set size": f"min {smallest}, mean {counts['size_mean']:.3f}, max "
            f"{largest}",
            "one class only": f"{counts['share_single']:.2%} (right or wrong, "
            "the label is given away)",
            "all classes": f"{counts['share_full']:.2%} (they say nothing)",
            "ambiguity q": f"asked {show('asked_ambiguity')}",
            "noise eta": f"asked {show('asked_noise')}, realised "
            f"{show('realised_noise')}",
            "left clean": f"{show('left_clean', '{}')} (all classes in the "
            "set, so no class could be swapped in)",
            "content hash": self.content_hash,
        }
        if origin("protocol") is None:
            for name in ("made by", "ambiguity q", "left clean"):
                lines.pop(name)
            lines["noise eta"] = f"realised {show('realised_noise')}"
        return "\n".join(f"{name:<16}{value}" for name, value in lines.items())

    def save(self, path):
        """Writes the sets to an .npz file; see docs/data.md."""
        if not str(path).endswith(".npz"):
            raise ConfigError(
                "The file of candidate sets must end in .npz. "
                f"Received: path={str(path)!r}"
            )
        candidate_file.write(path, self)

    @classmethod
    def load(cls, path):
        """Reads an .npz file written by `save`, or one made by hand.

        A file made by hand needs `ids` (strings) and `sets` (multi-hot,
        `(num_examples, num_classes)`), and may have `class_names`.

        Raises:
            DataError: The file is missing, empty, damaged or has other
                contents than its stored hash says.
        """
        contents, stored = candidate_file.read(path)
        loaded = cls(**contents)
        if stored not in (None, loaded.content_hash):
            raise DataError(
                f"{path}: the contents do not fit the stored hash, the file "
                f"was changed or damaged; write it again. Received: stored "
                f"{stored[:12]}, computed {loaded.content_hash[:12]}"
            )
        return loaded
