"""Folders that HuggingFace datasets saved, written by datasets itself."""

import io
import os
import sys

import datasets
import numpy as np
import pytest
from PIL import Image

from alim_keras.data import load_own
from alim_keras.data.tables import read_labels
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError

NAMES = ["cat", "dog", "owl"]


@pytest.fixture(autouse=True)
def quiet():
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture
def saved(tmp_path):
    """Returns a function that saves columns, and returns the folder."""

    def saved(columns, features, name="saved"):
        features = datasets.Features(features)
        found = datasets.Dataset.from_dict(columns, features=features)
        found.save_to_disk(tmp_path / name)
        return tmp_path / name

    return saved


def lists(feature):
    return datasets.Features({"x": [feature]})["x"]


def picture(value):
    return Image.fromarray(np.full((2, 3, 3), value, np.uint8))


def pixel(encoded):
    with Image.open(io.BytesIO(encoded)) as image:
        return image.getpixel((0, 0))


def test_sets_names_and_images(saved, sets_of):
    path = saved(
        {
            "image": [picture(value) for value in (10, 20, 30)],
            "labels": [[0, 1], [], [1]],
        },
        {
            "image": datasets.Image(),
            "labels": lists(datasets.ClassLabel(names=NAMES)),
        },
    )
    found = read_labels(path, empty_set="drop")
    assert sets_of(found) == {
        "train_00000": {"cat", "dog"},
        "train_00002": {"dog"},
    }
    assert found.candidates.class_names == tuple(NAMES)
    assert [pixel(one) for one in found.images] == [(10,) * 3, (30,) * 3]
    with pytest.raises(DataError, match="not those given"):
        read_labels(path, class_names=["x", "y", "z"])


def test_a_selection_keeps_its_own_rows(saved, sets_of, tmp_path):
    path = saved(
        {
            "id": ["a", "b", "c", "d"],
            "photo": [picture(value) for value in (10, 20, 30, 40)],
            "label": [0, 1, 2, 1],
        },
        {
            "id": datasets.Value("string"),
            "photo": datasets.Image(),
            "label": datasets.ClassLabel(names=NAMES),
        },
    )
    chosen = datasets.load_from_disk(path).select([3, 0, 2])
    chosen.save_to_disk(tmp_path / "chosen")
    found = read_labels(tmp_path / "chosen")
    assert sets_of(found) == {"d": {"dog"}, "a": {"cat"}, "c": {"owl"}}
    assert found.candidates.ids.tolist() == ["d", "a", "c"]
    assert [pixel(one)[0] for one in found.images] == [40, 10, 30]


def test_lists_of_names_need_no_class_label(saved, sets_of):
    path = saved(
        {"id": ["a", "b"], "candidates": [["cat", "dog"], ["owl"]]},
        {
            "id": datasets.Value("string"),
            "candidates": lists(datasets.Value("string")),
        },
    )
    found = read_labels(path)
    assert sets_of(found) == {"a": {"cat", "dog"}, "b": {"owl"}}
    assert found.images is None


def test_an_image_that_is_not_there(saved):
    features = {
        "image": datasets.Image(),
        "label": datasets.ClassLabel(names=NAMES),
    }
    path = saved({"image": [picture(1), None], "label": [1, 2]}, features)
    found = read_labels(path)
    assert pixel(found.images[0]) == (1, 1, 1)
    with pytest.raises(DataError, match="Row 1.*no image"):
        found.images[1]


def test_an_image_named_by_its_path(saved, tmp_path):
    picture(7).save(tmp_path / "seven.png")
    # What `save_to_disk` makes of a path depends on the version: the bytes
    # are embedded, or the path stays.
    path = saved(
        {"image": [os.fspath(tmp_path / "seven.png")], "label": [0]},
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=NAMES),
        },
    )
    assert pixel(read_labels(path).images[0]) == (7, 7, 7)


def test_two_lists_of_classes_are_refused(saved):
    path = saved(
        {"coarse": [0], "fine": [1]},
        {
            "coarse": datasets.ClassLabel(names=["animal"]),
            "fine": datasets.ClassLabel(names=NAMES),
        },
    )
    with pytest.raises(DataError, match="coarse, fine.*different classes"):
        read_labels(path)


