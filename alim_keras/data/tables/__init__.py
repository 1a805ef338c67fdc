"""Files in which people, searches or models said what each image might be."""

from alim_keras.data.tables.class_names import read_class_names
from alim_keras.data.tables.labels import Labels
from alim_keras.data.tables.labels import Votes
from alim_keras.data.tables.read import read_labels

__all__ = ["Labels", "Votes", "read_class_names", "read_labels"]
