"""Files as tools and public data sets write them, and the sets in them.

Most stand in docs/formats.md, with the headers and fields of real exports; the
rows are made up.
"""

import json
import pathlib
import re

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "formats.md"
PAGE = PAGE.read_text(encoding="utf-8")


def on_page(title):
    """Returns the file below a heading of docs/formats.md."""
    section = PAGE.split(f"\n## {title}\n")[1]
    block = re.search(r"^```\w*\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return block[1]


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def rows(names, *values):
    return lines(*(dict(zip(names.split(), row)) for row in values))


def result(*choices, **more):
    value = {"choices": list(choices)}
    one = {"from_name": "kind", "to_name": "image", "type": "choices"}
    return {"result": [{**one, "value": value}] if choices else [], **more}


def task(image, *path):
    value = {"from_name": "k", "value": {"taxonomy": [list(path)]}}
    annotation = {"completed_by": 1, "result": [value]}
    return {"data": {"image": image}, "annotations": [annotation]}


def message(name, text):
    content = {"content": [{"type": "text", "text": text}]}
    return {"custom_id": name, "result": {"message": content}}


LABEL_STUDIO = on_page("Label Studio")
A, B = (one["data"]["image"] for one in json.loads(LABEL_STUDIO))
OPEN_IMAGES, TOLOKA = on_page("Open Images"), on_page("Toloka")
ZOONIVERSE = on_page("Zooniverse")
TAXONOMY = [task("a.jpg", "animal", "cat"), task("b.jpg", "animal", "dog")]
BINARY = rows(
    "image label answer _task_hash",
    ("a.jpg", "CAT", "accept", 1),
    ("b.jpg", "CAT", "reject", 2),
    ("b.jpg", "DOG", "accept", 3),
    ("c.jpg", "DOG", "reject", 4),
)
TASK_ANSWERS = (
    '"HITId","WorkerId","AssignmentStatus","Input.image_url",'
    '"Answer.taskAnswers"\n"3A","A1","Approved","https://x.example/a.jpg",'
    '"[{""kind"":{""label"":""cat""}}]"\n"3B","A1","Approved",'
    '"https://x.example/b.jpg","[{""kind"":{""label"":""dog""}}]"\n'
)
METADATA = rows(
    "file_name labels", ("a.jpg", ["cat", "dog"]), ("b.jpg", ["dog"])
)
PIPELINE = [
    [{"score": 0.7, "label": "cat"}, {"score": 0.3, "label": "dog"}],
    [{"score": 0.9, "label": "dog"}, {"score": 0.1, "label": "cat"}],
]
MESSAGES = lines(
    message("a.jpg", '{"cat": 0.8, "dog": 0.2}'), message("b.jpg", "dog")
)
EMOTIONS = (
    "neutral happiness surprise sadness anger disgust fear contempt".split()
)
FER = {"layout": "counts", "id_column": "Image name", "class_names": EMOTIONS}
FER["where"] = ["Usage=Training", "Image name!="]
SHAPES = {"layout": "probabilities", "id_column": "GalaxyID"}
SHAPES["class_names"] = ["Class1.1", "Class1.2", "Class1.3"]
TOP = [{"n": "cat", "p": 0.6}, {"n": "dog", "p": 0.1}]
PATHS = {"id_column": "data.file", "layout": "long"}
PATHS |= {"label_column": "out.top.*.n", "confidence_column": "out.top.*.p"}
CAT, CAT_DOG, DOG = {"cat"}, {"cat", "dog"}, {"dog"}
BOTH = {"a.jpg": CAT_DOG, "b.jpg": DOG}
X = "https://x.example/"
LINKS = {f"{X}a.jpg": CAT, f"{X}b.jpg": DOG}

# What a file holds, how it is read, and the sets in it.
FILES = {
    "label studio": (LABEL_STUDIO, {}, {A: CAT_DOG, B: DOG}),
    "label studio with predictions": (
        LABEL_STUDIO,
        {"format": "label_studio_predictions"},
        {A: {"cat", "dog", "owl"}, B: DOG},
    ),
    "label studio, taxonomy": (
        TAXONOMY,
        {},
        {"a.jpg": {"animal/cat"}, "b.jpg": {"animal/dog"}},
    ),
    "prodigy, choices": (
        on_page("Prodigy"),
        {},
        {"a.jpg": CAT_DOG, "b.jpg": CAT},
    ),
    # c is only said not to be a dog.
    "prodigy, binary": (
        BINARY,
        {},
        {"a.jpg": {"CAT"}, "b.jpg": {"DOG"}, "c.jpg": {"CAT"}},
    ),
    "toloka": (TOLOKA, {}, {f"{X}a.jpg": CAT, f"{X}b.jpg": CAT_DOG}),
    "crowd-kit": (
        "task,worker,label\na,w1,cat\na,w2,dog\nb,w1,dog\n",
        {},
        {"a": CAT_DOG, "b": DOG},
    ),
    "mturk": (on_page("Mechanical Turk"), {}, LINKS),
    "mturk, answers in JSON": (
        TASK_ANSWERS,
        {"label_column": "Answer.taskAnswers.0.kind.label"},
        LINKS,
    ),
    # A person's no takes out what the machine named.
    "open images": (
        OPEN_IMAGES,
        {},
        {
            "000060e3121c7305": {"/m/06ht1", "/m/01prls"},
            "00018c8cbcbd39a7": {"/m/05wrt"},
        },
    ),
    "zooniverse": (
        ZOONIVERSE,
        {},
        {"a.jpg": {"Smooth", "Disk"}, "b.jpg": {"Disk"}},
    ),
    "cvat": (on_page("CVAT"), {}, BOTH),
    "fiftyone": (
        json.loads(on_page("FiftyOne")),
        {"empty_set": "drop"},
        {"a": CAT_DOG, "b": DOG, "c": {"owl"}},
    ),
    "metadata of an image folder": (METADATA, {}, BOTH),
    "zero-shot, labels and scores": (
        on_page("Zero-shot pipelines"),
        {"top_p": 0.9},
        BOTH,
    ),
    "zero-shot, a list for each image": (
        PIPELINE,
        {"ids": "{}.jpg", "min_share": 0.25},
        {"0.jpg": CAT_DOG, "1.jpg": DOG},
    ),
    "zero-shot, scored labels": (
        rows("image predictions", *zip(BOTH, PIPELINE)),
        {"top_k": 1},
        {"a.jpg": CAT, "b.jpg": DOG},
    ),
    "zero-shot, scores by label": (
        rows(
            "image scores",
            ("a.jpg", {"cat": 0.7, "dog": 0.3}),
            ("b.jpg", {"cat": 0.05, "dog": 0.95}),
        ),
        {"candidates_column": "scores", "min_confidence": 0.1},
        BOTH,
    ),
    "answers of a language model": (
        on_page("Batches of a language model"),
        {},
        {**BOTH, "c.jpg": {"owl"}},
    ),
    "messages of a language model": (MESSAGES, {}, BOTH),
    "dcic": (
        on_page("DCIC"),
        {},
        {
            "Benthic/fold1/a.png": {"coral", "star"},
            "Benthic/fold1/b.png": {"star"},
        },
    ),
    "peerannot": (
        json.loads(on_page("peerannot")),
        {"class_names": ["x", "y", "z"]},
        {"0": {"y", "z"}, "1": {"x"}},
    ),
    "fer+": (
        on_page("FER+"),
        {**FER, "min_votes": 2},
        {
            "fer0000000.png": {"neutral", "anger", "disgust"},
            "fer0000001.png": {"neutral"},
        },
    ),
    "fer+, by share": (
        on_page("FER+"),
        {**FER, "min_share": 0.125},
        {
            "fer0000000.png": {"neutral", "anger", "disgust"},
            "fer0000001.png": {"neutral", "surprise", "sadness"},
        },
    ),
    "galaxy zoo": (
        on_page("Galaxy Zoo"),
        {**SHAPES, "min_share": 0.1},
        dict.fromkeys(("100008", "100023"), {"Class1.1", "Class1.2"}),
    ),
    "clothing1m": (
        on_page("Clothing1M"),
        {"columns": ["id", "label"], "class_names": ["x", "y", "z"]},
        {"images/0/00/1.jpg": {"z"}, "images/0/00/2 b.jpg": {"x"}},
    ),
    "lists as pandas writes them": (
        "image,labels\na.jpg,\"['cat', 'dog']\"\nb.jpg,\"('dog',)\"\n",
        {},
        BOTH,
    ),
    "records somewhere in JSON": (
        {"v": 1, "data": {"items": [{"id": "a", "labels": ["cat", "dog"]}]}},
        {"records": "data.items"},
        {"a": CAT_DOG},
    ),
    "paths into JSON": (
        lines({"data": {"file": "a.jpg"}, "out": {"top": TOP}}),
        {**PATHS, "min_confidence": 0.5, "class_names": ["cat", "dog"]},
        {"a.jpg": CAT},
    ),
    "what items are not": (
        "image,label\na.jpg,cat\na.jpg,owl\nb.jpg,dog\n",
        {"layout": "complementary", "class_names": ["cat", "dog", "owl"]},
        {"a.jpg": DOG, "b.jpg": {"cat", "owl"}},
    ),
}
