"""Every layout of a table, given and found out, by hand."""

import json

import numpy as np
import pytest

from alim_keras.data.tables import read_labels
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


def test_list(write, sets_of):
    found = read_labels(write(LIST))
    assert sets_of(found) == SETS
    assert found.ids.tolist() == ["a", "b", "c"]
    assert found.candidates.class_names == ("cat", "dog", "owl")
    assert found.votes is found.images is found.features is None
    assert found.labels is None
    assert found.counts == {"rows": 3, "votes": 5, "items": 3}
    assert found.candidates.provenance == {
        "file": "table.csv",
        "layout": "list",
        "rule": "every class that somebody named",
    }
    assert "layout list, from the column 'candidates'" in found.notes
    assert "3 classes were found: cat, dog, owl" in found.notes


def test_wide(write, sets_of):
    found = read_labels(write(WIDE))
    assert sets_of(found) == SETS
    assert found.counts["annotators"] == 3
    assert any("layout wide" in note for note in found.notes)
    votes = found.votes
    assert votes.annotator_names == ("ann", "ben", "cid")
    assert votes.rows.tolist() == [0, 0, 0, 1, 2, 2]
    assert votes.annotators.tolist() == [0, 1, 2, 0, 0, 2]
    assert votes.classes.tolist() == [0, 1, 1, 1, 2, 0]
    assert votes.confidences is None


def test_long_in_any_order(write, sets_of):
    found = read_labels(write(LONG))
    assert sets_of(found) == SETS
    assert found.ids.tolist() == ["c", "a", "b"]
    assert found.votes.annotator_names == ("ben", "ann", "cid")
    assert found.votes.rows.tolist() == [0, 0, 1, 1, 1, 2]
    assert found.votes.annotators.tolist() == [0, 1, 0, 1, 2, 1]
    assert found.votes.classes.tolist() == [2, 0, 0, 1, 1, 1]


def test_multi_hot_by_its_class_names(write, sets_of):
    found = read_labels(write(HOT), class_names=["owl", "dog", "cat"])
    assert sets_of(found) == SETS
    assert found.candidates.class_names == ("owl", "dog", "cat")
    assert any("layout multi_hot" in note for note in found.notes)


def test_multi_hot_when_asked(write, sets_of):
    found = read_labels(write(HOT), layout="multi_hot")
    assert sets_of(found) == SETS
    assert found.candidates.class_names == ("cat", "dog", "owl")


def test_a_class_that_no_row_has_stays_a_class(write):
    path = write("id,cat,dog,owl\na,1,0,0\nb,1,1,0\n")
    found = read_labels(path, layout="multi_hot")
    assert found.candidates.sets.tolist() == [
        [True, False, False],
        [True, True, False],
    ]
    assert "1 classes are in no set: owl" in found.notes
    assert found.counts["unused_classes"] == 1


@pytest.mark.parametrize(
    "text",
    [
        WIDE.replace("cat", "1").replace("dog", "0").replace("owl", "1"),
        HOT,
        "id,ann,ben\na,yes,x\nb,no,y\n",
        "id,ann\na,yes\nb,no\n",
        # An age is no vote.
        "id,ann,age\na,1,2\nb,2,1\n",
        "id,label,width\na,cat,7\n",
    ],
)
def test_unclear_columns_are_refused_with_the_flag(write, text):
    path = write(text)
    with pytest.raises(DataError, match="--layout=") as caught:
        read_labels(path)
    assert path in str(caught.value)


def test_wide_of_zero_and_one_against_multi_hot(write):
    path = write("id,0,1\na,1,0\nb,1,1\n")
    with pytest.raises(DataError, match="--layout=wide or --layout=multi_hot"):
        read_labels(path, class_names=["0", "1"])
    hot = read_labels(path, class_names=["0", "1"], layout="multi_hot")
    assert hot.candidates.sets.tolist() == [[True, False], [True, True]]
    wide = read_labels(path, class_names=["0", "1"], layout="wide")
    assert wide.candidates.sets.tolist() == [[True, True], [False, True]]


def test_numbers_of_columns_named_as_annotators(write):
    text = "id,random_label1,random_label2\na,3,5\nb,0,0\n"
    found = read_labels(write(text), class_names=[str(i) for i in range(10)])
    assert np.argwhere(found.candidates.sets).tolist() == [
        [0, 3],
        [0, 5],
        [1, 0],
    ]


def test_two_columns_of_candidates_are_refused(write):
    path = write("id,candidates,labels\na,cat,dog\n")
    with pytest.raises(DataError, match="--candidates_column=candidates"):
        read_labels(path)
    found = read_labels(path, candidates_column="labels")
    assert found.candidates.class_names == ("dog",)


