"""Array files: sets in any form, features and true classes."""

import numpy as np
import pytest

from alim_keras.data import CandidateSets
from alim_keras.data import simulate_candidates
from alim_keras.data.tables import read_labels
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

HOT = [[1, 0, 1], [0, 1, 0]]
SETS = {"train_00000": {"0", "2"}, "train_00001": {"1"}}


@pytest.fixture
def save(tmp_path):
    def save(**arrays):
        path = tmp_path / "t.npz"
        np.savez(path, **arrays)
        return path

    return save


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
@pytest.mark.parametrize("name", ["candidates", "sets"])
def test_multi_hot(save, sets_of, dtype, name):
    found = read_labels(save(**{name: np.array(HOT, dtype)}))
    assert sets_of(found) == SETS
    assert found.candidates.class_names == ("0", "1", "2")
    assert found.votes is found.images is found.features is None


@pytest.mark.parametrize(
    "sets",
    [[[0, 2, -1], [1, -1, -1]], [[2, 0], [1, -1]], [[0.0, 2.0], [1.0, -1.0]]],
)
def test_padded_class_numbers(save, sets_of, sets):
    assert sets_of(read_labels(save(candidates=np.array(sets)))) == SETS


def test_the_layout_settles_what_a_matrix_is(save, sets_of):
    path = save(candidates=np.array([[0, 1], [1, 1]]))
    assert sets_of(read_labels(path, layout="list")) == {
        "train_00000": {"0", "1"},
        "train_00001": {"1"},
    }
    assert sets_of(read_labels(path, layout="multi_hot")) == {
        "train_00000": {"1"},
        "train_00001": {"0", "1"},
    }
    with pytest.raises(ConfigError, match="--layout=wide"):
        read_labels(path, layout="wide")


def test_npy(tmp_path, sets_of):
    path = tmp_path / "t.npy"
    np.save(path, np.array(HOT))
    assert sets_of(read_labels(path)) == SETS
    np.save(path, np.array([2, 0, 1]))
    found = read_labels(path, class_names=["x", "y", "z"])
    assert found.candidates.sets.argmax(1).tolist() == [2, 0, 1]
    np.save(path, np.array([[0], [1, 2]], object), allow_pickle=True)
    with pytest.raises(DataError, match="pickled"):
        read_labels(path)


def test_everything_at_once(save, sets_of):
    features = np.array([[1, 2.5], [3, 4], [5, 6]])
    found = read_labels(
        save(
            candidates=[[1, 0], [0, 0], [1, 1]],
            ids=["x", "y", "z"],
            class_names=["cat", "dog"],
            features=features,
            labels=np.array([0, 1, -1], np.int16),
        ),
        empty_set="drop",
    )
    assert sets_of(found) == {"x": {"cat"}, "z": {"cat", "dog"}}
    assert found.features.tolist() == [[1, 2.5], [5, 6]]
    assert found.features.dtype == np.float32
    assert found.labels.tolist() == [0, -1]
    assert found.labels.dtype == np.int64


def test_names_given_in_another_order(save, sets_of):
    path = save(candidates=HOT, label_names=["a", "b", "c"], labels=[2, 1])
    found = read_labels(path, class_names=["c", "b", "a"])
    assert sets_of(found) == {"train_00000": {"a", "c"}, "train_00001": {"b"}}
    assert found.labels.tolist() == [0, 1]
    assert any("order of the names given" in note for note in found.notes)
    with pytest.raises(DataError, match="not those given"):
        read_labels(path, class_names=["a", "b", "d"])


def test_the_package_s_own_files(tmp_path):
    sets = simulate_candidates(
        np.arange(50) % 5, 5, ambiguity=0.4, noise_level=0.2, seed=3
    )
    path = tmp_path / "own.npz"
    sets.save(path)
    found = read_labels(path)
    assert found.candidates.content_hash == sets.content_hash
    assert found.candidates.provenance["seed"] == 3
    assert found.candidates.provenance["layout"] == "multi_hot"
    arrays = dict(np.load(path))
    arrays["sets"] = np.roll(arrays["sets"], 1, axis=0)
    np.savez(path, **arrays)
    with pytest.raises(DataError, match="stored hash"):
        read_labels(path)


def test_ids_that_repeat(save, sets_of):
    same = save(sets=[[1, 0], [0, 1], [1, 0]], ids=["x", "y", "x"])
    assert sets_of(read_labels(same)) == {"x": {"0"}, "y": {"1"}}
    differ = save(
        sets=[[1, 0], [0, 1], [0, 1]], ids=["x", "y", "x"], labels=[1, 0, 1]
    )
    with pytest.raises(DataError, match=r"x \(row 0\).*--duplicates"):
        read_labels(differ)
    found = read_labels(differ, duplicates="union")
    assert sets_of(found) == {"x": {"0", "1"}, "y": {"1"}}
    assert found.labels.tolist() == [1, 0]
    path = save(sets=[[1], [1]], ids=["x", "x"], features=[[1.0], [2.0]])
    with pytest.raises(DataError, match="differ in 'features'.*row 1"):
        read_labels(path)


