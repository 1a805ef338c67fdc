"""Noisy partial label learning with Keras: ALIM on PiCO and its relatives.

Training images carry a set of candidate labels, one of which should be true,
and even that may be wrong. See `PiCO`, `callbacks.ALIM` and
`data.train_dataset`.
"""

from alim_keras import augment
from alim_keras import callbacks
from alim_keras import data
from alim_keras import layers
from alim_keras import losses
from alim_keras import methods
from alim_keras import metrics
from alim_keras import networks
from alim_keras import ops
from alim_keras.methods import PartialLabelModel
from alim_keras.methods import PiCO

__version__ = "0.1.0"

__all__ = [
    "PartialLabelModel",
    "PiCO",
    "augment",
    "callbacks",
    "data",
    "layers",
    "losses",
    "methods",
    "metrics",
    "networks",
    "ops",
]
