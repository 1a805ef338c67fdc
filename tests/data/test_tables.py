"""Layouts and columns of tables, and the rules from votes to sets."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from reading import read
from reading import written

from alim_keras.data.tables import read_known_labels
from alim_keras.data.tables import read_labels
from alim_keras.data.votes import sets_of_votes
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import DataWarning

SETS = {"a": {"cat", "dog"}, "b": {"dog"}, "c": {"cat", "owl"}}
LIST = "id,candidates\na,cat|dog\nb,dog\nc,owl|cat\n"
WIDE = "id,ann,ben,cid\na,cat,dog,dog\nb,dog,,\nc,owl,,cat\n"
LONG = (
    "item,annotator,label\nc,ben,owl\na,ann,dog\nb,ann,dog\na,ben,cat\n"
    "c,ann,cat\na,cid,dog\n"
)
HOT = "id,dog,cat,owl\na,1,1,0\nb,1,0,0\nc,false,TRUE,1.0\n"
# 1 to 7 rows per item in no order; ann votes twice for cat on a, and for two
# classes on b.
VOTED = """item,annotator,label,confidence
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


@pytest.fixture
def write(tmp_path):
    return lambda *arguments: written(tmp_path, *arguments)


def test_list(write):
    found = read(write(LIST))
    assert found.sets == SETS
    assert found.ids == ["a", "b", "c"]
    assert found.classes == ("cat", "dog", "owl")
    assert found.labels is None
    assert list(found.votes) == ["item", "annotator", "label", "confidence"]
    assert found.votes.index.tolist() == [2, 2, 3, 4, 4]
    assert found.candidates.provenance == {
        "file": "table.csv",
        "layout": "list",
        "rule": "every class that somebody named",
    }
    assert "layout list, from the column 'candidates'" in found.notes
    assert "3 classes were found: cat, dog, owl" in found.notes


def test_read_labels(write):
    candidates, votes, notes = read_labels(write(LIST))
    assert candidates.sizes.tolist() == [2, 1, 2]
    assert votes is None and isinstance(notes, list)
    candidates, votes, notes = read_labels(
        write(VOTED), min_votes=2, empty_set="drop"
    )
    assert candidates.ids.tolist() == ["a"]
    assert set(votes["item"]) == {"a"} and len(votes) == 6


def test_wide(write):
    found = read(write(WIDE), layout="wide")
    assert found.sets == SETS
    assert found.answers == [
        ("a", "ann", "cat"),
        ("a", "ben", "dog"),
        ("a", "cid", "dog"),
        ("b", "ann", "dog"),
        ("c", "ann", "owl"),
        ("c", "cid", "cat"),
    ]
    assert found.counted["confidence"].isna().all()


def test_long_in_any_order(write):
    found = read(write(LONG))
    assert found.sets == SETS
    assert found.ids == ["c", "a", "b"]
    assert found.answers[:3] == [
        ("c", "ben", "owl"),
        ("a", "ann", "dog"),
        ("b", "ann", "dog"),
    ]


def test_multi_hot(write):
    found = read(write(HOT), class_names=["owl", "dog", "cat"])
    assert found.sets == SETS and found.classes == ("owl", "dog", "cat")
    assert any("layout multi_hot" in note for note in found.notes)
    found = read(write(HOT), layout="multi_hot")
    assert found.sets == SETS and found.classes == ("cat", "dog", "owl")


def test_a_class_that_no_row_has_stays_a_class(write):
    path = write("id,10,9,2\na,1,0,0\nb,1,1,0\n")
    found = read(path, layout="multi_hot")
    assert found.classes == ("2", "9", "10")
    assert found.sets == {"a": {"10"}, "b": {"10", "9"}}
    assert "classes that are in no set: 2" in found.notes


