"""Reads files of labels: a file, a frame of votes, `CandidateSets`.

`read_votes` makes one pandas frame of any file, a row for each answer, and
`sets_of_votes` makes sets of that frame by stated rules. The columns of a file
are known by their names or by flags, never by what their cells hold.
"""

import os
import re
import warnings

import numpy as np
import pandas as pd

from alim_keras.data import checks
from alim_keras.data import formats
from alim_keras.data import layouts
from alim_keras.data.candidates import CandidateSets
from alim_keras.data.class_names import MOST_CLASSES
from alim_keras.data.class_names import PADDING
from alim_keras.data.class_names import check_class_names
from alim_keras.data.class_names import class_numbers
from alim_keras.data.class_names import in_file
from alim_keras.data.class_names import places
from alim_keras.data.votes import checked_votes
from alim_keras.data.votes import sets_of_votes
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import DataWarning
from alim_keras.errors import check_choice
from alim_keras.errors import first_five
from alim_keras.errors import nearest
from alim_keras.errors import one_line


def read_votes(
    path,
    *,
    format=None,
    layout="auto",
    id_column=None,
    candidates_column=None,
    annotator_column=None,
    label_column=None,
    class_names=None,
    where=(),
):
    r"""Reads a file in which people, searches or models named classes.

    Args:
        path: The file.
        format: One of `formats.FORMATS`; or `"FILE.py:function"`, a function
            from the path to such a frame (its code is run). Defaults to that
            of the file's ending.
        layout: `"list"` (a column of sets: `cat|dog`, `["cat", "dog"]`),
            `"wide"` (a column for each annotator, blank = no vote), `"long"`
            (a row for each vote), `"multi_hot"` (a column of 0 and 1 for each
            class) or `"auto"`: known by the names of the columns. Arrays are
            multi-hot, or with `"list"` class numbers filled up with -1.
        id_column: The column that names the items. Defaults to one called id,
            item, image, file and the like.
        candidates_column: The column, or array, of sets. Defaults to one
            called candidates, labels and the like.
        annotator_column: The column of a long table that names who voted, or
            those of a wide table, with commas between them.
        label_column: The column of votes of a long table; in others, and only
            if given, that of the true class, blank where it is not known.
        class_names: Strings, the classes.
        where: String or strings `COLUMN=VALUE`, also with `!=`, `>` and `<`:
            other rows are left out.

    Returns:
        A `pandas.DataFrame` whose index is the line or the row in the file,
        with the columns item (string), annotator (string or None), label
        (string; None where no class is named) and confidence (float; NaN if
        not given; 0 means that the item is NOT of this class). Where the file
        has them also `image`, the path of the item's file, and `truth`, its
        true class or None. Each item has a row. `attrs` has `notes`, lines on
        what was read; `layout`; and `class_names`, the file's own or None.

    Raises:
        DataError: A file that is missing, empty or damaged, columns that
            cannot be told apart, a cell that cannot be read.
        ConfigError: An argument out of its range or without use here.
        EnvironmentLacksError: The format needs a package that is absent.

    Example:

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("id,candidates\na,cat|dog\nb,dog\n")
    >>> read_votes(path)["label"].tolist()
    ['cat', 'dog', 'dog']
    """
    path, layout = os.fspath(path), layout or "auto"
    check_choice("layout", layout, layouts.LAYOUTS)
    if class_names is not None:
        class_names = check_class_names(class_names)
    given = {
        "id_column": id_column,
        "candidates_column": candidates_column,
        "annotator_column": annotator_column,
        "label_column": label_column,
    }
    with in_file(path):
        format = formats.format_of(path, format)
    if format == "npz":
        _check_unused(given, ("candidates_column",))
        check_choice("layout", layout, ("auto", "list", "multi_hot"))
        frame = read_arrays(path, layout, candidates_column, class_names)
    else:
        named = {n.strip().lower() for n in given.values() if n}
        frame = formats.read(path, format, {*layouts.KNOWN, *named})
        if "layout" in frame.attrs:
            _check_unused(given)
    notes = frame.attrs.setdefault("notes", [])
    with in_file(path):
        frame = _filter(frame, where, notes)
        if "layout" not in frame.attrs:
            frame = layouts.votes_of_cells(
                frame, layout, given, class_names, notes
            )
        return checked_votes(frame, class_names, notes)


def _check_unused(given, but=()):
    """Refuses flags that name columns of a file that has none."""
    for name, value in given.items():
        if value is not None and name not in but:
            raise ConfigError(
                "This file has no columns to choose from. Received: "
                f"--{name}={value}"
            )


