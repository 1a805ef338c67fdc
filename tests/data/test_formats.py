"""Every kind of file, and what is refused of it."""

import csv
import io
import json
import sys
import warnings

import hypothesis
import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import strategies as st
from reading import read
from reading import written

from alim_keras.data.candidates import CandidateSets
from alim_keras.data.tables import read_labels
from alim_keras.data.tables import read_npz
from alim_keras.data.tables import read_votes
from alim_keras.errors import AlimError
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import DataWarning
from alim_keras.errors import EnvironmentLacksError

SETS = {"a": {"cat", "dog"}, "b": {"dog"}}
PLAIN = "id,candidates\na,cat|dog\nb,dog\n"
HOT = [[1, 0, 1], [0, 1, 0]]
ROWS = {"row_00000": {"0", "2"}, "row_00001": {"1"}}


@pytest.fixture
def write(tmp_path):
    return lambda *arguments: written(tmp_path, *arguments)


@pytest.fixture
def save(tmp_path):
    def save(**arrays):
        np.savez(tmp_path / "t.npz", **arrays)
        return str(tmp_path / "t.npz")

    return save


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
        ("# made by hand\n# in May, 2020\n\n" + PLAIN, "t.csv"),
        ("\ufeffsep=;\r\n" + PLAIN.replace(",", ";"), "t.csv"),
        (PLAIN.replace(",", "\t"), "t.tsv"),
        (PLAIN.replace(",", "\t"), "t.txt"),
        (PLAIN.replace(",", ";"), "t.csv"),
        ('"id","candidates"\n"a","cat|dog"\n"b","dog"\n', "t.csv"),
        ('id,candidates\na,"cat,dog"\nb,dog\n', "t.csv"),
        ('id;x;candidates\na;"1,5";cat|dog\nb;2,0;dog\n', "t.csv"),
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
def test_the_same_table_in_many_coats(write, text, name):
    found = read(write(text, name))
    assert found.sets == SETS and found.ids == ["a", "b"]


def test_a_format_by_name(write):
    path = write(PLAIN, "t.data")
    assert read(path, format="csv").sets == SETS
    with pytest.raises(ConfigError, match="did you mean csv.*--format=cvs"):
        read(path, format="cvs")
    with pytest.raises(DataError, match="'data' and 'annotations'"):
        read(write("[1]", "t.data"), format="label_studio")


OWN = """
import pandas as pd

def read(path):
    with open(path) as file:
        pairs = [line.split() for line in file]
    return pd.DataFrame(pairs, columns=["item", "label"])

def broken(path):
    return [1]
"""


def test_a_reader_of_ones_own(write):
    reader, path = write(OWN, "mine.py"), write("a cat\na dog\nb dog", "t.kv")
    assert read(path, format=f"{reader}:read").sets == SETS
    with pytest.raises(DataError, match="columns item and label"):
        read(path, format=f"{reader}:broken")
    for name in (f"{reader}:missing", "nowhere.py:read"):
        with pytest.raises(ConfigError, match="no function of a Python file"):
            read(path, format=name)
    with pytest.raises(ConfigError, match="no columns.*--id_column=x"):
        read(path, format=f"{reader}:read", id_column="x")


def test_lines_are_those_of_the_file(write):
    text = '# x\n\nid,candidates\r\n\r\na,"cat\r\n|dog"\nb,\n'
    with pytest.raises(DataError, match=r"b \(line 7\)"):
        read(write(text))


def test_ids_of_any_kind_are_text(write):
    lines = '{"id": 7, "labels": ["x"]}\n{"id": "8", "labels": ["x"]}\n'
    assert read(write(lines, "t.jsonl")).ids == ["7", "8"]
    with pytest.raises(DataError, match="item True in line 1"):
        read(write('{"id": true, "labels": ["x"]}', "t.jsonl"))


