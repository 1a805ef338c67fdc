"""What a finished run tells: settled labels and results."""

from alim_keras.report.classes import write_classes
from alim_keras.report.labels import settled_labels
from alim_keras.report.labels import write_labels

__all__ = ["settled_labels", "write_classes", "write_labels"]
