"""Readers of label files, one function for each format.

A reader returns cells: a frame with the columns of the file, whose index is
the line or the row in the file. Of arrays and of some exports these are votes
at once, with `item` and `label`: then `attrs` has `layout`. `exports` has the
readers of public tools.
"""

import collections
import contextlib
import csv
import io
import itertools
import json
import os
import re
import runpy

import numpy as np
import pandas as pd

from alim_keras import errors
from alim_keras.data import checks
from alim_keras.data import class_names as naming
from alim_keras.data import exports
from alim_keras.data.candidates import CandidateSets

ENDINGS = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".npz": "npz",
    ".npy": "npz",
    ".xml": "cvat",
}
FORMATS = (*dict.fromkeys(ENDINGS.values()), "fiftyone", "peerannot")
FORMATS += tuple(exports.TABLES)
# Lines above a header; Excel writes sep=; there.
_ABOVE = re.compile(r"#|sep=|\s*$")
_MOST_COLUMNS = 20_000
_EMPTY = "the table is empty; names of columns and rows were expected"
# More votes than this are counts of something else.
_MOST_VOTES = 50_000_000


def format_of(path, format=None):
    """Returns the format of a file, by its ending where none is given."""
    if not os.path.isfile(path):
        raise errors.DataError(f"{path}: there is no such file")
    if os.path.getsize(path) == 0:
        raise errors.DataError(f"{path}: the file is empty; write it again")
    ending = os.path.splitext(path)[1].lower()
    if format is None and ending not in ENDINGS:
        raise errors.DataError(
            f"{path}: one of {', '.join(ENDINGS)} was expected; or say what it "
            "is with --format"
        )
    if format is not None and ":" not in format:
        errors.check_choice("format", format, FORMATS)
    return format or ENDINGS[ending]


def read(path, format=None, columns=None, records=None):
    """Returns the cells of a table, or the votes of an export.

    `columns` name those of text without a header, and `records` is a path to
    a list in JSON.
    """
    with checks.in_file(path):
        kind = format_of(path, format)
        if ":" in kind:
            return _by_own_reader(path, kind)
        if kind in exports.TABLES:
            kind = ENDINGS.get(os.path.splitext(path)[1].lower(), "json")
        is_text = kind in ("csv", "tsv")
        is_json = not is_text and kind not in ("parquet", "cvat")
        if records and not is_json or columns and not is_text:
            raise errors.ConfigError(
                "--records is about JSON, and --columns about CSV and TSV; "
                f"leave out what is not of {kind}"
            )
        if is_text:
            return _delimited(path, kind == "tsv", columns)
        if kind == "cvat":
            return exports.cvat(naming.read_text(path))
        if kind == "parquet":
            return _parquet(path)
        return _json(path, kind == "jsonl", format, records)


def _delimited(path, tabs, columns):
    """Returns the cells of delimited text, all of them strings.

    The `csv` module reads them, as pandas fills a short row up in silence.
    """
    lines = io.StringIO(naming.read_text(path), newline="").readlines()
    is_above = map(_ABOVE.match, lines)
    start = next((n for n, above in enumerate(is_above) if not above), None)
    if start is None:
        raise errors.DataError(_EMPTY)
    lines[:start] = ["\n"] * start
    unquoted = re.sub('"[^"]*"', "", lines[start])
    signs = "\t" if tabs and not columns else "\t;,"
    signs = [sign for sign in signs if sign in unquoted] or signs
    for delimiter in signs:
        with contextlib.suppress(errors.DataError):
            rows = itertools.islice(_rows(lines, delimiter), 2)
            widths = [len(cells) for _, cells in rows] or [0]
            wanted = len(columns) if columns else widths[-1]
            if widths[0] == wanted > 1:
                break
    else:
        delimiter = max(signs, key=unquoted.count)
    if columns:
        more = len(columns) - 1
        if lines[start].count(delimiter) < more:
            # Key and value with blanks between, as in `a b.jpg 2`.
            delimiter = "\t"
            lines = ["\t".join(line.rsplit(None, more)) for line in lines]
    rows = dict(_rows(lines, delimiter))
    names = columns or rows.pop(start + 1, [""])
    for line, cells in rows.items():
        if len(cells) != len(names):
            raise errors.DataError(
                f"line {line} has {len(cells)} fields, the header has "
                f"{len(names)}; put cells that hold the delimiter in quotes"
            )
    index = pd.Index(list(rows), name="line")
    return _cells(names, zip(*rows.values()), index)


