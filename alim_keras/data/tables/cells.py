"""Taking the cells of a column apart into the classes they name.

`Tokens` are the classes as written, not yet looked up: `classes.resolve`
does that, for all columns of a table at once.
"""

import dataclasses
import itertools
import json

import numpy as np

from alim_keras.data.tables.table import Numbering
from alim_keras.data.tables.table import cell_key
from alim_keras.data.tables.table import is_blank
from alim_keras.errors import DataError

SEPARATORS = ("|", ";", ",")


class Known:
    """The given class names, for quick questions; none if they are found."""

    def __init__(self, class_names, none_words=()):
        self.given = class_names is not None
        self._names = frozenset(class_names or ())
        self._none = frozenset(w.strip().casefold() for w in none_words)
        self._longest = {}

    def __contains__(self, value):
        return isinstance(value, str) and (
            value in self._names
            or value.strip() in self._names
            or value.strip().casefold() in self._none
        )

    def longest(self, separator):
        """Returns into how many parts the names can fall at most."""
        if separator not in self._longest:
            self._longest[separator] = 1 + max(
                (name.count(separator) for name in self._names), default=0
            )
        return self._longest[separator]


class Vocabulary:
    """The distinct tokens of a table, each with a number."""

    def __init__(self):
        self._numbers = Numbering()
        self.values = []

    def number(self, tokens):
        """Returns the numbers of a list of tokens as int32."""
        codes = self._numbers.codes(map(cell_key, tokens), len(tokens))
        known = len(self.values)
        if len(self._numbers) > known:
            numbers, first = np.unique(codes, return_index=True)
            self.values += [tokens[i] for i in first[numbers >= known]]
        return codes

    def __len__(self):
        return len(self.values)


@dataclasses.dataclass(frozen=True, eq=False)
class Tokens:
    """What the rows of a column name.

    Args:
        rows: int64 `(num_tokens,)`, the row of the table, ascending.
        codes: int32 `(num_tokens,)` into the vocabulary.
    """

    rows: np.ndarray
    codes: np.ndarray


def single(table, name, vocabulary, known):
    """Returns the tokens of a column with one class, or none, in a cell."""
    column = table.column(name)
    numbers = np.full(len(column.values), -1, np.int32)
    filled = []
    for index, value in enumerate(column.values):
        if value in known or not is_blank(value):
            if isinstance(value, (list, tuple, dict)):
                raise DataError(
                    f"{table.path}: column {name!r} must name one class in a "
                    f"cell. Received: {_show(value)} in "
                    f"{_where(table, column, index)}; is it --layout=list "
                    f"--candidates_column={name}?"
                )
            filled.append(index)
    numbers[filled] = vocabulary.number([column.values[i] for i in filled])
    codes = numbers[column.codes]
    rows = np.flatnonzero(codes >= 0)
    return Tokens(rows, codes[rows])


def several(table, name, vocabulary, known, findings):
    """Returns the tokens of a column with a list of classes in a cell."""
    column = table.column(name)
    lists, how = _lists(table, name, column, known)
    if how:
        findings.note(f"column {name!r}: {how}")
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    flat = vocabulary.number(list(itertools.chain.from_iterable(lists)))
    starts = np.cumsum(lengths) - lengths
    sizes = lengths[column.codes]
    rows = np.repeat(np.arange(len(column.codes)), sizes)
    offset = np.repeat(starts[column.codes] - (np.cumsum(sizes) - sizes), sizes)
    return Tokens(rows, flat[np.arange(len(rows)) + offset])


