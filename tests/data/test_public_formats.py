"""Reading files as tools and public data sets write them."""

import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from PIL import Image
from public_files import FILES
from public_files import LABEL_STUDIO
from public_files import OPEN_IMAGES
from public_files import PAGE
from public_files import TOLOKA
from public_files import ZOONIVERSE
from public_files import lines
from public_files import result
from public_files import rows
from reading import read
from reading import written

from alim_keras.data import load_table
from alim_keras.data.exports import at
from alim_keras.data.formats import FORMATS
from alim_keras.errors import DataError
from alim_keras.errors import DataWarning


@pytest.mark.parametrize("name", FILES)
def test_file(name, tmp_path):
    content, options, sets = FILES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read(written(tmp_path, content), **options)
    assert found.sets == sets


def test_every_format_is_on_the_page():
    for name in FORMATS:
        assert f"`{name}`" in PAGE, name


def test_a_prediction_without_a_score_is_no_no(tmp_path):
    task = {"data": {"image": "a.jpg"}, "annotations": []}
    task["predictions"] = [result("cat", model_version="m", score=0.0)]
    task["predictions"] += [result("dog", model_version="n", score=0.5)]
    path = written(tmp_path, [task], "t.json")
    found = read(path, format="label_studio_predictions")
    assert found.sets == {"a.jpg": {"cat", "dog"}}


@pytest.mark.parametrize(
    "where", ["spam=false", "spam=False", "spam!=true", "spam!=True"]
)
def test_conditions_on_true_and_false_in_json(tmp_path, where):
    text = rows("id candidates spam", ("a", "cat", True), ("b", "dog", False))
    path = written(tmp_path, text, "t.jsonl")
    assert read(path, where=where).sets == {"b": {"dog"}}


def test_golden_answers_and_ground_truth_are_true_labels(tmp_path):
    found = read(written(tmp_path, TOLOKA, "t.tsv"))
    assert found.classes == ("cat", "dog")
    assert found.labels.tolist() == [0, -1]
    found = read(written(tmp_path, LABEL_STUDIO, "t.json"))
    assert found.labels.tolist() == [0, -1]
    note = "2 tasks, 2 annotators, 5 annotations, 2 predictions, 1 without an"
    assert any(note in line and "1 cancelled" in line for line in found.notes)


@pytest.mark.parametrize(
    "path, found",
    [
        ("a.0.b", 1),
        ("a.*.b", [1, 2]),
        ("a.2.b", None),
        ("a.b", None),
        ("t.x", 3),
        ("t.*", [3]),
        ("n.0", None),
        ("none", None),
    ],
)
def test_paths(path, found):
    value = {"a": [{"b": 1}, {"b": 2}], "t": '{"x": 3}', "n": 7}
    assert at(value, path) == found


def test_a_machine_named_what_a_person_rejects(tmp_path):
    path = written(tmp_path, OPEN_IMAGES, "t.csv")
    notes = read(path).notes
    assert "1 answers of confidence 0 are a no" in notes
    text = "candidates are rejected by as many as name them: taken out"
    assert f"1 {text}" in notes
    # Two name it and one rejects it: it stays.
    table = "item,annotator,label,confidence\na,x,cat,1\na,y,cat,1\na,z,cat,0\n"
    found = read(written(tmp_path, table + "b,x,dog,1\n", "t.csv"))
    assert found.sets == {"a": {"cat"}, "b": {"dog"}}


def test_items_that_are_only_said_not_to_be_of_a_class(tmp_path):
    table = "item,annotator,label,confidence\na,x,cat,0\na,y,owl,0\nb,x,dog,1\n"
    path = written(tmp_path, table, "t.csv")
    names = ["cat", "dog", "owl", "bee"]
    found = read(path, class_names=names)
    assert found.sets == {"a": {"dog", "bee"}, "b": {"dog"}}
    assert read(path, class_names=names, empty_set="drop").ids == ["b"]
    assert read(path, class_names=names, empty_set="all").sets == found.sets
    # Nothing is left where every class is rejected.
    with pytest.raises(DataError, match="1 candidate sets are empty, id a"):
        read(written(tmp_path, table.replace("dog", "cat"), "t.csv"))


SCORED = "id,cat,dog,owl\na,0.5,0.3,0.2\nb,0.1,0.1,0.8\n"


@pytest.mark.parametrize(
    "options, sizes",
    [
        ({}, [3, 3]),
        ({"min_share": 0.3}, [2, 1]),
        ({"top_k": 2}, [2, 2]),
        ({"top_p": 0.8}, [2, 1]),
        ({"top_p": 0.81}, [3, 2]),
        ({"top_p": 1.0}, [3, 3]),
        ({"top_k": 2, "min_share": 0.25}, [2, 1]),
        ({"min_confidence": 0.2}, [3, 1]),
    ],
)
def test_the_leading_candidates(options, sizes, tmp_path):
    path = written(tmp_path, SCORED, "t.csv")
    found = read(path, layout="probabilities", **options)
    assert found.candidates.sizes.tolist() == sizes
    rule = found.candidates.provenance["rule"]
    for name, value in options.items():
        assert f"{name.removeprefix('min_')} {value:g}" in rule


