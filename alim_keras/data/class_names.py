"""The names of the classes, and which class a cell of a table means."""

import collections
import contextlib
import json
import os
import re
import unicodedata

import numpy as np
import pandas as pd

from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import first_five
from alim_keras.errors import nearest

# The numbers of answers that name no class.
PADDING = -1
NONE_OF_THESE = -2
MOST_CLASSES = 1_000_000
# Halves of surrogate pairs, which no file can hold.
_HALVES = re.compile("[\ud800-\udfff]")
# Cells without an answer, in small letters.
BLANK = ("", "nan")
# A whole number as a cell writes it, and any number: 01, 1e3, 1.5.
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@contextlib.contextmanager
def in_file(path):
    """Puts the name of a file before the `DataError`s of its reading."""
    try:
        yield
    except DataError as error:
        # A cell may hold line ends; a message is one line.
        raise DataError(" ".join(f"{path}: {error}".split())) from error


def read_class_names(text):
    """Returns the class names that a flag gives, as a tuple of strings.

    Args:
        text: A file of names, one on each line (`names.txt`); a number of
            classes (`10`, named `"0"` to `"9"`); or names with commas
            (`cat,dog`).

    Raises:
        DataError: The file is missing, not UTF-8, or holds no names.
        ConfigError: A name is missing, or is there twice.

    Example:

    >>> read_class_names("cat, dog")
    ('cat', 'dog')
    >>> read_class_names("3")
    ('0', '1', '2')
    """
    text = str(text).strip()
    if text.isdecimal() and not os.path.exists(text):
        if len(text) > 9 or not 0 < int(text) <= MOST_CLASSES:
            raise ConfigError(
                f"A number of classes from 1 to {MOST_CLASSES} was expected. "
                f"Received: --class_names={text[:20]}"
            )
        return tuple(str(index) for index in range(int(text)))
    # A name without a comma must be a file: one class alone makes no sense.
    if "," in text and not os.path.isfile(text):
        return check_class_names(text.split(","), text)
    # Only \n ends a line: `str.splitlines` would cut a name at U+2028.
    with in_file(text):
        names = [line.strip() for line in read_text(text).split("\n")]
        if not any(names):
            raise DataError("the file of class names is empty")
    return check_class_names([name for name in names if name], text)


