"""A table in memory, whatever file it came from.

A column is stored as its distinct values and a number per row, so that a cell
is read once however often it occurs: a million rows cost a few milliseconds
beyond the file itself.
"""

import collections
import contextlib
import dataclasses
import gc
import math

import numpy as np

from alim_keras.data.messages import nearest
from alim_keras.errors import DataError

# A longer id is no name of an image, and numpy would give every id its room.
LONGEST_ID = 1024


@contextlib.contextmanager
def no_cycle_search():
    """Keeps Python from looking for cycles among millions of new cells.

    A reader makes none, and the search takes two fifths of its time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Numbering(dict):
    """Numbers its keys in the order in which they are first asked for."""

    def __missing__(self, key):
        number = self[key] = len(self)
        return number

    def codes(self, keys, count):
        """Returns the numbers of `count` keys as int32."""
        return np.fromiter(map(self.__getitem__, keys), np.int32, count)


def cell_key(value):
    """Returns a key that keeps 1, 1.0, True and "1" apart."""
    return value if type(value) is str else (type(value), repr(value))


@dataclasses.dataclass(frozen=True, eq=False)
class Column:
    """One column.

    Args:
        codes: int32 `(num_rows,)` into `values`.
        values: List of the distinct cells, in the order of appearance.
    """

    codes: np.ndarray
    values: list

    @classmethod
    def of(cls, cells):
        """Returns the column of a list of cells of any kind."""
        numbering = Numbering()
        codes = numbering.codes(map(cell_key, cells), len(cells))
        first = np.unique(codes, return_index=True)[1]
        return cls(codes, [cells[row] for row in first])

    def each(self, function, dtype):
        """Returns `function` of every cell, called once per distinct one."""
        found = np.array([function(value) for value in self.values], dtype)
        return found[self.codes]


class Table:
    """Rows and named columns, with the place of each row in its file.

    Args:
        path: String, for messages.
        names: Strings, the columns in the order of the file.
        load: Function from a name to its `Column`.
        num_rows: Integer.
        lines: Integers `(num_rows,)`, the line of each row; None where the
            file has no lines, then rows are counted from 0.
        unit: String, what a place is called.
    """

    def __init__(self, path, names, load, num_rows, lines=None, unit="row"):
        self.path = str(path)
        self.names = tuple(str(name).strip() for name in names)
        self.lines = lines
        self.unit = "line" if lines is not None else unit
        self.class_names = None
        self.images = None
        self._load = dict(zip(self.names, names, strict=True))
        self._read = load
        self._columns = {}
        self._rows = num_rows
        if not self.names:
            raise DataError(f"{self.path}: the table is empty, no columns")
        repeated = [
            name
            for name, count in collections.Counter(self.names).items()
            if count > 1
        ]
        if repeated:
            raise DataError(
                f"{self.path}: the column {repeated[0]!r} is there more than "
                "once; give every column a name of its own"
            )

    def __len__(self):
        return self._rows

    def column(self, name):
        """Returns the `Column` called `name`."""
        if name not in self._columns:
            self._columns[name] = self._read(self._load[name])
        return self._columns[name]

    def find(self, name, flag):
        """Returns the column that a user called `name`, or refuses."""
        if name in self.names:
            return name
        alike = [one for one in self.names if one.lower() == name.lower()]
        if len(alike) == 1:
            return alike[0]
        known = ", ".join(self.names[:20])
        raise DataError(
            f"{self.path}: there is no column {name!r}, as --{flag} says, "
            f"among {known}{nearest(name, self.names)}"
        )

    def place(self, row):
        """Returns where a row stands in the file, as a number."""
        return int(row if self.lines is None else self.lines[row])

    def places(self, rows):
        """Names up to five rows by their place: "lines 3, 7"."""
        rows = list(rows[:6])
        text = ", ".join(str(self.place(row)) for row in rows[:5])
        more = ", ..." if len(rows) > 5 else ""
        return f"{self.unit}{'s' if len(rows) > 1 else ''} {text}{more}"


def is_blank(value):
    """Returns whether a cell says nothing: None, NaN or white space."""
    if isinstance(value, str):
        return value.strip().lower() in ("", "nan")
    return value is None or (isinstance(value, float) and math.isnan(value))


def id_text(value):
    """Returns a cell as an id, or None if it cannot be one."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    text = str(value).strip()
    if not text or len(text) > LONGEST_ID or not is_clean(text):
        return None
    return text


def id_texts(values):
    """Returns `id_text` of every value, quickly where all are sound text."""
    try:
        texts = list(map(str.strip, values))
        joined = "".join(texts)
    except TypeError:
        return [id_text(value) for value in values]
    if all(texts) and is_clean(joined) and max(map(len, texts)) <= LONGEST_ID:
        return texts
    return [id_text(value) for value in values]


def is_clean(text):
    """Returns whether a text survives numpy's and UTF-8's storing."""
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:  # Half of a surrogate pair.
        return False
    return True


class Findings:
    """What a reader says about a file: lines of text, and counts."""

    def __init__(self):
        self.notes = []
        self.counts = {}

    def note(self, text):
        self.notes.append(" ".join(str(text).split()))

    def count(self, name, number):
        self.counts[name] = int(number)
