"""The memory formula against the variables of built models."""

import dataclasses
import json

import keras
import numpy as np
import pytest

from alim_keras.cli import train_flags
from alim_keras.data import DiskImages
from alim_keras.data import SparseCandidates
from alim_keras.runs import build
from alim_keras.runs import loading
from alim_keras.runs import memory

GIB = 2**30


def settings(*flags):
    return train_flags.COMMAND.parse(["--preset=smoke", *flags])


def weigh(variables):
    return sum(v.numpy().nbytes for v in variables)


def built(chosen):
    """A model of these settings, compiled, and its data."""
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy(chosen.precision)
    try:
        training = loading.training_data(chosen)
        model = build.model(chosen, training)
        build.compile_model(chosen, model)
    finally:
        keras.config.set_dtype_policy(policy)
    return model, training


@pytest.mark.parametrize(
    "flags",
    [
        "--train_size=96 --batch_size=32",
        "--train_size=96 --batch_size=32 --table_dtype=float16 --momentum=0",
        "--train_size=120 --batch_size=32 --table=sparse --table_others=2 "
        "--ambiguity=0.05 --mixup_weight=0",
        "--train_size=120 --batch_size=32 --table=sparse "
        "--table_dtype=float16 --table_others=1 --ambiguity=0.05 "
        "--precision=mixed_bfloat16",
        "--train_size=96 --batch_size=32 --precision=mixed_float16 "
        "--queue_size=70 --embedding_dim=12",
        "--train_size=96 --batch_size=32 --network=cifar_resnet18 --width=4",
        "--train_size=96 --batch_size=32 --method=irnet",
        "--train_size=96 --batch_size=32 --method=pico_plus --mixup_weight=0",
    ],
)
def test_the_formula_is_right_to_the_byte(flags):
    chosen = settings(*flags.split())
    model, training = built(chosen)
    found = memory.needed(chosen, model.backbone, training)
    table = model.pseudo_label_table
    # Lambda, its factors by size (0 to 10) and class, sum and count; eta, phi,
    # norm, K and the switch.
    scalars = 4 * (1 + 11 + 10 + 2 + 5)
    parts = {
        "network": [
            *model.backbone.weights,
            *model.classifier.weights,
            *model.projection.weights,
        ],
        "key encoder": model.key_encoder.weights,
        "queue": model.queue.weights,
        "prototypes": model.prototypes.weights,
    }
    for name, variables in parts.items():
        assert found[name] == weigh(variables), name
    assert found["pseudo-label table"] == weigh(table.weights) - scalars
    assert found["images"] == training.data.images[training.trained].nbytes
    state = [*model.weights, *model.optimizer.variables]
    names = set(found) - {"images", "candidate sets"}
    assert sum(found[name] for name in names) == weigh(state)


def test_candidate_sets_are_counted_as_they_are_kept():
    flags = ("--train_size=96", "--batch_size=32", "--holdout=0")
    model, training = built(settings(*flags))
    found = memory.needed(settings(*flags), model.backbone, training)
    assert found["candidate sets"] == 96 * 10
    flags = (*flags, "--table=sparse")
    model, training = built(settings(*flags))
    assert isinstance(training.sets, SparseCandidates)
    found = memory.needed(settings(*flags), model.backbone, training)
    members = training.candidates.sets.sum()
    assert found["candidate sets"] == 2 * members + 8 * 97


def test_a_million_examples_of_a_thousand_classes():
    # 4 C N against (35 + 8) (4 + 2) + 4 and (35 + 8) (2 + 2) + 2 bytes.
    def rows(*flags):
        counts = 8 * 16386 if "--table=sparse" in flags else 12 * 10**6
        size = memory.table(settings(*flags), 1000, 10**6, 35)
        return (size - counts) / 10**6

    assert rows() == 4000
    assert rows("--table_dtype=float16") == 2000
    assert rows("--table=sparse") == 262
    assert rows("--table=sparse", "--table_dtype=float16") == 174
    # Ratio, rival and posterior of each example in place of the histogram.
    flags = ("--table=sparse", "--known_as_sets", "--known_labels=k.csv")
    size = memory.table(settings(*flags), 1000, 10**6, 35)
    assert size == (262 + 12) * 10**6


