"""Reading .npz and .npy files: sets, features and true classes as arrays."""

import json

import numpy as np

from alim_keras.data import candidate_file
from alim_keras.data import candidate_forms as forms
from alim_keras.data.candidate_sets import CandidateSets
from alim_keras.data.candidate_sets import default_ids
from alim_keras.data.messages import one_line
from alim_keras.data.tables.classes import check_names
from alim_keras.data.tables.settle import settle
from alim_keras.data.tables.table import Numbering
from alim_keras.data.tables.table import id_text
from alim_keras.data.tables.votes import Answers
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

_SETS = ("candidates", "sets")
_NAMES = ("class_names", "label_names")
_FORMS = {"auto": "auto", "list": "ids", "multi_hot": "multi_hot"}
# Without names, more classes than this are a mistake in the numbers.
_MOST_CLASSES = 1_000_000


def read(path, layout, given, class_names, rules, findings):
    """Returns the `Labels` of an array file.

    Args:
        path: String, ending in .npz or .npy.
        layout: `"auto"`, `"multi_hot"` or `"list"` (class numbers padded with
            -1).
        given: Dict of the columns that the user named; an array has none
            but `candidates_column`, the array of sets.
        class_names: Strings, or None.
        rules: `Rules`.
        findings: `Findings`.
    """
    _check_arguments(layout, given, rules)
    arrays = _open(path)
    if "content_hash" in arrays:
        CandidateSets.load(path)  # Compares the stored hash.
    name = _sets_name(path, arrays, given["candidates_column"])
    sets = arrays[name]
    if sets.dtype.kind not in "biuf" or sets.ndim not in (1, 2):
        raise DataError(
            f"{path}: {name!r} must be a matrix of 0 and 1, or of class "
            f"numbers padded with -1. Received: dtype={sets.dtype}, "
            f"shape={sets.shape}"
        )
    if not sets.size:
        raise DataError(f"{path}: the file is empty, it holds no sets")
    ids = _ids(path, arrays.get("ids"), len(sets), findings)
    names = _names(path, arrays)
    wanted = class_names if names is None else names
    rows, classes, num_classes, layout = _members(
        sets, None if wanted is None else len(wanted), ids, _FORMS[layout]
    )
    findings.note(
        f"layout {layout}, from the array {name!r} {sets.shape}, {sets.dtype}"
    )
    if wanted is None:
        wanted = tuple(str(index) for index in range(num_classes))
        findings.note(f"{num_classes} classes were found and are numbered")
    labels = _labels(path, arrays.get("labels"), len(wanted), ids)
    if class_names is not None and class_names != wanted:
        classes, labels = _reorder(
            path, wanted, class_names, classes, labels, findings
        )
        wanted = class_names
    numbering = Numbering()
    records = numbering.codes(ids, len(ids)).astype(np.int64)
    answers = Answers(
        ids=np.array(list(numbering), str),
        records=records,
        rows=rows,
        annotators=np.zeros(len(rows), np.int32),
        classes=classes.astype(np.int32),
        confidences=None,
        annotator_names=None,
        whole=True,
        place=lambda row: f"row {row}",
    )
    features = _features(path, arrays.get("features"), len(sets))
    first = np.unique(records, return_index=True)[1]
    findings.count("rows", len(sets))
    return settle(
        path,
        layout,
        answers,
        wanted,
        rules,
        findings,
        labels=_of_items(path, "labels", labels, records, first),
        features=_of_items(path, "features", features, records, first),
        provenance=_provenance(path, arrays),
    )


def _check_arguments(layout, given, rules):
    if layout not in _FORMS:
        raise ConfigError(
            "Arrays hold the layouts auto, list (class numbers padded with "
            f"-1) or multi_hot. Received: --layout={layout}"
        )
    for name in ("id_column", "annotator_column", "label_column"):
        if given[name] is not None:
            raise ConfigError(
                f"Arrays have no columns. Received: --{name}={given[name]}"
            )
    if rules.min_votes > 1 or rules.min_confidence is not None:
        raise ConfigError(
            "--min_votes and --min_confidence need votes, and arrays hold sets"
        )
    if rules.none_of_these:
        raise ConfigError(
            "--none_of_these needs names, and arrays hold numbers. "
            f"Received: {', '.join(rules.none_of_these)}"
        )


