"""Layouts and columns of tables, and the rules from votes to sets."""

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
from golden.cases import LONG as VOTED
from public_files import BINARY
from public_files import OPEN_IMAGES
from reading import read
from reading import written

from alim_keras.data.tables import read_known_labels
from alim_keras.data.tables import read_labels
from alim_keras.data.votes import sets_of_votes
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

SETS = {"a": {"cat", "dog"}, "b": {"dog"}, "c": {"cat", "owl"}}
LIST = "id,candidates\na,cat|dog\nb,dog\nc,owl|cat\n"
WIDE = "id,ann,ben,cid\na,cat,dog,dog\nb,dog,,\nc,owl,,cat\n"
LONG = (
    "item,annotator,label\nc,ben,owl\na,ann,dog\nb,ann,dog\na,ben,cat\n"
    "c,ann,cat\na,cid,dog\n"
)
HOT = "id,dog,cat,owl\na,1,1,0\nb,1,0,0\nc,false,TRUE,1.0\n"
CHOICES = (
    '{"image": "b", "accept": ["dog"], "answer": "ignore", "annotator": "x"}\n'
    '{"image": "b", "accept": ["cat", "owl"], "answer": "accept",'
    ' "annotator": "y"}\n'
)
PERSONS = (
    '{"id": 1, "label": ["cat"], "annotator": "anna"}\n'
    '{"id": 1, "label": ["dog", "cat"], "annotator": "bob"}\n'
)
SCORES = (
    '{"image": "a", "labels": ["cat", "dog"], "scores": [0.7, 0.2]}\n'
    '{"image": "b", "labels": ["dog", "cat"], "scores": [0.6, 0.5]}\n'
)
BLANKS = "id,a1,a2,a3\nw,cat,,dog\nx,,,\ny,dog,dog,\nz,,cat,none\n"
TWICE = "id,labels\na,cat\nb,dog\na,dog|cat\nb,dog\n"
# y: the set is the same, who says so is not.
TWICE_WIDE = "id,a1,a2\nx,cat,dog\ny,dog,\nx,cat,dog\ny,,dog\n"
HOT_LAYOUT, WIDE_LAYOUT = {"layout": "multi_hot"}, {"layout": "wide"}
NONE = {**WIDE_LAYOUT, "none_of_these": ("none",)}
TWO_CLASSES = {"class_names": ["0", "1"]}
LONG_NAMES = LONG.replace("item,annotator,label", " Image ,WORKER_ID,Choice")
STATUS = (
    "image,label,worker,status,n\na,cat,w1,APPROVED,1\na,dog,w2,REJECTED,2\n"
    "b,dog,w1,APPROVED,3\n"
)
PATHS = "image,id,candidates\nx/1.png,a,cat\nx/2.png,b,dog\n"
NAMES = ["T-shirt/top", "rock, paper", "rock", "bag"]
WHOLE = 'id,candidates\na,"rock, paper"\nb,T-shirt/top\nc,rock|bag\n'


@pytest.fixture
def write(tmp_path):
    return functools.partial(written, tmp_path)


@pytest.mark.parametrize(
    "text, options, sets",
    [
        (LONG_NAMES, {}, SETS),
        (PERSONS, {}, {"1": {"cat", "dog"}}),
        (PERSONS, {"min_votes": 2}, {"1": {"cat"}}),
        (
            WHOLE,
            {"class_names": NAMES},
            {"a": {"rock, paper"}, "b": {"T-shirt/top"}, "c": {"rock", "bag"}},
        ),
        # The rules.
        (
            BLANKS,
            {**NONE, "answered": ["x"]},
            {"w": {"cat", "dog"}, "x": {"cat", "dog"}, "y": None, "z": {"cat"}},
        ),
        # Each row is a vote where nobody is named.
        ("file,label\na,cat\na,cat\na,dog\n", {"min_votes": 2}, {"a": {"cat"}}),
        ("id,labels\na,\na,cat\n", {"duplicates": "union"}, {"a": {"cat"}}),
        (
            "id,label,score,n\na,x,1,2\n",
            {"confidence_column": "n"},
            {"a": {"x"}},
        ),
        (
            TWICE_WIDE,
            {
                **WIDE_LAYOUT,
                "duplicates": "union",
                "min_votes": 2,
                "empty_set": "drop",
            },
            {"y": {"dog"}},
        ),
        # What has no candidates has no scores.
        (
            SCORES + '{"image": "c", "labels": null, "scores": []}\n',
            {"empty_set": "drop"},
            {"a": {"cat", "dog"}, "b": {"cat", "dog"}},
        ),
        (CHOICES, {"candidates_column": "accept"}, {"b": {"cat", "owl"}}),
        (
            CHOICES,
            {"label_column": "accept", "layout": "long"},
            {"b": {"cat", "owl"}},
        ),
        (STATUS, {"where": ["status!=REJECTED"]}, {"a": {"cat"}, "b": {"dog"}}),
        (STATUS, {"where": ["n>1", "n<3", "status!="]}, {"a": {"dog"}}),
    ],
)
def test_sets(write, text, options, sets):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read(write(text), **options).sets
    assert sorted(found) == sorted(sets)
    for item, names in sets.items():
        assert names is None or found[item] == names


