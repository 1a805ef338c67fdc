import json
import pathlib
import xml.etree.ElementTree as ElementTree

import pandas as pd
import pytest
from sample_report import HOSTILE
from sample_report import sample_audit

from alim_keras.data import read_votes
from alim_keras.errors import DataError
from alim_keras.report import tasks

IDS = [f"photos & more/{row:03d}.jpg" for row in range(200)]


@pytest.fixture(scope="module")
def audit():
    return sample_audit(ids=IDS)


def written(folder, format, audit):
    paths = tasks.write(folder, format, audit.review, audit.class_names)
    return [pathlib.Path(path).read_text(encoding="utf-8") for path in paths]


def test_tasks_of_label_studio(tmp_path, audit):
    found, view = written(tmp_path, "label_studio", audit)
    for task, row in zip(
        json.loads(found), audit.review.itertuples(), strict=True
    ):
        (prediction,) = task["predictions"]
        assert prediction["score"] == pytest.approx(row.probability)
        (result,) = prediction["result"]
        assert result["value"] == {"choices": [row.label]}
        place = row.id.replace(" ", "%20").replace("&", "%26")
        assert task["data"] == {
            "image": f"/data/local-files/?d={place}",
            "reason": row.reason,
        }
    view = ElementTree.fromstring(view)
    assert [c.get("value") for c in view.iter("Choice")] == list(HOSTILE)
    # The names by which a result finds its question and its picture.
    assert view.find("Choices").get("name") == result["from_name"]
    assert view.find("Choices").get("toName") == view.find("Image").get("name")


# A person answered every task but the third.
def answered_label_studio(text):
    done = json.loads(text)
    for number, task in enumerate(done):
        (answer,) = task.pop("predictions")
        answer["result"][0]["value"]["choices"] = [HOSTILE[number % 5]]
        answer["completed_by"] = 1
        task["annotations"] = [answer] if number != 2 else []
    return json.dumps(done)


def answered_cvat(text):
    root = ElementTree.fromstring(text)
    for number, image in enumerate(root.iter("image")):
        image.find("tag").set("label", HOSTILE[number % 5])
        if number == 2:
            image.remove(image.find("tag"))
    return ElementTree.tostring(root, encoding="unicode")


def answered_fiftyone(text):
    content = json.loads(text)
    # FiftyOne names images without their ending.
    assert list(content["labels"])[0].startswith("photos & more/")
    for number, name in enumerate(list(content["labels"])):
        content["labels"][name] = number % 5
        if number == 2:
            del content["labels"][name]
    return json.dumps(content)


@pytest.mark.parametrize(
    "format, ending, answer",
    [
        ("label_studio", "json", answered_label_studio),
        ("cvat", "xml", answered_cvat),
        ("fiftyone", "json", answered_fiftyone),
    ],
)
def test_what_comes_back_are_answers(tmp_path, audit, format, ending, answer):
    texts = written(tmp_path, format, audit)
    export = tmp_path / f"export.{ending}"
    export.write_text(answer(texts[0]), encoding="utf-8")
    votes = read_votes(str(export), class_names=HOSTILE)
    found = tasks.answers(votes, IDS, HOSTILE)
    listed = audit.review["id"].tolist()
    expected = {name: HOSTILE[n % 5] for n, name in enumerate(listed)}
    del expected[listed[2]]
    assert found == expected


def test_most_votes_make_an_answer():
    rows = [
        ("a.jpg", "cat"), ("a.jpg", "dog"), ("a.jpg", "cat"),
        ("b", "cat"), ("c.jpg", "cat"), ("c.jpg", "dog"), ("d.jpg", None),
        ("f", "dog"), ("elsewhere.jpg", "cat"),
    ]  # fmt: skip
    votes = pd.DataFrame(rows, columns=["item", "label"])
    ids = ["a.jpg", "b.jpg", "c.jpg", "d.jpg", "f.jpg", "f.png"]
    # Two tie on c; f could be either of two.
    names = ["cat", "dog"]
    assert tasks.answers(votes, ids, names) == {"a.jpg": "cat", "b.jpg": "cat"}


def test_a_no_is_no_answer_and_a_number_is_a_class():
    rows = [("a", "cat", 0.0), ("b", "1", None), ("c", "0", 0.0)]
    rows += [("c", "cat", None), ("d", None, None)]
    votes = pd.DataFrame(rows, columns=["item", "label", "confidence"])
    names = ["cat", "dog"]
    assert tasks.answers(votes, [*"abcd"], names) == {"b": "dog"}
    with pytest.raises(DataError, match="4 candidate sets are empty"):
        tasks.answers(votes.assign(label=None), [*"abcd"], names)
    with pytest.raises(DataError, match="cow"):
        tasks.answers(votes.assign(label="cow"), [*"abcd"], names)
