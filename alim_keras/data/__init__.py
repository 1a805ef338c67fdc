"""Images, candidate sets and the batches made of them."""

from alim_keras.data.candidates import CandidateSets
from alim_keras.data.checks import validate_images
from alim_keras.data.images import DiskImages
from alim_keras.data.images import channel_statistics
from alim_keras.data.known_data import CIFAR100_SUPERCLASSES
from alim_keras.data.known_data import load
from alim_keras.data.matching import list_images
from alim_keras.data.matching import match_ids
from alim_keras.data.simulate import simulate_candidates
from alim_keras.data.training_set import TrainingSet
from alim_keras.data.training_set import holdout_split
from alim_keras.data.training_set import stratified_subset
from alim_keras.errors import DataWarning

__all__ = [
    "CIFAR100_SUPERCLASSES",
    "CandidateSets",
    "DataWarning",
    "DiskImages",
    "TrainingSet",
    "channel_statistics",
    "eval_dataset",
    "holdout_split",
    "list_images",
    "load",
    "load_table",
    "match_ids",
    "read_labels",
    "read_votes",
    "sets_of_votes",
    "simulate_candidates",
    "stratified_subset",
    "train_dataset",
    "validate_images",
]


def __getattr__(name):
    if name in ("load_table", "read_labels", "read_votes", "sets_of_votes"):
        # They need pandas, and the others Keras, which take a while to import.
        from alim_keras.data import own_data
        from alim_keras.data import tables

        module = own_data if name == "load_table" else tables
        return getattr(module, name)
    if name in ("eval_dataset", "train_dataset"):
        from alim_keras.data import pipeline

        return getattr(pipeline, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(set(globals()) | set(__all__))
