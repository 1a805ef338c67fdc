"""`python -m alim_keras.benchmark` on a tiny network."""

import json
import os

import keras
import numpy as np
import pytest

from alim_keras import benchmark
from alim_keras import cli
from alim_keras.benchmarks import timing
from alim_keras.cli import benchmark_flags

TINY = (
    "--input_shape=8x8x3",
    "--num_examples=48",
    "--num_classes=3",
    "--ambiguity=0",
    "--width=2",
    "--batch_size=6",
    "--queue_size=20",
    "--embedding_dim=4",
    "--seconds=1000",
    "--progress=none",
)


@pytest.fixture(autouse=True)
def same_policy():
    policy = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(policy)


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    # Turns as short as they get: the numbers need not be good ones.
    monkeypatch.setattr(timing, "TURN_SECONDS", 1e-3)

    def call(*flags):
        path = tmp_path / "result.json"
        backend = f"--backend={keras.config.backend()}"
        code = cli.run(
            benchmark_flags.COMMAND,
            benchmark.main,
            [*TINY, backend, f"--output={path}", *flags],
        )
        out, err = capsys.readouterr()
        assert code == 0, err
        return json.loads(path.read_text()), out

    return call


def check(result):
    """What holds for every record."""
    seconds = result["seconds"]
    for kind in ("seconds", "processor_seconds"):
        for name, entry in result[kind].items():
            lower, median, upper = np.quantile(
                entry["samples"], [0.25, 0.5, 0.75]
            )
            assert len(entry["samples"]) == result["rounds"], name
            assert entry["median"] == pytest.approx(median)
            assert entry["lower"] == pytest.approx(lower)
            assert entry["upper"] == pytest.approx(upper)
            assert min(entry["samples"]) >= 0, name
    assert all(min(entry["samples"]) > 0 for entry in seconds.values())
    plain, alim = seconds["plain"]["median"], seconds["alim"]["median"]
    forward = seconds["forward"]["median"]
    passes = result["passes"]["forward_backward"]
    assert result["images_per_second"]["plain"] == pytest.approx(6 / plain)
    assert result["images_per_second"]["alim"] == pytest.approx(6 / alim)
    share = {2: 3 / 7, 1: 3 / 4}[passes]
    assert result["efficiency"] == pytest.approx(
        (6 / alim) / (6 / plain * share)
    )
    assert result["efficiency_measured"] == pytest.approx(
        (passes * plain + forward) / alim
    )
    assert result["views_and_bookkeeping"] == pytest.approx(
        1 - result["efficiency_measured"]
    )
    ratios = [
        p * (passes + 1 / 3) / a
        for p, a in zip(seconds["plain"]["samples"], seconds["alim"]["samples"])
    ]
    assert result["by_round"]["efficiency"]["median"] == pytest.approx(
        np.median(ratios)
    )
    assert not any(result["traces"]["measured"].values())
    assert set(result["traces"]["warm_up"].values()) == {1}


def test_a_record_agrees_with_itself(run):
    result, out = run("--rounds=3")
    check(result)
    assert result["rounds"] == 3
    assert result["settings"]["width"] == 2
    assert result["command"] and result["versions"]["keras"]
    if hasattr(os, "sched_getaffinity"):
        assert result["machine"]["affinity"] == sorted(os.sched_getaffinity(0))
    # 8 x 8 images are pooled once: conv1, conv2, dense.
    backbone = 64 * 9 * 3 * 2 + 64 * 9 * 2 * 4 + 16 * 4 * 8
    macs = result["flops"]["macs_per_image"]
    assert macs == {
        "backbone": backbone,
        "classifier": 8 * 3,
        "projection": 8 * 8 + 8 * 4,
    }
    # Two whole passes without, one with the projection; the keys' forward.
    assert result["flops"]["per_image"] == {
        "plain": 6 * (backbone + 24),
        "alim": 12 * (backbone + 24) + 6 * 96 + 2 * (backbone + 96),
    }
    (product,) = result["flops"]["matrix_product_per_second"].values()
    plain = 6 * (backbone + 24) * result["images_per_second"]["plain"]
    assert result["flops"]["share_of_matrix_product"]["plain"] == pytest.approx(
        plain / product
    )
    memory = result["memory"]
    assert 0 < memory["before"]["host"] <= memory["alim"]["host"]
    assert memory["alim"]["host"] <= memory["all"]["host"]


def test_other_settings(run):
    result, out = run(
        "--rounds=1",
        "--mixup_weight=0",
        "--precision=mixed_bfloat16",
    )
    check(result)
    assert result["passes"] == {"forward_backward": 1, "forward": 1}
    # The share is that of the type that the networks compute in.
    products = result["flops"]["matrix_product_per_second"]
    assert set(products) == {"bfloat16", "float32"}
    rate = result["images_per_second"]["alim"]
    flops = result["flops"]["per_image"]["alim"]
    assert result["flops"]["share_of_matrix_product"]["alim"] == pytest.approx(
        flops * rate / products["bfloat16"]
    )


@pytest.mark.parametrize(
    "flag, words",
    [
        ("--input_shape=8x8", ["--input_shape=8x8", "32x32x3"]),
        ("--num_examples=3", ["--num_examples=3"]),
        ("--distribute=mirrored", ["--distribute=mirrored"]),
    ],
)
def test_a_bad_wish_is_one_line_and_two(flag, words, capsys):
    backend = f"--backend={keras.config.backend()}"
    code = cli.run(
        benchmark_flags.COMMAND, benchmark.main, [*TINY, backend, flag]
    )
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert all(word in err for word in words)