def test_parquet(tmp_path, monkeypatch):
    path = str(tmp_path / "t.parquet")

    def store(**columns):
        pyarrow.parquet.write_table(pyarrow.table(columns), path)

    store(id=["a", "b"], candidates=[["cat", "dog"], ["dog"]])
    assert read(path).sets == SETS
    store(id=[1, 2, 3], a1=[0, 1, None], a2=[None, 2, 2])
    found = read(path, class_names=["x", "y", "z"], layout="wide")
    assert found.sets == {"1": {"x"}, "2": {"y", "z"}, "3": {"z"}}
    store(id=["a"], candidates=[[0.0, 1.5]])
    with pytest.raises(DataError, match=r"1.5\] in row 0 \(id a\).*whole"):
        read(path)
    # Embedded images are another's matter; rows may then have no ids.
    store(image=[{"bytes": b"x"}, {"bytes": b"y"}], labels=[["x"], ["y"]])
    assert read(path).ids == ["row_00000", "row_00001"]
    store(id=[])
    with pytest.raises(DataError, match="empty"):
        read(path)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="no sound Parquet"):
        read(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(EnvironmentLacksError, match="pip install pyarrow"):
        read(path)


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


def test_label_studio(write):
    found = read(write(json.dumps(TASKS), "t.json"))
    assert found.sets == {
        "a.png": {"cat", "dog"},
        "pets/b.png": {"dog"},
        "c.png": {"owl"},
    }
    assert (
        "Label Studio: 3 tasks, 6 annotations, 3 annotators; left out: 1 "
        "cancelled, 1 repeated"
    ) in found.notes
    assert found.answers == [
        ("a.png", "1", "cat"),
        ("a.png", "2", "cat"),
        ("a.png", "2", "dog"),
        ("pets/b.png", "eve@x.org", "dog"),
        ("c.png", "1", "owl"),
    ]
    tasks = [*TASKS, {"data": {"image": "d.png"}, "annotations": []}]
    tasks.append({"data": {"image": "e.png"}, "annotations": [annotation(1)]})
    path = write(json.dumps(tasks), "t.json")
    with pytest.raises(DataError, match=r"2 candidate sets.*d\.png.*e\.png"):
        read(path)
    assert len(read(path, empty_set="drop").ids) == 3


@pytest.mark.parametrize(
    "task, why",
    [
        ({"data": {}, "annotations": [annotation(1, "x")]}, "name the item"),
        ({"data": {"image": 1.5}, "annotations": []}, "item 1.5 in task 0"),
        ({"data": {"a": "x", "b": "y"}, "annotations": []}, "a, b"),
        ({"data": {"image": "x"}, "annotations": [7]}, "no object"),
        ({"data": {"image": "x"}, "annotations": [{}]}, "with results"),
        (
            {"data": {"image": "x"}, "annotations": [{"result": [{}]}]},
            "task 0: an annotation",
        ),
        (
            {"data": {"image": "x"}, "annotations": [annotation(1, 3)]},
            "list of names",
        ),
        (
            {
                "data": {"image": "x"},
                "annotations": [
                    {"result": [{"value": {"taxonomy": [["animal", "cat"]]}}]}
                ],
            },
            "no choices, only taxonomy",
        ),
        (
            {
                "data": {"image": "x"},
                "annotations": [
                    annotation(1, "x"),
                    {
                        "result": [
                            {"from_name": "hue", "value": {"choices": ["x"]}}
                        ]
                    },
                ],
            },
            "several questions .hue, kind",
        ),
    ],
)
def test_label_studio_that_cannot_be_read(write, task, why):
    with pytest.raises(DataError, match=why):
        read(write(json.dumps([task]), "t.json"))


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_label_studio_with_flat_columns(write, kind):
    choices = ({"choices": ["cat", "dog"]}, "cat", "owl", {"choices": ["dog"]})
    rows = [
        {
            "image": f"/data/upload/1/0a1b2c3d-{row // 2}.png",
            "id": row // 2,
            "choice": choice,
            "annotator": 1 + row % 2,
            "annotation_id": 7 + row,
        }
        for row, choice in enumerate(choices)
    ]
    text = json.dumps(rows)
    if kind == "csv":
        out = io.StringIO()
        cells = [
            [v if type(v) is str else json.dumps(v) for v in row.values()]
            for row in rows
        ]
        csv.writer(out).writerows([list(rows[0]), *cells])
        text = out.getvalue()
    path = write(text, f"t.{kind}")
    found = read(path)
    assert found.sets == {"0": {"cat", "dog"}, "1": {"owl", "dog"}}
    assert found.votes["image"].iloc[0] == "/data/upload/1/0a1b2c3d-0.png"
    assert [who for _, who, _ in found.answers] == list("11212")
    found = read(
        path, layout="list", candidates_column="choice", duplicates="union"
    )
    assert found.sets == {"0": {"cat", "dog"}, "1": {"owl", "dog"}}


REFUSED = {
    "no bytes": ("", "t.csv", "empty"),
    "no bytes of JSON": ("", "t.jsonl", "empty"),
    "no bytes of arrays": ("", "t.npz", "empty"),
    "no bytes of one array": ("", "t.npy", "empty"),
    "blank lines only": ("\n \n", "t.csv", "empty"),
    "a mark of byte order only": ("\ufeff", "t.csv", "empty"),
    "comments only": ("# x\n", "t.csv", "empty"),
    "a header only": ("id,labels\n", "t.csv", "empty, it has no rows"),
    "blank JSON lines": ("\n\n", "t.jsonl", "empty"),
    "blank JSON": (" ", "t.json", "empty"),
    "no objects": ("[]", "t.json", "empty"),
    "no UTF-8": (
        "id,labels\na,caf\u00e9\n".encode("latin-1"),
        "t.csv",
        "not UTF-8 text; save it as UTF-8, in Excel as 'CSV UTF-8'",
    ),
    "UTF-16": (PLAIN.encode("utf-16"), "t.csv", "UTF-16, not UTF-8"),
    "UTF-16 without a mark": (PLAIN.encode("utf-16-le"), "t.csv", "UTF-16"),
    "UTF-16 of JSON": ("[]".encode("utf-16"), "t.json", "UTF-16"),
    "JSON lines that are no UTF-8": (b"\xff", "t.jsonl", "not UTF-8"),
    "NUL": ("id\0,labels\na,x\n", "t.csv", "NUL"),
    "too few fields": (
        "id,labels\na,x\nb\n",
        "t.csv",
        "line 3 has 1 fields, the header has 2",
    ),
    "too many fields": (
        "id,labels\na,x\n\nb,y,z\n",
        "t.csv",
        "line 4 has 3 fields, the header has 2; .* quotes",
    ),
    "an open quote": ('id,labels\na,"x\nb,y\n', "t.csv", "line 3 .*quotes"),
    "text after a quote": (
        '# x\nid,labels\na,"x"y\n',
        "t.csv",
        "line 3 .*quotes",
    ),
    "a column twice": ("id,labels,labels\na,x,y\n", "t.csv", "'labels'.*once"),
    "a column without a name": (",id,labels\n0,a,x\n", "t.csv", "column 1 has"),
    "a blank id": ("id,labels\na,x\n ,y\n", "t.csv", "item ' ' in line 3"),
    "an endless id": (
        f"id,labels\n{'a' * 2000},x\n",
        "t.csv",
        "item .* in line 2 .*1024",
    ),
    "an endless cell": (
        f"id,labels\na,{'x' * 1_100_000}\n",
        "t.csv",
        "line 2 cannot be read .*field larger",
    ),
    "too many columns": (
        ",".join(map(str, range(200_000))) + "\n" + "1," * 199_999 + "1\n",
        "t.csv",
        "has 200000 columns, more than 100000",
    ),
    "unsound JSON": (
        '{"id": 1, "labels": ["x"]}\n{"id": 2,\n',
        "t.jsonl",
        "line 2 is not sound JSON",
    ),
    "nested JSON": ("[" * 100_000, "t.json", "not sound JSON"),
    "JSON without objects": ("[1, 2]", "t.json", "row 0: an object"),
    "a JSON object": ('{"a": 1}', "t.json", "list of objects"),
    "no zip": ("x", "t.npz", "npz"),
    "no array": ("x", "t.npy", "npy"),
    "an unknown suffix": ("x", "t.xlsx", ".csv, .*'.xlsx'.*--format"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(write, what):
    text, name, why = REFUSED[what]
    path = write(text, name)
    with pytest.raises(DataError, match=why) as caught:
        read_labels(path)
    assert path in str(caught.value) and "\n" not in str(caught.value)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_votes(tmp_path / "t.csv")
    with pytest.raises(DataError, match="is a folder"):
        read_votes(tmp_path)


def test_4000_columns_of_classes(write):
    """Names are looked up in a table of them: no work column by column."""
    names = [f"c{number}" for number in range(4_000)]
    rows = [
        "a," + ",".join("10"[n % 2] for n in range(4_000)),
        "b" + ",1" * 4000,
    ]
    path = write(f"id,{','.join(names)}\n" + "\n".join(rows))
    found = read(path, class_names=names)
    assert len(found.sets["a"]) == 2_000 and len(found.sets["b"]) == 4_000


# Arrays.


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
@pytest.mark.parametrize("name", ["candidates", "sets"])
def test_multi_hot_arrays(save, dtype, name):
    found = read(save(**{name: np.array(HOT, dtype)}))
    assert found.sets == ROWS and found.classes == ("0", "1", "2")
    assert found.labels is None


@pytest.mark.parametrize(
    "sets",
    [[[0, 2, -1], [1, -1, -1]], [[2, 0], [1, -1]], [[0.0, 2.0], [1.0, -1.0]]],
)
def test_arrays_of_class_numbers(save, sets):
    assert read(save(candidates=sets), layout="list").sets == ROWS
    with pytest.raises(DataError, match="only 0 and 1.*--layout=list"):
        read(save(candidates=sets))


def test_npy_files(tmp_path):
    path = str(tmp_path / "t.npy")
    np.save(path, np.array(HOT))
    assert read(path).sets == ROWS
    np.save(path, np.array([2, 0, 1]))
    found = read(path, class_names=["x", "y", "z"])
    assert list(found.sets.values()) == [{"z"}, {"x"}, {"y"}]
    np.save(path, np.array([[0], [1, 2]], object), allow_pickle=True)
    with pytest.raises(DataError, match="pickled"):
        read(path)


def test_everything_in_one_file(save):
    path = save(
        candidates=[[1, 0], [0, 0], [1, 1]],
        ids=["x", "y", "z"],
        class_names=["cat", "dog"],
        features=[[1, 2.5], [3, 4], [5, 6]],
        labels=np.array([0, 1, -1], np.int16),
    )
    with pytest.raises(DataError, match=r"1 candidate sets.*y \(row 1\)"):
        read(path)
    found = read(path, empty_set="drop")
    assert found.sets == {"x": {"cat"}, "z": {"cat", "dog"}}
    assert found.labels.tolist() == [0, -1] and found.labels.dtype == np.int64
    assert list(read_npz(path, ("features",))) == ["features"]
    path = save(candidates=[[0, 1], [-1, -1]], ids=["x", "y"])
    found = read(path, layout="list", empty_set="all")
    assert found.sets == {"x": {"0", "1"}, "y": {"0", "1"}}


def test_names_given_in_another_order(save):
    path = save(candidates=HOT, label_names=["a", "b", "c"], labels=[2, 1])
    found = read(path, class_names=["c", "b", "a"])
    assert found.classes == ("c", "b", "a")
    assert found.sets == {"row_00000": {"a", "c"}, "row_00001": {"b"}}
    assert found.labels.tolist() == [0, 1]
    with pytest.raises(DataError, match="not those given"):
        read(path, class_names=["a", "b", "d"])


def test_the_package_s_own_files(tmp_path):
    path = tmp_path / "own.npz"
    rng = np.random.default_rng(0)
    dense = rng.random((50, 5)) < 0.4
    dense[np.arange(50), np.arange(50) % 5] = True
    names = ["x, y", "\u00e9", "c", "d", "e"]
    ids = [f"train_{row}" for row in range(50)]
    sets = CandidateSets.from_dense(dense, ids, names, {"seed": 3})
    sets.save(path)
    found = read(path)
    assert found.candidates.content_hash == sets.content_hash
    assert found.candidates.provenance["seed"] == 3
    assert found.classes == tuple(names)


def test_rows_filled_up_with_zeros_are_warned_of(save):
    path = save(candidates=[[0, 2, 0], [1, 0, 0]])
    with pytest.warns(DataWarning, match="class 0 .'cat'.*Use -1"):
        read(path, layout="list", class_names=["cat", "dog", "owl"])


@pytest.mark.parametrize(
    "arrays, why",
    [
        ({}, "candidates or sets was expected"),
        ({"x": [1]}, "candidates or sets was expected"),
        ({"sets": [[1]], "candidates": [[1]]}, "--candidates_column"),
        ({"sets": np.zeros((0, 3))}, "empty"),
        ({"sets": np.zeros((2, 0))}, "empty"),
        ({"sets": np.zeros((1, 1, 1))}, "matrix"),
        ({"sets": ["cat"]}, "matrix of 0 and 1"),
        ({"sets": np.array([[1 + 1j]])}, "matrix of 0 and 1"),
        ({"sets": [[0, -2]]}, "only 0 and 1"),
        ({"sets": [0, 10**9]}, "1000000000.*--class_names"),
        ({"sets": [-1, -1]}, "largest class number is -1"),
        ({"sets": [[1, 0]], "ids": ["x", "y"]}, "1 sets but 2 ids.* y"),
        ({"sets": [[1, 0]] * 2, "ids": ["x"]}, "2 sets but 1 ids"),
        ({"sets": [[1, 0]] * 2, "ids": ["x", "x"]}, "occur more than once: x"),
        ({"sets": [[1, 0]], "ids": [1.5]}, "list of strings"),
        ({"sets": [[1, 0]], "ids": [" "]}, "item ' ' in row 0"),
        (
            {"sets": [[1, 0]], "class_names": ["x"]},
            "2 columns, but there are 1 classes",
        ),
        ({"sets": [[1, 0]], "class_names": ["x", "x"]}, "twice"),
        ({"sets": [[1, 0]], "class_names": [[1]]}, "list of strings"),
        ({"sets": [[1, 0]], "labels": [2]}, r"0\.\.1"),
        ({"sets": [[1, 0]], "labels": [-2]}, r"0\.\.1"),
        ({"sets": [[1, 0]], "labels": [0.5]}, "not whole"),
        ({"sets": [[1, 0]], "labels": [0, 1]}, "'labels'"),
    ],
)
def test_arrays_that_cannot_be_read(save, arrays, why):
    path = save(**{name: np.asarray(value) for name, value in arrays.items()})
    with pytest.raises(DataError, match=why) as caught:
        read(path)
    assert path in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"id_column": "x"},
        {"annotator_column": "x"},
        {"label_column": "x"},
        {"min_votes": 2},
        {"min_confidence": 0.5},
        {"layout": "wide"},
    ],
)
def test_arguments_for_which_arrays_have_no_use(save, arguments):
    with pytest.raises(ConfigError):
        read(save(sets=HOT), **arguments)


