"""What the model believes about every training example."""

import keras
import numpy as np

from alim_keras import backend
from alim_keras import ops
from alim_keras.layers.dense_view import DenseView
from alim_keras.layers.steering import Steering

QUANTILES = ("exact", "histogram")
TABLE_DTYPES = ("float32", "float16")
# Rows are read out of a table in blocks of about this many numbers.
_BLOCK = 1 << 20


@keras.saving.register_keras_serializable(package="alim_keras")
class PseudoLabelTable(Steering):
    """The pseudo labels `w` of all N examples, and what ALIM steers them by.

    A row that was never touched is zero and counts as `S / |S|`. All of
    this is replicated on every device: `4 N C` bytes for the table, half of
    it in float16. Where that is too much, `SparsePseudoLabelTable` has the
    same interface. A step touches the rows of its batch only.

    Args:
        num_examples: N, the number of training examples.
        num_classes: C.
        table_dtype: How the rows are stored, `"float32"` or `"float16"`. The
            arithmetic is float32. Rows stored in float16 are scaled to a sum
            of 1 as they are read; an entry is then off by up to 0.05 % of
            itself in each refresh, so phi should stay below 0.999. Defaults
            to `"float32"`.
        quantile: What Eq. 6 is read off. `"exact"`: the ratio of every
            example, `12 N` bytes and a sort at the end of an epoch.
            `"histogram"`: counts in bins, 64 KiB (128 KiB on TensorFlow) for
            any N, lambda within 0.26 %; see `alim_keras.quantile`. An example
            that comes twice in an epoch counts twice there, and with its last
            ratio only in `"exact"`. Defaults to `"exact"`.
        row_offset: First example whose row is kept. Defaults to `0`.
        num_rows: How many rows are kept, of a table that is spread over
            workers which train on examples of their own: all of them call
            `refresh` together, each keeps its rows, and lambda is that of all
            examples. Rows that are not kept are answered with `nan` in a
            step and with zeros outside it. Defaults to all.

    Weights (none trainable), beside those of `Steering`:
        table: `(N, C)`; rows sum to 1, or are zero if untouched.
        momentum: Scalar phi of the moving average `w <- phi w + (1 - phi)
            Normalize(...)`.
        use_onehot: Scalar, 1.0 for Eq. 4 and 0.0 for Eq. 5.
        scale_factor: Scalar K of Eq. 5.
        update_in_step: Scalar, 1.0 if every training step refreshes the rows
            of its batch, 0.0 if they change between epochs only.

    Raises:
        ValueError: If `table_dtype` or `quantile` is none of these.
    """

    # Whether a table is small enough to be copied to the host at any time.
    is_dense = True

    def __init__(
        self,
        num_examples,
        num_classes,
        table_dtype="float32",
        quantile="exact",
        row_offset=0,
        num_rows=None,
        **kwargs,
    ):
        super().__init__(**{"dtype": "float32", **kwargs})
        _one_of("table_dtype", table_dtype, TABLE_DTYPES)
        _one_of("quantile", quantile, QUANTILES)
        if num_rows is None:
            num_rows = num_examples - row_offset
        last = row_offset + num_rows
        if row_offset < 0 or num_rows < 1 or last > num_examples:
            raise ValueError(
                "Arguments `row_offset` and `num_rows` must choose rows of the "
                f"{num_examples} examples. Received: row_offset={row_offset}, "
                f"num_rows={num_rows}"
            )
        self.num_examples = num_examples
        self.num_classes = num_classes
        self.row_offset = row_offset
        self.num_rows = num_rows
        # A shard has one row more, which takes in what is not kept.
        self.stored_rows = num_rows + int(num_rows < num_examples)
        self.table_dtype = table_dtype
        self.quantile = quantile
        self.add_storage()
        self.add_steering()
        self.momentum = self._weight("momentum")
        self.use_onehot = self._weight("use_onehot", initializer="ones")
        self.scale_factor = self._weight("scale_factor", initializer="ones")
        self.update_in_step = self._weight("update_in_step", initializer="ones")
        self.built = True

    # How rows are stored: what another form of storage overrides.

    def add_storage(self):
        """Makes the variables of the rows, `stored_rows` long each."""
        shape = (self.stored_rows, self.num_classes)
        self.table = self._weight("table", shape, self.table_dtype)

    @property
    def storage(self):
        """The variables that hold the rows, as a tuple."""
        return (self.table,)

    def pack(self, rows, candidates):
        """Returns rows `(B, C)` as they are stored, a tensor per variable."""
        return (keras.ops.cast(rows, self.table_dtype),)

    def unpack(self, *stored):
        """Returns stored rows as float32 `(B, C)`; zero where untouched."""
        return self._scaled(keras.ops.cast(stored[0], "float32"))

    def _scaled(self, rows):
        """Mends the sums of rows that were rounded to half precision."""
        if self.table_dtype == "float32":
            return rows
        total = keras.ops.sum(rows, axis=-1, keepdims=True)
        return rows / keras.ops.where(total > 0.0, total, 1.0)

    def settled_labels(self, *stored):
        """Returns the strongest class of stored rows, and its weight, `(B,)`.

        Ties go to the lowest class; the weight is 0 where untouched.
        """
        # Four times as fast as argmax, on a CPU.
        weight, label = keras.ops.top_k(stored[0], 1)
        return keras.ops.squeeze(label, -1), keras.ops.squeeze(weight, -1)

    # What a training step does.

    def rows(self, index, candidates):
        """Returns the current pseudo labels of a batch, `(B, C)`.

        Args:
            index: Integer tensor `(B,)`.
            candidates: Multi-hot tensor `(B, C)`.
        """
        place, kept = self._place(index)
        rows = self.unpack(*self._read(place))
        untouched = keras.ops.max(rows, axis=-1, keepdims=True) <= 0.0
        start = ops.uniform_over_candidates(candidates)
        rows = keras.ops.where(untouched, start, rows)
        # An accelerator clamps an index out of range without a word. Last of
        # all: a maximum of nan is not nan everywhere.
        return keras.ops.where(
            keras.ops.expand_dims(kept, 1), rows, float("nan")
        )

    def _place(self, index):
        """Returns where rows stand in the storage, and whether they do."""
        place = keras.ops.convert_to_tensor(index) - self.row_offset
        kept = keras.ops.logical_and(place >= 0, place < self.num_rows)
        if self.num_rows < self.num_examples:
            place = keras.ops.where(kept, place, self.num_rows)
        return place, kept

    def _read(self, place):
        return [backend.gather_rows(part, place) for part in self.storage]

    def labels_from(self, index, scores, candidates):
        """Eq. 3 under the current lambda and norm, `(B, C)`."""
        return self._labels(scores, candidates, self.lam_of(index, candidates))

    def _labels(self, scores, candidates, lam):
        z = ops.weighted_probabilities(scores, candidates, lam)
        return keras.ops.where(
            self.use_onehot > 0.5,
            ops.onehot(z),
            ops.scale(z, self.scale_factor),
        )

    def refresh(self, index, scores, candidates, active=True):
        """Moves a batch's rows towards Eq. 3 and returns them, `(B, C)`.

        Args:
            index: Integer tensor `(B,)`, no example twice.
            scores: Tensor `(B, C)`: the P of Eq. 3 and Eq. 6.
            candidates: Multi-hot tensor `(B, C)`.
            active: Boolean, scalar. False only records the candidate ratios.
        """
        rows = self.rows(index, candidates)
        phi = self.momentum
        lam = self.lam_of(index, candidates)
        labels = self._labels(scores, candidates, lam)
        moved = phi * rows + (1.0 - phi) * labels
        moving = keras.ops.logical_and(active, self.update_in_step > 0.5)
        rows = keras.ops.where(moving, moved, rows)
        ratio = ops.candidate_ratio(scores, candidates)
        rival = ops.rival(scores, candidates)
        lam = keras.ops.max(lam, axis=-1)
        parts = self.pack(rows, candidates)
        index, ratio, rival, lam, *parts = backend.all_gather(
            index, ratio, rival, lam, *parts
        )
        place, _ = self._place(index)
        for variable, part in zip(self.storage, parts):
            backend.scatter_rows(variable, place, part)
        self.record(index, ratio, rival, lam)
        return rows

    def overwrite(self, index, rows, candidates, chosen):
        """Sets the rows of some examples of a batch.

        Args:
            index: Integer tensor `(B,)`, no example twice.
            rows: Tensor `(B, C)`.
            candidates: Multi-hot tensor `(B, C)`.
            chosen: Boolean tensor `(B,)`: whose rows; others stay as stored.
        """
        stored = self._read(self._place(index)[0])
        parts = []
        for new, old in zip(self.pack(rows, candidates), stored):
            shape = (-1,) + (1,) * (len(new.shape) - 1)
            mask = keras.ops.reshape(chosen, shape)
            parts.append(keras.ops.where(mask, new, old))
        index, *parts = backend.all_gather(index, *parts)
        place, _ = self._place(index)
        for variable, part in zip(self.storage, parts):
            backend.scatter_rows(variable, place, part)

    # What is done between epochs.

    def replace(self, batches):
        """Sets many rows at once, with the storage on the host meanwhile.

        Args:
            batches: Iterable of triples: index `(B,)`, rows `(B, C)` and
                candidates `(B, C)`.
        """
        arrays = [np.array(v.numpy()) for v in self.storage]
        for index, rows, candidates in batches:
            place = keras.ops.convert_to_numpy(self._place(index)[0])
            for array, part in zip(arrays, self.pack(rows, candidates)):
                array[place] = keras.ops.convert_to_numpy(part)
        for variable, array in zip(self.storage, arrays):
            variable.assign(array)

    # Reading.

    def dense_rows(self, start, stop):
        """Returns rows `start` to `stop - 1` as numpy float32, `(n, C)`.

        Zero where untouched.
        """
        stop = min(stop, self.num_examples)
        place, kept = self._place(keras.ops.arange(start, stop))
        rows = self.unpack(*self._read(place))
        rows = keras.ops.where(keras.ops.expand_dims(kept, 1), rows, 0.0)
        return keras.ops.convert_to_numpy(rows)

    def settled(self):
        """Reads the label off every row, without making all rows dense.

        Returns:
            A pair of numpy arrays `(N,)`: the strongest class (int64, the
            lowest of equals), and whether the row was touched yet (bool).
        """
        width = sum(int(np.prod(v.shape[1:])) for v in self.storage)
        step = max(1, _BLOCK // width)
        labels = np.zeros((self.num_examples,), "int64")
        touched = np.zeros((self.num_examples,), bool)
        for start in range(0, self.num_rows, step):
            stop = min(start + step, self.num_rows)
            label, weight = self.settled_labels(
                *self._read(keras.ops.arange(start, stop))
            )
            rows = slice(self.row_offset + start, self.row_offset + stop)
            labels[rows] = keras.ops.convert_to_numpy(label)
            touched[rows] = keras.ops.convert_to_numpy(weight) > 0
        return labels, touched

    @property
    def pseudo_labels(self):
        """All rows, `(N, C)`, with `shape` and `numpy()`."""
        whole = self.num_rows == self.num_examples
        if whole and self.table_dtype == "float32":
            return self.table
        return DenseView(self)

    def get_config(self):
        return {
            **super().get_config(),
            "num_examples": self.num_examples,
            "num_classes": self.num_classes,
            "table_dtype": self.table_dtype,
            "quantile": self.quantile,
            "row_offset": self.row_offset,
            "num_rows": self.num_rows,
        }


def _one_of(name, value, allowed):
    if value not in allowed:
        raise ValueError(
            f"Invalid value for argument `{name}`. Expected one of "
            f"{allowed}. Received: {name}={value!r}"
        )
