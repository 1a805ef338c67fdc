"""labels.csv of items that a run holds out and that people voted on."""

import types

import numpy as np
import pandas as pd
import pytest

from alim_keras.app import artefacts
from alim_keras.data import CandidateSets
from alim_keras.report import examine

NAMES = ("cat", "dog", "owl")
WEIGHTS = np.array([[1, 0.5, 0], [0, 1, 0], [0, 1, 0.125]], "float32")
P = np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.1, 0.5, 0.4]], "float32")


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Returns a function that writes labels.csv, and returns it read."""

    def write(sets, votes, *beliefs):
        monkeypatch.setattr(artefacts, "beliefs", lambda *_: beliefs)
        training = types.SimpleNamespace(
            ids=sets.ids, sets=sets, class_names=NAMES, votes=votes
        )
        folder = types.SimpleNamespace(file=lambda name: str(tmp_path / name))
        settled = artefacts._write_labels(folder, None, training)
        frame = pd.read_csv(tmp_path / "labels.csv")
        assert frame["label"].tolist() == [NAMES[c] for c in settled]
        return settled.tolist(), frame["probability"]

    return write


@pytest.mark.parametrize("has_votes", [True, False])
def test_votes_and_prediction_settle_together(write, has_votes):
    sets = CandidateSets.from_dense(WEIGHTS, list("abc"), NAMES, graded=True)
    # One vote an item tells nothing of who gave it.
    votes = pd.DataFrame({"item": sets.ids, "annotator": "x", "label": "cat"})
    settled, probability = write(
        sets,
        votes if has_votes else None,
        (np.arange(2), P[:2].copy(), np.full(2, "prediction", object)),
        (np.arange(2, 3), P[2:].copy(), np.full(1, "table", object)),
    )
    if not has_votes:
        assert settled == [2, 0, 1]
        np.testing.assert_allclose(probability, [0.7, 0.6, 0.5])
        return
    # With a noise rate of .2 and two of three classes lambda is .25 * 2 / 1:
    # 1 * .1, .5 * .2, .5 * .7. With one of them .25 * 1 / 2: .125 * .6, 1 * .3,
    # .125 * .1. The pseudo label is as it was.
    assert settled == [2, 1, 1]
    expected = [0.35 / 0.55, 0.3 / 0.3875, 0.5]
    np.testing.assert_allclose(probability, expected, atol=1e-4)


def test_people_who_agree_outweigh_a_sure_prediction(write):
    """Of 30 items three people agree on, the last two are held out."""
    ids = [str(number) for number in range(30)]
    label = np.arange(30) % 3
    votes = pd.DataFrame(
        {"item": ids * 3, "annotator": np.repeat([*"xyz"], 30)}
    )
    votes["label"] = np.tile(np.array(NAMES, object)[label], 3)
    # Nobody answered for the last one.
    votes = votes.drop([29, 59, 89])
    # The network is sure of another class of both.
    belief = np.eye(3, dtype="float32")[(label + (np.arange(30) > 27)) % 3]
    kinds = np.repeat(np.array(["table", "prediction"], object), [28, 2])
    sets = np.eye(3, dtype=bool)[label]
    sets = CandidateSets.from_dense(sets, ids, NAMES)
    settled, probability = write(sets, votes, (np.arange(30), belief, kinds))
    assert settled[28] == label[28] and settled[29] == (label[29] + 1) % 3
    # The audit says the same.
    found = examine(belief, sets, kind=kinds, votes=votes).labels
    assert found["label"].tolist() == [NAMES[c] for c in settled]
    expected = found["probability"][:29]
    np.testing.assert_allclose(probability[:29], expected, atol=1e-3)
