"""`python -m alim_keras.benchmark`: formulas by hand, and a tiny network."""

import json

import commands
import keras
import numpy as np
import pytest

from alim_keras import benchmark

TINY = (
    "--input_shape=8x8x3 --num_examples=48 --num_classes=3 --ambiguity=0 "
    "--width=2 --batch_size=6 --queue_size=20 --embedding_dim=4"
).split()


def test_quartiles_lie_between_the_numbers():
    # Sorted 1, 2, 3, 10: places 0.75, 1.5 and 2.25.
    quartiles = {"median": 2.5, "lower": 1.75, "upper": 4.75}
    assert benchmark.summary([10.0, 1.0, 3.0, 2.0]) == quartiles


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
    code, printed, error = commands.call("benchmark", *TINY, backend, *flags)
    assert code == 0, error
    result = json.loads(path.read_text())
    for name, samples in result["samples"].items():
        assert len(samples) == result["rounds"] > 0
        assert min(samples) > 0, name
        median = result["seconds"][name]["median"]
        assert median == pytest.approx(np.median(samples))
        assert name in printed
    medians = {name: s["median"] for name, s in result["seconds"].items()}
    assert list(medians) == ["alim", "plain"]
    # With mixup two passes and, forward, a third of one.
    assert result["passes"] == 2
    efficiency = medians["plain"] * 7 / 3 / medians["alim"]
    assert result["efficiency"] == pytest.approx(efficiency)
    rate = 6 / medians["alim"]
    assert result["images_per_second"]["alim"] == pytest.approx(rate)
    assert f"ALIM {rate:.2f}" in printed
    assert result["settings"]["width"] == 2 and result["versions"]["keras"]


@pytest.mark.parametrize(
    "flag, code",
    [
        ("--input_shape=8x8", 2),
        ("--num_examples=3", 3),
        ("--distribute=mirrored", 2),
        ("--method=rc", 2),
    ],
)
def test_a_bad_wish_is_one_line(flag, code):
    backend = f"--backend={keras.config.backend()}"
    found, line = commands.fails("benchmark", *TINY, backend, flag)
    assert found == code
    assert "Received: " in line or flag == "--num_examples=3"
