"""Folders of images, and the files that ids of a table mean."""

import unicodedata

import numpy as np
import pytest

from alim_keras.data import list_images
from alim_keras.data import match_ids
from alim_keras.data import matching
from alim_keras.errors import DataError


@pytest.fixture
def folder(tmp_path):
    """A function that makes empty files of these names."""

    def make(*names):
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return str(tmp_path)

    return make


def test_hidden_and_other_files_are_passed_over(folder):
    names = ("1.png", "._1.png", ".DS_Store", ".git/2.png", "Thumbs.db", "png")
    top = folder(*names, "sub/.hidden/3.png", "sub/10.txt")
    assert list_images(top).files == ["1.png"]


def test_class_folders_stand_in_natural_order(folder):
    # Case 71: "10" comes after "2".
    names = [f"{n}/{k}.png" for n in range(12) for k in (10, 9)]
    listing = list_images(folder(*names))
    assert listing.class_names == tuple(str(n) for n in range(12))
    assert listing.files[:3] == ["0/9.png", "0/10.png", "1/9.png"]


def test_what_fiftyone_did_not_label_is_no_class(folder):
    found = list_images(folder("cat/1.png", "dog/2.png", "_unlabeled/3.png"))
    assert found.files == ["cat/1.png", "dog/2.png"]
    assert found.class_names == ("cat", "dog")


@pytest.mark.parametrize(
    "names",
    [
        ["a/1.png", "a/2.png"],
        ["a/1.png", "b/2.png", "3.png"],
        ["a/1.png", "b/c/2.png"],
    ],
)
def test_what_are_no_class_folders(folder, names):
    listing = list_images(folder(*names))
    assert listing.class_names is None
    assert sorted(listing.files) == sorted(names)


def test_links_are_followed_once(folder, tmp_path):
    top = folder("real/1.png", "inner/2.png")
    other = tmp_path / "photos"
    other.mkdir()
    (other / "linked.png").symlink_to(tmp_path / "real" / "1.png")
    (other / "gone.png").symlink_to(tmp_path / "nothing.png")
    # A link to a folder, and one that leads back up.
    (other / "more").symlink_to(tmp_path / "inner")
    (tmp_path / "inner" / "up").symlink_to(other)
    files = ["gone.png", "linked.png", "more/2.png"]
    assert list_images(other).files == files
    assert "real/1.png" in list_images(top).files


def test_folders_without_images_are_refused(folder, tmp_path):
    with pytest.raises(DataError, match="no images in this .*png"):
        list_images(folder("a.txt", "b.md"))
    for name in ("no", "a.txt"):
        with pytest.raises(DataError, match=f"{name}: cannot be listed"):
            list_images(tmp_path / name)


# Ids.


FILES = ("a/1.png", "a/2.jpg", "b/10.png", "b/x.y.png")


@pytest.mark.parametrize(
    "ids, rule",
    [
        (["b/10.png", "a/1.png"], "the path of a file"),
        (["./b/10.png", "a\\1.png"], "the path of a file"),
        (["b/10", "a/1"], "path without its ending"),
        (["10.png", "1.png"], "a file name, in whatever folder"),
        (["z/b/10.png", "/y/a/1.png"], "a file name, in whatever folder"),
        (["10", "1"], "without folder and ending"),
        # Others made PNG of what was JPEG.
        (["10.jpeg", "1.jpg"], "without folder and ending"),
        ([10, 1], "without folder and ending"),
        # Nobody keeps the folder of an upload.
        (["/data/upload/3/ab12cd34-10.png", "1.png"], "upload's code"),
    ],
)
def test_rules(folder, ids, rule):
    files, words = match_ids(ids, folder(*FILES))
    assert files == ["b/10.png", "a/1.png"] and rule in words


def test_names_that_are_odd(folder):
    top = folder(*FILES, " lead.png", "b.png ", r"sub\1.png", "0a1b2c3d-7.png")
    for name in ("b/x.y", "x.y"):
        assert match_ids([name], top)[0] == ["b/x.y.png"]
    # As readers of tables give the first, and as they are.
    for name in ("lead.png", " lead.png"):
        ids = [name, r"sub\1.png"]
        assert match_ids(ids, top)[0] == [" lead.png", r"sub\1.png"]
    # A file that was exported may have the code of its upload, too.
    assert match_ids(["/data/upload/1/0a1b2c3d-7.png"], top)[0] == [
        "0a1b2c3d-7.png"
    ]


