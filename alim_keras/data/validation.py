"""Checks of what users hand over: sets, labels, images and features."""

import warnings

import numpy as np

from alim_keras.data import checks
from alim_keras.data.candidates import CandidateSets
from alim_keras.errors import DataError
from alim_keras.errors import DataWarning
from alim_keras.errors import first_rows

# Images are looked at in parts of about this many numbers.
_BLOCK = 1 << 24


def validate_candidates(candidates, num_classes=None, ids=None):
    """Returns `CandidateSets` of arrays or lists.

    Args:
        candidates: A multi-hot matrix `(num_examples, num_classes)` of bool,
            or of numbers that are 0 or 1; a list of lists of class numbers;
            or `CandidateSets`, which are returned.
        num_classes: Integer C. Defaults to the width of the matrix, or the
            largest class number plus one.
        ids: Optional strings `(num_examples,)`. Defaults to `row_ids`.

    Raises:
        DataError: An empty set, a class out of range, NaN, a value that is
            neither 0 nor 1, a width other than `num_classes`, or another
            number of ids than of sets.

    Example:

    >>> sets = validate_candidates([[0], [1, 2]], num_classes=3)
    >>> sets.dense().astype(int).tolist()
    [[1, 0, 0], [0, 1, 1]]
    """
    if isinstance(candidates, CandidateSets):
        return candidates
    is_lists = isinstance(candidates, (list, tuple))
    if not is_lists:
        candidates = checks.to_array(candidates)
    if not len(candidates):
        raise DataError("There are no candidate sets: the input is empty")
    if is_lists:
        sets = CandidateSets.from_lists(candidates, ids, num_classes)
    else:
        names = None if num_classes is None else range(num_classes)
        sets = CandidateSets.from_dense(candidates, ids, names)
    warn_of_odd_sets(sets)
    return sets


def warn_of_odd_sets(sets):
    """Warns of many full sets, and of a class that is in nearly all sets."""
    count, num_classes = sets.shape
    if count < 10 or num_classes < 2:
        return  # Too few to say what is usual.
    full = int(np.sum(sets.sizes == num_classes))
    if full > 0.05 * count:
        warnings.warn(
            f"{full} of {count} candidate sets hold all {num_classes} "
            "classes and say nothing",
            DataWarning,
            stacklevel=3,
        )
    share = np.bincount(sets.indices, minlength=num_classes) / count
    common = np.flatnonzero(share > 0.99)
    # Sets that are all full say nothing about padding.
    if 0 < len(common) < num_classes:
        warnings.warn(
            f"Class {common[0]} is in {share[common[0]]:.1%} of the candidate "
            "sets: is it used to fill rows up? Use -1 for that",
            DataWarning,
            stacklevel=3,
        )


