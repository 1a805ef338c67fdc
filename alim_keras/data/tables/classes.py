"""The classes that cells name: looked up among given names, or found."""

import unicodedata

import numpy as np

from alim_keras.data.messages import first_five
from alim_keras.data.messages import nearest
from alim_keras.data.tables.class_names import WHOLE
from alim_keras.data.tables.class_names import is_one_line
from alim_keras.data.tables.class_names import number_of
from alim_keras.data.tables.class_names import numbers_are_names
from alim_keras.data.tables.class_names import sort_names
from alim_keras.data.tables.table import is_clean
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

# The code of a cell that names no class: padding, or "none of these".
NOTHING = -1


class _Reading:
    """What one token is: a name, a whole number, or a mistake.

    A text such as 01 or 1e3 has a `code`, its value: it can be a name.
    """

    def __init__(self, token):
        self.name = self.number = self.code = self.wrong = None
        self.trimmed = False
        if isinstance(token, bytes):
            token = token.decode("utf-8", "replace")
        if isinstance(token, str):
            self._read_text(token)
        elif isinstance(token, bool):
            self.wrong = "true and false name no class"
        elif isinstance(token, (int, float)):
            if token != token or token in (float("inf"), float("-inf")):
                self.wrong = "blank (NaN) or infinite inside a set"
            elif token != int(token):
                self.wrong = "a class number must be whole"
            elif abs(token) >= 10**18:
                self.wrong = "the number is too large"
            else:
                self.number = int(token)
        elif token is None:
            self.wrong = "blank inside a set"
        else:
            self.wrong = "a class name or number was expected"

    def _read_text(self, token):
        text = token.strip()
        self.trimmed = text != token
        if not is_clean(text):
            self.wrong = "the name holds characters of no text"
        elif not is_one_line(text):
            self.wrong = "the name holds a line break"
        elif not text:
            self.wrong = "a name is missing beside a separator"
        elif WHOLE.fullmatch(text):
            self.name, self.number = text, int(text.partition(".")[0])
        else:
            self.name, self.code = text, number_of(text)
            if self.code is not None and self.code < 0:
                self.code, self.wrong = None, "classes start at 0"
            elif self.code is not None and self.code.is_integer():
                self.wrong = (
                    "a class number is written without zeros before it and "
                    "without an exponent; if it is a name, give all names "
                    "with --class_names"
                )
            elif self.code is not None:
                self.code = None
                self.wrong = (
                    "a class number must be whole; if it is a name, give all "
                    "names with --class_names"
                )


class Lookup:
    """What names and whole numbers mean among some classes.

    A name comes first. A whole number is a place in the list of classes,
    from 0; if some class is called by a number, it is a name and nothing else.

    Args:
        class_names: Strings.
        by_name: Whether numbers are names. Defaults to whether some are.
    """

    def __init__(self, class_names, by_name=None):
        if by_name is None:
            by_name = numbers_are_names(class_names)
        self.by_name = by_name
        self._places = {name: i for i, name in enumerate(class_names)}

    def class_of(self, token):
        """Returns the class of a cell as an integer, or None."""
        return self.of_reading(_Reading(token))

    def of_reading(self, reading):
        """Returns the class that a `_Reading` means, or None."""
        place = self._places.get(reading.name)
        number = reading.number
        if place is not None or reading.wrong or number is None:
            return place
        if self.by_name:
            return self._places.get(str(number))
        return number if 0 <= number < len(self._places) else None


def resolve(vocabulary, counts, places, class_names, none_words, findings):
    """Looks all tokens up.

    Args:
        vocabulary: List of tokens: text, numbers, or what else was found.
        counts: Integers, how often each token occurs.
        places: Function from a token's number to where it stands, as text.
        class_names: Strings, or None: found among the tokens.
        none_words: Strings that mean "none of these".
        findings: `Findings`, gets notes and counts.

    Returns:
        The class names, and int32 `(len(vocabulary),)`: the class of each
        token, or `NOTHING`.

    Raises:
        DataError: A token that is no class; the message says where.
    """
    readings = [_Reading(token) for token in vocabulary]
    none_words = {str(word).strip().casefold() for word in none_words}
    codes = np.full(len(vocabulary), NOTHING, np.int32)
    is_none = np.array(
        [(r.name or "").casefold() in none_words for r in readings], bool
    )
    found = class_names is None
    if found:
        class_names = _found(vocabulary, readings, is_none, places)
        findings.note(
            f"{len(class_names)} classes were found: {first_five(class_names)}"
        )
    clash = [name for name in class_names if name.casefold() in none_words]
    if clash:
        raise ConfigError(
            f"{first_five(clash)} is a class and a word for none of these; "
            "take it out of --none_of_these or out of the class names"
        )
    lookup = Lookup(class_names, True if found else None)
    by_name = lookup.by_name
    padding = trimmed = 0
    num_places, numbers = 0, []
    for token, reading in enumerate(readings):
        if is_none[token]:
            continue
        code = lookup.of_reading(reading)
        if code is None and reading.wrong:
            _refuse(vocabulary[token], reading.wrong, places(token))
        if code is not None:
            codes[token] = code
            is_place = reading.number is not None and not by_name
            num_places += is_place
            if reading.trimmed and not is_place:
                trimmed += int(counts[token])
        elif reading.number == NOTHING:
            padding += int(counts[token])
        elif reading.number is not None:
            numbers.append(token)
        else:
            _refuse_name(reading.name, class_names, places(token))
    if numbers:
        _refuse_number(numbers[0], readings, class_names, by_name, places)
    if num_places:
        findings.note("class numbers are places in the class names, from 0")
    if (
        by_name
        and not found
        and any(reading.number is not None for reading in readings)
    ):
        in_order = all(n == str(i) for i, n in enumerate(class_names))
        if not in_order:
            findings.note(
                "class numbers are taken as the names of classes, not as "
                f"places in the list ({first_five(class_names)})"
            )
    if trimmed:
        findings.note(f"{trimmed} class names had spaces around them: trimmed")
        findings.count("trimmed", trimmed)
    if padding:
        findings.note(f"{padding} cells -1 were taken as no answer")
        findings.count("padding", padding)
    dropped = int(counts[is_none].sum())
    if dropped:
        findings.note(f"{dropped} answers were none of the classes: dropped")
        findings.count("none_of_these", dropped)
    return tuple(class_names), codes


