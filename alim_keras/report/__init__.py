"""Settled labels of a run, and the audit of candidate sets."""

from alim_keras.report.labels import blocks
from alim_keras.report.labels import label_rows
from alim_keras.report.labels import settled_labels
from alim_keras.report.labels import write_classes
from alim_keras.report.labels import write_table

__all__ = [
    "audit",
    "blocks",
    "examine",
    "label_rows",
    "settled_labels",
    "write_classes",
    "write_table",
]


def __getattr__(name):
    """Imports on first use what needs Keras: `check` does without it."""
    if name == "audit":
        from alim_keras.report.examination import audit as value
    elif name == "examine":
        from alim_keras.report.examination import examine as value
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return value
