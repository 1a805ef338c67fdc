"""`load_table`: a table, its files, and items tested on or known."""

import io
import shutil
import unicodedata

import numpy as np
import own
import pandas as pd
import pytest
from PIL import Image

from alim_keras.data import images
from alim_keras.data import load
from alim_keras.data import load_table
from alim_keras.errors import DataError


def load_folder(folder, **more):
    more["none_of_these"] = ("unsure",)
    return load_table(folder / "labels.csv", folder / "photos", **more)


def as_sets(candidates):
    names = np.array(candidates.class_names)
    rows = zip(candidates.ids, candidates.dense())
    return {item: {*names[row]} for item, row in rows}


def test_a_table_and_its_pictures(tmp_path):
    sets = own.write_folder(tmp_path, count=40, tested=6)
    found = load_folder(tmp_path)
    assert as_sets(found.candidates) == sets
    assert set(found.ids) == set(sets)
    assert found.labels is None and found.known is None
    assert found.test_images.shape == (0, 8, 8, 1)
    whole, rows = found.images.read(), [int(name[:-4]) for name in found.ids]
    np.testing.assert_array_equal(whole, load("digits").images[rows])
    # The mean of all, as of the array.
    whole = whole / 255.0
    assert found.mean[0] == pytest.approx(whole.mean(), abs=1e-6)
    assert found.std[0] == pytest.approx(whole.std(), abs=1e-6)
    assert "6 images there are in no row" in " ".join(found.notes)
    assert set(found.votes["annotator"]) == {"ann", "ben", "cat"}
    answers = own.read_rows(tmp_path / "labels.csv")
    sure = [one for one in answers if one["label"] != "unsure"]
    assert len(found.votes) == len(sure) < len(answers)
    size = (tmp_path / "photos" / found.ids[0]).stat().st_size
    assert found.scan["bytes"][found.file_rows[0]] == size


def test_bad_images_are_named_or_left_out_with_their_votes(tmp_path):
    sets = own.write_folder(tmp_path, count=12, tested=2)
    photos = tmp_path / "photos"
    (photos / "0003.png").write_bytes(b"")
    (photos / "0007.png").write_bytes(b"no image")
    (photos / "0009.png").unlink()
    (photos / "test_0001.png").write_bytes(b"")
    # Not all of them occur among twelve digits.
    files = {"test_labels": tmp_path / "test.csv", "class_names": own.NAMES}
    with pytest.raises(DataError, match="1 of 12 ids have no image.*0009.png"):
        load_folder(tmp_path, **files)
    Image.new("L", (8, 8)).save(photos / "0009.png")
    text = "3 of 14 images cannot.*0003.png .*known.*on_bad_image"
    with pytest.raises(DataError, match=text):
        load_folder(tmp_path, **files)
    (photos / "0009.png").unlink()
    found = load_folder(tmp_path, on_bad_image="skip", **files)
    left = set(sets) - {"0003.png", "0007.png", "0009.png"}
    assert set(found.ids) == left
    assert as_sets(found.candidates) == {one: sets[one] for one in left}
    assert found.test_ids.tolist() == ["test_0000.png"]
    assert set(found.votes["item"]) == left
    assert "4 images cannot be read" in " ".join(found.notes)


def test_class_folders_that_are_no_classes(tmp_path):
    for label in ("1", "2", "10"):
        (tmp_path / label).mkdir()
        Image.new("RGB", (9, 12)).save(tmp_path / label / "0.png")
    assert load_table(tmp_path, image_size=6).images.shape == (3, 6, 6, 3)
    with pytest.raises(DataError, match="Unknown class '10' of id 10/0.png"):
        load_table(tmp_path, class_names=("1", "2"))


def test_images_in_the_table_itself(tmp_path):
    images = np.arange(4 * 2 * 3, dtype=np.uint8).reshape(4, 2, 3)
    sets = np.array([[1, 0], [1, 1], [0, 0], [0, 1]])
    path = tmp_path / "t.npz"
    arrays = {"candidates": sets, "ids": list("abcd"), "images": images}
    np.savez(path, **arrays)
    found = load_table(path, empty_set="drop")
    assert found.kind == "images" and found.ids.tolist() == [*"abd"]
    kept = images[[0, 1, 3]][..., None]
    np.testing.assert_array_equal(found.images, kept)
    assert found.test_images.shape == (0, 2, 3, 1)
    assert found.mean[0] == pytest.approx(kept.mean() / 255, abs=1e-6)
    for more, said in (
        ({"images": images[:3]}, "row for each set"),
        ({"images": images - 0.5}, "pixels outside"),
        ({"features": np.ones((4, 2))}, "'images' and 'features'"),
    ):
        np.savez(path, **{**arrays, **more})
        with pytest.raises(DataError, match=said):
            load_table(path, empty_set="drop")


