"""Checked settings and named random streams for the data part."""

import math
import numbers
import zlib

import numpy as np

from alim_keras.errors import ConfigError


def check_seed(seed):
    """Returns `seed` as an int, or raises `ConfigError` unless it is >= 0."""
    if (
        isinstance(seed, bool)
        or not isinstance(seed, (numbers.Integral, np.integer))
        or int(seed) < 0
    ):
        raise ConfigError(
            "`seed` must be a whole number of at least 0. "
            f"Received: seed={seed!r}"
        )
    return int(seed)


def check_share(name, value):
    """Returns `value` as a float, or raises `ConfigError` unless in [0, 1].

    NaN passes every comparison of a range check, so it is named apart.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and 0.0 <= number <= 1.0):
        raise ConfigError(
            f"`{name}` must be a finite number from 0 to 1. "
            f"Received: {name}={value!r}"
        )
    return number


def generator(seed, name):
    """Returns a `numpy.random.Generator` (PCG64) for one use of a seed.

    The name keeps the uses of one seed apart: the candidate sets, the subset
    and the held-out part do not share draws.

    Args:
        seed: Integer >= 0.
        name: String. What the draws are for.

    Returns:
        A `numpy.random.Generator`.
    """
    words = [check_seed(seed), zlib.crc32(name.encode())]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))
