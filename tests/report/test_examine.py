import json

import numpy as np
import own
import pandas as pd
import pytest
from sample_report import NAMES
from sample_report import PROBABILITIES
from sample_report import SETS
from sample_report import examined
from sample_report import planted
from sample_report import small
from sample_report import vote_frame

from alim_keras.data import CandidateSets
from alim_keras.data import annotators
from alim_keras.errors import DataError
from alim_keras.noise_rate import wilson
from alim_keras.report import examine


def test_bayes_rule_by_hand():
    # eta 1/3: lambda is 1/2 * 2 / 1 = 1 for two of three classes, 1/2 * 1 / 2
    # for one, 0 for all.
    found = small(noise_rate=1 / 3)
    frame = found.labels.set_index("id")
    assert frame["label"].tolist() == ["cat", "dog", "elk"]
    dog = 0.8 / (0.8 + 0.2 / 4)
    np.testing.assert_allclose(frame["probability"], [0.7, dog, 0.6], rtol=1e-5)
    np.testing.assert_allclose(
        frame["suspicion"], [0.7, 1 - dog, 0], rtol=1e-5, atol=1e-7
    )
    assert frame["outside"].tolist() == [True, False, False]
    assert frame["suggested"]["a"] == ["cat", "dog", "elk"]
    summary = found.summary
    assert summary["noise_rate"] == pytest.approx(1 / 3)
    assert summary["outside"] == 1
    assert summary["suspect"] == pytest.approx(0.7 + 0.05 / 0.85)
    assert summary["mean_set_size"] == 2


def test_each_row_may_be_of_another_kind():
    kinds = ["table", "prediction", "prediction"]
    found = small(kind=kinds, noise_rate=1 / 3)
    assert found.labels["source"].tolist() == kinds
    np.testing.assert_allclose(
        found.labels["suspicion"], [0.7, 0.05 / 0.85, 0], rtol=1e-5
    )
    assert found.summary["kinds"] == {"table": 1, "prediction": 2}
    # Rows of the table are the belief already.
    found = small(kind="table", noise_rate=0.4)
    np.testing.assert_allclose(found.labels["suspicion"], [0.7, 0.2, 0])
    assert found.summary["noise_rate"] == 0.4
    assert small(kind="table").summary["noise_rate"] is None


@pytest.mark.parametrize("noise_rate", [None, 0.1])
def test_flags_of_planted_noise(noise_rate):
    data = planted()
    found = examined(data, noise_rate=noise_rate)
    wrong = ~data[1][np.arange(2000), data[2]]
    flagged = found.labels["outside"].to_numpy()
    assert wrong[flagged].mean() > 0.9
    assert flagged[wrong].mean() > 0.9
    assert found.summary["noise_rate"] == pytest.approx(0.1, abs=0.02)
    first = found.labels["suspicion"].nlargest(100).index
    assert wrong[first].mean() > 0.95
    assert found.summary["realised_noise"] == pytest.approx(wrong.mean())
    assert found.summary["settled_accuracy"] > 0.95
    assert found.summary["known_labels"] == 2000
    # The list holds most of what is settled wrong.
    missed = found.labels["label"] != np.array(found.class_names)[data[2]]
    listed = found.review["id"].str.removesuffix(".png").astype(int)
    assert len(listed) == 200 and 10 < missed.sum() < 100
    assert missed[listed].sum() >= 0.9 * missed.sum()


@pytest.mark.parametrize("noise_rate", [None, 0.2])
def test_small_blocks_give_the_same(monkeypatch, noise_rate):
    whole = examined(planted(500), noise_rate=noise_rate)
    monkeypatch.setattr(annotators, "_BLOCK", 70)
    parts = examined(planted(500), noise_rate=noise_rate)
    pd.testing.assert_frame_equal(parts.labels, whole.labels)
    np.testing.assert_allclose(parts.confusion_matrix, whole.confusion_matrix)
    assert parts.review["id"].tolist() == whole.review["id"].tolist()