@pytest.fixture
def twelve(tmp_path):
    """Twelve pictures of noise, 0.png to 11.png, and their table."""
    (tmp_path / "photos").mkdir()
    stream = np.random.default_rng(0)
    for row in range(12):
        pixels = stream.integers(0, 256, (32, 32), "uint8")
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{row}.png")
    sets = ("cat|dog", "dog|owl", "cat")
    rows = [(f"{row}.png", sets[row % 3]) for row in range(12)]
    return own.write_rows(tmp_path / "t.csv", [("id", "candidates"), *rows])


def test_pictures_decoded_for_their_mean_are_looked_at(twelve):
    photos = twelve.parent / "photos"
    # It differs in size, and does not count.
    Image.effect_noise((60, 60), 50).save(photos / "3.png")
    (photos / "3.png").write_bytes((photos / "3.png").read_bytes()[:400])
    (photos / "5.png").write_bytes(b"")
    text = "2 of 12 images cannot be read: 3.png .it is cut short., 5.png"
    with pytest.raises(DataError, match=text):
        load_table(twelve, photos)
    data = load_table(twelve, photos, on_bad_image="skip")
    left = [row for row in range(12) if row not in (3, 5)]
    assert data.ids.tolist() == [f"{row}.png" for row in left]
    assert data.scan["problem"].dropna().index.tolist() == [3, 5]
    pixels = data.images.read()
    expected = [np.asarray(Image.open(photos / f"{n}.png")) for n in left]
    np.testing.assert_array_equal(pixels[..., 0], expected)
    assert data.mean[0] == pytest.approx(pixels.mean() / 255, abs=1e-9)
    assert data.std[0] == pytest.approx(pixels.std() / 255, abs=1e-9)


def test_a_picture_that_fails_later(twelve, monkeypatch):
    photos = twelve.parent / "photos"
    for name in ("4.png", "11.png"):
        # Head and end stay sound.
        content = bytearray((photos / name).read_bytes())
        content[60:70] = bytes(10)
        (photos / name).write_bytes(content)
    # 0, 3, 7 and 11 stand for all.
    monkeypatch.setattr(images, "_SAMPLE", 4)
    with pytest.raises(DataError, match="1 of 12 images .*: 11.png"):
        load_table(twelve, photos)
    data = load_table(twelve, photos, on_bad_image="skip")
    assert len(data.ids) == 11
    with pytest.raises(DataError, match="4.png.*damaged.*mend it"):
        data.images.read()


def test_copies_are_found(twelve):
    photos = twelve.parent / "photos"
    for row in range(6):
        shutil.copy(photos / f"{row}.png", photos / f"{row + 6}.png")
    data = load_table(twelve, photos)
    assert data.copies.tolist() == [0, 1, 2, 3, 4, 5] * 2


ACCENT = "\N{LATIN SMALL LETTER E WITH ACUTE}.png"


@pytest.fixture
def make(tmp_path):
    """A function that makes pictures of these names; each its own grey."""

    def make(*names):
        folder = tmp_path / "photos"
        for row, name in enumerate(names):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("L", (4, 4), 10 * row).save(path)
        return folder

    return make


@pytest.fixture
def table(tmp_path):
    """A function that writes a table of rows."""

    def table(*cells, head=("id", "candidates"), name="t.csv"):
        return own.write_rows(tmp_path / name, [head, *cells])

    return table


@pytest.fixture
def labels(table):
    """A function that writes true labels."""
    return lambda *cells: table(*cells, head=("id", "label"), name="labels.csv")


def open_sets(*names):
    return [(name, "cat|dog") for name in names]


SPELT = {
    "a dot": ("1.png", "./1.png"),
    "no ending": ("1.png", "1"),
    "an ending": ("1", "1.png"),
    "an absolute path": ("1.png", "{folder}/1.png"),
    "a backslash": ("sub/1.png", r"sub\1.png"),
    "a folder": ("1.png", "photos/1.png"),
    "a code": ("1.png", "/data/upload/1/0a1b2c3d-1.png"),
    "an accent": (ACCENT, unicodedata.normalize("NFD", ACCENT)),
}


