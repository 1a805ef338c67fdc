"""Files of true labels that somebody looked up: the columns id and label."""

import csv

import numpy as np

from alim_keras.data.messages import first_five
from alim_keras.data.messages import nearest
from alim_keras.data.tables import encoding
from alim_keras.data.tables.class_names import numbers_are_names
from alim_keras.data.tables.classes import Lookup
from alim_keras.errors import DataError

_MARKS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}


def read_annotations(path, ids, class_names):
    """Reads a CSV file with the columns `id` and `label`.

    Args:
        path: The file. Further columns are left alone.
        ids: Strings `(N,)`, of the training set.
        class_names: The classes; a label is a name, or, unless some class
            is called by a number, its place in them from 0.

    Returns:
        A pair of int64 arrays `(n,)`: rows of `ids`, and labels.

    Raises:
        DataError: The file is missing, lacks a column or holds no label; an
            id is unknown or comes twice; a label is no class. It names up to
            five lines of the file.
    """
    return match_annotations(path, ids, class_names, None)


def match_annotations(path, ids, class_names, find):
    """Reads the same kind of file, whose ids may be written in another way.

    Args:
        path: The file.
        ids: Strings `(N,)`, of the training set.
        class_names: The classes.
        find: Function of a list of ids, which returns a dict to their rows;
            unknown ones are not in it. None to know only `ids` themselves.

    Returns:
        As `read_annotations`; rows are what `find` says.
    """
    places = {str(one): row for row, one in enumerate(ids)}
    example = first_five(list(places)[:6])
    if find is not None:
        found = find(annotated_ids(path))
        places = found if found else {}
    found, labels = _read_known(path, class_names, places, example)
    rows = np.array([places[one] for one in found], np.int64)
    return rows, labels


def annotated_ids(path):
    """Returns the ids of a file of labels, without those that are blank."""
    return list(dict.fromkeys(one for _, one, _ in _read(path) if one))


def read_test_labels(path, class_names):
    """Reads the same kind of file about items of any name.

    Returns:
        Strings `(n,)`, the ids, and int64 `(n,)`, their labels; nothing if
        `path` is None.
    """
    if path is None:
        return np.array([], str), np.array([], np.int64)
    ids, labels = _read_known(path, class_names)
    return np.array(ids, str), labels


def _read_known(path, class_names, places=None, example=""):
    """Returns ids and labels; ids that are not in `places` are refused.

    So are two ids of one row, unless it is below 0.
    """
    ids, labels = [], []
    names = [str(name) for name in class_names]
    lookup = Lookup(names)
    seen, problems = {}, {"id": [], "twice": [], "label": []}
    for line, one, label in _read(path):
        key = one
        if places is not None and places.get(one, -1) >= 0:
            key = places[one]
        if not one or (places is not None and one not in places):
            problems["id"].append(f"{one!r} (line {line})")
        elif key in seen:
            problems["twice"].append(f"{one!r} (lines {seen[key]} and {line})")
        elif (number := lookup.class_of(label)) is None:
            problems["label"].append(f"{label!r} (line {line})")
        else:
            ids.append(one)
            labels.append(number)
        seen.setdefault(key, line)
    unknown = ("ids are empty", "a name for each item")
    if places is not None:
        unknown = ("ids are not of the training set", f"such as {example}")
    classes = f"one of {first_five(names)}"
    if not numbers_are_names(names):
        classes += f", or a number from 0 to {len(names) - 1}"
    for name, (what, expected) in {
        "id": unknown,
        "twice": ("ids come twice", "one line for each id"),
        "label": ("labels are no class", classes),
    }.items():
        if problems[name]:
            close = ""
            if name == "label":
                word = problems[name][0].split("'")[1:2]
                close = nearest(word[0], names) if word else ""
            raise DataError(
                f"{path}: {len(problems[name])} {what}: "
                f"{first_five(problems[name])}; expected {expected}{close}"
            )
    if not ids:
        raise DataError(f"{path}: holds no label; give at least one line")
    return ids, np.array(labels, np.int64)


def _delimiter(path, head):
    """Returns the mark that splits a header into id, label and others.

    Excel writes semicolons where the comma is for decimals; the name of a
    column may hold any mark.
    """
    found = [
        mark
        for mark in _MARKS
        if {"id", "label"} <= set(next(csv.reader([head], delimiter=mark), ()))
    ]
    if len(found) > 1:
        raise DataError(
            f"{path}: the first line can be split at "
            f"{' or '.join(_MARKS[mark] for mark in found)}; rename the "
            "columns that hold such marks, or leave them out"
        )
    return (*found, ",")[0]


def _read(path):
    """Yields line number, id and label."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            encoding.check_no_nul(path, head)
            file.seek(0)
            reader = csv.DictReader(file, delimiter=_delimiter(path, head))
            columns = reader.fieldnames or []
            if not {"id", "label"} <= set(columns):
                raise DataError(
                    f"{path}: the first line must name the columns id and "
                    f"label. Received: {', '.join(columns) or 'nothing'}"
                )
            if "suspicion" in columns:
                raise DataError(
                    f"{path}: is an audit's labels.csv, and what a network "
                    "settled on is no true label; give a file of the labels "
                    "that a person gave"
                )
            for row in reader:
                if any(cell.strip() for cell in row.get(None, ())):
                    raise DataError(
                        f"{path}: line {reader.line_num} has "
                        f"{len(columns) + len(row[None])} cells, the first "
                        f"line {len(columns)}; put cells that hold the "
                        "delimiter in quotes"
                    )
                one = (row["id"] or "").strip()
                label = (row["label"] or "").strip()
                yield reader.line_num, one, label
    except OSError as error:
        raise DataError(
            f"{path}: the file of true labels cannot be read: "
            f"{error.strerror or error}"
        ) from error
    except csv.Error as error:
        raise DataError(
            f"{path}: line {reader.line_num + 1} is no sound CSV ({error}); a "
            "quotation mark may be missing"
        ) from error
    except UnicodeDecodeError as error:
        raise encoding.not_utf8(path, error) from error
