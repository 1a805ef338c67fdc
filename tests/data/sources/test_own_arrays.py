"""Tables that hold features or images as arrays, some of them to test on."""

import numpy as np
import own
import pytest

from alim_keras.data import load_own
from alim_keras.errors import DataError

IDS = np.array(["a", "b", "c", "d", "e"])
SETS = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]])


@pytest.fixture
def written(tmp_path):
    """Returns a function that writes a table of arrays and labels to test."""

    def written(tests, **arrays):
        np.savez(tmp_path / "t.npz", ids=IDS, candidates=SETS, **arrays)
        path = tmp_path / "test.csv"
        own.write_rows(path, [("id", "label"), *tests])
        return tmp_path / "t.npz", path

    return written


def of_features():
    values = np.arange(15, dtype="float32").reshape(5, 3)
    return {"features": values}, values.reshape(5, 1, 1, 3)


def of_images():
    values = np.arange(5 * 16, dtype="uint8").reshape(5, 4, 4, 1)
    return {"images": values}, values


@pytest.mark.parametrize("make", [of_features, of_images])
def test_items_of_the_table_are_tested_on(make, written):
    arrays, values = make()
    table, tests = written([("d", 2), ("b", 1)], **arrays)
    found = load_own(table, test_labels=tests)
    assert found.data.ids.tolist() == ["a", "c", "e"]
    np.testing.assert_array_equal(found.data.images, values[[0, 2, 4]])
    assert found.data.test_ids.tolist() == ["d", "b"]
    np.testing.assert_array_equal(found.data.test_images, values[[3, 1]])
    assert found.data.test_labels.tolist() == [2, 1]
    np.testing.assert_array_equal(found.candidates.sets, SETS[[0, 2, 4]] > 0)
    assert "2 items are tested on, not trained on" in found.notes
    # Those tested on count for nothing that training knows.
    alone = values[[0, 2, 4]].astype("float64") / 255
    mean = alone.mean(axis=(0, 1, 2))
    np.testing.assert_allclose(found.data.mean, mean, rtol=1e-6)
    plain = load_own(table)
    assert plain.data.test_images.shape == (0, *values.shape[1:])


@pytest.mark.parametrize(
    ("make", "what"), [(of_features, "features"), (of_images, "images")]
)
def test_an_item_that_the_table_does_not_hold(make, what, written):
    table, tests = written([("d", 2), ("x", 1)], **make()[0])
    said = f"1 ids are not in .*t.npz, which holds the {what} itself: x; name"
    with pytest.raises(DataError, match=said):
        load_own(table, test_labels=tests)