def test_votes_are_believed_more_than_their_union():
    stream = np.random.default_rng(1)
    probabilities, _, truth = planted(1500, signal=1.5)
    # Three people, each of whom guesses in a fifth of the cases.
    guess = stream.integers(0, 10, (1500, 3))
    said = np.where(stream.random((1500, 3)) < 0.2, guess, truth[:, None])
    sets = np.eye(10, dtype=bool)[said].any(axis=1)
    alone = examined((probabilities, sets, truth))
    votes = vote_frame(
        [
            (row, who, c)
            for row in range(1500)
            for who, c in enumerate(said[row])
        ],
        ["ann", "bob", "cy"],
        alone.class_names,
        alone.labels["id"],
    )
    together = examined((probabilities, sets, truth), votes=votes)
    before = alone.summary["settled_accuracy"]
    assert together.summary["settled_accuracy"] > before + 0.02
    assert alone.annotators is None
    assert together.annotators["votes"].tolist() == [1500] * 3


def test_known_labels_judge_sets_and_settled_labels():
    labels = [0, 1, -1]
    found = small(labels=labels, noise_rate=0.1)
    summary = found.summary
    assert summary["known_labels"] == summary["compared_labels"] == 2
    # The set of a misses cat.
    assert summary["realised_noise"] == 0.5
    ends = summary["realised_noise_low"], summary["realised_noise_high"]
    assert ends == wilson(1, 2)
    assert found.describe().endswith(
        "Sets that miss a known true label: 1 of 2 (50 %)\n"
        "The same of all sets: 9.45 % to 90.5 %, if those items are a random "
        "sample"
    )
    # What was told is no test of what was settled.
    kinds = ["folds", "known", "folds"]
    told = small(labels=labels, kind=kinds, noise_rate=0.1).summary
    assert (told["known_labels"], told["compared_labels"]) == (2, 1)
    assert told["settled_accuracy"] == float(found.labels["label"][0] == "cat")
    told = small(labels=[-1, 1, -1], kind=kinds, noise_rate=0.1).summary
    assert told["compared_labels"] == 0 and told["settled_accuracy"] is None
    assert told["known_labels"] == 1 and told["realised_noise"] == 0


def test_answers_in_place_of_sets_do_not_hide_what_was_given():
    options = {"kind": "folds", "labels": [0, 1, 2], "noise_rate": 0.1}
    found = examine(PROBABILITIES, np.eye(3), as_given=SETS, **options)
    assert found.summary["realised_noise"] == 1 / 3
    found = examine(PROBABILITIES, np.eye(3), **options)
    assert found.summary["realised_noise"] == 0


def test_an_empty_review_list_says_why():
    found = small(known=[True] * 3)
    assert found.review.empty
    words = "Listed for review: 0\nLooked at already: 3\n"
    assert words in found.describe()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"kind": "guess"}, "'table', 'folds', 'prediction'"),
        ({"kind": ["table", "folds"]}, r"`kind` .* of 3 .* shape \(2,\)"),
        ({"ids": ["a", "b"]}, r"2 ids"),
        ({"class_names": NAMES[:2]}, r"3 columns.* 2 classes"),
        ({"labels": [0]}, r"`labels` .* of 3 .* shape \(1,\)"),
        ({"labels": [0, 3, -1]}, r"outside 0\.\.2: .* b \(row 1\)"),
        ({"labels": [0.5, 1.0, -1.0]}, "whole"),
        ({"known": [True]}, r"`known` must be .* shape \(1,\)"),
        ({"class_names": ["cat", "dog", "cat"]}, "cat"),
        ({"as_given": SETS[:2]}, "one id for each set"),
        ({"noise_rate": 1.0}, "noise_rate=1.0"),
        ({"noise_rate": float("nan")}, "noise_rate=nan"),
    ],
)
def test_what_does_not_fit_is_named(change, message):
    with pytest.raises(DataError, match=message) as error:
        small(**change)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "value, kind, message",
    [
        (np.nan, "table", r"finite.* ids b \(row 1\)"),
        (-0.1, "table", r"not negative.* ids b \(row 1\)"),
        (2.0, "folds", r"sum to 1.* ids b \(row 1\)"),
    ],
)
def test_rows_that_are_no_distribution_are_named(value, kind, message):
    bad = PROBABILITIES.copy()
    bad[1, 0] = value
    with pytest.raises(DataError, match=message):
        examine(bad, SETS, ids=["a", "b", "c"], kind=kind)
    with pytest.raises(DataError, match=r"be \(3, 3\), a row.* \(2, 3\)"):
        examine(bad[:2], SETS, kind=kind)