def test_lists_with_and_without_scores(tmp_path):
    records = lines(
        {"id": "a", "annotator": "x", "label": "cat", "confidence": 0.3},
        {"id": "a", "annotator": "y", "label": ["cat", "dog"], "score": 1},
        {"id": "b", "annotator": "x", "label": ["dog", "cat"]},
    ).replace('"score": 1', '"confidence": [0.9, 0.2]')
    votes = read(written(tmp_path, records, "t.jsonl")).votes
    assert votes["confidence"].fillna(-1).tolist() == [0.3, 0.9, 0.2, -1, -1]


def test_shares_of_votes(tmp_path):
    table = "task,worker,label\na,x,cat\na,y,cat\na,z,dog\na,u,owl\nb,x,dog\n"
    path = written(tmp_path, table, "t.csv")
    assert read(path, min_share=0.3).sets == {"a": {"cat"}, "b": {"dog"}}
    assert read(path, top_k=2).sets == {"a": {"cat", "dog"}, "b": {"dog"}}


@pytest.mark.parametrize(
    "layout, sizes", [("counts", [2, 1]), ("probabilities", [3, 2])]
)
def test_arrays_of_counts(layout, sizes, tmp_path):
    np.save(tmp_path / "t.npy", [[41, 9, 1], [0, 50, 1]])
    path = str(tmp_path / "t.npy")
    more = {"min_votes": 2} if layout == "counts" else {}
    found = read(path, layout=layout, ids="test_{:02d}.png", **more)
    assert found.candidates.sizes.tolist() == sizes
    assert found.ids == ["test_00.png", "test_01.png"]
    np.save(tmp_path / "t.npy", [[1.0, -2.0]])
    with pytest.raises(DataError, match="numbers.*-2.0 of row_00000, column 1"):
        read(path, layout=layout)


def test_ids_from_a_file(tmp_path):
    ids = written(tmp_path, "x.png\r\n\r\ny.png\r\n", "ids.txt")
    path = written(tmp_path, "labels\ncat|dog\ndog\n", "t.csv")
    found = read(path, ids=ids)
    assert found.sets == {"x.png": {"cat", "dog"}, "y.png": {"dog"}}
    for wrong in ("{:02d}{}", "same", written(tmp_path, "x\n", "one.txt")):
        with pytest.raises(DataError, match="2 different ids .* --ids="):
            read(path, ids=wrong)


@pytest.mark.parametrize(
    "content, options, words",
    [
        ({"a": 1}, {}, "--records=PATH"),
        ({"a": 1}, {"records": "b.c"}, "--records=PATH"),
        ({"0": [1]}, {"format": "peerannot"}, "export of peerannot"),
        # Counts of votes, which are no numbers of classes.
        ({"a": {"cat": 3, "dog": 1}}, {}, "what the file is"),
        ({"classes": ["x"], "labels": {"a": 3}}, {}, "fiftyone"),
        (SCORED, {"format": "fiftyone"}, "JSON"),
        ("<a><b></a>", {}, "sound export of cvat"),
        ("<annotations/>", {}, "No class is named"),
        ("id,x\na,1\n", {"format": "zooniverse"}, "'annotations'"),
        (TOLOKA.replace("HINT:", "OUTPUT:"), {}, "--label_column"),
        (
            ZOONIVERSE.replace('""T0""', '""T1""', 1),
            {},
            "--label_column=TASK.*T1, T0",
        ),
        ("a.jpg 1\nb.jpg\n", {"columns": ["id", "label"]}, "line 2"),
        (SCORED, {"layout": "counts"}, "whole numbers.*'0.5', id a"),
        (SCORED.replace("0.3", "x"), {"layout": "probabilities"}, "'x'"),
        (rows("id x y", ("a", 1, None)), {"layout": "counts"}, "'y', None"),
        (
            SCORED,
            {"layout": "probabilities", "class_names": ["cat", "bee"]},
            "1 columns for 2 classes.*bee",
        ),
        (
            "id,cat,dog\na,1,0\na,2,0\n",
            {"layout": "counts"},
            "1 ids have rows that differ",
        ),
        (
            lines({"id": "a", "labels": ["x", "y"], "scores": [-2.5, -1]}),
            {"min_share": 0.1},
            "negative; --top_k",
        ),
    ],
)
def test_refused(content, options, words, tmp_path):
    path = written(tmp_path, content)
    with pytest.raises(DataError, match=words) as caught:
        read(path, **options)
    assert path in str(caught.value) and "\n" not in str(caught.value)