def _refuse_number(token, readings, class_names, by_name, places):
    """Refuses a whole number that is no class."""
    number = readings[token].number
    in_order = all(n == str(i) for i, n in enumerate(class_names))
    if by_name and not in_order:
        _refuse_name(str(number), class_names, places(token))
    known = [r.number for r in readings if r.number is not None]
    known = [n for n in known if n != NOTHING]
    hint = ""
    if min(known) == 1 and max(known) == len(class_names):
        hint = "; they look 1-based: do the labels start at 0?"
    raise DataError(
        f"Class number {number} in {places(token)} is outside "
        f"0..{len(class_names) - 1}, the range of the "
        f"{len(class_names)} classes{hint}"
    )


def _found(vocabulary, readings, is_none, places):
    """Returns the sorted names that occur, or refuses an unclear mixture."""
    names, numbers, coded, first = set(), set(), {}, {}
    for token, reading in enumerate(readings):
        if is_none[token]:
            continue
        if reading.code is not None:
            first.setdefault(reading.name, token)
            coded.setdefault(reading.name, reading.code)
        elif reading.wrong:
            _refuse(vocabulary[token], reading.wrong, places(token))
        elif reading.number is None:
            names.add(reading.name)
            first.setdefault(reading.name, token)
        elif reading.number < NOTHING:
            _refuse(vocabulary[token], "classes start at 0", places(token))
        elif reading.number != NOTHING:
            numbers.add(reading.number)
            first.setdefault(str(reading.number), token)
    if coded:
        _check_codes(coded, numbers, first, places)
    if coded and not names:
        # Codes of one length, 01 to 12: all are names.
        names, numbers = set(map(str, numbers)), set()
    if names and numbers:
        name, number = min(names), str(min(numbers))
        raise DataError(
            f"Class names and numbers are mixed: {name!r} in "
            f"{places(first[name])}, {number} in {places(first[number])}; "
            "say what the numbers mean with --class_names"
        )
    names |= set(coded)
    if not names and not numbers:
        raise DataError(
            "No class is named anywhere; are the columns the right ones?"
        )
    groups = {}
    for name in sorted(names, key=first.get):
        groups.setdefault(_alike(name), []).append(name)
    for group in groups.values():
        if len(group) > 1:
            raise DataError(
                f"{group[0]!r} in {places(first[group[0]])} and {group[1]!r} "
                f"in {places(first[group[1]])} differ only in case (or in how "
                "an accent is encoded); write "
                "them the same, or give both in --class_names"
            )
    return sort_names(names or {str(number) for number in numbers})


def _check_codes(coded, numbers, first, places):
    """Refuses two texts that are one number, such as 01 and 1."""
    owner = {float(number): str(number) for number in numbers}
    for name, value in coded.items():
        other = owner.setdefault(value, name)
        if other != name:
            raise DataError(
                f"{other!r} in {places(first[other])} and {name!r} in "
                f"{places(first[name])} are the same number; write them the "
                "same, or give both in --class_names"
            )


def _alike(name):
    """Returns what names have in common that a reader takes for the same."""
    return unicodedata.normalize("NFKC", name).casefold()


def _refuse(token, why, where):
    text = repr(token)
    text = text if len(text) <= 60 else text[:57] + "..."
    raise DataError(f"{text} in {where} names no class: {why}")


def _refuse_name(name, class_names, where):
    alike = [one for one in class_names if _alike(one) == _alike(name)]
    shown = name if len(name) <= 60 else name[:57] + "..."
    if alike:
        hint = f"; the class is {alike[0]!r}, which differs only in case"
    else:
        hint = nearest(name, class_names) or (
            f"; the classes are {first_five(class_names)}"
        )
    raise DataError(f"Unknown class name {shown!r} in {where}{hint}")
