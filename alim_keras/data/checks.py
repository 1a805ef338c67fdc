"""Checks of labels, sets, images and features before they are trained on.

A wrong label is silent further on (`one_hot` of an unknown class is an empty
set), so everything is checked once, with the row and the remedy named.
"""

import contextlib
import re
import warnings
import zlib

import numpy as np

from alim_keras.errors import DataError
from alim_keras.errors import DataWarning
from alim_keras.errors import check_number
from alim_keras.errors import check_pixels
from alim_keras.errors import first_five
from alim_keras.errors import first_rows
from alim_keras.errors import one_line

# Fills up rows of class numbers that are shorter than the longest.
PADDING = -1
_NO_UTF8 = re.compile("[\ud800-\udfff]")


@contextlib.contextmanager
def in_file(path):
    """Puts the name of a file before the `DataError`s of its reading."""
    try:
        yield
    except DataError as error:
        # A cell may hold line ends; a message is one line.
        text = str(error).removeprefix(f"{path}: ")
        raise DataError(" ".join(f"{path}: {text}".split())) from error


def default_ids(places, split="train"):
    """Returns the ids of official places, or of so many: "train_00000", ...

    All numbers have one length, so that ids sort as their numbers do.
    """
    places = range(places) if isinstance(places, int) else places
    digits = max(5, len(str(max(places, default=0))))
    return np.array([f"{split}_{place:0{digits}d}" for place in places], str)


def row_ids(num_rows):
    """Returns ids for rows of a file without ids: "row_00000", ...

    No data set has such ids, so these are never joined to its images.
    """
    return default_ids(num_rows, "row")


def generator(seed, name):
    """Returns a `numpy.random.Generator` (PCG64) for one use of a seed.

    Uses with different names share no draws.
    """
    seed = check_number("seed", seed, 0, whole=True)
    words = [seed, zlib.crc32(name.encode())]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))


def refuse(items, where, what, remedy=""):
    """Raises `DataError`, which names up to five items, if there are any."""
    if len(items):
        raise DataError(
            f"{where}: {len(items)} {what}: {first_five(items)}{remedy}"
        )


def check_names(texts, where, kind="ids"):
    """Raises `DataError` for names that come twice or are no UTF-8 text."""
    names = texts.tolist()
    wrong = [ascii(name) for name in names if _NO_UTF8.search(name)]
    refuse(wrong, where, f"{kind} are no UTF-8 text")
    if len(set(names)) < len(names):
        values, counts = np.unique(texts, return_counts=True)
        refuse(values[counts > 1], where, f"{kind} occur more than once")


def check_ids(path, ids, count):
    """Returns the ids of a file as a list of strings, unique and not blank."""
    ids = np.asarray(ids, str).reshape(-1)
    check_names(ids, path)
    if len(ids) != count or "" in ids:
        raise DataError(
            f"{path}: {count} ids, none blank, were expected. "
            f"Received: {len(ids)} ids"
        )
    return ids.tolist()


def _check_all(sound, values, rows, ids, expected):
    """Raises for values of rows that are not what was expected."""
    wrong = np.flatnonzero(~sound)
    if len(wrong):
        raise DataError(
            f"{expected}: {len(wrong)} are not, "
            f"{first_rows(np.unique(rows[wrong]), ids)}; the first is "
            f"{values[wrong[0]]}"
        )


def class_numbers(values, rows, ids, num_classes=None):
    """Returns whole numbers `(n,)` in 0..C-1 as int64.

    `rows` and `ids` name them in messages.
    """
    values = np.asarray(values)
    if values.dtype.kind not in "iuf":
        raise DataError(
            f"Class numbers must be whole numbers. Received: {values.dtype}"
        )
    is_whole = values == np.round(values)
    _check_all(is_whole, values, rows, ids, "class numbers must be whole")
    if num_classes is not None and len(values):
        expected = f"labels must not be outside 0..{num_classes - 1}"
        if values.min() == 1 and values.max() == num_classes:
            expected += " (they look 1-based)"
        inside = (values >= 0) & (values < num_classes)
        _check_all(inside, values, rows, ids, expected)
    return values.astype(np.int64)


def validate_labels(labels, num_classes, ids=None):
    """Returns single labels, whole numbers `(N,)`, as int64.

    Raises:
        DataError: Wrong shape or type, or a label outside 0..C-1.
    """
    labels = np.asarray(labels)
    if labels.ndim != 1 or (ids is not None and len(ids) != len(labels)):
        raise DataError(
            "`labels` must have the shape (num_examples,), one class number "
            f"each. Received: shape={labels.shape}"
        )
    return class_numbers(labels, np.arange(len(labels)), ids, num_classes)


def known_labels(labels, num_classes, ids):
    """Returns labels as int64, -1 where they are not known."""
    labels = np.asarray(labels)
    is_number = labels.dtype.kind in "iuf"
    known = np.where(labels == PADDING, 0, labels) if is_number else labels
    validate_labels(known, num_classes, ids)
    return labels.astype(np.int64)


