"""Stateful parts of the methods; everything they keep is a Keras weight."""

from alim_keras.layers.memories import AddedLabels
from alim_keras.layers.memories import EmbeddingQueue
from alim_keras.layers.memories import LeveragedWeights
from alim_keras.layers.memories import Prototypes
from alim_keras.layers.memories import Reliability
from alim_keras.layers.pseudo_label_table import PseudoLabelTable
from alim_keras.layers.pseudo_label_table import SparsePseudoLabelTable
from alim_keras.layers.pseudo_label_table import make_table