def doubts_about(path, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read(path, **options)
    assert all(issubclass(one.category, DataWarning) for one in caught)
    return [str(one.message) for one in caught]


MANY = rows(
    "image labels scores",
    *((str(n), ["a", "b"], [n / 100, 0.2]) for n in range(1, 13)),
)
SENTENCES = rows(
    "image answer", ("a", "cat"), ("b", "dog or cat"), ("c", "I cannot tell.")
)
LIST_ONCE = "id,label\n" + "".join(f"{n},name {n}\n" for n in range(12))
STATE = "image,label,worker,{}\na,cat,w1,{}\na,dog,w2,{}\nb,dog,w1,{}\n"
PER_CENT = "image,annotator,label,confidence\na,x,cat,90\nb,y,dog,40\n"


@pytest.mark.parametrize(
    "content, options, words",
    [
        (STATE.format("status", 1, 2, 1), {}, ["are not used: status"]),
        (STATE.format("is_attn_check", 0, 1, 0), {}, ["is_attn_check"]),
        # What is the same everywhere tells no answer from another.
        (STATE.format("gold", "", "", ""), {}, []),
        (STATE.format("age", 1, 2, 3), {}, []),
        (
            "image,annotator,label\na,x,NA\na,y,cat\nb,x,dog\nb,y,None\nb,z,?\n",
            {},
            ["3 answers are NA, None, [?], and count as none"],
        ),
        (PER_CENT, {"min_confidence": 0.5}, ["90.*are they in per cent"]),
        (MANY, {}, ["12 of 12 .* hold all 2 .*--top_k=1"]),
        (LIST_ONCE, {}, ["12 of 12 classes occur once"]),
        (SENTENCES, {}, ["2 of 3 classes look like sentences"]),
        # All at once, the worst first.
        (
            "image,label,worker,status,score\na,NA,x,1,90\na,cat.,x,2,40\n"
            "b,dog,y,1,70\n",
            {"min_confidence": 0.5},
            ["status", "per cent", "count as none", "sentences"],
        ),
    ],
)
def test_doubts(content, options, words, tmp_path):
    layout = "list" if content == MANY else "long"
    path = written(tmp_path, content)
    found = doubts_about(path, layout=layout, **options)
    assert len(found) == len(words)
    for text, word in zip(found, words):
        assert re.search(word, text)


def test_what_counts_as_no_answer_is_a_class_if_it_is_named_so(tmp_path):
    table = "image,label\na,none\na,mild\nb,severe\n"
    path = written(tmp_path, table, "t.csv")
    names = ["none", "mild", "severe"]
    assert read(path, class_names=names).sets["a"] == {"none", "mild"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(path, none_of_these=["none"]).sets["a"] == {"mild"}
    # An empty set says why it is empty.
    table = "id,candidates,truth\na,NA,NA\nb,cat|dog,cat\n"
    path = written(tmp_path, table, "t.csv")
    with pytest.raises(DataError, match="id a .*1 answers are NA"):
        read(path)
    with pytest.warns(DataWarning):
        found = read(path, label_column="truth", empty_set="drop")
    assert found.labels.tolist() == [0]


def test_blank_annotators_are_not_one_person(tmp_path):
    table = "item,worker,label\na,x,cat\na,,dog\na,,dog\nb,,cat\n"
    path = written(tmp_path, table, "t.csv")
    found = read(path, min_votes=2, empty_set="drop")
    assert found.sets == {"a": {"dog"}}
    note = "3 answers name no annotator: each counts as one person's"
    assert note in found.notes and "annotators: 1" in found.notes


def test_files_of_peerannot_are_found_by_their_number(tmp_path):
    photos = tmp_path / "train"
    for n, name in enumerate(("x/b-1.png", "x/a-10.png", "y/a-0.png")):
        (photos / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (4, 4), 9 * n).save(photos / name)
    answers = {"0": {"7": 1}, "1": {"7": 0}, "10": {"9": 1, "7": 0}}
    found = load_table(written(tmp_path, answers, "answers.json"), photos)
    assert found.ids.tolist() == ["0", "1", "10"]
    assert found.images.read()[:, 0, 0, 0].tolist() == [18, 0, 9]


def test_doubts_stand_at_the_end_of_a_check(tmp_path, repository):
    Image.new("L", (4, 4)).save(tmp_path / "a.png")
    Image.new("L", (4, 4), 9).save(tmp_path / "b.png")
    path = written(tmp_path, STATE.format("status", 1, 2, 1), "t.csv")
    flags = ["--layout=long", "--network=small_cnn", "--batch_size=1"]
    flags += ["--holdout=0", f"--dataset={path}", "--progress=none"]
    done = subprocess.run(
        [sys.executable, "-m", "alim_keras.check", *flags],
        cwd=repository,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    *_, verdict, last = done.stdout.splitlines()
    assert done.returncode == 0 and verdict.startswith("Sound")
    assert "warning: columns that may say which answers count" in last
