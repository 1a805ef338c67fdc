"""Images, candidate sets and the batches made of them.

`train_dataset` and `eval_dataset` live in `pipeline`, which imports
TensorFlow; they are looked up when first used, so that this package can be
imported without it.
"""

import importlib

from alim_keras.data.candidate_sets import CandidateSets
from alim_keras.data.candidates import simulate_candidates
from alim_keras.data.checks import check_truth_inside
from alim_keras.data.checks import deduplicate
from alim_keras.data.checks import validate_candidates
from alim_keras.data.checks import validate_labels
from alim_keras.data.image_checks import validate_images
from alim_keras.data.messages import DataWarning
from alim_keras.data.sources import ImageData
from alim_keras.data.sources import load
from alim_keras.data.splits import holdout_split
from alim_keras.data.splits import stratified_subset
from alim_keras.data.superclasses import CIFAR100_SUPERCLASSES
from alim_keras.data.superclasses import superclasses_of

_PIPELINE = ("eval_dataset", "train_dataset")

__all__ = [
    "CIFAR100_SUPERCLASSES",
    "CandidateSets",
    "DataWarning",
    "ImageData",
    "check_truth_inside",
    "deduplicate",
    "eval_dataset",
    "holdout_split",
    "load",
    "simulate_candidates",
    "stratified_subset",
    "superclasses_of",
    "train_dataset",
    "validate_candidates",
    "validate_images",
    "validate_labels",
]


def __getattr__(name):
    if name in _PIPELINE:
        return getattr(importlib.import_module(f"{__name__}.pipeline"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(set(globals()) | set(__all__))
