"""Data sets by name: `load` finds one and returns an `ImageData`."""

from alim_keras.data.sources.image_data import ImageData
from alim_keras.data.sources.image_data import channel_statistics
from alim_keras.data.sources.known import KNOWN
from alim_keras.data.sources.search import load

__all__ = ["KNOWN", "ImageData", "channel_statistics", "load"]