def _rows(lines, delimiter):
    """Yields the rows that hold anything, each with the number of its line."""
    reader, line = csv.reader(lines, delimiter=delimiter, strict=True), 1
    try:
        for cells in reader:
            if len(cells) > 1 or "".join(cells).strip():
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise errors.DataError(
            f"line {reader.line_num} cannot be read ({error}); check its "
            'quotes: one inside a quoted cell is written ""'
        ) from error


def _cells(names, columns, index):
    """Returns a frame of columns of cells of any type, whose names differ."""
    if not len(index):
        raise errors.DataError(_EMPTY)
    names = [str(name).strip() for name in names]
    if len(names) > _MOST_COLUMNS:
        raise errors.DataError(
            f"at most {_MOST_COLUMNS:,} columns were expected; write a column "
            f"of sets, or a .npz file. Received: {len(names):,} columns"
        )
    counts = collections.Counter(names)
    wrong = [name for name in counts if counts[name] > 1 or not name]
    if wrong:
        raise errors.DataError(
            "each column must have a name of its own. Received: "
            f"{errors.first_five(wrong)!r}"
        )
    return pd.DataFrame(dict(zip(names, columns)), index, dtype=object)


def _json(path, by_line, format, records):
    """Returns the cells, or the votes, of JSON or of a record in each line."""
    text = naming.read_text(path)
    if by_line:
        lines = enumerate(text.split("\n"), 1)
        found = {n: _parsed(t, f"line {n}") for n, t in lines if t.strip()}
        value, index = [*found.values()], pd.Index([*found], name="line")
    else:
        value, index = _parsed(text, "the file") if text.strip() else [], None
    if records:
        value, index = exports.listed(exports.at(value, records)), None
    found = exports.records_of(value, format)
    if isinstance(found, pd.DataFrame):
        return found
    if found is not value or index is None:
        value = found if isinstance(found, list) else [None]
        index = pd.RangeIndex(len(value), name="row")
    for place, record in zip(index, value):
        if not isinstance(record, dict):
            raise errors.DataError(
                f"{index.name} {place}: a list of objects with named fields "
                "was expected; say where it is with --records=PATH, or what "
                f"the file is with --format. Received: {naming.shown(record)}"
            )
    names = dict.fromkeys(name for record in value for name in record)
    columns = [[record.get(name) for record in value] for name in names]
    return _cells(names, columns, index)


def _parsed(text, where):
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        text = f"{where} is not sound JSON ({errors.one_line(error)})"
        raise errors.DataError(text) from error


def _parquet(path):
    """Returns the cells of a Parquet file, but for embedded images.

    Columns of bytes and of structs, as HuggingFace writes images, are left
    out; `attrs["has_images"]` says whether there are any.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise errors.EnvironmentLacksError(
            "Parquet needs pip install pyarrow; or save the table as .csv"
        ) from error
    try:
        file = pyarrow.parquet.ParquetFile(path)
        kept = [
            field.name
            for field in file.schema_arrow
            if not pyarrow.types.is_struct(field.type)
            and not pyarrow.types.is_binary(field.type)
        ]
        table = file.read(columns=kept)
        columns = [column.to_pylist() for column in table.columns]
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        text = f"is no sound Parquet file ({errors.one_line(error)})"
        raise errors.DataError(text) from error
    index = pd.RangeIndex(table.num_rows, name="row")
    frame = _cells(table.column_names, columns, index)
    frame.attrs["has_images"] = len(kept) < len(file.schema_arrow)
    return frame


def _by_own_reader(path, format):
    """Returns the votes that a function of the user's own reads."""
    file, _, name = format.rpartition(":")
    try:
        reader = runpy.run_path(file)[name]
    except (ImportError, KeyError, OSError, SyntaxError) as error:
        raise errors.ConfigError(
            f"--format={format} is no function of a Python file: {error}"
        ) from error
    frame = reader(path)
    if not isinstance(frame, pd.DataFrame) or not {"item", "label"} <= {*frame}:
        raise errors.DataError(
            f"--format={format} must return a pandas.DataFrame with the "
            f"columns item and label. Received: {naming.shown(frame)}"
        )
    frame = frame.reset_index(drop=True).rename_axis("row").astype(object)
    frame.attrs["layout"] = "long"
    return frame


