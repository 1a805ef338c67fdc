"""Cells to classes: names first, numbers only where they are places."""

import json
import re

import numpy as np
import pytest

from alim_keras.data.tables import read_class_names
from alim_keras.data.tables import read_labels
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

FIVE = ["cat", "dog", "owl", "bee", "ant"]


def table(*cells, name="table.csv"):
    return "id,candidates\n" + "".join(
        f"{number},{cell}\n" for number, cell in enumerate(cells)
    )


def test_a_list_may_hold_classes_that_nobody_names(write):
    found = read_labels(write(table("cat|dog", "owl")), class_names=FIVE)
    assert found.candidates.num_classes == 5
    assert found.candidates.class_names == tuple(FIVE)
    assert "2 classes are in no set: bee, ant" in found.notes


@pytest.mark.parametrize("cells", [("1|2", "0"), ("1.0|2", "0.0")])
def test_whole_numbers_are_places_in_the_names(write, sets_of, cells):
    found = read_labels(write(table(*cells)), class_names=FIVE)
    assert sets_of(found) == {"0": {"dog", "owl"}, "1": {"cat"}}
    assert "class numbers are places in the class names, from 0" in found.notes


@pytest.mark.parametrize("value", ["1", "1.0", '"1"', '"1.0"'])
def test_typed_numbers_are_places_in_the_names(write, sets_of, value):
    path = write(f'{{"id": 1, "candidates": [{value}]}}\n', "t.jsonl")
    assert sets_of(read_labels(path, class_names=FIVE)) == {"1": {"dog"}}


@pytest.mark.parametrize(
    "value, why",
    [
        ("1.5", "must be whole"),
        ('"1.5"', "must be whole"),
        ("true", "true and false name no class"),
        ("null", "blank inside a set"),
        ("NaN", "blank .* inside a set"),
        ("Infinity", "infinite"),
        ("1e30", "too large"),
        ('{"a": 1}', "name or number was expected"),
        ("[1]", "name or number was expected"),
        ('"a\\u0000"', "characters of no text"),
        ('"\\ud800"', "characters of no text"),
        ('""', "missing"),
    ],
)
@pytest.mark.parametrize("names", [FIVE, None])
def test_what_is_no_class_is_refused(write, value, why, names):
    line = f'{{"id": "x", "candidates": [{value}]}}\n'
    path = write('{"id": "w", "candidates": ["cat"]}\n\n' + line, "t.jsonl")
    with pytest.raises(DataError, match=rf"line 3 \(id x\).*{why}"):
        read_labels(path, class_names=names)


def test_numeric_names_are_sorted_as_numbers(write):
    found = read_labels(write(table("10|2", "1|2")))
    assert found.candidates.class_names == ("1", "2", "10")
    assert found.candidates.sets.tolist() == [
        [False, True, True],
        [True, True, False],
    ]


def test_numeric_names_out_of_order_are_taken_by_name(write, sets_of):
    # As folders sort them: "10" before "2".
    found = read_labels(
        write(table("10|2", "1.0")), class_names=["1", "10", "2"]
    )
    assert sets_of(found) == {"0": {"10", "2"}, "1": {"1"}}
    assert any("as the names of classes" in note for note in found.notes)


def test_folders_by_name_and_by_number(write):
    names = [str(number) for number in range(12)]
    by_name = read_labels(write(table("11|2", "0")), class_names=names)
    lines = '{"id": 0, "candidates": [11, 2]}\n{"id": 1, "candidates": [0]}\n'
    by_number = read_labels(write(lines, "t.jsonl"), class_names=names)
    assert by_name.candidates.content_hash == by_number.candidates.content_hash


def test_spaces_are_trimmed_with_a_note(write, sets_of):
    found = read_labels(write(table(" cat| dog", "cat ")), class_names=FIVE)
    assert sets_of(found) == {"0": {"cat", "dog"}, "1": {"cat"}}
    assert "3 class names had spaces around them: trimmed" in found.notes
    assert read_labels(write(table(" cat", "cat"))).candidates.class_names == (
        "cat",
    )


