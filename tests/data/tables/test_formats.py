"""Every kind of file, and what text files may look like."""

import csv
import io
import json
import sys

import pyarrow
import pyarrow.parquet
import pytest

from alim_keras.data.tables import read_labels
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError

SETS = {"a": {"cat", "dog"}, "b": {"dog"}}
PLAIN = "id,candidates\na,cat|dog\nb,dog\n"


@pytest.mark.parametrize(
    "text, name",
    [
        (PLAIN, "t.csv"),
        (PLAIN, "T.CSV"),
        (PLAIN, "t.txt"),
        ("\ufeff" + PLAIN, "t.csv"),
        (PLAIN.replace("\n", "\r\n"), "t.csv"),
        (PLAIN.replace("\n", "\r"), "t.csv"),
        (PLAIN.rstrip("\n"), "t.csv"),
        (PLAIN.replace("\n", "\n\n\n"), "t.csv"),
        ("\n\n" + PLAIN, "t.csv"),
        ("# made by hand\n# in May, 2020\n" + PLAIN, "t.csv"),
        ("\ufeff# made\r\n" + PLAIN.replace("\n", "\r\n"), "t.csv"),
        ("\ufeffsep=;\r\n" + PLAIN.replace(",", ";"), "t.csv"),
        (PLAIN.replace(",", "\t"), "t.tsv"),
        (PLAIN.replace(",", "\t"), "t.txt"),
        (PLAIN.replace(",", ";"), "t.csv"),
        (PLAIN.replace(",", ";"), "t.txt"),
        ('"id","candidates"\n"a","cat|dog"\n"b","dog"\n', "t.csv"),
        ('id,candidates\na,"cat,dog"\nb,dog\n', "t.csv"),
        ('id,candidates\na,"[""cat"",\n""dog""]"\nb,"[""dog""]"\n', "t.csv"),
        ("id,candidates,\na,cat|dog,\nb,dog,\n", "t.csv"),
        (
            '{"id": "a", "candidates": ["cat", "dog"]}\n\n'
            '{"candidates": ["dog"], "id": "b"}\n',
            "t.jsonl",
        ),
        (
            '{"id": "a", "candidates": "cat|dog"}\r\n'
            '{"id": "b", "candidates": "dog"}\r\n',
            "t.ndjson",
        ),
        (
            '[{"id": "a", "candidates": ["cat", "dog"]},'
            '{"id": "b", "candidates": ["dog"]}]',
            "t.json",
        ),
    ],
)
def test_the_same_table_in_many_coats(write, sets_of, text, name):
    found = read_labels(write(text, name))
    assert sets_of(found) == SETS
    assert found.ids.tolist() == ["a", "b"]


def test_lines_are_those_of_the_file(write):
    text = '# x\n\nid,candidates\r\n\r\na,"cat\r\n|dog"\nb,\n'
    with pytest.raises(DataError, match=r"b \(line 7\)"):
        read_labels(write(text))


def test_lines_are_those_of_a_long_file(write):
    # More rows than are taken at once.
    rows = "".join(f"{number},cat|dog\n" for number in range(20000))
    with pytest.raises(DataError, match=r"x \(line 20004\)"):
        read_labels(write("id,candidates\n\n\n" + rows + "x,\n"))


def test_ids_of_any_kind_are_text(write):
    lines = '{"id": 7, "labels": ["x"]}\n{"id": "8", "labels": ["x"]}\n'
    assert read_labels(write(lines, "t.jsonl")).ids.tolist() == ["7", "8"]
    with pytest.raises(DataError, match="line 1.*Received: True"):
        read_labels(write('{"id": true, "labels": ["x"]}', "t.jsonl"))


def test_parquet(tmp_path, sets_of):
    path = tmp_path / "t.parquet"
    columns = {"id": ["a", "b"], "candidates": [["cat", "dog"], ["dog"]]}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    assert sets_of(read_labels(path)) == SETS
    columns = {"id": [1, 2, 3], "a1": [0, 1, None], "a2": [None, 2, 2]}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    found = read_labels(path, class_names=["x", "y", "z"])
    assert sets_of(found) == {"1": {"x"}, "2": {"y", "z"}, "3": {"z"}}
    columns = {"id": ["a"], "candidates": [[0.0, 1.5]]}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    with pytest.raises(DataError, match=r"1.5 in row 0 \(id a\).*whole"):
        read_labels(path)
    pyarrow.parquet.write_table(pyarrow.table({"id": []}), path)
    with pytest.raises(DataError, match="empty"):
        read_labels(path)
    path.write_bytes(b"PAR1")
    with pytest.raises(DataError, match="no sound Parquet"):
        read_labels(path)