@pytest.mark.parametrize(
    "text",
    [
        WIDE,
        WIDE.replace("cat", "1").replace("dog", "0").replace("owl", "1"),
        HOT,
        "id,ann\na,yes\nb,no\n",
        "id,ann,age\na,1,2\nb,2,1\n",
        "id,label,width\na,cat,7\n",
    ],
)
def test_a_layout_is_asked_for_and_never_guessed(write, text):
    path = write(text)
    with pytest.raises(DataError, match="--layout=") as caught:
        read(path)
    assert path in str(caught.value)


def test_columns_called_by_0_and_1_are_asked_for(write):
    path = write("id,0,1\na,1,0\nb,1,1\n")
    with pytest.raises(DataError, match="--layout=wide.*--layout=multi_hot"):
        read(path, class_names=["0", "1"])
    hot = read(path, class_names=["0", "1"], layout="multi_hot")
    assert hot.sets == {"a": {"0"}, "b": {"0", "1"}}
    wide = read(path, class_names=["0", "1"], layout="wide")
    assert wide.sets == {"a": {"0", "1"}, "b": {"1"}}


@pytest.mark.parametrize(
    "text, flag, value, why",
    [
        ("id,candidates,labels\na,x,cat\n", "candidates_column", "labels", ""),
        ("id,item,candidates\nx,a,cat\n", "id_column", "item", ""),
        ("who,candidates\na,cat\n", "id_column", "WHO", "columns are: who"),
    ],
)
def test_columns_that_are_not_clear(write, text, flag, value, why):
    path = write(text)
    with pytest.raises(DataError, match=f"--{flag}=.*{why}"):
        read(path)
    assert read(path, **{flag: value}).sets == {"a": {"cat"}}
    with pytest.raises(DataError, match=f"(?i)--{flag}.*did you mean {value}"):
        read(path, **{flag: value + "o"})


def test_lists_beside_annotators(write):
    path = write("id,annotator,labels\na,x,cat\n")
    with pytest.raises(DataError, match="--layout=list.*--label_column="):
        read(path)
    found = read(path, layout="long", label_column="labels")
    assert found.answers == [("a", "x", "cat")]


def test_several_answers_of_a_person_in_a_record(write):
    text = (
        '{"id": 1, "label": ["cat"], "annotator": "anna"}\n'
        '{"id": 1, "label": ["dog", "cat"], "annotator": "bob"}\n'
    )
    found = read(write(text, "t.jsonl"))
    assert found.sets == {"1": {"cat", "dog"}}
    assert read(write(text, "t.jsonl"), min_votes=2).sets == {"1": {"cat"}}


def test_names_of_columns_in_any_case(write):
    text = LONG.replace("item", " Image ").replace("annotator", "WORKER_ID")
    assert read(write(text.replace("label", "Choice"))).sets == SETS
    assert read(write(LONG.replace("item", "task"))).sets == SETS


def test_every_column_by_argument(write):
    found = read(
        write(LONG.replace("item,annotator,label", "x,y,z")),
        id_column="x",
        annotator_column="y",
        label_column="z",
    )
    assert found.sets == SETS
    text = LIST.replace("id,candidates", "x,y")
    assert read(write(text), id_column="x", candidates_column="y").sets == SETS


def test_columns_of_annotators_by_argument(write):
    path = write(WIDE.replace("cid", "label"))
    with pytest.raises(DataError, match="--layout=long.*--layout=wide"):
        read(path)
    with pytest.raises(DataError, match="--annotator_column=A,B,C"):
        read(path, layout="wide")
    assert read(path, annotator_column="ann,ben,label").sets == SETS
    found = read(path, annotator_column="ann, ben")
    assert found.sets == {"a": {"cat", "dog"}, "b": {"dog"}, "c": {"owl"}}
    with pytest.raises(ConfigError, match="named twice"):
        read(path, annotator_column="ann,ann")


