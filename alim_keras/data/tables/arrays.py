"""Reading .npz and .npy files: sets, images and true classes as arrays."""

import numpy as np

from alim_keras.data import candidate_forms as forms
from alim_keras.data.candidate_sets import CandidateSets
from alim_keras.data.messages import first_rows
from alim_keras.data.tables import array_parts
from alim_keras.data.tables.settle import settle
from alim_keras.data.tables.table import Numbering
from alim_keras.data.tables.votes import Answers
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

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
    arrays = array_parts.open_arrays(path)
    if "content_hash" in arrays:
        CandidateSets.load(path)  # Compares the stored hash.
    name = array_parts.sets_name(path, arrays, given["candidates_column"])
    sets = arrays[name]
    if sets.dtype.kind not in "biuf" or sets.ndim not in (1, 2):
        raise DataError(
            f"{path}: {name!r} must be a matrix of 0 and 1, or of class "
            f"numbers padded with -1. Received: dtype={sets.dtype}, "
            f"shape={sets.shape}"
        )
    if not sets.size:
        raise DataError(f"{path}: the file is empty, it holds no sets")
    ids = array_parts.ids(path, arrays.get("ids"), len(sets), findings)
    names = array_parts.names(path, arrays)
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
    labels = array_parts.labels(path, arrays.get("labels"), len(wanted), ids)
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
    features = array_parts.features(path, arrays.get("features"), len(sets))
    images = array_parts.images(path, arrays, len(sets))
    if images is not None:
        findings.note(f"images from the array 'images' {images.shape}")
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
        images=_of_items(path, "images", images, records, first),
        provenance=array_parts.provenance(path, arrays),
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


def _members(sets, num_classes, ids, form):
    """Returns the row and class of every candidate, C and the layout."""
    matrix = sets if sets.ndim == 2 else sets[:, None]
    if form == "auto" and sets.ndim == 1:
        form = "ids"
    try:
        is_hot = forms.is_multi_hot(matrix, num_classes, form)
        hot = forms.from_multi_hot(matrix, num_classes, ids) if is_hot else None
    except DataError as error:
        # What is an argument in Python is a flag here.
        text = str(error).replace("pass form='ids'", "say --layout=list")
        raise DataError(text) from error
    if is_hot:
        rows, classes = np.nonzero(hot)
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
    if form == "auto":
        _check_not_counts(matrix, ids)
    return rows[real], numbers[real], num_classes, "list"


def _check_not_counts(matrix, ids):
    """Refuses what looks like votes per class rather than class numbers."""
    ordered = np.sort(matrix, axis=1)
    # Rows that are filled up with 0 are warned of, like any other padding.
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] > 0)
    wrong = np.flatnonzero(twice.any(axis=1))
    if len(wrong):
        raise DataError(
            "the matrix of sets holds other numbers than 0 and 1, and as class "
            f"numbers {len(wrong)} rows would name a class twice, "
            f"{first_rows(wrong, ids)}; round counts and weights to 0 and 1 "
            "(multi_hot), or say --layout=list if these are class numbers"
        )


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