def test_parquet_without_pyarrow(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(EnvironmentLacksError, match="pip install pyarrow"):
        read_labels(write("x", "t.parquet"))


def annotation(who, *choices, **more):
    value = {"choices": list(choices)}
    result = [{"from_name": "kind", "type": "choices", "value": value}]
    return {"completed_by": who, "result": result, **more}


TASKS = [
    {
        "id": 1,
        "data": {"image": "a.png", "text": "x"},
        "annotations": [annotation(1, "cat"), annotation(2, "dog", "cat")],
    },
    {
        "id": 2,
        "data": {"image": "/data/local-files/?d=pets%2Fb.png"},
        "annotations": [annotation({"email": "eve@x.org"}, "dog")],
    },
    {
        "id": 3,
        "data": {"image": "c.png"},
        "annotations": [
            annotation(1, "owl"),
            annotation(1, "owl"),
            annotation(2, "cat", was_cancelled=True),
        ],
    },
]


def test_label_studio(write, sets_of):
    found = read_labels(write(json.dumps(TASKS), "t.json"))
    assert sets_of(found) == {
        "a.png": {"cat", "dog"},
        "pets/b.png": {"dog"},
        "c.png": {"owl"},
    }
    assert "Label Studio: 3 tasks, 6 annotations, 3 annotators" in found.notes
    assert found.counts["tasks"] == 3
    assert found.counts["annotations"] == 6
    assert found.counts["annotators"] == 3
    assert found.counts["duplicates_annotations"] == 1
    assert found.counts["cancelled_annotations"] == 1
    assert found.votes.annotator_names == ("1", "2", "eve@x.org")
    assert found.votes.rows.tolist() == [0, 0, 0, 1, 2]


def test_label_studio_with_nothing_chosen(write, sets_of):
    tasks = [*TASKS, {"data": {"image": "d.png"}, "annotations": []}]
    tasks.append({"data": {"image": "e.png"}, "annotations": [annotation(1)]})
    path = write(json.dumps(tasks), "t.json")
    with pytest.raises(DataError, match=r"2 candidate sets.*d\.png.*e\.png"):
        read_labels(path)
    assert len(read_labels(path, empty_set="drop")) == 3


@pytest.mark.parametrize(
    "task, why",
    [
        ({"data": {}, "annotations": [annotation(1, "x")]}, "name the item"),
        ({"data": {"image": 1.5}, "annotations": []}, "no text in data.image"),
        ({"data": {"a": "x", "b": "y"}, "annotations": []}, "a, b"),
        ({"data": {"image": "x"}, "annotations": [7]}, "no object"),
        ({"data": {"image": "x"}, "annotations": [{}]}, "list of results"),
        (
            {"data": {"image": "x"}, "annotations": [{"result": [{}]}]},
            "without a value",
        ),
        (
            {"data": {"image": "x"}, "annotations": [annotation(1, 3)]},
            "list of names",
        ),
    ],
)
def test_label_studio_that_cannot_be_read(write, task, why):
    with pytest.raises(DataError, match=why):
        read_labels(write(json.dumps([task]), "t.json"))


def test_label_studio_with_two_questions(write):
    task = json.loads(json.dumps(TASKS[0]))
    task["annotations"][0]["result"][0]["from_name"] = "colour"
    with pytest.raises(DataError, match="colour, kind"):
        read_labels(write(json.dumps([task]), "t.json"))


def min_export(*choices):
    """Label Studio's JSON-MIN: a row for each annotation, columns flat."""
    return [
        {
            "image": f"/data/upload/1/0a1b2c3d-{row // 2}.png",
            "id": row // 2,
            "choice": one,
            "annotator": 1 + row % 2,
            "annotation_id": 7 + row,
            "lead_time": 2.5,
        }
        for row, one in enumerate(choices)
    ]


CHOICES = ({"choices": ["cat", "dog"]}, "cat", "owl", {"choices": ["dog"]})


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_label_studio_with_flat_columns(write, sets_of, kind):
    rows = min_export(*CHOICES)
    text = json.dumps(rows)
    if kind == "csv":
        cells = [
            [v if type(v) is str else json.dumps(v) for v in row.values()]
            for row in rows
        ]
        out = io.StringIO()
        csv.writer(out).writerows([list(rows[0]), *cells])
        text = out.getvalue()
    found = read_labels(write(text, f"t.{kind}"))
    assert sets_of(found) == {"0": {"cat", "dog"}, "1": {"owl", "dog"}}
    assert found.images[0] == "/data/upload/1/0a1b2c3d-0.png"
    assert found.votes.rows.tolist() == [0, 0, 0, 1, 1]
    assert found.votes.annotators.tolist() == [0, 0, 1, 0, 1]
    # As a list, too; rows of one id are then to be united.
    found = read_labels(
        write(text, f"t.{kind}"),
        layout="list",
        candidates_column="choice",
        duplicates="union",
    )
    assert sets_of(found) == {"0": {"cat", "dog"}, "1": {"owl", "dog"}}


def test_other_objects_in_a_cell_are_refused(write):
    for cell in ({"choices": ["cat"], "x": 1}, {"labels": ["cat"]}):
        path = write(json.dumps(min_export("dog", cell)), "t.json")
        with pytest.raises(DataError, match="must name one class in a cell"):
            read_labels(path)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.json"])
@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_called_so(write, coding, name):
    text = PLAIN if name == "t.csv" else '{"id": "a", "candidates": ["cat"]}'
    with pytest.raises(DataError, match="is UTF-16.*save it as UTF-8"):
        read_labels(write(text.encode(coding), name))
