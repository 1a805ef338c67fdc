"""`python -m alim_keras.benchmark`: formulas by hand, and a tiny network."""

import json

import commands
import keras
import pytest

from alim_keras import benchmark

TINY = (
    "--train_size=60 --width=2 --batch_size=6 --queue_size=20 --embedding_dim=4"
).split()


@pytest.mark.parametrize("seconds, rounds", [(0, 1), (3, 1), (3.5, 2)])
def test_turns_alternate_until_the_time_is_up(seconds, rounds, monkeypatch):
    now, order = 100.0, []

    def turn(name, takes):
        nonlocal now
        now += takes
        order.append(name)
        return takes

    monkeypatch.setattr(benchmark.time, "perf_counter", lambda: now)
    turns = {"a": lambda: turn("a", 1.0), "b": lambda: turn("b", 2.0)}
    samples = benchmark.measure(turns, seconds)
    assert samples == {"a": [1.0] * rounds, "b": [2.0] * rounds}
    assert order == ["a", "b"] * rounds


def test_a_record_agrees_with_itself():
    flags = ("--mixup_weight=0", f"--backend={keras.config.backend()}")
    printed = commands.works("benchmark", *TINY, *flags, "--seconds=0.1")
    result = json.loads(printed)
    seconds = result["seconds"]
    assert list(seconds) == ["alim", "plain"] and min(seconds.values()) > 0
    # Without mixup a pass and, forward, a third of one.
    efficiency = seconds["plain"] * 4 / 3 / seconds["alim"]
    assert result["efficiency"] == pytest.approx(efficiency)
    rate = 6 / seconds["alim"]
    assert result["images_per_second"]["alim"] == pytest.approx(rate)
    assert result["image_shape"] == [8, 8, 1] and result["rounds"] >= 1


@pytest.mark.parametrize(
    "flag, code",
    [("--train_size=3", 2), ("--distribute=mirrored", 2), ("--method=rc", 2)],
)
def test_a_bad_wish_is_one_line(flag, code):
    backend = f"--backend={keras.config.backend()}"
    found, line = commands.fails("benchmark", *TINY, backend, flag)
    assert found == code and "Received: " in line
