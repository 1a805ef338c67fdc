"""A table of one's own: training without truth, audit, feeding back."""

import json
import shutil

import commands
import numpy as np
import own
import pytest

from alim_keras import data
from alim_keras import draws
from alim_keras import noise_rate

FOLDS = ("--folds=2", "--fold_epochs=1")


@pytest.fixture(scope="module")
def audited(own_run):
    """The same run, audited by folds into a folder of its own."""
    place = own_run / "by_folds"
    flags = (*FOLDS, "--review=7", f"--out={place}")
    out = commands.works("audit", own_run, *flags)
    assert "network 1, epochs: 1, items: 48" in out
    return place


def column(path, name):
    return [row[name] for row in own.read_rows(path)]


def sets_of(photos):
    """Returns the sets of the table by item."""
    sets = {}
    for row in own.read_rows(photos / "labels.csv"):
        if row["label"] != "unsure":
            sets.setdefault(row["image"], set()).add(row["label"])
    return sets


def test_without_truth_its_columns_are_empty_not_zero(own_run):
    results = json.loads((own_run / "results.json").read_text())
    for name in ("test_accuracy", "pseudo_label_accuracy", "realised_noise"):
        assert results[name] is None
    assert results["noise_rate"] == 0.1
    names = own.read_rows(own_run / "metrics.csv")[-1]
    assert "test_accuracy" not in names and "holdout_covering_rate" in names
    classes = own.read_rows(own_run / "classes.csv")
    assert {row["training_images"] for row in classes} == {""}
    written = (own_run / "class_names.txt").read_text().splitlines()
    assert written == sorted(own.NAMES)


def test_a_continued_run_is_the_uninterrupted_one(own_run, photos, tmp_path):
    place, table = tmp_path / "second", tmp_path / "labels.csv"
    shutil.copy(photos / "labels.csv", table)
    images = f"--images={photos / 'photos'}"
    commands.stop_after_an_epoch(
        lambda: commands.train_own(place, table, images)
    )
    # The pictures may have moved, and somebody has sorted the table.
    moved = shutil.copytree(photos / "photos", tmp_path / "moved")
    head, *rows = table.read_text(encoding="utf-8").splitlines()
    table.write_text("\n".join([head, *sorted(rows)]), encoding="utf-8")
    commands.trained_own(place, table, f"--images={moved}")
    for name in ("labels.csv", "classes.csv"):
        assert (place / name).read_bytes() == (own_run / name).read_bytes()
    wanted = column(own_run / "metrics.csv", "loss")
    assert column(place / "metrics.csv", "loss") == wanted


def test_the_audit_of_folds(audited, photos):
    rows = own.read_rows(audited / "labels.csv")
    found = {row["id"]: set(json.loads(row["candidates"])) for row in rows}
    assert found == sets_of(photos)
    for row in rows:
        assert row["source"] == "folds"
        given = json.loads(row["candidates"])
        assert (row["label"] not in given) == (row["outside"] == "1")
        assert set(given) <= set(json.loads(row["suggested"]))
    assert len(own.read_rows(audited / "review.csv")) == 7
    people = own.read_rows(audited / "annotators.csv")
    assert {row["annotator"] for row in people} == {"ann", "ben", "cat"}
    assert (audited / "report.html").stat().st_size > 10_000


def test_the_audit_of_the_run_itself(own_run, tmp_path):
    commands.works("audit", own_run, f"--out={tmp_path}")
    rows = own.read_rows(tmp_path / "labels.csv")
    # The rows of the table are what the training wrote.
    before = own.read_rows(own_run / "labels.csv")
    table = [row for row in rows if row["source"] == "table"]
    assert len(table) == 86
    assert table == [row for row in before if row["source"] == "table"]


def test_export_leaves_the_audits_labels_alone(own_run, tmp_path):
    run_dir = shutil.copytree(own_run, tmp_path / "run")
    commands.works("audit", run_dir, *FOLDS)
    before = (run_dir / "labels.csv").read_bytes()
    # Somebody fills it in under another name.
    (run_dir / "review.csv").rename(run_dir / "known.csv")
    (run_dir / "report.html").unlink()
    out = commands.works("export", run_dir)
    assert "labels.csv and classes.csv stay as they are" in out
    assert "Wrote saved_model, model.keras of epoch" in out
    assert (run_dir / "labels.csv").read_bytes() == before
    (run_dir / "labels.csv").unlink()
    out = commands.works("export", run_dir)
    assert "model.keras, labels.csv, classes.csv of" in out
    assert (run_dir / "labels.csv").read_bytes() != before


