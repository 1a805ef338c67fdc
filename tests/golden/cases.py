"""Small tables and the sets that stand in them, worked out by hand.

Pictures of the ids a to f, 1 to 3 and 01 lie beside the tables; `i/` is their
folder. Every case says by column names or by `--layout` how its table is laid
out, never by what its cells hold.
"""

import dataclasses
import json

from public_files import LABEL_STUDIO
from public_files import A
from public_files import B


@dataclasses.dataclass(frozen=True)
class Case:
    """A table and what must come of it."""

    # What is special about it.
    name: str
    # Text or bytes of the file; a dict of arrays of an .npz; a tuple of paths
    # of the pictures of a folder.
    content: object
    # Flags beside `--dataset`; HOME is the folder of the file.
    flags: str = ""
    # Id to the names of its candidates, with blanks between.
    sets: dict | None = None
    # What the output of the check must hold.
    words: tuple = ()
    file: str = "t.csv"
    # The classes in their order; those of `sets` by the alphabet if None.
    classes: str | None = None
    # Id to the true label, of `--known_labels`.
    known: dict = dataclasses.field(default_factory=dict)
    # How many items test.
    test: int = 0
    code: int = 0
    # Name to text of further files.
    more: dict = dataclasses.field(default_factory=dict)
    # Whether the packages for Parquet cannot be imported.
    blocked: bool = False


def bad(name, content, words, flags="", file="t.csv", code=3, **more):
    """Returns a case that is refused with some words in the one line."""
    return Case(name, content, flags, None, words, file, code=code, **more)


ABC = {"a": "cat dog", "b": "dog", "c": "cat owl"}
AB = {"a": "cat dog", "b": "dog"}
PETS = "--class_names=cat,dog,owl"
FIVE = "--class_names=cat,dog,owl,bee,ant"
WIDE = "id,a1,a2,a3\na,cat,,dog\nb,,,\nc,dog,dog,\n"
LONG = (
    "item,annotator,label,confidence\nc,eve,owl,0.9\na,ann,cat,0.9\n"
    "b,ann,dog,0.4\na,ben,cat,0.2\na,ann,cat,0.5\nd,ann,owl,1\n"
    "b,ann,cat,0.8\na,cid,dog,0.7\na,dan,dog,0.1\na,eve,owl,0.6\n"
    "a,fay,dog,0.3\n"
)
TWO = "id,candidates\na,cat|dog\nb,dog\na,owl\n"


MULTI = "--layout=multi_hot"
RECORDS = [
    {"id": "a", "candidates": ["cat", "dog"]},
    {"id": "b", "candidates": ["dog"]},
    {"id": "c", "candidates": ["owl", "cat"]},
]
LINES = "".join(json.dumps(one) + "\n" for one in RECORDS)
QUOTED = 'id,candidates\na,"[""cat"", ""dog""]"\nb,"[""dog""]"\n'

