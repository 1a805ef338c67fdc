"""The audit of a run: whose numbers, whose names, and what folds keep."""

import importlib
import json
import shutil
import tracemalloc
import types

import keras
import numpy as np
import own
import pandas
import pytest

from alim_keras import cli
from alim_keras import noise_rate
from alim_keras import train
from alim_keras.cli import audit_flags
from alim_keras.cli import train_flags
from alim_keras.data.sources import DiskImages
from alim_keras.noise_rate import out_of_fold
from alim_keras.runs import beliefs

audit = importlib.import_module("alim_keras.audit")

# 80 items, of which 8 are held out; half of them do not fill a batch.
FLAGS = (
    "--width=4 --batch_size=64 --epochs=2 --method=proden --noise_rate=0.1 "
    "--warmup_epochs=1 --progress=none --none_of_these=unsure"
).split()
FOLDS = ("--folds=2", "--fold_epochs=1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Photos of which two are the same file, a table, a file of names."""
    place = tmp_path_factory.mktemp("audit")
    own.write_folder(place, count=80)
    photos = sorted((place / "photos").glob("*.png"))
    shutil.copy(photos[5], photos[40])
    (place / "names.txt").write_text("\n".join(sorted(own.NAMES)))
    return place


def run_train(folder, *flags):
    policy = keras.config.dtype_policy()
    flags = [
        *FLAGS,
        f"--dataset={folder / 'labels.csv'}",
        f"--images={folder / 'photos'}",
        f"--class_names={folder / 'names.txt'}",
        *flags,
    ]
    try:
        return cli.run(train_flags.COMMAND, train.main, flags)
    finally:
        keras.config.set_dtype_policy(policy)


@pytest.fixture(scope="module")
def trained(folder):
    assert run_train(folder, f"--run_dir={folder / 'run'}") == 0
    return folder / "run"


@pytest.fixture
def run_dir(trained, tmp_path):
    """A copy of the run, to be changed."""
    return shutil.copytree(trained, tmp_path / "run")


def run_audit(run_dir, *flags):
    command = audit_flags.COMMAND
    return cli.run(command, audit.main, [str(run_dir), *flags])


def test_numbers_are_those_of_the_selected_epoch(run_dir, monkeypatch, capsys):
    metrics = pandas.read_csv(run_dir / "metrics.csv")
    metrics["test_accuracy"] = [0.9, 0.5]
    metrics["lambda"] = [0.125, 0.25]
    metrics["noise_rate"] = [0.3, 0.4]
    metrics.to_csv(run_dir / "metrics.csv", index=False)
    state_file = run_dir / "checkpoints" / "state.json"
    state = json.loads(state_file.read_text())
    state["best"]["epoch"] = 1
    state_file.write_text(json.dumps(state))
    found = []
    monkeypatch.setattr(audit, "_say", lambda *args: found.append(args[0]))
    assert run_audit(run_dir) == 0
    summary = found[0].summary
    assert (summary["epochs"], summary["run_epochs"]) == (1, 2)
    assert summary["test_accuracy"] == 0.9
    page = (run_dir / "report.html").read_text(encoding="utf-8")
    assert "the selected one of 2" in page
    # The curves show the whole training all the same.
    assert len(found[0].history) == 2
    monkeypatch.undo()
    assert run_audit(run_dir) == 0
    assert "is that of epoch 1 of 2, selected" in capsys.readouterr().out


def test_of_the_last_epoch_nothing_more_is_said(run_dir, capsys):
    assert run_audit(run_dir) == 0
    assert "selected" not in capsys.readouterr().out
    assert "the selected one" not in (run_dir / "report.html").read_text()


def test_edited_or_lost_class_names_do_not_matter(folder, run_dir, tmp_path):
    def audited(place):
        assert run_audit(run_dir, f"--out={tmp_path / place}") == 0
        return (tmp_path / place / "labels.csv").read_bytes()

    names = folder / "names.txt"
    text = names.read_text()
    before = audited("before")
    try:
        # Another order, another class, and one that is gone.
        names.write_text("\n".join(["zebra", *sorted(own.NAMES)[:0:-1]]))
        assert audited("edited") == before
        names.unlink()
        assert audited("lost") == before
    finally:
        names.write_text(text)


def test_folds_smaller_than_a_batch_and_twins(run_dir, monkeypatch, capsys):
    asked = []

    def spy(fit, count, folds, seed, groups):
        asked.append(groups)
        return out_of_fold(fit, count, folds, seed, groups)

    monkeypatch.setattr(beliefs.noise_rate, "out_of_fold", spy)
    assert run_audit(run_dir, *FOLDS) == 0
    out = capsys.readouterr().out
    assert (
        "network 1: in batches of 40, since 40 items do not fill one of 64"
    ) in out
    assert "2 items are identical to another one" in out
    rows = own.read_rows(run_dir / "labels.csv")
    assert {row["source"] for row in rows} == {"folds"}
    (groups,) = asked
    assert len(set(groups)) == 79
    twins = np.flatnonzero(np.bincount(groups)[groups] == 2)
    names = sorted(rows[row]["id"] for row in twins)
    assert names == ["0005.png", "0040.png"]


def test_damaged_folds_are_trained_again(run_dir, capsys):
    assert run_audit(run_dir, *FOLDS) == 0
    before = (run_dir / "labels.csv").read_bytes()
    file = run_dir / beliefs.FILE
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    capsys.readouterr()
    assert run_audit(run_dir, *FOLDS) == 0
    out = capsys.readouterr().out
    assert f"{file} cannot be read: its networks are trained again" in out
    assert "network 2" in out
    assert (run_dir / "labels.csv").read_bytes() == before
    # The file is whole again.
    assert run_audit(run_dir, *FOLDS) == 0
    assert "network" not in capsys.readouterr().out.split("80 items")[0]


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "array", "flipped"])
def test_files_that_hold_no_folds(damage, tmp_path, capsys):
    path = tmp_path / "folds.npz"
    np.savez(path, logits=np.zeros((40, 3), "float32"), made_for=["a"])
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 0xFF
    path.write_bytes(
        {
            "cut": whole[: len(whole) // 2],
            "empty": b"",
            "text": b"no archive",
            "array": b"",
            "flipped": bytes(flipped),
        }[damage]
    )
    if damage == "array":
        with open(path, "wb") as file:
            np.save(file, np.zeros(3))
    assert beliefs._stored(path, ["a"], (40, 3)) is None
    assert f"{path} cannot be read" in capsys.readouterr().out


def test_the_noise_rate_by_cv_of_few_items(
    folder, tmp_path, monkeypatch, capsys
):
    asked = []
    usual = noise_rate.folds.out_of_fold

    def spy(fit, count, folds, seed, groups):
        asked.append(np.bincount(groups)[groups])
        return usual(fit, count, folds, seed, groups)

    monkeypatch.setattr(noise_rate.folds, "out_of_fold", spy)
    # Two thirds of 72 items do not fill a batch of 64.
    flags = ("--epochs=1", "--noise_rate=cv", f"--run_dir={tmp_path / 'run'}")
    assert run_train(folder, *flags) == 0
    out = capsys.readouterr().out
    for line in (
        "Estimating the noise rate: network 1: in batches of 48, since 48 "
        "items do not fill one of 64",
        " by cv: ",
        "2 items are identical to another one",
    ):
        assert line in out
    # Of the two no network learns the other's set.
    (sizes,) = asked
    assert len(sizes) == 72 and (sizes == 2).sum() == 2


def test_folds_of_another_shape_are_not_taken(tmp_path):
    path = tmp_path / "folds.npz"
    np.savez(path, logits=np.zeros((4, 3), "float32"), made_for=["a"])
    assert beliefs._stored(path, ["a"], (4, 3)).shape == (4, 3)
    assert beliefs._stored(path, ["a"], (5, 3)) is None
    assert beliefs._stored(path, ["b"], (4, 3)) is None
    assert beliefs._stored(tmp_path / "none.npz", ["a"], (4, 3)) is None


def test_folds_are_kept_and_judged_without_copies(tmp_path, monkeypatch):
    logits = np.zeros((100_000, 256), "float32")
    logits[:, 7] = np.log(255)
    settings = types.SimpleNamespace(epochs=1, seed=0, as_dict=dict)
    training = types.SimpleNamespace(
        sets=np.broadcast_to(False, logits.shape),
        candidates=types.SimpleNamespace(content_hash="hash"),
    )
    run = types.SimpleNamespace(settings=settings, training=training)
    folder = types.SimpleNamespace(file=tmp_path.joinpath)
    monkeypatch.setattr(beliefs, "_train_folds", lambda *_: logits)
    tracemalloc.start()
    try:
        found = beliefs.of_folds(run, folder, 2, None)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.probabilities is logits
    np.testing.assert_allclose(logits[:, 7], 0.5, rtol=1e-5)
    # Blocks, and no second array of 102 MB.
    assert peak < 90e6
    # What is kept are logits still.
    with np.load(tmp_path / beliefs.FILE) as kept:
        assert kept["logits"][0, 6:8].tolist() == [0, np.float32(np.log(255))]


def test_the_softmax_takes_the_place_of_the_logits(monkeypatch):
    logits = np.random.default_rng(0).normal(size=(7, 3)).astype("float32")
    wanted = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    monkeypatch.setattr(beliefs.suspicion, "BLOCK", 6)
    found = beliefs._probabilities(logits)
    assert found is logits
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_identical_images_in_memory_and_on_disk(folder, monkeypatch):
    images = np.arange(5 * 2 * 2 * 3).reshape(5, 2, 2, 3).astype("uint8")
    images[3] = images[1]
    monkeypatch.setattr(beliefs.suspicion, "BLOCK", 24)
    found = beliefs.identical(images)
    assert found[3] == found[1] and len(set(found.tolist())) == 4
    files = sorted((folder / "photos").glob("*.png"))[3:42]
    groups = beliefs.identical(DiskImages(files, image_size=8))
    assert groups[40 - 3] == groups[5 - 3]
    assert len(set(groups.tolist())) == len(files) - 1
    assert groups.min() == 0 and groups.max() == len(files) - 2
