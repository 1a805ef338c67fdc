import itertools

import numpy as np
import pandas as pd
import pytest
from sample_report import vote_frame
from scipy.special import softmax

from alim_keras.data import annotators as module
from alim_keras.data.annotators import VoteArrays
from alim_keras.data.annotators import VoteModel
from alim_keras.errors import DataError
from alim_keras.report import examine
from alim_keras.report import tables

NAMES = ["cat", "dog", "elk"]
LABEL = np.array([0, 1, 1, 2])
PEOPLE = ["ann", "bob", "cy"]
# ann: cat right, dog right, cat for dog. bob: cat right, cat right again for
# the same example, elk for elk. cy: no class.
ENTRIES = [
    (0, 0, 0), (1, 0, 1), (2, 0, 0), (0, 1, 0), (0, 1, 0), (3, 1, 2),
    (3, 2, None),
]  # fmt: skip


def arrays(entries, people=PEOPLE, names=NAMES, count=4):
    frame = vote_frame(entries, people, names)
    return VoteArrays.of(frame, [str(row) for row in range(count)], names)


def test_votes_are_ordered_by_example():
    found = arrays([*ENTRIES, (9, 0, 1)])
    assert found.rows.tolist() == [0, 0, 0, 1, 2, 3]
    assert found.annotators.tolist() == [0, 1, 1, 0, 0, 1]
    assert found.classes.tolist() == [0, 0, 0, 1, 0, 2]
    assert found.names.tolist() == PEOPLE
    frame = vote_frame(ENTRIES, PEOPLE, NAMES)
    # Confidence 0: it is not of this class.
    frame.loc[0, "confidence"] = 0.0
    assert len(VoteArrays.of(frame, list("0123"), NAMES)) == 5
    # Six votes on four examples.
    assert found.overlap()
    assert not arrays([(row, 0, 1) for row in range(4)]).overlap()
    assert not arrays([(0, 0, None)]).overlap()


@pytest.mark.parametrize(
    "change, words",
    [
        ({"item": "z"}, r"No vote is about .* z, z, z"),
        ({"label": "wolf"}, r"1 labels .* no class names: wolf$"),
    ],
)
def test_what_is_no_vote_is_named(change, words):
    frame = vote_frame(ENTRIES, PEOPLE, NAMES).assign(**change)
    with pytest.raises(DataError, match=words):
        VoteArrays.of(frame, list("0123"), NAMES)


def test_each_column_of_the_table_by_hand():
    found = tables.annotators(arrays(ENTRIES), LABEL, NAMES)
    assert ",".join(found.columns) == "annotator,votes,agreement,bias"
    assert found["annotator"].tolist() == PEOPLE
    assert found["votes"].tolist() == [3, 3, 0]
    np.testing.assert_allclose(found["agreement"], [2 / 3, 1, np.nan])
    bias = "cat +1; most often cat for dog (1)"
    assert found["bias"].tolist() == [bias, "", ""]


def test_bias_is_what_loops_give():
    stream = np.random.default_rng(0)
    label = stream.integers(0, 12, 500)
    rows, who = stream.integers(0, 500, 3000), stream.integers(0, 40, 3000)
    guess = stream.integers(0, 12, 3000)
    said = np.where(stream.random(3000) < 0.6, label[rows], guess)
    names = [f"c{i}" for i in range(12)]
    people = [f"p{i}" for i in range(40)]
    votes = arrays(list(zip(rows, who, said)), people, names, 500)
    found = tables.annotators(votes, label, names)
    for place, name in enumerate(votes.names):
        mine = who == int(name[1:])
        excess = np.bincount(said[mine], minlength=12)
        excess -= np.bincount(label[rows[mine]], minlength=12)
        expected = f"{names[excess.argmax()]} +{excess.max()}; most often "
        assert found["bias"][place].startswith(expected)


def fitted(votes, probabilities):
    logs = np.log(probabilities)
    return VoteModel(votes, logs.shape, lambda part: logs[part])


