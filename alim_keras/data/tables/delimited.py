"""Reading .csv, .tsv and other delimited text into a `Table`."""

import csv
import itertools

import numpy as np

from alim_keras.data.messages import one_line
from alim_keras.data.tables import columns
from alim_keras.data.tables import encoding
from alim_keras.data.tables.table import Column
from alim_keras.data.tables.table import Numbering
from alim_keras.data.tables.table import Table
from alim_keras.errors import DataError

_DELIMITERS = (",", ";", "\t")
_NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
# Rows turned into columns at once, which bounds the memory.
_ROWS = 1 << 13
_LONGEST_CELL = 1 << 20


def read(path, findings):
    """Returns the `Table` of a delimited text file.

    UTF-8 with or without a byte-order mark, any line ends; blank lines and
    lines that start with `#`, or with Excel's `sep=`, before the header are
    left out. Quoted cells may hold delimiters and line ends.

    Raises:
        DataError: Not UTF-8, empty, no header, or a row with another number
            of fields; the line is named.
    """
    # The csv module's limit is one for the process: set and put back.
    limit = csv.field_size_limit(_LONGEST_CELL)
    reader = None
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            skipped, header = _header(file, path)
            delimiter = _delimiter(header, path)
            file.seek(0)
            lines = itertools.islice(file, skipped, None)
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
            table = _table(reader, path, skipped)
    except UnicodeDecodeError as error:
        raise encoding.not_utf8(path, error) from error
    except csv.Error as error:
        line = skipped + reader.line_num
        raise DataError(
            f"{path}: line {line} cannot be read ({one_line(error)}); check "
            'its quotes: a quote inside a quoted cell is written ""'
        ) from error
    finally:
        csv.field_size_limit(limit)
    if delimiter != (expected := "\t" if _is_tsv(path) else ","):
        findings.note(
            f"the cells are separated by {_NAMES[delimiter]}, as the header "
            f"has no {_NAMES[expected][2:]}"
        )
    if skipped:
        findings.note(f"{skipped} comment or blank lines above the header")
    return table


def _is_tsv(path):
    return str(path).lower().endswith(".tsv")


def _header(file, path):
    """Returns how many lines stand above the header, and the header."""
    for number, line in enumerate(file):
        encoding.check_no_nul(path, line)
        if line.strip() and not line.startswith(("#", "sep=")):
            return number, line.rstrip("\r\n")
    raise DataError(
        f"{path}: the file is empty; a line with the names of the columns "
        "was expected, then a line for each item"
    )


def _delimiter(header, path):
    if _is_tsv(path):
        return "\t"
    found = [one for one in _DELIMITERS if one in header]
    if len(found) > 1:
        # The delimiter is the one that makes a known column come out.
        found = [
            one
            for one in found
            if any(
                cell.strip(' "').lower() in columns.ALL_NAMES
                for cell in header.split(one)
            )
        ] or found
    if len(found) > 1:
        if found[0] == "," and str(path).lower().endswith(".csv"):
            return ","
        raise DataError(
            f"{path}: the header can be split at "
            f"{' or '.join(_NAMES[one] for one in found)}; save it as .csv "
            "with commas or as .tsv with tabs"
        )
    return found[0] if found else ","


def _table(reader, path, skipped):
    names = next(reader, None) or []
    width = len(names)
    numberings = [Numbering() for _ in names]
    codes = [[] for _ in names]
    lines = []
    for places, cells in _chunks(reader, path, skipped, width):
        lines.append(places)
        for index, cell in enumerate(zip(*cells, strict=True)):
            codes[index].append(numberings[index].codes(cell, len(cell)))
    if not lines:
        raise DataError(
            f"{path}: the table is empty, it has a header and no rows"
        )
    found = {}
    for index, name in enumerate(names):
        values = list(numberings[index])
        if not name.strip():
            if values == [""]:
                continue  # A delimiter at the end of every line.
            raise DataError(
                f"{path}: column {index + 1} has no name in the header; name "
                "it, or leave it out (pandas: to_csv(index=False))"
            )
        if name in found:
            raise DataError(
                f"{path}: the column {name!r} is there more than once; give "
                "every column a name of its own"
            )
        found[name] = Column(np.concatenate(codes[index]), values)
    lines = np.concatenate(lines)
    return Table(path, tuple(found), found.get, len(lines), lines)


def _chunks(reader, path, skipped, width):
    """Yields the lines and the cells of rows that are not blank, in parts."""
    while True:
        start = reader.line_num
        cells = list(itertools.islice(reader, _ROWS))
        if not cells:
            return
        lines = np.full(len(cells), 1, np.int64)
        if reader.line_num - start != len(cells):
            # Cells with line ends in them: a row may take several lines.
            lines += [sum(map(_line_ends, row)) for row in cells]
        lines = skipped + start + 1 + np.cumsum(lines) - lines
        if set(map(len, cells)) != {width}:
            keep = [_fits(*row, path, width) for row in zip(lines, cells)]
            lines = lines[keep]
            cells = list(itertools.compress(cells, keep))
        if cells:
            yield lines.astype(np.int32), cells


def _line_ends(cell):
    return cell.count("\n") + cell.count("\r") - cell.count("\r\n")


def _fits(line, cells, path, width):
    """Returns whether a row counts: not if it is blank."""
    if len(cells) == width:
        return True
    if cells and (len(cells) > 1 or cells[0].strip()):
        raise DataError(
            f"{path}: line {line} has {len(cells)} fields, the header has "
            f"{width}; put cells that hold the delimiter in quotes"
        )
    return False