def _lists(table, name, column, known):
    """Returns a list of tokens for each distinct cell, and how they stand."""
    lists = [None] * len(column.values)
    texts, json_lists = {}, {}
    for index, value in enumerate(column.values):
        if isinstance(value, (list, tuple)):
            lists[index] = list(value)
        elif value in known:
            texts[index] = value
        elif is_blank(value):
            lists[index] = []
        elif not isinstance(value, str):
            lists[index] = [value]
        elif value.lstrip().startswith("["):
            json_lists[index] = value
        else:
            texts[index] = value
    for index, text in json_lists.items():
        lists[index] = _json_list(table, name, column, index, text)
    # Names that are known as a whole say nothing about the rest.
    unknown = [i for i, t in texts.items() if t not in known]
    if json_lists and unknown:
        raise DataError(
            f"{table.path}: column {name!r} holds JSON lists and other text; "
            "write all cells in one way. Received: "
            f"{_show(texts[unknown[0]])} in "
            f"{_where(table, column, unknown[0])}"
        )
    if json_lists:
        lists = [
            [texts[index]] if found is None else found
            for index, found in enumerate(lists)
        ]
        return lists, "the candidates are JSON lists"
    if not texts:
        return lists, ""
    separator = _separator(table, name, texts, known)
    for index, text in texts.items():
        if separator is None:
            lists[index] = [text]
            continue
        parts = _split(text, separator, known)
        if parts is None:
            raise DataError(
                f"{table.path}: column {name!r}: {_show(text)} in "
                f"{_where(table, column, index)} can be read in two ways, as "
                f"{separator!r} stands in a class name too; write the sets "
                'as JSON lists, ["cat", "dog"]'
            )
        lists[index] = parts
    if separator is None:
        return lists, "one candidate in each cell, no separator was found"
    return lists, f"the candidates are separated by {separator!r}"


def _json_list(table, name, column, index, text):
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise DataError(
            f"{table.path}: column {name!r}: {_show(text)} in "
            f"{_where(table, column, index)} is no JSON list; write "
            '["cat", "dog"] with double quotes, or cat|dog'
        )
    return found


def _separator(table, name, texts, known):
    """Returns the one separator that explains all cells, or None."""
    found = [s for s in SEPARATORS if any(s in t for t in texts.values())]
    if known.given and found:
        cells = list(texts.values())
        whole = all(_explains(text, None, known) for text in cells)
        if whole and not any(
            _splits(text, one, known) for text in cells for one in found
        ):
            return None
        explain = [
            one
            for one in found
            if all(_explains(text, one, known) for text in cells)
        ]
        if len(explain) == 1:
            return explain[0]
        # With several, those that split nothing make no difference.
        explain = [
            one
            for one in explain
            if any(_splits(text, one, known) for text in cells)
        ]
        if len(explain) == 1:
            return explain[0]
        if not explain and len(found) > 1:
            # None does: that which explains most leads to the best message.
            return max(
                found,
                key=lambda one: sum(
                    _explains(text, one, known) for text in cells
                ),
            )
        found = explain or found
    if len(found) > 1:
        some = next(t for t in texts.values() if found[0] in t)
        raise DataError(
            f"{table.path}: column {name!r} may be separated by "
            f"{' or '.join(repr(one) for one in found)}; give the classes "
            f"with --class_names, or write JSON lists. Received: {_show(some)}"
        )
    return found[0] if found else None


def _explains(text, separator, known):
    """Returns whether every part of a cell is a known name or a number."""
    parts = [text] if separator is None else _split(text, separator, known)
    return parts is None or all(
        part in known or _is_number(part) for part in parts
    )


def _splits(text, separator, known):
    """Returns whether a separator takes a cell apart into known classes."""
    parts = _split(text, separator, known)
    return parts is None or (
        len(parts) > 1 and _explains(text, separator, known)
    )


def _is_number(text):
    text = text.strip()
    whole, dot, rest = text.removeprefix("-").partition(".")
    return whole.isdecimal() and (not dot or not rest.strip("0"))


def _split(text, separator, known):
    """Splits a cell, but not inside a known name; None if there are two ways.

    All ways to join neighbouring parts into known names are counted.
    """
    parts = text.split(separator)
    longest = known.longest(separator)
    if len(parts) == 1 or longest == 1:
        return parts
    # ways[k]: up to two readings of the first k parts.
    ways = [[[]]]
    for end in range(1, len(parts) + 1):
        here = []
        for start in range(max(0, end - longest), end):
            joined = separator.join(parts[start:end])
            if joined in known or (end - start == 1 and _is_number(joined)):
                here.extend([*way, joined] for way in ways[start])
        ways.append(here[:2])
    if len(ways[-1]) == 2:
        return None
    return ways[-1][0] if ways[-1] else parts


def _where(table, column, index):
    return table.places(np.flatnonzero(column.codes == index))


def _show(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