def test_unknown_name_and_its_nearest(write):
    path = write(table("cat", "catt|dog", "catt"))
    with pytest.raises(
        DataError, match=r"'catt' in lines 3, 4 \(id 1, 2\).*did you mean cat"
    ):
        read_labels(path, class_names=FIVE)
    with pytest.raises(DataError, match="'zzz'.*cat, dog, owl, bee, ant"):
        read_labels(write(table("zzz")), class_names=FIVE)


@pytest.mark.parametrize("names", [None, FIVE])
def test_names_that_differ_in_case_only(write, names):
    path = write(table("cat", "Cat"))
    with pytest.raises(DataError, match="line 3.*only in case"):
        read_labels(path, class_names=names)


def test_both_cases_when_both_are_classes(write, sets_of):
    found = read_labels(write(table("cat", "Cat")), class_names=["Cat", "cat"])
    assert sets_of(found) == {"0": {"cat"}, "1": {"Cat"}}


def test_two_spellings_of_one_letter_are_refused(write):
    path = write(table("caf\u00e9", "cafe\u0301"))
    with pytest.raises(DataError, match="line 2.*line 3"):
        read_labels(path)


def test_names_and_numbers_mixed_are_refused(write):
    path = write(table("cat", "3"))
    with pytest.raises(DataError, match="'cat' in line 2.*3 in line 3"):
        read_labels(path)


@pytest.mark.parametrize("cells", [("0|5", "1"), ("-2", "1")])
def test_a_number_out_of_range(write, cells):
    path = write(table(*cells))
    with pytest.raises(DataError, match=r"line 2 \(id 0\).*0\.\.4") as caught:
        read_labels(path, class_names=FIVE)
    assert "1-based" not in str(caught.value)
    assert "number 5" in str(caught.value) or "-2" in str(caught.value)


@pytest.mark.parametrize("names", [FIVE, ["0", "1", "2", "3", "4"]])
def test_numbers_from_one_get_a_hint(write, names):
    path = write(table("1|5", "2", "3|4"))
    with pytest.raises(DataError, match="5 in line 2.*0..4.*start at 0"):
        read_labels(path, class_names=names)


def test_minus_one_is_padding_and_zero_is_a_class(write, sets_of):
    lines = (
        '{"id": "a", "candidates": [0, 2, -1]}\n'
        '{"id": "b", "candidates": [1, -1, -1]}\n'
    )
    found = read_labels(write(lines, "t.jsonl"), class_names=["x", "y", "z"])
    assert sets_of(found) == {"a": {"x", "z"}, "b": {"y"}}
    assert found.counts["padding"] == 3
    found = read_labels(write(lines, "t.jsonl"))
    assert sets_of(found) == {"a": {"0", "2"}, "b": {"1"}}


def test_a_word_for_none_of_these(write, sets_of):
    path = write(table("cat|none", "other|None|dog"))
    found = read_labels(path, none_of_these=["none", "other"])
    assert sets_of(found) == {"0": {"cat"}, "1": {"dog"}}
    assert found.candidates.class_names == ("cat", "dog")
    assert found.counts["none_of_these"] == 3
    with pytest.raises(ConfigError, match="--none_of_these"):
        read_labels(path, none_of_these=["none"], class_names=["none", "cat"])


def test_a_row_of_none_of_these_only_goes_by_the_policy(write, sets_of):
    path = write(table("cat|dog", "none"))
    with pytest.raises(DataError, match=r"1 candidate sets.*1 \(line 3\)"):
        read_labels(path, none_of_these=["none"])
    found = read_labels(path, none_of_these=["none"], empty_set="all")
    assert sets_of(found) == {"0": {"cat", "dog"}, "1": {"cat", "dog"}}


def test_class_names_of_a_flag(tmp_path):
    path = tmp_path / "names.txt"
    path.write_bytes(b"\xef\xbb\xbfcat\r\n\r\n T-shirt, top \r\n")
    assert read_class_names(str(path)) == ("cat", "T-shirt, top")
    assert read_class_names("10") == tuple("0123456789")
    assert read_class_names("cat, dog") == ("cat", "dog")
    (tmp_path / "names").write_text("7\n")
    assert read_class_names(str(tmp_path / "names")) == ("7",)
    path.write_text("\n")
    with pytest.raises(DataError, match="empty"):
        read_class_names(str(path))
    path.write_bytes(b"\xff")
    with pytest.raises(DataError, match="UTF-8"):
        read_class_names(str(path))
    with pytest.raises(DataError, match="cannot be read"):
        read_class_names("missing/names.txt")
    with pytest.raises(DataError, match="cannot be read"):
        read_class_names("cat")


