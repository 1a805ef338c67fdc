import numpy as np
import pytest
from sample_examined import NAMES
from sample_examined import SETS
from sample_examined import examined
from sample_examined import planted
from sample_examined import small

from alim_keras.data import SparseCandidates
from alim_keras.data.tables import Votes
from alim_keras.noise_rate import Estimate
from alim_keras.report import examine
from alim_keras.report import suspicion


def test_bayes_rule_by_hand():
    # eta 1/3: lambda is 1/2 * 2 / 1 = 1 for two of three classes, 1/2 * 1 / 2
    # for one, 0 for all.
    found = small(noise_rate=1 / 3)
    frame = found.labels.set_index("id")
    assert frame["label"].tolist() == ["cat", "dog", "elk"]
    np.testing.assert_allclose(
        frame["probability"],
        [0.7, 0.8 / (0.8 + 0.2 / 4), 0.6],
        rtol=1e-5,
    )
    np.testing.assert_allclose(
        frame["suspicion"], [0.7, 0.05 / 0.85, 0], rtol=1e-5, atol=1e-7
    )
    assert frame["outside"].tolist() == [True, False, False]
    assert frame["suggested"]["a"] == ["cat", "dog", "elk"]
    assert found.summary["lambda"] == pytest.approx((1 + 0.25 + 0) / 3)
    assert found.summary["noise_rate"] == pytest.approx(1 / 3)
    assert found.summary["outside"] == 1
    assert found.summary["suspect"] == pytest.approx(0.7 + 0.05 / 0.85)
    assert found.summary["mean_set_size"] == 2
    # Eq. 6: .2 / .7, .8 / .1, and a full set.
    np.testing.assert_allclose(found.ratio, [2 / 7, 8, np.inf], rtol=1e-5)


def test_a_trusted_set_and_a_rate_by_size():
    assert small(noise_rate=0.0).labels["suspicion"].max() == 0
    estimate = Estimate(
        0.1, 0, 1, "em", "why.", details={"rate_by_size": [0, 0, 1 / 3, 0]}
    )
    found = small(noise_rate=estimate)
    np.testing.assert_allclose(
        found.labels["suspicion"], [0.7, 0, 0], rtol=1e-5
    )
    assert found.summary["noise_rate_reason"] == "why."


def test_rows_of_the_table_are_the_belief_already():
    found = small(kind="table", noise_rate=0.4)
    np.testing.assert_allclose(found.labels["suspicion"], [0.7, 0.2, 0])
    np.testing.assert_allclose(found.labels["probability"], [0.7, 0.8, 0.6])
    assert found.ratio is None
    assert found.summary["lambda"] is None
    assert found.summary["noise_rate"] is None
    ratio = np.array([1.0, np.nan, 2.0])
    assert small(kind="table", ratio=ratio).ratio[2] == 2


def test_each_row_may_be_of_another_kind():
    kinds = ["table", "prediction", "prediction"]
    found = small(kind=kinds, noise_rate=1 / 3)
    assert found.labels["source"].tolist() == kinds
    np.testing.assert_allclose(
        found.labels["suspicion"], [0.7, 0.05 / 0.85, 0], rtol=1e-5
    )
    assert np.isnan(found.ratio[0]) and found.ratio[1] == pytest.approx(8)
    assert found.summary["kinds"] == {"table": 1, "prediction": 2}


