"""The kinds of value that a setting can have, and how a text becomes one.

Each field of a dataclass of settings is made by a function of this file, such
as `whole(80, low=1)`, and carries its `Kind` as metadata.
"""

import dataclasses
import difflib
import math
import os

_WORDS = {
    **dict.fromkeys(("true", "t", "1", "yes"), True),
    **dict.fromkeys(("false", "f", "0", "no"), False),
}
NOISE_RATES = ("oracle", "auto", "em", "cv", "gmm", "annotated")


@dataclasses.dataclass(frozen=True)
class Kind:
    """The values that a setting may have.

    Attributes:
        name: `"switch"`, `"text"`, `"path"`, `"dataset"`, `"file_or_text"`,
            `"code"` (FILE.py:NAME, or a name), `"choice"`, `"whole"`,
            `"number"` or `"noise_rate"`.
        low: Lower bound of a number, or None.
        high: Upper bound of a number, or None.
        open_low: Whether the lower bound itself is out.
        open_high: Whether the upper bound itself is out.
        words: Tuple of strings: the choices, or words in place of a number.
    """

    name: str
    low: float | None = None
    high: float | None = None
    open_low: bool = False
    open_high: bool = False
    words: tuple = ()

    def parse(self, text):
        """Returns the value that a text stands for.

        Args:
            text: String, as on a command line.

        Raises:
            ValueError: The text does not fit; the message says what would.

        Example:

        >>> Kind("whole", low=1).parse("3")
        3
        """
        text = text.strip()
        # A line break would split the value when run.flags is read again.
        if not text or "\n" in text or "\r" in text:
            raise ValueError(f"expected {self.describe()} of one line.")
        if self.name == "switch":
            if text.lower() in _WORDS:
                return _WORDS[text.lower()]
        elif self.name == "choice" or text in self.words:
            if text in self.words:
                return text
        elif self.name in ("whole", "number"):
            return self._number(text)
        elif self.name == "noise_rate":
            return self._noise_rate(text)
        else:
            return self._text(text)
        raise ValueError(
            f"expected {self.describe()}.{did_you_mean(text, self.words)}"
        )

    def describe(self):
        """Returns what fits, in words."""
        if self.name == "switch":
            return "true or false"
        if self.name == "choice":
            return "|".join(self.words)
        if self.name == "noise_rate":
            return f"a number in [0, 1], {', '.join(NOISE_RATES)}[:FILE]"
        if self.name == "code":
            return "name or FILE.py:NAME"
        if self.name == "dataset":
            return "name, table, .npz file or folder"
        if self.name == "file_or_text":
            return "file or text"
        if self.name not in ("whole", "number"):
            return self.name
        text = "a whole number" if self.name == "whole" else "a number"
        if self.low is not None and self.high is not None:
            left = "(" if self.open_low else "["
            right = ")" if self.open_high else "]"
            text += f" in {left}{self.low}, {self.high}{right}"
        elif self.low is not None:
            text += f" {'above' if self.open_low else 'of at least'} {self.low}"
        return " or ".join((text, *self.words))

    def _number(self, text):
        try:
            value = int(text) if self.name == "whole" else float(text)
            # Written so that nan, which fails every comparison, does not fit.
            fits = math.isfinite(value) and all(
                value > bound if is_open else value >= bound
                for value, bound, is_open in (
                    (value, self.low, self.open_low),
                    # Both sides negated, to test an upper bound as a lower.
                    (-value, self.high and -self.high, self.open_high),
                )
                if bound is not None
            )
        except (ValueError, OverflowError):
            fits = False
        if not fits:
            raise ValueError(f"expected {self.describe()}.")
        return value

    def _noise_rate(self, text):
        word, colon, path = text.partition(":")
        if word == "annotated" and path.strip():
            return f"annotated:{_absolute(path.strip())}"
        if text in NOISE_RATES and not colon:
            return text
        try:
            return Kind("number", 0, 1).parse(text)
        except ValueError:
            raise ValueError(
                f"expected {self.describe()}.{did_you_mean(word, NOISE_RATES)}"
            ) from None

    def _text(self, text):
        # Paths become absolute, because run.flags is read again from other
        # folders.
        path = _absolute(text)
        if self.name == "path":
            return path
        if self.name == "dataset":
            # Not at the top: data reads tables with pandas, which takes half
            # a second that --help can do without.
            from alim_keras.data import known_data

            is_path = known_data.is_table(text)
            return path if is_path else known_data.plain_name(text)
        if self.name == "file_or_text":
            return path if os.path.isfile(path) else text
        if self.name == "code":
            file, colon, name = text.rpartition(":")
            if colon and file.endswith(".py"):
                return f"{_absolute(file)}:{name}"
        return text


def did_you_mean(word, known, form="{}"):
    """Returns " Did you mean a or b?" for names close to `word`, or ""."""
    close = difflib.get_close_matches(word, list(known), n=3, cutoff=0.6)
    if not close:
        return ""
    return f" Did you mean {' or '.join(form.format(name) for name in close)}?"


def _absolute(path):
    # A shell leaves the ~ of --data_dir=~/x alone.
    return os.path.abspath(os.path.expanduser(path))


def _maker(name):
    """Returns a function that makes fields of one kind."""

    def field(default=None, words=(), **bounds):
        kind = Kind(name, words=tuple(words), **bounds)
        return dataclasses.field(default=default, metadata={"kind": kind})

    field.__name__ = name
    field.__doc__ = f"Returns a dataclass field whose kind is `{name}`."
    return field


switch = _maker("switch")
text = _maker("text")
path = _maker("path")
dataset = _maker("dataset")
file_or_text = _maker("file_or_text")
code = _maker("code")
choice = _maker("choice")
whole = _maker("whole")
number = _maker("number")
noise_rate = _maker("noise_rate")
