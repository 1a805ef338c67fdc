"""Readers of what tools and public data sets export, one function for each.

A reader of a table takes its cells and the flags that name columns, and
returns roles: those flags as this export has them, and if there are any
`"truth"`, the column of true classes, and `"verdict"`, a list of `"accept"`,
`"reject"` (a no) and `"ignore"` for the rows. A reader of JSON takes the parsed
file and returns votes (see `tables.read_votes`), or records of a table.
docs/formats.md shows a file of each.
"""

import collections
import contextlib
import json
import re
import urllib.parse
import xml.etree.ElementTree

import pandas as pd

from alim_keras.data.class_names import shown
from alim_keras.errors import DataError
from alim_keras.errors import first_five
from alim_keras.errors import one_line

# Columns, and fields of exports, that name the file of an item.
IMAGE = ("image", "file", "filename", "file_name", "path", "image_path")
# Assignments in these states are answers that count.
_COUNTS = {"approved", "submitted", "accepted", ""}
_FENCE = re.compile(r"\A\s*```\w*\s*(.*?)\s*```\s*\Z", re.DOTALL)
# Where a batch of a language model has the text of its answer.
_TEXTS = (
    "response.body.choices.0.message.content",
    "response.body.output.*.content.0.text",
    "result.message.content.0.text",
)


def at(value, path):
    """Returns what stands at a dotted path in JSON, or None.

    `*` takes every entry of a list or an object, and gives a list; numbers
    count from 0. JSON that stands in a text is opened.

    Example:

    >>> at({"a": [{"b": 1}, {"b": 2}]}, "a.*.b")
    [1, 2]
    """
    first, _, rest = path.partition(".")
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(value)
    if first == "*" and isinstance(value, (list, dict)):
        entries = value.values() if isinstance(value, dict) else value
        found = [at(entry, rest) if rest else entry for entry in entries]
        return [entry for entry in found if entry is not None]
    if isinstance(value, list) and first.isdecimal():
        value = dict(enumerate(value)).get(int(first))
    else:
        value = value.get(first) if isinstance(value, dict) else None
    return at(value, rest) if rest else value


def listed(value):
    """Returns a list of lists as one list, other values as they are."""
    if isinstance(value, list) and all(isinstance(v, list) for v in value):
        return [entry for entries in value for entry in entries]
    return value


def _one(cells, prefix, flag, given):
    """Returns the column of a role among those that begin with a prefix."""
    names = [name for name in cells if name.startswith(prefix)]
    if given.get(flag) or len(names) == 1:
        return given.get(flag) or names[0]
    raise DataError(
        f"say with --{flag}=NAME which of the columns counts. Received: "
        f"{first_five(names) or f'no column {prefix}...'}"
    )


def _verdicts(states):
    """Returns what counts, by the state of each row's assignment."""
    counts = states.map(lambda s: str(s or "").strip().lower() in _COUNTS)
    return counts.map({True: "accept", False: "ignore"}).tolist()


def _toloka(cells, given):
    label = _one(cells, "OUTPUT:", "label_column", given)
    golden, status = label.replace("OUTPUT:", "GOLDEN:"), "ASSIGNMENT:status"
    roles = {
        "layout": "long",
        "id_column": _one(cells, "INPUT:", "id_column", given),
        "annotator_column": "ASSIGNMENT:worker_id",
        "label_column": label,
        "truth": golden if golden in cells else None,
    }
    if status in cells:
        roles["verdict"] = _verdicts(cells[status]), status
    return roles


def _mturk(cells, given):
    answers = [name for name in cells if name.startswith("Answer.")]
    ticks = cells[answers].map(lambda cell: str(cell or "").strip().lower())
    if len(answers) > 1 and ticks.isin(("true", "false", "")).all(axis=None):
        # A column for each box, or for each choice of a question.
        names = [name.rpartition(".")[2] for name in answers]
        rows = ticks.eq("true").to_numpy()
        cells["Answer."] = [
            [name for name, is_on in zip(names, row) if is_on] for row in rows
        ]
        cells.drop(columns=answers, inplace=True)
    return {
        "layout": "long",
        "id_column": _one(cells, "Input.", "id_column", given),
        "annotator_column": "WorkerId",
        "label_column": _one(cells, "Answer.", "label_column", given),
        "verdict": (_verdicts(cells["AssignmentStatus"]), "AssignmentStatus"),
    }


def _open_images(cells, given):
    return {
        "layout": "long",
        "id_column": "ImageID",
        "annotator_column": "Source" if "Source" in cells else None,
        "label_column": "LabelName",
        "confidence_column": "Confidence",
    }