def test_a_true_class_only_when_asked(write):
    text = "id,candidates,truth\na,cat|dog,dog\nb,dog,\nc,owl,cat\n"
    assert read(write(text)).labels is None
    found = read(write(text), label_column="truth")
    assert found.labels.tolist() == [1, -1, 0]
    assert found.labels.dtype == np.int64
    found = read(
        write(WIDE.replace("cid", "truth")),
        layout="wide",
        label_column="truth",
    )
    assert {who for _, who, _ in found.answers} == {"ann", "ben"}
    assert found.labels.tolist() == [1, -1, 0]
    text = "id,candidates,truth\na,cat,dog\na,cat,cat\n"
    with pytest.raises(DataError, match="two values of 'truth'.*line 3"):
        read(write(text), label_column="truth")


def test_ids_and_paths_of_images(write):
    text = "image,id,candidates\nx/1.png,a,cat\nx/2.png,b,dog\n"
    found = read(write(text))
    assert found.ids == ["a", "b"]
    assert found.votes["image"].tolist() == ["x/1.png", "x/2.png"]
    assert "image" not in read(write(LIST.replace("id,", "file,"))).votes
    text = "path,id,label\n1.png,a,cat\n2.png,a,dog\n"
    with pytest.raises(DataError, match="two values of 'image' .*line"):
        read(write(text), layout="long")


AUDIT = (
    "id,candidates,label,probability,runner_up,margin,outside,undecided,"
    "suggested,source\n"
    'a,"[""cat""]",dog,0.9,cat,0.8,True,False,"[""dog""]",folds\n'
    'b,"[""dog"", ""owl""]",dog,0.6,owl,0.2,False,True,"[""dog"", ""owl""]",'
    "folds\n"
)


def test_the_audit_file_reads_back(write):
    path = write(AUDIT, "labels.csv")
    found = read(path)
    assert found.sets == {"a": {"cat"}, "b": {"dog", "owl"}}
    assert found.labels is None
    found = read(path, candidates_column="suggested")
    assert found.sets == {"a": {"dog"}, "b": {"dog", "owl"}}
    assert found.classes == ("dog", "owl")


@pytest.mark.parametrize("separator", "|;,")
def test_one_separator_by_its_presence(write, separator):
    cells = [f'{i},"{separator.join(sorted(SETS[i]))}"' for i in "abc"]
    assert read(write("id,candidates\n" + "\n".join(cells))).sets == SETS
    cells = [[i, json.dumps(sorted(SETS[i])).replace('"', '""')] for i in "abc"]
    rows = "".join(f'{item},"{cell}"\n' for item, cell in cells)
    assert read(write("id,labels\n" + rows)).sets == SETS


@pytest.mark.parametrize(
    "cells, names, why",
    [
        (['"x, y|z"', "z"], None, "separated by '|' and ','.*JSON lists"),
        (['"x, y|z"', "z"], ["z", "x, y"], "'|' and ','"),
        (['"x,y,z"'], ["x", "y", "z", "x,y"], "two ways.*JSON lists"),
        (['"[""x""]"', "x|y"], None, "'x|y' in line 3 .id b. is no JSON list"),
        (["['cat', 'dog']"], None, "line 2 .id a. is no JSON list"),
        (["[cat]"], None, "line 2 .id a. is no JSON list"),
        (["["], None, "line 2 .id a. is no JSON list"),
        (["(0, 2)"], None, "line 2 .id a. is no JSON list"),
        (["{'cat', 'dog'}"], None, "line 2 .id a. is no JSON list"),
        (["x||y"], None, "line 2 .id a. names no class: a name is missing"),
    ],
)
def test_sets_in_a_cell_that_are_refused(write, cells, names, why):
    rows = [
        f"{item},{cell}" if cell[0] == '"' else f'{item},"{cell}"'
        for item, cell in zip("ab", cells)
    ]
    with pytest.raises(DataError, match=why.replace("|", r"\|")):
        read(write("id,candidates\n" + "\n".join(rows)), class_names=names)


