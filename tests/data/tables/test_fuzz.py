"""Any file gives `Labels` or an error of the package; sound ones, the sets."""

import csv
import io
import json
import random
import warnings

import hypothesis
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import strategies as st

from alim_keras.data.tables import Labels
from alim_keras.data.tables import read_labels
from alim_keras.errors import AlimError

SETTINGS = {
    "suppress_health_check": [
        hypothesis.HealthCheck.function_scoped_fixture,
        hypothesis.HealthCheck.too_slow,
    ]
}
SUFFIXES = (
    "csv",
    "tsv",
    "txt",
    "jsonl",
    "json",
    "npy",
    "npz",
    "parquet",
)


def read(path, **arguments):
    """Returns the `Labels`, or None after a refusal in one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = read_labels(path, **arguments)
        except AlimError as error:
            assert str(error) and "\n" not in str(error)
            return None
    assert isinstance(found, Labels)
    sets = found.candidates.sets
    assert sets.shape == (len(found.ids), found.candidates.num_classes)
    assert sets.any(1).all()
    return found


def valid_files():
    tasks = [
        {
            "id": 1,
            "data": {"image": "a.png"},
            "annotations": [
                {
                    "completed_by": 1,
                    "result": [
                        {"from_name": "k", "value": {"choices": ["cat"]}}
                    ],
                }
            ],
        }
    ]
    npy, npz, parquet = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.save(npy, [[1, 0], [1, 1]])
    np.savez(
        npz,
        candidates=[[0, 2, -1], [1, 1, 0]],
        ids=["a", "b"],
        class_names=["x", "y", "z"],
        features=[[1.0], [2.0]],
        labels=[0, -1],
    )
    table = pyarrow.table({"id": ["a", "b"], "labels": [["x"], ["x", "y"]]})
    pyarrow.parquet.write_table(table, parquet)
    return [
        ("csv", b'\xef\xbb\xbfid,labels\r\na,"[""x"",""y""]"\r\nb,"[]"\r\n'),
        ("csv", b"item,worker,label,score\na,p,x,1\na,q,y,0.5\nb,p,x,1\n"),
        ("csv", b"id,a1,a2\na,x,y\nb,,y\n"),
        ("tsv", b"# c\nid\tlabels\na\tx|y\nb\ty\n"),
        ("txt", b"id;labels\na;0,1\nb;1\n"),
        ("jsonl", b'{"id": 1, "labels": ["x"]}\n{"id": 2, "labels": [1.0]}\n'),
        ("json", json.dumps(tasks).encode()),
        ("json", b'[{"id": "a", "labels": [0, 1]}]'),
        ("npy", npy.getvalue()),
        ("npz", npz.getvalue()),
        ("parquet", parquet.getvalue()),
    ]


VALID = valid_files()
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "layout": st.sampled_from(["list", "wide", "long", "multi_hot"]),
        "class_names": st.sampled_from([("x", "y"), ("0", "1"), ("cat",)]),
        "empty_set": st.sampled_from(["all", "drop"]),
        "duplicates": st.sampled_from(["union", "first"]),
        "min_votes": st.integers(1, 2),
        "none_of_these": st.just(("y",)),
        "label_column": st.sampled_from(["label", "a1"]),
    },
)


@hypothesis.settings(max_examples=200, **SETTINGS)
@hypothesis.given(st.sampled_from(SUFFIXES), st.binary(max_size=60), ARGUMENTS)
def test_any_bytes(write, suffix, data, arguments):
    read(write(data, f"t.{suffix}"), **arguments)


@hypothesis.settings(max_examples=400, **SETTINGS)
@hypothesis.given(
    st.sampled_from(VALID),
    st.lists(
        st.tuples(st.integers(0, 2000), st.binary(max_size=3), st.booleans()),
        max_size=4,
    ),
    ARGUMENTS,
)
def test_damaged_files(write, valid, changes, arguments):
    suffix, data = valid
    for place, new, instead in changes:
        place %= len(data) + 1
        data = data[:place] + new + data[place + len(new) * instead :]
    read(write(data, f"t.{suffix}"), **arguments)


CELLS = st.sampled_from(
    ["", " ", "x", "y", "X", " x", "0", "1", "2", "-1", "1.0", "1.5", "nan"]
    + ["x|y", "x,y", "x;", "0|1", '["x"]', "[0, 1]", "[", "[]", "true", "none"]
    + ['"', "\n", "\0", "\ufeff", "9" * 30, "1e999", "\u0661", "{}", "[[0]]"]
)
HEADERS = st.sampled_from(
    ["id", "item", "image", "file", "labels", "candidates", "suggested"]
    + ["label", "worker", "score", "a1", "a2", "x", "y", "0", "1", "", "ID"]
)
TYPED = st.one_of(
    CELLS,
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from([10**30, 1.0, 1.5, float("nan"), float("inf"), -1.0]),
    st.lists(st.one_of(CELLS, st.integers(-2, 3), st.none()), max_size=3),
    st.just({"a": 1}),
    st.just("\ud800"),
)


@hypothesis.settings(max_examples=400, **SETTINGS)
@hypothesis.given(
    st.lists(HEADERS, min_size=1, max_size=5),
    st.lists(st.lists(CELLS, min_size=5, max_size=5), max_size=4),
    ARGUMENTS,
)
def test_odd_tables(write, header, rows, arguments):
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(header)
    writer.writerows(row[: len(header)] for row in rows)
    read(write(file.getvalue()), **arguments)


@hypothesis.settings(max_examples=300, **SETTINGS)
@hypothesis.given(
    st.lists(st.dictionaries(HEADERS, TYPED), max_size=4),
    st.sampled_from(["json", "jsonl"]),
    ARGUMENTS,
)
def test_odd_records(write, rows, suffix, arguments):
    if suffix == "json":
        text = json.dumps(rows)
    else:
        text = "\n".join(map(json.dumps, rows))
    read(write(text, f"t.{suffix}"), **arguments)


def deep(depth):
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("depth", [100, 100_000])
def test_deep_nesting(write, depth):
    assert read(write(deep(depth), "t.json")) is None
    assert read(write(deep(depth), "t.jsonl")) is None
    assert read(write(f"id,labels\na,{deep(depth)}\n")) is None


def slow_sets(answers, min_votes, empty_set, num_classes):
    """Returns {id: set}, by counting who named what, item by item."""
    sets = {}
    for item, people in answers.items():
        chosen = set()
        for one in range(num_classes):
            if sum(one in said for said in people) >= min_votes:
                chosen.add(one)
        if not chosen and empty_set == "drop":
            continue
        sets[item] = chosen or set(range(num_classes))
    return sets


NAMES = ("cat", "T-shirt/top", "a,b", "x|y", "z; w", "\u732b", "1st")


@st.composite
def answers(draw):
    """Returns what each of some people said of each item: sets of classes."""
    num_people = draw(st.integers(1, 4))
    said = st.sets(st.integers(0, len(NAMES) - 1), max_size=3)
    ids = draw(st.lists(st.integers(0, 99), min_size=1, max_size=7))
    return {
        f"item {one}": [draw(said) for _ in range(num_people)] for one in ids
    }


def as_rows(answers, layout, shuffle):
    """Returns the answers as the rows of a table, with its header."""
    if layout == "long":
        rows = [
            [item, f"p{person}", NAMES[one]]
            for item, people in answers.items()
            for person, said in enumerate(people)
            for one in said
            for _ in range(1 + shuffle.randrange(2))
        ]
        # An item of which nobody said anything has a blank answer.
        rows += [[i, "p0", ""] for i, p in answers.items() if not any(p)]
        shuffle.shuffle(rows)
        return [["item", "annotator", "label"], *rows]
    if layout == "wide":
        # One answer in a cell.
        people = range(max(map(len, answers.values())))
        rows = [
            [item, *(NAMES[min(s)] if s else "" for s in said)]
            for item, said in answers.items()
        ]
        return [["item", *(f"rater{person}" for person in people)], *rows]
    united = {item: set().union(*said) for item, said in answers.items()}
    if layout == "multi_hot":
        rows = [
            [item, *(int(one in said) for one in range(len(NAMES)))]
            for item, said in united.items()
        ]
        return [["item", *NAMES], *rows]
    rows = [
        [item, json.dumps([NAMES[one] for one in said])]
        for item, said in united.items()
    ]
    return [["item", "candidates"], *rows]


@pytest.mark.parametrize("layout", ["list", "wide", "long", "multi_hot"])
@hypothesis.settings(max_examples=60, **SETTINGS)
@hypothesis.given(
    answers(),
    st.integers(1, 2),
    st.sampled_from(["all", "drop"]),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(0, 99),
)
def test_sound_tables(write, layout, answers, min_votes, empty_set, end, seed):
    if layout in ("list", "multi_hot"):
        min_votes = 1
    file = io.StringIO(newline="")
    rows = as_rows(answers, layout, random.Random(seed))
    csv.writer(file, lineterminator=end).writerows(rows)
    if layout == "wide":
        answers = {
            item: [set(sorted(said)[:1]) for said in people]
            for item, people in answers.items()
        }
    expected = slow_sets(answers, min_votes, empty_set, len(NAMES))
    found = read(
        write(file.getvalue()),
        class_names=NAMES,
        min_votes=min_votes,
        empty_set=empty_set,
    )
    if found is None:
        # No item is left, or there is no answer at all.
        assert not expected or not any(map(any, answers.values()))
        return
    assert {
        str(one): set(np.flatnonzero(row).tolist())
        for one, row in zip(found.ids, found.candidates.sets, strict=True)
    } == expected
    if layout == "long":
        # Every vote once, and under its annotator's name.
        votes = found.votes
        people = [int(name[1:]) for name in votes.annotator_names]
        given = {
            (str(found.ids[row]), people[who], int(one))
            for row, who, one in zip(
                votes.rows, votes.annotators, votes.classes, strict=True
            )
        }
        assert len(given) == len(votes)
        assert given == {
            (item, person, one)
            for item, said in answers.items()
            if item in expected
            for person, chosen in enumerate(said)
            for one in chosen
        }


SEPARATED = st.lists(
    st.lists(st.sampled_from(range(len(NAMES))), min_size=1, max_size=4),
    min_size=1,
    max_size=5,
)


@hypothesis.settings(max_examples=200, **SETTINGS)
@hypothesis.given(SEPARATED, st.sampled_from("|;,"))
def test_separated_names(write, rows, separator):
    # Some names hold separators: the sets come out right, or not at all.
    lines = [
        [str(number), separator.join(NAMES[one] for one in row)]
        for number, row in enumerate(rows)
    ]
    file = io.StringIO(newline="")
    csv.writer(file).writerows([["id", "candidates"], *lines])
    found = read(write(file.getvalue()), class_names=NAMES)
    # Every way of reading is tried: it is clear if there is one only.
    assert found is not None
    assert [
        set(np.flatnonzero(row).tolist()) for row in found.candidates.sets
    ] == [set(row) for row in rows]