def test_two_columns_of_ids_are_refused(write):
    path = write("id,item,candidates\na,x,cat\n")
    with pytest.raises(DataError, match="--id_column=id"):
        read_labels(path)
    assert read_labels(path, id_column="item").ids.tolist() == ["x"]


def test_no_column_of_ids(write):
    path = write("who,candidates\na,cat\n")
    with pytest.raises(DataError, match="--id_column=who"):
        read_labels(path)
    assert read_labels(path, id_column="WHO").ids.tolist() == ["a"]
    with pytest.raises(DataError, match="--id_column.*did you mean who") as no:
        read_labels(path, id_column="whoo")
    assert "who, candidates" in str(no.value)


def test_lists_beside_annotators_are_refused(write):
    path = write("id,annotator,labels\na,x,cat\n")
    with pytest.raises(DataError, match="--layout=list.*--label_column="):
        read_labels(path)
    long = read_labels(path, layout="long", label_column="labels")
    assert long.votes.annotator_names == ("x",)


def test_names_of_columns_in_any_case(write, sets_of):
    text = LONG.replace("item", " Image ").replace("annotator", "WORKER_ID")
    assert sets_of(read_labels(write(text.replace("label", "Choice")))) == SETS


def test_every_column_by_argument(write, sets_of):
    long = LONG.replace("item,annotator,label", "x,y,z")
    found = read_labels(
        write(long), id_column="x", annotator_column="y", label_column="z"
    )
    assert sets_of(found) == SETS
    listed = LIST.replace("id,candidates", "x,y")
    found = read_labels(write(listed), id_column="x", candidates_column="y")
    assert sets_of(found) == SETS


def test_columns_of_annotators_by_argument(write, sets_of):
    text = WIDE.replace("cid", "label")
    with pytest.raises(DataError, match="--layout=long.*--layout=wide"):
        read_labels(write(text))
    with pytest.raises(DataError, match="--annotator_column=A,B,C"):
        read_labels(write(text), layout="wide")
    found = read_labels(write(text), annotator_column="ann,ben,label")
    assert sets_of(found) == SETS
    found = read_labels(write(text), annotator_column="ann, ben")
    assert sets_of(found) == {"a": {"cat", "dog"}, "b": {"dog"}, "c": {"owl"}}


def test_a_true_class_only_when_asked(write):
    text = "id,candidates,truth\na,cat|dog,dog\nb,dog,\nc,owl,cat\n"
    assert read_labels(write(text)).labels is None
    found = read_labels(write(text), label_column="truth")
    assert found.labels.tolist() == [1, -1, 0]
    assert found.labels.dtype == np.int64
    found = read_labels(
        write(WIDE.replace("cid", "truth")),
        layout="wide",
        label_column="truth",
    )
    assert found.votes.annotator_names == ("ann", "ben")
    assert found.labels.tolist() == [1, -1, 0]


def test_one_label_in_a_row_without_annotators(write, sets_of):
    found = read_labels(write("file,label\nx.png,cat\ny.png,dog\nx.png,dog\n"))
    assert sets_of(found) == {"x.png": {"cat", "dog"}, "y.png": {"dog"}}
    assert found.votes is None
    assert any("layout long" in note for note in found.notes)


def test_ids_and_paths_of_images(write):
    text = "image,id,candidates\nx/1.png,a,cat\nx/2.png,b,dog\n"
    found = read_labels(write(text))
    assert found.ids.tolist() == ["a", "b"]
    assert list(found.images) == ["x/1.png", "x/2.png"]
    assert read_labels(write(LIST.replace("id,", "file,"))).images is None


def test_images_follow_items_that_are_left_out(write):
    text = "path,id,candidates\n1.png,a,cat\n2.png,b,\n3.png,c,dog\n"
    found = read_labels(write(text), empty_set="drop")
    assert list(found.images) == ["1.png", "3.png"]


def test_two_images_for_one_id_are_refused(write):
    text = "path,id,label\n1.png,a,cat\n2.png,a,dog\n"
    with pytest.raises(DataError, match="two images for one id in line 3"):
        read_labels(write(text), layout="long")


AUDIT = (
    "id,candidates,label,probability,runner_up,margin,outside,undecided,"
    "suggested,source\n"
    'a,"[""cat""]",dog,0.9,cat,0.8,True,False,"[""dog""]",folds\n'
    'b,"[""dog"", ""owl""]",dog,0.6,owl,0.2,False,True,"[""dog"", ""owl""]",'
    "folds\n"
)