@pytest.mark.parametrize("name", SPELT)
def test_a_tested_file_is_not_trained_on(name, make, table, labels):
    in_table, in_test = SPELT[name]
    files = in_table if in_table.endswith(".png") else f"{in_table}.png"
    folder = make(files, "2.png", "3.png")
    others = ["2", "3"] if in_table == "1" else ["2.png", "3.png"]
    path = table(*open_sets(in_table, *others))
    spelt = in_test.format(folder=folder)
    found = load_table(path, folder, test_labels=labels((spelt, "cat")))
    assert found.ids.tolist() == others
    assert found.test_ids.tolist() == [spelt]
    assert found.test_images.read().max() == 0
    assert found.images.read()[:, 0, 0, 0].tolist() == [10, 20]
    assert "1 items are tested on, not trained on" in found.notes
    assert "3 images" in found.notes[-2]
    told = load_table(path, folder, known_labels=labels((spelt, "dog")))
    assert told.known.tolist() == [told.class_names.index("dog"), -1, -1]


def test_files_that_are_no_images_of_the_folder_are_left_out(
    make, table, tmp_path
):
    folder = make("1.png", "2.png", "3.png")
    Image.new("L", (4, 4)).save(tmp_path / "outside.png")
    path = table(*open_sets("1.png", "../outside.png", "3.png", "4.png"))
    with pytest.raises(DataError, match="2 of 4 ids have no image"):
        load_table(path, folder)
    found = load_table(path, folder, on_bad_image="skip")
    assert found.ids.tolist() == ["1.png", "3.png"]
    assert found.scan["problem"].dropna().to_dict() == {
        1: "it is not among the images of the folder",
        3: "there is no such file",
    }


def test_an_image_of_its_own_column(make, table, labels):
    folder = make("1.png", "2.png", "3.png")
    cells = [(f"q{n}", f"{n}.png", "cat|dog") for n in (1, 2, 3)]
    # Two items may ask about one picture.
    cells.append(("q4", "1.png", "cat"))
    path = table(*cells, head=("id", "image", "candidates"))
    for test_id in ("q1", "./1.png"):
        found = load_table(path, folder, test_labels=labels((test_id, "cat")))
        assert found.ids.tolist() == ["q2", "q3"]
        assert found.test_images.read().max() == 0
    known = labels(("q4", "dog"), ("3", "cat"))
    found = load_table(path, folder, known_labels=known)
    assert found.known.tolist() == [-1, -1, 0, 1]
    with pytest.raises(DataError, match="1 ids are not of the training set"):
        load_table(path, folder, known_labels=labels(("1.png", "dog")))


@pytest.mark.parametrize(
    "cells, text",
    [
        ([("3.png", "cat")], "1 ids are not .*: 3.png; .*1.png, 2.png"),
        ([("9", "cat")], "s.csv: 1 ids are not .*: 9; .*such as 1.png, 2.png"),
        ([("1", "cat"), ("zzz", "cat")], "1 ids are not .*: zzz; .*1.png"),
        (
            [("1.png", "cat"), ("./1.png", "dog")],
            "1 ids .*name an item again: ./1.png",
        ),
    ],
)
def test_known_ids_are_items_and_each_once(cells, text, make, table, labels):
    folder = make("1.png", "2.png", "3.png")
    path = table(*open_sets("1.png", "2.png"))
    with pytest.raises(DataError, match=text):
        load_table(
            path, folder, known_labels=labels(*cells), on_bad_image="skip"
        )


def test_ids_of_a_test_are_matched_together(make, table, labels):
    names = [f"img-{n}.png" for n in range(12)]
    folder, path = make(*names), table(*open_sets(*names[:6]))
    for ids, text in (
        (("img-1.png", "img-2.png", "9"), "1 of 3 ids have no image .*: 9"),
        (
            ("img-2", "img-2.png"),
            "1 of 2 ids have no image .*: img-2 .img-2.png",
        ),
        (("img-5.png", "img-99.png"), "1 of 2 .*--on_bad_image=skip"),
    ):
        test = labels(*((name, "cat") for name in ids))
        with pytest.raises(DataError, match=f"labels.csv: {text}"):
            load_table(path, folder, test_labels=test)
    data = load_table(path, folder, test_labels=test, on_bad_image="skip")
    assert data.test_ids.tolist() == ["img-5.png"]
    assert len(data.ids) == 5
    assert "1 of 7 images cannot be read: img-99.png" in " ".join(data.notes)


def test_labels_of_items_that_are_left_out_are_counted(make, table, labels):
    folder = make(*(f"{n}.png" for n in range(6)))
    path = table(*((f"{n}.png", "" if n == 1 else "cat|dog") for n in range(6)))
    (folder / "2.png").write_bytes(b"")
    test = labels(("3", "cat")).rename(path.parent / "test.csv")
    data = load_table(
        path,
        folder,
        known_labels=labels(*((f"./{n}.png", "dog") for n in range(5))),
        test_labels=test,
        empty_set="drop",
        on_bad_image="skip",
    )
    assert data.ids.tolist() == ["0.png", "4.png", "5.png"]
    assert data.known.tolist() == [1, 1, -1]
    assert "2 of the 5 true labels" in " ".join(data.notes)


