"""Readers of what tools and public data sets export, one function for each.

A reader takes the cells of a table, or of JSON records, and the columns that
flags name, by their roles. It returns votes (see `tables.read_votes`), or the
columns of roles, or None: those that flags name; `"truth"`, true classes; and
`"verdict"`, what each row is to, `"accept"`, `"reject"` (a no) or `"ignore"`.
docs/formats.md shows their files.
"""

import collections
import contextlib
import functools
import json
import re
import urllib.parse
import xml.etree.ElementTree

import pandas as pd

from alim_keras.data.class_names import check_class_names
from alim_keras.errors import DataError
from alim_keras.errors import first_five
from alim_keras.errors import one_line

# Columns, and fields of exports, that name the file of an item.
IMAGE = ("image", "file", "filename", "file_name", "path", "image_path")
# What reading fails with where a file is not what it was taken for.
_UNSOUND = (AttributeError, LookupError, SyntaxError, TypeError, ValueError)
# States of an assignment whose answers count.
_COUNTS = {"approved", "submitted", "accepted", ""}
_FENCE = re.compile(r"\A\s*```\w*|```\s*\Z")
# Where a batch of a language model has the text of an answer.
_TEXTS = (
    "response.body.choices.0.message.content",
    "response.body.output.0.content.0.text",
    "result.message.content.0.text",
)


def at(value, path):
    """Returns what stands at a dotted path in JSON, or None.

    `*` takes every entry of a list or an object, and gives a list: "a.*.b" of
    {"a": [{"b": 1}, {"b": 2}]} is [1, 2]. Numbers count from 0, and JSON that
    stands in a text is opened.
    """
    first, _, rest = path.partition(".")
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(value)
    if isinstance(value, list):
        value = {str(number): entry for number, entry in enumerate(value)}
    if not isinstance(value, dict):
        return None
    if first == "*":
        found = [at(v, rest) if rest else v for v in value.values()]
        return [entry for entry in found if entry is not None]
    return at(value.get(first), rest) if rest else value.get(first)


def listed(value):
    """Returns a list of lists as one list, other values as they are."""
    if isinstance(value, list) and all(isinstance(v, list) for v in value):
        return [entry for entries in value for entry in entries]
    return value


def _one(cells, prefix, role, given):
    """Returns the column of a role among those that begin with a prefix."""
    names = [name for name in cells if name.startswith(prefix)]
    if role not in given and len(names) != 1:
        raise DataError(
            f"say with --{role}_column=NAME which of the columns counts. "
            f"Received: {first_five(names or [f'no column {prefix}...'])}"
        )
    return given.get(role) or names[0]


def _judged(cells, column):
    """Returns the column with verdicts for states of assignments, or None."""
    if column not in cells:
        return None
    counts = cells[column].fillna("").str.strip().str.lower().isin(_COUNTS)
    cells[column] = counts.map({True: "accept", False: "ignore"})
    return column


def _toloka(cells, given):
    label = _one(cells, "OUTPUT:", "label", given)
    golden = label.replace("OUTPUT:", "GOLDEN:")
    return {
        "id": _one(cells, "INPUT:", "id", given),
        "annotator": "ASSIGNMENT:worker_id",
        "label": label,
        "truth": golden if golden in cells else None,
        "verdict": _judged(cells, "ASSIGNMENT:status"),
    }


def _mturk(cells, given):
    return {
        "id": _one(cells, "Input.", "id", given),
        "annotator": "WorkerId",
        "label": _one(cells, "Answer.", "label", given),
        "verdict": _judged(cells, "AssignmentStatus"),
    }


def _open_images(cells, given):
    return {
        "id": "ImageID",
        "annotator": "Source",
        "label": "LabelName",
        "confidence": "Confidence",
    }


def _prodigy(cells, given):
    if not cells["answer"].isin(("accept", "reject", "ignore")).all():
        return None
    people, label = ("_annotator_id", "_session_id"), "label"
    if "accept" in cells:
        # Who rejects such a task says nothing against what is ticked.
        cells["answer"] = cells["answer"].replace("reject", "ignore")
        label = "accept"
    return {
        # `image` may hold the picture itself.
        "id": "path" if "path" in cells else None,
        "annotator": next((name for name in people if name in cells), None),
        "label": None if "candidates" in given else label,
        "verdict": "answer",
    }


