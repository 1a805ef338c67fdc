"""A pseudo-label table as one dense matrix, for those who ask for it."""

import numpy as np


class DenseView:
    """Looks like the `(N, C)` array that a table stands for.

    Nothing is made dense before `numpy()`, which takes `4 N C` bytes on the
    host; `table.dense_rows` and `table.settled` do without.

    Args:
        table: A `PseudoLabelTable`, of any storage.
    """

    dtype = "float32"

    def __init__(self, table):
        self._table = table

    @property
    def shape(self):
        """Tuple (N, C)."""
        return (self._table.num_examples, self._table.num_classes)

    def __len__(self):
        return self._table.num_examples

    def numpy(self):
        """Returns all rows as numpy float32; zero where untouched."""
        return self._table.dense_rows(0, self._table.num_examples)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.numpy(), dtype)
