"""Graded sets: weights of candidates, from votes and from confidences."""

import dataclasses
import hashlib

import numpy as np
import pandas as pd
import pytest
from reading import read

from alim_keras.data import CandidateSets
from alim_keras.data.annotators import VoteArrays
from alim_keras.data.annotators import likelihood_of_members
from alim_keras.data.votes import sets_of_votes
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

S = np.array([[1, 0, 0.25], [0, 0.5, 0], [0.5, 1, 0.125]], "float32")


def graded(matrix=S):
    return CandidateSets.from_dense(matrix, ["a", "b", "c"], graded=True)


def test_rows_hold_weights_and_all_else_the_members():
    sets = graded()
    assert sets.rows([2, 0]).tolist() == S[[2, 0]].tolist()
    assert sets.rows([0]).dtype == np.float32
    assert sets.dense().tolist() == (S > 0).tolist()
    assert sets.sizes.tolist() == [2, 1, 3]
    assert sets.members(2).tolist() == [0, 1, 2]
    assert sets.contains([0, 0, 1], [2, 1, 1]).tolist() == [True, False, True]
    # 1 / 1.25, .25 / 1.25; .5 / .5; .5, 1 and .125 of 1.625.
    shares = [0.8, 0.2, 1, 4 / 13, 8 / 13, 1 / 13]
    np.testing.assert_allclose(sets.shares, shares)
    assert sets.realised_noise([2, 0, 0]) == pytest.approx(1 / 3)
    assert "mean weight     0.5625" in sets.describe()


def test_parts_and_known_labels_keep_the_weights():
    sets = graded()
    assert sets.take([2, 0]).rows([0, 1]).tolist() == S[[2, 0]].tolist()
    assert sets.select(["c"]).rows([0]).tolist() == S[[2]].tolist()
    # A part that has weights of 1 only is a plain set.
    assert graded(np.eye(3)).weights is None
    replaced = sets.replace([0, 2], [1, 1]).rows([0, 1, 2])
    assert replaced.tolist() == [[0, 1, 0], [0, 0.5, 0], [0, 1, 0]]


def test_weights_of_one_are_plain_sets_bit_for_bit(tmp_path):
    plain = CandidateSets.from_dense(S > 0, ["a", "b", "c"])
    ones = CandidateSets.from_dense(plain.dense() * 1.0, graded=True)
    ones = dataclasses.replace(plain, matrix=ones.matrix)
    assert ones.weights is None and ones.content_hash == plain.content_hash
    for name, sets in (("plain", plain), ("ones", ones)):
        sets.save(tmp_path / name)
    plain, ones = ((tmp_path / n).read_bytes() for n in ("plain", "ones"))
    assert plain == ones


def test_the_hash_and_the_file_hold_the_weights(tmp_path):
    sets, path = graded(), tmp_path / "sets.npz"
    digest = hashlib.sha256()
    parts = [b"alim_keras candidate sets 1", b"(3, 3)", b"0", b"1", b"2"]
    parts += [b"a", b"b", b"c", bytes([0b10100000, 0b01000000, 0b11100000])]
    parts.append(np.array([1, 0.25, 0.5, 0.5, 1, 0.125], "<f4").tobytes())
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    assert sets.content_hash == digest.hexdigest()
    assert sets.take([2, 0, 1]).content_hash == sets.content_hash
    sets.save(path)
    loaded = CandidateSets.load(path)
    assert loaded.rows([0, 1, 2]).tolist() == S.tolist()
    assert loaded.content_hash == sets.content_hash
    arrays = dict(np.load(path))
    arrays["weights"] = arrays["weights"] / 2
    np.savez(path, **arrays)
    with pytest.raises(DataError, match="do not fit the stored hash"):
        CandidateSets.load(path)


@pytest.mark.parametrize("value", [-0.5, 1.5, np.nan, np.inf])
def test_weights_out_of_range_are_refused(value):
    wrong = S.copy()
    wrong[1, 1] = value
    with pytest.raises(
        DataError, match=r"1 sets .*weights outside \(0, 1\]: b"
    ):
        graded(wrong)
    with pytest.raises(DataError, match="values are not 0 or 1"):
        CandidateSets.from_dense(S)


def people(seed=0, items=60, names="vwxyz", right=(0.95, 0.8, 0.4)):
    """A frame of votes by annotators of known quality, and the truth."""
    stream = np.random.default_rng(seed)
    truth = stream.integers(0, len(names), items)
    rows = []
    for item, true in enumerate(truth):
        for who, rate in enumerate(right):
            wrong = (true + stream.integers(1, len(names))) % len(names)
            label = true if stream.random() < rate else wrong
            rows.append((f"i{item}", f"p{who}", names[label]))
    columns = ["item", "annotator", "label"]
    return pd.DataFrame(rows, columns=columns), truth


def slow_likelihood(votes, num_items, names, steps=6):
    """Dawid and Skene's model, drawn to all annotators' habits, in loops."""
    who, size = sorted(set(votes["annotator"])), len(names)
    pi = np.full((len(who), size, size), 0.2 / (size - 1))
    pi[:, range(size), range(size)] = 0.8
    given = [
        (int(v.item[1:]), who.index(v.annotator), names.index(v.label))
        for v in votes.itertuples()
    ]

    def belief():
        likelihood = np.ones((num_items, size))
        for item, person, vote in given:
            likelihood[item] *= pi[person, :, vote]
        return likelihood / likelihood.sum(axis=1, keepdims=True)

    for _ in range(steps):
        posterior, counts = belief(), np.zeros_like(pi)
        for item, person, vote in given:
            counts[person, :, vote] += posterior[item]
        total = counts.sum(axis=0)
        right = np.trace(total) / total.sum()
        plain = np.full((size, size), (1 - right) / (size - 1))
        np.fill_diagonal(plain, right)
        for c in range(size):
            common = total[c] + 2 * size * plain[c]
            common /= total[c].sum() + 2 * size
            for mine in range(len(who)):
                mass = counts[mine, c].sum() + 20
                pi[mine, c] = (counts[mine, c] + 20 * common) / mass
    return belief()


