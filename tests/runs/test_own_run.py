"""Training on a table and a folder: no truth, resume, audit, feeding back."""

import csv
import json
import shutil

import numpy as np
import own
import pytest
from own_runs import audit
from own_runs import run_audit
from own_runs import run_train
from own_runs import stop_after_an_epoch

from alim_keras import cli
from alim_keras import export
from alim_keras.cli import export_flags


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("own")
    own.write_folder(place, count=96, tested=12)
    return place


@pytest.fixture(scope="module")
def first(folder):
    """A run without any truth."""
    place = folder / "first"
    images = f"--images={folder / 'photos'}"
    assert run_train(place, folder / "labels.csv", images) == 0
    return place


@pytest.fixture(scope="module")
def audited(first):
    """The same run, audited by folds into a folder of its own."""
    place = first / "by_folds"
    flags = ("--folds=2", "--fold_epochs=1", "--review=7", f"--out={place}")
    assert run_audit(first, *flags) == 0
    return place


def column(path, name):
    return [row[name] for row in own.read_rows(path)]


def test_without_truth_its_columns_are_empty_not_zero(first):
    results = json.loads((first / "results.json").read_text())
    for name in ("test_accuracy", "pseudo_label_accuracy", "realised_noise"):
        assert results[name] is None
    assert results["noise_rate"] == 0.1
    names = own.read_rows(first / "metrics.csv")[-1]
    assert "test_accuracy" not in names and "holdout_covering_rate" in names
    classes = own.read_rows(first / "classes.csv")
    assert {row["training_images"] for row in classes} == {""}
    assert {row["test_accuracy"] for row in classes} == {""}
    record = json.loads((first / "run.json").read_text())
    assert record["data"]["training_images_per_class"] is None
    assert any("layout long" in note for note in record["notes"])
    written = (first / "class_names.txt").read_text().splitlines()
    assert written == sorted(own.NAMES)


def test_a_continued_run_is_the_uninterrupted_one(first, folder, tmp_path):
    images = f"--images={folder / 'photos'}"
    table = tmp_path / "labels.csv"
    shutil.copy(folder / "labels.csv", table)
    # One epoch of two: the schedule is that of two.
    place = tmp_path / "second"
    stop_after_an_epoch(place, table, images)
    # The pictures may have moved meanwhile.
    moved = shutil.copytree(folder / "photos", tmp_path / "moved")
    # And somebody has sorted the table.
    head, *rows = table.read_text(encoding="utf-8").splitlines()
    text = "\n".join([head, *sorted(rows)])
    table.write_text(text, encoding="utf-8")
    assert run_train(place, table, f"--images={moved}") == 0
    for name in ("labels.csv", "classes.csv"):
        assert (place / name).read_bytes() == (first / name).read_bytes()
    wanted = column(first / "metrics.csv", "loss")
    assert column(place / "metrics.csv", "loss") == wanted


def test_the_audit_of_folds(audited, folder, capsys):
    rows = own.read_rows(audited / "labels.csv")
    sets = {}
    for row in own.read_rows(folder / "labels.csv"):
        if row["label"] != "unsure":
            sets.setdefault(row["image"], set()).add(row["label"])
    assert {row["id"]: set(json.loads(row["candidates"])) for row in rows} == (
        sets
    )
    assert {row["source"] for row in rows} == {"folds"}
    for row in rows:
        given = json.loads(row["candidates"])
        assert (row["label"] not in given) == (row["outside"] == "1")
        assert set(given) <= set(json.loads(row["suggested"]))
        assert 0 <= float(row["suspicion"]) <= 1
    review = own.read_rows(audited / "review.csv")
    assert len(review) == 7
    assert sorted(int(row["rank"]) for row in review) == list(range(1, 8))
    people = own.read_rows(audited / "annotators.csv")
    assert {row["annotator"] for row in people} == {"ann", "ben", "cat"}
    votes = {row["annotator"]: int(row["votes"]) for row in people}
    assert votes["ann"] == 96 > votes["ben"] > votes["cat"] > 0
    page = (audited / "report.html").read_text(encoding="utf-8")
    assert "labels.csv" in page and "trained without" in page


