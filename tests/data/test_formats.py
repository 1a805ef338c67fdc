"""Every kind of file, and what is refused of it."""

import functools
import json
import warnings

import hypothesis
import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import strategies as st
from public_files import result
from reading import read
from reading import written

from alim_keras.data.candidates import CandidateSets
from alim_keras.data.checks import read_npz
from alim_keras.data.formats import FORMATS
from alim_keras.data.tables import LAYOUTS
from alim_keras.data.tables import read_labels
from alim_keras.data.tables import read_votes
from alim_keras.errors import AlimError
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

SETS = {"a": {"cat", "dog"}, "b": {"dog"}}
PLAIN = "id,candidates\na,cat|dog\nb,dog\n"
HOT = [[1, 0, 1], [0, 1, 0]]
ROWS = {"row_00000": {"0", "2"}, "row_00001": {"1"}}


@pytest.fixture
def write(tmp_path):
    return functools.partial(written, tmp_path)


@pytest.fixture
def save(tmp_path):
    def save(**arrays):
        np.savez(tmp_path / "t.npz", **arrays)
        return str(tmp_path / "t.npz")

    return save


@pytest.mark.parametrize(
    "text, name",
    [
        (PLAIN, "T.CSV"),
        (PLAIN, "t.txt"),
        (PLAIN.replace("\n", "\r"), "t.csv"),
        (PLAIN.rstrip("\n"), "t.csv"),
        ("# made by hand\n# in May, 2020\n\n" + PLAIN, "t.csv"),
        ("\ufeffsep=;\r\n" + PLAIN.replace(",", ";"), "t.csv"),
        (PLAIN.replace(",", "\t"), "t.txt"),
        ('"id","candidates"\n"a","cat|dog"\n"b","dog"\n', "t.csv"),
        ('id;x;candidates\na;"1,5";cat|dog\nb;2,0;dog\n', "t.csv"),
        ('id,candidates\na,"[""cat"",\n""dog""]"\nb,"[""dog""]"\n', "t.csv"),
        (
            '{"id": "a", "candidates": "cat|dog"}\r\n'
            '{"id": "b", "candidates": "dog"}\r\n',
            "t.ndjson",
        ),
    ],
)
def test_the_same_table_in_many_coats(write, text, name):
    found = read(write(text, name))
    assert found.sets == SETS and found.ids == ["a", "b"]


def test_a_format_by_name(write):
    path = write(PLAIN, "t.data")
    assert read(path, format="csv").sets == SETS
    with pytest.raises(ConfigError, match="Did you mean csv.*format='cvs'"):
        read(path, format="cvs")


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
    with pytest.raises(ConfigError, match="no columns.*id_column"):
        read(path, format=f"{reader}:read", id_column="x")


def test_lines_are_those_of_the_file(write):
    text = '# x\n\nid,candidates\r\n\r\na,"cat\r\n|dog"\nb,\n'
    with pytest.raises(DataError, match=r"b \(line 7\)"):
        read(write(text))


def test_parquet(tmp_path):
    path = str(tmp_path / "t.parquet")

    def store(**columns):
        pyarrow.parquet.write_table(pyarrow.table(columns), path)

    store(id=[1, 2, 3], a1=[0, 1, None], a2=[None, 2, 2])
    found = read(path, class_names=["x", "y", "z"], layout="wide")
    assert found.sets == {"1": {"x"}, "2": {"y", "z"}, "3": {"z"}}
    store(id=["a"], candidates=[[0.0, 1.5]])
    with pytest.raises(DataError, match=r"1.5\] of id a \(row 0\).*whole"):
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


OTHER = {"result": [{"from_name": "hue", "value": {"choices": ["x"]}}]}


def test_label_studio(write):
    first = {"image": "/data/local-files/?d=pets%2Fb.png", "text": "x"}
    annotations = [
        result("dog", completed_by={"email": "eve@x.org"}),
        result(completed_by=2),
    ]
    tasks = [{"data": first, "annotations": annotations}]
    tasks.append({"data": {"image": "d.png"}, "annotations": []})
    path = write(tasks, "t.json")
    found = read(path, empty_set="drop")
    assert found.answers == [("pets/b.png", "eve@x.org", "dog")]
    said = "2 tasks, 2 annotators, 2 annotations"
    assert any(said in note for note in found.notes)
    with pytest.raises(DataError, match=r"1 candidate sets.*d\.png"):
        read(path)