def test_a_real_set(shared):
    path = shared / "data" / "pll_lost.npz"
    found = read(path if path.exists() else shared / "pll_lost.npz")
    with np.load(path) as arrays:
        np.testing.assert_array_equal(
            found.candidates.dense(), arrays["candidates"] == 1
        )
        np.testing.assert_array_equal(found.labels, arrays["labels"])


# What is written is read again as it was; anything else is refused in a line.


def export(candidates):
    """Returns candidate sets as the text of a list table."""
    file, names = io.StringIO(newline=""), candidates.class_names
    writer = csv.writer(file)
    writer.writerow(["id", "candidates"])
    for row, item in enumerate(candidates.ids):
        chosen = [names[number] for number in candidates.members(row)]
        writer.writerow([item, json.dumps(chosen, ensure_ascii=False)])
    return file.getvalue()


ODD = (
    "plain",
    "rock, paper",
    'say "no"',
    "two\u2028lines",
    "x\x85y\x0bz",
    "a|b;c",
)
ODD += ("gr\u00fc\u00df \u732b", "[x]", "7", "1.5", "true", "none", "#x", "\\")


@pytest.mark.parametrize("names", [ODD, ("T-shirt/top", "a,b", "x|y")])
def test_odd_names_come_back(write, names):
    rng, size = np.random.default_rng(0), len(names)
    dense = rng.random((40, size)) < 0.3
    dense[np.arange(40), np.arange(40) % size] = True
    ids = [f"{row}{names[row % size]}\nb" for row in range(40)]
    before = CandidateSets.from_dense(dense, ids, names)
    given = names if "7" in names else None
    after = read(write(export(before)), class_names=given).candidates
    again = read(write(export(after)), class_names=names).candidates
    order = [names.index(name) for name in after.class_names]
    np.testing.assert_array_equal(after.dense(), dense[:, order])
    assert again.content_hash == before.content_hash


TEXT = st.text(
    st.one_of(
        st.sampled_from('ab01,;|"[]\n\r\t #\\-{}'),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=40,
)
START = st.sampled_from(
    ["id,labels\n", "id,annotator,label\n", "id,a1,a2\n", '{"id": 1, "labels":']
)


@hypothesis.settings(
    max_examples=150,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(
    START,
    TEXT,
    st.sampled_from(["csv", "tsv", "txt", "jsonl", "json", "npz", "npy"]),
    st.sampled_from(["auto", "list", "wide", "long", "multi_hot"]),
)
def test_any_file_gives_sets_or_one_line(write, start, text, ending, layout):
    path = write(start + text, f"t.{ending}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            candidates, votes, _ = read_labels(path, layout=layout)
        except AlimError as error:
            assert str(error) and "\n" not in str(error)
            return
    assert candidates.sizes.min() > 0
    assert votes is None or isinstance(votes, pd.DataFrame)
