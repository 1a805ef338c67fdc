import numpy as np
import pandas
import pytest

from alim_keras.data.tables import Votes
from alim_keras.report import examine
from alim_keras.report import vote_model
from alim_keras.report.vote_model import VoteModel


def votes_of(entries, people):
    rows, who, classes = np.array(entries).T
    return Votes(
        rows.astype("int64"),
        who.astype("int32"),
        classes.astype("int32"),
        None,
        tuple(f"p{i}" for i in range(people)),
    )


def fitted(votes, probabilities, rows=None):
    logs = np.log(probabilities)
    rows = np.arange(len(logs)) if rows is None else rows
    half = len(rows) // 2
    parts = [np.arange(half), np.arange(half, len(rows))]
    return VoteModel(
        votes, rows, lambda chosen: logs[chosen], parts, logs.shape[1]
    )


def crowd(count=1500, seed=0):
    """Three people; the third says 1 for every 0. Weak predictions."""
    stream = np.random.default_rng(seed)
    truth = stream.integers(0, 3, count)
    logits = stream.normal(size=(count, 3))
    logits[np.arange(count), truth] += 1
    probabilities = np.exp(logits)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    entries = []
    for row, label in enumerate(truth):
        for who in range(3):
            said = label
            if stream.random() < 0.1:
                said = stream.integers(0, 3)
            if who == 2 and said == 0:
                said = 1
            entries.append((row, who, said))
    stream.shuffle(entries)
    return votes_of(entries, 3), probabilities, truth


def test_belief_is_bayes_rule():
    votes, probabilities, _ = crowd(60)
    model = fitted(votes, probabilities)
    rows = np.array([3, 10, 59])
    found = model.belief(rows, np.log(probabilities[rows]))
    for place, row in enumerate(rows):
        expected = probabilities[row].copy()
        for at in np.flatnonzero(votes.rows == row):
            one = model.confusions[votes.annotators[at]]
            expected *= one[:, votes.classes[at]]
        expected /= expected.sum()
        np.testing.assert_allclose(found[place], expected, rtol=1e-4)


def test_each_annotator_has_confusions_of_its_own():
    votes, probabilities, truth = crowd()
    model = fitted(votes, probabilities)
    np.testing.assert_allclose(model.confusions.sum(axis=2), 1)
    # Of ten votes on 0 one is drawn at random: .9 + .1 / 3.
    assert model.confusions[0, 0, 0] == pytest.approx(0.933, abs=0.05)
    assert model.confusions[2, 0, 0] < 0.06
    assert model.confusions[2, 0, 1] > 0.85
    belief = model.belief(np.arange(len(truth)), np.log(probabilities))
    settled = belief.argmax(axis=1)
    # A majority of three has the third against it on each 0.
    counts = np.zeros((len(truth), 3))
    np.add.at(counts, (votes.rows, votes.classes), 1)
    majority = counts.argmax(axis=1)
    assert (settled == truth).mean() > (majority == truth).mean()
    assert (settled == truth).mean() > 0.97


def test_examples_without_votes_keep_the_predictions():
    votes, probabilities, _ = crowd(40)
    chosen = votes.rows >= 10
    some = Votes(
        votes.rows[chosen],
        votes.annotators[chosen],
        votes.classes[chosen],
        None,
        votes.annotator_names,
    )
    model = fitted(some, probabilities)
    rows = np.arange(40)
    assert model.voted(rows).tolist() == [False] * 10 + [True] * 30
    found = model.belief(rows[:10], np.log(probabilities[:10]))
    np.testing.assert_allclose(found, probabilities[:10], rtol=1e-5)
    nothing = model.belief(rows[:0], np.log(probabilities[:0]))
    assert nothing.shape == (0, 3)


def test_only_the_rows_that_are_asked_for_count():
    votes, probabilities, _ = crowd(400)
    rows = np.arange(0, 400, 2)
    found = fitted(votes, probabilities, rows)
    alone = fitted(votes.select(rows), probabilities[rows])
    np.testing.assert_allclose(found.confusions, alone.confusions)


def test_those_with_few_votes_share_a_matrix(monkeypatch):
    # Room for two matrices: one person's and the shared one.
    monkeypatch.setattr(vote_model, "_LARGEST", 2 * 9)
    votes, probabilities, _ = crowd(300)
    keep = (votes.annotators == 2) | (votes.rows < 100)
    fewer = Votes(
        votes.rows[keep],
        votes.annotators[keep],
        votes.classes[keep],
        None,
        votes.annotator_names,
    )
    model = fitted(fewer, probabilities)
    assert len(model.confusions) == 2
    # The third has the most votes; its habit is not the others'.
    assert model.confusions[0, 0, 1] > 0.7
    assert model.confusions[1, 0, 0] > 0.6


def test_one_answer_to_an_item_is_left_to_the_model_of_sets():
    """Habits of people who never looked at the same item are no evidence."""
    stream = np.random.default_rng(0)
    count = 60
    answers = stream.integers(0, 3, count)
    predicted = stream.dirichlet(np.ones(3), count)
    votes = Votes(
        np.arange(count),
        np.zeros(count, "int32"),
        answers.astype("int32"),
        None,
        ("ann",),
    )
    options = {
        "class_names": "abc",
        "ids": [str(row) for row in range(count)],
        "kind": "folds",
    }
    sets = np.eye(3, dtype=bool)[answers]
    plain = examine(predicted, sets, **options)
    told = examine(predicted, sets, votes=votes, **options)
    pandas.testing.assert_frame_equal(told.labels, plain.labels)
    # She is in the table of annotators all the same.
    assert told.annotators["votes"].tolist() == [count]


def test_votes_decide_whatever_noise_rate_is_given():
    votes, probabilities, _ = crowd(300)
    sets = np.zeros((300, 3), bool)
    sets[np.arange(300), probabilities.argmin(axis=1)] = True
    options = {"class_names": list("abc"), "kind": "prediction"}
    options.update(ids=[str(row) for row in range(300)], noise_rate=0.0)
    alone = examine(probabilities, sets, **options)
    assert alone.labels["suspicion"].max() == 0
    voted = examine(probabilities, sets, votes=votes, **options)
    assert voted.labels["suspicion"].max() > 0.9
    reason = "Examples with votes do without it"
    assert reason in voted.summary["noise_rate_reason"]
    assert reason not in alone.summary["noise_rate_reason"]
