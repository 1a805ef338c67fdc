"""Weak and strong views of batches, vectorised and without state."""

from alim_keras.augment.autoaugment import AutoAugmentViews
from alim_keras.augment.operations import OPERATIONS
from alim_keras.augment.views import FeatureViews
from alim_keras.augment.views import RandomViews
from alim_keras.augment.views import Views
