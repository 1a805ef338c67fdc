"""True labels of some items: what reports and the noise rate make of them."""

import json

import numpy as np
import own
import pytest
from own_runs import run_train


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("own")
    own.write_folder(place, count=96, tested=12)
    return place


def known_file(folder, rows):
    """Writes the true labels of some rows of truth.csv."""
    labels = [(row["id"], row["label"]) for row in rows]
    return own.write_rows(folder / "known.csv", [("id", "label"), *labels])


def test_known_labels_report_and_tell_the_noise_rate(folder, tmp_path, capsys):
    place = tmp_path / "known"
    truth = own.read_rows(folder / "truth.csv")[:60]
    known = known_file(tmp_path, truth)
    code = run_train(
        place,
        folder / "labels.csv",
        f"--images={folder / 'photos'}",
        f"--known_labels={known}",
        f"--test_labels={folder / 'test.csv'}",
        "--noise_rate=annotated",
        "--known_as_sets",
        # Nothing would stay in its set but what is known.
        "--lam=1",
        "--epochs=4",
    )
    assert code == 0
    assert "by annotated" in capsys.readouterr().out
    given = {}
    for row in own.read_rows(folder / "labels.csv"):
        given.setdefault(row["image"], set()).add(row["label"])
    wrong = sum(row["label"] not in given[row["id"]] for row in truth)
    results = json.loads((place / "results.json").read_text())
    assert results["noise_rate"] == pytest.approx(wrong / 60)
    assert results["test_accuracy"] is not None
    assert results["pseudo_label_accuracy"] is not None
    with np.load(place / "candidates.npz") as found:
        sizes = dict(zip(found["ids"].tolist(), found["sets"].sum(axis=1)))
    assert all(sizes[row["id"]] == 1 for row in truth)
    rows = {row["id"]: row for row in own.read_rows(place / "labels.csv")}
    for row in truth:
        found = rows[row["id"]]
        assert (found["label"], found["source"]) == (row["label"], "known")
        assert (found["probability"], found["outside"]) == ("1.0000", "0")
    others = {row["source"] for row in rows.values()}
    assert others == {"known", "table", "prediction"}
    assert sum(row["outside"] == "1" for row in rows.values()) > 10


@pytest.mark.parametrize(
    ("flags", "taken"),
    [((), "annotated"), (("--known_as_sets",), "cv")],
)
def test_auto_takes_known_labels_unless_they_are_answers(
    folder, tmp_path, flags, taken, capsys
):
    """Answers to a review list are no random sample."""
    rows = own.read_rows(folder / "truth.csv")[:60]
    known = known_file(tmp_path, rows)
    code = run_train(
        tmp_path / "run",
        folder / "labels.csv",
        f"--images={folder / 'photos'}",
        f"--known_labels={known}",
        "--noise_rate=auto",
        "--epochs=1",
        *flags,
    )
    assert code == 0
    assert f"auto takes {taken}" in capsys.readouterr().out


@pytest.mark.parametrize("flags", [(), ("--lam=instance", "--update=epoch")])
def test_answers_stay_in_a_sparse_table(folder, tmp_path, flags):
    rows = own.read_rows(folder / "truth.csv")[:60]
    known = known_file(tmp_path, rows)
    code = run_train(
        tmp_path / "run",
        folder / "labels.csv",
        f"--images={folder / 'photos'}",
        f"--known_labels={known}",
        "--known_as_sets",
        "--table=sparse",
        "--epochs=3",
        *flags,
    )
    assert code == 0
    found = {
        row["id"]: row["label"]
        for row in own.read_rows(tmp_path / "run" / "labels.csv")
    }
    assert all(found[row["id"]] == row["label"] for row in rows)
