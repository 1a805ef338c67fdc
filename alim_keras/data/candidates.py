"""`CandidateSets`: which classes each example may have, joined by id."""

import dataclasses
import functools
import hashlib
import json

import numpy as np

from alim_keras import files
from alim_keras.data import checks
from alim_keras.errors import DataError

# The hash makes multi-hot rows of about this many entries at once.
_BLOCK = 1 << 24


@dataclasses.dataclass(frozen=True, eq=False)
class CandidateSets:
    """The candidate set of every example of a training set.

    Sets are plain, or graded: then each candidate has a weight in (0, 1], and
    `S` of the paper's equations is real-valued.

    Args:
        ids: Strings `(N,)`, unique.
        class_names: Strings `(C,)`, unique.
        matrix: S, `(N, C)`: 0, and 1 or weights in (0, 1]. It is kept as a
            `scipy.sparse.csr_array` of float32.
        provenance: Dict of plain values: how the sets came about.
        source: String, the file the sets were read from, for messages.

    Raises:
        DataError: Shapes that do not fit, ids not unique or no UTF-8 text,
            an empty set, or a weight out of range.

    Example:

    >>> sets = CandidateSets.from_dense([[1, 0], [1, 1]], ids=["a", "b"])
    >>> sets.select(["b", "a"]).dense().tolist()
    [[True, True], [True, False]]
    """

    ids: np.ndarray
    class_names: tuple
    matrix: object
    provenance: dict = dataclasses.field(default_factory=dict)
    source: str = "the candidate sets"

    def __post_init__(self):
        ids, names = np.array(self.ids, str), tuple(map(str, self.class_names))
        matrix = _csr(self.matrix, dtype=np.float32, copy=True)
        matrix.sum_duplicates()
        matrix.indices = matrix.indices.astype(np.int32)
        matrix.indptr = matrix.indptr.astype(np.int32)
        if matrix.shape[1] != len(names):
            raise DataError(
                f"{self.source}: {matrix.shape[1]} columns, but there are "
                f"{len(names)} classes"
            )
        if ids.shape != matrix.shape[:1] or not len(ids):
            raise DataError(
                f"{self.source}: one id for each set was expected, and at "
                f"least one. Received: {ids.size} ids, {matrix.shape[0]} sets"
            )
        checks.check_names(ids, self.source)
        checks.check_names(np.array(names, str), self.source, "class names")
        sizes = np.diff(matrix.indptr)
        checks.refuse(ids[sizes == 0], self.source, "candidate sets are empty")
        wrong = ~((matrix.data > 0) & (matrix.data <= 1))
        odd = np.unique(np.repeat(np.arange(len(ids)), sizes)[wrong])
        where = "sets have weights outside (0, 1]"
        checks.refuse(ids[odd], self.source, where)
        for array in (ids, matrix.data, matrix.indices, matrix.indptr):
            array.setflags(write=False)
        self.__dict__.update(ids=ids, class_names=names, matrix=matrix)

    @classmethod
    def from_dense(cls, sets, ids=None, class_names=None, graded=False, **more):
        """Returns the sets of a multi-hot matrix `(N, C)`, bool or 0 and 1.

        With `graded` they are weights in [0, 1], 0 for what is no candidate.
        `ids` default to "row_00000", ..., `class_names` to the class numbers;
        `more` are `provenance` and `source`.
        """
        sets = np.asarray(sets)
        if sets.ndim != 2 or sets.dtype.kind not in "biuf":
            raise DataError(
                f"Expected sets (N, C). Received: {sets.dtype}, {sets.shape}"
            )
        ids = checks.default_ids(len(sets), "row") if ids is None else ids
        names = range(sets.shape[1]) if class_names is None else class_names
        if not graded:
            wrong = zip(*np.nonzero((sets != 0) & (sets != 1)))
            wrong = [f"{ids[row]} ({sets[row, n]})" for row, n in wrong]
            checks.refuse(wrong, "multi-hot sets", "values are not 0 or 1")
        return cls(ids, names, sets, **more)

    @classmethod
    def from_pairs(cls, rows, classes, ids, class_names, weights=None, **more):
        """Returns the sets of pairs (row, class), in any order.

        `rows` and `classes` are integers `(n,)`, `weights` floats `(n,)` or
        None; a pair that is repeated counts once.
        """
        shape = (len(ids), len(class_names))
        classes = checks.class_numbers(classes, rows, ids, shape[1])
        values = np.ones(len(classes)) if weights is None else weights
        matrix = _csr((values, (np.asarray(rows, int), classes)), shape)
        # Those of repeated pairs were added up.
        matrix.data = np.minimum(matrix.data, 1)
        return cls(ids, class_names, matrix, **more)

    @classmethod
    def from_lists(cls, lists, ids=None, class_names=None, **more):
        """Returns the sets of lists of class numbers; see `from_pairs`."""
        rows = np.repeat(np.arange(len(lists)), [len(row) for row in lists])
        classes = np.array([number for row in lists for number in row])
        if class_names is None:
            class_names = range(int(classes.max(initial=0)) + 1)
        ids = checks.default_ids(len(lists), "row") if ids is None else ids
        return cls.from_pairs(rows, classes, ids, class_names, **more)

    def __len__(self):
        return len(self.ids)

    @property
    def num_classes(self):
        """Integer C."""
        return len(self.class_names)

    @property
    def shape(self):
        """Tuple (N, C)."""
        return (len(self), self.num_classes)

    @functools.cached_property
    def weights(self):
        """float32, one for each of `indices`; None of plain sets."""
        return None if (self.matrix.data == 1).all() else self.matrix.data

    @property
    def indices(self):
        """int32, the classes of all sets, rising within each."""
        return self.matrix.indices

    @property
    def indptr(self):
        """int32 `(N + 1,)`: where in `indices` each set begins and ends."""
        return self.matrix.indptr

    @property
    def shares(self):
        """float64, one for each of `indices`: S over the sum of its row."""
        weights = self.matrix.data.astype(float)
        total = np.add.reduceat(weights, self.indptr[:-1])
        return weights / np.repeat(total, self.sizes)

    @functools.cached_property
    def sizes(self):
        """int32 `(N,)`: how many classes each set has."""
        return np.diff(self.indptr)

    def rows(self, index):
        """Returns S of an index array, float32 `(B, C)`."""
        return self.matrix[np.asarray(index)].toarray()

    def dense(self):
        """Returns all sets as a multi-hot bool array `(N, C)`."""
        return self.matrix.astype(bool).toarray()

    def members(self, row):
        """Returns the classes of one example, in rising order."""
        return self.indices[self.indptr[row] : self.indptr[row + 1]]

    def contains(self, rows, labels):
        """Returns whether the sets of rows hold labels, bool `(n,)`."""
        rows, labels = np.asarray(rows, int), np.asarray(labels)
        part = self.matrix[rows]
        owners = np.repeat(np.arange(len(rows)), np.diff(part.indptr))
        hits = owners[part.indices == labels[owners]]
        return np.bincount(hits, minlength=len(rows)) > 0

    def take(self, rows):
        """Returns the sets of rows (integers, a slice or a mask)."""
        matrix, provenance = self.matrix[rows], dict(self.provenance)
        if matrix.shape[0] < len(self):
            # These two were counted over all examples.
            provenance.pop("realised_noise", None)
            provenance.pop("left_clean", None)
        return dataclasses.replace(
            self, matrix=matrix, ids=self.ids[rows], provenance=provenance
        )

    def select(self, ids, where="the images"):
        """Returns the sets of unique ids, or raises `DataError` for others."""
        ids = np.asarray(ids, str).reshape(-1)
        if np.array_equal(self.ids, ids):
            return self
        checks.check_names(ids, where)
        places = {name: row for row, name in enumerate(self.ids.tolist())}
        rows = np.array([places.get(name, -1) for name in ids.tolist()], int)
        checks.refuse(
            ids[rows < 0],
            where,
            f"of {len(ids)} examples have no candidate set among the "
            f"{len(self)} in {self.source}",
            "; make the ids of both the same",
        )
        return self.take(rows)

    def replace(self, rows, labels):
        """Returns the sets where those of rows hold just one label each."""
        stays = np.ones((len(self), 1))
        stays[rows] = 0
        single = _csr((np.ones(len(rows)), (rows, labels)), self.shape)
        matrix = self.matrix.multiply(stays).tocsr() + single
        return dataclasses.replace(self, matrix=matrix)

    @functools.cached_property
    def content_hash(self):
        """SHA-256 of ids, class names, sets and weights; see docs/data.md."""
        digest = hashlib.sha256()

        def absorb(data):
            digest.update(len(data).to_bytes(8, "little") + data)

        ids = [name.encode() for name in self.ids.tolist()]
        order = sorted(range(len(ids)), key=ids.__getitem__)
        absorb(b"alim_keras candidate sets 1")
        absorb(str(self.shape).encode())
        for name in self.class_names:
            absorb(name.encode())
        for row in order:
            absorb(ids[row])
        size = len(self) * -(-self.num_classes // 8)
        digest.update(size.to_bytes(8, "little"))
        step = max(1, _BLOCK // self.num_classes)
        for start in range(0, len(self), step):
            block = self.rows(order[start : start + step]) > 0
            digest.update(np.packbits(block, axis=1).tobytes())
        if self.weights is not None:
            absorb(self.matrix[order].data.astype("<f4").tobytes())
        return digest.hexdigest()

    def realised_noise(self, labels=None):
        """Returns the share of sets without their label, -1 if not known."""
        labels = np.asarray([] if labels is None else labels)
        rows = np.flatnonzero(labels >= 0)
        if not len(rows):
            return self.provenance.get("realised_noise")
        return 1.0 - float(self.contains(rows, labels[rows]).mean())

    def describe(self, labels=None):
        """Returns sizes, noise, how they were made and the hash as text."""
        sizes, noise = self.sizes, self.realised_noise(labels)
        lines = {
            "candidate sets": f"{len(self)} examples, {self.num_classes} "
            f"classes, from {self.source}",
            "set size": f"min {sizes.min()}, mean {sizes.mean():.3f}, max "
            f"{sizes.max()}",
            "one class only": f"{np.mean(sizes == 1):.2%} (right or wrong, the "
            "label is given away)",
            "all classes": f"{np.mean(sizes == self.num_classes):.2%} (they "
            "say nothing)",
            **self.provenance,
            "realised_noise": "not known" if noise is None else f"{noise:.4f}",
        }
        if self.weights is not None:
            lines["mean weight"] = f"{self.weights.mean():.4f}"
        if "left_clean" in lines:
            why = "sets of all classes, which cannot be made wrong"
            lines["left_clean"] = f"{lines['left_clean']} ({why})"
        lines["content hash"] = self.content_hash
        return "\n".join(
            f"{name.replace('_', ' '):<16}{value}"
            for name, value in lines.items()
        )

    def save(self, path):
        """Writes an .npz file; equal contents give equal bytes."""
        arrays = {
            "ids": self.ids,
            "class_names": np.array(self.class_names, str),
            "indptr": self.indptr,
            "indices": self.indices,
            "provenance": json.dumps(self.provenance, sort_keys=True),
            "content_hash": self.content_hash,
        }
        if self.weights is not None:
            arrays["weights"] = self.weights
        with files.replacing(path) as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path):
        """Reads a file that `save` wrote; `DataError` if it was changed."""
        arrays = checks.read_npz(path)
        if "content_hash" not in arrays:
            raise DataError(
                f"{path}: a file that CandidateSets.save wrote was expected. "
                f"Received: the arrays {sorted(arrays)}"
            )
        try:
            ids, sizes = arrays["ids"], np.diff(arrays["indptr"])
            loaded = cls.from_pairs(
                np.repeat(np.arange(len(ids)), sizes),
                arrays["indices"],
                ids,
                arrays["class_names"],
                arrays.get("weights"),
                provenance=json.loads(str(arrays["provenance"])),
                source=str(path),
            )
            if arrays["content_hash"] == loaded.content_hash:
                return loaded
        except (KeyError, ValueError):
            pass  # Lists that do not fit, and what the sets themselves refuse.
        raise DataError(
            f"{path}: the contents do not fit the stored hash, the file was "
            "changed or damaged; write it again"
        )


def _csr(*args, **options):
    # scipy takes half a second to import.
    import scipy.sparse

    return scipy.sparse.csr_array(*args, **options)
