"""The train command: resume bit for bit, artefacts, refusals, sentences."""

import json
import signal
import subprocess
import sys

import commands
import comparing
import keras
import numpy as np
import own
import pytest

from alim_keras import callbacks
from alim_keras import data
from alim_keras.app import artefacts
from alim_keras.callbacks import checkpoint
from alim_keras.data import CandidateSets

FLAGS = ("--epochs=3", "--select=aa")


def test_a_run_cut_off_thrice_ends_like_an_uninterrupted_one(
    finished_run, tmp_path, monkeypatch
):
    """Before, within and after the writing that an epoch ends with."""

    def end(*_):
        sys.exit()

    arguments = (*commands.SMOKE, *FLAGS, f"--run_dir={tmp_path / 'cut'}")
    for last, where in enumerate(("Progress", "RunCheckpoint", "MetricsLog")):
        cut = getattr(callbacks, where)
        usual = cut.on_epoch_end

        def on_epoch_end(self, epoch, logs=None, last=last, usual=usual):
            if epoch == last and last == 1:
                # The weights are written, the state that names them is not.
                monkeypatch.setattr(checkpoint, "write_atomically", end)
            usual(self, epoch, logs)
            if epoch == last:
                end()

        monkeypatch.setattr(cut, "on_epoch_end", on_epoch_end)
        with pytest.raises(SystemExit):
            commands.call("train", *arguments)
        monkeypatch.undo()
    assert "Continuing" in commands.works("train", *arguments)
    comparing.assert_same_run(finished_run, tmp_path / "cut")


