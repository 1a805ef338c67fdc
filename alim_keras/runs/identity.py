"""Whether a run's data are still those that it began with."""

import functools
import hashlib
import os

import numpy as np

from alim_keras.data import sources
from alim_keras.data.sources.listing import list_images
from alim_keras.data.tables import huggingface

_FILES = "candidates_file known_labels test_labels class_names".split()
_BLOCK = 1 << 20


def of_files(settings):
    """Returns a digest of each file of labels that the settings name.

    Of a folder with a folder for each class, its list of images is digested.

    Args:
        settings: Dict of every flag's value.

    Returns:
        Dict from a flag's name to hexadecimal digits.
    """
    named = list(_FILES)
    if sources.is_own(settings["dataset"]):
        named.append("dataset")
    # Runs of earlier versions lack flags.
    found = {name: _of_path(settings.get(name)) for name in named}
    return {name: digest for name, digest in found.items() if digest}


def of_data(training):
    """Returns what a run's numbers rest on beside its candidate sets.

    Args:
        training: The `TrainingData`.

    Returns:
        Dict, fit for JSON: `mean` and `std` of the channels; `listed`, how
        many items the data set lists; `items`, `tests` and `known`, digests
        of their ids, of the test set and of the true labels.
    """
    data = training.data
    listed = data.ids if training.listed is None else training.listed
    return {
        "mean": list(data.mean),
        "std": list(data.std),
        "listed": len(listed),
        "items": _of_rows(listed),
        "tests": _of_rows(data.test_ids, data.test_labels),
        "known": _of_rows(data.ids, data.labels),
    }


def _of_path(path):
    if not path:
        return None
    digest = hashlib.sha256()
    files = [path]
    if os.path.isdir(path):
        # HuggingFace's files name a fingerprint of the data.
        files = [os.path.join(path, name) for name in huggingface.FILES]
        if not huggingface.is_dataset(path):
            for name in sorted(list_images(path).files):
                digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
            return digest.hexdigest()
    files = list(filter(os.path.isfile, files))
    for one in files:
        about = os.stat(one)
        digest.update(_of_file(one, about.st_size, about.st_mtime_ns))
    return digest.hexdigest() if files else None


@functools.lru_cache
def _of_file(path, size, changed):
    """Returns a digest; a comparison asks for that of one file many times."""
    del size, changed
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.digest()


def _of_rows(ids, labels=None):
    """Returns a digest that does not depend on the order of the rows."""
    ids = np.asarray(ids, str)
    order = np.argsort(ids)
    digest = hashlib.sha256("\0".join(ids[order].tolist()).encode("utf-8"))
    if labels is not None:
        digest.update(np.asarray(labels, np.int64)[order].tobytes())
    return digest.hexdigest()
