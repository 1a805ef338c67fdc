"""`python -m alim_keras.check`: what it says, and when it refuses."""

import types

import commands
import numpy as np
import own
import pandas as pd
import pytest
from PIL import Image

from alim_keras.check import describe
from alim_keras.data import CandidateSets

SMALL = "--width=4 --batch_size=4 --queue_size=8 --holdout=0.1".split()
CLEAN = ["cat|dog", "dog", "cat"] * 4


def run(path, *flags):
    """Returns the exit code and what was printed."""
    code, out, err = commands.call("check", *SMALL, f"--dataset={path}", *flags)
    assert code != 1 and "Traceback" not in err, err
    return code, out + err


@pytest.fixture
def table(tmp_path):
    """A table beside its twelve pictures, 0.png to 11.png."""
    for row in range(12):
        Image.new("L", (8, 8), 20 * row).save(tmp_path / f"{row}.png")
    rows = [(f"{row}.png", cell) for row, cell in enumerate(CLEAN)]
    path = tmp_path / "labels.csv"
    return own.write_rows(path, [("id", "candidates"), *rows])


def test_bad_images_are_named_at_once(table):
    folder = table.parent
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64), "uint8")
    Image.fromarray(pixels).save(folder / "3.png")
    whole = (folder / "3.png").read_bytes()
    (folder / "3.png").write_bytes(whole[: len(whole) // 2])
    (folder / "7.png").unlink()
    (folder / "9.png").write_bytes(b"")
    code, text = run(table)
    assert code == 3 and "images that cannot be read: 3" in text
    listed = [line for line in text.splitlines() if line.startswith("  ")]
    names = [line.split(":")[0] for line in listed]
    assert names == ["  3.png", "  7.png", "  9.png"]
    code, text = run(table, "--on_bad_image=skip")
    assert code == 0 and "Left out: images that cannot be read: 3" in text
    assert all(line in text.splitlines() for line in listed)


def test_no_image_that_can_be_read(table):
    for row in range(12):
        (table.parent / f"{row}.png").write_bytes(b"")
    for flag in ("--on_bad_image=error", "--on_bad_image=skip"):
        code, text = run(table, flag)
        assert code == 3 and "is --images the folder?" in text
    assert "no item is left: 12 of 12 images" in text and "mend them" in text


def test_what_will_happen(table):
    code, text = run(table)
    assert code == 0
    # 12 items, of which one in ten is held out: 11 in steps of 4.
    assert "steps an epoch: 2, batch: 4; items: 11 to train on, 1 held" in text
    assert "images of 8 x 8 x 1" in text and "realised noise  not known" in text


@pytest.mark.parametrize(
    "flag, code, words",
    [
        ("--batch_size=64", 2, "--batch_size=64"),
        ("--ids=none.txt", 3, "no such file. Received: --ids=none.txt"),
        ("--ambiguity=0.1", 2, "--ambiguity is about simulated"),
        ("--method=proden2", 2, "proden2"),
        ("--network=nosuchnet", 2, "nosuchnet"),
    ],
)
def test_what_training_refuses_is_refused(flag, code, words, table):
    found, text = run(table, flag)
    assert found == code and words in text


NAMES = ["ant", "bee", "cat"]


def training(**options):
    dense = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 0], [1, 1, 0]], bool)
    sets = CandidateSets.from_dense(dense, list("abcd"), NAMES, source="t.csv")
    parts = {
        "candidates": sets,
        "ids": sets.ids,
        "labels": None,
        "images": np.zeros((4, 8, 8, 3), "uint8"),
        "scan": None,
        "kind": "images",
        "notes": ("read as a long table",),
        **options,
    }
    return types.SimpleNamespace(**parts)


def test_one_screen_on_a_training_set():
    lines = describe(training()).split("\n")
    assert lines[:2] == [
        "read as a long table",
        "candidate sets  4 examples, 3 classes, from t.csv",
    ]
    assert lines[-6:] == [
        "images          4 of 8 x 8 x 3",
        "class  in sets  share  mass",
        "  ant        4 100.0%     2",
        "  bee        3  75.0%     2",
        "  cat        0   0.0%     0",
        "1 classes are in no set: cat",
    ]


def test_truth_features_and_files():
    columns = "width height channels bytes copies problem".split()
    files = [(8, 8, 1, 2**20, 0, None), (9, 8, 3, 2**20, 0, None)]
    files.append((0, 0, 0, 0, 2, "it is cut short"))
    text = describe(
        training(
            labels=np.array([0, 2, -1, 1]),
            scan=pd.DataFrame(files, columns=columns),
        )
    )
    # The truth of one of three is not in its set.
    assert "realised noise  0.3333" in text
    line = "3 of 2.0 MiB, 8 x 8 to 9 x 8 pixels, 50% grey; read as 8 x 8 x 3"
    assert line in text
    assert "identical       2 in 1 groups" in text
    features = np.zeros((4, 1, 1, 7), "float32")
    text = describe(training(images=features, kind="features"))
    assert "features        7 for each item" in text


def test_many_classes_are_cut():
    sets = CandidateSets.from_lists([[c, 0] for c in range(1, 40)])
    text = describe(training(candidates=sets, ids=sets.ids))
    # The six commonest and the six rarest.
    assert [line.split()[0] for line in text.split("\n")[-13:]] == [
        *"0 1 2 3 4 5 ... 34 35 36 37 38 39".split()
    ]
