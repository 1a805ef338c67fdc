"""Cells to classes: names first, numbers only where they are places."""

import numpy as np
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


def test_a_list_may_hold_classes_that_nobody_names(table):
    found = read(table("cat|dog", "owl"), class_names=FIVE)
    assert found.classes == tuple(FIVE)
    assert "classes that are in no set: bee, ant" in found.notes


@pytest.mark.parametrize("cells", [("1|2", "0"), ("1.0|2", "0.0")])
def test_whole_numbers_are_places_in_the_names(table, cells):
    found = read(table(*cells), class_names=FIVE)
    assert found.sets == {"0": {"dog", "owl"}, "1": {"cat"}}
    assert "class numbers are places in the class names, from 0" in found.notes


@pytest.mark.parametrize("value", ["1", "1.0", '"1"', '"1.0"'])
def test_typed_numbers_are_places_in_the_names(tmp_path, value):
    path = written(tmp_path, f'{{"id": 1, "candidates": [{value}]}}', "t.jsonl")
    assert read(path, class_names=FIVE).sets == {"1": {"dog"}}


@pytest.mark.parametrize(
    "value, why",
    [
        ("1.5", "must be whole"),
        ('"1.5"', "must be whole"),
        ("true", "name or number was expected"),
        ("null", "a name is missing"),
        ("NaN", "a name is missing"),
        ("Infinity", "whole"),
        ("1e30", "whole"),
        ('{"a": 1}', "name or number was expected"),
        ("[1]", "name or number was expected"),
        ('"a\\u0000"', "characters of no text"),
        ('"\\ud800"', "characters of no text"),
        ('"a\\nb"', "holds a line break"),
        ('""', "missing"),
    ],
)
@pytest.mark.parametrize("names", [FIVE, None])
def test_what_is_no_class_is_refused(tmp_path, value, why, names):
    line = f'{{"id": "x", "candidates": [{value}]}}\n'
    text = '{"id": "w", "candidates": ["cat"]}\n\n' + line
    path = written(tmp_path, text, "t.jsonl")
    with pytest.raises(DataError, match=rf"line 3 \(id x\).*{why}"):
        read(path, class_names=names)


def test_numeric_names(table):
    found = read(table("10|2", "1|2"))
    assert found.classes == ("1", "2", "10")
    assert found.sets == {"0": {"10", "2"}, "1": {"1", "2"}}
    # As folders sort them, and as numbers: names all the same.
    found = read(table("10|2", "1.0"), class_names=["1", "10", "2"])
    assert found.sets == {"0": {"10", "2"}, "1": {"1"}}


def test_spaces_are_trimmed(table):
    found = read(table(" cat| dog", "cat "), class_names=FIVE)
    assert found.sets == {"0": {"cat", "dog"}, "1": {"cat"}}
    assert read(table(" cat", "cat")).classes == ("cat",)


@pytest.mark.parametrize(
    "cells, names, why",
    [
        (("cat", "catt|dog", "catt"), FIVE, "'catt' in lines 3, 4 .id 1, 2."),
        (("cat", "catt"), FIVE, "did you mean cat"),
        (("zzz",), FIVE, "'zzz'.*cat, dog, owl, bee, ant"),
        (("cat", "Cat"), None, "line 2 .*line 3 .*only in case"),
        (("cat", "Cat"), FIVE, "line 3 .*only in case"),
        (("caf\u00e9", "cafe\u0301"), None, "line 2 .*line 3"),
        (("cat", "3"), None, "mixed: 'cat' in line 2 .*3 in line 3"),
        (("0|5", "1"), FIVE, r"number 5 in line 2 .id 0. is outside 0\.\.4"),
        (("-2", "1"), FIVE, r"number -2 in line 2 .*0\.\.4"),
        (("1|5", "2", "3|4"), FIVE, "1-based: do the labels start at 0?"),
        (("1|5", "2", "3|4"), list("01234"), "do the labels start at 0?"),
        (("01", "1"), None, "'01' in line 2 .*'1' in line 3 .*same number"),
        (("1e3", "1000"), None, "the same number.*--class_names"),
        (("01|001",), None, "'01' .*'001' .*the same number"),
        (("01", "cat", "2"), None, "mixed: 'cat' in line 3"),
        (("1.5", "2"), None, "1.5.*must be whole; if it is a name"),
        (("-01", "2"), None, "classes start at 0"),
        (("-3", "2"), None, "classes start at 0"),
        (("01", "1"), ["1", "2"], "'01' .*without zeros.*--class_names"),
        (("1", "02"), ["01", "02"], "name '1' .*did you mean 01"),
        (("-1", ""), None, "No class is named anywhere"),
    ],
)
def test_labels_that_are_refused(table, cells, names, why):
    with pytest.raises(DataError, match=why):
        read(table(*cells), class_names=names)


def test_both_cases_when_both_are_classes(table):
    found = read(table("cat", "Cat"), class_names=["Cat", "cat"])
    assert found.sets == {"0": {"cat"}, "1": {"Cat"}}


@pytest.mark.parametrize(
    "cells, names",
    [
        (("01|02", "02", "01"), ("01", "02")),
        (("01|10", "10", "12|01"), ("01", "10", "12")),
        (("1e3", "5"), ("1e3", "5")),
        (("01", "cat"), ("01", "cat")),
        (("007|01", "-1"), ("007", "01")),
    ],
)
def test_codes_are_names(table, cells, names):
    for given in (None, names):
        found = read(table(*cells), empty_set="drop", class_names=given)
        assert found.classes == names
        assert found.sets == {
            str(row): set(cell.split("|"))
            for row, cell in enumerate(cells)
            if cell != "-1"
        }


def test_minus_one_is_padding_and_zero_is_a_class(table):
    path = table("0|2|-1", "1|-1|-1")
    found = read(path, class_names=["x", "y", "z"])
    assert found.sets == {"0": {"x", "z"}, "1": {"y"}}
    assert "3 answers -1 were taken as no answer" in found.notes
    assert read(path).sets == {"0": {"0", "2"}, "1": {"1"}}
    names = ["-1", "0", "1", "2"]
    assert read(path, class_names=names).sets["0"] == {"-1", "0", "2"}


def test_words_for_none_of_these(table):
    path = table("cat|none", "other|None|dog")
    found = read(path, none_of_these=["none", "other"])
    assert found.sets == {"0": {"cat"}, "1": {"dog"}}
    assert found.classes == ("cat", "dog")
    assert "3 answers were none of the classes: left out" in found.notes
    with pytest.raises(ConfigError, match="--none_of_these"):
        read(path, none_of_these=["none"], class_names=["none", "cat"])
    path = table("cat|dog", "none")
    with pytest.raises(DataError, match=r"1 candidate sets.*1 \(line 3\)"):
        read(path, none_of_these=["none"])
    found = read(path, none_of_these=["none"], empty_set="all")
    assert found.sets["1"] == {"cat", "dog"}


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
    found, numbers = class_numbers(names[::-1], names)
    assert found == tuple(names)
    np.testing.assert_array_equal(numbers, np.arange(60_000)[::-1])
    assert len(class_numbers(names)[0]) == 60_000
    with pytest.raises(DataError, match="Unknown class name 'class x'"):
        class_numbers(["class x"], names)