@pytest.mark.parametrize(
    "data, annotations, why",
    [
        ({}, [result("x", completed_by=1)], "name the item"),
        ({"image": 1.5}, [], "item 1.5 of .*task 0"),
        ({"a": "x", "b": "y"}, [], "a, b"),
        ({"image": "x"}, [7], "task 0: results of choices"),
        ({"image": "x"}, [{"result": [{}]}], "task 0: results of choices"),
        ({"image": "x"}, [result(3, "x", completed_by=1)], "task 0"),
        ({"image": "x"}, [result(completed_by=1)], "No class is named"),
        (
            {"image": "x"},
            [result("x", completed_by=1), OTHER],
            "one question.*hue, kind",
        ),
    ],
)
def test_label_studio_that_cannot_be_read(write, data, annotations, why):
    tasks = [{"data": data, "annotations": annotations}]
    with pytest.raises(DataError, match=why):
        read(write(tasks, "t.json"))


FLAT = "image,id,choice,annotator\nb.png,7,cat,1\n"


def test_label_studio_with_flat_columns(write):
    cell = '"{""choices"": [""cat"", ""dog""]}"'
    path = write(f"{FLAT}b.png,7,{cell},2\n", "t.csv")
    found = read(path)
    assert found.sets == {"7": {"cat", "dog"}}
    assert found.votes["image"].tolist() == ["b.png"] * 3
    assert [who for _, who, _ in found.answers] == list("122")
    found = read(
        path, layout="list", candidates_column="choice", duplicates="union"
    )
    assert found.sets == {"7": {"cat", "dog"}}


WIDE = {"layout": "wide"}
NAMED = {"columns": ("id", "label")}


@pytest.mark.parametrize(
    "text, name, options, answers",
    [
        ("id\tDoe, J.\tRoe, R.\na\tcat\tdog\n", "t.csv", WIDE, "cat dog"),
        ("id;Doe, J.;Roe, R.\na;cat;dog\n", "t.csv", WIDE, "cat dog"),
        ("image\tlabel, final\na\tcat\n", "t.txt", WIDE, "cat"),
        ('id,"x;y"\n\na,cat;dog\n', "t.csv", WIDE, "cat;dog"),
        ('"id\n",label\na,cat\n', "t.csv", {"layout": "long"}, "cat"),
        ("id,label\na,b;c\nd,e\n", "t.csv", {"layout": "list"}, "b c e"),
        ("a,b.jpg\tcat\n", "t.txt", NAMED, "cat"),
        ("a;1,cat\nb;2,dog\n", "t.txt", NAMED, "1,cat 2,dog"),
        ("a.jpg,cat\n", "t.tsv", NAMED, "cat"),
        ("a,b.jpg\tcat\nc\tdog\n", "t.tsv", NAMED, "cat dog"),
        ("a b.jpg cat\n", "t.txt", NAMED, "cat"),
    ],
)
def test_the_delimiter(write, text, name, options, answers):
    options = {"class_names": [*answers.split(), "x"], **options}
    if options.get("layout") == "list":
        options["candidates_column"] = "label"
    votes = read_votes(write(text, name), **options)
    assert votes["label"].tolist() == answers.split()


@pytest.mark.parametrize(
    "text, name, why",
    [
        ("", "t.npy", "empty"),
        ("\n \n", "t.csv", "empty"),
        ("# x\n", "t.csv", "empty"),
        ("\n\n", "t.jsonl", "empty"),
        (" ", "t.json", "empty"),
        (b"\xff", "t.jsonl", "not UTF-8"),
        ("id\0,labels\na,x\n", "t.csv", "--id_column"),
        ("id,labels\na,x\n\nb,y,z\n", "t.csv", "line 4 has 3 .* quotes"),
        ('# x\nid,labels\na,"x"y\n', "t.csv", "line 3 .*quotes"),
        (",id,labels\n0,a,x\n", "t.csv", "name of its own"),
        (f"id,labels\n{'a' * 2000},x\n", "t.csv", "item .*line 2"),
        (f"id,labels\na,{'x' * 1_100_000}\n", "t.csv", "line 2 .*field larger"),
        ('{"id": true, "labels": ["x"]}', "t.jsonl", "item True .*line 1"),
        ("[" * 100_000, "t.json", "not sound JSON"),
        ("[1, 2]", "t.json", "row 0: a list of objects"),
        ('{"a": 1}', "t.json", "list of objects"),
        ("x", "t.npz", "npz"),
    ],
)
def test_refused(write, text, name, why):
    path = write(text, name)
    with pytest.raises(DataError, match=why) as caught:
        read_labels(path)
    assert path in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize("place", ["id", "label", "candidates"])