def _prodigy(cells, given):
    is_choice = "accept" in cells
    verdict = cells["answer"]
    if is_choice:
        # Who rejects such a task says nothing against what is ticked.
        verdict = verdict.replace("reject", "ignore")
    people = ("_annotator_id", "_session_id")
    return {
        "layout": "long",
        # `image` may hold the picture itself.
        "id_column": next((n for n in ("path", "image") if n in cells), None),
        "annotator_column": next((n for n in people if n in cells), None),
        "label_column": "accept" if is_choice else "label",
        "verdict": (verdict.tolist(), "answer"),
    }


def _zooniverse(cells, given):
    answers = cells["annotations"].map(json.loads)
    tasks = [*dict.fromkeys(one["task"] for row in answers for one in row)]
    task = given.pop("label_column", None)
    if task not in tasks and len(tasks) != 1:
        raise DataError(
            "say with --label_column=TASK which question counts. Received: "
            f"{first_five(tasks)}"
        )

    def labels_of(row):
        values = [one["value"] for one in row if one["task"] == task]
        # A survey has objects with the field choice.
        return at(listed(values), "*.choice") or listed(values)

    def item_of(cell):
        number, data = next(iter(json.loads(cell).items()))
        files = [data[n] for n in data if n.strip("#!/ ").lower() in IMAGE]
        return next(filter(None, files), number)

    task = task or tasks[0]
    cells["label"] = answers.map(labels_of)
    cells["item"] = cells["subject_data"].map(item_of)
    roles = {"layout": "long", "id_column": "item", "label_column": "label"}
    # Who was not logged in has a name made of the address, and no number.
    return {**roles, "annotator_column": "user_name"}


def _batch(cells, given):
    texts = []
    for record in cells.to_dict("records"):
        found = (at(record, path) for path in _TEXTS)
        text = next(filter(None, found), None)
        texts.append(text[-1] if isinstance(text, list) else text)
    cells["candidates"] = [_answer_in(text) for text in texts]
    roles = {"layout": "list", "id_column": "custom_id"}
    return {**roles, "candidates_column": "candidates"}


def _answer_in(text):
    """Returns the list in JSON that a language model wrote, or its text."""
    plain = _FENCE.sub(r"\1", text or "")
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(plain)
        if isinstance(value, dict):
            lists = [v for v in value.values() if isinstance(v, (list, dict))]
            only = [*value.values()] if len(value) == 1 else lists
            value = only[0] if len(only) == 1 else value
        return value if isinstance(value, (list, dict)) else [value]
    return plain


# The name of a format; by which columns it is known; its reader.
TABLES = {
    "toloka": ({"ASSIGNMENT:worker_id"}.issubset, _toloka),
    "mturk": ({"HITId", "WorkerId", "AssignmentStatus"}.issubset, _mturk),
    "open_images": (
        {"ImageID", "LabelName", "Confidence"}.issubset,
        _open_images,
    ),
    "prodigy": ({"answer", "_task_hash"}.issubset, _prodigy),
    "zooniverse": (
        {"classification_id", "annotations", "subject_data"}.issubset,
        _zooniverse,
    ),
    "batch": (
        lambda names: "custom_id" in names and {"response", "result"} & names,
        _batch,
    ),
}


def known_table(cells, format, given):
    """Returns the name and the roles of an export; None and {} for others."""
    for name, (is_known, reader) in TABLES.items():
        if name == format or (format is None and is_known({*cells})):
            try:
                return name, reader(cells, given)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                if isinstance(error, DataError):
                    raise
                raise DataError(
                    f"it looks like an export of {name} and is none "
                    f"({type(error).__name__}: {one_line(error)}); say "
                    "--format=csv or --format=json to read it as a table"
                ) from error
    return None, {}


def _is_tasks(value):
    return isinstance(value, list) and all(
        isinstance(task, dict)
        and isinstance(task.get("data"), dict)
        and isinstance(task.get("annotations"), list)
        for task in value
    )


def label_studio(tasks, predicted=False):
    """Returns the votes of an export, a row for each question answered.

    `predicted` takes the predictions of models as answers too.
    """
    fields = list(dict.fromkeys(key for task in tasks for key in task["data"]))
    fields = [key for key in fields if key.lower() in IMAGE] or fields
    if len(fields) != 1:
        raise DataError(
            f"the fields of data, {first_five(fields)}, could all name "
            "the item; export the tasks with one field called image"
        )
    votes, questions, counts = [], set(), collections.Counter()
    for number, task in enumerate(tasks):
        item = task["data"].get(fields[0])
        if "local-files/?d=" in str(item):
            item = urllib.parse.unquote(item.partition("?d=")[2])
        votes.append((number, item, None, None, None, None))
        given, models = task["annotations"], task.get("predictions") or []
        counts["annotations"] += len(given)
        counts["predictions"] += len(models)
        for one in [*given, *(models if predicted else ())]:
            labels = _choices(one, number, questions)
            if one.get("was_cancelled"):
                counts["cancelled"] += 1
                continue
            counts["without an answer"] += not labels
            who = one.get("completed_by", one.get("model_version"))
            if isinstance(who, dict):
                who = who.get("email") or who.get("username") or who["id"]
            is_true = one.get("ground_truth") and len(labels) == 1
            for label in labels or [None]:
                truth = label if is_true else None
                row = (number, item, who, label, one.get("score"), truth)
                votes.append(row)
    if len(questions) > 1:
        raise DataError(
            "choices of one question were expected; export one of them. "
            f"Received: {first_five(sorted(questions))}"
        )
    names = ("task", "item", "annotator", "label", "confidence", "truth")
    frame = pd.DataFrame(votes, columns=names, dtype=object).set_index("task")
    said = ", ".join(f"{count} {name}" for name, count in counts.items())
    frame.attrs["notes"] = [
        f"{len(tasks)} tasks, {said}, {frame['annotator'].nunique()} annotators"
        "; predictions count with --format=label_studio_predictions only"
    ]
    frame.attrs["layout"] = "long"
    return frame


