"""The pseudo-label tables by name."""

from alim_keras.layers.pseudo_label_table import PseudoLabelTable
from alim_keras.layers.sparse_label_table import SparsePseudoLabelTable

TABLES = {"dense": PseudoLabelTable, "sparse": SparsePseudoLabelTable}


def make_table(table, num_examples, num_classes):
    """Returns the table that a name or a layer stands for.

    Args:
        table: `"dense"`, `"sparse"`, or a `PseudoLabelTable` of this size.
        num_examples: N.
        num_classes: C.

    Raises:
        ValueError: If it is neither, or a table of another size.
    """
    if isinstance(table, str) and table in TABLES:
        kind = TABLES[table]
        return kind(num_examples, num_classes, name="pseudo_label_table")
    if not isinstance(table, PseudoLabelTable):
        raise ValueError(
            "Argument `table` must be 'dense', 'sparse' or a PseudoLabelTable. "
            f"Received: table={table!r}"
        )
    size = (table.num_examples, table.num_classes)
    if size != (num_examples, num_classes):
        raise ValueError(
            "Argument `table` must have a row for each of the "
            f"{num_examples} examples and {num_classes} classes. Received: a "
            f"table of {size[0]} examples and {size[1]} classes"
        )
    return table