def read_text(path):
    """Returns the text of a UTF-8 file, with or without a byte-order mark.

    Raises:
        DataError: The file is missing, unreadable or in another encoding.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise DataError(f"it cannot be read: {why}") from error
    try:
        if b"\0" not in content:
            return content.decode("utf-8-sig")
        encoding = "it holds NUL characters: it is UTF-16, not UTF-8 text"
    except UnicodeDecodeError:
        encoding = "it is not UTF-8 text"
    raise DataError(f"{encoding}; save it as UTF-8, in Excel as 'CSV UTF-8'")


def check_class_names(names, source="class_names"):
    """Returns class names as a tuple of strings.

    Args:
        names: Strings, not one string.
        source: String, where they come from, for the message.

    Raises:
        ConfigError: No names, a blank one, one that is there twice, or one
            that a file with a name on each line cannot hold.
    """
    if isinstance(names, str):
        raise ConfigError(
            f"A list of names was expected. Received: {source}={names!r}"
        )
    names = tuple(str(name).strip() for name in names)
    if not names or not all(names):
        raise ConfigError(
            f"{source}: a class without a name; {len(names)} names were given"
        )
    twice = [n for n, count in collections.Counter(names).items() if count > 1]
    if twice:
        raise ConfigError(
            f"{source}: {len(twice)} class names are there twice: "
            f"{first_five(twice)}"
        )
    for name in names:
        if why := why_no_text(name):
            raise ConfigError(f"{source}: the class name {name!r} {why}")
    return names


def class_numbers(labels, class_names=None, none_of_these=(), place=str):
    """Looks labels up among the classes.

    A name comes first. A whole number is a place in the list of classes, from
    0; if some class is called by a number, it is a name and nothing else.
    -1 is no answer unless a class is called so.

    Args:
        labels: Strings, the distinct answers, without blanks around them.
        class_names: Strings; None to take the labels that occur, sorted,
            numbers by value.
        none_of_these: Strings, answers that stand for no class, in any case.
        place: Function from a place in `labels` to where it stands, as text.

    Returns:
        The class names, a tuple, and int64 `(len(labels),)`: the classes,
        or `PADDING` or `NONE_OF_THESE`.

    Raises:
        DataError: A label that is no class.
        ConfigError: A class that is also a word for none of these.

    Example:

    >>> class_numbers(["dog", "cat", "-1"])
    (('cat', 'dog'), array([ 1,  0, -1]))
    """
    words = {str(word).strip().casefold() for word in none_of_these}
    if class_names is None:
        class_names = _occurring(labels, words, place)
    clash = [name for name in class_names if name.casefold() in words]
    if clash:
        raise ConfigError(
            f"{first_five(clash)} is a class and a word for none of these; "
            "take it out of --none_of_these or out of the class names"
        )
    by_name = any(_NUMBER.fullmatch(name) for name in class_names)
    numbers = {name: number for number, name in enumerate(class_names)}
    classes = np.full(len(labels), PADDING, np.int64)
    for index, label in enumerate(labels):
        whole = _WHOLE.fullmatch(label) and int(label.partition(".")[0])
        if label in numbers:
            classes[index] = numbers[label]
        elif label.casefold() in words:
            classes[index] = NONE_OF_THESE
        elif by_name and str(whole) in numbers:
            classes[index] = numbers[str(whole)]
        elif not by_name and whole in range(len(class_names)):
            classes[index] = whole
        elif whole != PADDING:
            _refuse(label, labels, class_names, by_name, place(index))
    return tuple(class_names), classes


def _occurring(labels, words, place):
    """Returns the labels that occur as sorted class names."""
    texts, codes, wholes, spelled = {}, {}, {}, {}
    for index, label in enumerate(labels):
        if label.casefold() in words:
            continue
        kind, same = texts, unicodedata.normalize("NFKC", label).casefold()
        if _NUMBER.fullmatch(label):
            is_whole = _WHOLE.fullmatch(label)
            kind = wholes if is_whole else codes
            label = label.partition(".")[0] if is_whole else label
            same = int(label) if is_whole else float(label)
            if label == "-1":
                continue
        why = why_no_text(label) or (kind is not texts and _why_no_code(same))
        if why:
            raise _no_class(label, place(index), why)
        other = spelled.setdefault(same, (label, index))
        if other[0] != label:
            raise DataError(
                f"{other[0]!r} in {place(other[1])} and {label!r} in "
                f"{place(index)} "
                + (
                    "differ only in case (or in how an accent is encoded)"
                    if kind is texts
                    else "are the same number"
                )
                + "; write them the same, or give both in --class_names"
            )
        kind.setdefault(label, index)
    if codes and not texts:
        # Codes of one length, 01 to 12: all are names.
        texts, wholes = wholes, {}
    if texts and wholes:
        name, number = next(iter(texts)), next(iter(wholes))
        raise DataError(
            f"Class names and numbers are mixed: {name!r} in "
            f"{place(texts[name])}, {number} in {place(wholes[number])}; say "
            "what the numbers mean with --class_names"
        )
    if not texts and not codes and not wholes:
        raise DataError(
            "No class is named anywhere; are the columns the right ones?"
        )
    return sorted({**texts, **codes}) or sorted(wholes, key=int)


def why_no_text(text, lines=False):
    """Returns why a text cannot be a name or, with lines, an id; or ""."""
    if not lines and ("\n" in text or "\r" in text):
        return "names no class: it holds a line break"
    if "\0" in text or not text.isascii() and _HALVES.search(text):
        return "holds characters of no text"
    return ""


def _why_no_code(value):
    """Returns why a number cannot be a class, or ""."""
    if value < 0:
        return "classes start at 0"
    if float(value).is_integer():
        return ""
    return (
        "a class number must be whole; if it is a name, give all names with "
        "--class_names"
    )


def shown(value):
    """Returns a value as text of up to 60 characters, for a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _no_class(label, where, why):
    return DataError(f"{shown(label)} in {where} names no class: {why}")