def test_the_audit_file_reads_back(write, sets_of):
    found = read_labels(write(AUDIT, "labels.csv"))
    assert sets_of(found) == {"a": {"cat"}, "b": {"dog", "owl"}}
    assert found.labels is None
    found = read_labels(
        write(AUDIT, "labels.csv"), candidates_column="suggested"
    )
    assert sets_of(found) == {"a": {"dog"}, "b": {"dog", "owl"}}
    assert found.candidates.class_names == ("dog", "owl")


@pytest.mark.parametrize("separator", "|;,")
def test_separators_are_found_out(write, sets_of, separator):
    cells = [f'{i},"{separator.join(sorted(SETS[i]))}"' for i in "abc"]
    found = read_labels(write("id,candidates\n" + "\n".join(cells)))
    assert sets_of(found) == SETS
    note = f"column 'candidates': the candidates are separated by {separator!r}"
    assert note in found.notes


def test_json_lists_and_separators_give_the_same(write, sets_of):
    rows = [[i, json.dumps(sorted(SETS[i]))] for i in "abc"]
    text = "".join(
        '{},"{}"\n'.format(i, cell.replace('"', '""')) for i, cell in rows
    )
    assert sets_of(read_labels(write("id,labels\n" + text))) == SETS


def test_two_separators_are_refused_unless_names_settle_it(write, sets_of):
    path = write('id,candidates\na,"x, y|z"\nb,z\n')
    with pytest.raises(DataError, match="','.*--class_names"):
        read_labels(path)
    found = read_labels(path, class_names=["z", "x, y"])
    assert sets_of(found) == {"a": {"x, y", "z"}, "b": {"z"}}


def test_known_names_are_never_split(write, sets_of):
    names = ["T-shirt/top", "rock, paper", "rock", "bag"]
    path = write('id,candidates\na,"rock, paper,bag"\nb,T-shirt/top\nc,rock\n')
    found = read_labels(path, class_names=names)
    assert sets_of(found) == {
        "a": {"rock, paper", "bag"},
        "b": {"T-shirt/top"},
        "c": {"rock"},
    }


def test_a_cell_with_two_readings_is_refused(write):
    path = write('id,candidates\na,"x,y"\n')
    with pytest.raises(DataError, match="two ways.*JSON lists"):
        read_labels(path, class_names=["x", "y", "x,y"])


def test_json_lists_beside_other_text_are_refused(write):
    path = write('id,candidates\na,"[""x""]"\nb,x|y\n')
    with pytest.raises(
        DataError, match=r"'x\|y' in line 3 is no JSON.*in one way"
    ):
        read_labels(path)


@pytest.mark.parametrize("cell", ["['cat', 'dog']", "[cat]", "[0 2]", "["])
def test_what_is_no_json_list_is_refused(write, cell):
    path = write(f'id,candidates\na,"{cell}"\n')
    with pytest.raises(DataError, match="line 2 is no JSON list"):
        read_labels(path)


def test_unknown_layout(write):
    with pytest.raises(ConfigError, match="--layout=tall"):
        read_labels(write(LIST), layout="tall")


@pytest.mark.parametrize(
    "cell", ["(0, 2)", "{'cat', 'dog'}", "{0}", "['cat' 'dog']"]
)
def test_what_other_programs_print_is_refused(write, cell):
    path = write(f'id,candidates\na,"{cell}"\n')
    with pytest.raises(DataError, match="line 2 is no JSON list"):
        read_labels(path)


@pytest.mark.parametrize("cell", ["cat|dog", "cat;dog", "cat, dog", "['cat']"])
@pytest.mark.parametrize(
    "text", ['id,a1,a2\na,cat,"{}"\n', 'id,label\na,cat\na,"{}"\n']
)
def test_a_set_in_a_cell_for_one_class_is_refused(write, text, cell):
    path = write(text.format(cell))
    with pytest.raises(DataError, match="looks like several.*--class_names"):
        read_labels(path)
    found = read_labels(path, class_names=["cat", cell])
    assert found.candidates.sets.tolist() == [[True, True]]


def test_a_comma_in_a_name_of_a_cell_for_one_class(write):
    found = read_labels(write('id,label\na,"Washington, DC"\na,Rome\n'))
    assert found.candidates.class_names == ("Rome", "Washington, DC")


def test_two_columns_of_confidence_are_refused(write):
    path = write("id,worker,label,score,confidence\na,x,cat,1,1\n")
    with pytest.raises(DataError, match="score, confidence.*keep one"):
        read_labels(path)
