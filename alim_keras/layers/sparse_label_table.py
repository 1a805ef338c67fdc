"""The pseudo labels of many examples over many classes, in little memory."""

import keras

from alim_keras.errors import ConfigError
from alim_keras.errors import check_number
from alim_keras.layers.pseudo_label_table import PseudoLabelTable
from alim_keras.ops import members

# Class numbers up to this one are exact in half precision.
_EXACT_IN_HALF = 2048


@keras.saving.register_keras_serializable(package="alim_keras")
class SparsePseudoLabelTable(PseudoLabelTable):
    """Keeps the candidates, the strongest others, and their remainder.

    A row has `M + k` slots of (class, weight). The candidates come first, the
    strongest of the other classes take what is left: k of them, more where
    the set is smaller than M. What the rest of the classes weigh together is
    one number, the remainder, and is spread evenly over them.

    Up to rounding, beside the dense table:

    - the weight of every candidate, and what all others weigh together, are
      always exact, and rows sum to 1;
    - a whole row is exact as long as no more than k classes outside its set
      ever had weight (none has with lambda 0);
    - otherwise, as with the scale norm and lambda > 0, no entry is off by more
      than the outside weight m, the row by no more than 2 m, and an error
      fades by phi in each refresh.

    Memory per example: `(M + k) (4 + 2) + 4` bytes; class numbers take 4 bytes
    instead of 2 above 2048 classes. The dense row takes `4 C`.

    Args:
        num_examples: N.
        num_classes: C.
        max_set_size: M, the size of the largest candidate set; a row of a
            larger one is `nan`. Defaults to 24, or C where that is smaller.
        num_others: k. Defaults to `8`.

    Weights: those of `PseudoLabelTable`, but for `table`:
        values: `(N, M + k)`, the weights of the classes in the slots.
        classes: `(N, M + k)`, which classes these are; whole numbers in a
            float dtype, since TensorFlow has no scatter of small integers on
            a GPU.
        remainder: `(N,)`, what all other classes weigh together.

    Raises:
        ConfigError: If M is not in 1..C, or k below 1.

    Example:

    ```python
    table = alim_keras.layers.SparsePseudoLabelTable(
        len(images), 1000, max_set_size=int((candidates > 0).sum(axis=1).max()))
    model = alim_keras.PiCO(backbone, 1000, len(images), table=table)
    ```
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
        small = self.num_classes <= _EXACT_IN_HALF
        dtype = "float16" if small else "float32"
        self.values = self.frozen("values", shape)
        self.classes = self.frozen("classes", shape, dtype=dtype)
        self.remainder = self.frozen("remainder", shape[:1])
        return self.values, self.classes, self.remainder

    def pack(self, rows, candidates):
        ops = keras.ops
        rows = ops.cast(rows, "float32")
        # No row has a weight above 1, so candidates come before all others.
        order = rows + 2.0 * members(candidates)
        _, classes = ops.top_k(order, self.num_slots)
        values = ops.take_along_axis(rows, classes, axis=-1)
        rest = ops.scatter_update(
            rows, _places(classes), ops.zeros_like(ops.reshape(values, (-1,)))
        )
        parts = values, classes, ops.sum(rest, axis=-1)
        return tuple(
            ops.cast(part, variable.dtype)
            for part, variable in zip(parts, self.storage)
        )

    def unpack(self, *stored):
        ops = keras.ops
        values, classes, remainder = (ops.cast(x, "float32") for x in stored)
        others = max(self.num_classes - self.num_slots, 1)
        share = ops.expand_dims(remainder / others, -1)
        return ops.scatter_update(
            share * ops.ones((1, self.num_classes)),
            _places(ops.cast(classes, "int32")),
            ops.reshape(values, (-1,)),
        )

    def rows(self, index, candidates):
        rows = super().rows(index, candidates)
        size = keras.ops.sum(members(candidates), axis=-1, keepdims=True)
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