@pytest.mark.parametrize("policy", ["error", "drop", "all"])
def test_a_known_label_needs_no_set(policy, make, table, labels):
    folder = make(*(f"{n}.png" for n in range(4)))
    sets = ["unsure", "cat|dog", "unsure", "dog|owl"]
    path = table(*((f"{n}.png", cell) for n, cell in enumerate(sets)))
    reading = {"none_of_these": ("unsure",), "empty_set": policy}
    reading["known_as_sets"] = True
    known = labels(("./0.png", "owl"), ("./2.png", "cat"))
    data = load_table(path, folder, known_labels=known, **reading)
    expected = [[0, 0, 1], [1, 1, 0], [1, 0, 0], [0, 1, 1]]
    assert data.sets.dense().astype(int).tolist() == expected
    assert data.sets.provenance["known_as_sets"] == 2
    # Nobody's answer leaves all open.
    assert data.candidates.dense()[[0, 2]].all()
    assert data.known.tolist() == [2, -1, 0, -1]
    # Others are what the policy says.
    known = labels(("./0.png", "owl"))
    if policy == "error":
        with pytest.raises(DataError, match="1 candidate sets .*empty.*2.png"):
            load_table(path, folder, known_labels=known, **reading)
    else:
        data = load_table(path, folder, known_labels=known, **reading)
        kept = [*"0123"] if policy == "all" else [*"013"]
        assert [name[0] for name in data.ids] == kept


def test_a_tested_file_that_is_trained_on_by_another_name(make, table, labels):
    folder = make("1.png", "2.png", "3.png", "4.png")
    (folder / "5.png").symlink_to(folder / "2.png")
    (folder / "6.png").write_bytes((folder / "3.png").read_bytes())
    path = table(*open_sets("1.png", "2.png", "3.png"))
    test = labels(*((f"{n}.png", "cat") for n in (5, 6, 4)))
    notes = " ".join(load_table(path, folder, test_labels=test).notes)
    text = "2 images are tested on that show the same as one that is trained on"
    assert f"{text}: 5.png (2.png), 6.png (3.png); leave one of them" in notes
    test = labels(("4.png", "cat"))
    notes = " ".join(load_table(path, folder, test_labels=test).notes)
    assert "show the same" not in notes


def test_a_copy_in_the_table_of_a_tested_image_is_trained_on(labels, tmp_path):
    pixels = io.BytesIO()
    Image.new("L", (8, 8), 7).save(pixels, "PNG")
    frame = pd.DataFrame({"id": [*"abc"], "candidates": ["x", "x|y", "y"]})
    frame["image"] = pixels.getvalue()
    frame.to_parquet(tmp_path / "t.parquet")
    test = labels(("c", "y"))
    data = load_table(tmp_path / "t.parquet", test_labels=test)
    assert (data.ids.tolist(), data.test_ids.tolist()) == (["a", "b"], ["c"])
    assert "show the same as one that is trained on: c (a)" in data.notes[-1]


SETS = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]])


@pytest.mark.parametrize(
    "name, values",
    [
        ("features", np.arange(15, dtype="float32").reshape(5, 1, 1, 3)),
        ("images", np.arange(5 * 16, dtype="uint8").reshape(5, 4, 4, 1)),
    ],
)
def test_items_of_the_table_are_tested_on(name, values, labels, tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, ids=[*"abcde"], candidates=SETS, **{name: values})
    data = load_table(path, test_labels=labels(("d", 2), ("b", 1)))
    assert data.ids.tolist() == ["a", "c", "e"]
    np.testing.assert_array_equal(data.images, values[[0, 2, 4]])
    assert data.test_ids.tolist() == ["d", "b"]
    np.testing.assert_array_equal(data.test_images, values[[3, 1]])
    assert data.test_labels.tolist() == [2, 1]
    np.testing.assert_array_equal(data.sets.dense(), SETS[[0, 2, 4]] > 0)
    # Those tested on count for nothing that training knows.
    alone = values[[0, 2, 4]].astype("float64") / 255
    np.testing.assert_allclose(data.mean, alone.mean((0, 1, 2)), rtol=1e-6)
    text = f"1 ids are not in .*t.npz, which holds the {name} itself: x$"
    with pytest.raises(DataError, match=text):
        load_table(path, test_labels=labels(("d", 2), ("x", 1)))
