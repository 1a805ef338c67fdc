"""Readers of label files, one function for each format.

A reader of a table returns its cells: a frame with the columns of the file,
whose index is the line or the row in the file. A reader of an export or of
arrays returns votes at once: a frame with `item` and `label`, and if there are
any `annotator` and `confidence` (see `tables.read_votes`), and says so by
`attrs["layout"]`.
"""

import collections
import csv
import importlib.util
import io
import itertools
import json
import os
import urllib.parse

import numpy as np
import pandas as pd

from alim_keras.data.candidates import CandidateSets
from alim_keras.data.checks import PADDING
from alim_keras.data.checks import row_ids
from alim_keras.data.class_names import MOST_CLASSES
from alim_keras.data.class_names import NO_TEXT
from alim_keras.data.class_names import check_class_names
from alim_keras.data.class_names import in_file
from alim_keras.data.class_names import read_text
from alim_keras.data.class_names import shown
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError
from alim_keras.errors import first_five
from alim_keras.errors import nearest
from alim_keras.errors import one_line

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
}
FORMATS = ("csv", "tsv", "jsonl", "json", "label_studio", "parquet", "npz")
# Columns, and fields of Label Studio, that name the file of an item.
IMAGE = ("image", "file", "filename", "file_name", "path", "image_path")


def format_of(path, format=None):
    """Returns the format of a file, by its ending where none is given."""
    if not os.path.isfile(path):
        raise DataError("there is no such file; the path of one was expected")
    if os.path.getsize(path) == 0:
        raise DataError("the file is empty; write it again")
    ending = os.path.splitext(path)[1].lower()
    if format is None and ending not in ENDINGS:
        raise DataError(
            f"a file of one of these kinds was expected: {', '.join(ENDINGS)}. "
            f"Received: {ending!r}; say what it is with --format"
        )
    if format is not None and format not in FORMATS and ":" not in format:
        raise ConfigError(
            f"One of {', '.join(FORMATS)} or FILE.py:function was expected"
            f"{nearest(format, FORMATS)}. Received: --format={format}"
        )
    return format or ENDINGS[ending]


def read(path, format=None, known_columns=("id", "label")):
    """Returns the cells of a table, or the votes of an export.

    `known_columns`, in lower case, tell the delimiter of text.
    """
    with in_file(path):
        format = format_of(path, format)
        if ":" in format:
            return _by_own_reader(path, format)
        if format in ("csv", "tsv"):
            return _delimited(path, known_columns, format == "tsv")
        return _parquet(path) if format == "parquet" else _json(path, format)


def _delimited(path, known_columns, tabs):
    """Returns the cells of delimited text, all of them strings.

    The `csv` module reads them, as pandas fills a short row up in silence.
    """
    lines = io.StringIO(read_text(path), newline="")
    skipped, header = 0, ""
    for header in lines:
        # Excel writes sep=; there.
        if header.strip() and not header.startswith(("#", "sep=")):
            break
        skipped, header = skipped + 1, ""
    # The delimiter is that which makes most known columns come out.
    delimiter = max(
        "\t" if tabs else ",;\t",
        key=lambda sign: len(
            {cell.strip(' "\r\n').lower() for cell in header.split(sign)}
            & {*known_columns}
        ),
    )
    reader = csv.reader(
        itertools.chain([header], lines), delimiter=delimiter, strict=True
    )
    places = []
    try:
        names = next(reader)
        columns = [[] for _ in names]
        last = reader.line_num
        for cells in reader:
            if len(cells) == len(names):
                for column, cell in zip(columns, cells):
                    column.append(cell)
                places.append(skipped + last + 1)
            elif len(cells) > 1 or (cells and cells[0].strip()):
                raise DataError(
                    f"line {skipped + last + 1} has {len(cells)} "
                    f"fields, the header has {len(names)}; put cells that hold "
                    "the delimiter in quotes"
                )
            last = reader.line_num
    except csv.Error as error:
        raise DataError(
            f"line {skipped + reader.line_num} cannot be read "
            f"({one_line(error)}); check its quotes: a quote inside a quoted "
            'cell is written ""'
        ) from error
    return _cells(names, columns, pd.Index(places, name="line"))


