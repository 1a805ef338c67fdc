"""`python -m alim_keras.benchmark`: formulas by hand, and a tiny network."""

import json

import commands
import keras
import numpy as np
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


def test_a_record_agrees_with_itself(tmp_path, monkeypatch):
    # Turns as short as they get: the numbers need not be good ones.
    monkeypatch.setattr(benchmark, "TURN_SECONDS", 1e-3)
    path = tmp_path / "result.json"
    flags = (f"--output={path}", "--seconds=0.1")
    backend = f"--backend={keras.config.backend()}"
    code, printed, error = commands.call(
        "benchmark", *TINY, "--mixup_weight=0", backend, *flags
    )
    assert code == 0, error
    result = json.loads(path.read_text())
    seconds = result["seconds"]
    assert list(seconds) == ["alim", "plain"]
    for name, samples in result["samples"].items():
        assert min(samples) > 0, name
        assert seconds[name] == pytest.approx(np.median(samples))
    # Without mixup a pass and, forward, a third of one.
    efficiency = seconds["plain"] * 4 / 3 / seconds["alim"]
    assert result["efficiency"] == pytest.approx(efficiency)
    rate = 6 / seconds["alim"]
    assert result["images_per_second"]["alim"] == pytest.approx(rate)
    assert f"{rate:.2f} images/s" in printed
    assert result["settings"]["width"] == 2 and result["versions"]["keras"]


@pytest.mark.parametrize(
    "flag, code",
    [("--train_size=3", 2), ("--distribute=mirrored", 2), ("--method=rc", 2)],
)
def test_a_bad_wish_is_one_line(flag, code):
    backend = f"--backend={keras.config.backend()}"
    found, line = commands.fails("benchmark", *TINY, backend, flag)
    assert found == code and "Received: " in line