def _filter(frame, where, notes):
    """Returns the rows that meet all conditions."""
    for condition in [where] if isinstance(where, str) else where or ():
        match = re.fullmatch("(.+?)(!=|=|>|<)(.*)", condition, re.DOTALL)
        if not match:
            raise ConfigError(
                "COLUMN=VALUE was expected, or with !=, > or <. "
                f"Received: --where={condition}"
            )
        name, sign, value = (part.strip() for part in match.groups())
        if name not in frame:
            raise DataError(
                f"there is no column {name!r}, as --where says, among "
                f"{first_five(list(frame))}{nearest(name, frame.columns)}"
            )
        cells = frame[name].map(lambda cell: str(cell).strip())
        if sign in "<>":
            numbers = pd.to_numeric(cells, errors="coerce")
            bound = pd.to_numeric(value, errors="coerce")
            keep = numbers > bound if sign == ">" else numbers < bound
        else:
            keep = (cells == value) == (sign == "=")
        notes.append(f"{np.sum(~keep)} rows are not {condition}: left out")
        frame = frame[keep]
        frame.attrs["where"] = [*frame.attrs.get("where", ()), name]
        if not len(frame):
            raise DataError(f"no row is left. Received: --where={condition}")
    return frame


def read_labels(path, *, class_names=None, **options):
    r"""Reads a file of labels as candidate sets.

    Args:
        path: The file.
        class_names: Strings, the classes in their order; see `sets_of_votes`.
        **options: Arguments of `read_votes` and of `sets_of_votes`.

    Returns:
        `CandidateSets`; the votes that counted, or None if nobody is named;
        and a list of strings, what was read, left out and merged.

    Raises:
        DataError, ConfigError, EnvironmentLacksError: See `read_votes` and
            `sets_of_votes`.

    Example:

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("id,candidates\na,cat|dog\nb,dog\n")
    >>> candidates, votes, notes = read_labels(path)
    >>> candidates.class_names
    ('cat', 'dog')
    >>> candidates.dense().astype(int).tolist()
    [[1, 1], [0, 1]]
    """
    rules = ("min_votes", "min_confidence", "none_of_these", "empty_set")
    rules = {*rules, "duplicates", "answered", "source"} & set(options)
    rules = {name: options.pop(name) for name in rules}
    votes = read_votes(path, class_names=class_names, **options)
    rules.setdefault("source", os.fspath(path))
    sets, counted = sets_of_votes(votes, class_names=class_names, **rules)
    named = counted["annotator"].notna().any()
    return sets, counted if named else None, counted.attrs["notes"]


def read_known_labels(path, class_names):
    """Reads a file of true labels with the columns `id` and `label`.

    Args:
        path: The file, in any format of a table. Further columns are left
            alone.
        class_names: Strings, the classes; a label is a name, or, unless some
            class is called by a number, its place in them from 0.

    Returns:
        Strings `(n,)`, the ids, and int64 `(n,)`, their labels.

    Raises:
        DataError: The file is missing, lacks a column or holds no label; an
            id is blank or comes twice; a label is no class. Up to five lines
            are named.
    """
    known = _known(path, class_names)
    codes, labels = pd.factorize(known["label"])
    with in_file(path):
        twice = known["item"].duplicated(keep=False)
        if twice.any():
            raise DataError(f"ids come twice in {places(known, twice)}")
        _, classes = class_numbers(
            labels, class_names, place=lambda i: places(known, codes == i)
        )
        classes = np.append(classes, PADDING)[codes]
        if (classes < 0).any():
            raise DataError(
                f"labels are blank or no class in {places(known, classes < 0)};"
                f" expected one of {first_five(class_names)}"
            )
    return known["item"].to_numpy(str), classes


def known_ids(path):
    """Returns the ids of a file of true labels, a list of strings."""
    return _known(path)["item"].tolist()


def _known(path, class_names=()):
    """Returns the columns item and label of a file of true labels."""
    cells = formats.read(os.fspath(path))
    with in_file(path):
        if not {"id", "label"} <= set(cells):
            raise DataError(
                "the columns id and label were expected. Received: "
                f"{', '.join(cells)}"
            )
        if "suspicion" in cells:
            raise DataError(
                "it is an audit's labels.csv, and what a network settled on is "
                "no true label; give a file of the labels that a person gave"
            )
        cells = cells.rename(columns={"id": "item"})[["item", "label"]]
        return checked_votes(cells, class_names, [])


def read_npz(path, names=None):
    """Returns the arrays of an .npz file; never pickles.

    Args:
        path: String. An .npy file is one array, called `"candidates"`.
        names: Strings, the arrays to unpack. Defaults to all.

    Returns:
        Dict from names to arrays; those that the file lacks are not in it.

    Raises:
        DataError: The file is missing, empty, damaged or holds pickles.
    """
    with in_file(path):
        formats.format_of(path, "npz")
        try:
            # numpy does not close a file that it fails to read.
            with open(path, "rb") as file:
                arrays = np.load(file, allow_pickle=False)
                if isinstance(arrays, np.ndarray):
                    return {"candidates": arrays}
                return {
                    name: arrays[name]
                    for name in arrays.files
                    if names is None or name in names
                }
        except Exception as error:
            # A damaged archive shows itself as almost any exception.
            raise DataError(
                "it holds pickled objects, is damaged or no .npz or .npy file; "
                f"save plain arrays with numpy.savez ({one_line(error)})"
            ) from error