def test_a_cell_that_is_a_class_stays_whole(write):
    names = ["T-shirt/top", "rock, paper", "rock", "bag"]
    path = write('id,candidates\na,"rock, paper"\nb,T-shirt/top\nc,rock|bag\n')
    assert read(path, class_names=names).sets == {
        "a": {"rock, paper"},
        "b": {"T-shirt/top"},
        "c": {"rock", "bag"},
    }


@pytest.mark.parametrize("cell", ["cat|dog", "cat;dog", "cat, dog", "['cat']"])
@pytest.mark.parametrize(
    "text", ['id,a1,a2\na,cat,"{}"\n', 'id,label\na,cat\na,"{}"\n']
)
def test_a_set_in_a_cell_for_one_class_is_refused(write, text, cell):
    path = write(text.format(cell))
    layout = "wide" if "a1" in text else "long"
    with pytest.raises(DataError, match="looks like several.*--class_names"):
        read(path, layout=layout)
    found = read(path, class_names=["cat", cell], layout=layout)
    assert found.sets == {"a": {"cat", cell}}


def test_a_comma_in_a_name_of_a_cell_for_one_class(write):
    found = read(write('id,label\na,"Washington, DC"\na,Rome\n'))
    assert found.classes == ("Rome", "Washington, DC")


def test_arguments_of_columns(write):
    with pytest.raises(ConfigError, match="layout=.tall"):
        read(write(LIST), layout="tall")
    path = write("id,worker,label,score,confidence\na,x,cat,1,1\n")
    with pytest.raises(DataError, match="confidence, score.*keep one"):
        read(path)


# From votes to sets.


def test_union_by_default(write):
    found = read(write(VOTED))
    assert found.sets == {
        "c": {"owl"},
        "a": {"cat", "dog", "owl"},
        "b": {"cat", "dog"},
        "d": {"owl"},
    }
    assert "6 annotators" in found.notes
    assert "1 answers are repeated within an item and count once" in found.notes
    # The larger confidence of the two votes of ann counts.
    is_ann = (found.counted["item"] == "a") & (
        found.counted["annotator"] == "ann"
    )
    assert found.counted["confidence"][is_ann].tolist() == [0.9]
    assert len(found.counted) == 10


def test_min_votes(write):
    # a: cat by ann and ben, dog by cid, dan and fay, owl by eve.
    path = write(VOTED)
    found = read(path, min_votes=2, empty_set="drop")
    assert found.sets == {"a": {"cat", "dog"}}
    found = read(path, min_votes=3, empty_set="all")
    full = {"cat", "dog", "owl"}
    assert found.sets == {"a": {"dog"}, "b": full, "c": full, "d": full}
    with pytest.raises(DataError, match=r"3 candidate sets.*c \(line 2\)"):
        read(path, min_votes=2)
    assert "at least 3 votes" in found.candidates.provenance["rule"]


def test_min_confidence(write):
    found = read(write(VOTED), min_confidence=0.7)
    assert found.sets == {
        "c": {"owl"},
        "a": {"cat", "dog"},
        "b": {"cat"},
        "d": {"owl"},
    }
    assert len(found.counted) == 5
    assert "6 votes are weaker than 0.7: left out" in found.notes
    found = read(write(VOTED), min_confidence=0.95, empty_set="drop")
    assert found.ids == ["d"] and found.answers == [("d", "ann", "owl")]


@pytest.mark.parametrize("text", ["id,labels\na,cat\n", "id,x\na,1\n"])
def test_min_votes_needs_votes(write, text):
    layout = "list" if "labels" in text else "multi_hot"
    with pytest.raises(ConfigError, match="--min_votes"):
        read(write(text), min_votes=2, layout=layout)


@pytest.mark.parametrize("value", ["", "high", "nan", "inf"])
def test_a_confidence_that_is_no_number(write, value):
    text = f"item,label,score\na,cat,1\nb,dog,{value}\n"
    with pytest.raises(DataError, match="'score' must be a number.*line 3"):
        read(write(text))
    with pytest.raises(ConfigError, match="--min_confidence"):
        read(write("item,worker,label\na,x,cat\n"), min_confidence=0.5)


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
        {"class_names": "cat"},
        {"none_of_these": "cat"},
        {"where": "annotator"},
    ],
)
def test_arguments_out_of_range(write, arguments):
    with pytest.raises(ConfigError):
        read(write(VOTED), **arguments)


