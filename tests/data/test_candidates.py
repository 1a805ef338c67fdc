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
from alim_keras.data.checks import row_ids
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
    for part in (
        b"alim_keras candidate sets 1",
        b"(3, 3)",
        b"cat",
        b"dog",
        b"owl",
        b"a",
        b"b",
        b"c",
        bytes([0b10100000, 0b01000000, 0b11100000]),
    ):
        digest.update(len(part).to_bytes(8, "little") + part)
    assert small().content_hash == digest.hexdigest()


def test_the_hash_ignores_row_order_and_provenance():
    other = small(
        ids=["c", "a", "b"],
        sets=[SETS[2], SETS[0], SETS[1]],
        provenance={"seed": 3},
    )
    assert other.content_hash == small().content_hash


@pytest.mark.parametrize(
    "changes",
    [
        {"ids": ["a", "b", "d"]},
        {"class_names": ("cat", "owl", "dog")},
        {"sets": [[1, 0, 1], [0, 1, 0], [1, 1, 0]]},
        {"ids": ["a", "bc", ""]},
    ],
)
def test_the_hash_sees_every_content(changes):
    assert small(**changes).content_hash != small().content_hash


def test_select_joins_by_id():
    assert small().select(["c", "a"]).dense().tolist() == [
        [True, True, True],
        [True, False, True],
    ]


def test_select_names_what_is_missing():
    found = small(source="sets.npz")
    wanted = ["x1", "a", "x2", "x3", "x4", "x5", "x6"]
    with pytest.raises(DataError) as caught:
        found.select(wanted, where="images.npz")
    text = str(caught.value)
    assert "6 of the 7 examples in images.npz" in text
    assert "among the 3 in sets.npz" in text
    assert "x1, x2, x3, x4, x5, ..." in text
    assert "x6" not in text


def test_ids_sort_like_their_numbers():
    assert default_ids(3, "test").tolist() == [
        f"test_0000{n}" for n in range(3)
    ]
    many = default_ids(100001)
    assert many[[17, -1]].tolist() == ["train_000017", "train_100000"]
    assert np.array_equal(np.sort(many), many)


def test_select_keeps_names_and_marks_the_origin():
    found = small(provenance={"realised_noise": 0.5, "seed": 1})
    part = found.select(["b"])
    assert part.dense().tolist() == [[False, True, False]]
    assert part.class_names == NAMES
    assert part.provenance == {"seed": 1, "selected_from": 3}


def test_statistics_by_hand():
    # Sizes 2, 1, 3; truth owl, cat, dog: inside, outside, inside.
    found = small().statistics(labels=[2, 0, 1])
    assert found == {
        "num_examples": 3,
        "num_classes": 3,
        "size_min": 1,
        "size_mean": 2.0,
        "size_max": 3,
        "share_single": pytest.approx(1 / 3),
        "share_full": pytest.approx(1 / 3),
        "asked_ambiguity": None,
        "asked_noise": None,
        "realised_noise": pytest.approx(1 / 3),
        "left_clean": None,
    }


def test_describe_shows_it_on_one_screen():
    found = simulate_candidates(
        np.arange(10) % 2, 2, ambiguity=1.0, noise_level=1.0
    )
    text = found.describe()
    assert text.splitlines()[:8] == [
        "candidate sets  10 examples, 2 classes, from the simulated sets",
        "made by         protocol flip, stream default, seed 0",
        "set size        min 2, mean 2.000, max 2",
        "one class only  0.00% (right or wrong, the label is given away)",
        "all classes     100.00% (they say nothing)",
        "ambiguity q     asked 1.0000",
        "noise eta       asked 1.0000, realised 0.0000",
        "left clean      10 (all classes in the set, so no class could be "
        "swapped in)",
    ]
    assert text.splitlines()[8] == f"content hash    {found.content_hash}"
    assert "realised not known" in small().describe()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"ids": ["a", "b"]}, "2 ids, 3 sets"),
        ({"ids": ["a", "b", "a"]}, "1 ids occur more than once: a"),
        ({"sets": [[1, 0, 0], [0, 0, 0], [0, 0, 0]]}, "2 candidate.*b .*c"),
        ({"class_names": ("cat", "dog")}, "there are 2 classes"),
        ({"class_names": ("cat", "cat", "dog")}, "1 class names occur more"),
        ({"ids": [], "sets": np.zeros((0, 3), bool)}, "0 ids, 0 sets"),
    ],
)
def test_unsound_contents_are_refused(changes, text):
    with pytest.raises(DataError, match=text):
        small(**changes)


