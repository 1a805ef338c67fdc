"""The errors a user can meet, each with the exit code its command ends with.

A message says, in one line, what is wrong, where, what was expected and how
to mend it. The commands print it to stderr and exit with `exit_code`; library
callers catch the class.
"""

import collections


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
