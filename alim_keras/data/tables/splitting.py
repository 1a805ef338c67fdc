"""Splitting a cell with several classes: JSON lists and separators.

One way must explain all cells of a column. Given class names are never split,
and what can be read in two ways is refused.
"""

import json
import re

import numpy as np

from alim_keras.data.tables.table import is_blank
from alim_keras.errors import DataError

SEPARATORS = ("|", ";", ",")
# How Python and others write sets and tuples.
_BRACKETS = re.compile(r"\s*(\(.*\)|\{.*\}|\[.*\])\s*", re.DOTALL)


def lists(table, name, column, known):
    """Returns a list of tokens for each distinct cell, and how they stand.

    Args:
        table: `Table`, for messages.
        name: String, the column.
        column: `Column`.
        known: `Known` class names.
    """
    found = [None] * len(column.values)
    texts, in_json = {}, {}
    for index, value in enumerate(column.values):
        if isinstance(value, (list, tuple)):
            found[index] = list(value)
        elif (inside := choices_of(value)) is not None:
            found[index] = inside
        elif value in known:
            texts[index] = value
        elif is_blank(value):
            found[index] = []
        elif not isinstance(value, str):
            found[index] = [value]
        elif value.lstrip().startswith("["):
            in_json[index] = value
        else:
            texts[index] = value

    def refuse(index, why):
        value = column.values[index]
        raise DataError(
            f"{table.path}: column {name!r}: {show(value)} in "
            f"{where(table, column, index)} {why}"
        )

    for index, text in texts.items():
        inside = _json_list(text) if text.lstrip().startswith("[") else None
        if inside and all(token in known for token in inside):
            refuse(index, "can be read in two ways, as a name and as a list")
    if in_json:
        _read_json(in_json, texts, known, found, refuse)
        return found, "the candidates are JSON lists"
    if not texts:
        return found, ""
    for index, text in texts.items():
        if _BRACKETS.fullmatch(text) and text not in known:
            refuse(
                index,
                'is no JSON list; write ["cat", "dog"] or cat|dog, or give '
                "the classes with --class_names",
            )
    separator = _separator(table, name, texts, known)
    for index, text in texts.items():
        found[index] = _split(text, separator, known)
        if found[index] is None:
            refuse(
                index,
                f"can be read in two ways, as {separator!r} stands in a class "
                'name too; write the sets as JSON lists, ["cat", "dog"]',
            )
    if separator is None:
        return found, "one candidate in each cell, no separator was found"
    return found, f"the candidates are separated by {separator!r}"


def choices_of(value):
    """Returns the names in a cell as Label Studio writes several, or None.

    They are `{"choices": ["cat", "dog"]}` in its JSON-MIN and CSV exports.
    """
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if not isinstance(value, dict) or set(value) != {"choices"}:
        return None
    names = value["choices"]
    return names if isinstance(names, list) else [names]


def check_single(table, tokens, places):
    """Refuses names found in cells of one class that look like lists.

    Args:
        table: `Table`, for messages.
        tokens: List of the distinct cells.
        places: Function from a token's number to where it stands, as text.
    """
    names = {token.strip() for token in tokens if isinstance(token, str)}
    for number, token in enumerate(tokens):
        if not isinstance(token, str):
            continue
        parts = {part.strip() for part in token.split(",")} - {token.strip()}
        if (
            "|" in token
            or ";" in token
            or _BRACKETS.fullmatch(token)
            or parts & names
        ):
            raise DataError(
                f"{table.path}: {show(token)} in {places(number)} looks like "
                "several classes, but each cell names one here; say "
                "--layout=list if it is a set, or give the classes with "
                "--class_names"
            )


def _read_json(in_json, texts, known, found, refuse):
    """Puts the lists of JSON cells into `found`; others must be known names."""
    for index, text in in_json.items():
        found[index] = _json_list(text)
        if found[index] is None:
            refuse(
                index,
                'is no JSON list; write ["cat", "dog"] with double quotes, or '
                "cat|dog",
            )
    for index, text in texts.items():
        if text not in known:
            refuse(
                index,
                "is no JSON list as other cells are; write all in one way",
            )
        found[index] = [text]


def _json_list(text):
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


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
            f"with --class_names, or write JSON lists. Received: {show(some)}"
        )
    return found[0] if found else None


def _explains(text, separator, known):
    """Returns whether every part of a cell is a known name or a number."""
    parts = _split(text, separator, known)
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
    if separator is None:
        return [text]
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


def where(table, column, index):
    """Returns where a distinct cell of a column stands, as text."""
    return table.places(np.flatnonzero(column.codes == index))


def show(value):
    """Returns a value as text of up to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
