"""Votes to sets: thresholds, repetitions, policies, and `Votes` itself."""

import numpy as np
import pytest

from alim_keras.data.tables import Votes
from alim_keras.data.tables import read_labels
from alim_keras.data.tables import votes
from alim_keras.data.tables.table import Findings
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

# 1 to 7 rows per item in no order; ann votes twice for cat on a, and for two
# classes on b.
LONG = """item,annotator,label,confidence
c,eve,owl,0.9
a,ann,cat,0.9
b,ann,dog,0.4
a,ben,cat,0.2
a,ann,cat,0.5
d,ann,owl,1
b,ann,cat,0.8
a,cid,dog,0.7
a,dan,dog,0.1
a,eve,owl,0.6
a,fay,dog,0.3
"""


def test_union_by_default(write, sets_of):
    found = read_labels(write(LONG))
    assert sets_of(found) == {
        "c": {"owl"},
        "a": {"cat", "dog", "owl"},
        "b": {"cat", "dog"},
        "d": {"owl"},
    }
    assert found.counts["rows"] == 11
    assert found.counts["votes"] == 10
    assert found.counts["annotators"] == 6
    assert found.counts["repeated_votes"] == 1
    assert any("1 votes are repeated within an item" in n for n in found.notes)
    # What ann said twice counts with the larger confidence.
    here = (found.votes.rows == 1) & (found.votes.annotators == 1)
    assert found.votes.confidences[here].tolist() == [np.float32(0.9)]


def test_min_votes(write, sets_of):
    # a: cat by ann and ben, dog by cid, dan and fay, owl by eve.
    path = write(LONG)
    found = read_labels(path, min_votes=2, empty_set="drop")
    assert sets_of(found) == {"a": {"cat", "dog"}}
    found = read_labels(path, min_votes=3, empty_set="all")
    full = {"cat", "dog", "owl"}
    assert sets_of(found) == {"a": {"dog"}, "b": full, "c": full, "d": full}
    with pytest.raises(DataError, match=r"3 candidate sets.*c \(line 2\)"):
        read_labels(path, min_votes=2)
    assert "at least 3 votes" in found.candidates.provenance["rule"]


def test_min_confidence(write, sets_of):
    found = read_labels(write(LONG), min_confidence=0.7)
    assert sets_of(found) == {
        "c": {"owl"},
        "a": {"cat", "dog"},
        "b": {"cat"},
        "d": {"owl"},
    }
    assert found.counts["weak_votes"] == 5
    assert len(found.votes) == 5


def test_dropped_items_leave_the_votes(write):
    found = read_labels(write(LONG), min_confidence=0.95, empty_set="drop")
    assert found.ids.tolist() == ["d"]
    assert found.votes.rows.tolist() == [0]
    assert found.counts["empty_sets"] == 3
    assert any("c (line 2)" in note for note in found.notes)


def test_min_votes_counts_each_annotator_once(write, sets_of):
    text = "item,annotator,label\na,x,cat\na,x,cat\na,x,dog\na,y,dog\n"
    found = read_labels(write(text), min_votes=2)
    assert sets_of(found) == {"a": {"dog"}}


@pytest.mark.parametrize("text", ["id,labels\na,cat\n", "id,x\na,1\n"])
def test_min_votes_needs_votes(write, text):
    layout = "list" if "labels" in text else "multi_hot"
    with pytest.raises(ConfigError, match="--min_votes"):
        read_labels(write(text), min_votes=2, layout=layout)


def test_min_confidence_needs_confidences(write):
    text = "item,annotator,label\na,x,cat\n"
    with pytest.raises(ConfigError, match="--min_confidence"):
        read_labels(write(text), min_confidence=0.5)


@pytest.mark.parametrize("value", ["", "high", "nan", "inf"])
def test_a_confidence_that_is_no_number(write, value):
    text = f"item,label,score\na,cat,1\nb,dog,{value}\n"
    with pytest.raises(DataError, match="'score' must be a number.*line 3"):
        read_labels(write(text))


@pytest.mark.parametrize(
    "arguments",
    [
        {"min_votes": 0},
        {"min_votes": 1.5},
        {"min_votes": True},
        {"min_confidence": float("nan")},
        {"empty_set": "none"},
        {"duplicates": "last"},
        {"class_names": ["cat", "cat"]},
        {"class_names": []},
        {"class_names": ["cat", " "]},
    ],
)
def test_arguments_out_of_range(write, arguments):
    with pytest.raises(ConfigError):
        read_labels(write(LONG), **arguments)


WIDE = "id,a1,a2,a3\nw,cat,,dog\nx,,,\ny,dog,dog,\nz,,cat,none\n"