SOUND = (
    *(
        Case(
            f"{mark} in cells",
            f'id,candidates\na,"cat{mark}dog"\nb,dog\nc,"owl{mark} cat"\n',
            sets=ABC,
        )
        for mark in "|;,"
    ),
    Case("a JSON list in a cell", QUOTED, sets=AB),
    Case(
        "a mark of byte order, Windows lines, a comment, blank lines",
        "\ufeff# made by hand\r\nid,candidates\r\na,cat|dog\r\n\r\nb,dog\r\n",
        sets=AB,
    ),
    Case("tabs", "id\tlabels\na\tcat|dog\nb\tdog\n", file="t.tsv", sets=AB),
    Case(
        "columns parted by semicolons", "id;labels\na;cat|dog\nb;dog\n", sets=AB
    ),
    Case(
        "quoted names with a comma",
        'file,label\na,"Washington, DC"\na,Rome\nb,Rome\n',
        "--layout=long",
        {"a": ("Rome", "Washington, DC"), "b": ("Rome",)},
    ),
    Case("JSON lines", LINES, file="t.jsonl", sets=ABC),
    Case("JSON", json.dumps(RECORDS), file="t.json", sets=ABC),
    Case(
        "a column of candidates by flag",
        "id,candidates,label,suggested\na,owl,owl,cat|dog\nb,dog,dog,dog\n",
        "--candidates_column=suggested",
        AB,
    ),
    Case(
        "columns by flag",
        "x,y,z\na,ann,cat\na,ben,dog\nb,ann,dog\n",
        "--id_column=x --annotator_column=y --label_column=z --layout=long",
        AB,
    ),
    Case(
        "wide",
        "id,ann,ben,cid\na,cat,dog,dog\nb,dog,,\nc,owl,,cat\n",
        "--layout=wide",
        ABC,
    ),
    Case(
        "wide by flag, another column beside",
        "id,ann,ben,age\na,cat,dog,7\nb,dog,,8\n",
        "--layout=wide --annotator_column=ann,ben",
        AB,
    ),
    Case(
        "wide, a blank annotator",
        "id,a1,a2,a3\na,cat,,dog\nb,dog,,\n",
        "--layout=wide",
        AB,
        words=("a2",),
    ),
    Case(
        "a blank row may be anything",
        WIDE,
        "--layout=wide --empty_set=all",
        {"a": "cat dog", "b": "cat dog", "c": "dog"},
    ),
    Case(
        "a blank row is left out",
        WIDE,
        "--layout=wide --empty_set=drop",
        {"a": "cat dog", "c": "dog"},
        words=("1", "b (line 3)"),
    ),
    Case(
        "wide, two votes needed",
        WIDE,
        "--layout=wide --min_votes=2 --empty_set=all",
        {"a": "cat dog", "b": "cat dog", "c": "dog"},
    ),
    Case(
        "long in any order",
        LONG,
        sets={"a": "cat dog owl", "b": "cat dog", "c": "owl", "d": "owl"},
    ),
    # a: cat by ann and ben, dog by cid, dan and fay, owl by eve alone.
    Case(
        "long, two votes needed",
        LONG,
        "--min_votes=2 --empty_set=drop",
        {"a": "cat dog"},
        classes="cat dog owl",
        words=("3",),
    ),
    Case(
        "long, three votes needed",
        LONG,
        "--min_votes=3 --empty_set=all",
        {"a": "dog", **dict.fromkeys("bcd", "cat dog owl")},
    ),
    Case(
        "long, confidence needed",
        LONG,
        "--min_confidence=0.7",
        {"a": "cat dog", "b": "cat", "c": "owl", "d": "owl"},
    ),
    Case(
        "a person counts once",
        "item,annotator,label\na,x,cat\na,x,cat\na,x,dog\na,y,dog\nb,x,cat\n"
        "b,y,cat\n",
        "--min_votes=2",
        {"a": "dog", "b": "cat"},
    ),
    Case(
        "labels without annotators",
        "file,label\na,cat\nb,dog\na,dog\n",
        "--layout=long",
        AB,
    ),
    Case(
        "a blank label is no vote",
        "item,worker,label\na,x,cat\nb,x,\na,y,dog\nb,y,dog\n",
        sets=AB,
    ),
    Case(
        "none of these",
        "id,a1,a2,a3\na,cat,none,dog\nb,other,none,\nc,dog,other,\n",
        "--layout=wide --none_of_these=none,other --empty_set=drop",
        {"a": "cat dog", "c": "dog"},
        words=("4",),
    ),
    Case(
        "multi-hot",
        "id,dog,cat,owl\na,1,1,0\nb,1,0,0\nc,false,TRUE,1.0\n",
        MULTI,
        ABC,
    ),
    Case(
        "multi-hot in the order of the names",
        "id,dog,cat,owl\na,1,1,0\nb,1,0,0\nc,0,1,1\n",
        f"{MULTI} --class_names=owl,dog,cat",
        ABC,
        classes="owl dog cat",
    ),
    Case(
        "multi-hot of classes called by numbers",
        "id,0,1\na,1,0\nb,1,1\n",
        f"{MULTI} --class_names=2",
        {"a": "0", "b": "0 1"},
    ),
    Case(
        "wide votes of 0 and 1",
        "id,r0,r1\na,1,0\nb,1,1\n",
        "--layout=wide --class_names=2",
        {"a": "0 1", "b": "1"},
    ),
    Case(
        "a class that no row has",
        "id,cat,dog,owl\na,1,1,0\nb,0,1,0\n",
        MULTI,
        AB,
        classes="cat dog owl",
        words=("owl",),
    ),
    Case(
        "ids that are numbers",
        "id,candidates\n1,cat|dog\n2,dog\n01,owl\n",
        sets={"1": "cat dog", "2": "dog", "01": "owl"},
    ),
    Case(
        "ids that are numbers in JSON",
        '{"id": 1, "labels": [0]}\n{"id": 2, "labels": [2, 0]}\n',
        PETS,
        {"1": "cat", "2": "cat owl"},
        file="t.jsonl",
        classes="cat dog owl",
    ),
    Case(
        "numbers are places in the names",
        "id,candidates\na,0|1.0\nb,1\n",
        PETS,
        AB,
        classes="cat dog owl",
    ),
    Case(
        "numbers by value where no name is given",
        "id,candidates\na,2|10\nb,10\n",
        sets={"a": "10 2", "b": "10"},
        classes="2 10",
    ),
    Case(
        "a file of names, two unused",
        "id,candidates\na,cat|dog\nb,dog\nc,owl|cat\n",
        "--class_names=HOME/names.txt",
        ABC,
        more={"names.txt": "ant\nbee\ncat\ndog\nowl\n"},
        classes="ant bee cat dog owl",
        words=("ant", "bee"),
    ),
    Case(
        "blanks around names and a class twice",
        "id,candidates\na, cat | dog |cat\nb,dog\n",
        sets=AB,
    ),
    Case("rows united", TWO, "--duplicates=union", {**AB, "a": "cat dog owl"}),
    Case(
        "first of the rows",
        TWO,
        "--duplicates=first",
        AB,
        classes="cat dog owl",
    ),
    Case(
        "equal rows count once",
        "id,candidates\na,cat|dog\nb,dog\na,dog|cat\n",
        sets=AB,
    ),
    Case(
        "known labels are for reports",
        "id,candidates\na,cat|dog\nb,dog\nc,owl|cat\n",
        "--known_labels=HOME/k.csv",
        ABC,
        known={"a": "owl", "c": "cat"},
        more={"k.csv": "id,label\nc,cat\na,owl\n"},
    ),
    Case(
        "known labels as sets, one of them empty",
        "id,candidates\na,cat|dog\nb,\nc,owl|cat\n",
        "--known_labels=HOME/k.csv --known_as_sets",
        {"a": "owl", "b": "dog", "c": "cat owl"},
        known={"a": "owl", "b": "dog"},
        more={"k.csv": "id,label\nb,dog\na,owl\n"},
    ),
    Case(
        "items to test on are left out",
        "id,candidates\na,cat|dog\nb,dog\nc,owl|cat\n",
        "--test_labels=HOME/k.csv",
        {"a": "cat dog", "c": "cat owl"},
        test=2,
        more={"k.csv": "id,label\nb,dog\nd,owl\n"},
    ),
    Case(
        "class folders",
        ("dog/a.png", "cat/b.png", "cat/c.png"),
        sets={"cat/b.png": "cat", "cat/c.png": "cat", "dog/a.png": "dog"},
        file="tree",
    ),
    Case(
        "Label Studio",
        LABEL_STUDIO.replace(".jpg", ".png"),
        file="t.json",
        sets={A[:-3] + "png": "cat dog", B[:-3] + "png": "dog"},
        words=("2 tasks", "5 annotations", "2 annotators"),
    ),
    Case(
        "arrays, multi-hot",
        {"candidates": [[1, 1, 0], [0, 1, 0]], "ids": ["a", "b"]}
        | {"class_names": ["cat", "dog", "owl"]},
        MULTI,
        AB,
        file="t.npz",
        classes="cat dog owl",
    ),
    Case(
        "arrays, padded with -1",
        {"candidates": [[0, 2, -1], [1, -1, -1]], "ids": ["a", "b"]},
        f"--layout=list {PETS}",
        {"a": "cat owl", "b": "dog"},
        file="t.npz",
        classes="cat dog owl",
    ),
    Case(
        "arrays with features",
        {"candidates": [[1, 0], [1, 1], [0, 1]], "features": [[0.5, 1]] * 3}
        | {"ids": ["x", "y", "z"], "labels": [0, 1, 1]},
        f"{MULTI} --method=proden --network=mlp",
        {"x": "0", "y": "0 1", "z": "1"},
        file="t.npz",
    ),
    Case(
        "0 fills rows up",
        {"candidates": [[0, 2, 0], [1, 0, 0]] * 6, "ids": list("abcdefuvwxyz")}
        | {"features": [[0.5]] * 12},
        f"--layout=list {PETS} --method=proden --network=mlp",
        words=("lass 0 is in 100", "Use -1"),
        file="t.npz",
    ),
    Case(
        "labels.csv of a run",
        "id,candidates,label,probability,runner_up,margin,outside,undecided,"
        'suggested,source,suspicion\na,"[""cat""]",dog,0.9,cat,0.8,1,0,'
        '"[""cat"", ""dog""]",table,0.9\nb,"[""dog""]",dog,0.9,cat,0.8,0,0,'
        '"[""dog""]",table,0.1\n',
        sets={"a": "cat", "b": "dog"},
    ),
    Case(
        "Parquet",
        {"id": ["a", "b"], "candidates": [["cat", "dog"], ["dog"]]},
        sets=AB,
        file="t.parquet",
    ),
)

