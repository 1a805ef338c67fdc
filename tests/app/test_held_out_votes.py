"""labels.csv of items that a run holds out and that people voted on."""

import types

import numpy as np
import pandas as pd
import pytest

from alim_keras.app import artefacts
from alim_keras.data import CandidateSets

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
        votes=pd.DataFrame({"item": IDS}) if has_votes else None,
    )
    folder = types.SimpleNamespace(file=lambda name: str(tmp_path / name))
    settled = artefacts._write_labels(folder, None, training)
    frame = pd.read_csv(tmp_path / "labels.csv")
    if not has_votes:
        assert settled.tolist() == [2, 0, 1]
        np.testing.assert_allclose(frame["probability"], [0.7, 0.6, 0.5])
        return
    # With a noise rate of .2 and two of three classes lambda is .25 * 2 / 1:
    # 1 * .1, (.5 + .5 * .5) * .2, .5 * .7. With one of them .25 * 1 / 2: .125 *
    # .6, 1 * .3, .125 * .1. The pseudo label is as it was.
    assert settled.tolist() == [2, 1, 1]
    expected = [0.35 / 0.6, 0.3 / 0.3875, 0.5]
    np.testing.assert_allclose(frame["probability"], expected, atol=1e-4)