def _zooniverse(cells, given):
    answers = cells["annotations"].map(json.loads)
    tasks = [*dict.fromkeys(listed(at([*answers], "*.*.task")))]
    task = given.pop("label", None) or (tasks[0] if len(tasks) == 1 else None)
    if task not in tasks:
        raise DataError(
            "say with --label_column=TASK which question counts. Received: "
            f"{first_five(tasks)}"
        )

    def labels_of(row):
        values = listed([v["value"] for v in row if v["task"] == task])
        # A survey has objects with the field choice.
        return at(values, "*.choice") or values

    def item_of(cell):
        ((number, data),) = json.loads(cell).items()
        files = [data[n] for n in data if n.strip("#!/ ").lower() in IMAGE]
        return next(filter(None, files), number)

    cells["label"] = answers.map(labels_of)
    cells["item"] = cells["subject_data"].map(item_of)
    # Who was not logged in has a name made of the address, and no number.
    return {"id": "item", "label": "label", "annotator": "user_name"}


def _batch(cells, given):
    records = cells.to_dict("records")
    tried = ([at(one, path) for one in records] for path in _TEXTS)
    texts = next((found for found in tried if any(found)), [])
    cells["candidates"] = [_answer_in(text or "") for text in texts]
    return {"id": "custom_id", "candidates": "candidates"}


def _answer_in(text):
    """Returns the list in JSON that a language model wrote, or its text."""
    try:
        value = json.loads(_FENCE.sub("", text))
    except (ValueError, RecursionError):
        return text
    if isinstance(value, dict):
        inner = [v for v in value.values() if isinstance(v, (list, dict, str))]
        return inner[0] if len(inner) == 1 else value
    return value


def _label_studio(cells, given, predicted=False):
    """Returns a row for each answer; predictions are some if `predicted`."""
    fields = list(dict.fromkeys(key for data in cells["data"] for key in data))
    fields = [key for key in fields if key.lower() in IMAGE] or fields
    if len(fields) != 1:
        raise DataError(
            f"the fields of data, {first_five(fields)}, could all name "
            "the item; export the tasks with one field called image"
        )
    votes, questions, counts = [], set(), collections.Counter()
    for number, task in enumerate(cells.to_dict("records")):
        item = task["data"].get(fields[0])
        if "local-files/?d=" in str(item):
            item = urllib.parse.unquote(item.partition("?d=")[2])
        votes.append((number, item, None, None, None, None))
        done, models = task["annotations"], task.get("predictions") or []
        counts.update(annotations=len(done), predictions=len(models))
        for one in [*done, *(models if predicted else ())]:
            with _export_of(f"label_studio, task {number}: results of choices"):
                labels = _choices(one, questions)
            if one.get("was_cancelled"):
                counts["cancelled"] += 1
                continue
            counts["without an answer"] += not labels
            who = one.get("completed_by", one.get("model_version"))
            if isinstance(who, dict):
                who = who.get("email") or who.get("username") or who["id"]
            is_true = one.get("ground_truth") and len(labels) == 1
            truth = labels[0] if is_true else None
            # Label Studio writes 0 where a model gave no score.
            score = one.get("score") or None
            votes.append((number, item, who, labels, score, truth))
    if len(questions) > 1:
        raise DataError(
            "choices of one question were expected; export one of them. "
            f"Received: {first_five(sorted(questions))}"
        )
    frame = _votes(votes, "task item annotator label confidence truth")
    people = frame["annotator"].nunique()
    counts = {"tasks": len(cells), "annotators": people, **counts}
    note = ", ".join(f"{count} {noun}" for noun, count in counts.items())
    if counts["predictions"] and not predicted:
        note += "; predictions count with --format=label_studio_predictions"
    frame.attrs["notes"] = [note]
    return frame.set_index("task")


def _choices(annotation, questions):
    """Returns the answers of an annotation; a taxonomy's with the way there."""
    labels = []
    # A comment or a box may stand beside the choices.
    for result in annotation["result"]:
        value = result["value"]
        found = value.get("choices") or value.get("taxonomy")
        if found:
            questions.add(str(result.get("from_name")))
            labels += ["/".join(f) if type(f) is list else f for f in found]
    return labels