@pytest.mark.parametrize(
    "text, options, words",
    [
        # A layout is asked for and never guessed.
        (WIDE.replace("cat", "1").replace("dog", "0"), {}, ["--layout="]),
        (HOT, {}, ["--layout=wide", "--layout=multi_hot"]),
        ("id,0,1\na,1,0\nb,1,1\n", TWO_CLASSES, ["--layout=wide"]),
        ("id,ann\na,yes\nb,no\n", {}, ["--layout="]),
        ("id,label,width\na,cat,7\n", {}, ["--layout=", "width"]),
        ("id,annotator,labels\na,x,cat\n", {}, ["a row; --label_column="]),
        (WIDE.replace("cid", "label"), {}, ["--layout=long", "--layout=wide"]),
        (
            WIDE.replace("cid", "label"),
            WIDE_LAYOUT,
            ["'label'", "--annotator_column=A,B,C"],
        ),
        # Columns that are not clear.
        ("id,item,candidates\nx,a,cat\n", {}, ["--id_column=", "id, item"]),
        (
            "id,image,file_name,label\na,x,y,cat\n",
            {"layout": "long"},
            ["to be the image; keep one. Received: image, file_name"],
        ),
        (
            "who,candidates\na,cat\n",
            {"id_column": "whoo"},
            ["no column 'whoo'", "--id_column", "Did you mean who?"],
        ),
        ("id,label,score,confidence\na,x,1,1\n", {}, ["score, confidence"]),
        (
            "path,id,label\n1.png,a,cat\n2.png,a,dog\n",
            {"layout": "long"},
            ["two values of 'image'", "line 3"],
        ),
        (
            "id,candidates,truth\na,cat,dog\na,cat,cat\n",
            {"label_column": "truth"},
            ["two values of 'truth'", "id a (line 3)"],
        ),
        # Sets in a cell.
        ("id,candidates\na,[\n", {}, ["id a (line 2)", "no JSON list"]),
        ("id,candidates\na,[0 2]\n", {}, ["id a (line 2)", "no JSON list"]),
        # Cells that name one class.
        ("id,label\na,cat\na,cat;dog\n", {}, ["several", "--class_names"]),
        ('id,label\na,cat\na,"cat, dog"\n', {}, ["several", "--class_names"]),
        ("id,label\na,cat\na,['cat']\n", {}, ["several", "--class_names"]),
        # Rules.
        ("id,a1,a2\nx,,\n", {**WIDE_LAYOUT, "empty_set": "drop"}, ["class"]),
        (TWICE_WIDE, WIDE_LAYOUT, ["1 ids", "id y (line 3)"]),
        ("id,labels\na,\na,cat\n", {}, ["rows that differ"]),
        ("id,labels\na,\na,cat\n", {"duplicates": "first"}, ["are empty"]),
        (SCORES.replace(", 0.5]", "]"), {}, ["equally many", "id b (line 2)"]),
        (STATUS, {"where": "n=7"}, ["no row is left", "--where=n=7"]),
        (STATUS, {"where": "m=7"}, ["no column 'm'", "--where"]),
        *[
            (
                f"item,label,score\na,cat,1\nb,dog,{value}\n",
                {},
                ["'score' must be a number", "id b (line 3)"],
            )
            for value in ("", "high", "nan", "inf")
        ],
    ],
)
def test_tables_that_are_refused(write, text, options, words):
    path = write(text)
    with pytest.raises(DataError) as caught:
        read(path, **options)
    assert path in str(caught.value) and "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "text, options",
    [
        (LIST, {"layout": "tall"}),
        (VOTED, {"min_votes": 0}),
        (VOTED, {"min_votes": 1.5}),
        (VOTED, {"min_confidence": float("nan")}),
        (VOTED, {"empty_set": "none"}),
        (VOTED, {"duplicates": "last"}),
        (VOTED, {"class_names": ["cat", "cat"]}),
        (VOTED, {"class_names": ["cat", " "]}),
        (VOTED, {"class_names": "cat"}),
        (VOTED, {"none_of_these": "cat"}),
        (VOTED, {"where": "annotator"}),
        (VOTED, {"where": "confidence>high"}),
        (LIST, {"min_share": 2}),
        (LIST, {"top_k": 0}),
        (LIST, {"top_p": 0}),
        (LIST, {"records": "a.b"}),
        (BINARY, {"columns": ["id", "x"]}),
    ],
)
def test_arguments_out_of_range(write, text, options):
    with pytest.raises(ConfigError, match=next(iter(options))):
        read(write(text), **options)