def test_folds_are_trained_once(audited, first, capsys):
    capsys.readouterr()
    before = (audited / "labels.csv").read_bytes()
    out = first / "again"
    flags = ("--folds=2", "--fold_epochs=1", f"--out={out}")
    assert run_audit(first, *flags) == 0
    assert (
        "network"
        not in capsys.readouterr().out.split("In ")[0].split("96 items")[0]
    )
    assert (out / "labels.csv").read_bytes() == before
    # Another wish is another training.
    assert run_audit(first, "--folds=3", "--fold_epochs=1", f"--out={out}") == 0
    assert "Out-of-fold network 3: 1 epochs on 64 items" in (
        capsys.readouterr().out
    )


def test_the_audit_of_the_run_itself(first, folder):
    out = first / "plain"
    assert run_audit(first, f"--out={out}") == 0
    rows = own.read_rows(out / "labels.csv")
    # What the training wrote, in the same words; of what it held out the
    # audit judges by the set too.
    before = own.read_rows(first / "labels.csv")
    table = [row for row in rows if row["source"] == "table"]
    assert len(table) == 86
    assert table == [row for row in before if row["source"] == "table"]
    assert {row["source"] for row in rows} == {"table", "prediction"}


def test_a_table_that_changed_since_the_run(first, folder, tmp_path, capsys):
    assert run_audit(first, f"--out={tmp_path / 'before'}") == 0
    before = own.read_rows(tmp_path / "before" / "labels.csv")
    table = folder / "labels.csv"
    text = table.read_text()
    head, *rows = text.splitlines(keepends=True)
    try:
        # Somebody sorted it; what was learnt goes by place.
        table.write_text("".join([head, *sorted(rows)]))
        assert run_audit(first, f"--out={tmp_path / 'sorted'}") == 0
        assert own.read_rows(tmp_path / "sorted" / "labels.csv") == before
        gone = before[5]["id"]
        table.write_text(
            "".join([head, *(row for row in rows if gone not in row)])
        )
        capsys.readouterr()
        assert run_audit(first, f"--out={tmp_path / 'gone'}") == 3
        assert f"1 of 96 items of the run are no longer there, ids {gone}" in (
            capsys.readouterr().err
        )
        every = "".join(f"{gone},eve,{name}\n" for name in own.NAMES)
        table.write_text(text + every)
        assert run_audit(first, f"--out={tmp_path / 'other'}") == 3
        assert "1 items have another candidate set" in capsys.readouterr().err
        assert not (tmp_path / "other").exists()
    finally:
        table.write_text(text)


def test_out_must_be_a_folder(first, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert run_audit(first, f"--out={tmp_path / 'file'}") == 2
    assert "--out must be a folder" in capsys.readouterr().err


def test_labels_are_fed_back(first, audited, folder, tmp_path):
    images = f"--images={folder / 'photos'}"
    given = tmp_path / "given"
    # A new run on the column `candidates` sees the same sets.
    table = audited / "labels.csv"
    names = f"--class_names={first / 'class_names.txt'}"
    assert run_train(given, table, images, names, "--epochs=1") == 0
    hashes = [
        json.loads((place / "run.json").read_text())["candidates_hash"]
        for place in (first, given)
    ]
    assert hashes[0] == hashes[1]
    suggested = tmp_path / "suggested"
    flags = (images, names, "--candidates_column=suggested", "--epochs=1")
    assert run_train(suggested, table, *flags) == 0
    with np.load(suggested / "candidates.npz") as found:
        classes = found["class_names"].tolist()
        sets = {
            one: {classes[c] for c in np.flatnonzero(row)}
            for one, row in zip(found["ids"].tolist(), found["sets"])
        }
    assert sets == {
        row["id"]: set(json.loads(row["suggested"]))
        for row in own.read_rows(table)
    }


def test_a_run_of_folders_exports_again(folder, tmp_path, capsys):
    for row in own.read_rows(folder / "truth.csv")[:48]:
        place = tmp_path / "sorted" / row["label"]
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "photos" / row["id"], place)
    run_dir = tmp_path / "run"
    flags = ("--epochs=1", "--batch_size=16", "--image_cache=disk")
    assert run_train(run_dir, tmp_path / "sorted", *flags) == 0
    before = (run_dir / "labels.csv").read_bytes()
    (run_dir / "labels.csv").unlink()
    command = export_flags.COMMAND
    assert cli.run(command, export.main, [str(run_dir)]) == 0
    assert (run_dir / "labels.csv").read_bytes() == before


