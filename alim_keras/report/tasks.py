"""A review list as tasks of other programs, with suggestions; and back."""

import json
import os
import urllib.parse
import xml.etree.ElementTree as ElementTree

import pandas as pd

from alim_keras.files import write_atomically

FORMATS = ("csv", "label_studio", "cvat", "fiftyone")
# Where Label Studio serves files from below its document root.
_LOCAL = "/data/local-files/?d="


def write(folder, format, review, class_names):
    """Writes a review list for another program; returns a list of the paths.

    `"label_studio"` has tasks with the settled labels as predictions, and a
    labelling interface; `"cvat"` tags in CVAT's XML; `"fiftyone"` a labels
    file, in which images have no ending; `"csv"` is review.csv itself.
    """
    texts, rows = {}, review.to_dict("records")
    if format == "label_studio":
        tasks = [_task(row) for row in rows]
        texts["json"] = json.dumps(tasks, ensure_ascii=False, indent=1)
        view = ElementTree.Element("View")
        ElementTree.SubElement(view, "Image", name="image", value="$image")
        form = {"name": "label", "toName": "image", "showInline": "true"}
        choices = ElementTree.SubElement(view, "Choices", form)
        for name in class_names:
            ElementTree.SubElement(choices, "Choice", value=name)
        texts["xml"] = ElementTree.tostring(view, encoding="unicode")
    elif format == "cvat":
        root = ElementTree.Element("annotations")
        ElementTree.SubElement(root, "version").text = "1.1"
        for number, row in enumerate(rows):
            named = {"id": str(number), "name": row["id"]}
            image = ElementTree.SubElement(root, "image", named)
            label = {"label": row["label"], "source": "auto"}
            ElementTree.SubElement(image, "tag", label)
        texts["xml"] = ElementTree.tostring(root, encoding="unicode")
    elif format == "fiftyone":
        labels = {
            os.path.splitext(row["id"])[0]: {
                "label": list(class_names).index(row["label"]),
                "confidence": row["probability"],
            }
            for row in rows
        }
        found = {"classes": list(class_names), "labels": labels}
        texts["json"] = json.dumps(found, ensure_ascii=False, indent=1)
    paths = []
    for ending, text in texts.items():
        paths.append(os.path.join(folder, f"review.{format}.{ending}"))
        write_atomically(paths[-1], text)
    return paths


def _task(row):
    """Returns a task of Label Studio for a row of the review list."""
    result = {"from_name": "label", "to_name": "image", "type": "choices"}
    result["value"] = {"choices": [row["label"]]}
    prediction = {"model_version": "alim_keras", "result": [result]}
    prediction["score"] = row["probability"]
    image = _LOCAL + urllib.parse.quote(row["id"])
    data = {"image": image, "reason": row["reason"]}
    return {"data": data, "predictions": [prediction]}


def answers(votes, ids, class_names):
    """Returns the class that most people gave to each item, by its id.

    The frame of votes names items by `ids`, or by these without their ending.
    An item on which two classes have most votes is left out, or whose class
    as many reject as name.
    """
    # Here, as it takes a second that --help need not wait for.
    from alim_keras.data import sets_of_votes

    rules = {"empty_set": "drop", "duplicates": "union"}
    _, votes = sets_of_votes(votes, class_names=class_names, **rules)
    stems = pd.Series(ids, [os.path.splitext(name)[0] for name in ids])
    # A whole id comes before the beginning of another.
    known = stems[~stems.index.duplicated(keep=False)].to_dict()
    known |= {name: name for name in ids}
    votes = votes.assign(item=votes["item"].map(known))
    counts = votes[["item", "label"]].value_counts().reset_index()
    best = counts["count"] == counts.groupby("item")["count"].transform("max")
    best = counts[best].drop_duplicates("item", keep=False)
    return dict(zip(best["item"], best["label"], strict=True))