@pytest.mark.parametrize(
    "arrays, why",
    [
        ({"x": [1]}, "'candidates' or 'sets'"),
        ({"sets": [[1]], "candidates": [[1]]}, "--candidates_column"),
        ({"sets": np.zeros((0, 3))}, "empty"),
        ({"sets": np.zeros((2, 0))}, "empty"),
        ({"sets": np.zeros((1, 1, 1))}, "matrix"),
        ({"sets": ["cat"]}, "matrix of 0 and 1"),
        ({"sets": np.array([[1 + 1j]])}, "matrix of 0 and 1"),
        ({"sets": [[0, -2]]}, "-2"),
        ({"sets": [[0, 10**9, 3]]}, "1000000000.*--class_names"),
        ({"sets": [[-1, -1]]}, "largest class number is -1"),
        ({"sets": [[0, np.inf]]}, "0 and 1|infinite"),
        ({"sets": [[1, 0]], "ids": ["x", "y"]}, "1 sets but 2 ids.* y"),
        ({"sets": [[1, 0]], "ids": [1.5]}, "list of strings"),
        ({"sets": [[1, 0]], "ids": [" "]}, "row 0 is blank"),
        ({"sets": [[1, 0]], "class_names": ["x"]}, "2 columns.*1 classes"),
        ({"sets": [[1, 0]], "class_names": ["x", "x"]}, "twice"),
        ({"sets": [[1, 0]], "class_names": [[1]]}, "list of strings"),
        ({"sets": [[1, 0]], "labels": [2]}, r"'labels'.*0\.\.1"),
        ({"sets": [[1, 0]], "labels": [-2]}, r"'labels'.*0\.\.1"),
        ({"sets": [[1, 0]], "labels": [0.5]}, "not whole"),
        ({"sets": [[1, 0]], "labels": ["x"]}, "1 class numbers"),
        ({"sets": [[1, 0]], "labels": [0, 1]}, "1 class numbers"),
        ({"sets": [[1, 0]], "features": [[np.nan]]}, "NaN.*row 0"),
        ({"sets": [[1, 0]], "features": [[np.inf]]}, "infinite.*row 0"),
        ({"sets": [[1, 0]], "features": [[1e39]]}, "large for float32.*row 0"),
        ({"sets": [[1, 0]], "features": [1.0]}, r"\(1, num_features\)"),
        ({"sets": [[1, 0]], "provenance": "[1]"}, "no JSON object"),
    ],
)
def test_arrays_that_cannot_be_read(save, arrays, why):
    path = save(**{name: np.asarray(one) for name, one in arrays.items()})
    with pytest.raises(DataError, match=why) as caught:
        read_labels(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"id_column": "x"},
        {"annotator_column": "x"},
        {"label_column": "x"},
        {"min_votes": 2},
        {"min_confidence": 0.5},
        {"none_of_these": ("x",)},
    ],
)
def test_arguments_for_which_arrays_have_no_use(save, arguments):
    with pytest.raises(ConfigError):
        read_labels(save(sets=HOT), **arguments)


@pytest.mark.parametrize(
    "name, shape, num_features, size",
    [
        ("lost", (1122, 16), 108, None),
        ("MSRCv2", (1758, 23), 48, None),
        ("BirdSong", (4998, 13), 38, None),
        ("FG-NET", (1002, 78), 262, None),
        ("italian", (21878, 90), 519, None),
    ],
)
def test_real_sets(shared, name, shape, num_features, size):
    path = shared / "data" / f"pll_{name}.npz"
    if not path.exists():
        path = shared / f"pll_{name}.npz"
    found = read_labels(path)
    assert found.candidates.sets.shape == shape
    assert found.features.shape == (shape[0], num_features)
    with np.load(path) as arrays:
        np.testing.assert_array_equal(
            found.candidates.sets, arrays["candidates"] == 1
        )
        np.testing.assert_array_equal(found.labels, arrays["labels"])
    # The truth is always in the set.
    assert found.candidates.sets[np.arange(shape[0]), found.labels].all()


def test_the_stored_names_are_kept(tmp_path):
    CandidateSets(["a"], [[True, False]], ["x, y", "\u00e9"]).save(
        tmp_path / "t.npz"
    )
    found = read_labels(tmp_path / "t.npz")
    assert found.candidates.class_names == ("x, y", "\u00e9")


def test_what_looks_multi_hot_names_a_flag(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, candidates=[[0, 1], [1, 0]])
    with pytest.raises(DataError, match="numbers, say --layout=list$"):
        read_labels(path, class_names=["a", "b", "c"])
    np.savez(path, candidates=[[0, 3], [1, 0]])
    with pytest.raises(DataError, match="or say --layout=list if these"):
        read_labels(path, layout="multi_hot")
