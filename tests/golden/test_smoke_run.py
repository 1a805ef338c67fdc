"""A short training: its numbers, its files, and that a kill costs nothing.

`values.json` holds, for each backend, what `values` returns of such a run. One
thread and two differ by 2e-6.
"""

import json
import pathlib
import signal
import time

import own
import pytest
from golden import harness
from golden.conftest import SMOKE

METRICS = (
    "epoch step loss cls_loss cont_loss mix_loss lambda noise_rate outside "
    "covering_rate approximated_accuracy holdout_covering_rate "
    "holdout_approximated_accuracy pseudo_label_accuracy test_accuracy "
    "test_loss learning_rate"
).split()
RESULTS = (
    "test_accuracy test_accuracy_selected selected_epoch selected_by "
    "pseudo_label_accuracy lambda noise_rate realised_noise epochs outside "
    "covering_rate approximated_accuracy test_accuracy_per_class_mean"
).split()
FILES = (
    "candidates.npz checkpoints class_names.txt classes.csv labels.csv "
    "metrics.csv model.keras results.json run.flags run.json saved_model"
).split()
LABELS = (
    "id candidates label probability runner_up margin outside undecided "
    "suggested source suspicion"
).split()
CLOSE = {"rel": 1e-3, "abs": 1e-3}
FROZEN = json.loads(
    pathlib.Path(__file__).with_name("values.json").read_text("utf-8")
)


def values(folder):
    """Returns what is frozen of a run folder."""
    results = json.loads((folder / "results.json").read_text("utf-8"))
    labels = own.read_rows(folder / "labels.csv")
    return {
        "metrics": [
            [round(float(row[name]), 5) for name in METRICS]
            for row in own.read_rows(folder / "metrics.csv")
        ],
        "results": {name: results[name] for name in RESULTS},
        "candidates": results["candidates_hash"],
        "labels": " ".join(row["label"] for row in labels),
        "ids": " ".join(row["id"][6:] for row in labels),
    }


def compare(found, wanted):
    """Holds the values of a run against others."""
    for row, other in zip(found["metrics"], wanted["metrics"], strict=True):
        for name, one, two in zip(METRICS, row, other, strict=True):
            assert one == pytest.approx(two, **CLOSE), (row[0], name)
    for name, value in wanted["results"].items():
        if isinstance(value, float):
            value = pytest.approx(value, **CLOSE)
        assert found["results"][name] == value, name
    assert found["candidates"] == wanted["candidates"]
    assert found["ids"] == wanted["ids"]
    pairs = list(zip(found["labels"].split(), wanted["labels"].split()))
    same = sum(one == two for one, two in pairs)
    assert same >= 0.98 * len(pairs)


def test_numbers(smoke):
    compare(values(smoke[0]), FROZEN["tensorflow"])


def test_files(smoke):
    folder, _ = smoke
    found = {path.name for path in folder.iterdir()}
    assert found - {".lock"} >= set(FILES)
    assert (folder / "saved_model" / "saved_model.pb").is_file()
    # No half-written file stays behind.
    assert not [name for name in found if "partial" in name or "tmp" in name]


def test_labels(smoke):
    folder, _ = smoke
    found = own.read_rows(folder / "labels.csv")
    assert list(found[0])[: len(LABELS)] == LABELS
    names = (folder / "class_names.txt").read_text("utf-8").split()
    assert names == [str(number) for number in range(10)]
    assert len(found) == 192
    for row in found:
        inside = row["label"] in json.loads(row["candidates"])
        assert row["outside"] == str(int(not inside))
        assert row["source"] in ("table", "prediction")
        assert 0 <= float(row["probability"]) <= 1
        given, suggested = row["candidates"], row["suggested"]
        assert set(json.loads(given)) <= set(json.loads(suggested))


def test_results_have_the_promised_keys(smoke):
    results = json.loads((smoke[0] / "results.json").read_text("utf-8"))
    assert set(results) >= {*RESULTS, "train_seconds", "images_per_second"}
    run = json.loads((smoke[0] / "run.json").read_text("utf-8"))
    assert results["candidates_hash"] in json.dumps(run)


def test_a_killed_run_goes_on_as_if_nothing_had_been(smoke, tmp_path):
    folder = tmp_path / "run"
    flags = [*SMOKE, "--backend=tensorflow", f"--run_dir={folder}"]
    process = harness.start("-m", "alim_keras.train", *flags)
    metrics = folder / "metrics.csv"
    while process.poll() is None:
        # The third row: the second epoch's checkpoint is there by then.
        if metrics.exists() and metrics.read_bytes().count(b"\n") > 3:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.01)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (folder / "results.json").exists()
    code, out, err = harness.run("train", *flags)
    assert code == 0, err
    assert "epoch 6/6" in out and "epoch 2/6" not in out
    compare(values(folder), values(smoke[0]))
    left = {path.name for path in folder.iterdir()}
    # Of an atomic write that was cut short a file may stay: defect 16.
    left = {name for name in left if "partial" not in name}
    assert left == {path.name for path in smoke[0].iterdir()}


@pytest.mark.slow
def test_numbers_on_jax(tmp_path):
    pytest.importorskip("jax")
    folder = tmp_path / "run"
    flags = [*SMOKE, "--backend=jax", f"--run_dir={folder}"]
    code, _, err = harness.run("train", *flags)
    assert code == 0, err
    compare(values(folder), FROZEN["jax"])