def _votes(rows, names, *notes):
    frame = pd.DataFrame(rows, columns=names.split(), dtype=object)
    frame.attrs = {"layout": "long", "notes": [*notes]}
    return frame.rename_axis("row")


# The name of a format; the columns by which it is known; its reader.
TABLES = {
    "toloka": ({"ASSIGNMENT:worker_id"}, _toloka),
    "mturk": ({"HITId", "WorkerId", "AssignmentStatus"}, _mturk),
    "open_images": (
        {"ImageID", "Source", "LabelName", "Confidence"},
        _open_images,
    ),
    "prodigy": ({"answer"}, _prodigy),
    "zooniverse": ({"annotations", "subject_data"}, _zooniverse),
    "openai_batch": ({"custom_id", "response"}, _batch),
    "anthropic_batch": ({"custom_id", "result"}, _batch),
    "label_studio": ({"data", "annotations"}, _label_studio),
    "label_studio_predictions": (
        {"data", "annotations", "-"},
        functools.partial(_label_studio, predicted=True),
    ),
}


def known_table(cells, format, given):
    """Returns the name of an export, and its votes or roles; or None and {}."""
    for name, (columns, reader) in TABLES.items():
        if name == format or (format is None and columns <= {*cells}):
            with _export_of(name):
                found = reader(cells, given)
            if found is not None:
                return name, found
    return None, {}


def records_of(value, format):
    """Returns parsed JSON as records where it is known what it is, or votes."""
    if format == "fiftyone" or not format and _is(value, "classes", "labels"):
        with _export_of("fiftyone"):
            return _fiftyone(value)
    entries = at(value, "*") or [] if isinstance(value, (list, dict)) else []
    kinds = {type(entry) for entry in entries}
    # {"0": {"12": 1}}: other numbers may be scores, by names counts of votes.
    people = entries if _is(value) and kinds == {dict} else ()
    votes = [pair for votes in people for pair in votes.items()]
    is_known = votes and all(n.isdigit() and type(v) is int for n, v in votes)
    if format == "peerannot" or is_known:
        with _export_of("peerannot"):
            return _peerannot(value)
    if kinds == {list} and isinstance(value, list):
        # Of transformers' pipelines, a list of scored labels for each image.
        return [{"predictions": row} for row in value]
    if entries and all(_is(v, "dataset_name", "annotations") for v in entries):
        return listed(at(value, "*.annotations"))
    return value


@contextlib.contextmanager
def _export_of(name):
    """Says which export a file is not that a reader fails on."""
    try:
        yield
    except DataError:
        raise
    except _UNSOUND as error:
        raise DataError(
            f"is no sound export of {name} ({type(error).__name__}: "
            f"{one_line(error)}); --format=csv, json or jsonl reads a table"
        ) from error


def _is(value, *fields):
    return isinstance(value, dict) and {*fields} <= {*value}


def _peerannot(value):
    rows = [
        (item, who, label)
        for item, votes in value.items()
        for who, label in (votes or {None: None}).items()
    ]
    note = "read as an export of peerannot"
    return _votes(rows, "item annotator label", note)


def _fiftyone(value):
    rows = []
    for item, targets in value["labels"].items():
        for one in targets if isinstance(targets, list) else [targets]:
            score = None
            if isinstance(one, dict):
                one, score = one["label"], one.get("confidence")
            one = value["classes"][one] if isinstance(one, int) else one
            rows.append((item, one, score))
    note = "read as an export of fiftyone"
    frame = _votes(rows, "item label confidence", note)
    names = check_class_names(value["classes"], "the list of classes")
    frame.attrs["class_names"] = names
    return frame


def cvat(text):
    """Returns the votes of CVAT's XML for images: their tags."""
    with _export_of("cvat"):
        images = xml.etree.ElementTree.fromstring(text).findall("image")
    rows = [
        (image.get("name"), [tag.get("label") for tag in image.findall("tag")])
        for image in images
    ]
    shapes = sum(tag.tag != "tag" for image in images for tag in image)
    note = f"images: {len(images)}, shapes left out: {shapes}"
    return _votes(rows, "item label", "read as an export of cvat", note)