def test_a_cell_of_ten_million_characters(write, ending, place):
    column = "candidates" if place == "candidates" else "label"
    cells = {"id": "a", column: "cat", place: "x" * 10_000_000}
    text = json.dumps(cells)
    if ending == "csv":
        text = f"{','.join(cells)}\n{','.join(cells.values())}\n"
    with pytest.raises(DataError) as error:
        read_labels(write(text, f"t.{ending}"))
    assert "line" in str(error.value) and "\n" not in str(error.value)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("count", "options", "words"),
    [
        (20_000, {}, "what are the columns c1, c2, .*--layout=list"),
        (20_000, {"layout": "multi_hot"}, "at most 20,000.*npz.*: 20,001 col"),
        (400_000, {"layout": "wide"}, "Received: 400,001 columns"),
    ],
)
def test_more_columns_than_a_table_has(write, count, options, words):
    names = [f"c{n}" for n in range(count)]
    header = ",".join(["id", *names[not options :]])
    row = ",".join("1" for _ in header.split(","))
    with pytest.raises(DataError, match=words) as error:
        read_labels(write(f"{header}\n{row}\n", "t.csv"), **options)
    assert len(str(error.value)) < 500


def test_missing_files_and_folders(tmp_path):
    for path in (tmp_path / "t.csv", tmp_path):
        with pytest.raises(DataError, match="no such file"):
            read_votes(path)


# Arrays.


@pytest.mark.parametrize(
    "sets, layout",
    [
        (np.array(HOT, bool), "auto"),
        (np.array(HOT, np.uint8), "multi_hot"),
        (np.array(HOT, np.float32), "auto"),
        ([[0, 2, -1], [1, -1, -1]], "list"),
        ([[0.0, 2.0], [1.0, -1.0]], "list"),
    ],
)
def test_arrays_of_sets(save, sets, layout):
    found = read(save(candidates=sets), layout=layout)
    assert found.sets == ROWS and found.classes == ("0", "1", "2")
    assert found.labels is None
    path = save(mine=sets)
    assert read(path, layout=layout, candidates_column="mine").sets == ROWS


def test_npy_files(tmp_path):
    path = str(tmp_path / "t.npy")
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
    found = read(path, empty_set="drop", class_names=["dog", "cat"])
    assert found.sets == {"x": {"cat"}, "z": {"cat", "dog"}}
    assert found.classes == ("dog", "cat")
    assert found.labels.tolist() == [1, -1] and found.labels.dtype == np.int64
    assert list(read_npz(path, ("features",))) == ["features"]
    path = save(candidates=[[0, 1], [-1, -1]], ids=["x", "y"])
    found = read(path, layout="list", empty_set="all")
    assert found.sets == {"x": {"0", "1"}, "y": {"0", "1"}}


def test_the_package_s_own_files(tmp_path):
    path = tmp_path / "own.npz"
    dense = np.random.default_rng(0).random((50, 5)) < 0.4
    dense[np.arange(50), np.arange(50) % 5] = True
    names = ["x, y", "\u00e9", "c", "d", "e"]
    ids = [f"train_{row}" for row in range(50)]
    sets = CandidateSets.from_dense(dense, ids, names, provenance={"seed": 3})
    sets.save(path)
    found = read(path)
    assert found.candidates.content_hash == sets.content_hash
    assert found.candidates.provenance["seed"] == 3
    assert found.classes == tuple(names)


