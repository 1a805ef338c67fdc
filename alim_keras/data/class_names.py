"""The names of the classes, and which class a cell of a table means."""

import collections
import os
import re
import unicodedata

import numpy as np

from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import first_five
from alim_keras.errors import nearest

# The numbers of answers that name no class.
PADDING = -1
NONE_OF_THESE = -2
MOST_CLASSES = 1_000_000
# A whole number as a cell writes it, and any number: 01, 1e3, 1.5.
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_MEND_ENCODING = "save it as UTF-8, in Excel as 'CSV UTF-8'"


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
    names = [line.strip() for line in names_of_lines(read_text(text))]
    names = [name for name in names if name]
    if not names:
        raise DataError(f"{text}: the file of class names is empty")
    return check_class_names(names, text)


def read_text(path):
    """Returns the text of a UTF-8 file, with or without a byte-order mark.

    Raises:
        DataError: The file is missing, unreadable or in another encoding.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(path, content[:4096]) from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: cannot be read: {why}") from error
    if "\0" in text:
        raise not_utf8(path, b"\0")
    return text


def not_utf8(path, start):
    """Returns the `DataError` about a file with these first bytes."""
    if start[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in start:
        return DataError(
            f"{path}: holds NUL characters: it is UTF-16, not UTF-8 text, or "
            f"no text file; {_MEND_ENCODING}"
        )
    return DataError(f"{path}: is not UTF-8 text; {_MEND_ENCODING}")


def names_of_lines(text):
    r"""Returns the names of a text with one on each line, as a list.

    Only `\n` ends a line: `str.splitlines` would cut a name at U+2028.
    """
    return text.removesuffix("\n").split("\n") if text else []


def check_class_names(names, source="class_names"):
    """Returns class names as a tuple of strings, or refuses one of them.

    Args:
        names: Strings, not one string.
        source: Where they come from, for the message.

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
        if why := why_no_name(name):
            raise ConfigError(f"{source}: the class name {name!r} {why}")
    return names


def why_no_name(text):
    """Returns why a text cannot be a class name or an id, or ""."""
    if "\n" in text or "\r" in text:
        return "holds a line break"
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        return "holds characters of no text"
    return ""


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
    by_name = named_by_numbers(class_names)
    numbers = {name: number for number, name in enumerate(class_names)}
    found = np.full(len(labels), PADDING, np.int64)
    outside = []
    for index, label in enumerate(labels):
        number = numbers.get(label)
        if number is None and label.casefold() in words:
            number = NONE_OF_THESE
        elif number is None and _WHOLE.fullmatch(label):
            value = int(label.partition(".")[0])
            if by_name:
                number = numbers.get(str(value))
            elif value < len(class_names):
                number = value if value >= 0 else None
            if number is None and value != PADDING:
                outside.append((index, value))
            number = PADDING if number is None else number
        elif number is None:
            _refuse(label, class_names, place(index))
        found[index] = number
    if outside:
        _refuse_number(*outside[0], labels, class_names, by_name, place)
    return tuple(class_names), found


def named_by_numbers(class_names):
    """Returns whether some class is called by a number, be it 01 or 1e3."""
    return any(_NUMBER.fullmatch(name) for name in class_names)


def class_range(class_names):
    """Returns what a label may be among some classes, as text."""
    text = f"one of {first_five(class_names)}"
    if not named_by_numbers(class_names):
        text += f", or a number from 0 to {len(class_names) - 1}"
    return text


def _occurring(labels, words, place):
    """Returns the labels that occur as sorted class names."""
    names, codes, numbers, first, values = set(), set(), set(), {}, {}
    for index, label in enumerate(labels):
        if label.casefold() in words:
            continue
        if why := why_no_name(label):
            raise _no_class(label, place(index), why)
        kind = names
        if _NUMBER.fullmatch(label):
            is_whole = _WHOLE.fullmatch(label)
            if is_whole and float(label) == PADDING:
                continue
            if why := _why_no_number(label):
                raise _no_class(label, place(index), why)
            kind = numbers if is_whole else codes
            label = label.partition(".")[0] if is_whole else label
            value = int(label) if is_whole else int(float(label))
            other = values.setdefault(value, label)
            if other != label:
                raise DataError(
                    f"{other!r} in {place(first[other])} and {label!r} in "
                    f"{place(index)} are the same number; write them the "
                    "same, or give both in --class_names"
                )
        kind.add(label)
        first.setdefault(label, index)
    if codes and not names:
        # Codes of one length, 01 to 12: all are names.
        names, numbers = names | numbers, set()
    if names and numbers:
        name, number = min(names), min(numbers, key=int)
        raise DataError(
            f"Class names and numbers are mixed: {name!r} in "
            f"{place(first[name])}, {number} in {place(first[number])}; say "
            "what the numbers mean with --class_names"
        )
    names |= codes
    if not names and not numbers:
        raise DataError(
            "No class is named anywhere; are the columns the right ones?"
        )
    alike = {}
    for name in sorted(names, key=first.get):
        other = alike.setdefault(_folded(name), name)
        if other != name:
            raise DataError(
                f"{other!r} in {place(first[other])} and {name!r} in "
                f"{place(first[name])} differ only in case (or in how an "
                "accent is encoded); write them the same, or give both in "
                "--class_names"
            )
    return sorted(names) or sorted(numbers, key=int)


def _folded(name):
    """Returns what names have in common that a reader takes for the same."""
    return unicodedata.normalize("NFKC", name).casefold()


def _why_no_number(label):
    value = float(label)
    if value < 0:
        return "classes start at 0"
    if not value.is_integer():
        return (
            "a class number must be whole; if it is a name, give all names "
            "with --class_names"
        )
    return ""


def shown(value):
    """Returns a value as text of up to 60 characters, for a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _no_class(label, where, why):
    return DataError(f"{shown(label)} in {where} names no class: {why}")


def _refuse(label, class_names, where):
    """Refuses a label that is no class, with the nearest class."""
    why = why_no_name(label)
    if _NUMBER.fullmatch(label) and not _WHOLE.fullmatch(label):
        why = _why_no_number(label) or (
            "a class number is written without zeros before it and without an "
            "exponent; if it is a name, give all names with --class_names"
        )
    if why:
        raise _no_class(label, where, why)
    alike = [name for name in class_names if _folded(name) == _folded(label)]
    if alike:
        hint = f"; the class is {alike[0]!r}, which differs only in case"
    else:
        hint = nearest(label, class_names) or (
            f"; the classes are {first_five(class_names)}"
        )
    raise DataError(f"Unknown class name {shown(label)} in {where}{hint}")


def _refuse_number(index, value, labels, class_names, by_name, place):
    """Refuses a whole number that is no class."""
    in_order = all(name == str(i) for i, name in enumerate(class_names))
    if by_name and not in_order:
        _refuse(str(value), class_names, place(index))
    known = [
        int(label.partition(".")[0])
        for label in labels
        if _WHOLE.fullmatch(label)
    ]
    known = [number for number in known if number != PADDING]
    hint = ""
    if min(known) == 1 and max(known) == len(class_names):
        hint = "; they look 1-based: do the labels start at 0?"
    raise DataError(
        f"Class number {value} in {place(index)} is outside "
        f"0..{len(class_names) - 1}, the range of the "
        f"{len(class_names)} classes{hint}"
    )