def test_wide_blanks_and_the_policies(write, sets_of):
    path = write(WIDE)
    with pytest.raises(DataError, match=r"x \(line 3\)"):
        read_labels(path, none_of_these=("none",))
    found = read_labels(path, none_of_these=("none",), empty_set="all")
    assert sets_of(found) == {
        "w": {"cat", "dog"},
        "x": {"cat", "dog"},
        "y": {"dog"},
        "z": {"cat"},
    }
    found = read_labels(path, none_of_these=("none",), empty_set="drop")
    assert found.ids.tolist() == ["w", "y", "z"]
    assert found.counts["empty_sets"] == 1
    assert found.counts["none_of_these"] == 1
    assert found.votes.rows.tolist() == [0, 0, 1, 1, 2]


def test_a_blank_annotator_is_ignored_with_a_note(write, sets_of):
    found = read_labels(write("id,a1,a2,a3\nx,cat,,dog\ny,dog,,\n"))
    assert sets_of(found) == {"x": {"cat", "dog"}, "y": {"dog"}}
    assert found.votes.annotator_names == ("a1", "a3")
    assert "1 annotator columns are blank and were ignored: a2" in found.notes


def test_a_blank_label_in_a_long_table_is_no_vote(write, sets_of):
    path = write("item,worker,label\na,x,cat\nb,x,\na,y,\n")
    with pytest.raises(DataError, match=r"b \(line 3\)"):
        read_labels(path)
    found = read_labels(path, empty_set="drop")
    assert sets_of(found) == {"a": {"cat"}}
    assert found.counts["blank_votes"] == 2


def test_a_vote_of_nobody(write):
    found = read_labels(write("item,worker,label\na,x,cat\na,,dog\n"))
    assert found.votes.annotator_names == ("x", "unknown")
    assert "1 votes name no annotator: called 'unknown'" in found.notes


def test_one_id_in_several_rows(write, sets_of):
    path = write("id,labels\na,cat\nb,dog\na,dog|cat\nb,dog\n")
    with pytest.raises(DataError, match=r"1 ids.*a \(line 2\).*--duplicates"):
        read_labels(path)
    found = read_labels(path, duplicates="union")
    assert sets_of(found) == {"a": {"cat", "dog"}, "b": {"dog"}}
    assert found.counts["duplicate_rows"] == 2
    assert found.counts["duplicates_differ"] == 1
    assert "1 ids have rows that differ: united" in found.notes
    assert "1 rows repeat an id and say the same: left out" in found.notes
    found = read_labels(path, duplicates="first")
    assert sets_of(found) == {"a": {"cat"}, "b": {"dog"}}


def test_one_id_in_several_rows_of_a_wide_table(write, sets_of):
    path = write("id,a1,a2\nx,cat,dog\ny,dog,\nx,cat,dog\ny,,dog\n")
    # y: the set is the same, who says so is not.
    with pytest.raises(DataError, match=r"1 ids.*y \(line 3\)"):
        read_labels(path)
    found = read_labels(path, duplicates="union", min_votes=1)
    assert found.votes.rows.tolist() == [0, 0, 1, 1]
    assert sets_of(found) == {"x": {"cat", "dog"}, "y": {"dog"}}
    found = read_labels(path, duplicates="union", min_votes=2, empty_set="all")
    assert sets_of(found) == {"x": {"cat", "dog"}, "y": {"dog"}}


def test_a_blank_row_differs_from_one_with_a_class(write, sets_of):
    path = write("id,labels\na,\na,cat\n")
    with pytest.raises(DataError, match="rows that differ"):
        read_labels(path)
    assert sets_of(read_labels(path, duplicates="union")) == {"a": {"cat"}}
    with pytest.raises(DataError, match="are empty"):
        read_labels(path, duplicates="first")


def test_a_class_twice_in_a_set_counts_once(write, sets_of):
    text = "id,labels\na,1|1\nb,0|1\nc,1|0|1\n"
    found = read_labels(write(text))
    assert sets_of(found) == {"a": {"1"}, "b": {"0", "1"}, "c": {"0", "1"}}
    notes = [note for note in found.notes if "repeated" in note]
    assert len(notes) == 1
    assert "2 classes are repeated" in notes[0] and "2 items" in notes[0]