def test_a_table_that_changed_since_the_run(own_run, photos, tmp_path):
    place = shutil.copytree(photos, tmp_path / "own")
    run_dir = shutil.copytree(own_run, tmp_path / "run")
    flags = run_dir / "run.flags"
    flags.write_text(flags.read_text().replace(str(photos), str(place)))
    table = place / "labels.csv"
    text = table.read_text()
    head, *rows = text.splitlines(keepends=True)
    gone = rows[0].split(",")[0]
    out = f"--out={tmp_path / 'out'}"
    table.write_text("".join([head, *(r for r in rows if gone not in r)]))
    code, line = commands.fails("audit", run_dir, out)
    assert code == 3 and "no longer there: 1 of 96, " in line
    every = "".join(f"{gone},eve,{name}\n" for name in own.NAMES)
    table.write_text(text + every)
    code, line = commands.fails("audit", run_dir, out)
    assert code == 3 and "not those that the run was trained on" in line


def test_known_labels_as_sets(photos, tmp_path):
    run_dir, known = tmp_path / "run", photos / "known.csv"
    images = f"--images={photos / 'photos'}"
    flags = (images, f"--known_labels={known}", "--known_as_sets")
    commands.trained_own(run_dir, photos / "labels.csv", *flags)
    rows = own.read_rows(run_dir / "labels.csv")
    rows = [row for row in rows if row["source"] == "known"]
    truth = {row["id"]: row["label"] for row in own.read_rows(known)}
    assert {row["id"]: row["label"] for row in rows} == truth
    # What a person said is no test of the labels that are learnt.
    results = json.loads((run_dir / "results.json").read_text())
    assert results["pseudo_label_accuracy"] is None
    commands.works("audit", run_dir, f"--out={tmp_path / 'o'}")


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
    commands.trained_own(run_dir, table, *flags)
    results = json.loads((run_dir / "results.json").read_text())
    assert results["pseudo_label_accuracy"] > 0.8
    assert results["realised_noise"] == 0
    commands.works("audit", run_dir)
    place, flag = tmp_path / "other", "--network=small_cnn"
    code, _, err = commands.train_own(place, table, flag)
    assert code == 2 and "feature vectors, which --network=mlp takes" in err


def test_sets_of_a_table_for_known_data(tmp_path):
    digits = data.load("digits")
    pairs = [f"{label}|{(label + 1) % 10}" for label in digits.labels]
    path = tmp_path / "sets.csv"
    own.write_rows(path, [("id", "candidates"), *zip(digits.ids, pairs)])
    flags = (f"--candidates_file={path}", "--train_size=96", "--epochs=1")
    commands.trained_own(tmp_path / "run", "digits", *flags)
    sets = data.CandidateSets.load(tmp_path / "run" / "candidates.npz")
    assert (sets.sizes == 2).all()


@pytest.mark.parametrize("wish", ["auto", "annotated"])
def test_the_noise_rate_is_estimated_and_kept(wish, photos, tmp_path):
    run_dir = tmp_path / "run"
    images, rate = f"--images={photos / 'photos'}", f"--noise_rate={wish}"
    if wish == "annotated":
        rate += f":{photos / 'truth.csv'}"
    out = commands.trained_own(run_dir, photos / "labels.csv", images, rate)
    kept = json.loads((run_dir / "noise_rate.json").read_text())["estimate"]
    results = json.loads((run_dir / "results.json").read_text())
    assert results["noise_rate"] == kept["value"]
    assert results["noise_rate_estimate"] == kept
    if wish == "auto":
        assert "--noise_rate=auto takes" in out
    if wish == "annotated":
        sets, truth = sets_of(photos), own.read_rows(photos / "truth.csv")
        wrong = np.mean([r["label"] not in sets[r["id"]] for r in truth])
        assert kept["value"] == pytest.approx(wrong, abs=1e-6)


def test_copies_stay_in_one_fold(photos, tmp_path, monkeypatch):
    place = shutil.copytree(photos / "photos", tmp_path / "photos")
    shutil.copy(place / "0005.png", place / "0040.png")
    seen, usual = [], noise_rate.out_of_fold

    def spy(fit, count, folds, seed, groups):
        seen.append(np.bincount(groups)[groups])
        return usual(fit, count, folds, seed, groups)

    deal, fold = draws.folds, []

    def spy_heads(*arguments):
        fold.append((deal(*arguments), *arguments[3:]))
        return fold[-1][0]

    monkeypatch.setattr(draws, "folds", spy_heads)
    flags = (f"--images={place}", "--epochs=1", "--head_folds=3")
    commands.trained_own(tmp_path / "run", photos / "labels.csv", *flags)
    assigned, copies = fold[-1]
    (twins,) = [c for c in set(copies) if (copies == c).sum() == 2]
    assert len(set(assigned[copies == twins])) == 1
    monkeypatch.setattr(noise_rate, "out_of_fold", spy)
    commands.works("audit", tmp_path / "run", *FOLDS)
    assert (seen[0] == 2).sum() == 2