def _refuse(label, labels, names, by_name, where):
    """Refuses a label that is no class, with the nearest class."""
    is_number, is_whole = _NUMBER.fullmatch(label), _WHOLE.fullmatch(label)
    if is_number and not is_whole:
        raise _no_class(
            label,
            where,
            _why_no_code(float(label))
            or "a class number is written without zeros before it and without "
            "an exponent; if it is a name, give all names with --class_names",
        )
    if why := why_no_text(label):
        raise _no_class(label, where, why)
    if is_whole and (
        not by_name or list(names) == [*map(str, range(len(names)))]
    ):
        wholes = [float(n) for n in labels if _WHOLE.fullmatch(n) and n != "-1"]
        from_1 = min(wholes) == 1 and max(wholes) == len(names)
        raise DataError(
            f"Class number {label} in {where} is outside 0..{len(names) - 1}, "
            f"the range of the {len(names)} classes"
            + "; they look 1-based: do the labels start at 0?"
            * from_1
        )
    hint = nearest(label, names) or f"; the classes are {first_five(names)}"
    alike = [name for name in names if name.casefold() == label.casefold()]
    if alike:
        hint = f"; the class is {alike[0]!r}, which differs only in case"
    raise DataError(f"Unknown class name {shown(label)} in {where}{hint}")


def answers(cell, names=()):
    """Returns the classes that a cell names, a list of strings.

    Args:
        cell: A class name or number, a list of them, Label Studio's
            `{"choices": [...]}`, or a blank.
        names: Class names, which are taken as they are.
    """
    if isinstance(cell, str):
        text = cell.strip()
        if not text.startswith('{"choices"') or text in names:
            is_blank = text.lower() in BLANK and text not in names
            return [] if is_blank else [_class_text(text)]
        try:
            cell = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError("is no sound JSON") from error
    if isinstance(cell, dict) and set(cell) == {"choices"}:
        cell = cell["choices"]
    if isinstance(cell, (list, tuple)):
        return [_class_text(value) for value in cell]
    return [] if cell is None or cell != cell else [_class_text(cell)]


def _class_text(value):
    if isinstance(value, str) and value.strip():
        if why := why_no_text(value.strip()):
            raise ValueError(why)
        return value.strip()
    if value is None or value != value or isinstance(value, str):
        raise ValueError("names no class: a name is missing in it")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(
            "names no class: a class name or number was expected; if it is a "
            "set, say --layout=list"
        )
    if abs(value) >= 1e15 or value != int(value):
        raise ValueError("names no class: a class number must be whole")
    return str(int(value))


def places(frame, rows):
    """Returns where up to five rows stand: "lines 3, 4 (id a, b)".

    Args:
        frame: Frame whose index is the line or row in the file, with the
            column item.
        rows: Integers or bool, rows of the frame.
    """
    rows = frame[["item"]].iloc[np.arange(len(frame))[rows]]
    rows = rows[~rows.index.duplicated()]
    unit = (rows.index.name or "row") + "s" * (len(rows) > 1)
    ids = first_five(rows["item"].tolist())
    return f"{unit} {first_five(rows.index)} (id {ids})"


def converted(frame, column, convert):
    """Returns `convert` of the cells of a column, called once per string.

    Args:
        frame: As of `places`.
        column: String.
        convert: Function of a cell, which raises `ValueError` with the reason
            for one that it cannot convert.
    """
    results, known = [], {}
    for row, cell in enumerate(frame[column].tolist()):
        is_text = type(cell) is str
        if not is_text or cell not in known:
            try:
                result = convert(cell)
            except ValueError as error:
                raise DataError(
                    f"the {column} {shown(cell)} in {places(frame, [row])} "
                    f"{error}"
                ) from error
            if is_text:
                known[cell] = result
        results.append(known[cell] if is_text else result)
    return pd.Series(results, frame.index, dtype=object)
