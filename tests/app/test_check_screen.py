import types

import numpy as np
import pandas as pd
from sample_report import vote_frame

from alim_keras.check import describe
from alim_keras.data import CandidateSets

NAMES = ["ant", "bee", "cat"]


def training(**options):
    dense = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 0], [1, 1, 0]], bool)
    sets = CandidateSets.from_dense(dense, list("abcd"), NAMES, source="t.csv")
    parts = {
        "candidates": sets,
        "ids": sets.ids,
        "labels": None,
        "votes": None,
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
        "classes         class in sets  share mass",
        "                  ant       4 100.0%    2",
        "                  bee       3  75.0%    2",
        "                  cat       0   0.0%    0",
        "                1 classes are in no set: cat",
    ]


def test_votes_truth_features_and_files():
    text = describe(
        training(
            votes=vote_frame(
                [(0, 0, 0), (1, 0, 0), (1, 1, 1), (2, 1, None)],
                ["x", "y"],
                NAMES,
                "abcd",
            ),
            labels=np.array([0, 2, -1, 1]),
            scan=pd.DataFrame(
                {
                    "width": [8, 9, 0],
                    "height": [8, 8, 0],
                    "channels": [1, 3, 0],
                    "bytes": [2**20, 2**20, 0],
                    "copies": [0, 0, 2],
                    "problem": [None, None, "it is cut short"],
                }
            ),
        )
    )
    # The truth of one of three is not in its set.
    assert "realised noise  0.3333" in text
    assert "2 with 1 to 2 votes each; 0 to 2 votes an item, 3 in all" in text
    assert (
        "3 of 2.0 MiB, 8 x 8 to 9 x 8 pixels, 50% grey; read as 8 x 8 x 3"
    ) in text
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
