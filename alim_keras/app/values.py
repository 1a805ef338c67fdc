"""The kinds of value that a setting can have: fields of dataclasses.

`epochs: int = whole(80, low=1)` is a field whose metadata hold the parser of
its flag. absl's own number parsers let `nan` through their bounds.
"""

import dataclasses
import functools
import math
import os

from absl import flags

from alim_keras.data import known_data
from alim_keras.errors import did_you_mean

_WORDS = {
    **dict.fromkeys(("true", "t", "1", "yes"), True),
    **dict.fromkeys(("false", "f", "0", "no"), False),
}
_TABLES = tuple(
    ".csv .tsv .txt .jsonl .ndjson .json .parquet .npz .npy .xml".split()
)
_NOISE_RATES = ("oracle", "auto", "votes", "annotated")


class Parser(flags.ArgumentParser):
    """Turns the text of a flag into its value.

    `convert` returns None for a text that does not fit; `words` are some that
    do, for suggestions.
    """

    def __init__(self, convert, syntactic_help, words=()):
        self.convert = convert
        self.syntactic_help = syntactic_help
        self.words = words

    def parse(self, argument):
        """Returns the value; ValueError with what was expected, if none."""
        if not isinstance(argument, str):
            # A default, which is a value already.
            return argument
        text = argument.strip()
        # A line break would split the value when run.flags is read again.
        value = self.convert(text) if len(text.splitlines()) == 1 else None
        if value is None:
            near = did_you_mean(text, self.words)
            raise ValueError(f"expected {self.syntactic_help}.{near}")
        return value


def _kind(convert, expected, words=()):
    """Returns a function from a default to a field with such a value."""

    def field(default=None):
        parser = Parser(convert, expected, words)
        return dataclasses.field(default=default, metadata={"parser": parser})

    return field


def _absolute(path):
    # A shell leaves the ~ of --data_dir=~/x alone; and run.flags is read again
    # from other folders.
    return os.path.abspath(os.path.expanduser(path))


def _file_or_text(text):
    return _absolute(text) if os.path.isfile(_absolute(text)) else text


def _code(text):
    file, _, name = text.rpartition(":")
    return f"{_absolute(file)}:{name}" if file.endswith(".py") else text


def _network(text):
    name = text.removeprefix("hub:")
    if text.lower().endswith(".keras"):
        return _absolute(text)
    is_place = name != text or os.sep in name
    is_folder = is_place and os.path.isdir(_absolute(name))
    return f"hub:{_absolute(name)}" if is_folder else text


def _trained_part(text):
    word, _, count = text.partition(":")
    is_part = word in ("last", "after") and count.isdecimal() and int(count) > 0
    return text if is_part or text in ("none", "all") else None


def _dataset(text):
    name = known_data.plain_name(text)
    # Before a folder here, what everybody calls cifar10.
    is_here = os.path.exists(_absolute(text)) and name not in known_data.KNOWN
    is_path = is_here or text.lower().endswith(_TABLES)
    return _absolute(text) if is_path else name


def _noise_rate(text):
    word, colon, file = text.partition(":")
    if word == "annotated" and file.strip():
        return f"annotated:{_absolute(file.strip())}"
    return _to_number(float, 0, 1, None, _NOISE_RATES)(text)


def _to_number(kind, low, high, is_open, words):
    """Returns the function from a text to a number that fits, or None."""

    def convert(text):
        if text in words:
            return text
        try:
            value = kind(text)
        except ValueError:
            return None
        is_finite = -math.inf < value < math.inf
        is_bound = value == {"low": low, "high": high}.get(is_open)
        fits = is_finite and low <= value <= high and not is_bound
        return value if fits else None

    return convert


def number(
    default, low=-math.inf, high=math.inf, is_open=None, words=(), kind=float
):
    """Returns a field with a finite number, or one of a few words.

    `is_open` is `"low"` or `"high"` where that bound itself does not fit.
    """
    fits = "a whole number" if kind is int else "a number"
    if high < math.inf:
        left = "(" if is_open == "low" else "["
        fits += f" in {left}{low}, {high}{')' if is_open == 'high' else ']'}"
    elif low > -math.inf:
        fits += f" {'above' if is_open else 'of at least'} {low}"
    convert = _to_number(kind, low, high, is_open, words)
    return _kind(convert, " or ".join((fits, *words)), words)(default)


def choice(default, words):
    """Returns a field with one of some words."""
    convert = {word: word for word in words}.get
    return _kind(convert, "|".join(words), words)(default)


whole = functools.partial(number, kind=int)
switch = _kind(lambda text: _WORDS.get(text.lower()), "true or false")
text = _kind(str, "text")
path = _kind(_absolute, "path")
file_or_text = _kind(_file_or_text, "file or text")
network = _kind(_network, "name, .keras file or folder")
trained_part = _kind(_trained_part, "none, all, last:K or after:E")
code = _kind(_code, "name or FILE.py:NAME")
dataset = _kind(_dataset, "name, table, .npz file or folder")
noise_rate = _kind(
    _noise_rate,
    f"a number in [0, 1], {', '.join(_NOISE_RATES)}[:FILE]",
    _NOISE_RATES,
)