@pytest.mark.parametrize(
    "text, options, needs",
    [
        (LIST, {"min_votes": 2}, "a row or a column for each vote."),
        (LONG, {"min_confidence": 0.5}, "confidences or scores."),
        (LIST, {"top_k": 1}, "each vote, or confidences or scores."),
    ],
)
def test_what_rules_need(write, text, options, needs):
    (rule,) = options
    layout = "long" if text == LONG else "list"
    said = f"--{rule} needs .*{needs} Received: a table of the layout {layout}"
    with pytest.raises(ConfigError, match=said) as caught:
        read(write(text), **options)
    assert ("each vote" in str(caught.value)) == (rule != "min_confidence")


@pytest.mark.parametrize(
    "text, options, note",
    [
        (LIST, {}, "layout list, from the columns candidates"),
        (VOTED, {}, "annotators: 6"),
        (VOTED, {}, "1 answers are repeated within an item and count once"),
        (VOTED, {"min_confidence": 0.7}, "6 votes are weaker than 0.7"),
        (BLANKS, {**NONE, "empty_set": "drop"}, "1 candidate sets are empty"),
        (BLANKS, {**NONE, "empty_set": "all"}, "id x (line 3): --empty_set"),
        (BLANKS, {**NONE, "empty_set": "all"}, "1 answers are none of these"),
        (TWICE, {"duplicates": "union"}, "1 rows are repeated"),
        ("id,10,9,2\na,1,0,0\nb,1,1,0\n", HOT_LAYOUT, "in no set: 2"),
        (BINARY, {}, "the answers: accept 2, reject 2"),
        (CHOICES, {}, "the answers: accept 2, ignore 1"),
        (STATUS, {"where": "status=APPROVED"}, "not used: n"),
    ],
)
def test_notes(write, text, options, note):
    assert any(note in line for line in read(write(text), **options).notes)


def test_the_votes(write):
    found = read(write(LIST))
    assert list(found.votes) == ["item", "annotator", "label", "confidence"]
    assert found.votes.index.tolist() == [2, 2, 3, 4, 4]
    assert found.ids == ["a", "b", "c"] and found.labels is None
    assert found.candidates.provenance["layout"] == "list"
    assert found.candidates.provenance["file"] == "table.csv"
    found = read(write(WIDE), layout="wide")
    assert found.answers == [
        ("a", "ann", "cat"),
        ("a", "ben", "dog"),
        ("a", "cid", "dog"),
        ("b", "ann", "dog"),
        ("c", "ann", "owl"),
        ("c", "cid", "cat"),
    ]
    found = read(write(LONG))
    assert found.ids == ["c", "a", "b"]
    assert found.answers[:2] == [("c", "ben", "owl"), ("a", "ann", "dog")]
    found = read(write("item,worker,label\na,x,cat\na,,dog\na,,dog\n"))
    nobody = ("a", "unknown", "dog")
    assert found.answers == [("a", "x", "cat"), nobody, nobody]
    # The larger confidence of the two votes of ann counts.
    counted = read(write(VOTED)).counted
    is_ann = (counted["item"] == "a") & (counted["annotator"] == "ann")
    assert counted["confidence"][is_ann].tolist() == [0.9]
    assert len(counted) == 10
    # The frame knows of a no, the sets do not.
    votes = read(write(OPEN_IMAGES)).votes
    assert votes["confidence"].tolist() == [1.0, 0.0, 0.7, 0.6, 1.0]