@pytest.mark.parametrize(
    "biggest, remedy",
    [
        ("pseudo-label table", "--table=sparse, --table_dtype=float16"),
        ("queue", "--queue_size"),
        ("network", "--width"),
        ("key encoder", "--width"),
        ("candidate sets", "--table=sparse"),
        ("images", "--image_size"),
    ],
)
def test_too_much_is_refused_by_the_biggest_part(biggest, remedy):
    found = dict.fromkeys(memory.REMEDIES, 1)
    found[biggest] = 3 * GIB
    memory.check_limit(found, None)
    memory.check_limit(found, sum(found.values()))
    with pytest.raises(memory.ConfigError) as error:
        memory.check_limit(found, 2 * GIB)
    text = str(error.value)
    assert f"the {biggest}, 3.0 GiB" in text and remedy in text
    assert "Received: --memory_limit=2147483648 (2.0 GiB)" in text


def test_the_description_has_the_sum_and_the_biggest_first():
    text = memory.describe({"queue": 3 * 2**20, "table": GIB, "counters": 60})
    assert text == (
        "Memory per device: 1.0 GiB and the activations of a step: table "
        "1.0 GiB, queue 3.0 MiB"
    )


def test_a_run_above_the_limit_ends_with_2(run_train, tmp_path, lines):
    assert run_train(tmp_path / "run", "--memory_limit=100kB") == 2
    (line,) = lines()
    assert "--memory_limit=100000 (97.7 KiB)" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("cache", [None, "memory"])
def test_images_on_disk_take_no_memory_unless_kept_there(cache):
    chosen = settings("--train_size=96", "--batch_size=32")
    model, training = built(chosen)
    number = len(training.data.images)
    # Nothing is decoded: what stands for the files need not be images.
    images = DiskImages([b"x"] * number, 8, 1, cache=cache)
    training.data = dataclasses.replace(training.data, images=images)
    found = memory.needed(chosen, model.backbone, training)
    assert found["images"] == (64 * len(training.trained) if cache else 0)


def test_a_sparse_run_is_a_run(run_train, tmp_path, capsys):
    # Slots for all classes: the same numbers as the dense run's, but for
    # lambda's 0.26 %, which the first two epochs do not use.
    flags = ("--warmup_epochs=2", "--epochs=2")
    for table in ("dense", "sparse"):
        folder = tmp_path / table
        assert run_train(folder, f"--table={table}", *flags) == 0
        assert "Memory per device: " in capsys.readouterr().out
    dense, sparse = (
        json.loads((tmp_path / table / "results.json").read_text())
        for table in ("dense", "sparse")
    )
    for name in ("test_accuracy", "pseudo_label_accuracy", "outside"):
        assert dense[name] == pytest.approx(sparse[name]), name
    assert dense["lambda"] == pytest.approx(sparse["lambda"], rel=0.003)
    labels = [
        (tmp_path / table / "labels.csv").read_text()
        for table in ("dense", "sparse")
    ]
    assert labels[0] == labels[1]


def test_labels_are_written_in_blocks(run_train, tmp_path, monkeypatch):
    assert run_train(tmp_path / "whole", "--epochs=1") == 0
    monkeypatch.setattr("alim_keras.runs.artefacts._BLOCK", 250)
    assert run_train(tmp_path / "blocks", "--epochs=1") == 0
    whole, blocks = (
        (tmp_path / name / "labels.csv").read_bytes()
        for name in ("whole", "blocks")
    )
    assert whole == blocks and np.char.count(whole, b"\n") == 97
