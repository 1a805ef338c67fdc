"""Near duplicates, outliers and the map of the items."""

import numpy as np
import pytest
from sample_report import data_of
from sample_report import sample_audit

from alim_keras.report import embeddings

COUNT = 60
IDS = np.array([f"{row:02d}.png" for row in range(COUNT)], object)
# Items 3 and 40 are nearly one picture, so are 5 and 6; 59 is far from all.
LABELS = np.array(["cat", "dog"], object)[np.arange(COUNT) % 2]
LABELS[5:7] = "cat"


def planted():
    stream = np.random.default_rng(0)
    features = stream.normal(size=(COUNT, 8)) * [4, 4, 4, 1, 1, 1, 0, 0] + 7
    features[40] = features[3] + 0.01
    features[6] = features[5]
    features[59] = 7 + 30 * np.eye(8)[7]
    return features.astype("float32")


def cosines():
    """Returns those of all pairs; each is its own nearest."""
    features = planted() - planted().mean(axis=0)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return features @ features.T + np.eye(COUNT)


@pytest.fixture(scope="module")
def found():
    features = planted()
    seen = features[[8]] + 0.01
    unseen = 7 - 30 * np.eye(8, dtype="float32")[[6]]
    names = np.array(["same.png", "new.png"], object)
    test = names, np.array(["cat", "dog"], object), np.append(seen, unseen, 0)
    return embeddings.survey(features, IDS, LABELS, test)


def test_near_duplicates_with_other_labels_and_of_test_images(found):
    first, *rows = found.duplicates.drop(columns="distance").to_numpy().tolist()
    ends = [["03.png", LABELS[3]], ["40.png", LABELS[40]]]
    assert first[0] == "training" and sorted([first[1:3], first[3:]]) == ends
    assert rows == [["test", "same.png", "cat", "08.png", LABELS[8]]]
    assert (found.duplicates["distance"] < 0.001).all()


def test_the_farthest_item_is_the_first_outlier(found):
    first = found.outliers.iloc[0]
    assert (first["id"], first["label"]) == ("59.png", LABELS[59])
    expected = np.sort(1 - cosines()[59])[1:11].mean()
    assert first["distance"] == pytest.approx(expected, abs=1e-4)
    assert found.outliers["distance"].is_monotonic_decreasing
    assert len(found.outliers) == 50


def test_a_place_for_each_item(found):
    assert found.places.shape == (COUNT, 2)
    assert np.isfinite(found.places).all()
    # A duplicate lies beside its own.
    gaps = np.linalg.norm(found.places - found.places[5], axis=1)
    assert gaps[6] < np.median(gaps) / 5


def test_items_beyond_the_sample_lie_among_their_nearest(monkeypatch):
    monkeypatch.setattr(embeddings, "_PLACED", 30)
    centres = np.repeat(np.eye(3) * 10, 20, axis=0)
    points = centres + np.random.default_rng(1).normal(size=(60, 3)) * 0.1
    places = embeddings._places(points)
    assert places.shape == (60, 2) and np.isfinite(places).all()
    groups = places.reshape(3, 20, 2)
    spread = np.linalg.norm(groups - groups.mean(1, keepdims=True), axis=2)
    middles = groups.mean(axis=1)
    apart = np.linalg.norm(middles - np.roll(middles, 1, axis=0), axis=1)
    assert spread.max() < apart.min()


@pytest.mark.parametrize("width", [1, 2])
def test_few_items_and_narrow_features(width):
    features = np.arange(4.0 * width).reshape(4, width) % 3
    found = embeddings.survey(features, IDS[:4], LABELS[:4])
    assert np.isfinite(found.places).all() and len(found.outliers) == 4
    assert embeddings.survey(features[:2], IDS[:2], LABELS[:2]) is None


def test_the_tables_are_files_and_the_page_holds_the_points(tmp_path):
    bare = sample_audit(bare=True)
    assert data_of(bare.to_html())["map"] is None
    assert "Outliers" not in bare.to_html()
    features = np.random.default_rng(0).normal(size=(200, 12))
    audit = sample_audit(features=features)
    names = {path.rsplit("/", 1)[-1] for path in audit.write(tmp_path)}
    assert {"duplicates.csv", "outliers.csv"} <= names
    text = audit.to_html()
    data = data_of(text)["map"]
    assert data["ids"] == audit.labels["id"].tolist()
    places = np.array(data["places"])
    assert places.shape == (200, 2)
    assert places.min(axis=0).tolist() == [0, 0]
    assert places.max(axis=0).tolist() == [4095, 4095]
    labels = [audit.class_names[number] for number in data["labels"]]
    assert labels == audit.labels["label"].tolist()
    given = [[audit.class_names[n] for n in one] for one in data["sets"]]
    assert given == audit.labels["candidates"].tolist()
    listed = [data["ids"][row] for row in data["listed"]]
    assert listed == audit.review["id"].tolist()
    assert data["people"] == ["ann", "<i>bob</i>"]
    assert np.shape(data["votes"]) == (3, 400)
    for name in audit.surroundings.outliers["id"]:
        assert f"<td>{name}</td>" in text


def test_the_nearest_others_by_the_angle(found):
    expected = -np.sort(-cosines(), axis=1)[:, 1:6]
    shown = np.take_along_axis(cosines(), found.near, axis=1)
    np.testing.assert_allclose(shown, expected, atol=1e-5)
    assert (found.near[8] != 8).all() and found.near.shape == (COUNT, 5)
    assert embeddings.survey(None, IDS, LABELS) is None
