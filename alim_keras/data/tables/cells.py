"""Taking the cells of a column apart into the classes they name.

`Tokens` are the classes as written, not yet looked up: `classes.resolve`
does that, for all columns of a table at once.
"""

import dataclasses
import itertools

import numpy as np

from alim_keras.data.tables import splitting
from alim_keras.data.tables.table import Numbering
from alim_keras.data.tables.table import cell_key
from alim_keras.data.tables.table import is_blank
from alim_keras.errors import DataError


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
    """Returns the tokens of a column with one class, or none, in a cell.

    Only a cell of Label Studio's may hold several: a vote for each.
    """
    column = table.column(name)
    lists = [[]] * len(column.values)
    for index, value in enumerate(column.values):
        if value in known or not is_blank(value):
            lists[index] = [value]
            choices = None if value in known else splitting.choices_of(value)
            if choices is not None:
                lists[index] = choices
            elif isinstance(value, (list, tuple, dict)):
                raise DataError(
                    f"{table.path}: column {name!r} must name one class in a "
                    f"cell. Received: {splitting.show(value)} in "
                    f"{splitting.where(table, column, index)}; is it "
                    f"--layout=list --candidates_column={name}?"
                )
    return _tokens(column, lists, vocabulary)


def several(table, name, vocabulary, known, findings):
    """Returns the tokens of a column with a list of classes in a cell."""
    column = table.column(name)
    lists, how = splitting.lists(table, name, column, known)
    if how:
        findings.note(f"column {name!r}: {how}")
    return _tokens(column, lists, vocabulary)


def _tokens(column, lists, vocabulary):
    """Returns the tokens of a column from those of its distinct cells."""
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    flat = vocabulary.number(list(itertools.chain.from_iterable(lists)))
    starts = np.cumsum(lengths) - lengths
    sizes = lengths[column.codes]
    rows = np.repeat(np.arange(len(column.codes)), sizes)
    offset = np.repeat(starts[column.codes] - (np.cumsum(sizes) - sizes), sizes)
    return Tokens(rows, flat[np.arange(len(rows)) + offset])
