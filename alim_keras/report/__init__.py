"""What a finished run tells: settled labels, results, and the audit."""

from alim_keras.report.audit import Audit
from alim_keras.report.classes import write_classes
from alim_keras.report.examine import examine
from alim_keras.report.labels import LabelRows
from alim_keras.report.labels import settled_labels
from alim_keras.report.labels import write_labels
from alim_keras.report.of_model import audit

__all__ = [
    "Audit",
    "LabelRows",
    "audit",
    "examine",
    "settled_labels",
    "write_classes",
    "write_labels",
]