def odd_sets(sets, remedy=""):
    """Returns doubts about `CandidateSets` that look as if filled up.

    `remedy` ends the sentence on sets that hold all classes.
    """
    count, num_classes = sets.shape
    if count < 10 or num_classes < 2:
        return []  # Too few to say what is usual.
    full = int(np.sum(sets.sizes == num_classes))
    share = np.bincount(sets.indices, minlength=num_classes) / count
    common = np.flatnonzero(share > 0.99)
    odd = []
    if full > 0.05 * count:
        odd.append(
            f"{full} of {count} candidate sets hold all {num_classes} "
            f"classes and say nothing{remedy}"
        )
    # Sets that are all full say nothing about padding.
    if 0 < len(common) < num_classes:
        odd.append(
            f"Class {common[0]} is in {share[common[0]]:.1%} of the candidate "
            "sets: is it used to fill rows up? Use -1 for that"
        )
    return odd


def check_truth_inside(sets, labels, noise_rate):
    """Returns in how many sets the true class is missing.

    It warns of these where `noise_rate` was given as 0. `labels` are
    integers `(N,)`, the true classes, -1 where not known.
    """
    rows = np.flatnonzero(np.asarray(labels) >= 0)
    outside = int(np.sum(~sets.contains(rows, np.asarray(labels)[rows])))
    if noise_rate == 0 and outside:
        warnings.warn(
            f"{outside} of {len(rows)} candidate sets leave out the true "
            "class although the noise rate was given as 0",
            DataWarning,
            stacklevel=2,
        )
    return outside


def validate_images(images, ids=None):
    """Returns images as uint8, or as float32 if they are floats.

    Args:
        images: Numbers `(N, H, W, channels)` in [0, 255], with 1 or 3
            channels.
        ids: Optional strings `(N,)`, for the messages.

    Raises:
        DataError: Another type or shape, NaN, values outside [0, 255], or
            floats that look scaled to [0, 1].
    """
    images = np.asarray(images)
    shape = images.shape
    is_image = len(shape) == 4 and shape[3] in (1, 3) and 0 not in shape
    if images.dtype.kind not in "iuf" or not is_image:
        raise DataError(
            "Images must be numbers of the shape (num_examples, height, width, "
            "channels) with 1 or 3 channels, which go last: images[..., None] "
            "for grey ones, images.transpose(0, 2, 3, 1) if they come first. "
            f"Received: dtype={images.dtype}, shape={shape}"
        )
    if images.dtype == np.uint8:
        return images
    low, high = float(images.min()), float(images.max())
    # NaN fails both comparisons.
    if not (low >= 0 and high <= 255):
        wrong = ~((images >= 0) & (images <= 255))
        rows = np.flatnonzero(wrong.any(axis=(1, 2, 3)))
        raise DataError(
            f"{len(rows)} images have pixels outside [0, 255] or NaN, "
            f"{first_rows(rows, ids)}; the first value is {images[wrong][0]}"
        )
    check_pixels(images, "hand them over as uint8")
    is_float = images.dtype.kind == "f"
    return images.astype(np.float32 if is_float else np.uint8, copy=False)


def validate_features(features, ids=None):
    """Returns feature vectors `(N, d)`, finite, as float32 `(N, 1, 1, d)`."""
    features = np.asarray(features)
    shape = features.shape
    is_pixel = len(shape) == 4 and shape[1:3] == (1, 1)
    is_vector = (len(shape) == 2 or is_pixel) and shape[-1] > 0
    if features.dtype.kind not in "iuf" or not is_vector:
        raise DataError(
            "Feature vectors must be numbers of the shape (num_examples, "
            f"num_features). Received: dtype={features.dtype}, shape={shape}"
        )
    with np.errstate(over="ignore"):
        result = features.reshape(len(features), 1, 1, -1).astype(np.float32)
    rows = np.flatnonzero(~np.isfinite(result).all(axis=(1, 2, 3)))
    if len(rows):
        raise DataError(
            f"{len(rows)} feature vectors hold NaN, infinite values or more "
            f"than float32 holds, {first_rows(rows, ids)}; leave the rows out"
        )
    return result


def read_npz(path, names=None, alone="candidates"):
    """Returns the arrays of an .npz file by name, those of `names` if given.

    An .npy file is one array, which `alone` names; it stays on disk until it
    is used. Pickles are refused.
    """
    try:
        # numpy does not close a file that it fails to read.
        with open(path, "rb") as file:
            if file.read(6) == np.lib.format.MAGIC_PREFIX:
                return {alone: np.lib.format.open_memmap(path, "r")}
            file.seek(0)
            arrays = np.load(file, allow_pickle=False)
            names = arrays.files if names is None else names
            return {
                name: arrays[name] for name in arrays.files if name in names
            }
    except Exception as error:
        # A damaged archive shows itself as almost any exception.
        why = getattr(error, "strerror", None) or one_line(error)
        raise DataError(
            f"{path}: cannot be read as arrays that numpy.savez wrote, "
            f"without pickled objects: {why}"
        ) from error