def test_splits_are_named(sets_of, tmp_path):
    columns = {"id": ["a", "b"], "label": ["cat", "dog"]}
    one = datasets.Dataset.from_dict(columns)
    splits = datasets.DatasetDict({"test": one, "train": one})
    splits.save_to_disk(tmp_path / "both")
    with pytest.raises(DataError, match="splits test, train.*both/train$"):
        read_labels(tmp_path / "both")
    found = read_labels(tmp_path / "both" / "train")
    assert sets_of(found) == {"a": {"cat"}, "b": {"dog"}}


def test_damage_is_told(saved, tmp_path):
    path = saved({"label": ["cat"]}, {"label": datasets.Value("string")})
    for file in path.glob("*.arrow"):
        file.write_bytes(b"no arrow")
    with pytest.raises(DataError, match="no sound HuggingFace dataset"):
        read_labels(path)


def test_without_datasets(tmp_path, monkeypatch):
    (tmp_path / "dataset_info.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(EnvironmentLacksError, match="pip install datasets"):
        read_labels(tmp_path)


def test_a_class_of_two_lines_is_refused(saved):
    names = datasets.ClassLabel(names=["cat", "a\nb"])
    path = saved({"label": [0, 1]}, {"label": names})
    with pytest.raises(DataError, match="1 class names hold a line break"):
        read_labels(path)


@pytest.fixture
def four(saved):
    """A folder of a dataset of four items, their images inside."""
    return saved(
        {
            "id": ["a.png", "b.png", "c.png", "d.png"],
            "image": [picture(value) for value in (10, 20, 30, 40)],
            "label": [0, 1, 0, 1],
        },
        {
            "id": datasets.Value("string"),
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=NAMES),
        },
    )


@pytest.mark.parametrize("beside", [False, True])
def test_items_of_a_dataset_are_tested_on(four, write, beside):
    test = write("id,label\nd.png,owl\nb.png,cat\n", "test.csv")
    known = write("id,label\nc.png,dog\n", "known.csv")
    if beside:
        # Files of the same names are other pictures.
        for name in "abcd":
            picture(200).save(four.parent / f"{name}.png")
    found = load_own(four, test_labels=test, known_labels=known, image_size=2)
    data = found.data
    assert data.ids.tolist() == ["a.png", "c.png"]
    assert data.images.read()[:, 0, 0, 0].tolist() == [10, 30]
    assert found.candidates.sets.argmax(1).tolist() == [0, 0]
    assert found.known.tolist() == [-1, 1]
    assert data.test_ids.tolist() == ["d.png", "b.png"]
    assert data.test_images.read()[:, 0, 0, 0].tolist() == [40, 20]
    assert data.test_labels.tolist() == [2, 0]
    assert "2 items are tested on, not trained on" in found.notes
    assert len(found.files) == 4


def test_only_items_of_a_dataset_can_be_tested_on(four, write):
    picture(200).save(four.parent / "z.png")
    test = write("id,label\nb.png,cat\nz.png,dog\n", "test.csv")
    with pytest.raises(
        DataError, match="test.csv: 1 ids are not in .*images itself: z.png;"
    ):
        load_own(four, test_labels=test)
    test = write("id,label\n" + "".join(f"{n}.png,0\n" for n in "abcd"))
    with pytest.raises(DataError, match="names every item"):
        load_own(four, test_labels=test)


def test_all_items_of_a_dataset_without_a_test(four):
    found = load_own(four, image_size=2)
    assert found.data.images.read()[:, 0, 0, 0].tolist() == [10, 20, 30, 40]
    assert len(found.data.test_ids) == len(found.data.test_images) == 0


def test_rows_without_an_image_are_left_out(saved):
    path = saved(
        {
            "id": [*"abcd"],
            "image": [picture(10), None, picture(30), picture(40)],
            "label": [0, 1, 0, 2],
        },
        {
            "id": datasets.Value("string"),
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=NAMES),
        },
    )
    with pytest.raises(DataError, match="1 of 4 images .*: b .Row 1 of the"):
        load_own(path)
    found = load_own(path, on_bad_image="skip", image_size=2)
    assert found.data.ids.tolist() == ["a", "c", "d"]
    assert found.data.images.read()[:, 0, 0, 0].tolist() == [10, 30, 40]
    assert list(found.scan.problems) == [1] and found.files[1] == "b"