def test_ids_and_names_are_those_of_the_sets_or_given():
    sets = CandidateSets.from_dense(SETS, list("abc"), NAMES)
    found = examine(PROBABILITIES, sets, kind="table")
    assert found.labels["id"].tolist() == list("abc")
    assert found.class_names == NAMES
    found = examine(PROBABILITIES, sets, kind="table", ids=list("xyz"))
    assert found.labels["id"].tolist() == list("xyz")


@pytest.mark.parametrize("count, num_classes", [(1, 1), (1, 2), (3, 2), (2, 1)])
def test_few_examples_and_few_classes(count, num_classes):
    probabilities = np.full((count, num_classes), 1 / num_classes)
    sets = np.zeros((count, num_classes), bool)
    sets[:, 0] = True
    nobody = pd.DataFrame({"item": [], "annotator": [], "label": []})
    for votes in (None, nobody):
        found = examine(probabilities, sets, kind="folds", votes=votes)
        shares = found.labels[["probability", "suspicion"]].to_numpy()
        assert np.isfinite(shares).all()
        if num_classes == 1:
            assert (found.labels["suspicion"] == 0).all()
    assert found.annotators.empty


def test_the_files(tmp_path):
    paths = small(noise_rate=1 / 3).write(tmp_path / "audit")
    rows = {path.rsplit("/")[-1]: own.read_rows(path) for path in paths}
    names = "labels.csv review.csv noise_by_class.csv confusions.csv".split()
    assert list(rows) == names
    assert json.loads(rows["labels.csv"][0]["candidates"]) == ["dog", "elk"]
    first = rows["review.csv"][1]
    assert first["settled"] == "cat"
    assert first["reason"] == "outside its set, 70 % sure of cat"
    by_class = {row["class"]: row for row in rows["noise_by_class.csv"]}
    assert by_class["cat"]["outside_share"] == "1.0000"
    assert [list(row.values()) for row in rows["confusions.csv"]] == [
        ["dog", "cat", "1", "0.3333"],
        ["elk", "cat", "1", "0.5000"],
    ]


def test_weights_of_candidates_count_in_predictions():
    weights = [[1.0, 0.5, 0.0], [0.25, 0.0, 0.5]]
    sets = CandidateSets.from_dense(
        np.array(weights), ["a", "b"], NAMES, graded=True
    )
    found = examine(
        [[0.4, 0.5, 0.1], [0.6, 0.2, 0.2]], sets, kind="folds", noise_rate=1 / 3
    )
    # lambda is 1, see `test_bayes_rule_by_hand`; of row b, 0.25 / 0.5 of 0.6.
    rows = np.array([[0.4, 0.25, 0.1], [0.3, 0.2, 0.2]])
    rows /= rows.sum(axis=1, keepdims=True)
    frame = found.labels
    np.testing.assert_allclose(frame["probability"], rows[:, 0], rtol=1e-5)
    suspicion = [rows[0, 2], rows[1, 1]]
    np.testing.assert_allclose(frame["suspicion"], suspicion, rtol=1e-5)