# Sparse inside.

LISTS = [[4, 0], [1], [2, 3, 0], [4]]
MULTI_HOT = np.array(
    [[1, 0, 0, 0, 1], [0, 1, 0, 0, 0], [1, 0, 1, 1, 0], [0, 0, 0, 0, 1]], bool
)


@pytest.mark.parametrize(
    "sets",
    [
        CandidateSets.from_lists(LISTS),
        CandidateSets.from_dense(MULTI_HOT),
        CandidateSets.from_dense(MULTI_HOT.astype(float)),
        CandidateSets.from_pairs(
            [3, 0, 1, 2, 2, 0, 2, 0],
            [4, 4, 1, 3, 0, 0, 2, 4],
            row_ids(4),
            "01234",
        ),
        CandidateSets(
            row_ids(4), "01234", [0, 2, 3, 6, 7], [0, 4, 1, 0, 2, 3, 4]
        ),
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
    # Seven classes of two bytes, five starts of eight.
    assert sets.nbytes == 7 * 2 + 5 * 8
    assert sets.ids.tolist() == [
        "row_00000",
        "row_00001",
        "row_00002",
        "row_00003",
    ]


@hypothesis.given(
    rows=st.lists(
        st.lists(st.booleans(), min_size=6, max_size=6).filter(any),
        min_size=1,
        max_size=9,
    ),
    data=st.data(),
)
@hypothesis.settings(max_examples=60)
def test_parts_are_those_of_the_matrix(rows, data):
    dense = np.array(rows)
    sets = CandidateSets.from_dense(dense)
    place = st.integers(0, len(rows) - 1)
    index = np.array(data.draw(st.lists(place, max_size=12)), int)
    np.testing.assert_array_equal(sets.rows(index), dense[index])
    labels = data.draw(
        st.lists(st.integers(-1, 6), min_size=len(index), max_size=len(index))
    )
    assert sets.contains(index, labels).tolist() == [
        0 <= label < 6 and bool(dense[row, label])
        for row, label in zip(index, labels)
    ]
    part = np.unique(index)
    np.testing.assert_array_equal(sets.take(part).dense(), dense[part])
    told = sets.replace(part, part % 6).dense()
    dense[part] = np.eye(6, dtype=bool)[part % 6]
    np.testing.assert_array_equal(told, dense)


def test_many_blocks_are_put_together(monkeypatch, tmp_path):
    dense = np.concatenate([MULTI_HOT] * 5)
    whole = CandidateSets.from_dense(dense)
    monkeypatch.setattr("alim_keras.data.candidates._BLOCK", 10)
    sets = CandidateSets.from_dense(dense)
    np.testing.assert_array_equal(sets.dense(), dense)
    assert sets.content_hash == whole.content_hash
    sets.save(tmp_path / "x.npz")
    loaded = CandidateSets.load(tmp_path / "x.npz")
    np.testing.assert_array_equal(loaded.dense(), dense)
    with np.load(tmp_path / "x.npz") as file:
        np.testing.assert_array_equal(file["sets"], dense)


def test_class_numbers_above_int16_are_kept():
    sets = CandidateSets.from_lists([[40000, 3]], class_names=range(50000))
    assert sets.indices.tolist() == [3, 40000]
    assert np.flatnonzero(sets.rows([0])[0]).tolist() == [3, 40000]


def test_made_up_ids_join_nothing_by_accident():
    # Rows of a shuffled .npy must not pass for the official places.
    sets = CandidateSets.from_dense(np.eye(3), source="p.npy")
    with pytest.raises(DataError, match="3 of the 3.*only the numbers of rows"):
        sets.select(default_ids(3))
    joined = dataclasses.replace(sets, ids=default_ids(3))
    assert joined.select(["train_00002"]).dense().tolist() == [[0, 0, 1]]


@pytest.mark.parametrize(
    "indptr, indices, message",
    [
        ([0, 2, 2], [0, 1], "1 candidate sets are empty.*b"),
        ([0, 2, 3], [0, 1], "rise from 0 to the number"),
        ([1, 2, 2], [0, 1], "rise from 0 to the number"),
        ([0, 1, 2], [0, 5], "0..4 and rise.*b"),
        ([0, 1, 2], [-1, 0], "0..4 and rise.*a"),
        ([0, 1, 3], [4, 3, 3], "0..4 and rise.*b"),
        ([0, 2, 3], [3, 1, 0], "0..4 and rise.*a"),
    ],
)
def test_unsound_lists_are_refused(indptr, indices, message):
    with pytest.raises(DataError, match=message):
        CandidateSets(["a", "b"], "01234", indptr, indices)


# --- the file -----------------------------------------------------------


def test_saved_sets_come_back(tmp_path):
    path = tmp_path / "deep" / "sets.npz"
    found = simulate_candidates(
        [0, 1, 2],
        3,
        ambiguity=0.5,
        noise_level=0.5,
        class_names=NAMES,
        ids=["é1", "b", "c"],
    )
    found.save(path)
    again = CandidateSets.load(path)
    assert again.ids.tolist() == ["é1", "b", "c"]
    assert np.array_equal(again.dense(), found.dense())
    assert again.class_names == NAMES
    assert again.provenance == found.provenance
    assert again.content_hash == found.content_hash
    assert again.source == str(path)
    assert os.listdir(path.parent) == ["sets.npz"]


def test_equal_contents_give_equal_bytes(tmp_path):
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        simulate_candidates(
            np.arange(50) % 5, 5, ambiguity=0.3, noise_level=0.3, seed=seed
        ).save(tmp_path / f"{name}.npz")
    one, again, other = (
        (tmp_path / f"{name}.npz").read_bytes()
        for name in ("one", "again", "other")
    )
    assert one == again
    assert one != other


def test_a_file_made_by_hand(tmp_path):
    path = tmp_path / "own.npz"
    sets = np.array([[1, 0], [1, 1]])
    # A matrix that was transposed is stored in another order.
    np.savez(path, ids=np.array(["a", "b"]), sets=np.asfortranarray(sets))
    found = CandidateSets.load(path)
    assert found.dense().tolist() == [[True, False], [True, True]]
    assert found.class_names == ("0", "1")
    assert found.provenance == {}


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
    refused(path, "empty")
    path.write_bytes(b"something else")
    refused(path, "pickled objects, is damaged or no .npz")
    small().save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused(path, "damaged or no .npz")
    with open(path, "wb") as file:
        np.save(file, np.eye(2))
    refused(path, "one array")
    np.savez(path, sets=np.eye(2))
    refused(path, "'ids' and 'sets'.*'sets'")
    np.savez(path, ids=np.arange(2), sets=np.eye(2))
    refused(path, "'ids' must be a list of strings")
    np.savez(path, ids=np.array(["a"], object), sets=np.eye(1))
    refused(path, "pickled objects")
    np.savez(path, ids=np.array([], str), sets=np.zeros((0, 2)))
    refused(path, "empty")
    np.savez(path, ids=np.array(["a", "b"]), sets=np.array([[1, 0], [0, 0]]))
    refused(path, "1 candidate sets are empty.*b")
    np.savez(path, ids=np.array(["a"]), sets=np.array([[0.3, 1]]))
    refused(path, "only 0 and 1")


def test_changed_contents_do_not_fit_the_stored_hash(tmp_path):
    path = tmp_path / "sets.npz"
    small().save(path)
    with np.load(path) as file:
        arrays = dict(file)
    arrays["sets"] = ~arrays["sets"] | np.eye(3, dtype=bool)
    np.savez(path, **arrays)
    with pytest.raises(DataError, match="do not fit the stored hash"):
        CandidateSets.load(path)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "sets.npz"
    small().save(path)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array_header_1_0", full)
    with pytest.raises(DataError, match="No space left"):
        small(ids=["x", "y", "z"]).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["sets.npz"]


def test_text_that_no_file_can_hold_is_refused():
    sets = [[True, False], [False, True]]
    with pytest.raises(
        DataError, match=r"1 ids are no UTF-8 text: 'a\\ud800x'; rename"
    ):
        CandidateSets.from_dense(sets, ["b", "a\ud800x"])
    with pytest.raises(
        DataError, match=r"1 class names are no UTF-8 text: '\\udfff'"
    ):
        CandidateSets.from_dense(sets, ["b", "a"], ["cat", "\udfff"])
    # What stands beside the surrogates, and what needs a pair in UTF-16.
    ids = ["\ud7ff\ue000", "\U0001f431\U0010ffff"]
    found = CandidateSets.from_dense(sets, ids)
    assert found.ids.tolist() == ids and len(found.content_hash) == 64