def test_an_untouched_row_is_its_set():
    rows = np.array([[0.0, 0, 0], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
    found = examine(
        rows, SETS, class_names=NAMES, ids=["a", "b", "c"], kind="table"
    )
    assert found.labels["probability"][0] == 0.5
    assert found.labels["label"][0] == "dog"
    assert found.labels["suspicion"][0] == 0


@pytest.mark.parametrize("noise_rate", [None, 0.1])
def test_flags_of_planted_noise(noise_rate):
    data = planted()
    found = examined(data, noise_rate=noise_rate)
    wrong = ~data[1][np.arange(2000), data[2]]
    flagged = found.labels["outside"].to_numpy()
    assert wrong[flagged].mean() > 0.9
    assert flagged[wrong].mean() > 0.9
    assert found.summary["noise_rate"] == pytest.approx(0.1, abs=0.02)
    told = found.truth.set_index("what")
    assert told["precision"]["outside its set"] == wrong[flagged].mean()
    assert told["items"]["suspicion, top 5 %"] == 100
    assert told["precision"]["suspicion, top 5 %"] > 0.95
    assert "loss of the predictions, top 5 %" in told.index
    assert found.summary["realised_noise"] == pytest.approx(wrong.mean())
    assert found.summary["settled_accuracy"] > 0.95
    assert found.summary["known_labels"] == 2000
    # The list holds what is wrong.
    listed = found.review["id"].str.removesuffix(".png").astype(int)
    assert len(listed) == 200
    assert wrong[listed].mean() > 0.75


def test_noise_in_one_class_puts_it_first():
    found = examined(planted(5000, noise=0.2, only=3))
    first = found.classes.iloc[0]
    assert first["class"] == "c3"
    assert first["outside_share"] == pytest.approx(0.2, abs=0.08)


@pytest.mark.parametrize("noise_rate", [None, 0.2])
def test_sparse_sets_in_small_blocks_give_the_same(monkeypatch, noise_rate):
    data = planted(500)
    dense = examined(data, noise_rate=noise_rate)
    monkeypatch.setattr(suspicion, "BLOCK", 70)
    sets = SparseCandidates.from_multi_hot(data[1])
    sparse = examined((data[0], sets, data[2]), noise_rate=noise_rate)
    for name in ("candidates", "suggested", "label", "outside"):
        assert sparse.labels[name].tolist() == dense.labels[name].tolist()
    np.testing.assert_allclose(
        sparse.labels["suspicion"], dense.labels["suspicion"], atol=1e-6
    )
    np.testing.assert_allclose(sparse.confusion_matrix, dense.confusion_matrix)
    np.testing.assert_allclose(sparse.ratio, dense.ratio, rtol=1e-6)
    assert sparse.truth.equals(dense.truth)
    assert sparse.review["id"].tolist() == dense.review["id"].tolist()


def test_votes_are_believed_more_than_their_union():
    stream = np.random.default_rng(1)
    probabilities, _, truth = planted(1500, signal=1.5)
    # Three people, each of whom guesses in a fifth of the cases.
    said = np.where(
        stream.random((1500, 3)) < 0.2,
        stream.integers(0, 10, (1500, 3)),
        truth[:, None],
    )
    sets = np.zeros((1500, 10), bool)
    sets[np.arange(1500)[:, None], said] = True
    votes = Votes(
        np.repeat(np.arange(1500), 3),
        np.tile(np.arange(3, dtype="int32"), 1500),
        said.ravel().astype("int32"),
        None,
        ("ann", "bob", "cy"),
    )
    data = (probabilities, sets, truth)
    alone, together = examined(data), examined(data, votes=votes)
    assert (
        together.summary["settled_accuracy"]
        > alone.summary["settled_accuracy"] + 0.02
    )
    assert alone.annotators is None
    assert together.annotators["votes"].tolist() == [1500] * 3
    assert together.votes is votes
    label = together.labels["label"].str.removeprefix("c").astype(int)
    for who in range(3):
        share = (said[:, who] == label).mean()
        assert together.annotators["agreement"][who] == pytest.approx(share)
        # What is expected is what is there, if the belief is honest.
        assert together.annotators["expected_agreement"][who] == pytest.approx(
            share, abs=0.02
        )
    assert together.review["reason"].str.contains("annotators disagree").any()


def test_labels_that_are_not_known_are_left_out():
    assert small(labels=None).truth is None
    assert small(labels=[-1, -1, -1]).truth is None
    found = small(labels=[-1, 1, -1])
    assert found.summary["known_labels"] == 1
    assert found.summary["settled_accuracy"] == 1
    assert found.summary["realised_noise"] == 0


def test_the_history_fills_the_summary():
    import pandas

    history = pandas.DataFrame(
        {"epoch": [0, 1], "lambda": [0, 0.25], "test_accuracy": [0.5, None]}
    )
    found = small(kind="table", history=history)
    assert found.summary["epochs"] == 2
    assert found.summary["lambda"] == 0.25
    assert found.summary["test_accuracy"] is None
    assert small(noise_rate=0.0, history=history).summary["lambda"] == 0


def test_facts_of_the_model_come_before_the_end_of_the_training():
    import pandas

    history = pandas.DataFrame(
        {"epoch": [1, 2], "lambda": [0.1, 0.25], "test_accuracy": [0.9, 0.5]}
    )
    facts = {"epochs": 1, "run_epochs": 2, "test_accuracy": 0.9}
    found = small(kind="table", history=history, facts=facts).summary
    assert (found["epochs"], found["run_epochs"]) == (1, 2)
    assert found["test_accuracy"] == 0.9
    # What is not known of that model is not taken from another one.
    assert found["lambda"] is None
    last = small(kind="table", history=history).summary
    assert (last["epochs"], last["run_epochs"]) == (2, 2)
    assert (last["test_accuracy"], last["lambda"]) == (0.5, 0.25)


def test_a_tie_goes_to_the_given_set():
    found = examine(
        [[0.5, 0.5], [0.5, 0.5]],
        [[False, True], [True, False]],
        class_names=["cat", "dog"],
        ids=["a", "b"],
        kind="table",
    )
    assert found.labels["label"].tolist() == ["dog", "cat"]
    assert found.labels["runner_up"].tolist() == ["cat", "dog"]
    assert found.summary["outside"] == 0
    assert found.confusions.empty
