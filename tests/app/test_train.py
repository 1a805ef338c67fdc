"""The train command: resume bit for bit, artefacts, refusals, sentences."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time

import commands
import keras
import numpy as np
import pytest
from comparing import assert_same_run
from comparing import checkpoint
from comparing import metrics

from alim_keras import callbacks
from alim_keras import data
from alim_keras.app import artefacts
from alim_keras.callbacks import checkpoint as checkpoint_module
from alim_keras.data import CandidateSets

FLAGS = ("--epochs=3", "--select=aa")


class _Killed(BaseException):
    """Stands for the end of the process: nothing may catch it."""


def raise_killed(*_):
    raise _Killed


def test_a_run_cut_off_thrice_ends_like_an_uninterrupted_one(
    finished_run, tmp_path, monkeypatch
):
    """Before, within and after the writing that an epoch ends with."""
    arguments = (*commands.SMOKE, *FLAGS, f"--run_dir={tmp_path / 'cut'}")
    for last, where in enumerate(("Progress", "RunCheckpoint", "MetricsLog")):
        cut = getattr(callbacks, where)
        usual = cut.on_epoch_end

        def on_epoch_end(self, epoch, logs=None, last=last, usual=usual):
            if epoch == last and last == 1:
                # The weights are written, the state that names them is not.
                monkeypatch.setattr(
                    checkpoint_module, "write_atomically", raise_killed
                )
            usual(self, epoch, logs)
            if epoch == last:
                raise _Killed

        monkeypatch.setattr(cut, "on_epoch_end", on_epoch_end)
        with pytest.raises(_Killed):
            commands.call("train", *arguments)
        monkeypatch.undo()
    code, out, err = commands.call("train", *arguments)
    assert code == 0, err
    assert "Continuing" in out
    assert_same_run(finished_run, tmp_path / "cut")


def start(folder, *flags):
    return subprocess.Popen(
        [sys.executable, "-m", "alim_keras.train", *commands.SMOKE]
        + [f"--run_dir={folder}", *flags],
        env=os.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A suite in the background hands an ignored SIGINT down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.slow
def test_ten_kills_at_random_moments_change_nothing(tmp_path):
    flags = ("--epochs=150", "--select=cr", "--norm=scale", "--progress=line")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    process = start(whole, *flags)
    assert process.communicate()[1] == "" and process.returncode == 0
    draw = random.Random(5)
    for _ in range(10):
        process = start(killed, *flags)
        # While it traces the step, or some epochs later and somewhere in the
        # next: by lines, for machines differ in speed.
        epochs = draw.randrange(4)
        for line in process.stdout:
            started = line.startswith("Run folder")
            epochs -= line.startswith("epoch")
            if epochs == 0 and (started or line.startswith("epoch")):
                break
        time.sleep(draw.uniform(0.0, 3.0 if started else 0.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    assert 0 < len(metrics(killed)) < 150
    process = start(killed, *flags)
    assert process.communicate()[1] == "" and process.returncode == 0
    assert_same_run(whole, killed)


def test_interrupt_ends_with_130(tmp_path):
    folder = tmp_path / "run"
    process = start(folder, "--epochs=200", "--progress=line")
    for line in process.stdout:
        if line.startswith("epoch 2/"):
            break
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert len(err.strip().splitlines()) == 1 and "same command" in err
    assert len(checkpoint(folder)) > 40
    assert 1 <= len(metrics(folder)) < 200
    assert not (folder / "results.json").exists()


@pytest.mark.parametrize(
    "flag, code, words",
    [
        ("--network=ResNet50V3", 2, ["ResNet50V3", "ResNet50V2"]),
        ("--method=picco", 2, ["picco", "pico"]),
        ("--method_options=zzz=1", 2, ["zzz"]),
        ("--weights=nowhere.h5", 3, ["nowhere.h5"]),
        ("--dataset=nowhere.npz", 3, ["nowhere.npz"]),
        ("--candidates_file=nowhere.npz", 3, ["nowhere.npz"]),
        ("--batch_size=2000", 2, ["--batch_size=2000"]),
        ("--train_size=5000", 2, ["5000"]),
        ("--protocol=superclass", 2, ["superclass"]),
        ("--distribute=mirrored --replicas=3", 2, ["replicas=3"]),
        ("--select=aa --holdout=0", 2, ["--select=aa", "--holdout"]),
        ("--replicas=2", 2, ["--distribute=mirrored"]),
        ("--distribute=multi_worker", 6, ["jax"]),
        ("--method=cc --lam=0.5", 2, ["pseudo labels", "--lam=0"]),
        ("--lam_per_class --lam=0.5", 2, ["--lam_per_class"]),
        ("--noise_rate=em --holdout=0", 2, ["--holdout"]),
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
    assert artefacts.describe(numbers) == (
        "3 epochs; no true labels to measure accuracy by."
    )
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


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_served_is_trained(finished_run, model):
    images = data.load("digits").test_images[:64]
    served = keras.layers.TFSMLayer(
        finished_run / "saved_model", call_endpoint="serve"
    )(images.astype("float32"))
    expected = model.predict(images, verbose=0)
    np.testing.assert_allclose(np.asarray(served), expected, atol=1e-6)
    names = (finished_run / "saved_model/assets/class_names.txt").read_text()
    assert names.split() == [str(number) for number in range(10)]


def test_labels_follow_the_table(finished_run, model):
    rows = rows_of(finished_run / "labels.csv")
    candidates = CandidateSets.load(finished_run / "candidates.npz")
    assert [row["id"] for row in rows] == candidates.ids.tolist()
    held_out = [row["source"] == "prediction" for row in rows]
    assert len(rows) == 96 and sum(held_out) == 10
    table = iter(np.array(model.pseudo_label_table.dense_rows(0, 86)))
    given = candidates.dense()
    for row, candidate_set, is_held_out in zip(rows, given, held_out):
        assert json.loads(row["candidates"]) == [
            str(c) for c in np.flatnonzero(candidate_set)
        ]
        label = int(row["label"])
        assert row["outside"] == str(int(not candidate_set[label]))
        weights = candidate_set if is_held_out else next(table)
        if is_held_out or not weights.any():
            continue
        assert weights[label] == weights.max()
        share = weights.max() / weights.sum()
        assert float(row["probability"]) == pytest.approx(share, abs=1e-4)


def test_classes_and_results(finished_run, model):
    rows = rows_of(finished_run / "classes.csv")
    labels = [int(row["label"]) for row in rows_of(finished_run / "labels.csv")]
    settled = np.bincount(labels, minlength=10).tolist()
    assert [int(row["settled"]) for row in rows] == settled
    digits = data.load("digits")
    predicted = model.predict(digits.test_images, verbose=0).argmax(axis=1)
    shares = [
        (predicted[digits.test_labels == c] == c).mean() for c in range(10)
    ]
    found = [float(row["test_accuracy"]) for row in rows]
    assert found == pytest.approx(shares, abs=5e-5)
    results = json.loads((finished_run / "results.json").read_text())
    assert results["test_accuracy_per_class_mean"] == pytest.approx(
        np.mean(shares)
    )
    run = json.loads((finished_run / "run.json").read_text())
    epochs = rows_of(finished_run / "metrics.csv")
    best = max(epochs, key=lambda r: float(r["holdout_approximated_accuracy"]))
    assert results["selected_epoch"] == int(best["epoch"])
    assert results["test_accuracy_selected"] == float(best["test_accuracy"])
    assert results["candidates_hash"] == run["candidates_hash"]
    assert run["versions"]["keras"] == keras.__version__
    assert run["settings"]["epochs"] == 3
    # (96 - 10) // 32 = 2 steps an epoch.
    assert [int(row["step"]) for row in epochs] == [2, 4, 6]


def test_export_makes_the_artefacts_again(finished_run):
    names = ("labels.csv", "classes.csv", "saved_model/assets/class_names.txt")
    before = [(finished_run / name).read_bytes() for name in names]
    for name in ("labels.csv", "classes.csv", "model.keras"):
        (finished_run / name).unlink()
    code, out, err = commands.call("export", finished_run)
    assert code == 0, err
    assert "saved_model, model.keras, labels.csv, classes.csv of epoch" in out
    assert [(finished_run / name).read_bytes() for name in names] == before
    assert (finished_run / "model.keras").exists()


def test_run_flags_repeat_the_run(finished_run, tmp_path):
    flag = f"--flagfile={finished_run / 'run.flags'}"
    again = f"--run_dir={tmp_path / 'again'}"
    code, _, err = commands.call("train", flag, again)
    assert code == 0, err
    first, second = checkpoint(finished_run), checkpoint(tmp_path / "again")
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


@pytest.mark.parametrize("method", ["cc", "crdpll"])
def test_other_methods_train(method, tmp_path):
    flags = [f"--run_dir={tmp_path / 'run'}", f"--method={method}"]
    if method == "cc":
        flags += ["--lam=0", "--table_dtype=float16"]
    if method == "crdpll":
        flags += ["--augmentation=autoaugment", "--table=sparse"]
    flags += ["--epochs=1"]
    code, out, err = commands.call("train", *commands.SMOKE, *flags)
    assert code == 0, err
    # The smoke preset warms up for one epoch.
    is_off = "ALIM stays off: --warmup_epochs=1 is as long" in out
    assert is_off == (method != "cc")
    assert len(rows_of(tmp_path / "run" / "labels.csv")) == 96


@pytest.mark.slow
def test_a_run_on_jax_leaves_a_saved_model(tmp_path):
    pytest.importorskip("jax")
    folder = tmp_path / "run"
    process = start(folder, "--backend=jax")
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert (folder / "saved_model" / "saved_model.pb").is_file(), out
    assert not [path for path in os.listdir(folder) if "partial" in path]