@pytest.mark.parametrize(
    "arrays, why",
    [
        ({"x": [1]}, "--candidates_column"),
        ({"candidates": np.zeros((0, 3))}, "shape .0, 3"),
        ({"candidates": np.zeros((1, 1, 1))}, "matrix"),
        ({"candidates": np.array([[1 + 1j]])}, "matrix of 0 and 1"),
        ({"candidates": [[0, -2]]}, r"--layout=list.*-2"),
        ({"candidates": [[0, np.nan]]}, "nan of row_00000, column 1"),
        ({"candidates": [0, 10**9]}, r"row_00001 \(row 1.*is 1000000000"),
        ({"candidates": [-1, -1]}, "No class is named"),
        ({"candidates": [[1, 0]] * 2, "ids": ["x", "x"]}, "more than once: x"),
        ({"candidates": [[1, 0]], "ids": [1.5]}, "'ids'.*list"),
        ({"candidates": [[1, 0]], "ids": [" "]}, "item ' ' of .*row 0"),
        ({"candidates": [[1, 0]], "class_names": ["x"]}, "2 columns for 1"),
        ({"candidates": [[1, 0]], "class_names": ["x", "x"]}, "twice"),
        ({"candidates": [[1, 0]], "labels": [2]}, r"0\.\.1"),
        ({"candidates": [[1, 0]], "labels": [0.5]}, "whole"),
        ({"candidates": [[1, 0]], "labels": [0, 1]}, "`labels`"),
    ],
)
def test_arrays_that_cannot_be_read(save, arrays, why):
    path = save(**{name: np.asarray(value) for name, value in arrays.items()})
    with pytest.raises(AlimError, match=why) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_arguments_for_which_arrays_have_no_use(save):
    options = {"id_column": "x", "min_votes": 2, "layout": "wide"}
    for name, value in options.items():
        with pytest.raises(ConfigError):
            read(save(candidates=HOT), **{name: value})


# What is written is read again as it was; anything else is refused in a line.


def export(candidates):
    """Returns candidate sets as the text of a list table."""
    names = np.array(candidates.class_names)
    chosen = [list(names[row]) for row in candidates.dense()]
    table = {"id": candidates.ids, "candidates": map(json.dumps, chosen)}
    return pd.DataFrame(table).to_csv(index=False)


ODD = ("plain", "rock, paper", 'say "no"', "two\u2028lines", "x\x85y\x0bz")
ODD += ("gr\u00fc\u00df \u732b", "[x]", "7", "1.5", "true", "none", "#x", "\\")


def test_odd_names_come_back(write):
    size = len(ODD)
    dense = np.random.default_rng(0).random((40, size)) < 0.3
    dense[np.arange(40), np.arange(40) % size] = True
    ids = [f"{row}{ODD[row % size]}" for row in range(40)]
    before = CandidateSets.from_dense(dense, ids, ODD)
    after = read(write(export(before)), class_names=ODD).candidates
    assert after.content_hash == before.content_hash


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
TABLES = st.tuples(
    st.tuples(START, TEXT).map("".join),
    st.sampled_from(["csv", "tsv", "jsonl", "json", "npz", "npy", "xml"]),
    st.sampled_from(LAYOUTS).map(lambda layout: {"layout": layout}),
)
FIELDS = ["data", "annotations", "image", "result", "value", "choices", "id"]
FIELDS += ["custom_id", "response", "answer", "accept", "labels", "classes"]
FIELDS += ["subject_data", "classification_id", "dataset_name", "0", "label"]
ANY = st.recursive(
    st.sampled_from([None, True, 0, 1.5, "", "a", "accept", "{", "[1]"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    ),
    max_leaves=12,
)
FORMAT = st.sampled_from([None, *FORMATS])
EXPORTS = st.tuples(
    ANY.map(json.dumps),
    st.just("json"),
    FORMAT.map(lambda name: {"format": name}),
)


@hypothesis.settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(st.one_of(TABLES, EXPORTS, EXPORTS))
def test_any_file_gives_sets_or_one_line(write, file):
    content, ending, options = file
    path = write(content, f"t.{ending}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            candidates, votes, _ = read_labels(path, **options)
        except AlimError as error:
            assert "\n" not in str(error) and 0 < len(str(error)) < 1000
            return
    assert candidates.sizes.min() > 0
    assert votes is None or isinstance(votes, pd.DataFrame)