BLANKS = "id,a1,a2,a3\nw,cat,,dog\nx,,,\ny,dog,dog,\nz,,cat,none\n"


def test_blanks_and_the_policies(write):
    path, how = write(BLANKS), {"layout": "wide", "none_of_these": ("none",)}
    with pytest.raises(DataError, match=r"x \(line 3\)"):
        read(path, **how)
    found = read(path, **how, empty_set="all")
    assert found.sets == {
        "w": {"cat", "dog"},
        "x": {"cat", "dog"},
        "y": {"dog"},
        "z": {"cat"},
    }
    found = read(path, **how, empty_set="drop")
    assert found.ids == ["w", "y", "z"]
    assert [item for item, _, _ in found.answers] == list("wwyyz")
    note = "1 candidate sets are empty, ids x (line 3): left out"
    assert note in found.notes
    found = read(path, **how, answered=["x"])
    assert found.sets["x"] == {"cat", "dog"}
    assert "1 sets are empty and their true labels are known" in found.notes
    path = write("id,a1,a2\nx,,\n")
    with pytest.raises(DataError, match="empty"):
        read(path, layout="wide", empty_set="drop")


def test_a_blank_annotator_is_ignored_with_a_note(write):
    path = write("id,a1,a2,a3\nx,cat,,dog\ny,dog,,NaN\n")
    found = read(path, layout="wide")
    assert found.sets == {"x": {"cat", "dog"}, "y": {"dog"}}
    assert {who for _, who, _ in found.answers} == {"a1", "a3"}
    assert "1 annotator columns are blank and were ignored: a2" in found.notes


def test_blank_labels_and_annotators_of_a_long_table(write):
    path = write("item,worker,label\na,x,cat\nb,x,\na,y,\n")
    with pytest.raises(DataError, match=r"b \(line 3\)"):
        read(path)
    found = read(path, empty_set="drop")
    assert found.sets == {"a": {"cat"}}
    assert "2 answers name no class" in found.notes
    found = read(write("item,worker,label\na,x,cat\na,,dog\na,,dog\n"))
    assert found.answers == [("a", "x", "cat"), ("a", "unknown", "dog")]


def test_each_row_is_a_vote_where_nobody_is_named(write):
    path = write("file,label\na,cat\na,cat\na,dog\n")
    assert read(path, min_votes=2).sets == {"a": {"cat"}}
    assert read_labels(path)[1] is None


def test_one_id_in_several_rows(write):
    path = write("id,labels\na,cat\nb,dog\na,dog|cat\nb,dog\n")
    with pytest.raises(DataError, match=r"1 ids.*a \(line 2\).*--duplicates"):
        read(path)
    found = read(path, duplicates="union")
    assert found.sets == {"a": {"cat", "dog"}, "b": {"dog"}}
    assert "1 ids have rows that differ: united" in found.notes
    assert "1 rows repeat an id and say the same: left out" in found.notes
    found = read(path, duplicates="first")
    assert found.sets == {"a": {"cat"}, "b": {"dog"}}
    path = write("id,labels\na,\na,cat\n")
    with pytest.raises(DataError, match="rows that differ"):
        read(path)
    assert read(path, duplicates="union").sets == {"a": {"cat"}}
    with pytest.raises(DataError, match="are empty"):
        read(path, duplicates="first")


def test_one_id_in_several_rows_of_a_wide_table(write):
    path = write("id,a1,a2\nx,cat,dog\ny,dog,\nx,cat,dog\ny,,dog\n")
    # y: the set is the same, who says so is not.
    with pytest.raises(DataError, match=r"1 ids.*y \(line 3\)"):
        read(path, layout="wide")
    found = read(
        path, layout="wide", duplicates="union", min_votes=2, empty_set="drop"
    )
    assert found.sets == {"y": {"dog"}}