def test_select_renumbers():
    votes = Votes(
        np.array([0, 0, 2, 3, 2]),
        np.array([0, 1, 0, 1, 1], np.int32),
        np.array([5, 6, 7, 8, 9], np.int32),
        np.array([0.1, 0.2, 0.3, 0.4, 0.5], np.float32),
        ("x", "y"),
    )
    found = votes.select([2, 1, 0])
    assert found.rows.tolist() == [0, 0, 2, 2]
    assert found.classes.tolist() == [7, 9, 5, 6]
    assert found.annotators.tolist() == [0, 1, 0, 1]
    assert found.confidences.tolist() == pytest.approx([0.3, 0.5, 0.1, 0.2])
    assert found.annotator_names == ("x", "y")
    by_mask = votes.select(np.array([False, False, True, True, False]))
    assert by_mask.rows.tolist() == [0, 0, 1]
    assert len(votes.select([1])) == 0


@pytest.mark.parametrize("confidences", [None, np.ones(2, np.float32)])
def test_votes_are_saved_and_loaded(tmp_path, confidences):
    votes = Votes(
        np.array([0, 1]),
        np.array([0, 1], np.int32),
        np.array([2, 3], np.int32),
        confidences,
        ("ann, a", "\u00fcml"),
    )
    path = tmp_path / "votes.npz"
    votes.save(path)
    found = Votes.load(path)
    for name in ("rows", "annotators", "classes"):
        np.testing.assert_array_equal(
            getattr(found, name), getattr(votes, name)
        )
        assert getattr(found, name).dtype == getattr(votes, name).dtype
    assert found.annotator_names == votes.annotator_names
    assert (found.confidences is None) == (confidences is None)
    with pytest.raises(ConfigError):
        votes.save(tmp_path / "votes.csv")
    np.savez(path, rows=[1])
    with pytest.raises(DataError, match="annotators"):
        Votes.load(path)


def _slowly(answers, policy, findings):
    """Says which items differ row by row, as sets."""
    said = [set() for _ in answers.records]
    for row, *what in zip(answers.rows, answers.annotators, answers.classes):
        said[row].add(tuple(what))
    groups = {}
    for row, item in enumerate(answers.records):
        groups.setdefault(item, []).append(row)
    differs = {
        item
        for item, rows in groups.items()
        if any(said[row] != said[rows[0]] for row in rows)
    }
    kept = [
        place
        for place, row in enumerate(answers.rows)
        if row == groups[answers.records[row]][0]
        or (policy == "union" and answers.records[row] in differs)
    ]
    return differs, kept


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("policy", ["union", "first", "error"])
def test_rows_that_repeat_an_id_are_merged_as_row_by_row(seed, policy):
    stream = np.random.default_rng(seed)
    num_items, num_rows, count = 6, 14, int(stream.integers(0, 40))
    records = np.concatenate(
        [np.arange(num_items), stream.integers(0, num_items, 8)]
    )
    answers = votes.Answers(
        ids=np.array(list("abcdef")),
        records=stream.permutation(records),
        rows=stream.integers(0, num_rows, count),
        annotators=stream.integers(0, 2, count).astype(np.int32),
        classes=stream.integers(0, 2, count).astype(np.int32),
        confidences=None,
        annotator_names=None,
        whole=True,
        place=lambda row: f"row {row}",
    )
    differs, kept = _slowly(answers, policy, None)
    findings = Findings()
    if policy == "error" and differs:
        with pytest.raises(DataError, match=f"^{len(differs)} ids have rows"):
            votes.merge_duplicates(answers, policy, findings)
        return
    found = votes.merge_duplicates(answers, policy, findings)
    for name in ("rows", "annotators", "classes"):
        np.testing.assert_array_equal(
            getattr(found, name), getattr(answers, name)[kept]
        )
    assert findings.counts.get("duplicates_differ", 0) == len(differs)
    assert findings.counts["duplicate_rows"] == num_rows - num_items


def test_many_rows_that_repeat_an_id_are_quick(monkeypatch):
    """No work row by row: numpy is called a fixed number of times."""
    calls = []
    unique = np.unique

    def counted(*arguments, **options):
        calls.append(1)
        return unique(*arguments, **options)

    monkeypatch.setattr(np, "unique", counted)
    count = 20_000
    records = np.tile(np.arange(count), 2)
    answers = votes.Answers(
        ids=np.arange(count).astype(str),
        records=records,
        rows=np.arange(2 * count),
        annotators=np.zeros(2 * count, np.int32),
        classes=(records % 5).astype(np.int32),
        confidences=None,
        annotator_names=None,
        whole=True,
        place=str,
    )
    findings = Findings()
    found = votes.merge_duplicates(answers, "error", findings)
    np.testing.assert_array_equal(found.rows, np.arange(count))
    assert findings.notes == [
        "20000 rows repeat an id and say the same: left out"
    ]
    assert len(calls) < 5
