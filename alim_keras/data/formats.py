"""Readers of label files, one function for each format.

A reader of a table returns its cells: a frame with the columns of the file,
whose index is the line or the row in the file. A reader of an export or of
arrays returns votes at once: a frame with `item`, `annotator`, `label` and
`confidence` (see `tables.read_votes`), and says so by `attrs["layout"]`.
"""

import csv
import importlib.util
import io
import itertools
import json
import os
import urllib.parse

import pandas as pd

from alim_keras.data.class_names import in_file
from alim_keras.data.class_names import read_text
from alim_keras.data.class_names import shown
from alim_keras.data.class_names import why_no_text
from alim_keras.data.votes import VOTES
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
# The field of Label Studio's data that names the item.
_ITEM_FIELDS = ("image", "file", "filename", "file_name", "path", "image_path")
_LONGEST_CELL = 1 << 20
_MOST_COLUMNS = 100_000


def format_of(path, format=None):
    """Returns the format of a file, by its ending where none is given.

    Args:
        path: String.
        format: One of `FORMATS`, `"FILE.py:function"`, or None.

    Raises:
        DataError: The file is missing, a folder, empty or of unknown kind.
        ConfigError: There is no such format.
    """
    if os.path.isdir(path):
        raise DataError("it is a folder, not a table; name a file in it")
    if not os.path.exists(path):
        raise DataError("there is no such file")
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

    Args:
        path: String.
        format: As of `format_of`, other than `"npz"`.
        known_columns: Strings in lower case, which tell the delimiter.

    Raises:
        DataError: A file that is missing, empty or damaged.
        EnvironmentLacksError: The format needs a package that is absent.
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
    skipped, header = 0, None
    for line in lines:
        # Excel writes sep=; there.
        if line.strip() and not line.startswith(("#", "sep=")):
            header = line
            break
        skipped += 1
    if header is None:
        raise DataError(
            "the file is empty; a line with the names of the columns "
            "was expected, then a line for each item"
        )
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
    # The limit of the csv module is one for the process.
    limit = csv.field_size_limit(_LONGEST_CELL)
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
    finally:
        csv.field_size_limit(limit)
    if not names[-1].strip() and not any(columns[-1]):
        names, columns = names[:-1], columns[:-1]  # Lines end in a delimiter.
    return _cells(names, columns, pd.Index(places, name="line"))


def _cells(names, columns, index):
    """Returns a frame of columns of cells of any type, whose names differ."""
    names = [str(name).strip() for name in names]
    if len(names) > _MOST_COLUMNS:
        raise DataError(
            f"has {len(names)} columns, more than {_MOST_COLUMNS}; "
            "write it with a row for each answer (--layout=long)"
        )
    if not len(index):
        raise DataError("the table is empty, it has no rows")
    if why := why_no_text("".join(names), lines=True):
        raise DataError(f"the name of a column {why}")
    if "" in names:
        raise DataError(
            f"column {names.index('') + 1} has no name; name it, or "
            "leave it out (pandas: to_csv(index=False))"
        )
    twice = pd.Index(names)[pd.Index(names).duplicated()]
    if len(twice):
        raise DataError(
            f"the column {twice[0]!r} is there more than once; give "
            "every column a name of its own"
        )
    return pd.DataFrame(dict(zip(names, columns)), index, dtype=object)


def _json(path, format):
    """Returns the cells of JSON records, or the votes of Label Studio."""
    text = read_text(path)
    if format == "jsonl":
        lines = list(enumerate(text.split("\n"), 1))
        lines = [(number, line) for number, line in lines if line.strip()]
        records = [_parse(line, f"line {n}") for n, line in lines]
        index = pd.Index([number for number, _ in lines], name="line")
    else:
        records = _parse(text, "it") if text.strip() else []
        if not isinstance(records, list):
            raise DataError(
                f"a list of objects was expected, one for each item "
                f"(pandas: to_json(orient='records')). Received: "
                f"{type(records).__name__}"
            )
        index = pd.RangeIndex(len(records), name="row")
    if not records:
        raise DataError("the file is empty, it holds no items")
    if format != "jsonl" and all(map(_is_task, records)):
        return _label_studio(records)
    if format == "label_studio":
        raise DataError(
            "a list of objects with 'data' and 'annotations' was "
            "expected; export JSON, not JSON-MIN"
        )
    names = {}
    for place, record in zip(index, records):
        if not isinstance(record, dict):
            raise DataError(
                f"{index.name} {place}: an object with named fields "
                'was expected, {"id": ..., "candidates": [...]}. Received: '
                f"{shown(record)}"
            )
        names.update(dict.fromkeys(record))
    columns = [[record.get(name) for record in records] for name in names]
    return _cells(names, columns, index)


