"""The arrays of an .npz or .npy file, each checked on its own."""

import json

import numpy as np

from alim_keras.data import candidate_file
from alim_keras.data import candidate_forms as forms
from alim_keras.data.candidate_sets import default_ids
from alim_keras.data.image_checks import validate_images
from alim_keras.data.messages import one_line
from alim_keras.data.tables.class_names import check_names
from alim_keras.data.tables.table import id_text
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

_SETS = ("candidates", "sets")
_NAMES = ("class_names", "label_names")


def open_arrays(path):
    """Returns the arrays of a file as a dict; that of a .npy are the sets."""
    if path.lower().endswith(".npz"):
        return candidate_file.open_npz(path)
    try:
        with open(path, "rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except Exception as error:
        # A damaged header shows itself as almost any exception.
        raise DataError(
            f"{path}: holds pickled objects or is no .npy file; save a plain "
            f"array with numpy.save ({one_line(error)})"
        ) from error
    return {"candidates": array}


def sets_name(path, arrays, given):
    """Returns which array holds the sets, or refuses two."""
    if given is not None:
        if given not in arrays:
            raise DataError(
                f"{path}: there is no array {given!r} as --candidates_column "
                f"says. Received: {sorted(arrays)}"
            )
        return given
    found = [name for name in _SETS if name in arrays]
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError(
            f"{path}: holds 'candidates' and 'sets'; say which counts with "
            "--candidates_column=candidates"
        )
    raise DataError(
        f"{path}: an array 'candidates' or 'sets' was expected. "
        f"Received: {sorted(arrays)}; name it with --candidates_column=NAME"
    )


def ids(path, ids, count, findings):
    """Returns the ids as a list of strings; numbered rows if there are none."""
    if ids is None:
        findings.note("there is no array 'ids': the rows are numbered")
        return default_ids(count).tolist()
    found = id_list(path, ids)
    if len(ids) != count:
        first = min(len(ids), count)
        more = f", the first without a set is {ids[first]}"
        raise DataError(
            f"{path}: there are {count} sets but {len(ids)} ids"
            f"{more if len(ids) > count else ''}; give one for each"
        )
    return found


def id_list(path, ids):
    """Returns an array of ids as a list of strings, or refuses a blank."""
    if ids.ndim != 1 or ids.dtype.kind not in "USiu":
        raise DataError(
            f"{path}: 'ids' must be a list of strings. "
            f"Received: dtype={ids.dtype}, shape={ids.shape}"
        )
    found = [id_text(value) for value in ids.tolist()]
    if None in found:
        raise DataError(
            f"{path}: the id of row {found.index(None)} is blank or no text"
        )
    return found


def names(path, arrays):
    """Returns the class names of a file, or None."""
    found = [name for name in _NAMES if name in arrays]
    if not found:
        return None
    names = arrays[found[0]]
    if names.ndim != 1 or names.dtype.kind not in "USiu":
        raise DataError(
            f"{path}: {found[0]!r} must be a list of strings. "
            f"Received: dtype={names.dtype}, shape={names.shape}"
        )
    if names.dtype.kind == "S":
        names = np.char.decode(names, "utf-8", "replace")
    try:
        return check_names(names.tolist(), found[0])
    except ConfigError as error:
        raise DataError(f"{path}: {error}") from error


def labels(path, labels, num_classes, ids):
    """Returns the true classes as int64, -1 where one is unknown, or None."""
    if labels is None:
        return None
    if labels.shape != (len(ids),) or labels.dtype.kind not in "iuf":
        raise DataError(
            f"{path}: 'labels' must hold {len(ids)} class numbers, -1 where "
            f"one is not known. Received: dtype={labels.dtype}, "
            f"shape={labels.shape}"
        )
    rows = np.arange(len(ids))
    if labels.dtype.kind == "f" and np.any(np.abs(labels) > 1e15):
        raise DataError(f"{path}: 'labels' are infinite or far too large")
    numbers = forms.class_numbers(labels, rows, None, ids)
    try:
        forms.check_range(numbers, rows, num_classes, ids, -1)
    except DataError as error:
        raise DataError(f"{path}: in 'labels': {error}") from error
    return numbers


def features(path, features, count):
    """Returns features as float32 `(count, num_features)`, or None."""
    if features is None:
        return None
    if (
        features.ndim != 2
        or len(features) != count
        or not features.shape[1]
        or features.dtype.kind not in "biuf"
    ):
        raise DataError(
            f"{path}: 'features' must be numbers ({count}, num_features). "
            f"Received: dtype={features.dtype}, shape={features.shape}"
        )
    with np.errstate(over="ignore"):
        given, features = features, features.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(features).all(1))
    if len(wrong) and np.isfinite(given[wrong]).all():
        raise DataError(
            f"{path}: {len(wrong)} rows of 'features' hold values too large "
            f"for float32, the first is row {wrong[0]}; scale them"
        )
    if len(wrong):
        raise DataError(
            f"{path}: {len(wrong)} rows of 'features' hold NaN or infinite "
            f"values, the first is row {wrong[0]}; fill them in"
        )
    return features


def images(path, arrays, count):
    """Returns images as `(count, height, width, channels)`, or None."""
    images = arrays.get("images")
    if images is None:
        return None
    if "features" in arrays:
        raise DataError(
            f"{path}: holds 'images' and 'features', and one network takes one "
            "of them; leave the other out"
        )
    if images.ndim == 3:
        images = images[..., None]
    if len(images) != count:
        raise DataError(
            f"{path}: there are {count} sets but {len(images)} images; give "
            "one for each"
        )
    try:
        return validate_images(images)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def provenance(path, arrays):
    """Returns the provenance that a file of `CandidateSets` has."""
    try:
        found = json.loads(str(arrays.get("provenance", "{}")))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DataError(f"{path}: 'provenance' is no JSON object")
    return found
