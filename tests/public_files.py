"""Files as tools and public data sets write them, and the sets in them.

The headers and fields are those of real exports; the rows are made up.
"""

import json


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def result(*choices, **more):
    value = {"choices": list(choices)}
    one = {"from_name": "kind", "to_name": "image", "type": "choices"}
    return {"result": [{**one, "value": value}] if choices else [], **more}


def tree(*paths):
    value = {"taxonomy": [list(path) for path in paths]}
    return {"completed_by": 1, "result": [{"from_name": "k", "value": value}]}


LABEL_STUDIO = [
    {
        "id": 1,
        "data": {"image": "/data/upload/1/0a1b2c3d-a.jpg"},
        "annotations": [
            result("cat", completed_by=1, ground_truth=True),
            result("dog", completed_by=2),
            result("owl", completed_by=3, was_cancelled=True),
        ],
        "predictions": [result("owl", model_version="m1", score=0.8)],
    },
    {
        "id": 2,
        "data": {"image": "/data/upload/1/0a1b2c3d-b.jpg"},
        "annotations": [
            result("dog", completed_by=1),
            result(completed_by=2),
        ],
        "predictions": [result("dog", model_version="m1", score=0.9)],
    },
]
A, B = (one["data"]["image"] for one in LABEL_STUDIO)
TAXONOMY = [
    {"data": {"image": "a.jpg"}, "annotations": [tree(["animal", "cat"])]},
    {"data": {"image": "b.jpg"}, "annotations": [tree(["animal", "dog"])]},
]
OPTIONS = [{"id": "cat", "text": "Cat"}, {"id": "dog", "text": "Dog"}]
PRODIGY = {"options": OPTIONS, "_input_hash": 7, "_task_hash": 4}
CHOICES = lines(
    *(
        {
            **PRODIGY,
            "image": image,
            "accept": accept,
            "answer": answer,
            "_annotator_id": who,
        }
        for image, accept, answer, who in (
            ("a.jpg", ["cat", "dog"], "accept", "db-anna"),
            ("b.jpg", ["dog"], "ignore", "db-anna"),
            ("b.jpg", ["cat"], "accept", "db-bob"),
            ("b.jpg", ["dog"], "reject", "db-eve"),
        )
    )
)
BINARY = lines(
    {"image": "a.jpg", "label": "CAT", "answer": "accept", "_task_hash": 1},
    {"image": "b.jpg", "label": "CAT", "answer": "reject", "_task_hash": 2},
    {"image": "b.jpg", "label": "DOG", "answer": "accept", "_task_hash": 3},
    {"image": "c.jpg", "label": "DOG", "answer": "reject", "_task_hash": 4},
)
TOLOKA = (
    "INPUT:image\tOUTPUT:result\tGOLDEN:result\tHINT:text\tASSIGNMENT:link\t"
    "ASSIGNMENT:assignment_id\tASSIGNMENT:worker_id\tASSIGNMENT:status\t"
    "ASSIGNMENT:started\n"
    "https://x.example/a.jpg\tcat\tcat\t\t\tas1\tw1\tAPPROVED\t2026-01-01\n"
    "https://x.example/a.jpg\tdog\t\t\t\tas2\tw2\tREJECTED\t2026-01-01\n"
    "https://x.example/a.jpg\towl\t\t\t\tas3\tw3\tEXPIRED\t2026-01-01\n"
    "\n"
    "https://x.example/b.jpg\tdog\t\t\t\tas1\tw1\tAPPROVED\t2026-01-01\n"
    "https://x.example/b.jpg\tcat\t\t\t\tas4\tw4\tSUBMITTED\t2026-01-01\n"
)
TURK = (
    '"HITId","HITTypeId","Title","AssignmentId","WorkerId","AssignmentStatus",'
    '"Input.image_url",'
)
MTURK = (
    f'{TURK}"Answer.category.label"\n'
    '"3A","T","Name it","as1","A1","Approved","https://x.example/a.jpg","cat"\n'
    '"3A","T","Name it","as2","A2","Rejected","https://x.example/a.jpg","dog"\n'
    '"3B","T","Name it","as3","A1","Submitted","https://x.example/b.jpg","dog"\n'
)
TASK_ANSWERS = (
    f'{TURK}"Answer.taskAnswers"\n'
    '"3A","T","Name it","as1","A1","Approved","https://x.example/a.jpg",'
    '"[{""kind"":{""label"":""cat""}}]"\n'
    '"3B","T","Name it","as2","A1","Approved","https://x.example/b.jpg",'
    '"[{""kind"":{""label"":""dog""}}]"\n'
)
OPEN_IMAGES = (
    "ImageID,Source,LabelName,Confidence\n"
    "000060e3121c7305,verification,/m/06ht1,1\n"
    "000060e3121c7305,crowdsource-verification,/m/05wrt,0\n"
    "000060e3121c7305,machine,/m/05wrt,0.7\n"
    "000060e3121c7305,machine,/m/01prls,0.6\n"
    "00018c8cbcbd39a7,verification,/m/05wrt,1\n"
)
ZOONIVERSE = (
    "classification_id,user_name,user_id,user_ip,workflow_id,workflow_name,"
    "workflow_version,created_at,gold_standard,expert,metadata,annotations,"
    "subject_data,subject_ids\n"
    '91,eve,290475,2c61,6122,WF,28.30,2018-02-20 10:44:42 UTC,,,"{}",'
    '"[{""task"":""T0"",""task_label"":""Smooth?"",""value"":""Smooth""}]",'
    '"{""15715879"":{""retired"":null,""Filename"":""a.jpg""}}",15715879\n'
    '92,not-logged-in-0f,,0f,6122,WF,28.30,2018-02-20 10:45:42 UTC,,,"{}",'
    '"[{""task"":""T0"",""task_label"":""Smooth?"",""value"":""Disk""}]",'
    '"{""15715879"":{""retired"":null,""Filename"":""a.jpg""}}",15715879\n'
    '93,eve,290475,2c61,6122,WF,28.30,2018-02-20 10:46:42 UTC,,,"{}",'
    '"[{""task"":""T0"",""task_label"":""Smooth?"",""value"":""Disk""}]",'
    '"{""15715880"":{""retired"":null,""Filename"":""b.jpg""}}",15715880\n'
)
CVAT = (
    '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n'
    "  <version>1.1</version>\n  <meta><task><name>x</name></task></meta>\n"
    '  <image id="0" name="a.jpg" width="640" height="480">\n'
    '    <tag label="cat" source="manual"></tag>\n'
    '    <tag label="dog" source="manual"></tag>\n'
    '    <box label="ear" xtl="1" ytl="1" xbr="2" ybr="2"></box>\n  </image>\n'
    '  <image id="1" name="b.jpg" width="640" height="480">\n'
    '    <tag label="dog" source="manual"></tag>\n  </image>\n</annotations>\n'
)
FIFTYONE = {
    "classes": ["cat", "dog", "owl"],
    "labels": {
        "a": [0, 1],
        "b": 1,
        "c": {"label": "owl", "confidence": 0.9},
        "d": None,
    },
}
METADATA = lines(
    {"file_name": "a.jpg", "labels": ["cat", "dog"]},
    {"file_name": "b.jpg", "labels": ["dog"]},
)
ZERO_SHOT = lines(
    {
        "image": "a.jpg",
        "labels": ["cat", "dog", "owl"],
        "scores": [0.7, 0.2, 0.1],
    },
    {
        "image": "b.jpg",
        "labels": ["dog", "owl", "cat"],
        "scores": [0.9, 0.08, 0.02],
    },
)
PIPELINE = [
    [{"score": 0.7, "label": "cat"}, {"score": 0.3, "label": "dog"}],
    [{"score": 0.9, "label": "dog"}, {"score": 0.1, "label": "cat"}],
]