def _parse(text, where):
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
    fields = dict.fromkeys(key for task in tasks for key in task["data"])
    key = [field for field in fields if field.lower() in _ITEM_FIELDS]
    key = key or list(fields)
    if len(key) != 1:
        raise DataError(
            f"the fields of data, {first_five(key)}, could all name "
            "the item; export the tasks with one field called image"
        )
    votes, answered, questions, kinds = [], {}, set(), set()
    counts = dict.fromkeys(("annotations", "cancelled", "repeated"), 0)
    for place, task in enumerate(tasks):
        item = task["data"].get(key[0])
        if "local-files/?d=" in str(item):
            item = urllib.parse.unquote(item.partition("?d=")[2])
        seen = answered.setdefault((str(task.get("id")), str(item)), set())
        votes.append((place, item, None, None))
        for annotation in task["annotations"]:
            try:
                answer = _choices(annotation, questions, kinds)
            except (AttributeError, KeyError, TypeError) as error:
                raise DataError(
                    f"task {place}: an annotation is no object with "
                    "results of choices, a list of names. Received: "
                    f"{shown(annotation)}"
                ) from error
            counts["annotations"] += 1
            if annotation.get("was_cancelled"):
                counts["cancelled"] += 1
            elif answer in seen:
                counts["repeated"] += 1
            else:
                seen.add(answer)
                who, *choices = answer
                votes += [(place, item, who, c) for c in choices or [None]]
    if len(questions) > 1:
        raise DataError(
            f"the annotations answer several questions "
            f"({first_five(sorted(questions))}); export one of them"
        )
    if not questions and kinds:
        raise DataError(
            f"the annotations hold no choices, only "
            f"{first_five(sorted(kinds))}; export a question of kind Choices"
        )
    people = {who for _, _, who, _ in votes} - {None}
    places, *columns = zip(*votes)
    names, index = VOTES[:3], pd.Index(places, name="task")
    frame = _cells(names, columns, index)
    notes = [
        f"Label Studio: {len(answered)} tasks, {counts['annotations']} "
        f"annotations, {len(people)} annotators; left out: "
        f"{counts['cancelled']} cancelled, {counts['repeated']} repeated"
    ]
    frame.attrs.update(notes=notes, layout="long")
    return frame


def _choices(annotation, questions, kinds):
    """Returns who made an annotation and the choices in it, as one tuple."""
    choices = set()
    for result in annotation["result"]:
        kinds.update(result["value"].keys())
        # A comment or a box may stand beside the choices.
        if "choices" in result["value"]:
            names = result["value"]["choices"]
            if not isinstance(names, list) or {*map(type, names)} - {str}:
                raise TypeError(names)
            questions.add(str(result.get("from_name")))
            choices.update(names)
    who = annotation.get("completed_by")
    if isinstance(who, dict):
        named = (who.get(key) for key in ("email", "username", "id"))
        who = next((name for name in named if name not in (None, "")), None)
    return None if who is None else str(who), *sorted(choices)


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
    if not isinstance(frame, pd.DataFrame) or not {"item", "label"} <= set(
        frame.columns
    ):
        columns = getattr(frame, "columns", type(frame).__name__)
        raise DataError(
            f"--format={format} must return a pandas.DataFrame with "
            "the columns item and label, and if you like annotator and "
            f"confidence. Received: {list(columns)}"
        )
    frame = frame.reset_index(drop=True).rename_axis("row").astype(object)
    frame.attrs["layout"] = "long"
    return frame