def _cells(names, columns, index):
    """Returns a frame of columns of cells of any type, whose names differ."""
    if not len(index):
        raise DataError(
            "the table is empty, it has no rows; the names of the columns and "
            "a row for each item were expected"
        )
    names = [str(name).strip() for name in names]
    wrong = [
        name
        for name, count in collections.Counter(names).items()
        if count > 1 or not name or NO_TEXT.search(name)
    ]
    if wrong:
        raise DataError(
            "each column must have a name of its own (pandas: "
            f"to_csv(index=False)). Received: {first_five(wrong)!r}"
        )
    return pd.DataFrame(dict(zip(names, columns)), index, dtype=object)


def _json(path, format):
    """Returns the cells of JSON records, or the votes of Label Studio."""
    text = read_text(path)
    if format == "jsonl":
        lines = enumerate(text.split("\n"), 1)
        lines = {number: line for number, line in lines if line.strip()}
        records = [_parsed(line, f"line {n}") for n, line in lines.items()]
        index = pd.Index(list(lines), name="line")
    else:
        records = _parsed(text, "the file") if text.strip() else []
        records = records if isinstance(records, list) else [None]
        index = pd.RangeIndex(len(records), name="row")
    if records and all(map(_is_task, records)):
        return _label_studio(records)
    names = {}
    for place, record in zip(index, records):
        if not isinstance(record, dict):
            raise DataError(
                f"{index.name} {place}: a list of objects with named fields "
                'was expected, {"id": ..., "candidates": [...]}. Received: '
                f"{shown(record)}"
            )
        names.update(dict.fromkeys(record))
    columns = [[record.get(name) for record in records] for name in names]
    return _cells(names, columns, index)


def _parsed(text, where):
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{where} is not sound JSON ({one_line(error)})"
        ) from error


def _is_task(record):
    return (
        isinstance(record, dict)
        and isinstance(record.get("data"), dict)
        and isinstance(record.get("annotations"), list)
    )


def _label_studio(tasks):
    """Returns the votes of a JSON export; repeated ones count once."""
    fields = list(dict.fromkeys(key for task in tasks for key in task["data"]))
    fields = [key for key in fields if key.lower() in IMAGE] or fields
    if len(fields) != 1:
        raise DataError(
            f"the fields of data, {first_five(fields)}, could all name "
            "the item; export the tasks with one field called image"
        )
    votes, answered, questions = [], {}, set()
    counts = collections.Counter()
    for place, task in enumerate(tasks):
        item = task["data"].get(fields[0])
        if "local-files/?d=" in str(item):
            item = urllib.parse.unquote(item.partition("?d=")[2])
        seen = answered.setdefault((str(task.get("id")), str(item)), set())
        votes.append((place, item, None, None))
        for annotation in task["annotations"]:
            try:
                answer = _choices(annotation, questions)
            except (AttributeError, KeyError, TypeError) as error:
                raise DataError(
                    f"task {place}: results of choices were expected. "
                    f"Received: {shown(annotation)}"
                ) from error
            counts["all"] += 1
            if annotation.get("was_cancelled"):
                counts["cancelled"] += 1
            elif answer in seen:
                counts["repeated"] += 1
            else:
                seen.add(answer)
                who, choices = answer
                votes += [(place, item, who, c) for c in choices or [None]]
    if len(questions) > 1:
        raise DataError(
            "choices of one question were expected; export one of them. "
            f"Received: {first_five(sorted(questions))}"
        )
    places, *columns = zip(*votes)
    index = pd.Index(places, name="task")
    frame = _cells(("item", "annotator", "label"), columns, index)
    note = (
        f"Label Studio: {len(answered)} tasks, {counts['all']} annotations, "
        f"{frame['annotator'].nunique()} annotators; left out: "
        f"{counts['cancelled']} cancelled, {counts['repeated']} repeated"
    )
    frame.attrs.update(notes=[note], layout="long")
    return frame


