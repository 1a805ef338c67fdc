"""Stateful parts of the methods; everything they keep is a Keras weight."""

from alim_keras.layers.added_labels import AddedLabels
from alim_keras.layers.class_prior import ClassPrior
from alim_keras.layers.embedding_queue import EmbeddingQueue
from alim_keras.layers.leveraged_weights import LeveragedWeights
from alim_keras.layers.plateau import Plateau
from alim_keras.layers.prototypes import Prototypes
from alim_keras.layers.pseudo_label_table import PseudoLabelTable
from alim_keras.layers.reliability import Reliability
from alim_keras.layers.sparse_label_table import SparsePseudoLabelTable
from alim_keras.layers.tables import make_table

__all__ = [
    "AddedLabels",
    "ClassPrior",
    "EmbeddingQueue",
    "LeveragedWeights",
    "Plateau",
    "Prototypes",
    "PseudoLabelTable",
    "Reliability",
    "SparsePseudoLabelTable",
    "make_table",
]
