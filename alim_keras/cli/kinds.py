"""The kinds of value a flag can have, each checked while it is read.

absl's own numeric flags let `nan` through their bounds, so the bounds are
tested here, in a form that `nan` fails. A value that does not fit raises
`ValueError` with a sentence that says what was expected; the reader adds the
flag's name, what was received and where it stood.
"""

import contextlib
import difflib
import math
import os
import re

from absl import flags

from alim_keras.data.sources import known

_TRUE = ("true", "t", "1", "yes")
_FALSE = ("false", "f", "0", "no")
# A number, one of the letters of kMGT, and i where they count by 1024.
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?))?b?")


def near(word, known, wrap="{}"):
    """Returns " Did you mean a or b?" for names close to `word`, or ""."""
    matches = difflib.get_close_matches(word, list(known), n=3, cutoff=0.6)
    if not matches:
        return ""
    return f" Did you mean {' or '.join(wrap.format(m) for m in matches)}?"


class Switch(flags.ArgumentParser):
    """True or False, written `--name`, `--noname` or `--name=true`."""

    syntactic_help = "true or false"

    def parse(self, argument):
        """Returns the bool; see the base class."""
        if isinstance(argument, bool):
            return argument
        word = argument.strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
        raise ValueError(f"expected {self.syntactic_help}.")

    def flag_type(self):
        """See the base class."""
        return "bool"


class Text(flags.ArgumentParser):
    """Any text of one line that is not empty."""

    syntactic_help = "text"

    def parse(self, argument):
        """Returns the text; see the base class."""
        # A line break would split the value when run.flags is read again.
        if not argument.strip() or "\n" in argument or "\r" in argument:
            raise ValueError("expected text of one line, not empty.")
        return argument


class Path(Text):
    """A file or folder; `~` means the home folder, relative paths count."""

    syntactic_help = "path"

    def parse(self, argument):
        """Returns the absolute path; see the base class."""
        # A shell leaves the ~ of --data_dir=~/x alone. Absolute, because
        # run.flags is read again from other folders.
        return os.path.abspath(os.path.expanduser(super().parse(argument)))


class Dataset(Text):
    """A data set's name, or the path of a table, array file or folder."""

    syntactic_help = "name, table, .npz file or folder"

    def parse(self, argument):
        """Returns the one spelling of the name; see the base class."""
        argument = super().parse(argument).strip()
        name = known.ALIASES.get(argument.lower(), argument.lower())
        is_file = argument.lower().endswith(known.TABLES)
        # Before a folder here, what everybody calls cifar10.
        is_folder = name not in known.KNOWN and os.path.isdir(
            os.path.expanduser(argument)
        )
        return Path().parse(argument) if is_file or is_folder else name


class Names(Text):
    """Class names: a file of them, a number, or names between commas."""

    syntactic_help = "file, number or names"

    def parse(self, argument):
        """Returns the text, a file absolute; see the base class."""
        argument = super().parse(argument).strip()
        path = Path().parse(argument)
        return path if os.path.isfile(path) else argument


class Choice(flags.ArgumentParser):
    """One word of a fixed list."""

    def __init__(self, words):
        self.words = words
        self.syntactic_help = "|".join(words)

    def parse(self, argument):
        """Returns the word; see the base class."""
        word = argument.strip()
        if word not in self.words:
            raise ValueError(
                f"expected one of {', '.join(self.words)}."
                f"{near(word, self.words)}"
            )
        return word


class Number(flags.ArgumentParser):
    """A finite number with bounds, or one of a few words.

    Args:
        whole: Whether only whole numbers fit.
        low: Lower bound, or `None`.
        high: Upper bound, or `None`.
        low_open: Whether the lower bound itself is out.
        high_open: Whether the upper bound itself is out.
        words: Tuple of words that stand for themselves.
    """

    def __init__(self, whole, low, high, low_open, high_open, words):
        self.whole = whole
        self.low, self.high = low, high
        self.low_open, self.high_open = low_open, high_open
        self.words = words
        self.syntactic_help = self._describe()

    def _describe(self):
        text = "a whole number" if self.whole else "a number"
        if self.low is not None and self.high is not None:
            left = "(" if self.low_open else "["
            right = ")" if self.high_open else "]"
            text += f" in {left}{self.low}, {self.high}{right}"
        elif self.low is not None:
            text += f" {'above' if self.low_open else 'of at least'} {self.low}"
        return " or ".join((text, *self.words))

    def _fits(self, value):
        # Written so that nan, which fails every comparison, does not fit.
        low = self.low is None or (
            value > self.low if self.low_open else value >= self.low
        )
        high = self.high is None or (
            value < self.high if self.high_open else value <= self.high
        )
        return math.isfinite(value) and low and high

    def parse(self, argument):
        """Returns an int, a float or a word; see the base class."""
        if isinstance(argument, str) and argument.strip() in self.words:
            return argument.strip()
        try:
            value = int(argument) if self.whole else float(argument)
            fits = self._fits(value)
        except (ValueError, OverflowError):
            fits = False
        if not fits:
            raise ValueError(f"expected {self.syntactic_help}.")
        return value

    def flag_type(self):
        """See the base class."""
        return "int" if self.whole else "float"


