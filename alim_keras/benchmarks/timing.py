"""Interleaved timing: things take turns, so that a disturbance meets all."""

import collections.abc
import dataclasses
import math
import time

import numpy as np

# A turn repeats a call until it lasts about this long, so that the clock's
# grain and a cold cache do not count.
TURN_SECONDS = 0.2
MOST_CALLS = 200


@dataclasses.dataclass
class Item:
    """One thing that is timed.

    Attributes:
        name: String.
        run: Function of a number of calls: makes them, and returns when the
            last is finished.
        prepare: Function that is called before each turn, outside the time.
        units: Things done in a call, such as steps. Defaults to `1`.
        least: Fewest calls of a turn. Defaults to `1`.
        most: Most calls of a turn. Defaults to `MOST_CALLS`.
        calls: Calls of a turn; `warm_up` chooses it.
    """

    name: str
    run: collections.abc.Callable
    prepare: collections.abc.Callable = lambda: None
    units: int = 1
    least: int = 1
    most: int = MOST_CALLS
    calls: int = 1


def warm_up(items, clock=time.perf_counter):
    """Runs each item, so that all is compiled, and chooses its `calls`."""
    for item in items:
        item.prepare()
        item.run(item.least)
        (seconds,) = _turn(item, item.least, clock)
        wanted = math.ceil(TURN_SECONDS / max(seconds * item.units, 1e-9))
        item.calls = max(item.least, min(item.most, wanted))


def measure(
    items,
    rounds,
    seconds,
    clock=time.perf_counter,
    processor=time.process_time,
    report=None,
):
    """Times the items in turn, round after round.

    Args:
        items: List of `Item`, warmed up.
        rounds: Integer, how many rounds at most.
        seconds: No round begins that, at the last one's pace, would end
            later than this. The first always runs.
        clock: Function that returns seconds.
        processor: Function that returns seconds of processor time, of all
            threads of this process; they leave out what neighbours took.
        report: Function of (rounds done, seconds since the start), called
            after each round, or None.

    Returns:
        Two dicts from each item's name to a list of seconds per unit, one
        for each round: of the clock, and of the processor.
    """
    samples = {item.name: [] for item in items}
    busy = {item.name: [] for item in items}
    began = clock()
    for done in range(1, rounds + 1):
        start = clock()
        for item in items:
            used, elapsed = _turn(item, item.calls, processor, clock)
            busy[item.name].append(used)
            samples[item.name].append(elapsed)
        now = clock()
        if report:
            report(done, now - began)
        if (now - began) + (now - start) > seconds:
            break
    return samples, busy


def summary(samples):
    """Returns the median and the quartiles of a list of numbers, as a dict.

    Quartiles lie between the sorted numbers, by linear interpolation.

    Example:

    >>> summary([1.0, 2.0, 4.0, 8.0, 16.0])
    {'median': 4.0, 'lower': 2.0, 'upper': 8.0}
    """
    lower, median, upper = np.quantile(samples, [0.25, 0.5, 0.75]).tolist()
    return {"median": median, "lower": lower, "upper": upper}


def _turn(item, calls, *clocks):
    item.prepare()
    starts = [clock() for clock in clocks]
    item.run(calls)
    return [
        (clock() - start) / (calls * item.units)
        for clock, start in zip(clocks, starts)
    ]
