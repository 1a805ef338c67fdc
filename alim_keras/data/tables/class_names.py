"""Lists of class names: as a flag gives them, checked, and sorted."""

import os
import re

from alim_keras.data.messages import first_five
from alim_keras.data.tables import encoding
from alim_keras.data.tables.table import is_clean
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

# A whole number as a cell writes it.
WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.0*)?")
_MOST_CLASSES = 1_000_000


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
        count = int(text[:9])
        if not 0 < count <= _MOST_CLASSES or len(text) > 9:
            raise ConfigError(
                f"A number of classes from 1 to {_MOST_CLASSES} was expected. "
                f"Received: --class_names={text[:20]}"
            )
        return tuple(str(index) for index in range(count))
    # One class alone makes no sense, so that must be a file.
    if os.path.isfile(text) or "," not in text:
        try:
            with open(text, encoding="utf-8-sig") as file:
                lines = one_a_line(file.read())
        except UnicodeDecodeError as error:
            raise encoding.not_utf8(text, error) from error
        except (OSError, ValueError) as error:
            raise DataError(
                f"{text}: the file of class names cannot be read: "
                f"{getattr(error, 'strerror', None) or error}"
            ) from error
        encoding.check_no_nul(text, "".join(lines))
        names = [line.strip() for line in lines if line.strip()]
        if not names:
            raise DataError(f"{text}: the file of class names is empty")
    else:
        names = [name.strip() for name in text.split(",")]
    return check_names(names, text)


def check_names(names, source="class_names"):
    """Returns class names as a tuple, or says which one cannot be used."""
    names = tuple(str(name).strip() for name in names)
    if not names or not all(names):
        raise ConfigError(
            f"{source}: a class without a name; {len(names)} names were given"
        )
    twice = [n for n, count in _counted(names).items() if count > 1]
    if twice:
        raise ConfigError(
            f"{source}: {len(twice)} class names are there twice: "
            f"{first_five(twice)}"
        )
    if not all(is_clean(name) for name in names):
        raise ConfigError(f"{source}: a class name holds characters of no text")
    broken = [repr(name) for name in names if not is_one_line(name)]
    if broken:
        raise ConfigError(
            f"{source}: {len(broken)} class names hold a line break: "
            f"{first_five(broken)}; files of names have one on each line"
        )
    return names


def is_one_line(name):
    """Returns whether a class name survives a file with a name on each line."""
    return "\n" not in name and "\r" not in name


def one_a_line(text):
    r"""Returns the names of a text that has one on each line, as a list.

    Only `\n` ends a line: `str.splitlines` would cut a name in two at U+2028
    and others.
    """
    return text.removesuffix("\n").split("\n") if text else []


def _counted(names):
    counts = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def numbers_are_names(class_names):
    """Returns whether some class is called by a number, be it 01 or 1e3."""
    return any(
        WHOLE.fullmatch(name) or number_of(name) is not None
        for name in class_names
    )


def number_of(text):
    """Returns the number that a text is, however it is written, or None."""
    if not text[-1:].isdecimal() and text[-1:] != ".":
        return None  # Names such as "Infinity" and "nan" stay names.
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def sort_names(names):
    """Returns names sorted; purely numeric ones as numbers."""
    names = list(names)
    if names and all(WHOLE.fullmatch(name) for name in names):
        return tuple(sorted(names, key=int))
    return tuple(sorted(names))