class NoiseRate(flags.ArgumentParser):
    """A share, the name of an estimator, or annotated:FILE."""

    words = ("oracle", "auto", "em", "cv", "gmm", "annotated")
    syntactic_help = f"number in [0, 1], {', '.join(words)}[:FILE]"

    def parse(self, argument):
        """Returns a float or a word, the file absolute; see the base class."""
        word, colon, path = str(argument).strip().partition(":")
        if word == "annotated" and path.strip():
            return f"annotated:{Path().parse(path.strip())}"
        if word in self.words and not colon:
            return word
        with contextlib.suppress(ValueError):
            value = float(argument)
            if 0 <= value <= 1:
                return value
        raise ValueError(
            f"expected a {self.syntactic_help}.{near(word, self.words)}"
        )


class Size(flags.ArgumentParser):
    """An amount of memory: 8GiB, 500MB or a number of bytes."""

    syntactic_help = "a size such as 8GiB, 500MB or a number of bytes"

    def parse(self, argument):
        """Returns the number of bytes, an int; see the base class."""
        found = _SIZE.fullmatch(str(argument).strip().lower())
        size = 0
        if found:
            kilo = 1024 if found[3] else 1000
            size = float(found[1]) * kilo ** " kmgt".index(found[2] or " ")
        if size < 1:
            raise ValueError(f"expected {self.syntactic_help}.")
        return int(size)

    def flag_type(self):
        """See the base class."""
        return "size"


class Group:
    """Defines flags under one title of the help.

    Args:
        flag_values: The `absl.flags.FlagValues` that receives the flags.
        title: The heading under which `--help` lists them.

    Example:

    >>> flag_values = flags.FlagValues()
    >>> run = Group(flag_values, "Run")
    >>> run.whole("epochs", 20, "Passes over the training set.", low=1)
    >>> flag_values["epochs"].default
    20
    """

    def __init__(self, flag_values, title):
        self._flag_values = flag_values
        self._title = title

    def _define(self, parser, name, default, text):
        flags.DEFINE(
            parser,
            name,
            default,
            text,
            flag_values=self._flag_values,
            module_name=self._title,
        )

    def switch(self, name, default, text):
        """Defines a flag that is on or off."""
        self._define(Switch(), name, default, text)

    def text(self, name, default, text):
        """Defines a flag with free text."""
        self._define(Text(), name, default, text)

    def dataset(self, name, default, text):
        """Defines a flag that names a data set."""
        self._define(Dataset(), name, default, text)

    def names(self, name, default, text):
        """Defines a flag with the names of the classes."""
        self._define(Names(), name, default, text)

    def path(self, name, default, text):
        """Defines a flag that names a file or folder."""
        self._define(Path(), name, default, text)

    def choice(self, name, default, words, text):
        """Defines a flag with one of the given words."""
        self._define(Choice(tuple(words)), name, default, text)

    def whole(self, name, default, text, low=None, high=None, words=()):
        """Defines a flag with a whole number in [low, high]."""
        parser = Number(True, low, high, False, False, tuple(words))
        self._define(parser, name, default, text)

    def noise_rate(self, name, default, text):
        """Defines a flag with a noise rate or the name of an estimator."""
        self._define(NoiseRate(), name, default, text)

    def size(self, name, default, text):
        """Defines a flag with an amount of memory."""
        self._define(Size(), name, default, text)

    def number(
        self,
        name,
        default,
        text,
        low=None,
        high=None,
        low_open=False,
        high_open=False,
        words=(),
    ):
        """Defines a flag with a finite number between the bounds."""
        parser = Number(False, low, high, low_open, high_open, tuple(words))
        self._define(parser, name, default, text)