def answered(name, text):
    message = {"role": "assistant", "content": text}
    body = {"choices": [{"index": 0, "message": message}]}
    response = {"status_code": 200, "body": body}
    return {"id": "x", "custom_id": name, "response": response, "error": None}


BATCH = lines(
    answered("a.jpg", '{"candidates": ["cat", "dog"]}'),
    answered("b.jpg", '```json\n["dog"]\n```'),
    answered("c.jpg", "owl"),
)
MESSAGES = lines(
    *(
        {
            "custom_id": name,
            "result": {
                "type": "succeeded",
                "message": {"content": [{"type": "text", "text": text}]},
            },
        }
        for name, text in (
            ("a.jpg", '{"cat": 0.8, "dog": 0.2}'),
            ("b.jpg", "dog"),
        )
    )
)
DCIC = [
    {
        "dataset_name": "Benthic",
        "annotations": [
            {
                "image_path": f"Benthic/fold1/{name}.png",
                "class_label": label,
                "user_id": user,
                "created_at": "2022-01-01",
            }
            for name, label, user in (
                ("a", "coral", "u1"),
                ("a", "star", "u2"),
                ("b", "star", "u1"),
                ("b", None, "u2"),
            )
        ],
    }
]
PEERANNOT = {"0": {"12": 1, "31": 2}, "1": {"12": 0}}
FER = (
    "Usage,Image name,neutral,happiness,surprise,sadness,anger,disgust,fear,"
    "contempt,unknown,NF\n"
    "Training,fer0000000.png,4,0,0,1,3,2,0,0,0,0\n"
    "Training,fer0000001.png,6,0,1,1,0,0,0,0,2,0\n"
    "Training,,0,0,0,0,0,0,0,0,0,10\n"
    "PublicTest,fer0028638.png,10,0,0,0,0,0,0,0,0,0\n"
)
EMOTIONS = (
    "neutral happiness surprise sadness anger disgust fear contempt".split()
)
GALAXY = (
    "GalaxyID,Class1.1,Class1.2,Class1.3,Class2.1,Class2.2\n"
    "100008,0.383147,0.616853,0.0,0.0,0.616853\n"
    "100023,0.327001,0.663777,0.009222,0.031178,0.632599\n"
)
CLOTHING = "images/0/00/1.jpg 2\nimages/0/00/2 b.jpg 0\n"
CROWD_KIT = "task,worker,label\na,w1,cat\na,w2,dog\nb,w1,dog\n"
TRAINING = {"where": ["Usage=Training", "Image name!="]}
FER_FLAGS = {"layout": "counts", "id_column": "Image name", **TRAINING}
FER_FLAGS |= {"class_names": EMOTIONS}
SHAPES = {"layout": "probabilities", "id_column": "GalaxyID"}
SHAPES |= {"class_names": ["Class1.1", "Class1.2", "Class1.3"]}
CAT_DOG, DOG = {"cat", "dog"}, {"dog"}
BOTH = {"a.jpg": CAT_DOG, "b.jpg": DOG}
X = "https://x.example/"