@pytest.mark.parametrize("text", ["cat,cat", "cat,,dog", "0", "9999999", ","])
def test_class_names_that_cannot_be(text):
    with pytest.raises(ConfigError):
        read_class_names(text)


@pytest.mark.parametrize("name", ["none_of_these", "class_names"])
def test_lists_of_names_are_no_text(write, name):
    with pytest.raises(ConfigError, match=f"{name}='cat'"):
        read_labels(write(table("cat")), **{name: "cat"})


@pytest.mark.parametrize("broken", ["a\nb", "a\rb"])
def test_a_name_of_two_lines_is_refused(write, tmp_path, broken):
    """class_names.txt, which a run leaves, has a name on each line."""
    cell = json.dumps({"id": "y", "candidates": ["cat", broken]})
    path = write('{"id": "x", "candidates": ["cat"]}\n' + cell, "t.jsonl")
    for names in (None, FIVE):
        with pytest.raises(
            DataError, match=r"line 2 \(id y\).*holds a line break"
        ):
            read_labels(path, class_names=names)
    hot = write(f'id,cat,"{broken}"\nx,1,0\ny,0,1\n')
    with pytest.raises(DataError, match="line 4 .id y.*holds a line break"):
        read_labels(hot, layout="multi_hot")
    np.savez(tmp_path / "t.npz", sets=[[1, 0]], class_names=["cat", broken])
    shown = re.escape(repr(broken))
    with pytest.raises(DataError, match=f"t.npz: class_names: 1 .*{shown}"):
        read_labels(tmp_path / "t.npz")
    with pytest.raises(ConfigError, match=f"line break: {shown}"):
        read_labels(hot, class_names=["cat", broken])


def test_only_a_line_end_ends_a_name(write):
    names = ("a\u2028b", "c\x85d", "e\x0bf\x0cg", "h\x1ci\u2029j")
    text = "".join(f"{name}\n" for name in names)
    assert read_class_names(write(text, "names.txt")) == names
    text = text.replace("\n", "\r\n").removesuffix("\r\n")
    assert read_class_names(write(text, "names.txt")) == names
    # The same from cells.
    text = table(*(f'"{name}"' for name in names))
    found = read_labels(write(text))
    assert found.candidates.class_names == names


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
def test_codes_are_names_where_names_are_found(write, sets_of, cells, names):
    found = read_labels(write(table(*cells)), empty_set="drop")
    assert found.candidates.class_names == names
    expected = {
        str(row): set(cell.split("|"))
        for row, cell in enumerate(cells)
        if cell != "-1"
    }
    assert sets_of(found) == expected
    # As they do where they are given.
    again = read_labels(
        write(table(*cells)), class_names=names, empty_set="drop"
    )
    assert sets_of(again) == expected


def test_codes_as_json(write, sets_of):
    path = write('{"id": "a", "candidates": ["01", "02"]}\n', "t.jsonl")
    assert sets_of(read_labels(path)) == {"a": {"01", "02"}}


@pytest.mark.parametrize(
    "cells, why",
    [
        (("01", "1"), r"'1' in line 3 .*'01' in line 2 .* the same number"),
        (("1e3", "1000"), "are the same number.*--class_names"),
        (("01|001",), "'01' .*'001' .*are the same number"),
        (("01", "cat", "2"), "mixed: 'cat' in line 3"),
        (("1.5", "2"), "1.5.*must be whole; if it is a name.*--class_names"),
        (("-01", "2"), "classes start at 0"),
    ],
)
def test_codes_that_could_be_numbers_are_refused(write, cells, why):
    with pytest.raises(DataError, match=why):
        read_labels(write(table(*cells)))


def test_codes_beside_given_names(write):
    with pytest.raises(
        DataError, match="'01' .*no class: .*without zeros.*--class_names"
    ):
        read_labels(write(table("01", "1")), class_names=("1", "2"))
    # With codes for names a number is no place: 1 would be 02.
    with pytest.raises(DataError, match="class name '1' .*did you mean 01"):
        read_labels(write(table("1", "02")), class_names=("01", "02"))
