"""The names of the classes, and which class a cell of a table means."""

import collections
import contextlib
import json
import os
import re
import unicodedata

import numpy as np
import pandas as pd

from alim_keras.data.checks import PADDING
from alim_keras.data.checks import in_file
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import did_you_mean
from alim_keras.errors import first_five

# The numbers of words for no class: those of a flag, and what tools write
# where nobody answered.
NONE_OF_THESE, NO_ANSWER = -2, -3
_NO_ANSWER = {"na", "n/a", "#n/a", "nan", "none", "null", "-", "?"}
MOST_CLASSES = 1_000_000
_LONGEST = 1024
# Fields of an answer, in JSON.
_LABEL_FIELDS = ("label", "class", "class_name", "name")
_SCORE_FIELDS = ("score", "confidence", "probability", "prob")
_JOINED = re.compile(r",|\bor\b|\band\b")
# What no name may hold: line ends, and characters that no file can hold.
_NO_NAME = re.compile("[\0\n\r\ud800-\udfff]")
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def read_class_names(text):
    """Returns the class names of a file, of a number or with commas between."""
    text = str(text).strip()
    if os.path.isfile(text) or not ("," in text or text.isdecimal()):
        # One class alone makes no sense, so that this must be a file.
        with in_file(text):
            names = read_lines(text)
            if not names:
                raise DataError("the file of class names is empty")
    elif "," in text:
        names = text.split(",")
    elif int(text) > MOST_CLASSES:
        raise ConfigError(
            f"At most {MOST_CLASSES} classes were expected. "
            f"Received: --class_names={text}"
        )
    else:
        names = range(int(text))
    return check_class_names(names, text)


def read_text(path):
    """Returns the text of a UTF-8 file, with or without a byte-order mark."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise DataError(
            "it is not UTF-8 text but perhaps UTF-16; save it as UTF-8, in "
            "Excel as 'CSV UTF-8'"
        ) from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise DataError(f"it cannot be read: {why}") from error


def read_lines(path):
    """Returns the lines of a file that are not blank, without blanks around.

    Only a line end ends one: `str.splitlines` would cut a name at U+2028.
    """
    lines = map(str.strip, read_text(path).split("\n"))
    return [line for line in lines if line]


def check_class_names(names, source="class_names"):
    """Returns class names as a tuple of strings, all sound and different."""
    texts = () if isinstance(names, str) else names
    texts = tuple(str(name).strip() for name in texts)
    counts = collections.Counter(texts)
    wrong = [n for n in counts if counts[n] > 1 or not n or _NO_NAME.search(n)]
    if wrong or not texts:
        raise ConfigError(
            f"{source}: a list of class names was expected, each a line of "
            f"text, none blank and none twice. Received: {len(texts)} names, "
            f"among them {first_five(wrong)!r}"
        )
    return texts


def class_numbers(votes, columns, class_names=None, none_of_these=()):
    """Returns the class names, and a dict from labels to class numbers.

    The labels are those in columns of `votes`. A whole number that is no name
    is a place in the list of classes, from 0, unless some class is called by
    a number; -1 is `PADDING`. Words for no class give a number below.
    """
    labels = pd.Series(votes[columns].to_numpy(object).ravel())
    labels = labels.dropna().unique()

    def place(label):
        return places(votes, votes[columns].eq(label).any(axis=1))

    words = {str(word).strip().casefold() for word in none_of_these}
    if class_names is None:
        class_names = sorted_names(labels, words, place)
    class_names = check_class_names(class_names)
    clash = [name for name in class_names if name.casefold() in words]
    if clash:
        raise ConfigError(
            f"{first_five(clash)} is a class and a word for none of these; "
            "take it out of --none_of_these or out of the class names"
        )
    classes = {name: number for number, name in enumerate(class_names)}
    by_name = any(map(_NUMBER.fullmatch, class_names))
    known = classes if by_name else {str(n): n for n in classes.values()}
    known = {str(PADDING): PADDING, **known}
    meant = dict.fromkeys(_NO_ANSWER, NO_ANSWER)
    meant |= dict.fromkeys(words, NONE_OF_THESE)
    for name in class_names:
        meant.pop(name.casefold(), None)
    numbers = {}
    for label in labels:
        number = meant.get(label.casefold(), known.get(_plain(label)))
        numbers[label] = classes.get(label, number)
        if numbers[label] is None:
            whole = f" or a whole number in 0..{len(classes) - 1}"
            raise DataError(
                f"Unknown class {shown(label)} of {place(label)}: one of "
                f"{first_five(class_names)}{'' if by_name else whole} was "
                "expected; class numbers start at 0."
                f"{did_you_mean(label, class_names)}"
            )
    return class_names, numbers


def _plain(label):
    """Returns a whole number as a class is called by it: "1" for "1.0"."""
    if _WHOLE.fullmatch(label):
        return str(int(label.partition(".")[0]))
    return label


def sorted_names(labels, words=frozenset(), place="column {}".format):
    """Returns the labels that occur, but for `words`, as sorted class names.

    `place` says where a label stands.
    """
    names, spelled = {}, collections.defaultdict(list)
    for label in labels:
        name = _plain(label)
        if label.casefold() not in words | _NO_ANSWER and name != str(PADDING):
            names.setdefault(name, label)
    if not names:
        raise DataError(
            "No class is named anywhere; are the columns the right ones?"
        )
    for name in names:
        same = unicodedata.normalize("NFKC", name).casefold()
        same = name.lstrip("0") if name.isdecimal() else same
        spelled[same].append(name)
    odd = next((both for both in spelled.values() if len(both) > 1), [])[:2]
    numbers = [name for name in names if _NUMBER.fullmatch(name)]
    others = [name for name in names if not name.isdecimal()]
    if numbers and others and not odd:
        odd = dict.fromkeys([others[0], numbers[0]])
    if odd:
        odd = [f"{name!r} of {place(names[name])}" for name in odd]
        raise DataError(
            "Classes must be all names, or all whole numbers from 0, and each "
            "be written in one way; mend them, or give all with --class_names. "
            f"Received: {' and '.join(odd)}"
        )
    return sorted(names, key=int if all(map(_WHOLE.fullmatch, names)) else None)


def odd_names(labels, names, notes):
    """Returns doubts about labels that hardly name classes; may add a note."""
    known, doubts = {*names}, []
    odd = [
        name
        for name in names
        if name[-1] in ".?!"
        or name.count(" ") > 4
        or {part.strip() for part in _JOINED.split(name)} & known - {name}
    ]
    if odd:
        doubts.append(
            f"{len(odd)} of {len(names)} classes look like sentences or like "
            f"several: {first_five(odd)}; give the classes with --class_names"
        )
    counts = labels.value_counts().reindex(list(names))
    once = [*counts.index[counts == 1]]
    text = f"{len(once)} of {len(names)} classes occur once: {first_five(once)}"
    is_most = len(once) > max(5, len(names) / 2)
    (doubts if is_most else notes).extend([text] if once else [])
    return doubts


def shown(value):
    """Returns a value as text of up to 60 characters, for a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def is_blank(cell):
    """Returns whether a cell holds no answer: nothing, or NaN."""
    return cell is None or cell != cell or not str(cell).strip()