def test_weights_of_votes_equal_the_loop():
    votes, _ = people()
    sets, counted = sets_of_votes(votes, grades="votes")
    slow = slow_likelihood(votes, 60, "vwxyz")
    slow = np.where(sets.dense(), slow, 0)
    slow /= slow.max(axis=1, keepdims=True)
    np.testing.assert_allclose(sets.rows(range(60)), slow, rtol=1e-4)
    assert sets.provenance["grades"] == "votes"
    assert any("--grades=votes" in note for note in counted.attrs["notes"])
    # The sets themselves are those of plain votes.
    plain, _ = sets_of_votes(votes, grades="none")
    assert plain.weights is None
    assert np.array_equal(plain.dense(), sets.dense())


def test_votes_weigh_as_much_as_their_annotator_is_worth():
    votes, truth = people(items=400, right=(0.95, 0.5, 0.5))
    sets, _ = sets_of_votes(votes)
    right = sets.rows(range(400)).argmax(axis=1) == truth
    counts = pd.crosstab(votes["item"], votes["label"])
    majority = counts.loc[sets.ids].to_numpy().argmax(axis=1) == truth
    assert right.mean() > majority.mean() + 0.05


def test_the_default_is_votes_where_several_annotators_voted():
    votes, _ = people()
    assert sets_of_votes(votes)[0].weights is not None
    # One annotator, or one for each item.
    alone = votes[votes["annotator"] == "p0"]
    assert sets_of_votes(alone)[0].weights is None
    each = votes.iloc[[3 * row + row % 3 for row in range(60)]]
    assert sets_of_votes(each)[0].weights is None
    # Candidates of nobody.
    nameless = votes.drop(columns="annotator")
    assert sets_of_votes(nameless)[0].weights is None


def test_a_single_vote_weighs_one_and_empty_sets_stay_even():
    votes, _ = people(items=20)
    votes = votes[~votes["item"].isin(["i0", "i1"])]
    more = [("i0", "p2", "z"), ("i1", "p0", None)]
    votes = pd.concat([votes, pd.DataFrame(more, columns=votes.columns)])
    sets, _ = sets_of_votes(votes, empty_set="all", grades="votes")
    assert sets.rows(sets.ids == "i0").tolist() == [[0, 0, 0, 0, 1]]
    assert sets.rows(sets.ids == "i1").tolist() == [[1] * 5]


def test_weights_of_confidences(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(
        "id,label,score\na,cat,0.2\na,dog,0.8\nb,dog,0.3\na,cat,0.1\n"
    )
    found = read(str(path), layout="long", grades="confidence")
    # cat .2 + .1 (no annotator: each row is a vote of its own) to dog .8.
    rows = found.candidates.rows([0, 1])
    np.testing.assert_allclose(rows, [[0.375, 1], [0, 1]], rtol=1e-6)
    # Without the flag confidences grade nothing.
    assert read(str(path), layout="long").candidates.weights is None
    path.write_text("id,label,score\na,cat,-0.2\na,dog,0.8\n")
    with pytest.raises(DataError, match="must not be negative.*line 2"):
        read(str(path), layout="long", grades="confidence")
    # One that is blank counts 1.
    votes = pd.DataFrame(
        {
            "item": ["a", "a", "b"],
            "label": ["x", "y", "y"],
            "confidence": [np.nan, 0.5, 0.2],
        }
    )
    sets, _ = sets_of_votes(votes, grades="confidence")
    assert sets.rows([0, 1]).tolist() == [[1, 0.5], [0, 1]]
    # A no is none.
    votes["confidence"] = [np.nan, 0, np.nan]
    with pytest.raises(ConfigError, match="confidence needs confidences"):
        sets_of_votes(votes, grades="confidence")


def test_saved_sets_keep_their_weights(tmp_path):
    path = tmp_path / "sets.npz"
    scaled = S / S.max(axis=1, keepdims=True)
    sets = graded(scaled)
    sets.save(path)
    assert read(str(path)).candidates.content_hash == sets.content_hash
    assert read(str(path), grades="none").candidates.weights is None


@pytest.mark.parametrize("grades", ["votes", "confidence"])
def test_grades_that_nothing_tells_are_refused(tmp_path, grades):
    path = tmp_path / "labels.csv"
    path.write_text("id,labels\na,cat|dog\nb,dog\n")
    with pytest.raises(ConfigError, match=f"--grades={grades}"):
        read(str(path), grades=grades)
    with pytest.raises(ConfigError, match="must be one of"):
        read(str(path), grades="scores")


def test_likelihood_in_blocks_is_that_of_one(monkeypatch):
    votes, _ = people()
    sets, counted = sets_of_votes(votes, grades="none")
    arrays = VoteArrays.of(counted, sets.ids, sets.class_names)
    whole = likelihood_of_members(arrays, sets)
    monkeypatch.setattr("alim_keras.data.annotators._BLOCK", 21)
    np.testing.assert_allclose(likelihood_of_members(arrays, sets), whole)