def test_interrupt_ends_with_130(tmp_path):
    folder = tmp_path / "run"
    flags = ("--epochs=200", "--progress=line", f"--run_dir={folder}")
    process = subprocess.Popen(
        [sys.executable, "-m", "alim_keras.train", *commands.SMOKE, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if line.startswith("epoch 2/"):
            break
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert len(err.strip().splitlines()) == 1 and "same command" in err
    assert len(comparing.checkpoint(folder)) > 40
    assert 1 <= len(comparing.metrics(folder)) < 200
    assert not (folder / "results.json").exists()


@pytest.mark.parametrize(
    "flag, code, words",
    [
        ("--method_options=zzz=1", 2, ["zzz"]),
        ("--weights=nowhere.h5", 3, ["nowhere.h5"]),
        ("--train_size=5000", 2, ["5000"]),
        ("--protocol=superclass", 2, ["superclass"]),
        ("--distribute=mirrored --replicas=3", 2, ["replicas=3"]),
        ("--select=aa --holdout=0", 2, ["--select=aa", "--holdout"]),
        ("--replicas=2", 2, ["--distribute=mirrored"]),
        ("--distribute=multi_worker", 6, ["jax"]),
        ("--method=cc --lam=0.5", 2, ["pseudo labels", "--lam=0"]),
        ("--noise_rate=auto --holdout=0", 2, ["--holdout"]),
        ("--noise_rate=annotated", 2, ["--known_labels"]),
        ("--images=/x", 2, ["--images", "digits"]),
        ("--min_votes=2", 2, ["--min_votes=2"]),
        ("--known_as_sets", 2, ["--known_as_sets"]),
    ],
)
def test_a_bad_wish_ends_with_one_line(flag, code, words, tmp_path):
    flags = ("--preset=none", f"--run_dir={tmp_path / 'run'}", *flag.split())
    found, line = commands.fails("train", *commands.SMOKE, *flags)
    assert found == code, line
    for word in words:
        assert word in line
    assert not (tmp_path / "run").exists()


def test_sentences_leave_out_what_is_not_known():
    names = "test_accuracy test_accuracy_selected pseudo_label_accuracy"
    numbers = dict.fromkeys(names.split())
    numbers |= {"selected_by": "last", "selected_epoch": 3, "epochs": 3}
    why = "Epochs: 3; no true labels to measure accuracy by."
    assert artefacts.describe(numbers) == why
    numbers |= {"selected_by": "cr", "selected_epoch": 2}
    assert artefacts.describe(numbers) == "Selected by cr: epoch 2."
    numbers |= {"test_accuracy": 0.5, "test_accuracy_selected": 0.75}
    assert artefacts.describe(numbers) == (
        "Test accuracy 0.5000 after the last epoch. Selected by cr: epoch 2, "
        "test accuracy 0.7500."
    )


@pytest.fixture(scope="module")
def model(finished_run):
    return keras.saving.load_model(finished_run / "model.keras")


def test_labels_follow_the_table(finished_run, model):
    rows = own.read_rows(finished_run / "labels.csv")
    candidates = CandidateSets.load(finished_run / "candidates.npz")
    assert [row["id"] for row in rows] == candidates.ids.tolist()
    held_out = [row["source"] == "prediction" for row in rows]
    assert len(rows) == 96 and sum(held_out) == 10
    table = iter(np.array(model.pseudo_label_table.dense_rows(0, 86)))
    for row, given, is_held_out in zip(rows, candidates.dense(), held_out):
        names = [str(c) for c in np.flatnonzero(given)]
        assert json.loads(row["candidates"]) == names
        label = int(row["label"])
        assert row["outside"] == str(int(not given[label]))
        weights = given if is_held_out else next(table)
        if is_held_out or not weights.any():
            continue
        assert weights[label] == weights.max()
        share = weights.max() / weights.sum()
        assert float(row["probability"]) == pytest.approx(share, abs=1e-4)


def test_classes_and_results(finished_run, model):
    rows = own.read_rows(finished_run / "classes.csv")
    labels = own.read_rows(finished_run / "labels.csv")
    settled = np.bincount([int(row["label"]) for row in labels], minlength=10)
    assert [int(row["settled"]) for row in rows] == settled.tolist()
    digits = data.load("digits")
    predicted = model.predict(digits.test_images, verbose=0).argmax(axis=1)
    hits = predicted == digits.test_labels
    shares = [hits[digits.test_labels == c].mean() for c in range(10)]
    found = [float(row["test_accuracy"]) for row in rows]
    assert found == pytest.approx(shares, abs=5e-5)
    results = json.loads((finished_run / "results.json").read_text())
    mean = results["test_accuracy_per_class_mean"]
    assert mean == pytest.approx(np.mean(shares))
    run = json.loads((finished_run / "run.json").read_text())
    epochs = own.read_rows(finished_run / "metrics.csv")
    best = max(epochs, key=lambda r: float(r["holdout_approximated_accuracy"]))
    assert results["selected_epoch"] == int(best["epoch"])
    assert results["test_accuracy_selected"] == float(best["test_accuracy"])
    assert results["candidates_hash"] == run["candidates_hash"]
    # (96 - 10) // 32 = 2 steps an epoch.
    assert [int(row["step"]) for row in epochs] == [2, 4, 6]


def test_export_makes_the_artefacts_again(finished_run):
    names = ("labels.csv", "classes.csv", "saved_model/assets/class_names.txt")
    before = [(finished_run / name).read_bytes() for name in names]
    for name in ("labels.csv", "classes.csv", "model.keras"):
        (finished_run / name).unlink()
    written = "saved_model, model.keras, labels.csv, classes.csv of epoch"
    assert written in commands.works("export", finished_run)
    assert [(finished_run / name).read_bytes() for name in names] == before
    assert (finished_run / "model.keras").exists()


@pytest.mark.parametrize(
    "flags",
    [
        "--method=cc --lam=0",
        "--method=crdpll --augmentation=autoaugment --table=sparse",
    ],
)
def test_other_methods_train(flags, tmp_path):
    flags = [f"--run_dir={tmp_path / 'run'}", "--epochs=1", *flags.split()]
    out = commands.works("train", *commands.SMOKE, *flags)
    assert "Writing the models and the labels" in out
    # The smoke preset warms up for one epoch.
    is_off = "ALIM stays off: --warmup_epochs=1 is as long" in out
    assert is_off == ("--lam=0" not in flags)
    assert len(own.read_rows(tmp_path / "run" / "labels.csv")) == 96
