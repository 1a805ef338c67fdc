"""Images, candidate sets and the batches made of them.

`train_dataset` and `eval_dataset` live in `batches`, which imports Keras;
they are looked up when first used, so that the commands can read their flags
before a backend is chosen.
"""

import importlib

from alim_keras.data.candidate_sets import CandidateSets
from alim_keras.data.candidates import simulate_candidates
from alim_keras.data.checks import check_truth_inside
from alim_keras.data.checks import deduplicate
from alim_keras.data.checks import validate_candidates
from alim_keras.data.checks import validate_labels
from alim_keras.data.image_checks import validate_images
from alim_keras.data.long_tail import long_tailed_subset
from alim_keras.data.messages import DataWarning
from alim_keras.data.sources import DiskImages
from alim_keras.data.sources import ImageData
from alim_keras.data.sources import image_rows
from alim_keras.data.sources import list_images
from alim_keras.data.sources import load
from alim_keras.data.sources import match_ids
from alim_keras.data.sources.own import OwnData
from alim_keras.data.sources.own import load_own
from alim_keras.data.sparse_candidates import SparseCandidates
from alim_keras.data.splits import holdout_split
from alim_keras.data.splits import stratified_subset
from alim_keras.data.superclasses import CIFAR100_SUPERCLASSES
from alim_keras.data.superclasses import superclasses_of
from alim_keras.data.tables import Labels
from alim_keras.data.tables import Votes
from alim_keras.data.tables import read_labels

_BATCHES = ("eval_dataset", "train_dataset")

__all__ = [
    "CIFAR100_SUPERCLASSES",
    "CandidateSets",
    "DataWarning",
    "DiskImages",
    "ImageData",
    "Labels",
    "OwnData",
    "SparseCandidates",
    "Votes",
    "check_truth_inside",
    "deduplicate",
    "eval_dataset",
    "holdout_split",
    "image_rows",
    "list_images",
    "load",
    "load_own",
    "long_tailed_subset",
    "match_ids",
    "read_labels",
    "simulate_candidates",
    "stratified_subset",
    "superclasses_of",
    "train_dataset",
    "validate_candidates",
    "validate_images",
    "validate_labels",
]


def __getattr__(name):
    if name in _BATCHES:
        return getattr(importlib.import_module(f"{__name__}.batches"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(set(globals()) | set(__all__))