def crowd(count=1500, seed=0):
    """Three people; the third says 1 for every 0. Weak predictions."""
    stream = np.random.default_rng(seed)
    truth = stream.integers(0, 3, count)
    logits = stream.normal(size=(count, 3)) + np.eye(3)[truth]
    probabilities = softmax(logits, axis=1)
    entries = []
    for row, who in itertools.product(range(count), range(3)):
        said = truth[row]
        if stream.random() < 0.1:
            said = stream.integers(0, 3)
        entries.append((row, who, 1 if who == 2 and said == 0 else said))
    stream.shuffle(entries)
    # Numbers of the annotators in the order of appearance.
    entries = sorted(entries[:90], key=lambda e: e[1]) + entries[90:]
    return entries, probabilities, truth


def test_belief_is_bayes_rule():
    entries, probabilities, _ = crowd(60)
    votes = arrays([e for e in entries if e[0] >= 10], count=60)
    model = fitted(votes, probabilities)
    rows = np.array([3, 10, 59])
    assert model.voted(rows).tolist() == [False, True, True]
    found = model.belief(rows, np.log(probabilities[rows]))
    for place, row in enumerate(rows):
        # Without votes the prediction is kept.
        own = votes.rows == row
        who, given = votes.annotators[own], votes.classes[own]
        expected = probabilities[row] * model.confusions[who, :, given].prod(0)
        expected /= expected.sum()
        np.testing.assert_allclose(found[place], expected, rtol=1e-4)
    nothing = model.belief(rows[:0], np.log(probabilities[:0]))
    assert nothing.shape == (0, 3)


def test_each_annotator_has_confusions_of_its_own():
    entries, probabilities, truth = crowd()
    votes = arrays(entries, count=len(truth))
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


def test_those_with_few_votes_share_a_matrix(monkeypatch):
    # Room for two matrices: one person's and the shared one.
    monkeypatch.setattr(module, "_LARGEST", 2 * 9)
    entries, probabilities, _ = crowd(300)
    votes = [e for e in entries if e[1] == 2 or e[0] < 100]
    confusions = fitted(arrays(votes, count=300), probabilities).confusions
    # The third has the most votes; its habit is not the others'.
    assert len(confusions) == 2
    assert confusions[0, 0, 1] > 0.7 and confusions[1, 0, 0] > 0.6


def test_one_answer_to_an_item_is_left_to_the_model_of_sets():
    """Habits of people who never looked at the same item are no evidence."""
    stream = np.random.default_rng(0)
    answers = stream.integers(0, 3, 60)
    predicted = stream.dirichlet(np.ones(3), 60)
    votes = vote_frame([(i, 0, c) for i, c in enumerate(answers)], "a", "abc")
    options = {"class_names": list("abc"), "kind": "folds"}
    sets = np.eye(3, dtype=bool)[answers]
    plain = examine(predicted, sets, **options)
    told = examine(predicted, sets, votes=votes, **options)
    pd.testing.assert_frame_equal(told.labels, plain.labels)
    # She is in the table of annotators all the same.
    assert told.annotators["votes"].tolist() == [60]


def test_votes_decide_whatever_noise_rate_is_given():
    entries, probabilities, _ = crowd(300)
    votes = vote_frame(entries, PEOPLE, "abc")
    sets = np.eye(3, dtype=bool)[probabilities.argmin(axis=1)]
    options = {"class_names": list("abc"), "kind": "prediction"}
    alone = examine(probabilities, sets, noise_rate=0.0, **options)
    assert alone.labels["suspicion"].max() == 0
    voted = examine(probabilities, sets, noise_rate=0.0, votes=votes, **options)
    assert voted.labels["suspicion"].max() > 0.9
    reason = "Examples with votes do without it"
    assert reason in voted.summary["noise_rate_reason"]
    assert reason not in alone.summary["noise_rate_reason"]
