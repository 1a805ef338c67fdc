"""`python -m alim_keras.check`: the bad-input table."""

import json

import numpy as np
import own
import pytest
from checking import CLEAN
from checking import table


def cells(*changes):
    """The clean sets with some of them replaced: (row, set), ..."""
    found = list(CLEAN)
    for row, one in changes:
        found[row] = one
    return found


NUMBERS = [f"{row % 3}|{(row + 1) % 3}" for row in range(12)]
ONE_BASED = [f"{1 + row % 3}" for row in range(12)]
BAD = {
    "an empty set": (
        cells((4, "")),
        (),
        3,
        ["empty", "4.png", "--empty_set"],
    ),
    "an empty set as all": (
        cells((4, "")),
        ("--empty_set=all",),
        0,
        ["12, 2 classes", "max 2"],
    ),
    "an empty set dropped": (
        cells((4, "")),
        ("--empty_set=drop",),
        0,
        ["11, 2 classes", "1 "],
    ),
    "a label from C on": (
        [*NUMBERS[:-1], "3"],
        ("--class_names=3",),
        3,
        ["3", "11.png", "0..2"],
    ),
    "a label below 0": (
        [*NUMBERS[:-1], "-2"],
        ("--class_names=3",),
        3,
        ["-2", "11.png", "0..2"],
    ),
    "labels from 1": (
        ONE_BASED,
        ("--class_names=3",),
        3,
        ["1-based"],
    ),
    "all classes": (
        ["cat|dog"] * 12,
        (),
        0,
        ["12 of 12 candidate sets hold all 2 classes", "100.00% of the sets"],
    ),
    "one candidate": (["cat", "dog"] * 6, (), 0, ["1: 100.0%"]),
    "a class twice in a set": (
        cells((0, "cat|cat")),
        (),
        0,
        ["repeated within an item and count once, 1 items"],
    ),
    "a number that is not whole": (
        [*NUMBERS[:-1], "1.5"],
        ("--class_names=3",),
        3,
        ["1.5", "11.png"],
    ),
    "a whole float": (
        [*NUMBERS[:-1], "1.0"],
        ("--class_names=3",),
        0,
        ["Sound"],
    ),
    "an unknown class": (
        cells((5, "catt")),
        ("--class_names=cat,dog",),
        3,
        ["'catt'", "5.png", "did you mean cat?"],
    ),
    "a class in no set": (
        CLEAN,
        ("--class_names=cat,dog,emu",),
        0,
        ["1 classes are in no set: emu", "Sound"],
    ),
    "zeros that fill up": (
        ["0|1", "0|2", "0"] * 4,
        ("--class_names=3",),
        0,
        ["is in 100.0% of the candidate sets", "-1"],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_row_of_the_bad_input_table(name, photos, tmp_path, run):
    sets, flags, expected, words = BAD[name]
    path = table(tmp_path, sets)
    code, text = run(path, f"--images={photos}", *flags)
    assert code == expected, text
    for word in words:
        assert word in text, text


def test_one_id_twice(photos, tmp_path, run):
    rows = [("id", "candidates"), *zip(["0.png", "1.png"] * 6, CLEAN)]
    same = [("id", "candidates")] + [
        (f"{n}.png", CLEAN[n]) for n in (*range(12), 3)
    ]
    flag = f"--images={photos}"
    code, text = run(own.write_rows(tmp_path / "same.csv", same), flag)
    assert code == 0 and "12, 2 classes" in text
    assert "1 rows repeat an id and say the same" in text
    other = own.write_rows(tmp_path / "other.csv", rows)
    code, text = run(other, flag)
    assert code == 3 and "0.png" in text and "--duplicates" in text
    code, text = run(other, flag, "--duplicates=union", "--batch_size=1")
    assert code == 0 and "2, 2 classes" in text and "mean 2.000" in text


def test_a_blank_is_no_vote_in_wide_and_an_error_in_multi_hot(
    photos, tmp_path, run
):
    wide = [("id", "ann", "bob")] + [
        (f"{n}.png", "cat" if n % 2 else "dog", "dog" if n == 3 else "")
        for n in range(12)
    ]
    path = own.write_rows(tmp_path / "wide.csv", wide)
    code, text = run(path, f"--images={photos}")
    assert code == 0 and "2 with 1 to 12 votes" in text and "max 2" in text
    hot = [("id", "cat", "dog")] + [
        (f"{n}.png", n % 2, "" if n == 3 else 1) for n in range(12)
    ]
    path = own.write_rows(tmp_path / "hot.csv", hot)
    code, text = run(path, f"--images={photos}", "--layout=multi_hot")
    assert code == 3 and "3.png" in text
    hot[4] = ("3.png", 0.3, 1)
    own.write_rows(path, hot)
    code, text = run(path, f"--images={photos}", "--layout=multi_hot")
    assert code == 3 and "0.3" in text and "3.png" in text


def features(folder, **arrays):
    path = folder / "t.npz"
    values = np.random.default_rng(0).normal(size=(12, 3))
    np.savez(path, features=values, **arrays)
    return path


HOT = np.tile([[1, 0, 1], [0, 1, 0]], (6, 1))


@pytest.mark.parametrize(
    "sets, expected, words",
    [
        (HOT.astype(bool), 0, ["12, 3 classes", "3 for each item"]),
        (HOT.astype("float32"), 0, ["12, 3 classes"]),
        (HOT + 0.3, 3, ["1.3"]),
        (HOT * 2, 3, ["2"]),
        (HOT[:-1], 3, ["12", "11"]),
        (np.array([[0], [1, 2]] * 6, object), 3, ["pickle"]),
    ],
)
def test_arrays_of_sets(sets, expected, words, tmp_path, run):
    code, text = run(features(tmp_path, candidates=sets))
    assert code == expected, text
    for word in words:
        assert word in text, text


def test_a_matrix_of_another_width_than_there_are_names(tmp_path, run):
    path = features(tmp_path, candidates=HOT)
    code, text = run(path, "--class_names=a,b")
    assert code == 3 and "3" in text and "2" in text, text


def test_lists_of_lists_and_numbers_as_words(photos, tmp_path, run):
    path = tmp_path / "labels.jsonl"
    lines = [
        {"id": f"{n}.png", "candidates": [n % 2, 2] if n else ["0", 2.0]}
        for n in range(12)
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    code, text = run(path, f"--images={photos}", "--class_names=a,b,c")
    assert code == 0 and "mean 2.000" in text, text


@pytest.mark.parametrize("content", [b"", b"id,candidates\n"])
def test_an_empty_file_is_named(content, photos, tmp_path, run):
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    code, text = run(path, f"--images={photos}")
    assert code == 3 and "empty" in text and "labels.csv" in text