FILES = {
    "label studio": ("t.json", LABEL_STUDIO, {}, {A: CAT_DOG, B: DOG}),
    "label studio with predictions": (
        "t.json",
        LABEL_STUDIO,
        {"format": "label_studio_predictions"},
        {A: {"cat", "dog", "owl"}, B: DOG},
    ),
    "label studio, taxonomy": (
        "t.json",
        TAXONOMY,
        {},
        {"a.jpg": {"animal/cat"}, "b.jpg": {"animal/dog"}},
    ),
    "prodigy, choices": (
        "t.jsonl",
        CHOICES,
        {},
        {"a.jpg": CAT_DOG, "b.jpg": {"cat"}},
    ),
    # c is only said not to be a dog.
    "prodigy, binary": (
        "t.jsonl",
        BINARY,
        {},
        {"a.jpg": {"CAT"}, "b.jpg": {"DOG"}, "c.jpg": {"CAT"}},
    ),
    "toloka": (
        "t.tsv",
        TOLOKA,
        {},
        {f"{X}a.jpg": {"cat"}, f"{X}b.jpg": CAT_DOG},
    ),
    "crowd-kit": ("t.csv", CROWD_KIT, {}, {"a": CAT_DOG, "b": DOG}),
    "mturk": ("t.csv", MTURK, {}, {f"{X}a.jpg": {"cat"}, f"{X}b.jpg": DOG}),
    "mturk, answers in JSON": (
        "t.csv",
        TASK_ANSWERS,
        {"label_column": "Answer.taskAnswers.0.kind.label"},
        {f"{X}a.jpg": {"cat"}, f"{X}b.jpg": DOG},
    ),
    # A person's no takes out what the machine named.
    "open images": (
        "t.csv",
        OPEN_IMAGES,
        {},
        {
            "000060e3121c7305": {"/m/06ht1", "/m/01prls"},
            "00018c8cbcbd39a7": {"/m/05wrt"},
        },
    ),
    "zooniverse": (
        "t.csv",
        ZOONIVERSE,
        {},
        {"a.jpg": {"Smooth", "Disk"}, "b.jpg": {"Disk"}},
    ),
    "cvat": ("annotations.xml", CVAT, {}, BOTH),
    "fiftyone": (
        "labels.json",
        FIFTYONE,
        {"empty_set": "drop"},
        {"a": CAT_DOG, "b": DOG, "c": {"owl"}},
    ),
    "metadata of an image folder": ("metadata.jsonl", METADATA, {}, BOTH),
    "zero-shot, labels and scores": (
        "t.jsonl",
        ZERO_SHOT,
        {"top_p": 0.9},
        BOTH,
    ),
    "zero-shot, a list for each image": (
        "t.json",
        PIPELINE,
        {"ids": "{}.jpg", "min_share": 0.25},
        {"0.jpg": CAT_DOG, "1.jpg": DOG},
    ),
    "zero-shot, scored labels": (
        "t.jsonl",
        lines(
            {"image": "a.jpg", "predictions": PIPELINE[0]},
            {"image": "b.jpg", "predictions": PIPELINE[1]},
        ),
        {"top_k": 1},
        {"a.jpg": {"cat"}, "b.jpg": DOG},
    ),
    "zero-shot, scores by label": (
        "t.jsonl",
        lines(
            {"image": "a.jpg", "scores": {"cat": 0.7, "dog": 0.3}},
            {"image": "b.jpg", "scores": {"cat": 0.05, "dog": 0.95}},
        ),
        {"candidates_column": "scores", "min_confidence": 0.1},
        BOTH,
    ),
    "answers of a language model": (
        "t.jsonl",
        BATCH,
        {},
        {**BOTH, "c.jpg": {"owl"}},
    ),
    "messages of a language model": ("t.jsonl", MESSAGES, {}, BOTH),
    "dcic": (
        "annotations.json",
        DCIC,
        {},
        {
            "Benthic/fold1/a.png": {"coral", "star"},
            "Benthic/fold1/b.png": {"star"},
        },
    ),
    "peerannot": (
        "answers.json",
        PEERANNOT,
        {"class_names": ["x", "y", "z"]},
        {"0": {"y", "z"}, "1": {"x"}},
    ),
    "fer+": (
        "fer2013new.csv",
        FER,
        {**FER_FLAGS, "min_votes": 2},
        {
            "fer0000000.png": {"neutral", "anger", "disgust"},
            "fer0000001.png": {"neutral"},
        },
    ),
    "fer+, by share": (
        "fer2013new.csv",
        FER,
        {**FER_FLAGS, "min_share": 0.125},
        {
            "fer0000000.png": {"neutral", "anger", "disgust"},
            "fer0000001.png": {"neutral", "surprise", "sadness"},
        },
    ),
    "galaxy zoo": (
        "training_solutions_rev1.csv",
        GALAXY,
        {**SHAPES, "min_share": 0.1},
        {
            "100008": {"Class1.1", "Class1.2"},
            "100023": {"Class1.1", "Class1.2"},
        },
    ),
    "clothing1m": (
        "noisy_label_kv.txt",
        CLOTHING,
        {"columns": ["id", "label"], "class_names": ["x", "y", "z"]},
        {"images/0/00/1.jpg": {"z"}, "images/0/00/2 b.jpg": {"x"}},
    ),
    "lists as pandas writes them": (
        "t.csv",
        "image,labels\na.jpg,\"['cat', 'dog']\"\nb.jpg,\"('dog',)\"\n",
        {},
        BOTH,
    ),
    "records somewhere in JSON": (
        "t.json",
        {"v": 1, "data": {"items": [{"id": "a", "labels": ["cat", "dog"]}]}},
        {"records": "data.items"},
        {"a": CAT_DOG},
    ),
    "paths into JSON": (
        "t.jsonl",
        lines(
            {
                "data": {"file": "a.jpg"},
                "out": {
                    "top": [{"n": "cat", "p": 0.6}, {"n": "dog", "p": 0.1}]
                },
            }
        ),
        {
            "id_column": "data.file",
            "layout": "long",
            "label_column": "out.top.*.n",
            "confidence_column": "out.top.*.p",
            "min_confidence": 0.5,
            "class_names": ["cat", "dog"],
        },
        {"a.jpg": {"cat"}},
    ),
    "what items are not": (
        "t.csv",
        "image,label\na.jpg,cat\na.jpg,owl\nb.jpg,dog\n",
        {"layout": "complementary", "class_names": ["cat", "dog", "owl"]},
        {"a.jpg": DOG, "b.jpg": {"cat", "owl"}},
    ),
}
