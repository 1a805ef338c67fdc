import csv
import json
import os
import subprocess

import keras
import numpy as np
import pytest
from comparing import checkpoint

from alim_keras import cli
from alim_keras import export
from alim_keras.cli import export_flags
from alim_keras.data import CandidateSets
from alim_keras.data import sources

SERVE = """
import sys, builtins
real = builtins.__import__
def guarded(name, *args, **kwargs):
    if name.split(".")[0] == "alim_keras":
        raise ImportError(name)
    return real(name, *args, **kwargs)
builtins.__import__ = guarded
import numpy as np, tensorflow as tf
served = tf.saved_model.load(sys.argv[1])
images = np.load(sys.argv[2])
out = {}
for size in (1, 2, 7):
    out[f"byte{size}"] = served.serve(images[:size])
    out[f"float{size}"] = served.serve(images[:size].astype("float32"))
    signature = served.signatures["serving_default"]
    out[f"signature{size}"] = signature(images=tf.constant(images[:size]))[
        "output_0"]
out["larger"] = served.serve(np.repeat(np.repeat(images[:3], 4, 1), 4, 2))
out["variables"] = len(served.network_variables)
np.savez(sys.argv[3], **out)
"""
LOAD = """
import sys
import numpy as np
import keras
import alim_keras
model = keras.models.load_model(sys.argv[1], safe_mode=True)
np.save(sys.argv[3], model.predict(np.load(sys.argv[2]), verbose=0))
"""


@pytest.fixture(scope="module")
def model(finished_run):
    return keras.models.load_model(finished_run / "model.keras")


@pytest.fixture(scope="module")
def images():
    return sources.load("digits").test_images[:7]


def _python(spawn, code, *arguments):
    subprocess.run(
        [spawn.python, "-c", code, *map(str, arguments)],
        env={**os.environ, **spawn.environment},
        check=True,
    )


def test_served_probabilities_are_those_of_predict(
    spawn, finished_run, model, images, tmp_path
):
    np.save(tmp_path / "images.npy", images)
    arguments = (finished_run / "saved_model", tmp_path / "images.npy")
    _python(spawn, SERVE, *arguments, tmp_path / "out.npz")
    out = np.load(tmp_path / "out.npz")
    expected = model.predict(images, verbose=0)
    np.testing.assert_allclose(expected.sum(axis=1), 1.0, atol=1e-5)
    for size in (1, 2, 7):
        for kind in ("byte", "float", "signature"):
            np.testing.assert_allclose(
                out[f"{kind}{size}"], expected[:size], atol=1e-5
            )
    # Repeated pixels, resized back: not the same picture, but a valid answer.
    assert out["larger"].shape == (3, 10)
    # Backbone: 3 convolutions and 3 x 4 of batch normalisation; classifier 2.
    assert out["variables"] == 3 + 12 + 2


def test_saved_model_holds_the_classifier_only(finished_run, model):
    weights = sum(
        np.prod(v.shape) * 4 for v in model.inference_network().variables
    )
    folder = finished_run / "saved_model"
    data = sum(f.stat().st_size for f in (folder / "variables").iterdir())
    assert data < 1.2 * weights + 4096
    names = (folder / "assets" / "class_names.txt").read_text().split()
    assert names == [str(digit) for digit in range(10)]
    for file in folder.rglob("*"):
        if file.is_file():
            assert b"train_0" not in file.read_bytes()


def test_keras_model_loads_with_one_import(
    spawn, finished_run, model, images, tmp_path
):
    np.save(tmp_path / "images.npy", images)
    arguments = (finished_run / "model.keras", tmp_path / "images.npy")
    _python(spawn, LOAD, *arguments, tmp_path / "out.npy")
    np.testing.assert_array_equal(
        np.load(tmp_path / "out.npy"), model.predict(images, verbose=0)
    )