@pytest.mark.parametrize("table", ["NFC", "NFD"])
@pytest.mark.parametrize("disk", ["NFC", "NFD"])
def test_accents_are_taken_apart_on_macos(folder, table, disk):
    stored = unicodedata.normalize(disk, "Süd/é.png")
    top = folder(stored, "Süd/e.png")
    name = unicodedata.normalize(table, "Süd/é.png")
    assert match_ids([name], top)[0] == [stored]
    assert match_ids([name[4:-4]], top)[0] == [stored]


def test_ids_without_an_image_are_named(folder):
    # Case 75.
    top = folder(*(f"cat_{n}.png" for n in range(9)))
    with pytest.raises(DataError) as caught:
        match_ids([f"cat_{n}.png" for n in range(10)], top, "labels.csv")
    text = str(caught.value)
    assert text.startswith("labels.csv: 1 of 10 ids have no image")
    assert f"the 9 in {top}: cat_9.png. " in text
    assert "such as cat_0.png, cat_1.png; --on_bad_image=skip" in text
    with pytest.raises(DataError, match="7 of 7 .*: a, b, c, d, e, [.]{3}"):
        match_ids(list("abcdefg"), top)


@pytest.mark.parametrize(
    "ids, text",
    [
        (["1.png", "x.png"], r": 1.png \(a/1.png or b/1.png\)"),
        (["2"], r"2 \(c/2.jpg or c/2.png"),
        # Two ids that would be the same picture.
        (["x", "x.jpg"], r"x.jpg \(x.png\)"),
        (["x.png", "a/1.png", "./x.png"], r"1 of 3 .*: ./x.png \(x.png\)"),
    ],
)
@pytest.mark.parametrize("keep", [False, True])
def test_doubtful_ids_are_refused(folder, ids, text, keep):
    top = folder("a/1.png", "b/1.png", "c/2.png", "c/2.jpg", "x.png")
    with pytest.raises(DataError, match=text):
        match_ids(ids, top, keep_missing=keep)
    # A path says which.
    assert match_ids(["b/1.png", "c/2.jpg"], top)[0] == ["b/1.png", "c/2.jpg"]


def test_an_id_of_another_folder_means_another_file(folder):
    top = folder("train/1.jpg", "train/cats/2.jpg", "3.jpg")
    for name in ("test/1.jpg", "test/1", "test/1.png", "rain/1.jpg"):
        with pytest.raises(DataError, match=f"1 of 1 .*: {name}"):
            match_ids([name], top)
    # The id or the file may say more of the way.
    ids = ["/home/me/train/1.jpg", "cats/2.jpg", "photos/3.jpg"]
    files = ["train/1.jpg", "train/cats/2.jpg", "3.jpg"]
    assert match_ids(ids, top)[0] == files


def test_missing_ids_are_kept_for_the_scan(folder):
    top = folder(*FILES)
    files, rule = match_ids(["1", "gone", "10", "1"], top, keep_missing=True)
    assert files == ["a/1.png", "gone", "b/10.png", "a/1.png"]
    assert "without folder and ending" in rule
    # A file that another rule would find is not left out.
    ids = ["a/1.png", "a/1.jpg", "10"]
    with pytest.raises(DataError, match=r"1 of 3 .*: 10 \(b/10.png\)"):
        match_ids(ids, folder("a/1.jpg"), keep_missing=True)
    # Not one id has a file: that is another folder.
    with pytest.raises(DataError, match="2 of 2"):
        match_ids(["gone", "lost"], top, keep_missing=True)


def test_many_ids():
    files = [f"d{n % 7}/img_{n}.png" for n in range(50_000)]
    listing = matching.ImageListing("nowhere", files)
    order = np.random.default_rng(0).permutation(len(files))
    made, _ = match_ids([f"img_{n}" for n in order], listing)
    assert made == [files[n] for n in order]
    with pytest.raises(DataError, match="1 of 50000 .*img_50001"):
        match_ids([f"img_{n + 2 * (n == 49_999)}" for n in order], listing)