def test_feature_vectors_train_and_are_audited(tmp_path):
    stream = np.random.default_rng(0)
    labels = stream.integers(0, 3, 90)
    features = np.eye(3)[labels] * 4 + stream.normal(size=(90, 3))
    sets = np.eye(3, dtype=int)[labels]
    sets[np.arange(90), stream.integers(0, 3, 90)] = 1
    table = tmp_path / "t.npz"
    np.savez(table, features=features, candidates=sets, labels=labels)
    run_dir = tmp_path / "run"
    flags = ("--epochs=20", "--learning_rate=0.02", "--lam=0")
    assert run_train(run_dir, table, *flags) == 0
    results = json.loads((run_dir / "results.json").read_text())
    assert results["pseudo_label_accuracy"] > 0.8
    assert results["realised_noise"] == 0
    assert run_audit(run_dir) == 0
    page = (run_dir / "report.html").read_text(encoding="utf-8")
    assert "<dialog" in page


@pytest.mark.parametrize(
    "flag", ["--images=/photos", "--image_size=32", "--verify=full"]
)
def test_feature_vectors_are_no_images(flag, tmp_path, capsys):
    table = tmp_path / "t.npz"
    sets = np.eye(3, dtype=int)[np.arange(40) % 3]
    np.savez(table, features=np.eye(40), candidates=sets)
    assert run_train(tmp_path / "run", table, flag) == 2
    said = f"holds feature vectors; leave it out. Received: {flag}"
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_broken_picture_ends_a_training_with_its_name(
    folder, tmp_path, capsys
):
    photos = shutil.copytree(folder / "photos", tmp_path / "photos")
    whole = (photos / "0003.png").read_bytes()
    (photos / "0003.png").write_bytes(whole[: len(whole) - 30])
    code = run_train(
        tmp_path / "run",
        folder / "labels.csv",
        f"--images={photos}",
        "--image_cache=none",
    )
    err = capsys.readouterr().err.strip().splitlines()
    assert code == 3 and len(err) == 1 and "0003.png" in err[0]


def test_a_table_of_another_format_gives_the_same_sets(folder, tmp_path):
    """Sets of `--candidates_file` for a data set that has a name."""
    from alim_keras.data import load

    data = load("digits")
    rows = [("id", "candidates")] + [
        (one, f"{label}|{(label + 1) % 10}")
        for one, label in zip(data.ids, data.labels)
    ]
    path = own.write_rows(tmp_path / "sets.csv", rows)
    run_dir = tmp_path / "run"
    code = run_train(
        run_dir,
        "digits",
        f"--candidates_file={path}",
        "--train_size=96",
        "--epochs=1",
    )
    assert code == 0
    with np.load(run_dir / "candidates.npz") as found:
        assert (found["sets"].sum(axis=1) == 2).all()
    results = json.loads((run_dir / "results.json").read_text())
    assert results["realised_noise"] == 0


def test_the_function_stays_where_the_command_was_imported():
    import alim_keras

    # Both ways of looking it up can be called.
    for found in (alim_keras.audit, audit):
        with pytest.raises(TypeError, match="dataset"):
            found()


def test_csv_module_reads_labels(audited):
    """Nothing but the standard library is needed to read labels.csv."""
    with open(audited / "labels.csv", encoding="utf-8", newline="") as file:
        assert len(list(csv.reader(file, strict=True))) == 97
