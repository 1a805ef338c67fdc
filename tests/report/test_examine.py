import csv
import json

import numpy as np
import pytest

from alim_keras.data import SparseCandidates
from alim_keras.data.tables import Votes
from alim_keras.errors import DataError
from alim_keras.noise_rate import Estimate
from alim_keras.report import examine
from alim_keras.report import suspicion

NAMES = ["cat", "dog", "elk"]
PROBABILITIES = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
SETS = np.array([[0, 1, 1], [0, 1, 0], [1, 1, 1]], bool)


def small(**options):
    defaults = {"class_names": NAMES, "ids": ["a", "b", "c"], "kind": "folds"}
    return examine(PROBABILITIES, SETS, **{**defaults, **options})


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


def planted(count=2000, noise=0.1, only=None, seed=0, signal=4):
    """Honest predictions, sets of one or two, and the truth."""
    num_classes = 10
    stream = np.random.default_rng(seed)
    truth = stream.integers(0, num_classes, count)
    logits = stream.normal(size=(count, num_classes))
    logits[np.arange(count), truth] += signal
    # Bayes's rule for such features.
    probabilities = np.exp(signal * logits)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    wrong = stream.random(count) < noise
    if only is not None:
        wrong &= truth == only
    other = (truth + stream.integers(1, num_classes, count)) % num_classes
    given = np.where(wrong, other, truth)
    sets = np.eye(num_classes, dtype=bool)[given]
    more = (truth + stream.integers(1, num_classes, count)) % num_classes
    sets[np.arange(count), more] |= stream.random(count) < 0.5
    return probabilities, sets, truth


def examined(found, **options):
    probabilities, sets, truth = found
    return examine(
        probabilities,
        sets,
        class_names=[f"c{i}" for i in range(sets.shape[1])],
        ids=[f"{i}.png" for i in range(len(sets))],
        **{"kind": "folds", "labels": truth, **options},
    )


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


@pytest.mark.parametrize("kind", ["table", "folds", "prediction"])
def test_nothing_at_all(kind, tmp_path):
    found = examine(
        np.zeros((0, 3)),
        np.zeros((0, 3), bool),
        class_names=NAMES,
        ids=[],
        kind=kind,
    )
    assert found.summary["num_examples"] == 0
    assert found.summary["mean_set_size"] is None
    assert found.labels.empty and found.review.empty
    assert found.classes["given"].tolist() == [0, 0, 0]
    assert len(found.write(tmp_path)) == 4


def test_the_files(tmp_path):
    paths = small(noise_rate=1 / 3).write(tmp_path / "audit")
    assert [path.rsplit("/")[-1] for path in map(str, paths)] == [
        "labels.csv",
        "review.csv",
        "noise_by_class.csv",
        "confusions.csv",
    ]
    tables = {}
    for path in paths:
        with open(path, encoding="utf-8", newline="") as file:
            tables[path.rsplit("/")[-1]] = list(csv.DictReader(file))
    assert json.loads(tables["labels.csv"][0]["candidates"]) == ["dog", "elk"]
    assert tables["review.csv"][0]["reason"] == (
        "outside its set, 0.70 sure of cat"
    )
    # The settled label of no example that misses it: no share to state.
    by_class = {row["class"]: row for row in tables["noise_by_class.csv"]}
    assert by_class["cat"]["outside_share"] == "1.0000"
    assert tables["confusions.csv"] == [
        {
            "given": "dog",
            "settled": "cat",
            "count": "0.5000",
            "share": f"{0.5 / (0.5 + 1 + 1 / 3):.4f}",
        },
        {
            "given": "elk",
            "settled": "cat",
            "count": "0.5000",
            "share": f"{0.5 / (0.5 + 1 / 3):.4f}",
        },
    ]


def test_a_class_that_does_not_occur_has_empty_cells(tmp_path):
    found = examine(
        [[0.9, 0.1, 0.0]],
        [[True, True, False]],
        class_names=NAMES,
        ids=["a"],
        kind="table",
    )
    found.write(tmp_path)
    with open(tmp_path / "noise_by_class.csv", encoding="utf-8") as file:
        rows = {row["class"]: row for row in csv.DictReader(file)}
    assert rows["elk"] == {
        "class": "elk",
        "given": "0",
        "settled": "0",
        "outside": "0",
        "outside_share": "",
        "given_wrong": "0",
        "given_wrong_share": "",
        "mean_set_size": "",
        "confusions": "",
    }


@pytest.mark.parametrize(
    "change, words",
    [
        ({"kind": "guess"}, "'table', 'folds', 'prediction'"),
        ({"ids": ["a", "b"]}, r"2 ids .* \(3, 3\)"),
        ({"class_names": NAMES[:2]}, "2 class names"),
        ({"labels": [0]}, "1 labels, 3 ids"),
        ({"labels": [0, 3, -1]}, "from 0 to 2 .* Received: 3 in row 1"),
        ({"labels": [0, 1, -2]}, "Received: -2 in row 2"),
        ({"labels": [0.0, 1.0, -1.0]}, "must be integers.* float64"),
        ({"labels": [[0], [1], [2]]}, r"int64 of shape \(3, 1\)"),
        ({"kind": ["table", "folds"]}, r"`kind` .* of 3 .* shape \(2,\)"),
        ({"kind": ["table", "folds", 1]}, r"'table', .* \['1'\]"),
        ({"known": [True]}, r"`known` must be .* shape \(1,\)"),
        ({"ratio": [1.0, 2.0]}, r"`ratio` must be .* shape \(2,\)"),
        ({"ids": ["a", "b", "a"]}, r"1 examples .* ids a \(row 2\); give"),
        ({"noise_rate": 1.0}, "noise_rate=1.0"),
        ({"noise_rate": float("nan")}, "noise_rate=nan"),
    ],
)
def test_what_does_not_fit_is_named(change, words):
    with pytest.raises(DataError, match=words) as error:
        small(**change)
    assert "\n" not in str(error.value)


def test_rows_that_are_no_distribution_are_named():
    bad = PROBABILITIES.copy()
    bad[1, 0] = np.nan
    options = {"class_names": NAMES, "ids": ["a", "b", "c"], "kind": "table"}
    with pytest.raises(DataError, match=r"not finite, ids b \(row 1\)"):
        examine(bad, SETS, **options)
    empty = SETS.copy()
    empty[2] = False
    with pytest.raises(DataError, match=r"empty candidate set, ids c"):
        examine(PROBABILITIES, empty, **options)


@pytest.mark.parametrize("count, num_classes", [(1, 1), (1, 2), (3, 2), (2, 1)])
def test_few_examples_and_few_classes(count, num_classes):
    stream = np.random.default_rng(0)
    probabilities = stream.dirichlet(np.ones(num_classes), count)
    sets = np.zeros((count, num_classes), bool)
    sets[:, 0] = True
    nobody = Votes(
        np.zeros(0, "int64"),
        np.zeros(0, "int32"),
        np.zeros(0, "int32"),
        None,
        ("ann",),
    )
    for votes in (None, nobody):
        found = examine(
            probabilities,
            sets,
            class_names=NAMES[:num_classes],
            ids=list("abc")[:count],
            kind="folds",
            votes=votes,
        )
        shares = found.labels[["probability", "suspicion"]].to_numpy()
        assert np.isfinite(shares).all()
        assert (found.labels["candidates"].str.len() == 1).all()
        if num_classes == 1:
            assert (found.labels["suspicion"] == 0).all()
    assert found.annotators["votes"].tolist() == [0]
    assert np.isnan(found.annotators["agreement"][0])