def _labels(folder):
    with open(folder / "labels.csv", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_labels_follow_the_table(finished_run, model):
    rows = _labels(finished_run)
    candidates = CandidateSets.load(finished_run / "candidates.npz")
    assert [row["id"] for row in rows] == candidates.ids.tolist()
    assert len(rows) == 96
    held_out = [row["source"] == "prediction" for row in rows]
    assert sum(held_out) == 10  # a tenth of 96, rounded
    table = model.pseudo_labels.numpy()
    assert len(table) == 96 - 10
    # Incomplete batches are dropped, so some rows may not have been touched.
    untouched = table.max(axis=1) == 0
    assert untouched.sum() <= 86 - 2 * 32
    at = 0
    for row, given, out in zip(rows, candidates.sets, held_out):
        assert json.loads(row["candidates"]) == [
            str(c) for c in np.flatnonzero(given)
        ]
        label = int(row["label"])
        assert row["outside"] == str(int(not given[label]))
        if not out and untouched[at]:
            assert label == np.flatnonzero(given)[0]
            at += 1
        elif not out:
            assert label == table[at].argmax()
            assert float(row["probability"]) == pytest.approx(
                table[at].max(), abs=1e-4
            )
            at += 1
        assert (float(row["probability"]) < 0.49995) <= int(row["undecided"])


def test_classes_follow_the_labels_and_the_model(finished_run, model):
    with open(finished_run / "classes.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["class"] for row in rows] == [str(c) for c in range(10)]
    labels = [int(row["label"]) for row in _labels(finished_run)]
    settled = np.bincount(labels, minlength=10).tolist()
    assert [int(row["settled"]) for row in rows] == settled
    candidates = CandidateSets.load(finished_run / "candidates.npz")
    given = candidates.sets.sum(axis=0).tolist()
    assert [int(row["given"]) for row in rows] == given
    data = sources.load("digits")
    predicted = model.predict(data.test_images, verbose=0).argmax(axis=1)
    shares = []
    for one, row in enumerate(rows):
        mine = data.test_labels == one
        shares.append((predicted[mine] == one).mean())
        assert int(row["test_images"]) == mine.sum()
        assert float(row["test_accuracy"]) == pytest.approx(
            shares[-1], abs=5e-5
        )
    results = json.loads((finished_run / "results.json").read_text())
    assert results["test_accuracy_per_class_mean"] == pytest.approx(
        np.mean(shares)
    )


def test_results_have_what_is_promised(finished_run):
    results = json.loads((finished_run / "results.json").read_text())
    run = json.loads((finished_run / "run.json").read_text())
    with open(finished_run / "metrics.csv") as file:
        rows = list(csv.DictReader(file))
    best = max(rows, key=lambda r: float(r["holdout_approximated_accuracy"]))
    assert results["selected_by"] == "aa"
    assert results["selected_epoch"] == int(best["epoch"])
    assert results["test_accuracy_selected"] == float(best["test_accuracy"])
    assert results["test_accuracy"] == float(rows[-1]["test_accuracy"])
    assert results["epochs"] == 3
    assert results["noise_rate"] == 0.3
    candidates = CandidateSets.load(finished_run / "candidates.npz")
    data = sources.load("digits").subset(96, 3)
    wrong = ~candidates.align(data.ids)[np.arange(96), data.labels]
    assert results["realised_noise"] == pytest.approx(wrong.mean())
    assert results["candidates_hash"] == candidates.content_hash
    assert run["candidates_hash"] == candidates.content_hash
    assert run["versions"]["keras"] == keras.__version__
    assert run["settings"]["epochs"] == 3
    # (96 - 10) // 32 = 2 steps an epoch.
    assert [int(row["step"]) for row in rows] == [2, 4, 6]


def test_export_makes_the_artefacts_again(finished_run, capsys):
    names = ("labels.csv", "classes.csv", "saved_model/assets/class_names.txt")
    before = [(finished_run / name).read_bytes() for name in names]
    weights = checkpoint(finished_run)
    for name in ("labels.csv", "classes.csv", "model.keras"):
        (finished_run / name).unlink()
    assert cli.run(export_flags.COMMAND, export.main, [str(finished_run)]) == 0
    assert "epoch" in capsys.readouterr().out
    assert [(finished_run / name).read_bytes() for name in names] == before
    assert (finished_run / "model.keras").exists()
    assert checkpoint(finished_run).keys() == weights.keys()


def test_export_of_no_run_is_named(tmp_path, lines):
    code = cli.run(export_flags.COMMAND, export.main, [str(tmp_path / "no")])
    (line,) = lines()
    assert code == 5
    assert "no checkpoint" in line


def test_run_flags_repeat_the_run(run_train, finished_run, tmp_path):
    flag = f"--flagfile={finished_run / 'run.flags'}"
    assert run_train(tmp_path / "again", flag) == 0
    first, second = checkpoint(finished_run), checkpoint(tmp_path / "again")
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)
