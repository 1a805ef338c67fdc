"""Candidate sets in memory as lists of classes, not as a multi-hot matrix."""

import numpy as np

from alim_keras.data.messages import first_five
from alim_keras.errors import DataError

# Rows of a matrix are looked through in blocks of about this many entries.
_BLOCK = 1 << 24


class SparseCandidates:
    """The candidate sets of N examples: the classes of each, end to end.

    It takes `2 |S|` bytes per example (4 above 32767 classes) and 8 more, a
    multi-hot bool matrix takes C. `train_dataset` and `eval_dataset` take it
    in the matrix's place.

    Args:
        starts: Integers `(N + 1,)`: row i holds `members[starts[i] : starts[i
            + 1]]`.
        members: Integers: the classes, in ascending order within a row.
        num_classes: C.

    Raises:
        DataError: If an example has no class, one twice or one out of range,
            or `starts` does not fit `members`.

    Example:

    >>> sets = SparseCandidates.from_multi_hot([[1, 0, 1], [0, 1, 0]])
    >>> sets.rows([1, 0]).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """

    def __init__(self, starts, members, num_classes):
        small = num_classes <= np.iinfo("int16").max
        self._starts = np.asarray(starts, "int64")
        self._members = np.asarray(members)
        self._num_classes = int(num_classes)
        self._check()
        self._members = self._members.astype("int16" if small else "int32")

    def _check(self):
        starts, members = self._starts, self._members
        if (
            starts.ndim != 1
            or not len(starts)
            or starts[0] != 0
            or starts[-1] != len(members)
        ):
            raise DataError(
                "`starts` must lead from 0 to the number of `members`. "
                f"Received: {starts[:1].tolist()} to {starts[-1:].tolist()}, "
                f"{len(members)} members"
            )
        empty = np.flatnonzero(np.diff(starts) < 1)
        if len(empty):
            raise DataError(
                f"{len(empty)} candidate sets are empty, rows "
                f"{first_five(empty)}; give each at least one class"
            )
        wrong = (members < 0) | (members >= self._num_classes)
        # A row's first class may be below the last one of the row before.
        inner = np.ones(len(members), bool)
        inner[starts[:-1]] = False
        wrong[1:] |= inner[1:] & (members[1:] <= members[:-1])
        if wrong.any():
            rows = np.searchsorted(starts, np.flatnonzero(wrong), "right") - 1
            raise DataError(
                f"Classes must lie in 0..{self._num_classes - 1} and ascend "
                f"within a set. Received: others in rows "
                f"{first_five(np.unique(rows))}"
            )

    @classmethod
    def from_multi_hot(cls, sets):
        """Returns the sets of a matrix `(N, C)`; candidates are not 0."""
        sets = np.asarray(sets)
        members, sizes = [], []
        step = max(1, _BLOCK // sets.shape[1])
        small = "int16" if sets.shape[1] <= np.iinfo("int16").max else "int32"
        for start in range(0, len(sets), step):
            rows, columns = np.nonzero(sets[start : start + step])
            members.append(columns.astype(small))
            count = min(step, len(sets) - start)
            sizes.append(np.bincount(rows, minlength=count))
        starts = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
        return cls(starts, np.concatenate(members), sets.shape[1])

    @classmethod
    def from_lists(cls, lists, num_classes):
        """Returns the sets of lists of class numbers, in any order."""
        lists = [np.sort(np.asarray(row, "int64")) for row in lists]
        starts = np.concatenate([[0], np.cumsum([len(row) for row in lists])])
        return cls(starts, np.concatenate(lists), num_classes)

    @property
    def shape(self):
        """Tuple (N, C)."""
        return (len(self), self._num_classes)

    @property
    def nbytes(self):
        """Bytes in memory."""
        return self._starts.nbytes + self._members.nbytes

    @property
    def sizes(self):
        """Integers `(N,)`: how many classes each set has."""
        return np.diff(self._starts)

    def __len__(self):
        return len(self._starts) - 1

    def members(self, row):
        """Returns the classes of one example, in ascending order."""
        return self._members[self._starts[row] : self._starts[row + 1]]

    def rows(self, index):
        """Returns the multi-hot rows of an index array, float32 `(B, C)`."""
        index = np.asarray(index)
        rows = np.zeros((len(index), self._num_classes), "float32")
        places, owners = self._places(index)
        rows[owners, self._members[places]] = 1.0
        return rows

    def __getitem__(self, index):
        """Returns the `SparseCandidates` of an index array or a slice."""
        index = np.arange(len(self))[index]
        places, _ = self._places(index)
        starts = np.concatenate([[0], np.cumsum(self.sizes[index])])
        return SparseCandidates(
            starts, self._members[places], self._num_classes
        )

    def _places(self, index):
        """Returns where some rows' members stand, and whose each is."""
        sizes = self._starts[index + 1] - self._starts[index]
        owners = np.repeat(np.arange(len(index)), sizes)
        before = np.cumsum(sizes) - sizes
        places = np.arange(len(owners)) + np.repeat(
            self._starts[index] - before, sizes
        )
        return places, owners
