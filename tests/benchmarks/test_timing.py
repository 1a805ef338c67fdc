"""Turns, rounds and statistics, on clocks that the tests move by hand."""

import pytest

from alim_keras.benchmarks import timing


class Clock:
    """Stands still until something takes time."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def item(name, seconds, clock, log=None, **options):
    """An item whose calls take the given seconds each."""

    def run(calls):
        clock.now += seconds * calls
        if log is not None:
            log.append((name, calls))

    return timing.Item(name, run, **options)


def test_quartiles_lie_between_the_numbers():
    # Sorted 1, 2, 3, 10: places 0.75, 1.5 and 2.25.
    found = timing.summary([10.0, 1.0, 3.0, 2.0])
    assert found == {"median": 2.5, "lower": 1.75, "upper": 4.75}
    assert timing.summary([7.0]) == {"median": 7.0, "lower": 7.0, "upper": 7.0}


def test_items_take_turns():
    clock, log = Clock(), []
    items = [item(name, 1.0, clock, log) for name in "abc"]
    samples, _ = timing.measure(items, 2, 1e9, clock, clock)
    assert [name for name, _ in log] == ["a", "b", "c", "a", "b", "c"]
    assert samples == {name: [1.0, 1.0] for name in "abc"}


def test_a_sample_is_seconds_per_unit_without_the_preparation():
    clock, busy = Clock(), Clock()

    def run(calls):
        clock.now += 6.0 * calls
        busy.now += 1.5 * calls

    def prepare():
        clock.now += 50.0
        busy.now += 50.0

    one = timing.Item("a", run, prepare, units=3, calls=4)
    samples, processor = timing.measure([one], 1, 1e9, clock, busy)
    assert samples == {"a": [2.0]}
    assert processor == {"a": [0.5]}


def test_the_warm_up_compiles_then_chooses_the_calls():
    clock, log = Clock(), []
    turn = timing.TURN_SECONDS
    items = [
        item("slow", 10 * turn, clock, log),
        item("quick", 0.3 * turn, clock, log),
        item("quickest", turn / 1e6, clock, log),
        item("two steps", 0.3 * turn, clock, log, units=2),
        item("once", 0.3 * turn, clock, log, most=1),
        item("many", turn, clock, log, least=8, most=8),
    ]
    timing.warm_up(items, clock)
    most = timing.MOST_CALLS
    assert [each.calls for each in items] == [1, 4, most, 4, 1, 8]
    assert log[:2] == [("slow", 1), ("slow", 1)]
    assert log[-2:] == [("many", 8), ("many", 8)]


@pytest.mark.parametrize(
    "seconds, expected",
    [
        (0.0, 1),  # The first round always runs.
        (5.9, 1),  # The second would end at 6.
        (6.0, 2),
        (8.9, 2),
        (1e9, 4),
    ],
)
def test_no_round_begins_that_would_end_too_late(seconds, expected):
    clock, seen = Clock(), []
    items = [item("a", 1.0, clock), item("b", 2.0, clock)]
    samples, _ = timing.measure(
        items, 4, seconds, clock, clock, lambda *args: seen.append(args)
    )
    assert len(samples["a"]) == expected
    assert seen == [(n, 3.0 * n) for n in range(1, expected + 1)]
