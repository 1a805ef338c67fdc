"""The errors a user can meet, each with the exit code its command ends with.

A message says, in one line, what is wrong, where, what was expected and how
to mend it. The commands print it to stderr and exit with `exit_code`; library
callers catch the class.
"""

import collections
import difflib


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
    """Keeps an error that a framework will hand on as text of its own.

    Args:
        error: An `AlimError`, raised inside a function that tf.data calls.
    """
    _carried.append(type(error)(*error.args))


def original(error):
    """Returns the remembered error that another error quotes, or None.

    Args:
        error: Exception of a framework.
    """
    text = str(error)
    for kept in reversed(_carried):
        if str(kept) in text:
            return kept
    return None


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


def nearest(name, candidates, count=3):
    """Returns "; did you mean ...?" with near matches, or an empty string."""
    lowered = {str(word).lower(): str(word) for word in candidates}
    matches = difflib.get_close_matches(
        str(name).lower(), list(lowered), n=count, cutoff=0.6
    )
    if not matches:
        return ""
    words = " or ".join(lowered[match] for match in matches)
    return f"; did you mean {words}?"
