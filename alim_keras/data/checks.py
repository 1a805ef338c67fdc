"""Checks of labels, sets, images and features before they are trained on."""

import contextlib
import re
import zlib

import numpy as np

from alim_keras import errors

# Fills up rows of class numbers that are shorter than the longest.
PADDING = -1
_NO_UTF8 = re.compile("[\ud800-\udfff]")


@contextlib.contextmanager
def in_file(path):
    """Puts the name of a file before the `DataError`s of its reading."""
    try:
        yield
    except errors.DataError as error:
        # A cell may hold line ends; a message is one line.
        text = str(error).removeprefix(f"{path}: ")
        raise errors.DataError(" ".join(f"{path}: {text}".split())) from error


def default_ids(places, split="train"):
    """Returns the ids of official places, or of so many: "train_00000", ...

    All numbers have one length, so that ids sort as their numbers do. Rows of
    a file without ids are of the split "row": no data set has such ids.
    """
    places = range(places) if isinstance(places, int) else places
    digits = max(5, len(str(max(places, default=0))))
    return np.array([f"{split}_{place:0{digits}d}" for place in places], str)


def generator(seed, name):
    """Returns a `numpy.random.Generator` (PCG64) for one use of a seed.

    Uses with different names share no draws.
    """
    seed = errors.check_number("seed", seed, 0, whole=True)
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def refuse(items, where, what, remedy=""):
    """Raises `DataError`, which names up to five items, if there are any."""
    if len(items):
        raise errors.DataError(
            f"{where}: {len(items)} {what}: {errors.first_five(items)}{remedy}"
        )


def check_names(texts, where, kind="ids"):
    """Raises `DataError` for names that come twice or are no UTF-8 text."""
    names = texts.tolist()
    wrong = [ascii(name) for name in names if _NO_UTF8.search(name)]
    refuse(wrong, where, f"{kind} are no UTF-8 text")
    if len(set(names)) < len(names):
        values, counts = np.unique(texts, return_counts=True)
        refuse(values[counts > 1], where, f"{kind} occur more than once")


def class_numbers(values, rows, ids, num_classes=None):
    """Returns whole numbers `(n,)` in 0..C-1, of rows with ids, as int64."""
    values = np.asarray(values)
    if values.dtype.kind not in "iuf":
        raise errors.DataError(
            f"Class numbers must be whole numbers. Received: {values.dtype}"
        )
    expected, sound = "class numbers must be whole", values == np.round(values)
    if sound.all() and num_classes is not None and len(values):
        expected = f"labels must not be outside 0..{num_classes - 1}"
        if values.min() == 1 and values.max() == num_classes:
            expected += " (they look 1-based)"
        sound = (values >= 0) & (values < num_classes)
    wrong = np.flatnonzero(~sound)
    if len(wrong):
        named = errors.first_rows(np.unique(rows[wrong]), ids)
        raise errors.DataError(
            f"{expected}: {len(wrong)} are not, {named}; the first is "
            f"{values[wrong[0]]}"
        )
    return values.astype(np.int64)


def validate_labels(labels, num_classes, ids=None, optional=False):
    """Returns single labels, whole numbers `(N,)`, as int64.

    With `optional` some may be -1, which are not known.

    Raises:
        DataError: Wrong shape or type, or a label outside 0..C-1.
    """
    labels = np.asarray(labels)
    if labels.ndim != 1 or (ids is not None and len(ids) != len(labels)):
        raise errors.DataError(
            "`labels` must have the shape (num_examples,), one class number "
            f"each. Received: shape={labels.shape}"
        )
    is_unknown = optional & (labels == PADDING)
    rows = np.flatnonzero(~is_unknown)
    class_numbers(labels[rows], rows, ids, num_classes)
    return labels.astype(np.int64)


def odd_sets(sets, remedy=""):
    """Returns doubts about `CandidateSets`, with a remedy for full ones."""
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


def validate_images(images, ids=None):
    """Returns images as uint8, or as float32 if they are floats.

    `images` are numbers `(N, H, W, channels)` in [0, 255], with 1 or 3
    channels. `ids`, strings `(N,)`, are for the messages.

    Raises:
        DataError: Another type or shape, NaN, values outside [0, 255], or
            floats that look scaled to [0, 1].
    """
    images = np.asarray(images)
    shape = images.shape
    is_image = len(shape) == 4 and shape[3] in (1, 3) and 0 not in shape
    if images.dtype.kind not in "iuf" or not is_image:
        raise errors.DataError(
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
        raise errors.DataError(
            f"{len(rows)} images have pixels outside [0, 255] or NaN, "
            f"{errors.first_rows(rows, ids)}; the first is {images[wrong][0]}"
        )
    errors.check_pixels(images, "hand them over as uint8")
    is_float = images.dtype.kind == "f"
    return images.astype(np.float32 if is_float else np.uint8, copy=False)


def validate_features(features, ids=None):
    """Returns feature vectors `(N, d)`, finite, as float32 `(N, 1, 1, d)`."""
    features = np.asarray(features)
    shape = features.shape
    is_pixel = len(shape) == 4 and shape[1:3] == (1, 1)
    is_vector = (len(shape) == 2 or is_pixel) and shape[-1] > 0
    if features.dtype.kind not in "iuf" or not is_vector:
        raise errors.DataError(
            "Feature vectors must be numbers of the shape (num_examples, "
            f"num_features). Received: dtype={features.dtype}, shape={shape}"
        )
    with np.errstate(over="ignore"):
        result = features.reshape(-1, 1, 1, shape[-1]).astype(np.float32)
    rows = np.flatnonzero(~np.isfinite(result).all(axis=(1, 2, 3)))
    if len(rows):
        raise errors.DataError(
            f"{len(rows)} feature vectors are not finite as float32, "
            f"{errors.first_rows(rows, ids)}; leave them out"
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
        why = getattr(error, "strerror", None) or errors.one_line(error)
        raise errors.DataError(
            f"{path}: cannot be read as arrays that numpy.savez wrote, "
            f"without pickled objects: {why}"
        ) from error