def check_truth_inside(sets, labels, noise_rate):
    """Warns when sets said to be clean leave out the true label.

    Args:
        sets: `CandidateSets`.
        labels: Integers `(num_examples,)`, the true classes; -1 is unknown.
        noise_rate: Float, the claim.

    Returns:
        Integer, in how many sets the true class is missing.
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


def validate_labels(labels, num_classes, ids=None):
    """Returns single labels as int64 `(num_examples,)`.

    Args:
        labels: Integers `(num_examples,)`, or floats with whole values.
        num_classes: Integer, the number of classes C.
        ids: Optional strings `(num_examples,)`, for the message.

    Raises:
        DataError: Wrong shape or type, or a label outside 0..C-1.
    """
    labels = checks.to_array(labels)
    if labels.ndim != 1:
        raise DataError(
            "`labels` must have the shape (num_examples,), one class number "
            f"each. Received: shape={labels.shape}"
        )
    if ids is not None and len(ids) != len(labels):
        raise DataError(
            f"There are {len(labels)} labels but {len(ids)} ids; give one for "
            "each example"
        )
    rows = np.arange(len(labels))
    numbers = checks.class_numbers(labels, rows, ids)
    checks.check_range(numbers, rows, num_classes, ids, 0)
    return numbers


def validate_images(images, ids=None):
    """Returns images as uint8 or float32, or says what is wrong with them.

    Args:
        images: Array `(num_examples, height, width, channels)` of uint8,
            another integer type or floats, in the range [0, 255], with 1 or
            3 channels.
        ids: Optional strings `(num_examples,)`, for the messages.

    Returns:
        The same array if it is uint8 or float32; otherwise a uint8 copy of
        integers or a float32 copy of floats.

    Raises:
        DataError: Another type, rank or number of channels, values outside
            [0, 255], or NaN and infinite values.

    Example:

    >>> validate_images(np.zeros((2, 8, 8, 1), np.int64)).dtype
    dtype('uint8')
    """
    images = checks.to_array(images)
    if images.dtype.kind not in "iuf":
        raise DataError(
            "Images must be uint8 or floats in the range [0, 255]. "
            f"Received: dtype={images.dtype}"
        )
    _check_shape(images.shape)
    if ids is not None and len(ids) != len(images):
        raise DataError(
            f"There are {len(images)} images but {len(ids)} ids; give one "
            "for each image"
        )
    if images.dtype == np.uint8:
        return images

    largest = 0.0
    result = np.empty(
        images.shape, np.float32 if images.dtype.kind == "f" else np.uint8
    )
    step = max(1, _BLOCK // max(1, int(np.prod(images.shape[1:]))))
    for start in range(0, len(images), step):
        part = images[start : start + step]
        # NaN fails both comparisons.
        wrong = ~((part >= 0) & (part <= 255))
        if wrong.any():
            _refuse(part, wrong, start, ids)
        largest = max(largest, float(part.max()))
        result[start : start + step] = part
    if images.dtype.kind == "f" and 0.0 < largest <= 1.0:
        warnings.warn(
            f"The largest pixel is {largest:g}: these images look scaled to "
            "[0, 1], but [0, 255] is expected; multiply them by 255",
            DataWarning,
            stacklevel=2,
        )
    return images if images.dtype == np.float32 else result


def validate_features(features, ids=None):
    """Returns feature vectors as float32 `(n, 1, 1, d)`.

    Args:
        features: Numbers `(n, d)` or `(n, 1, 1, d)`, all finite.
        ids: Optional strings `(n,)`, for the messages.

    Raises:
        DataError: Another type or shape, or NaN and infinite values.

    Example:

    >>> validate_features(np.zeros((2, 5))).shape
    (2, 1, 1, 5)
    """
    features = np.asarray(features)
    shape = features.shape
    if features.dtype.kind not in "iuf" or not (
        (len(shape) == 2 or (len(shape) == 4 and shape[1:3] == (1, 1)))
        and shape[-1]
    ):
        raise DataError(
            "Feature vectors must be numbers of the shape (num_examples, "
            f"num_features). Received: dtype={features.dtype}, shape={shape}"
        )
    features = features.reshape(len(features), 1, 1, shape[-1])
    given = features
    with np.errstate(over="ignore"):
        # What float32 cannot hold becomes infinite.
        features = features.astype(np.float32, copy=False)
    wrong = ~np.isfinite(features)
    if wrong.any():
        rows = np.flatnonzero(wrong.any(axis=(1, 2, 3)))
        raise DataError(
            f"{len(rows)} feature vectors hold "
            f"{_what_is_wrong(given, wrong)}, {first_rows(rows, ids)}; fill "
            "these in or leave the rows out"
        )
    return features


def _what_is_wrong(given, wrong):
    if np.isfinite(given[wrong]).all():
        return "values too large for float32"
    return "NaN or infinite values"


def _check_shape(shape):
    hint = ""
    if len(shape) == 3:
        hint = "; grey images need a last axis, images[..., None]"
    elif len(shape) == 4 and shape[3] not in (1, 3) and shape[1] in (1, 3):
        hint = "; the channels go last, images.transpose(0, 2, 3, 1)"
    if len(shape) != 4 or shape[3] not in (1, 3) or 0 in shape:
        raise DataError(
            "Images must have the shape (num_examples, height, width, "
            f"channels) with 1 or 3 channels{hint}. Received: shape={shape}"
        )


def _refuse(part, wrong, start, ids):
    rows = np.flatnonzero(wrong.any(axis=(1, 2, 3)))
    value = part[wrong][0]
    what = "NaN or infinite" if not np.isfinite(value) else "outside [0, 255]"
    raise DataError(
        f"{len(rows)} images have pixels {what}, "
        f"{first_rows(rows + start, ids)}; the first value is {value}; give "
        "pixels from 0 to 255"
    )
