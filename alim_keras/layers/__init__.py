"""Stateful parts of the methods; everything they keep is a Keras weight."""

from alim_keras.layers.embedding_queue import EmbeddingQueue
from alim_keras.layers.prototypes import Prototypes
from alim_keras.layers.pseudo_label_table import PseudoLabelTable
from alim_keras.layers.sparse_label_table import SparsePseudoLabelTable
from alim_keras.layers.tables import make_table

__all__ = [
    "EmbeddingQueue",
    "Prototypes",
    "PseudoLabelTable",
    "SparsePseudoLabelTable",
    "make_table",
]
