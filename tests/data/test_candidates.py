"""Joining by id, the content hash, the statistics and the file."""

import dataclasses
import hashlib
import os

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from alim_keras.data import CandidateSets
from alim_keras.data import simulate_candidates
from alim_keras.data.checks import default_ids
from alim_keras.errors import DataError

IDS = ["a", "b", "c"]
SETS = [[1, 0, 1], [0, 1, 0], [1, 1, 1]]
NAMES = ("cat", "dog", "owl")


def small(**changes):
    values = {"ids": IDS, "sets": SETS, "class_names": NAMES, **changes}
    return CandidateSets.from_dense(**values)


def test_the_hash_is_the_one_documented():
    # "length, bytes" of: the header, the shape, the class names, the ids in
    # rising order, and the sets packed to bits.
    digest = hashlib.sha256()
    parts = [b"alim_keras candidate sets 1", b"(3, 3)", b"cat", b"dog", b"owl"]
    bits = bytes([0b10100000, 0b01000000, 0b11100000])
    for part in (*parts, b"a", b"b", b"c", bits):
        digest.update(len(part).to_bytes(8, "little") + part)
    assert small().content_hash == digest.hexdigest()
    # Rows in another order are the same sets.
    other = small(provenance={"seed": 3}).select([*"cab"])
    assert other.content_hash == small().content_hash


def test_the_hash_sees_every_content():
    for changes in (
        {"ids": ["a", "b", "d"]},
        {"class_names": ("cat", "owl", "dog")},
        {"sets": [[1, 0, 1], [0, 1, 0], [1, 1, 0]]},
        {"ids": ["a", "bc", ""]},
    ):
        assert small(**changes).content_hash != small().content_hash


def test_select_joins_by_id():
    sets = small(provenance={"realised_noise": 0.5, "seed": 1}, source="s.npz")
    part = sets.select(["c", "a"])
    assert part.dense().astype(int).tolist() == [[1, 1, 1], [1, 0, 1]]
    assert part.class_names == NAMES
    assert part.provenance == {"seed": 1}
    text = "i.npz: 6 of 7 examples .* 3 in s.npz: x1.*x5, [.]"
    with pytest.raises(DataError, match=text):
        sets.select(["x1", "a", "x2", "x3", "x4", "x5", "x6"], where="i.npz")


def test_made_up_ids_join_nothing_by_accident():
    many = default_ids(100001)
    assert many[[17, -1]].tolist() == ["train_000017", "train_100000"]
    # Rows of a shuffled .npy must not pass for the official places.
    sets = CandidateSets.from_dense(np.eye(3), source="p.npy")
    with pytest.raises(DataError, match="3 of 3"):
        sets.select(default_ids(3))
    joined = dataclasses.replace(sets, ids=default_ids(3))
    assert joined.select(["train_00002"]).dense().tolist() == [[0, 0, 1]]


def test_description_by_hand():
    # Sizes 2, 1, 3; truth owl, cat, dog: inside, outside, inside.
    text = small().describe(np.array([2, 0, 1]))
    assert "min 1, mean 2.000, max 3" in text
    assert "one class only  33.33%" in text and "all classes     33.33%" in text
    assert "realised noise  0.3333" in text and "left clean" not in text
    assert small().realised_noise(np.array([2, -1, 1])) == 0.0
    assert small().realised_noise() is None
    sets = simulate_candidates([0, 1] * 5, 2, ambiguity=1.0, noise_level=1.0)
    text = sets.describe()
    for line in (
        "candidate sets  10 examples, 2 classes, from the simulated sets",
        "protocol        flip",
        "stream          default",
        "ambiguity       1.0",
        "set size        min 2, mean 2.000, max 2",
        "all classes     100.00% (they say nothing)",
        "realised noise  0.0000",
        "left clean      10 (sets of all classes, which cannot be made wrong)",
        f"content hash    {sets.content_hash}",
    ):
        assert line in text
    assert "mean weight" not in text
    assert "realised noise  not known" in small().describe()


@pytest.mark.parametrize(
    "changes, text",
    [
        ({"ids": ["a", "b"]}, "2 ids, 3 sets"),
        ({"ids": ["a", "b", "a"]}, "1 ids occur more than once: a"),
        ({"sets": [[1, 0, 0], [0, 0, 0], [0, 0, 0]]}, "2 candidate.*: b, c$"),
        ({"class_names": ("cat", "cat", "dog")}, "1 class names occur more"),
        ({"ids": [], "sets": np.zeros((0, 3), bool)}, "0 ids, 0 sets"),
        ({"ids": ["a", "b", "c\ud800"]}, r"1 ids are no UTF-8.*'c\\ud800'"),
        ({"class_names": ["x", "y", "\udfff"]}, r"1 class names.*'\\udfff'"),
    ],
)
def test_unsound_contents_are_refused(changes, text):
    with pytest.raises(DataError, match=text):
        small(**changes)


def test_what_stands_beside_surrogates_is_text():
    ids = ["\ud7ff\ue000", "\U0001f431\U0010ffff", "b"]
    assert small(ids=ids).ids.tolist() == ids
    assert len(small(ids=ids).content_hash) == 64