def _choices(annotation, questions):
    """Returns who made an annotation, and the choices in it as a tuple."""
    choices = set()
    for result in annotation["result"]:
        # A comment or a box may stand beside the choices.
        if "choices" in result["value"]:
            questions.add(str(result.get("from_name")))
            names = result["value"]["choices"]
            choices.update([names] if isinstance(names, str) else names)
    who = annotation.get("completed_by")
    if isinstance(who, dict):
        who = who.get("email") or who.get("username") or who.get("id")
    return None if who is None else str(who), tuple(sorted(choices))


def _parquet(path):
    """Returns the cells of a Parquet file, but for embedded images.

    Columns of bytes and of structs, as HuggingFace writes images, are left
    out; `attrs["has_images"]` says whether there are any.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise EnvironmentLacksError(
            "reading Parquet needs the package pyarrow; pip install "
            "pyarrow, or save the table as .csv or .jsonl"
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
        raise DataError(
            f"is no sound Parquet file ({one_line(error)})"
        ) from error
    index = pd.RangeIndex(table.num_rows, name="row")
    frame = _cells(table.column_names, columns, index)
    frame.attrs["has_images"] = len(kept) < len(file.schema_arrow)
    return frame


def _by_own_reader(path, format):
    """Returns the votes that a function of the user's own reads."""
    file, _, name = format.rpartition(":")
    try:
        spec = importlib.util.spec_from_file_location("own_reader", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        reader = getattr(module, name)
    except (AttributeError, ImportError, OSError, SyntaxError) as error:
        raise ConfigError(
            f"--format={format} is no function of a Python file: {error}"
        ) from error
    frame = reader(path)
    if not isinstance(frame, pd.DataFrame) or {"item", "label"} - {*frame}:
        raise DataError(
            f"--format={format} must return a pandas.DataFrame with "
            "the columns item and label, and if you like annotator and "
            f"confidence. Received: {shown(frame)}"
        )
    frame = frame.reset_index(drop=True).rename_axis("row").astype(object)
    frame.attrs["layout"] = "long"
    return frame


def read_npz(path, names=None):
    """Returns the arrays of an .npz file by name, those of `names` if given.

    An .npy file is one array, called `"candidates"`. Pickles are refused.
    """
    with in_file(path):
        format_of(path, "npz")
        try:
            # numpy does not close a file that it fails to read.
            with open(path, "rb") as file:
                arrays = np.load(file, allow_pickle=False)
                if isinstance(arrays, np.ndarray):
                    return {"candidates": arrays}
                names = arrays.files if names is None else names
                return {n: arrays[n] for n in arrays.files if n in names}
        except Exception as error:
            # A damaged archive shows itself as almost any exception.
            raise DataError(
                "it holds pickled objects, is damaged or no .npz or .npy file; "
                f"save plain arrays with numpy.savez ({one_line(error)})"
            ) from error


def read_arrays(path, layout="auto", name=None, class_names=None):
    """Returns the votes of an array of sets, one for each candidate.

    Args:
        path: String, an .npz or .npy file with the array `candidates`, and if
            it has them `ids`, `class_names` and `labels` (true class numbers,
            -1 where one is not known).
        layout: `"list"` for class numbers, rows filled up with -1. A vector
            holds one class number in a row; other arrays are multi-hot.
        name: String, the array of sets if it is called otherwise.
        class_names: Strings, or None.
    """
    sought = {name or "candidates", "ids", "class_names", "labels"}
    arrays = read_npz(path, {*sought, "content_hash"})
    provenance = {}
    if "content_hash" in arrays and not name:
        sets = CandidateSets.load(path)
        rows = np.repeat(np.arange(len(sets)), sets.sizes)
        ids, class_names, numbers = sets.ids, sets.class_names, sets.indices
        provenance = sets.provenance
    else:
        with in_file(path):
            ids, class_names, rows, numbers = _sets(
                arrays, name or "candidates", layout, class_names
            )
    names = np.array([*class_names, None], object)
    base = pd.DataFrame({"item": ids.astype(object)})
    base.index.name = "row"
    if "labels" in arrays:
        with in_file(path):
            labels = _array(arrays, "labels", "iuf")
            if len(labels) != len(ids):
                raise DataError(f"{len(labels)} 'labels' of {len(ids)} sets")
            _check_whole("labels", labels, PADDING, len(class_names) - 1, ids)
        base["truth"] = names[labels.astype(np.int64)]
    base.attrs.update(
        layout="list" if layout == "list" else "multi_hot",
        class_names=class_names or None,
        provenance=provenance,
        notes=[f"{len(ids)} sets of {len(class_names)} classes, an array"],
    )
    return joined(pd.DataFrame({"label": names[numbers]}, rows), base)


def _sets(arrays, name, layout, class_names):
    """Returns ids, class names, and the row and class of each candidate."""
    array = _array(arrays, name, "biuf", (1, 2))
    is_hot = array.ndim == 2 and layout != "list"
    array = array.reshape(len(array), -1)
    ids = row_ids(len(array))
    if "ids" in arrays:
        ids = _array(arrays, "ids", "Uiu").astype(str)
    odd = [*ids[len(array) :], *ids[pd.Index(ids).duplicated()]]
    if len(ids) != len(array) or odd:
        raise DataError(
            f"{len(array)} different ids were expected. Received: {len(ids)}, "
            f"too many are {first_five(odd)}"
        )
    if "class_names" in arrays:
        class_names = _array(arrays, "class_names", "Uiu").tolist()
        class_names = check_class_names(class_names)
    count = len(class_names or ())
    if is_hot:
        _check_whole(name, array, 0, 1, ids)
        rows, numbers = np.nonzero(array)
        if count not in (0, array.shape[1]):
            raise DataError(
                f"{name!r} has {array.shape[1]} columns for {count} classes"
            )
        count = array.shape[1]
    else:
        _check_whole(name, array, PADDING, (count or MOST_CLASSES) - 1, ids)
        rows, columns = np.nonzero(array != PADDING)
        numbers = array[rows, columns].astype(np.int64)
        count = count or int(array.max()) + 1
    return ids, class_names or tuple(map(str, range(count))), rows, numbers


def _array(arrays, name, kinds, ranks=(1,)):
    """Returns an array that is there, with numbers or texts in it."""
    array = arrays.get(name, np.zeros(0))
    fits = array.size and array.dtype.kind in kinds and array.ndim in ranks
    if not fits:
        raise DataError(
            f"the array {name!r} was expected: candidates, or what "
            "--candidates_column names, a matrix of 0 and 1 or of class "
            "numbers filled up with -1; ids and class_names, lists of strings; "
            "labels, a whole number for each set. Received: "
            f"{array.dtype} of shape {array.shape} among {sorted(arrays)}"
        )
    return array


def _check_whole(name, array, low, high, ids):
    """Refuses numbers that are not whole or outside `low`..`high`."""
    wrong = ~((array >= low) & (array <= high) & (array == np.floor(array)))
    if wrong.any():
        row = np.nonzero(wrong)[0][0]
        raise DataError(
            f"{name!r} must hold whole numbers in {low}..{high}; if they are "
            "lists of class numbers say --layout=list. Received: "
            f"{array[wrong][0]} of id {ids[row]} (row {row})"
        )


def joined(votes, base):
    """Returns votes with the columns of their items; each item has a row.

    Args:
        votes: Frame, whose index is the place in `base` of the vote's item.
        base: Frame with a row for each item, among its columns item.
    """
    silent = pd.RangeIndex(len(base)).difference(votes.index)
    votes = pd.concat([votes, pd.DataFrame(index=silent)])
    votes = votes.sort_index(kind="stable")
    for name in base:
        votes[name] = base[name].to_numpy()[votes.index]
    votes.index = base.index[votes.index]
    votes.attrs = base.attrs
    return votes
