"""The kinds of value that a setting can have: fields of dataclasses.

`epochs: int = whole(80, low=1)` is a field whose metadata hold the parser of
its flag. absl's own number parsers let `nan` through their bounds.
"""

import dataclasses
import functools
import os

from absl import flags

from alim_keras.data import known_data
from alim_keras.errors import check_number
from alim_keras.errors import wanted_number

_WORDS = {
    **dict.fromkeys(("true", "t", "1", "yes"), True),
    **dict.fromkeys(("false", "f", "0", "no"), False),
}
_NOISE_RATES = ("oracle", "auto", "votes", "annotated")


class Parser(flags.ArgumentParser):
    """Turns a flag's text into its value; `convert` gives None for others."""

    def __init__(self, convert, syntactic_help):
        self.convert = convert
        self.syntactic_help = syntactic_help

    def parse(self, argument):
        """Returns the value; ValueError with what was expected, if none."""
        if not isinstance(argument, str):
            # A default, which is a value already.
            return argument
        text = argument.strip()
        # A line break would split the value when run.flags is read again.
        value = self.convert(text) if len(text.splitlines()) == 1 else None
        if value is None:
            raise ValueError(f"expected {self.syntactic_help}")
        return value


def _kind(convert, expected):
    """Returns a function from a default to a field with such a value."""

    def field(default=None):
        parser = Parser(convert, expected)
        return dataclasses.field(default=default, metadata={"parser": parser})

    return field


def number(default=None, words=(), **bounds):
    """Returns a field with a number of `check_number`, or one of some words."""
    expected = " or ".join((wanted_number(**bounds), *words))
    convert = functools.partial(_number, words=words, **bounds)
    return _kind(convert, expected)(default)


def choice(default, *words):
    """Returns a field with one of the words."""
    convert = {word: word for word in words}.get
    return _kind(convert, "|".join(words))(default)


def _number(text, words=(), whole=False, **bounds):
    if text in words:
        return text
    try:
        value = int(text) if whole else float(text)
        return check_number("value", value, whole=whole, **bounds)
    except ValueError:
        return None


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
    if text.lower().endswith(".keras"):
        return _absolute(text)
    name = text.removeprefix("hub:")
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
    # No name ends like a file, but a version may follow it.
    is_file = os.path.splitext(text)[1][1:].isalpha()
    return _absolute(text) if is_here or is_file else name


def _noise_rate(text):
    word, _, file = text.partition(":")
    if word == "annotated" and file.strip():
        return f"annotated:{_absolute(file.strip())}"
    return _number(text, _NOISE_RATES, low=0, high=1)


whole = functools.partial(number, whole=True)
count = functools.partial(number, whole=True, low=1)
share = functools.partial(number, low=0, high=1)
positive = functools.partial(number, low=0, low_open=True)
switch = _kind(lambda text: _WORDS.get(text.lower()), "true or false")
text = _kind(str, "text")
path = _kind(_absolute, "path")
file_or_text = _kind(_file_or_text, "file or text")
network = _kind(_network, "name, .keras file or folder")
trained_part = _kind(_trained_part, "none, all, last:K or after:E")
code = _kind(_code, "name or FILE.py:NAME")
dataset = _kind(_dataset, "name, table, .npz file or folder")
noise_rate = _kind(
    _noise_rate, f"a number in [0, 1], {', '.join(_NOISE_RATES)}[:FILE]"
)