LISTS = [[4, 0], [1], [2, 3, 0], [4]]
PAIRS = [[3, 0, 1, 2, 2, 0, 2, 0], [4, 4, 1, 3, 0, 0, 2, 4]]
MULTI_HOT = np.array(
    [[1, 0, 0, 0, 1], [0, 1, 0, 0, 0], [1, 0, 1, 1, 0], [0, 0, 0, 0, 1]], bool
)


@pytest.mark.parametrize(
    "sets",
    [
        CandidateSets.from_lists(LISTS),
        CandidateSets.from_lists([np.array(row, float) for row in LISTS]),
        CandidateSets.from_dense(MULTI_HOT),
        CandidateSets.from_dense(MULTI_HOT.astype(float)),
        CandidateSets.from_pairs(*PAIRS, default_ids(4, "row"), "01234"),
        CandidateSets(default_ids(4, "row"), "01234", MULTI_HOT),
    ],
)
def test_every_form_is_the_same_sets(sets):
    assert sets.shape == (4, 5) and len(sets) == 4
    assert sets.sizes.tolist() == [2, 1, 3, 1]
    rows = sets.rows(np.array([2, 0, 2]))
    assert rows.dtype == "float32"
    np.testing.assert_array_equal(rows, MULTI_HOT[[2, 0, 2]])
    assert sets.rows(np.array([], int)).shape == (0, 5)
    np.testing.assert_array_equal(sets.dense(), MULTI_HOT)
    assert sets.ids[1] == "row_00001"


ROW = st.lists(st.booleans(), min_size=6, max_size=6).filter(any)


@hypothesis.given(st.lists(ROW, min_size=1, max_size=9), st.data())
@hypothesis.settings(max_examples=60)
def test_parts_are_those_of_the_matrix(rows, data):
    dense = np.array(rows)
    sets = CandidateSets.from_dense(dense)
    place = st.integers(0, len(rows) - 1)
    index = np.array(data.draw(st.lists(place, max_size=12)), int)
    np.testing.assert_array_equal(sets.rows(index), dense[index])
    for label in range(-1, 7):
        inside = sets.contains(index, np.full(len(index), label))
        expected = dense[index, label] if 0 <= label < 6 else 0 * index
        np.testing.assert_array_equal(inside, expected)
    part = np.unique(index)
    if len(part):
        np.testing.assert_array_equal(sets.take(part).dense(), dense[part])
    replaced = sets.replace(part, part % 6).dense()
    dense[part] = np.eye(6, dtype=bool)[part % 6]
    np.testing.assert_array_equal(replaced, dense)


def test_the_hash_of_many_blocks(monkeypatch):
    whole = CandidateSets.from_dense(MULTI_HOT)
    monkeypatch.setattr("alim_keras.data.candidates._BLOCK", 10)
    parts = CandidateSets.from_dense(MULTI_HOT)
    assert parts.content_hash == whole.content_hash


def test_saved_sets_come_back(tmp_path):
    path = tmp_path / "deep" / "sets.npz"
    how = {"ambiguity": 0.5, "noise_level": 0.5, "class_names": NAMES}
    sets = simulate_candidates([0, 1, 2], 3, ids=["é1", "b", "c"], **how)
    sets.save(path)
    again = CandidateSets.load(path)
    assert again.ids.tolist() == ["é1", "b", "c"]
    assert np.array_equal(again.dense(), sets.dense())
    assert again.class_names == NAMES
    assert again.provenance == sets.provenance
    assert again.content_hash == sets.content_hash
    assert again.source == str(path)
    assert os.listdir(path.parent) == ["sets.npz"]
    # Equal contents give equal bytes.
    again.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def test_files_that_cannot_be_used(tmp_path):
    def refused(path, text):
        with pytest.raises(DataError, match=text) as caught:
            CandidateSets.load(path)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)

    refused(tmp_path / "absent.npz", "No such file")
    refused(tmp_path, "Is a directory")
    path = tmp_path / "x.npz"
    path.write_bytes(b"")
    refused(path, "No data left")
    path.write_bytes(b"something else")
    refused(path, "arrays that numpy.savez wrote")
    small().save(path)
    whole = path.read_bytes()
    with np.load(path) as file:
        changed = dict(file)
    path.write_bytes(whole[: len(whole) // 2])
    refused(path, "arrays that numpy.savez wrote")
    with open(path, "wb") as file:
        np.save(file, np.eye(2))
    refused(path, "save wrote was expected.*'candidates'")
    for indptr, indices in (
        ([0, 2, 3, 6], [1, 2, 1, 0, 1, 2]),
        ([0, 2, 3, 3], [0, 2, 1]),
        ([0, 2, 3, 7], [0, 2, 1, 0, 1, 2]),
        ([0, 3, 2, 6], [0, 2, 1, 0, 1, 2]),
        ([0, 2, 3], [0, 2, 1]),
        ([0, 2, 3, 6], [0, 2, 1, 0, 1, 5]),
        ([0, 2, 3, 6], [-1, 2, 1, 0, 1, 2]),
    ):
        lists = {"indptr": np.array(indptr), "indices": np.array(indices)}
        np.savez(path, **{**changed, **lists})
        refused(path, "do not fit the stored hash")
    changed["ids"] = np.array(["a"], object)
    np.savez(path, **changed)
    refused(path, "pickled objects")