def _open(path):
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


def _sets_name(path, arrays, given):
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


def _ids(path, ids, count, findings):
    if ids is None:
        findings.note("there is no array 'ids': the rows are numbered")
        return default_ids(count).tolist()
    if ids.ndim != 1 or ids.dtype.kind not in "USiu":
        raise DataError(
            f"{path}: 'ids' must be a list of strings. "
            f"Received: dtype={ids.dtype}, shape={ids.shape}"
        )
    if len(ids) != count:
        first = min(len(ids), count)
        more = f", the first without a set is {ids[first]}"
        raise DataError(
            f"{path}: there are {count} sets but {len(ids)} ids"
            f"{more if len(ids) > count else ''}; give one for each"
        )
    found = [id_text(value) for value in ids.tolist()]
    if None in found:
        raise DataError(
            f"{path}: the id of row {found.index(None)} is blank or no text"
        )
    return found


def _names(path, arrays):
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


def _members(sets, num_classes, ids, form):
    """Returns the row and class of every candidate, C and the layout."""
    matrix = sets if sets.ndim == 2 else sets[:, None]
    if form == "auto" and sets.ndim == 1:
        form = "ids"
    if forms.is_multi_hot(matrix, num_classes, form):
        rows, classes = np.nonzero(
            forms.from_multi_hot(matrix, num_classes, ids)
        )
        return rows, classes, matrix.shape[1], "multi_hot"
    rows = np.repeat(np.arange(len(matrix)), matrix.shape[1])
    numbers = matrix.reshape(-1)
    if numbers.dtype.kind == "b":
        raise DataError("class numbers were expected. Received: true and false")
    if numbers.dtype.kind == "f" and np.any(np.abs(numbers) > 1e15):
        raise DataError("the class numbers are infinite or far too large")
    numbers = forms.class_numbers(numbers, rows, None, ids)
    if num_classes is None:
        num_classes = int(numbers.max()) + 1
        if not 0 < num_classes <= _MOST_CLASSES:
            raise DataError(
                f"the largest class number is {num_classes - 1}; give the "
                "classes with --class_names if that is right"
            )
    forms.check_range(numbers, rows, num_classes, ids, forms.PADDING)
    real = numbers != forms.PADDING
    return rows[real], numbers[real], num_classes, "list"


def _labels(path, labels, num_classes, ids):
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


def _features(path, features, count):
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
        features = features.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(features).all(1))
    if len(wrong):
        raise DataError(
            f"{path}: {len(wrong)} rows of 'features' hold NaN or infinite "
            f"values, the first is row {wrong[0]}; fill them in"
        )
    return features


def _reorder(path, found, wanted, classes, labels, findings):
    """Returns classes and labels as places in the names that were given."""
    if set(found) != set(wanted):
        raise DataError(
            f"{path}: the class names of the file are not those given: "
            f"{sorted(set(found) ^ set(wanted))[:5]}; leave --class_names out"
        )
    findings.note("the classes were put in the order of the names given")
    place = np.array([wanted.index(name) for name in found])
    if labels is not None:
        labels = np.where(labels < 0, -1, place[labels])
    return place[classes], labels


def _of_items(path, name, values, records, first):
    """Returns one row per item; rows that repeat an id must agree."""
    if values is None or len(first) == len(records):
        return values
    differs = values != values[first[records]]
    wrong = np.flatnonzero(differs.reshape(len(records), -1).any(1))
    if len(wrong):
        raise DataError(
            f"{path}: rows with one id differ in {name!r}, the first is row "
            f"{wrong[0]}; keep one of each"
        )
    return values[first]


def _provenance(path, arrays):
    try:
        found = json.loads(str(arrays.get("provenance", "{}")))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DataError(f"{path}: 'provenance' is no JSON object")
    return found
