"""`load_table`: what a table, its files and what is known come to."""

import numpy as np
import own
import pytest
from PIL import Image

from alim_keras.data import holdout_split
from alim_keras.data import images
from alim_keras.data import load
from alim_keras.data import load_table
from alim_keras.errors import DataError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("own")
    own.write_folder(place, count=40, tested=6)
    return place


def load_folder(folder, **more):
    return load_table(
        folder / "labels.csv",
        folder / "photos",
        none_of_these=("unsure",),
        **more,
    )


def as_sets(candidates):
    return {
        one: {candidates.class_names[c] for c in np.flatnonzero(row)}
        for one, row in zip(candidates.ids, candidates.dense())
    }


def test_a_table_and_its_pictures(folder, tmp_path):
    sets = own.write_folder(tmp_path, count=40, tested=6)
    found = load_folder(tmp_path)
    assert as_sets(found.candidates) == sets
    assert set(found.ids) == set(sets)
    assert found.labels is None and found.known is None
    assert found.test_images.shape == (0, 8, 8, 1)
    digits = load("digits").images
    for row, name in enumerate(found.ids):
        pixels = found.images[row]
        np.testing.assert_array_equal(pixels, digits[int(name[:-4])])
    # The mean of all, as of the array.
    whole = found.images.read() / 255.0
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
    with pytest.raises(
        DataError, match="3 of 14 images cannot.*0003.png .*known.*on_bad_image"
    ):
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
    with pytest.raises(DataError, match="1 folders are no classes: 10"):
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


def cut_short(path):
    """Leaves the head of a picture sound, and half of its pixels."""
    path.write_bytes(path.read_bytes()[:400])


def damage(path):
    """Leaves head and end of a picture sound, and breaks its pixels."""
    content = bytearray(path.read_bytes())
    content[60:70] = bytes(10)
    path.write_bytes(content)


def test_pictures_decoded_for_their_mean_are_looked_at(twelve):
    photos = twelve.parent / "photos"
    # It differs in size, and does not count.
    Image.effect_noise((60, 60), 50).save(photos / "3.png")
    cut_short(photos / "3.png")
    (photos / "5.png").write_bytes(b"")
    with pytest.raises(
        DataError,
        match="2 of 12 images cannot be read: 3.png .it is cut short., 5.png",
    ):
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
    damage(photos / "4.png")
    damage(photos / "11.png")
    # 0, 3, 7 and 11 stand for all.
    monkeypatch.setattr(images, "_SAMPLE", 4)
    with pytest.raises(DataError, match="1 of 12 images .*: 11.png"):
        load_table(twelve, photos)
    data = load_table(twelve, photos, on_bad_image="skip")
    assert len(data.ids) == 11
    with pytest.raises(DataError, match="4.png.*damaged.*mend it"):
        data.images.read()


def test_copies_are_held_out_together(twelve):
    photos = twelve.parent / "photos"
    for row in range(6, 12):
        content = (photos / f"{row - 6}.png").read_bytes()
        (photos / f"{row}.png").write_bytes(content)
    data = load_table(twelve, photos)
    assert data.copies.tolist() == [0, 1, 2, 3, 4, 5] * 2
    trained, held_out = holdout_split(data.ids, 0.3, 1, data.copies)
    assert len(held_out) == 4
    assert not {*held_out % 6} & {*trained % 6}