def test_read_labels(write):
    candidates, votes, notes = read_labels(write(LIST))
    assert candidates.sizes.tolist() == [2, 1, 2]
    assert votes is None and isinstance(notes, list)
    candidates, votes, _ = read_labels(
        write(VOTED), min_votes=2, empty_set="drop"
    )
    assert candidates.ids.tolist() == ["a"]
    assert set(votes["item"]) == {"a"} and len(votes) == 6


def test_true_classes_and_images_beside_the_answers(write):
    text = "id,candidates,truth\na,cat|dog,dog\nb,dog,\nc,owl,cat\n"
    assert read(write(text)).labels is None
    found = read(write(text), label_column="truth")
    assert found.labels.tolist() == [1, -1, 0]
    assert found.labels.dtype == np.int64
    text = WIDE.replace("cid", "truth")
    found = read(write(text), layout="wide", label_column="truth")
    assert {who for _, who, _ in found.answers} == {"ann", "ben"}
    assert found.labels.tolist() == [1, -1, 0]
    found = read(write(PATHS))
    assert found.ids == ["a", "b"]
    assert found.votes["image"].tolist() == ["x/1.png", "x/2.png"]
    assert "image" not in read(write(LIST.replace("id,", "file,"))).votes


def _slowly(rows, policy):
    """Merges (id, names) row by row: the items that differ, and the sets."""
    first, sets, differs = {}, {}, []
    for item, names in rows:
        lead = first.setdefault(item, set(names))
        if lead != set(names) and item not in differs:
            differs.append(item)
        sets.setdefault(item, set()).update(names)
    return differs, sets if policy == "union" else first


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("policy", ["union", "first", "error"])
def test_rows_that_repeat_an_id_are_merged_as_row_by_row(write, seed, policy):
    stream = np.random.default_rng(seed)
    rows = [
        ("abcdef"[stream.integers(6)], list("xyz"[: stream.integers(1, 3)]))
        for _ in range(stream.integers(1, 12))
    ]
    text = "".join(f"{item},{'|'.join(names)}\n" for item, names in rows)
    differs, sets = _slowly(rows, policy)
    path = write("id,labels\n" + text)
    if policy == "error" and differs:
        with pytest.raises(DataError, match=f"{len(differs)} ids have rows"):
            read(path)
    else:
        assert read(path, duplicates=policy).sets == sets


def test_a_frame_of_ones_own():
    votes = pd.DataFrame({"item": [1, 1, 2], "label": ["cat", " dog", "dog"]})
    candidates, counted = sets_of_votes(votes)
    assert candidates.ids.tolist() == ["1", "2"]
    assert candidates.dense().tolist() == [[True, True], [False, True]]
    assert counted["annotator"].isna().all()
    with pytest.raises(DataError, match="the votes: .*'own' of id 1 .row 0"):
        sets_of_votes(votes.replace("cat", "own"), class_names=["dog", "cat"])


def test_known_labels(write):
    path = write("\ufefflabel,who,id\ndog,me,a3\n 0 ,you, a1\n")
    ids, labels = read_known_labels(path, ("cat", "dog"))
    assert ids.tolist() == ["a3", "a1"] and labels.tolist() == [1, 0]
    assert labels.dtype == np.int64
    path = write("id;label\r\na1;02\r\n")
    assert read_known_labels(path, ["01", "02"])[1].tolist() == [1]


@pytest.mark.parametrize(
    "text, words",
    [
        ("id,label\na1,cat\na1,dog\n", ["twice", "line 2", "line 3"]),
        ("id,label\na1,dgo\n", ["'dgo'", "line 2", "mean dog"]),
        (
            "id,label\na1,-1\n",
            ["without a class", "line 2", "cat, dog", "'-1'"],
        ),
        ("id,label\na1,\n", ["without a class", "line 2", "cat, dog", "''"]),
        ("id,label\na1,cat\na2,NA\n", ["a2 (line 3)", "'NA'", "cat, dog"]),
        ("id,label\na1,?\n", ["a1 (line 2)", "'?'"]),
        ("id,label\n ,cat\n", ["item", "line 2"]),
        ("id,class\na1,cat\n", ["columns id and label", "'id', 'class'"]),
        ("id,label,suspicion\na1,cat,0.1\n", ["audit's"]),
        ('id,label\na1,cat\na2,"' + "x" * 1_400_000, ["line 3", "quotes"]),
    ],
)
def test_known_labels_that_are_refused(write, text, words):
    path = write(text)
    with pytest.raises(DataError) as error:
        read_known_labels(path, ("cat", "dog"))
    assert path in str(error.value) and "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)
