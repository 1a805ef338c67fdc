"""Feature vectors of arrays and of text files."""

import numpy as np
import pytest
from predicting import COUNT
from predicting import FEATURES
from predicting import check


def test_tables_of_features(tabular, rows, tmp_path):
    values = np.random.default_rng(3).normal(2.55, 1, (COUNT, FEATURES))
    values = values.astype("float32")
    names = [f"f{column}" for column in range(FEATURES)]
    lines = [
        ",".join([f"00{row}", "some words", *map(repr, map(float, value))])
        for row, value in enumerate(values)
    ]
    text = "\n".join([",".join(["id", "remark", *names]), *lines])
    (tmp_path / "a.csv").write_text(text)
    np.savez(tmp_path / "b.npz", features=values)
    np.save(tmp_path / "c.npy", values.reshape(COUNT, 1, 1, FEATURES))
    expected = tabular.model.predict(values, verbose=0)
    for name, ids in (("a.csv", "00{}"), ("b.npz", "{}"), ("c.npy", "{}")):
        model = "model.keras" if name == "a.csv" else "saved_model"
        path = tmp_path / name
        found = rows(tabular.folder / model, path, "--batch_size=3")
        assert [row["id"] for row in found] == [
            ids.format(row) for row in range(COUNT)
        ]
        check(found, expected)


def test_ids_of_a_table_are_its_text(tabular, rows, tmp_path):
    ids = ["NA", "null", "nan", "007", "1.0", "a, b", "döner"]
    lines = [f'"{one}",1,2,3,4,{row}' for row, one in enumerate(ids)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["id,a,b,c,d,e", *lines]), encoding="utf-8")
    for size in (2, 64):
        found = rows(tabular.folder, path, f"--batch_size={size}")
        assert [row["id"] for row in found] == ids


@pytest.mark.parametrize("size", [2, 64])
@pytest.mark.parametrize(
    "ids, words",
    [
        (["a", "b", "", "c"], "1 ids are blank or no text, in rows 2 ("),
        (["a", " ", "c", "d"], "1 ids are blank or no text, in rows 1 ("),
        (["a", "b", "c", "a"], "1 ids come twice: a (rows 0 and 3)"),
        (["NA", "b", "NA", "c"], "1 ids come twice: NA (rows 0 and 2)"),
    ],
)
def test_ids_that_name_no_row(tabular, error, tmp_path, ids, words, size):
    lines = ["id,a,b,c,d,e", *(f"{one},1,2,3,4,5" for one in ids)]
    (tmp_path / "a.csv").write_text("\n".join(lines), encoding="utf-8")
    out = tmp_path / "out.csv"
    code, line = error(
        tabular.folder,
        tmp_path / "a.csv",
        f"--batch_size={size}",
        f"--out={out}",
    )
    assert code == 3
    assert f"a.csv: {words}" in line
    assert not out.exists()


@pytest.mark.parametrize(
    "text, words",
    [
        ("id,a,b\nx,1,2\n", "takes 5 features, and there are 2 columns"),
        ("a,b,c,d,e\n1,2,3,4,5\n1,2,,4,5\n", "NaN or infinite values, ids 1"),
        ("", "cannot be read as a table"),
        ("a,b,c,d,e\n", "nothing to predict"),
    ],
)
def test_bad_tables_of_features(tabular, error, tmp_path, text, words):
    (tmp_path / "a.csv").write_text(text)
    code, line = error(tabular.folder, tmp_path / "a.csv")
    assert code == 3
    assert words in line
