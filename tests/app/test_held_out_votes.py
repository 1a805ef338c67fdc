"""labels.csv of items that a run holds out and that people voted on."""

import types

import numpy as np
import pandas as pd
import pytest

from alim_keras.app import artefacts
from alim_keras.data import CandidateSets
from alim_keras.report import examine

IDS, NAMES = ["a", "b", "c"], ("cat", "dog", "owl")
WEIGHTS = np.array([[1, 0.5, 0], [0, 1, 0], [0, 1, 0.125]], "float32")
P = np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.1, 0.5, 0.4]], "float32")


@pytest.mark.parametrize("has_votes", [True, False])
def test_votes_and_prediction_settle_together(tmp_path, monkeypatch, has_votes):
    kinds = np.array(["prediction", "prediction", "table"], object)
    beliefs = [
        (np.arange(2), P[:2].copy(), kinds[:2]),
        (np.arange(2, 3), P[2:].copy(), kinds[2:]),
    ]
    monkeypatch.setattr(artefacts, "beliefs", lambda model, training: beliefs)
    training = types.SimpleNamespace(
        ids=np.array(IDS),
        sets=CandidateSets.from_dense(WEIGHTS, IDS, NAMES, graded=True),
        class_names=NAMES,
        # One vote an item tells nothing of who gave it.
        votes=pd.DataFrame({"item": IDS, "annotator": "x", "label": "cat"})
        if has_votes
        else None,
    )
    folder = types.SimpleNamespace(file=lambda name: str(tmp_path / name))
    settled = artefacts._write_labels(folder, None, training)
    frame = pd.read_csv(tmp_path / "labels.csv")
    if not has_votes:
        assert settled.tolist() == [2, 0, 1]
        np.testing.assert_allclose(frame["probability"], [0.7, 0.6, 0.5])
        return
    # With a noise rate of .2 and two of three classes lambda is .25 * 2 / 1:
    # 1 * .1, .5 * .2, .5 * .7. With one of them .25 * 1 / 2: .125 * .6, 1 * .3,
    # .125 * .1. The pseudo label is as it was.
    assert settled.tolist() == [2, 1, 1]
    expected = [0.35 / 0.55, 0.3 / 0.3875, 0.5]
    np.testing.assert_allclose(frame["probability"], expected, atol=1e-4)


def test_people_who_agree_outweigh_a_sure_prediction(tmp_path, monkeypatch):
    """Of 30 items three people agree on, the last two are held out."""
    ids = [str(number) for number in range(30)]
    label = np.arange(30) % 3
    people = np.repeat([*"xyz"], 30)
    votes = pd.DataFrame({"item": ids * 3, "annotator": people})
    votes["label"] = np.tile(np.array(NAMES, object)[label], 3)
    # Nobody answered for the last one.
    votes = votes.drop([29, 59, 89])
    sets = np.eye(3, dtype=bool)[label]
    # The network is sure of another class of both.
    sure = np.eye(3, dtype="float32")[(label[28:] + 1) % 3]
    parts = [
        (np.arange(28), sets[:28].astype("float32"), np.full(28, "table", "O")),
        (np.arange(28, 30), sure, np.full(2, "prediction", object)),
    ]
    monkeypatch.setattr(artefacts, "beliefs", lambda model, training: parts)
    training = types.SimpleNamespace(
        ids=np.array(ids),
        sets=CandidateSets.from_dense(sets, ids, NAMES),
        class_names=NAMES,
        votes=votes,
    )
    folder = types.SimpleNamespace(file=lambda name: str(tmp_path / name))
    settled = artefacts._write_labels(folder, None, training)
    assert settled[28] == label[28] and settled[29] == (label[29] + 1) % 3
    # The audit says the same.
    probabilities = np.concatenate([part[1] for part in parts])
    kinds = np.concatenate([part[2] for part in parts])
    found = examine(probabilities, training.sets, kind=kinds, votes=votes)
    names = np.array(NAMES, object)[settled]
    assert found.labels["label"].tolist() == names.tolist()
    frame = pd.read_csv(tmp_path / "labels.csv")
    np.testing.assert_allclose(
        frame["probability"][:29], found.labels["probability"][:29], atol=1e-3
    )
