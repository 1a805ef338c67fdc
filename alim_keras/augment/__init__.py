"""Weak and strong views of batches, vectorised and without state."""

from alim_keras.augment.autoaugment import AutoAugmentViews
from alim_keras.augment.color import autocontrast
from alim_keras.augment.color import brightness
from alim_keras.augment.color import color
from alim_keras.augment.color import contrast
from alim_keras.augment.color import equalize
from alim_keras.augment.color import grayscale
from alim_keras.augment.color import hue
from alim_keras.augment.color import posterize
from alim_keras.augment.color import sharpness
from alim_keras.augment.color import solarize
from alim_keras.augment.feature_views import FeatureViews
from alim_keras.augment.geometry import resample
from alim_keras.augment.operations import OPERATIONS
from alim_keras.augment.streams import make_views
from alim_keras.augment.views import Views

__all__ = [
    "OPERATIONS",
    "AutoAugmentViews",
    "FeatureViews",
    "Views",
    "autocontrast",
    "brightness",
    "color",
    "contrast",
    "equalize",
    "grayscale",
    "hue",
    "make_views",
    "posterize",
    "resample",
    "sharpness",
    "solarize",
]