def answers(cell):
    """Returns the class that a cell names, None, or a list of pairs.

    A pair is a class and its score or None. A list may be written as
    `{"cat": 0.7}`, or as Label Studio writes it `{"choices": ["cat"]}`; an
    answer in it as `{"label": "cat", "score": 0.7}`.
    """
    if isinstance(cell, str) and cell.strip().startswith('{"choices"'):
        with contextlib.suppress(ValueError, RecursionError):
            cell = json.loads(cell)
    if isinstance(cell, dict):
        if set(cell) != {"choices"}:
            return [(text_of(name), score) for name, score in cell.items()]
        cell = cell["choices"]
    if isinstance(cell, (list, tuple)):
        return list(map(_answer, cell))
    return text_or_none(cell)


def _answer(value):
    """Returns the name and the score of one answer, in JSON."""
    if not isinstance(value, dict):
        return text_of(value), None
    label, score = (
        next((value[name] for name in names if name in value), None)
        for names in (_LABEL_FIELDS, _SCORE_FIELDS)
    )
    return text_of(label), score


def text_of(cell):
    """Returns a name, or an id, as text."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    text = str(cell).strip()
    is_text = isinstance(cell, (str, int)) and not isinstance(cell, bool)
    if not is_text or not 0 < len(text) <= _LONGEST or _NO_NAME.search(text):
        raise ValueError("is no name or whole number; sets need --layout=list")
    return text


def text_or_none(cell):
    """Returns a name as text, or None for a cell that holds nothing."""
    return None if is_blank(cell) else text_of(cell)


def places(frame, rows):
    """Returns where up to five rows stand: "id a (line 3), id b (line 4)"."""
    items = frame["item"].iloc[np.arange(len(frame))[rows]]
    items = items[~items.index.duplicated()].iloc[:6]
    unit = items.index.name or "row"
    return first_five(
        [f"id {str(item):.100} ({unit} {n})" for n, item in items.items()]
    )


def converted(frame, column, convert):
    """Returns `convert` of the cells of a column, called once per string.

    It raises `ValueError` with the reason for a cell that it cannot convert.
    """
    results, done = [], {}
    for row, cell in enumerate(frame[column]):
        key = cell if type(cell) is str else row
        if key not in done:
            try:
                done[key] = convert(cell)
            except ValueError as error:
                raise DataError(
                    f"the {column} {shown(cell)} of {places(frame, [row])} "
                    f"{error}"
                ) from error
        results.append(done[key])
    return pd.Series(results, frame.index, dtype=object)
