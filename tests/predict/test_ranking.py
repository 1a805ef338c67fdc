"""Candidate sets of a table, put in order."""

import json
import types

import numpy as np
import pytest
from predicting import NAMES
from predicting import call
from predicting import check

from alim_keras.data import tables
from alim_keras.report import predictions


def test_ranked_rows_by_hand():
    p = np.array([[0.5, 0.1, 0.3, 0.1], [0.0, 1.0, 0.0, 0.0]])
    s = np.array([[False, True, True, False], [True, False, False, True]])
    first, second = predictions.ranked_rows(["x", "y"], p, s, NAMES)
    # 0.3 and 0.1 of 0.4; 0.6 outside, and the likeliest, ant, is there.
    assert first == [
        "x",
        '["cat, big", "bee"]',
        "[0.75, 0.25]",
        "0.600000",
        "1",
        "ant",
        "0.500000",
    ]
    # Nothing inside: all alike, in the order of the classes.
    assert second[1:5] == ['["ant", "döner"]', "[0.5, 0.5]", "1.000000", "1"]
    full = np.ones((1, 4), bool)
    (third,) = predictions.ranked_rows(["z"], p[:1], full, NAMES)
    assert json.loads(third[2]) == [0.5, 0.3, 0.1, 0.1]
    assert third[3:5] == ["0.000000", "0"]


@pytest.fixture
def table(tmp_path):
    """Pairs of candidates of five of the pictures, out of order."""
    order = [4, 0, 6, 2, 1]
    lines = [f"{row},bee|döner" for row in order]
    path = tmp_path / "sets.csv"
    path.write_text("\n".join(["id,candidates", *lines]), encoding="utf-8")
    return types.SimpleNamespace(path=path, order=order)


def test_rank_of_a_table(run, pictures, table, rows, tmp_path, capsys):
    arguments = (
        run.folder,
        f"--candidates_file={table.path}",
        f"--images={pictures.folder}",
    )
    found = rows(*arguments, "--rank", "--batch_size=2")
    p = run.model.predict(pictures.pixels[table.order], verbose=0)
    assert [row["id"] for row in found] == [str(row) for row in table.order]
    for row, p_row in zip(found, p):
        inside = p_row[[1, 3]]
        order = [1, 3] if inside[0] >= inside[1] else [3, 1]
        assert json.loads(row["candidates"]) == [NAMES[c] for c in order]
        assert json.loads(row["probabilities"]) == pytest.approx(
            p_row[order] / inside.sum(), abs=1e-5
        )
        assert float(row["outside_probability"]) == pytest.approx(
            1 - inside.sum(), abs=1e-5
        )
        assert row["label"] == NAMES[p_row.argmax()]
        assert row["outside"] == str(int(p_row.argmax() not in (1, 3)))
    outside = sum(row["outside"] == "1" for row in found)
    assert 0 < outside < 5
    call(*arguments, "--rank", f"--out={tmp_path / 'o.csv'}")
    said = capsys.readouterr().out
    assert f"The likeliest class is outside the set of {outside}" in said
    # Without --rank the items of the table are predicted as any.
    check(rows(*arguments), p)


def test_a_table_that_holds_its_images(run, pictures, rows, tmp_path):
    path = tmp_path / "t.npz"
    sets = np.eye(4, dtype=bool)[[1, 3]]
    np.savez(path, candidates=sets, images=pictures.pixels[:2], ids=["u", "v"])
    found = rows(run.folder, f"--candidates_file={path}")
    assert [row["id"] for row in found] == ["u", "v"]
    check(found, run.model.predict(pictures.pixels[:2], verbose=0))


def test_a_ranked_file_is_a_table_again(run, pictures, table, tmp_path):
    out = tmp_path / "ranked.csv"
    code = call(
        run.folder,
        "--rank",
        f"--candidates_file={table.path}",
        f"--images={pictures.folder}",
        f"--out={out}",
    )
    assert code == 0
    again = tables.read_labels(out, class_names=NAMES)
    assert again.ids.tolist() == [str(row) for row in table.order]
    expected = [[False, True, False, True]] * 5
    assert again.candidates.sets.tolist() == expected


def test_images_are_found_beside_the_table(run, pictures, table, rows):
    beside = table.path.parent
    for row in table.order:
        source = pictures.folder / pictures.files[row]
        (beside / f"{row}.png").write_bytes(source.read_bytes())
    found = rows(run.folder, f"--candidates_file={table.path}")
    p = run.model.predict(pictures.pixels[table.order], verbose=0)
    check(found, p)


def test_a_table_s_missing_images(run, pictures, table, error, capsys):
    with table.path.open("a", encoding="utf-8") as file:
        file.write("\n99,ant|bee")
    arguments = (
        run.folder,
        f"--candidates_file={table.path}",
        f"--images={pictures.folder}",
    )
    code, line = error(*arguments)
    assert code == 3
    assert "1 of 6 ids" in line
    assert "99" in line
    assert call(*arguments, "--on_bad_image=skip") == 0
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 6
    assert "warning: 1 images could not be read" in output.err


def test_a_table_of_unknown_classes(run, pictures, table, error):
    text = table.path.read_text(encoding="utf-8").replace("bee", "bea")
    table.path.write_text(text, encoding="utf-8")
    code, line = error(
        run.folder,
        f"--candidates_file={table.path}",
        f"--images={pictures.folder}",
    )
    assert code == 3
    assert "bea" in line
    assert "bee" in line
