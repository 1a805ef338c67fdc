"""Reading .jsonl, .ndjson and .json files into a `Table`."""

import json

import numpy as np

from alim_keras.data.messages import one_line
from alim_keras.data.tables import encoding
from alim_keras.data.tables import label_studio
from alim_keras.data.tables.table import Column
from alim_keras.data.tables.table import Table
from alim_keras.errors import DataError


class _Repeated(ValueError):
    """One key stands in an object twice."""


def _once(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _Repeated(f"the key {twice!r} is there twice")
    return found


def _parse(text, path, where=""):
    encoding.check_no_nul(path, text)
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}:{where} is not sound JSON ({one_line(error)})"
        ) from error


def read_lines(path, findings):
    """Returns the `Table` of a file with a JSON object on every line."""
    rows, lines = [], []
    try:
        with open(path, encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    rows.append(_parse(line, path, f" line {number}"))
                    lines.append(number)
    except UnicodeDecodeError as error:
        raise encoding.not_utf8(path, error) from error
    return from_records(path, rows, np.array(lines, np.int64))


def read(path, findings):
    """Returns the `Table` of a Label Studio export or a list of objects."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except UnicodeDecodeError as error:
        raise encoding.not_utf8(path, error) from error
    if not text.strip():
        raise DataError(f"{path}: the file is empty; write it again")
    rows = _parse(text, path)
    if not isinstance(rows, list):
        raise DataError(
            f"{path}: a list of objects was expected, one for each item "
            f"(pandas: to_json(orient='records')). "
            f"Received: {type(rows).__name__}"
        )
    if label_studio.is_export(rows):
        return label_studio.read(path, rows, findings)
    return from_records(path, rows)


def from_records(path, rows, lines=None):
    """Returns the `Table` of objects; what one lacks is a blank."""
    if not rows:
        raise DataError(f"{path}: the table is empty, it holds no items")
    names = {}
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            place = index if lines is None else lines[index]
            unit = "row" if lines is None else "line"
            raise DataError(
                f"{path}: {unit} {place}: an object with named fields was "
                f'expected, {{"id": ..., "candidates": [...]}}. Received: '
                f"{repr(row)[:60]}"
            )
        names.update(row)
    return Table(
        path,
        tuple(names),
        lambda name: Column.of([row.get(name) for row in rows]),
        len(rows),
        lines,
    )