REFUSED = (
    bad(
        "a blank row of a wide table",
        WIDE,
        ("1", "b (line 3)", "--empty_set"),
        "--layout=wide",
    ),
    bad(
        "empty lists",
        '{"id": "a", "labels": [0]}\n{"id": "b", "labels": []}\n',
        ("1", "b (line 2)", "--empty_set"),
        PETS,
        "t.jsonl",
    ),
    bad(
        "a row of zeros",
        "id,cat,dog\na,1,0\nb,0,0\n",
        ("b (line 3)", "--empty_set"),
        MULTI,
    ),
    bad(
        "an unknown name",
        "id,candidates\na,cat\nb,catt\n",
        ("'catt'", "line 3", "id b", "mean cat"),
        FIVE,
    ),
    *(
        bad(name, f"id,candidates\na,1\nb,{cell}\n", (cell, *words), FIVE)
        for name, cell, *words in (
            ("1.5", "1.5", "line 3", "id b"),
            ("a number below 0", "-3", "line 3", "id b", "0..4"),
            ("labels from 1", "5", "line 3", "id b", "0..4", "start at 0"),
        )
    ),
    bad(
        "true in a list",
        '{"id": "a", "labels": [true]}\n',
        ("True", "line 1", "id a"),
        FIVE,
        "t.jsonl",
    ),
    bad(
        "names that differ in case",
        "id,candidates\na,cat|dog\nb,Cat\n",
        ("'cat'", "line 2", "id a", "'Cat'", "line 3", "id b"),
    ),
    bad("rows that differ", TWO, ("1 ids", "a (line 2)", "--duplicates=union")),
    *(
        bad(
            f"{cell or 'a blank'} in a multi-hot row",
            f"id,cat,dog\na,1,0\nb,{cell},1\n",
            ("'cat'", "0 and 1", cell, "line 3", "id b"),
            MULTI,
        )
        for cell in ("", "0.3")
    ),
    bad(
        "too few multi-hot columns",
        "id,cat,dog\na,1,0\n",
        ("2 columns", "5 classes", "owl, bee, ant"),
        f"{MULTI} {FIVE}",
    ),
    bad(
        "a name missing between separators",
        "id,candidates\na,cat||dog\n",
        ("line 2", "id a"),
    ),
    bad(
        "a set in a cell for one class",
        'id,a1,a2\na,cat,"cat|dog"\nb,dog,\n',
        ("cat|dog", "--class_names"),
        "--layout=wide",
    ),
    bad(
        "two separators", 'id,candidates\na,"x, y|z"\nb,z\n', ("--class_names",)
    ),
    bad(
        "a row of another length",
        "id,candidates\na,x\nb,y,z\n",
        ("line 3", "3", "2"),
    ),
    bad("an open quote", 'id,candidates\na,"x\nb,y\n', ("quote", "line 3")),
    bad("a blank id", "id,candidates\na,x\n ,y\n", ("id", "line 3")),
    bad("a column twice", "id,labels,labels\na,x,y\n", ("'labels'",)),
    bad("no column of ids", "who,candidates\na,cat\n", ("--id_column", "who")),
    bad(
        "two columns of candidates",
        "id,candidates,labels\na,cat,dog\n",
        ("--candidates_column", "candidates", "labels"),
    ),
    bad(
        "another encoding",
        "id,labels\na,caf\u00e9\n".encode("latin-1"),
        ("UTF-8",),
    ),
    bad("UTF-16", "id,labels\na,x\n".encode("utf-16"), ("UTF-16", "UTF-8")),
    bad("no bytes", "", ("empty",)),
    bad("no bytes of arrays", b"", ("empty",), file="t.npz"),
    bad("no arrays", {}, ("t.npz",), file="t.npz"),
    bad("a header only", "id,labels\n", ("empty",)),
    bad("no JSON objects", "[]", ("empty",), file="t.json"),
    bad(
        "unsound JSON",
        '{"id": 1, "labels": ["x"]}\n{"id": 2,\n',
        ("line 2", "JSON"),
        file="t.jsonl",
    ),
    bad("an unknown ending", "x", (".xlsx", ".csv"), file="t.xlsx"),
    bad(
        "a picture that is missing",
        "id,candidates\na,cat\nzz.png,dog\n",
        ("zz.png",),
    ),
    bad(
        "one class only",
        "id,candidates\na,cat\nb,cat\n",
        ("'cat'", "--class_names"),
    ),
    bad(
        "10 pictures, 9 rows",
        {"candidates": [[1, 0]] * 9, "ids": [f"i{n}" for n in range(10)]},
        ("9", "10", "i9"),
        MULTI,
        "t.npz",
    ),
    bad(
        "a known label of no class",
        "id,candidates\na,cat\nb,dog\n",
        ("'catt'", "line 2"),
        "--known_labels=HOME/k.csv",
        more={"k.csv": "id,label\na,catt\n"},
    ),
    bad(
        "votes needed of lists",
        "id,candidates\na,cat\nb,dog\n",
        ("--min_votes",),
        "--min_votes=2",
        code=2,
    ),
    bad(
        "confidence needed where there is none",
        "item,annotator,label\na,x,cat\nb,x,dog\n",
        ("--min_confidence",),
        "--min_confidence=0.5",
        code=2,
    ),
    bad(
        "a confidence that is no number",
        "item,annotator,label,score\na,x,cat,1\nb,x,dog,high\n",
        ("'score'", "line 3", "high"),
    ),
    bad(
        "Parquet without pyarrow",
        b"x",
        ("pyarrow", "pip install"),
        file="t.parquet",
        code=6,
        blocked=True,
    ),
)

WANTED = (
    Case(
        "NA is said to look like no answer",
        "image,annotator,label\na,x,NA\na,y,cat\nb,x,dog\n",
        words=("NA", "none_of_these"),
    ),
    Case(
        "scores beside the labels of a list",
        '{"image": "a", "labels": ["cat", "dog"], "scores": [0.7, 0.2]}\n'
        '{"image": "b", "labels": ["dog", "cat"], "scores": [0.6, 0.5]}\n',
        "--layout=list --min_confidence=0.5",
        {"a": "cat", "b": "cat dog"},
        file="t.jsonl",
    ),
    Case(
        "sentences are no classes",
        '{"image": "a", "answer": "cat"}\n{"image": "b", "answer": "dog or '
        'cat"}\n{"image": "c", "answer": "I cannot tell."}\n',
        "--layout=long",
        words=("warning", "--class_names"),
        file="t.jsonl",
    ),
    Case(
        "confidence in per cent",
        "image,annotator,label,confidence\na,x,cat,90\na,y,dog,40\nb,x,dog,80\n",
        "--min_confidence=0.5",
        words=("--min_confidence",),
    ),
)
CASES = SOUND + REFUSED + WANTED
