import csv
import json

from sample_examined import NAMES
from sample_examined import small

from alim_keras.report import examine


def test_the_files(tmp_path):
    paths = small(noise_rate=1 / 3).write(tmp_path / "audit")
    assert [path.rsplit("/")[-1] for path in map(str, paths)] == [
        "labels.csv",
        "review.csv",
        "noise_by_class.csv",
        "confusions.csv",
    ]
    tables = {}
    for path in paths:
        with open(path, encoding="utf-8", newline="") as file:
            tables[path.rsplit("/")[-1]] = list(csv.DictReader(file))
    assert json.loads(tables["labels.csv"][0]["candidates"]) == ["dog", "elk"]
    assert tables["review.csv"][0]["reason"] == (
        "outside its set, 0.70 sure of cat"
    )
    # The settled label of no example that misses it: no share to state.
    by_class = {row["class"]: row for row in tables["noise_by_class.csv"]}
    assert by_class["cat"]["outside_share"] == "1.0000"
    assert tables["confusions.csv"] == [
        {
            "given": "dog",
            "settled": "cat",
            "count": "0.5000",
            "share": f"{0.5 / (0.5 + 1 + 1 / 3):.4f}",
        },
        {
            "given": "elk",
            "settled": "cat",
            "count": "0.5000",
            "share": f"{0.5 / (0.5 + 1 / 3):.4f}",
        },
    ]


def test_a_class_that_does_not_occur_has_empty_cells(tmp_path):
    found = examine(
        [[0.9, 0.1, 0.0]],
        [[True, True, False]],
        class_names=NAMES,
        ids=["a"],
        kind="table",
    )
    found.write(tmp_path)
    with open(tmp_path / "noise_by_class.csv", encoding="utf-8") as file:
        rows = {row["class"]: row for row in csv.DictReader(file)}
    assert rows["elk"] == {
        "class": "elk",
        "given": "0",
        "settled": "0",
        "outside": "0",
        "outside_share": "",
        "given_wrong": "0",
        "given_wrong_share": "",
        "mean_set_size": "",
        "confusions": "",
    }
