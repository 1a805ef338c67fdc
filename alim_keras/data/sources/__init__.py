"""Data sets by name: `load` finds one and returns an `ImageData`."""

from alim_keras.data.sources.disk_images import DiskImages
from alim_keras.data.sources.disk_images import image_rows
from alim_keras.data.sources.image_data import ImageData
from alim_keras.data.sources.image_data import channel_statistics
from alim_keras.data.sources.image_data import feature_statistics
from alim_keras.data.sources.known import KNOWN
from alim_keras.data.sources.listing import list_images
from alim_keras.data.sources.listing import match_ids
from alim_keras.data.sources.search import is_own
from alim_keras.data.sources.search import load

__all__ = [
    "KNOWN",
    "DiskImages",
    "ImageData",
    "channel_statistics",
    "feature_statistics",
    "image_rows",
    "is_own",
    "list_images",
    "load",
    "match_ids",
]