def _choices(annotation, number, questions):
    """Returns the answers of an annotation or a prediction."""
    labels = []
    try:
        # A comment or a box may stand beside the choices.
        for result in annotation["result"]:
            value = result["value"]
            found = value.get("choices") or value.get("taxonomy")
            if found:
                questions.add(str(result.get("from_name")))
                # A taxonomy has the way to each choice.
                labels += ["/".join(one) if isinstance(one, list) else one for one in found]
    except (AttributeError, KeyError, TypeError) as error:
        raise DataError(
            f"task {number}: results of choices were expected. "
            f"Received: {shown(annotation)}"
        ) from error
    return labels


def _long(rows, names=("item", "annotator", "label")):
    """Returns a frame of votes."""
    if not rows:
        raise DataError("it holds no item")
    index = pd.RangeIndex(len(rows), name="row")
    frame = pd.DataFrame(rows, index, names, dtype=object)
    frame.attrs["layout"] = "long"
    return frame


def _peerannot(value):
    return _long(
        [
            (item, who, label)
            for item, votes in value.items()
            for who, label in (votes or {None: None}).items()
        ]
    )


def _is_peerannot(value):
    return isinstance(value, dict) and all(
        isinstance(votes, dict)
        and all(type(label) is int for label in votes.values())
        and all(name.isdecimal() for name in (item, *votes))
        for item, votes in value.items()
    )


def _fiftyone(value):
    names = value["classes"]
    rows = []
    for item, targets in value["labels"].items():
        if not isinstance(targets, list):
            targets = [targets]
        for target in targets or [None]:
            score = None
            if isinstance(target, dict):
                score, target = target.get("confidence"), target.get("label")
            if isinstance(target, int):
                target = names[target]
            rows.append((item, target, score))
    frame = _long(rows, ("item", "label", "confidence"))
    frame.attrs["class_names"] = names
    return frame


def _has(**kinds):
    """Returns a test whether JSON is an object with such fields."""
    return lambda value: isinstance(value, dict) and all(
        isinstance(value.get(name), kind) for name, kind in kinds.items()
    )


def _is_dcic(value):
    return isinstance(value, list) and all(
        _has(dataset_name=str, annotations=list)(one) for one in value
    )


# The name of a format; whether parsed JSON is such; its reader.
JSON = {
    "label_studio": (_is_tasks, label_studio),
    "label_studio_predictions": (
        lambda value: False,
        lambda value: label_studio(value, predicted=True),
    ),
    "fiftyone": (_has(classes=list, labels=dict), _fiftyone),
    "dcic": (_is_dcic, lambda value: listed(at(value, "*.annotations"))),
    "peerannot": (_is_peerannot, _peerannot),
    # Zero-shot pipelines: a list of scored labels for each image.
    "zero_shot": (
        lambda value: isinstance(value, list)
        and all(isinstance(row, list) for row in value),
        lambda value: [{"predictions": row} for row in value],
    ),
}


def known_json(value, format):
    """Returns the name and the reader of an export, or None and None."""
    for name, (is_known, reader) in JSON.items():
        if name == format or (format is None and value and is_known(value)):
            return name, reader
    return None, None


def cvat(text):
    """Returns the votes of CVAT's XML for images, its tags."""
    try:
        root = xml.etree.ElementTree.fromstring(text)
    except xml.etree.ElementTree.ParseError as error:
        raise DataError(f"is not sound XML ({one_line(error)})") from error
    images = root.findall("image")
    rows = [
        (image.get("name"), tag)
        for image in images
        for tag in [one.get("label") for one in image.findall("tag")] or [None]
    ]
    frame = _long(rows, ("item", "label"))
    boxes = sum(len(image) - len(image.findall("tag")) for image in images)
    frame.attrs["notes"] = [
        f"an export of cvat: {len(images)} images; {boxes} shapes are no "
        "classes of an image: left out"
    ]
    return frame