def read_arrays(path, layout="auto", name=None, class_names=None):
    """Returns the votes of an array of sets, one for each candidate.

    The file is an .npz or .npy file with the array `candidates`, or `name`,
    and if it has them `ids`, `class_names` and `labels` (true class numbers,
    -1 where one is not known); or one that `CandidateSets` saved.
    """
    sought = (name or "candidates", "ids", "class_names", "labels")
    arrays = checks.read_npz(path, (*sought, "content_hash"))
    attrs = {"layout": "multi_hot" if layout == "auto" else layout}
    with checks.in_file(path):
        if "content_hash" in arrays and not name:
            sets = CandidateSets.load(path)
            ids, class_names, weights = sets.ids, sets.class_names, sets.weights
            rows, numbers = sets.matrix.nonzero()
            attrs["provenance"] = sets.provenance
            if weights is not None:
                attrs["grades"] = "confidence"
        else:
            array = arrays.get(sought[0], np.zeros(0))
            ids = arrays.get("ids", checks.default_ids(len(array), "row"))
            _check_arrays(array, ids, arrays)
            if "class_names" in arrays:
                class_names = arrays["class_names"].tolist()
                class_names = naming.check_class_names(class_names)
            if array.ndim == 2 and layout != "list":
                count = array.shape[1]

                def place(row, column):
                    value = array[row, column]
                    return f"{value} of {ids[row]}, column {column}"

                rows, numbers, weights = matrix_votes(array, layout, place)
            else:
                array, weights = array.reshape(len(array), -1), None
                rows, columns = np.nonzero(array != checks.PADDING)
                most = len(class_names or ()) or naming.MOST_CLASSES
                numbers = array[rows, columns]
                numbers = checks.class_numbers(numbers, rows, ids, most)
                count = len(class_names or range(numbers.max(initial=-1) + 1))
            class_names = class_names or tuple(map(str, range(count)))
            if len(class_names) != count:
                raise errors.DataError(
                    f"the sets have {count} columns for {len(class_names)} "
                    "classes"
                )
        names = np.array([*class_names, None], object)
        base = pd.DataFrame({"item": ids.astype(str).astype(object)})
        base.index.name = "row"
        if "labels" in arrays:
            labels = arrays["labels"]
            labels = checks.validate_labels(labels, len(class_names), ids, True)
            base["truth"] = names[labels]
    votes = {"label": names[numbers], "confidence": weights}
    votes = base.join(pd.DataFrame(votes, rows))
    notes = [f"{len(ids)} sets of {len(class_names)} classes, an array"]
    votes.attrs = {**attrs, "class_names": class_names or None, "notes": notes}
    return votes


def _check_arrays(array, ids, arrays):
    """Raises where the array of sets or the ids cannot be read."""
    is_number = array.dtype.kind in "biuf"
    if not array.size or array.ndim not in (1, 2) or not is_number:
        raise errors.DataError(
            "'candidates', or what --candidates_column names, was expected, a "
            "matrix of 0 and 1 or of class numbers filled up with -1. "
            f"Received: shape {array.shape}, {array.dtype}, of {sorted(arrays)}"
        )
    if ids.dtype.kind not in "Uiu" or ids.shape != array.shape[:1]:
        raise errors.DataError(
            f"'ids', a list of {len(array)} texts, was expected. Received: "
            f"{ids.dtype} of shape {ids.shape}, the last {ids.ravel()[-1:]}"
        )
    checks.check_names(ids.astype(str), "'ids'")