def _slowly(rows, policy):
    """Merges (id, names) row by row: the items that differ, and the sets."""
    first, sets, differs = {}, {}, []
    for item, names in rows:
        lead = first.setdefault(item, set(names))
        if lead != set(names) and item not in differs:
            differs.append(item)
        sets.setdefault(item, set()).update(names)
    return differs, sets if policy == "union" else first


@pytest.mark.parametrize("seed", range(12))
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
    with pytest.raises(DataError, match="the votes: .*'own' in row 0 .id 1"):
        sets_of_votes(votes.replace("cat", "own"), class_names=["dog", "cat"])


# What was read silently wrong before.


def test_a_confidence_of_0_is_a_no(write):
    path = write(
        "ImageID,Source,LabelName,Confidence\na,v,cat,1\na,v,dog,0\nb,v,dog,1\n"
        "a,m,owl,0.6\nc,v,cat,0\n"
    )
    how = {
        "id_column": "ImageID",
        "annotator_column": "Source",
        "label_column": "LabelName",
        "empty_set": "drop",
    }
    found = read(path, **how)
    assert found.sets == {"a": {"cat", "owl"}, "b": {"dog"}}
    assert any("2 answers of confidence 0" in note for note in found.notes)
    # The frame still knows of them.
    assert found.votes["confidence"].tolist() == [1.0, 0.0, 1.0, 0.6, 0.0]


def test_answers_of_prodigy(write):
    path = write(
        '{"image": "a", "label": "CAT", "answer": "accept"}\n'
        '{"image": "b", "label": "CAT", "answer": "reject"}\n'
        '{"image": "b", "label": "DOG", "answer": "accept"}\n'
        '{"image": "a", "label": "DOG", "answer": "ignore"}\n',
        "t.jsonl",
    )
    found = read(path)
    assert found.sets == {"a": {"CAT"}, "b": {"DOG"}}
    assert "1 records were ignored and 1 rejected by the column 'answer'" in (
        found.notes
    )
    path = write(
        '{"image": "b", "accept": ["dog"], "answer": "ignore",'
        ' "_annotator_id": "anna"}\n'
        '{"image": "b", "accept": ["cat", "owl"], "answer": "accept",'
        ' "_annotator_id": "bob"}\n',
        "t.jsonl",
    )
    found = read(path, label_column="accept", layout="long")
    assert found.answers == [("b", "bob", "cat"), ("b", "bob", "owl")]


