"""Partial label learning methods, one file each."""

from alim_keras.methods.base import PartialLabelModel
from alim_keras.methods.cc import CC
from alim_keras.methods.crdpll import CRDPLL
from alim_keras.methods.exp import EXP
from alim_keras.methods.gce import GCE
from alim_keras.methods.irnet import IRNet
from alim_keras.methods.lwc import LWC
from alim_keras.methods.lws import LWS
from alim_keras.methods.mae import MAE
from alim_keras.methods.mse import MSE
from alim_keras.methods.pico import PiCO
from alim_keras.methods.pico_plus import PiCOPlus
from alim_keras.methods.proden import PRODEN
from alim_keras.methods.rc import RC
from alim_keras.methods.registry import arguments_of
from alim_keras.methods.registry import default_of
from alim_keras.methods.registry import find_method
from alim_keras.methods.registry import parse_options
from alim_keras.methods.sce import SCE

METHODS = {
    "cc": CC,
    "rc": RC,
    "proden": PRODEN,
    "lwc": LWC,
    "lws": LWS,
    "gce": GCE,
    "mse": MSE,
    "mae": MAE,
    "sce": SCE,
    "exp": EXP,
    "pico": PiCO,
    "crdpll": CRDPLL,
    "irnet": IRNet,
    "pico_plus": PiCOPlus,
}

__all__ = [
    "METHODS",
    "PartialLabelModel",
    "arguments_of",
    "default_of",
    "find_method",
    "parse_options",
    *(method.__name__ for method in METHODS.values()),
]
