"""The table of bad input: the default action, and what the message says."""

import warnings

import numpy as np
import pytest

from alim_keras.data import DataWarning
from alim_keras.data.tables import read_labels
from alim_keras.errors import DataError

FIVE = ("cat", "dog", "owl", "bee", "ant")
TEN = tuple(f"class {index}" for index in range(10))


def listed(*cells):
    return "id,labels\n" + "".join(
        f"i{number},{cell}\n" for number, cell in enumerate(cells)
    )


def many(cell, count, *others):
    return listed(*[cell] * count, *others)


# What is in the file, its name, further arguments, words of the message.
REFUSED = {
    "an empty set": (
        listed('"[""cat""]"', "", '"[]"'),
        "t.csv",
        {},
        ("2 candidate sets are empty", "i1 (line 3), i2 (line 4)")
        + ("--empty_set=all", "--empty_set=drop"),
    ),
    "an empty list of numbers": (
        '{"id": 1, "labels": [0]}\n{"id": 2, "labels": [0, 1]}\n'
        '{"id": 3, "labels": []}\n',
        "t.jsonl",
        {},
        ("1 candidate sets are empty", "3 (line 3)"),
    ),
    "a row of zeros": (
        "id,cat,dog\na,1,0\nb,0,0\n",
        "t.csv",
        {"layout": "multi_hot"},
        ("1 candidate sets are empty", "b (line 3)"),
    ),
    "a blank row of a wide table": (
        "id,a1,a2\na,cat,dog\nb,,\n",
        "t.csv",
        {},
        ("1 candidate sets are empty", "b (line 3)"),
    ),
    "a label of C": (
        listed("0|5", "1"),
        "t.csv",
        {"class_names": FIVE},
        ("number 5", "line 2 (id i0)", "0..4", "5 classes"),
    ),
    "a label below 0": (
        listed("0", "-3"),
        "t.csv",
        {"class_names": FIVE},
        ("number -3", "line 3 (id i1)", "0..4"),
    ),
    "labels from 1": (
        listed("1", "5"),
        "t.csv",
        {"class_names": FIVE},
        ("number 5", "line 3 (id i1)", "0..4", "labels start at 0?"),
    ),
    "one id with two sets": (
        "id,labels\na,cat\nb,dog\na,dog\n",
        "t.csv",
        {},
        ("1 ids", "a (line 2)", "--duplicates=union", "--duplicates=first"),
    ),
    "a blank in a multi-hot row": (
        "id,cat,dog\na,1,0\nb,,1\n",
        "t.csv",
        {"layout": "multi_hot"},
        ("'cat'", "only 0 and 1", "blank", "line 3 (id b)"),
    ),
    "NaN in a multi-hot row": (
        "id,cat,dog\na,1,0\nb,NaN,1\n",
        "t.csv",
        {"layout": "multi_hot"},
        ("'cat'", "only 0 and 1", "blank", "line 3 (id b)"),
    ),
    "a blank between separators": (
        listed("cat||dog"),
        "t.csv",
        {},
        ("line 2 (id i0)", "a name is missing"),
    ),
    "1.5": (
        listed("1.5"),
        "t.csv",
        {"class_names": FIVE},
        ("1.5", "line 2 (id i0)", "whole"),
    ),
    "a bool in a list": (
        '{"id": "x", "labels": [true]}',
        "t.jsonl",
        {"class_names": FIVE},
        ("True", "line 1 (id x)", "no class"),
    ),
    "a multi-hot 0.3": (
        "id,cat,dog\na,1,0\nb,0.3,1\n",
        "t.csv",
        {"layout": "multi_hot"},
        ("'cat'", "only 0 and 1", "0.3", "line 3 (id b)"),
    ),
    "a multi-hot 2": (
        "id,cat,dog\na,1,0\nb,2,1\n",
        "t.csv",
        {"class_names": ("cat", "dog")},
        ("'cat'", "only 0 and 1", "2", "line 3 (id b)"),
    ),
    "too few multi-hot columns": (
        "id,cat,dog\na,1,0\n",
        "t.csv",
        {"layout": "multi_hot", "class_names": FIVE},
        ("2 columns", "5 classes", "none for owl, bee, ant"),
    ),
    "too many multi-hot columns": (
        "id,cat,dog,owl\na,1,0,1\n",
        "t.csv",
        {"layout": "multi_hot", "class_names": ("cat", "dog")},
        ("3 columns", "2 classes", "owl is no class"),
    ),
    "an unknown name": (
        listed("cat", "catt"),
        "t.csv",
        {"class_names": FIVE},
        ("'catt'", "line 3 (id i1)", "did you mean cat?"),
    ),
    "a column that is no annotator's": (
        "id,ann,ben,split\na,cat,dog,train\nb,dog,dog,train\n",
        "t.csv",
        {"class_names": FIVE},
        ("'train'", "lines 2, 3 (id a, b)", "column 'split'"),
    ),
    "no bytes": ("", "t.csv", {}, ("empty",)),
    "no bytes of JSON": ("", "t.jsonl", {}, ("empty",)),
    "no bytes of arrays": ("", "t.npz", {}, ("empty",)),
    "no bytes of one array": ("", "t.npy", {}, ("empty",)),
    "blank lines only": ("\n \n", "t.csv", {}, ("empty",)),
    "a mark of byte order only": ("\ufeff", "t.csv", {}, ("empty",)),
    "comments only": ("# x\n", "t.csv", {}, ("empty",)),
    "a header only": ("id,labels\n", "t.csv", {}, ("empty", "no rows")),
    "blank JSON lines": ("\n\n", "t.jsonl", {}, ("empty",)),
    "blank JSON": (" ", "t.json", {}, ("empty",)),
    "no objects": ("[]", "t.json", {}, ("empty",)),
    "blank annotators": (
        "id,a1\nx,\n",
        "t.csv",
        {"layout": "wide"},
        ("empty",),
    ),
    "no UTF-8": (
        "id,labels\na,caf\u00e9\n".encode("latin-1"),
        "t.csv",
        {},
        ("not UTF-8", "save it as UTF-8, in Excel as 'CSV UTF-8'"),
    ),
    "UTF-16": ("id,labels\na,x\n".encode("utf-16"), "t.csv", {}, ("UTF-8",)),
    "JSON lines that are no UTF-8": (b"\xff", "t.jsonl", {}, ("not UTF-8",)),
    "JSON that is no UTF-8": (b"[\xff]", "t.json", {}, ("not UTF-8",)),
    "NUL": ("id\0,labels\na,x\n", "t.csv", {}, ("NUL",)),
    "too few fields": (
        "id,labels\na,x\nb\n",
        "t.csv",
        {},
        ("line 3", "1 fields", "2"),
    ),
    "too many fields": (
        "id,labels\na,x\n\nb,y,z\n",
        "t.csv",
        {},
        ("line 4", "3 fields", "2", "quotes"),
    ),
    "an open quote": (
        'id,labels\na,"x\nb,y\n',
        "t.csv",
        {},
        ("line 3", "quote"),
    ),
    "text after a quote": (
        '# x\nid,labels\na,"x"y\n',
        "t.csv",
        {},
        ("line 3", "quote"),
    ),
    "a column twice": (
        "id,labels,labels\na,x,y\n",
        "t.csv",
        {},
        ("'labels'", "more than once"),
    ),
    "a column without a name": (
        ",id,labels\n0,a,x\n",
        "t.csv",
        {},
        ("column 1", "no name"),
    ),
    "a blank id": ("id,labels\na,x\n ,y\n", "t.csv", {}, ("id", "line 3")),
    "an endless id": (
        f"id,labels\n{'a' * 2000},x\n",
        "t.csv",
        {},
        ("id", "line 2", "1024"),
    ),
    "unsound JSON": (
        '{"id": 1, "labels": ["x"]}\n{"id": 2,\n',
        "t.jsonl",
        {},
        ("line 2", "JSON"),
    ),
    "a key twice": (
        '{"id": 1, "labels": ["x"], "id": 2}\n',
        "t.jsonl",
        {},
        ("line 1", "'id' is there twice"),
    ),
    "JSON without objects": ("[1, 2]", "t.json", {}, ("row 0", "object")),
    "a JSON object": ('{"a": 1}', "t.json", {}, ("list of objects",)),
    "no zip": ("x", "t.npz", {}, ("npz",)),
    "no array": ("x", "t.npy", {}, ("npy",)),
    "an unknown suffix": ("x", "t.xlsx", {}, (".xlsx", ".csv")),
    "a set beside a class in a wide table": (
        '[{"id": "a", "a1": ["cat"], "a2": "dog"}]',
        "t.json",
        {},
        ("'a1'", "one class in a cell", "row 0"),
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(write, what):
    text, name, arguments, words = REFUSED[what]
    path = write(text, name)
    with pytest.raises(DataError) as caught:
        read_labels(path, **arguments)
    message = str(caught.value)
    assert path in message
    assert "\n" not in message
    for word in words:
        assert word in message


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_labels(tmp_path / "t.csv")
    with pytest.raises(DataError, match="is a folder"):
        read_labels(tmp_path)


def test_the_file_by_another_name(write):
    with pytest.raises(DataError) as caught:
        read_labels(write(listed("cat", "")), where="--labels=mine.csv")
    assert str(caught.value).startswith("--labels=mine.csv: 1 candidate sets")


def test_empty_sets_by_policy(write, sets_of):
    path = write(listed("cat|dog", "", "dog"))
    found = read_labels(path, empty_set="all")
    assert sets_of(found)["i1"] == {"cat", "dog"}
    assert found.counts["empty_sets"] == 1
    found = read_labels(path, empty_set="drop")
    assert sets_of(found) == {"i0": {"cat", "dog"}, "i2": {"dog"}}
    assert found.counts["empty_sets"] == 1
    assert found.counts["items"] == 2
    assert "1 sets are empty, ids i1 (line 3): left out" in found.notes


def test_full_sets_are_counted_and_warned(write):
    path = write(many("cat|dog", 2, *["cat"] * 9, *["dog"] * 9))
    with pytest.warns(DataWarning, match="2 of 20 .* hold all 2 classes"):
        assert len(read_labels(path)) == 20


def test_single_candidates_are_allowed(write):
    found = read_labels(write(listed("cat", "dog")))
    assert found.candidates.statistics()["share_single"] == 1.0


def test_a_duplicate_in_a_set(write, sets_of):
    found = read_labels(write(listed("cat|cat", "dog|cat|dog")))
    assert sets_of(found) == {"i0": {"cat"}, "i1": {"cat", "dog"}}
    assert sum("repeated" in note for note in found.notes) == 1


def test_one_id_twice_with_equal_sets(write, sets_of):
    found = read_labels(write("id,labels\na,cat|dog\na,dog|cat\n"))
    assert sets_of(found) == {"a": {"cat", "dog"}}
    assert "1 rows repeat an id and say the same: left out" in found.notes


@pytest.mark.parametrize("cell", ["", " ", "NaN", "nan"])
def test_a_blank_in_a_wide_table_is_no_vote(write, sets_of, cell):
    found = read_labels(write(f"id,a1,a2\nx,cat,{cell}\ny,dog,cat\n"))
    assert sets_of(found) == {"x": {"cat"}, "y": {"cat", "dog"}}


def test_a_float_1_0_is_a_1(write, sets_of):
    found = read_labels(write(listed("1.0", "0|2.0")), class_names=FIVE)
    assert sets_of(found) == {"i0": {"dog"}, "i1": {"cat", "owl"}}


def test_an_unused_class_is_a_note_only(write):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read_labels(write(listed("cat", "dog")), class_names=FIVE)
    assert "3 classes are in no set: owl, bee, ant" in found.notes


def test_padding_with_zeros_is_warned(tmp_path):
    rows = [[1 + number % 9, 0, 0] for number in range(200)]
    np.savez(tmp_path / "t.npz", candidates=rows)
    with pytest.warns(DataWarning, match="Class 0 is in 100.0%"):
        found = read_labels(tmp_path / "t.npz", class_names=TEN)
    assert found.candidates.sets[:, 0].all()


@pytest.mark.parametrize(
    "sets",
    [
        np.array([[True, False, False], [False, True, True]]),
        np.array([[1, 0, 0], [0, 1, 1]]),
        np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]),
        np.array([[0, -1], [2, 1]]),
    ],
)
def test_one_set_in_all_forms(tmp_path, write, sets):
    # Ragged lists, padded numbers and multi-hot give the same sets.
    np.savez(tmp_path / "t.npz", sets=sets, ids=["a", "b"])
    lists = '{"id": "a", "labels": [0]}\n{"id": "b", "labels": [1, 2]}\n'
    wanted = read_labels(write(lists, "t.jsonl")).candidates
    found = read_labels(tmp_path / "t.npz").candidates
    assert found.content_hash == wanted.content_hash
