"""Partial label learning methods, one file each."""

from alim_keras.methods.base import PartialLabelModel
from alim_keras.methods.pico import PiCO

METHODS = {"pico": PiCO}

__all__ = ["METHODS", "PartialLabelModel", "PiCO"]
