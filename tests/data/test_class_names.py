"""Cells to classes: names first, numbers only where they are places."""

import pandas as pd
import pytest
from reading import read
from reading import written

from alim_keras.data.class_names import class_numbers
from alim_keras.data.class_names import read_class_names
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

FIVE = ["cat", "dog", "owl", "bee", "ant"]


@pytest.fixture
def table(tmp_path):
    """Returns a function that writes cells of candidates, ids from 0."""

    def table(*cells):
        rows = [f"{number},{cell}\n" for number, cell in enumerate(cells)]
        return written(tmp_path, "id,candidates\n" + "".join(rows))

    return table


@pytest.mark.parametrize(
    "cells, names, classes, sets",
    [
        (["cat|dog", "owl"], FIVE, FIVE, None),
        (["1.0|2", "0.0"], FIVE, FIVE, [{"dog", "owl"}, {"cat"}]),
        # Names that are numbers, sorted by value or as given.
        (["10|2", "1|2"], None, ["1", "2", "10"], None),
        (["10|2", "1.0"], list("12") + ["10"], None, [{"10", "2"}, {"1"}]),
        (["cat", "Cat"], ["Cat", "cat"], None, [{"cat"}, {"Cat"}]),
        # Codes of one length are names.
        (["01|02", "02"], None, ["01", "02"], None),
        (["01|10", "12|01"], None, ["01", "10", "12"], None),
        (["1e3", "5"], ["1e3", "5"], None, None),
        # -1 is padding, 0 is a class.
        (["0|2|-1", "1|-1|-1"], list("xyz"), None, [{"x", "z"}, {"y"}]),
        (["0|2|-1", "1|-1|-1"], None, list("012"), [{"0", "2"}, {"1"}]),
        (["0|-1", "1"], ["-1", "0", "1"], None, None),
    ],
)
def test_classes(table, cells, names, classes, sets):
    found = read(table(*cells), class_names=names)
    assert list(found.classes) == (names if classes is None else classes)
    sets = sets or [set(cell.split("|")) for cell in cells]
    assert list(found.sets.values()) == sets


@pytest.mark.parametrize(
    "value",
    ["1.5", '"1.5"', "true", "null", "NaN", "Infinity", '{"a": 1}', "[1]"]
    + ['"a\\u0000"', '"\\ud800"', '"a\\nb"', '""'],
)
def test_what_is_no_class_is_refused(tmp_path, value):
    line = f'{{"id": "x", "candidates": [{value}]}}\n'
    text = '{"id": "w", "candidates": ["cat"]}\n\n' + line
    path = written(tmp_path, text, "t.jsonl")
    with pytest.raises(DataError, match=r"id x \(line 3\)"):
        read(path, class_names=FIVE)


@pytest.mark.parametrize(
    "cells, names, why",
    [
        (["cat", "catt|dog", "catt"], FIVE, r"'catt' of id 1 \(line 3\), id 2"),
        (["cat", "Cat"], FIVE, "line 3.*Did you mean cat"),
        (["zzz"], FIVE, "'zzz'.*cat, dog, owl, bee, ant"),
        (["1", "02"], ["01", "02"], "'1' .*Did you mean 01"),
        (["caf\u00e9", "cafe\u0301"], None, "line 2.*line 3.*"),
        (["cat", "3"], None, "'cat' .*line 2.*'3' .*line 3.*"),
        (["01", "1"], None, "'01' .*line 2.*'1' .*line 3.*"),
        (["01", "cat"], None, "--class_names.*'cat' .*line 3.*'01'"),
        (["1e3", "1000"], None, "--class_names.*'1e3'"),
        (["1.5", "2"], None, "whole.*--class_names.*'1.5'"),
        (["-3", "2"], None, "whole numbers from 0.*'-3'"),
        (["-1", ""], None, "No class is named anywhere"),
    ],
)
def test_labels_that_are_refused(table, cells, names, why):
    with pytest.raises(DataError, match=why):
        read(table(*cells), class_names=names)


def test_words_for_none_of_these(table):
    path = table("cat|none", "other|None|dog")
    found = read(path, none_of_these=["none", "other"])
    assert found.sets == {"0": {"cat"}, "1": {"dog"}}
    assert "3 answers are none of these: left out" in found.notes
    with pytest.raises(ConfigError, match="--none_of_these"):
        read(path, none_of_these=["none"], class_names=["none", "cat"])


def test_class_names_of_a_flag(tmp_path):
    names = b"\xef\xbb\xbfcat\r\n\r\n T-shirt, top \r\n"
    path = written(tmp_path, names, "names.txt")
    assert read_class_names(path) == ("cat", "T-shirt, top")
    assert read_class_names("10") == tuple("0123456789")
    assert read_class_names("cat, dog") == ("cat", "dog")
    assert read_class_names(written(tmp_path, "7\n", "names")) == ("7",)
    # Only a line end ends a name.
    odd = ("a\u2028b", "c\x85d", "e\x0bf\x0cg", "h\x1ci\u2029j")
    path = written(tmp_path, "\r\n".join(odd), "names.txt")
    assert read_class_names(path) == odd
    for content, why in ((b"\n", "empty"), (b"\xff", "UTF-8"), (b"", "empty")):
        with pytest.raises(DataError, match=why):
            read_class_names(written(tmp_path, content, "names.txt"))
    for text in ("missing/names.txt", "cat"):
        with pytest.raises(DataError, match="cannot be read"):
            read_class_names(text)


@pytest.mark.parametrize("text", ["cat,cat", "cat,,dog", "0", "9999999", ","])
def test_class_names_that_cannot_be(text):
    with pytest.raises(ConfigError):
        read_class_names(text)


def test_60000_classes_are_looked_up_and_refused_in_bounded_time():
    names = [f"class {number}" for number in range(60_000)]
    votes = pd.DataFrame({"item": "a", "label": names[::-1]})
    found, numbers = class_numbers(votes, ["label"], names)
    assert found == tuple(names)
    assert [numbers[name] for name in names] == list(range(60_000))
    assert len(class_numbers(votes, ["label"])[0]) == 60_000
    with pytest.raises(DataError, match="Unknown class 'class x'"):
        class_numbers(votes.replace("class 0", "class x"), ["label"], names)