def test_rows_that_do_not_count(write):
    path = write(
        "INPUT:image\tOUTPUT:result\tASSIGNMENT:worker_id\tASSIGNMENT:status\t"
        "n\na\tcat\tw1\tAPPROVED\t1\na\tdog\tw2\tREJECTED\t2\n"
        "b\tdog\tw1\tAPPROVED\t3\n",
        "t.tsv",
    )
    how = {
        "layout": "long",
        "id_column": "INPUT:image",
        "label_column": "OUTPUT:result",
        "annotator_column": "ASSIGNMENT:worker_id",
    }
    approved = {"a": {"cat"}, "b": {"dog"}}
    with pytest.warns(DataWarning, match="'ASSIGNMENT:status' is not used"):
        assert read(path, **how).sets == {"a": {"cat", "dog"}, "b": {"dog"}}
        found = read(path, **how, where=["n>1", "n<3"])
        assert found.sets == {"a": {"dog"}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read(path, **how, where="ASSIGNMENT:status=APPROVED")
        assert found.sets == approved
        found = read(path, **how, where=["ASSIGNMENT:status!=REJECTED"])
        assert found.sets == approved
    with pytest.raises(DataError, match="no row is left"):
        read(path, **how, where="n=7")
    with pytest.raises(DataError, match="no column 'm'.*--where"):
        read(path, **how, where="m=7")


@pytest.mark.parametrize("word", ["NA", "None", "-", "n/a"])
def test_words_that_look_like_no_answer(write, word):
    path = write(f"image,annotator,label\na,x,{word}\na,y,cat\nb,x,dog\n")
    with pytest.warns(DataWarning, match=f"--none_of_these={word}$"):
        assert word in read(path).classes
    found = read(path, none_of_these=[word])
    assert found.classes == ("cat", "dog")


def test_scores_beside_lists(write):
    text = (
        '{"image": "a", "labels": ["cat", "dog"], "scores": [0.7, 0.2]}\n'
        '{"image": "b", "labels": ["dog", "cat"], "scores": [0.6, 0.5]}\n'
    )
    found = read(write(text, "t.jsonl"), min_confidence=0.5)
    assert found.sets == {"a": {"cat"}, "b": {"cat", "dog"}}
    path = write(text.replace(", 0.5]", "]"), "t.jsonl")
    with pytest.raises(DataError, match="equally long in line 2 .id b"):
        read(path)


def test_sentences_are_hardly_classes(write):
    text = (
        '{"image": "a", "answer": "cat"}\n{"image": "b", "answer": "dog or '
        'cat"}\n{"image": "c", "answer": "I cannot tell."}\n'
    )
    with pytest.warns(DataWarning, match="2 classes .*3 of 3 .*--class_names"):
        read(write(text, "t.jsonl"))


def test_confidence_in_per_cent(write):
    text = "image,annotator,label,confidence\na,x,cat,90\na,y,dog,40\n"
    with pytest.warns(DataWarning, match="reach 90.*per cent"):
        read(write(text), min_confidence=0.5)


def test_sets_that_say_little_are_warned_of(write):
    rows = ["cat|dog"] * 2 + ["cat"] * 9 + ["dog"] * 9
    text = "".join(f"{n},{cell}\n" for n, cell in enumerate(rows))
    with pytest.warns(DataWarning, match="2 of 20 .* hold all 2 classes"):
        read(write("id,labels\n" + text))


# True labels that somebody looked up.


def known(path, names=("cat", "dog")):
    ids, labels = read_known_labels(path, names)
    return dict(zip(ids.tolist(), labels.tolist()))


def test_known_labels(write):
    text = "\ufefflabel,who,id\ndog,me,a3\n 0 ,you, a1\n"
    assert known(write(text)) == {"a3": 1, "a1": 0}
    assert known(write("\ufeffid;label\r\na2;dog\r\n")) == {"a2": 1}
    assert known(write("id,label\na1,dog,\n".replace("l\n", "l,\n"))) == {
        "a1": 1
    }
    assert known(write("id,label\na1,02\n"), ["01", "02"]) == {"a1": 1}


@pytest.mark.parametrize(
    "text, words",
    [
        ("id,label\na1,cat\na1,dog\n", ["twice", "lines 2, 3"]),
        ("id,label\na1,dgo\n", ["'dgo'", "line 2", "mean dog"]),
        ("id,label\na1,2\n", ["2", "line 2", "0..1"]),
        ("id,label\na1,-1\n", ["no class", "line 2", "cat, dog"]),
        ("id,label\na1,0.5\n", ["0.5", "line 2"]),
        ("id,label\na1,\n", ["blank", "line 2", "cat, dog"]),
        ("id,label\n ,cat\n", ["blank", "line 2"]),
        ("id,class\na1,cat\n", ["columns id and label", "id, class"]),
        ("id,label\n", ["empty"]),
        ("id,label\na1,cat, big\n", ["line 2 has 3 fields"]),
        ("id,label,suspicion\na1,cat,0.1\n", ["is an audit's"]),
        ('id,label\na1,cat\na2,"' + "x" * 1_400_000, ["line 3", "quotes"]),
    ],
)
def test_known_labels_that_are_refused(write, text, words):
    path = write(text)
    with pytest.raises(DataError) as error:
        known(path)
    assert path in str(error.value) and "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)
