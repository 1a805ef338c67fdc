"""The pseudo labels of all training examples, dense or sparse, and lambda."""

import keras
import numpy as np

from alim_keras import backend
from alim_keras import ops
from alim_keras.errors import ConfigError
from alim_keras.errors import check_number
from alim_keras.layers.memories import Memory

# Rows are read out of a table in blocks of about this many numbers.
_BLOCK = 1 << 20
# Class numbers up to this one are exact in half precision.
_EXACT_IN_HALF = 2048


@keras.saving.register_keras_serializable(package="alim_keras")
class PseudoLabelTable(Memory):
    """The pseudo labels `w` of all N examples, and what ALIM sets them by.

    A row that was never touched is zero and counts as `S / sum S`. Every device
    holds it all: `4 N C` bytes for the rows, `8 N` for the numbers of each
    example. Where that is too much, `SparsePseudoLabelTable` has the same
    interface. A step touches the rows of its batch only.

    Args:
        num_examples: N.
        num_classes: C.

    Weights (none trainable):
        table: `(N, C)`; rows sum to 1, or are zero if untouched.
        momentum: Scalar phi of `w <- phi w + (1 - phi) Normalize(...)`.
        use_onehot: Scalar, 1.0 for Eq. 4 and 0.0 for Eq. 5.
        scale_factor: Scalar K of Eq. 5.
        update_in_step: Scalar, 0.0 if rows change between epochs only.
        lam: Scalar lambda of Eq. 3.
        lam_factor: `(N,)`, of lambda for each example: 0 keeps its set.
        noise_rate: Scalar eta in force, where one was given or estimated.
        candidate_ratio: `(N,)`, Eq. 6's value of each example in this epoch;
            `nan` where it was not seen yet.

    >>> table = alim_keras.layers.PseudoLabelTable(4, 3)
    >>> table.rows([2], [[1.0, 0.0, 1.0]])
    [[0.5, 0.0, 0.5]]
    """

    arguments = ("num_examples", "num_classes")
    # Whether a table is small enough to be copied to the host at any time.
    is_dense = True

    def __init__(self, num_examples, num_classes, **kwargs):
        super().__init__(num_examples, num_classes, **kwargs)
        # The variables that hold the rows, N long each.
        self.storage = self.make_storage()
        each = (num_examples,)
        self.candidate_ratio = self.frozen("candidate_ratio", each, np.nan)
        self.lam = self.frozen("lam")
        self.lam_factor = self.frozen("lam_factor", each, "ones")
        self.noise_rate = self.frozen("noise_rate")
        self.momentum = self.frozen("momentum")
        self.use_onehot = self.frozen("use_onehot", (), "ones")
        self.scale_factor = self.frozen("scale_factor", (), "ones")
        self.update_in_step = self.frozen("update_in_step", (), "ones")

    # How rows are stored: overridden by another form of storage.

    def make_storage(self):
        """Makes the variables of the rows; returns them as a tuple."""
        shape = (self.num_examples, self.num_classes)
        self.table = self.frozen("table", shape)
        return (self.table,)

    def pack(self, rows, candidates):
        """Returns rows `(B, C)` as they are stored, a tensor per variable."""
        return (rows,)

    def unpack(self, *stored):
        """Returns stored rows as float32 `(B, C)`; zero where untouched."""
        return stored[0]

    def _read(self, index):
        stored = (backend.gather_rows(part, index) for part in self.storage)
        return self.unpack(*stored)

    def _write(self, index, variables, parts):
        index, *parts = backend.all_gather(index, *parts)
        for variable, part in zip(variables, parts):
            backend.scatter_rows(variable, index, part)

    # What a training step does.

    def rows(self, index, candidates):
        """Returns the pseudo labels of a batch, `(B, C)`, from its sets."""
        index = keras.ops.convert_to_tensor(index)
        rows = self._read(index)
        untouched = keras.ops.max(rows, axis=-1, keepdims=True) <= 0.0
        start = ops.uniform_over_candidates(candidates)
        rows = keras.ops.where(untouched, start, rows)
        # An accelerator clamps an index out of range without an error. Last
        # of all: a maximum of nan is not nan everywhere.
        inside = keras.ops.logical_and(index >= 0, index < self.num_examples)
        return keras.ops.where(
            keras.ops.expand_dims(inside, 1), rows, float("nan")
        )

    def lam_of(self, index):
        """Returns `lam` times its factor of each example, `(B, 1)`."""
        factor = backend.gather_rows(self.lam_factor, index)
        return keras.ops.expand_dims(self.lam * factor, 1)

    def labels_from(self, index, scores, candidates):
        """Eq. 3 under the current lambda and norm, `(B, C)`."""
        lam = self.lam_of(index)
        z = ops.weighted_probabilities(scores, candidates, lam)
        return keras.ops.where(
            self.use_onehot > 0.5,
            ops.onehot(z),
            ops.scale(z, self.scale_factor),
        )

    def refresh(self, index, scores, candidates, active=True):
        """Moves a batch's rows towards Eq. 3 and returns them, `(B, C)`.

        `index` `(B,)` holds no example twice, `scores` `(B, C)` are the P of
        Eq. 3 and Eq. 6. Without `active`, a boolean scalar, it only records
        the candidate ratios.
        """
        rows = self.rows(index, candidates)
        phi = self.momentum
        labels = self.labels_from(index, scores, candidates)
        moved = phi * rows + (1.0 - phi) * labels
        moving = keras.ops.logical_and(active, self.update_in_step > 0.5)
        rows = keras.ops.where(moving, moved, rows)
        ratio = ops.candidate_ratio(scores, candidates)
        parts = (*self.pack(rows, candidates), ratio)
        self._write(index, (*self.storage, self.candidate_ratio), parts)
        return rows

    def overwrite(self, index, rows, candidates):
        """Sets the rows of a batch to `rows`, `(B, C)`."""
        self._write(index, self.storage, self.pack(rows, candidates))

    # What is done between epochs.

    def forget_ratios(self):
        """Marks all candidate ratios as not seen; called as an epoch begins."""
        self.candidate_ratio.assign(np.full((self.num_examples,), np.nan))

    def replace(self, batches):
        """Sets the rows of all batches: triples of index, rows, candidates."""
        # On the host, so that the storage is moved once.
        arrays = [np.array(v.numpy()) for v in self.storage]
        for index, rows, candidates in batches:
            for array, part in zip(arrays, self.pack(rows, candidates)):
                array[np.asarray(index)] = keras.ops.convert_to_numpy(part)
        for variable, array in zip(self.storage, arrays):
            variable.assign(array)

    # Reading.

    @property
    def shape(self):
        """Tuple (N, C)."""
        return (self.num_examples, self.num_classes)

    def __len__(self):
        return self.num_examples

    def numpy(self):
        """Returns all rows as numpy float32 `(N, C)`; zero where untouched."""
        return self.dense_rows(0, self.num_examples)

    def dense_rows(self, start, stop):
        """Returns rows `start` to `stop - 1`, as `numpy` does."""
        index = keras.ops.arange(start, min(stop, self.num_examples))
        return keras.ops.convert_to_numpy(self._read(index))

    def settled(self):
        """Returns the strongest class of each row, and whether it is the only.

        Numpy arrays `(N,)`, int64 and bool, False for an untouched row.
        """
        labels = np.zeros((self.num_examples,), "int64")
        decided = np.zeros((self.num_examples,), bool)
        step = max(1, _BLOCK // self.num_classes)
        for start in range(0, self.num_examples, step):
            rows = self.dense_rows(start, start + step)
            block = slice(start, start + len(rows))
            top = rows.max(axis=1, keepdims=True)
            labels[block] = rows.argmax(axis=1)
            decided[block] = ((rows == top) & (top > 0)).sum(axis=1) == 1
        return labels, decided


@keras.saving.register_keras_serializable(package="alim_keras")
class SparsePseudoLabelTable(PseudoLabelTable):
    """Keeps the candidates, the strongest others, and their remainder.

    A row has `M + k` slots of (class, weight). The candidates come first, the
    strongest of the other classes take what is left: k of them, more where
    the set is smaller than M. What the rest of the classes weigh together is
    spread evenly over them. Up to rounding, beside the dense table:

    - the weight of every candidate, and what all others weigh together, are
      always exact, and rows sum to 1;
    - a whole row is exact as long as no more than k classes outside its set
      ever had weight (none has with lambda 0);
    - otherwise, as with the scale norm and lambda > 0, no entry is off by more
      than the outside weight m, the row by no more than 2 m, and an error
      fades by phi in each refresh.

    Args:
        num_examples: N.
        num_classes: C.
        max_set_size: M, the size of the largest candidate set; a row of a
            larger one is `nan`. Defaults to 24, or C where that is smaller.
        num_others: k. Defaults to `8`.

    Weights: those of `PseudoLabelTable`, but for `table`, whose `4 C` bytes per
    example become `(M + k) (4 + 2) + 4`, or 4 for 2 above 2048 classes:
        values: `(N, M + k)`, the weights of the classes in the slots.
        classes: `(N, M + k)`, which classes these are.
        remainder: `(N,)`, what all other classes weigh together.

    >>> largest = int((candidates > 0).sum(axis=1).max())
    >>> table = alim_keras.layers.SparsePseudoLabelTable(n, 1000, largest)
    >>> model = alim_keras.PiCO(backbone, 1000, n, table=table)
    """

    arguments = (*PseudoLabelTable.arguments, "max_set_size", "num_others")
    is_dense = False

    def __init__(
        self,
        num_examples,
        num_classes,
        max_set_size=None,
        num_others=8,
        **kwargs,
    ):
        if max_set_size is None:
            max_set_size = min(24, num_classes)
        self.max_set_size = check_number(
            "max_set_size", max_set_size, 1, num_classes, whole=True
        )
        # With none, no label could leave its set.
        self.num_others = check_number("num_others", num_others, 1, whole=True)
        self.num_slots = min(max_set_size + num_others, num_classes)
        super().__init__(num_examples, num_classes, **kwargs)

    def make_storage(self):
        shape = (self.num_examples, self.num_slots)
        # TensorFlow has no scatter of small integers on a GPU.
        small = self.num_classes <= _EXACT_IN_HALF
        dtype = "float16" if small else "float32"
        self.values = self.frozen("values", shape)
        self.classes = self.frozen("classes", shape, dtype=dtype)
        self.remainder = self.frozen("remainder", shape[:1])
        return self.values, self.classes, self.remainder

    def pack(self, rows, candidates):
        rows = keras.ops.cast(rows, "float32")
        # No row has a weight above 1, so candidates come before all others.
        order = rows + 2.0 * ops.members(candidates)
        _, classes = keras.ops.top_k(order, self.num_slots)
        values = keras.ops.take_along_axis(rows, classes, axis=-1)
        nothing = keras.ops.zeros_like(keras.ops.reshape(values, (-1,)))
        rest = keras.ops.scatter_update(rows, _places(classes), nothing)
        parts = values, classes, keras.ops.sum(rest, axis=-1)
        return tuple(
            keras.ops.cast(part, variable.dtype)
            for part, variable in zip(parts, self.storage)
        )

    def unpack(self, *stored):
        values, classes, remainder = stored
        others = max(self.num_classes - self.num_slots, 1)
        share = keras.ops.expand_dims(remainder / others, -1)
        return keras.ops.scatter_update(
            share * keras.ops.ones((1, self.num_classes)),
            _places(classes),
            keras.ops.reshape(values, (-1,)),
        )

    def rows(self, index, candidates):
        rows = super().rows(index, candidates)
        size = keras.ops.sum(ops.members(candidates), axis=-1, keepdims=True)
        return keras.ops.where(size <= self.max_set_size, rows, float("nan"))


def _places(classes):
    """Returns the places (row, class) of slots `(B, W)`, as `(B W, 2)`."""
    size, width = keras.ops.shape(classes)[0], classes.shape[1]
    rows = keras.ops.repeat(keras.ops.arange(size, dtype="int32"), width)
    columns = keras.ops.cast(keras.ops.reshape(classes, (-1,)), "int32")
    return keras.ops.stack([rows, columns], axis=-1)


def make_table(table, num_examples, num_classes):
    """Returns the table of a name, or the layer itself if its size fits."""
    sizes, name = (num_examples, num_classes), "pseudo_label_table"
    if table == "dense":
        return PseudoLabelTable(*sizes, name=name)
    if table == "sparse":
        return SparsePseudoLabelTable(*sizes, name=name)
    if not isinstance(table, PseudoLabelTable):
        raise ConfigError(
            "Argument `table` must be 'dense', 'sparse' or a PseudoLabelTable. "
            f"Received: table={table!r}"
        )
    if table.shape != sizes:
        raise ConfigError(
            "Argument `table` must have a row for each of the "
            f"{num_examples} examples and {num_classes} classes. Received: a "
            "table of {} examples and {} classes".format(*table.shape)
        )
    return table
