"""The errors a user can meet, each with the exit code its command ends with.

A message says, in one line, what is wrong, where, what was expected and how
to mend it. The commands print it to stderr and exit with `exit_code`.
"""

import collections.abc
import difflib
import math
import numbers


class AlimError(Exception):
    """Base of every error that is the user's to mend, not a bug."""

    exit_code = 1


class ConfigError(AlimError, ValueError):
    """A flag, preset or argument that cannot work."""

    exit_code = 2


class DataError(AlimError, ValueError):
    """Images, labels or candidate sets that are missing or unsound."""

    exit_code = 3


class NonFiniteError(AlimError, ArithmeticError):
    """Training produced a loss that is NaN or infinite."""

    exit_code = 4


class CheckpointError(AlimError, RuntimeError):
    """A checkpoint or run folder that does not fit the run asked for."""

    exit_code = 5


class EnvironmentLacksError(AlimError, RuntimeError):
    """A package, device or network connection that was asked for is absent."""

    exit_code = 6


# The last few; more than one thread may raise before the first is seen.
_carried = collections.deque(maxlen=16)


def remember(error):
    """Keeps an `AlimError` that a framework will hand on as its own text."""
    _carried.append(type(error)(*error.args))


def original(error):
    """Returns the kept error that a framework's error quotes, or None."""
    text = str(error)
    for kept in reversed(_carried):
        if str(kept) in text:
            return kept
    return None


def did_you_mean(word, names):
    """Returns " Did you mean a or b?" for names close to `word`, or ""."""
    lowered = {str(name).lower(): str(name) for name in names}
    near = difflib.get_close_matches(str(word).lower(), lowered, n=3)
    names = " or ".join(lowered[name] for name in near)
    return f" Did you mean {names}?" if near else ""


def check_choice(name, value, allowed):
    """Raises `ConfigError` unless an argument is one of the allowed values."""
    if value not in allowed:
        raise ConfigError(
            f"Argument `{name}` must be one of {tuple(allowed)}."
            f"{did_you_mean(value, allowed)} Received: {name}={value!r}"
        )


def wanted_number(
    low=-math.inf, high=math.inf, low_open=False, high_open=False, whole=False
):
    """Returns the numbers that `check_number` takes, in words."""
    wanted = "a whole number" if whole else "a finite number"
    if low > -math.inf:
        wanted += f" {'above' if low_open else 'from'} {low}"
    if high < math.inf:
        wanted += f" {'below' if high_open else 'up to'} {high}"
    return wanted


def check_number(
    name,
    value,
    low=-math.inf,
    high=math.inf,
    *,
    low_open=False,
    high_open=False,
    whole=False,
    count=None,
    optional=False,
):
    """Returns a number, or a tuple of numbers, that lies between bounds.

    NaN and infinity are refused; with `low_open` or `high_open` that bound
    itself; with `whole` what is no whole number. `count` numbers are expected,
    or a single one. With `optional` None is returned as it is.

    Raises:
        ConfigError: If the value does not fit; it names the argument.
    """

    def fits(item):
        return (
            isinstance(item, numbers.Real)
            and not isinstance(item, bool)
            and -math.inf < item < math.inf
            and low <= item <= high
            and not (low_open and item == low)
            and not (high_open and item == high)
            and not (whole and item != int(item))
        )

    if value is None and optional:
        return None
    given = (value,) if count is None else value
    is_iterable = isinstance(given, collections.abc.Iterable)
    given = tuple(given) if is_iterable else ()
    if len(given) != (count or 1) or not all(map(fits, given)):
        wanted = wanted_number(low, high, low_open, high_open, whole)
        if count is not None:
            wanted = f"{count} values, each {wanted}"
        raise ConfigError(
            f"Argument `{name}` must be {wanted}"
            f"{', or None' if optional else ''}. Received: {name}={value!r}"
        )
    result = tuple(map(int if whole else float, given))
    return result[0] if count is None else result


_KINDS = {
    "share": {"low": 0, "high": 1},
    "weight": {"low": 0},
    "positive": {"low": 0, "low_open": True},
    "count": {"low": 1, "whole": True},
    "whole": {"low": 0, "whole": True},
}


def check_ranges(**arguments):
    """Raises `ConfigError` unless each argument lies in its range.

    Each is a pair of a number, or a tuple of some, and a key of `_KINDS`.
    """
    for name, (value, kind) in arguments.items():
        count = len(value) if isinstance(value, tuple | list) else None
        check_number(name, value, count=count, **_KINDS[kind])


def check_pixels(images, otherwise="pass check_pixels=False"):
    """Raises `DataError` if float images look scaled or standardised.

    Of `images`, `(N, H, W, channels)`, up to 256 are looked at, evenly spread;
    not at integers, `DiskImages` and feature vectors `(N, 1, 1, d)`. Dark
    images pass by a pixel above 1, and fewer than ten of zeros and ones.
    `otherwise` says what to do if the images are right as they are.
    """
    is_float = "float" in str(getattr(images, "dtype", ""))
    shape = tuple(images.shape) if is_float else ()
    if len(shape) != 4 or shape[1:3] == (1, 1) or not shape[0]:
        return
    # The commands read their flags without it.
    import numpy as np

    some = np.asarray(images[:: -(-shape[0] // 256)])
    low, high = float(some.min()), float(some.max())
    is_scaled = 0 < high <= 1 or low < 0 and high < 10
    is_few = len(some) < 10 and low >= 0 and np.all(some % 1 == 0)
    if is_scaled and not is_few:
        raise DataError(
            f"The pixels of {len(some)} float images, of {shape[0]}, run from "
            f"{low:.3g} to {high:.3g}: they look scaled, and [0, 255] is "
            "expected. Multiply [0, 1] by 255, or take 127.5 * (x + 1) of "
            f"[-1, 1]; if they are right as they are, {otherwise}."
        )


class DataWarning(UserWarning):
    """Data that can be used but look as if they were not what was meant."""


def first_five(items):
    """Returns up to five items as text, with "..." if there are more."""
    text = ", ".join(str(item) for item in items[:5])
    return text + ", ..." if len(items) > 5 else text


def first_rows(rows, ids=None):
    """Returns the names of up to five rows, by id where there are ids."""
    if ids is None:
        return "rows " + first_five([int(row) for row in rows[:6]])
    return "ids " + first_five([f"{ids[row]} (row {row})" for row in rows[:6]])


def one_line(error):
    """Returns the first line of an exception's text, or its class."""
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__
