"""Partial label learning methods; `base` holds the step that they share."""

from alim_keras.methods.base import PartialLabelModel
from alim_keras.methods.find import METHODS
from alim_keras.methods.find import find_method
from alim_keras.methods.find import parse_options
from alim_keras.methods.inputs import arguments_of
from alim_keras.methods.irnet import IRNet
from alim_keras.methods.pico import PiCO
from alim_keras.methods.pico_plus import PiCOPlus
from alim_keras.methods.simple import CC
from alim_keras.methods.simple import CRDPLL
from alim_keras.methods.simple import EXP
from alim_keras.methods.simple import GCE
from alim_keras.methods.simple import LWC
from alim_keras.methods.simple import LWS
from alim_keras.methods.simple import MAE
from alim_keras.methods.simple import MSE
from alim_keras.methods.simple import PRODEN
from alim_keras.methods.simple import RC
from alim_keras.methods.simple import SCE
