"""A data set in one `.npz` file of plain arrays."""

import numpy as np

from alim_keras.data.candidate_file import open_npz
from alim_keras.data.candidate_sets import default_ids
from alim_keras.errors import DataError

_NEEDED = ("train_images", "train_labels", "test_images", "test_labels")


def read(path):
    """Reads an `.npz` file of uint8 images and integer labels.

    Needed are `train_images`, `train_labels`, `test_images` and
    `test_labels`; `label_names`, `train_ids`, `test_ids` and `superclasses`
    may be there. Grey images may leave out the channel axis. Without ids an
    example is named after its place in this file.

    Args:
        path: String.

    Returns:
        Dict of the fields of `ImageData`.

    Raises:
        DataError: The file is missing, damaged, or an array is missing.
    """
    found = open_npz(path)
    missing = [name for name in _NEEDED if name not in found]
    if missing:
        raise DataError(
            f"{path}: the arrays {', '.join(missing)} are missing. "
            f"Received: {', '.join(sorted(found)) or 'no arrays'}"
        )
    labels = found["train_labels"]
    if "label_names" in found:
        names = tuple(str(name) for name in found["label_names"].tolist())
    else:
        both = (labels, found["test_labels"])
        highest = max(
            (int(part.max()) for part in both if part.size), default=0
        )
        names = tuple(str(number) for number in range(highest + 1))
    fields = {
        "images": _with_channels(found["train_images"]),
        "labels": labels,
        "class_names": names,
        "test_images": _with_channels(found["test_images"]),
        "test_labels": found["test_labels"],
    }
    fields["ids"] = found.get("train_ids", default_ids(len(labels)))
    fields["test_ids"] = found.get(
        "test_ids", default_ids(len(found["test_labels"]), "test")
    )
    if "superclasses" in found:
        fields["superclasses"] = found["superclasses"].astype(np.int64)
    return fields


def _with_channels(images):
    return images[..., None] if images.ndim == 3 else images


def is_whole(path):
    """Returns whether an `.npz` file is a whole data set, with its images."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return "train_images" in archive.files
    except (OSError, ValueError, AttributeError):
        # Not even an archive: whoever reads it says what is wrong.
        return True