GRADED = ("counts", "probabilities")


def matrix_votes(values, layout, place):
    """Returns row, column and confidence or None of the votes in a matrix.

    Of `"counts"` each number is so many votes, of `"probabilities"` it is the
    confidence of one. `place` says what stands in a row and a column.
    """
    if layout == "counts":
        expected = f"whole numbers, {_MOST_VOTES:,} in all at most,"
        wrong = ~((values >= 0) & (values == np.round(values)))
        wrong |= np.sum(values) > _MOST_VOTES
    elif layout == "probabilities":
        expected = "numbers from 0"
        wrong = ~((values >= 0) & (values < np.inf))
    else:
        expected = "0 and 1 of multi-hot sets (lists need --layout=list)"
        wrong = (values != 0) & (values != 1)
    if wrong.any():
        where = place(*np.unravel_index(wrong.argmax(), wrong.shape))
        raise errors.DataError(f"{expected} were expected. Received: {where}")
    rows, columns = np.nonzero(values)
    found = values[rows, columns]
    if layout == "probabilities":
        return rows, columns, found
    times = found.astype(np.int64)
    return rows.repeat(times), columns.repeat(times), None


def with_ids(frame, ids):
    """Returns rows that have the ids of a file or of a pattern."""
    rows = frame.index.unique()
    try:
        names = [ids.format(number) for number in range(len(rows))]
    except (IndexError, KeyError, ValueError):
        names = []
    if os.path.isfile(ids):
        names = naming.read_lines(ids)
    if not len({*names}) == len(names) == len(rows):
        raise errors.DataError(
            f"{len(rows)} different ids were expected, lines of a file or of a "
            "pattern such as test_{:05d}.png. Received: "
            f"{len({*names})} of --ids={ids}"
        )
    name = "item" if "layout" in frame.attrs else "id"
    frame[name] = pd.Series(names, rows, dtype=object).reindex(frame.index)
    return frame


def filtered(frame, where, notes):
    """Returns the rows that meet all conditions."""
    for condition in [where] if isinstance(where, str) else where or ():
        match = re.fullmatch("(.+?)(!=|=|>|<)(.*)", condition, re.DOTALL)
        if not match:
            raise errors.ConfigError(
                "COLUMN=VALUE was expected, or with !=, > or <. "
                f"Received: --where={condition}"
            )
        name, sign, value = (part.strip() for part in match.groups())
        open_path(frame, name)
        check_column(name, frame, "where")
        cells = frame[name].map(lambda cell: str(cell).strip())
        if frame[name].map(type).eq(bool).any():
            # JSON writes true, and Python True.
            cells, value = cells.str.lower(), value.lower()
        if sign in "<>":
            numbers = pd.to_numeric(cells, errors="coerce")
            bound = pd.to_numeric(value, errors="coerce")
            if np.isnan(bound):
                raise errors.ConfigError(
                    f"a number was expected after {sign}. "
                    f"Received: --where={condition}"
                )
            keep = numbers > bound if sign == ">" else numbers < bound
        else:
            keep = (cells == value) == (sign == "=")
        notes.append(f"{np.sum(~keep)} rows are not {condition}: left out")
        frame = frame[keep]
        frame.attrs["where"] = [*frame.attrs.get("where", ()), name]
        if not len(frame):
            raise errors.DataError(
                f"no row is left. Received: --where={condition}"
            )
    return frame


def open_path(cells, name):
    """Adds a column for a dotted path into that of JSON which it returns."""
    starts = [start for start in cells if name.startswith(f"{start}.")]
    column = max(starts, key=len, default=None)
    if name in cells or column is None:
        return None
    path = name.removeprefix(f"{column}.")
    cells[name] = cells[column].map(lambda cell: exports.at(cell, path))
    return column


def check_column(name, names, flag):
    """Raises unless the column that a flag names is there."""
    if name not in names:
        raise errors.DataError(
            f"there is no column {name!r}, as --{flag} says, among "
            f"{errors.first_five([*names])}.{errors.did_you_mean(name, names)}"
        )