def read_arrays(path, layout="auto", name=None, class_names=None):
    """Returns the votes of an array of sets, one for each candidate.

    Args:
        path: String, an .npz or .npy file with the array `candidates` or
            `sets`, and if it has them `ids`, `class_names` and `labels` (true
            class numbers, -1 where one is not known).
        layout: `"list"` for class numbers, rows filled up with -1. A vector
            holds one class number in a row; other arrays are multi-hot.
        name: String, the array of sets.
        class_names: Strings, or None.

    Raises:
        DataError: An array of another shape or type, or a number that is no
            class; the row is named.
    """
    sought = ("candidates", "sets") if name is None else (name,)
    others = ("ids", "class_names", "label_names", "labels", "content_hash")
    arrays = read_npz(path, {*sought, *others})
    try:
        if "content_hash" in arrays and name is None:
            sets = CandidateSets.load(path)
            empty = np.zeros(len(sets), bool)
        else:
            sets, empty = _sets_of_array(arrays, sought, layout, class_names)
        truth = arrays.get("labels")
        if truth is not None:
            rows = np.arange(truth.size)
            truth = checks.class_numbers(truth.ravel(), rows, sets.ids)
            checks.check_range(truth, rows, sets.num_classes, sets.ids, -1)
            checks.check_ids("'labels'", rows, len(sets))
    except (ConfigError, DataError) as error:
        hint = "; are these class numbers? Say --layout=list"
        hint *= "must hold only 0 and 1" in str(error)
        raise DataError(f"{path}: {error}{hint}") from error
    if class_names is not None and {*class_names} != {*sets.class_names}:
        raise DataError(
            f"{path}: the class names of the file, "
            f"{first_five(sets.class_names)}, are not those given, "
            f"{first_five(class_names)}; leave --class_names out"
        )
    rows = np.repeat(np.arange(len(sets)), sets.sizes)
    names = np.array([*sets.class_names, None], object)
    labels = names[np.where(empty[rows], -1, sets.indices)]
    frame = pd.DataFrame({"item": sets.ids.astype(object)[rows]})
    frame["label"] = labels
    if truth is not None:
        frame["truth"] = names[truth][rows]
    frame.index = pd.Index(rows, name="row")
    frame.attrs.update(
        layout="list" if layout == "list" else "multi_hot",
        class_names=sets.class_names,
        provenance=sets.provenance,
        notes=[f"{len(sets)} sets of {sets.num_classes} classes, an array"],
    )
    return frame


def _sets_of_array(arrays, sought, layout, class_names):
    """Returns `CandidateSets`, and which sets are empty: they hold class 0."""
    present = [name for name in sought if name in arrays]
    if len(present) != 1:
        raise DataError(
            f"one array called {' or '.join(sought)} was expected; name it "
            f"with --candidates_column=NAME. Received: {sorted(arrays)}"
        )
    array = arrays[present[0]]
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2):
        raise DataError(
            f"{present[0]!r} must be a matrix of 0 and 1, or of class numbers "
            f"filled up with -1. Received: dtype={array.dtype}, "
            f"shape={array.shape}"
        )
    if not array.size:
        raise DataError("the file is empty, it holds no sets")
    for name in {"class_names", "label_names"} & {*arrays}:
        class_names = check_class_names(_texts(arrays, name))
    ids = checks.row_ids(len(array))
    if "ids" in arrays:
        ids = _texts(arrays, "ids")
    if len(ids) != len(array):
        raise DataError(
            f"there are {len(array)} sets but {len(ids)} ids, the first "
            f"without a set is {first_five(ids[len(array) :])}"
        )
    is_hot = array.ndim == 2 and layout != "list"
    array = np.array(array.reshape(len(array), -1))
    if is_hot:
        empty = ~array.any(1)
        array[empty, 0] = 1
        return CandidateSets.from_dense(array, ids, class_names), empty
    empty, largest = (array == PADDING).all(1), array.max()
    if class_names is None and not 0 <= largest < MOST_CLASSES:
        raise DataError(
            f"the largest class number is {largest}; give the classes with "
            "--class_names if that is right"
        )
    again = np.sum(np.sum(array == 0, axis=1) > 1)
    if again:
        warnings.warn(
            f"{again} rows name class 0 ({(class_names or '0')[0]!r}) more "
            "than once: is it used to fill rows up? Use -1 for that",
            DataWarning,
            stacklevel=4,
        )
    array[empty, 0] = 0
    rows, columns = np.nonzero(array != PADDING)
    numbers = checks.class_numbers(array[rows, columns], rows, ids)
    class_names = class_names or range(int(largest) + 1)
    return CandidateSets.from_pairs(rows, numbers, ids, class_names), empty


def _texts(arrays, name):
    array = arrays[name]
    if array.ndim != 1 or array.dtype.kind not in "USiu":
        raise DataError(
            f"{name!r} must be a list of strings. Received: "
            f"dtype={array.dtype}, shape={array.shape}"
        )
    return (
        np.char.decode(array) if array.dtype.kind == "S" else array.astype(str)
    )
