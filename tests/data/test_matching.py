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
    found = list_images(
        folder(
            "1.png",
            "._1.png",
            ".DS_Store",
            ".git/2.png",
            "sub/.hidden/3.png",
            *(f"sub/{n}.txt" for n in (10, 9, 8, 7, 6, 5)),
            "Thumbs.db",
            "png",
        )
    )
    assert found.files == ["1.png"]


def test_class_folders_stand_in_natural_order(folder):
    # Case 71: "10" comes after "2".
    names = [f"{n}/{k}.png" for n in range(12) for k in (10, 9)]
    found = list_images(folder(*names))
    assert found.class_names == tuple(str(n) for n in range(12))
    assert found.files[:4] == ["0/9.png", "0/10.png", "1/9.png", "1/10.png"]
    assert found.classes.dtype == np.int64
    assert found.classes.tolist() == np.repeat(np.arange(12), 2).tolist()


@pytest.mark.parametrize(
    "names",
    [
        ["a/1.png", "a/2.png"],
        ["a/1.png", "b/2.png", "3.png"],
        ["a/1.png", "b/c/2.png"],
    ],
)
def test_what_are_no_class_folders(folder, names):
    found = list_images(folder(*names))
    assert found.class_names is found.classes is None
    assert sorted(found.files) == sorted(names)


def test_links_are_followed_once(folder, tmp_path):
    top = folder("real/1.png", "inner/2.png")
    other = tmp_path / "photos"
    other.mkdir()
    (other / "linked.png").symlink_to(tmp_path / "real" / "1.png")
    (other / "gone.png").symlink_to(tmp_path / "nothing.png")
    # A link to a folder, and one that leads back up.
    (other / "more").symlink_to(tmp_path / "inner")
    (tmp_path / "inner" / "up").symlink_to(other)
    assert list_images(other).files == [
        "gone.png",
        "linked.png",
        "more/2.png",
    ]
    assert "real/1.png" in list_images(top).files


def test_folders_without_images_are_refused(folder, tmp_path):
    with pytest.raises(DataError, match="no images.*png.*Received: no files"):
        list_images(folder())
    with pytest.raises(DataError, match="Received: 2 other files: a.txt, b.md"):
        list_images(folder("a.txt", "b.md"))
    with pytest.raises(DataError, match=f"{tmp_path}/no: cannot be listed"):
        list_images(tmp_path / "no")
    with pytest.raises(DataError, match="a.txt: cannot be listed"):
        list_images(tmp_path / "a.txt")


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
    ],
)
def test_rules(folder, ids, rule):
    files, found = match_ids(ids, folder(*FILES))
    assert files == ["b/10.png", "a/1.png"]
    assert rule in found


@pytest.mark.parametrize("table", ["NFC", "NFD"])
@pytest.mark.parametrize("disk", ["NFC", "NFD"])
def test_accents_are_taken_apart_on_macos(folder, table, disk):
    stored = unicodedata.normalize(disk, "Süd/é.png")
    top = folder(stored, "Süd/e.png")
    said = unicodedata.normalize(table, "Süd/é.png")
    assert match_ids([said], top)[0] == [stored]
    assert match_ids([said[4:-4]], top)[0] == [stored]
    # Whoever has both means both.
    other = unicodedata.normalize("NFD" if disk == "NFC" else "NFC", stored)
    top = folder(stored, other)
    assert match_ids([other, stored], top)[0] == [other, stored]


def test_the_code_of_an_upload(folder):
    top = folder(*FILES)
    ids = ["/data/upload/3/ab12cd34-10.png", "/data/upload/3/00ffee11-2.jpg"]
    files, rule = match_ids(ids, top)
    assert files == ["b/10.png", "a/2.jpg"] and "upload's code" in rule
    # A file that was exported has it too.
    top = folder("ab12cd34-10.png", "10.png", "00ffee11-2.jpg")
    assert match_ids(ids, top)[0] == ["ab12cd34-10.png", "00ffee11-2.jpg"]


def test_a_name_with_dots_keeps_them(folder):
    top = folder(*FILES)
    assert match_ids(["b/x.y"], top)[0] == ["b/x.y.png"]
    assert match_ids(["x.y"], top)[0] == ["b/x.y.png"]


def test_ids_without_an_image_are_named(folder):
    # Case 75.
    top = folder(*(f"{n}.png" for n in range(9)))
    with pytest.raises(DataError) as found:
        match_ids([f"{n}.png" for n in range(10)], top, "labels.csv")
    text = str(found.value)
    assert text.startswith("labels.csv: 1 of 10 ids have no image")
    assert f"the 9 in {top}: 9.png" in text
    with pytest.raises(DataError, match="7 of 7 .*: a, b, c, d, e, [.]{3}"):
        match_ids(list("abcdefg"), top)


def test_near_names_are_offered(folder):
    top = folder("cats/cat_0001.png", "cats/cat_0002.png")
    with pytest.raises(DataError, match="did you mean cat_0001.png"):
        match_ids(["cat_001.png"], top)


def test_doubtful_ids_are_refused(folder):
    top = folder("a/1.png", "b/1.png", "c/2.png", "c/2.jpg")
    with pytest.raises(DataError, match=r"1.png \(could be a/1.png or b/1"):
        match_ids(["1.png", "2.png"], top)
    with pytest.raises(DataError, match=r"2 \(could be c/2.jpg or c/2.png"):
        match_ids(["2"], top)
    # A path says which.
    assert match_ids(["b/1.png", "c/2.jpg"], top)[0] == ["b/1.png", "c/2.jpg"]
    # Two ids that would be the same picture.
    with pytest.raises(DataError, match=r"y/2.jpg \(means .*, as does x/2.jpg"):
        match_ids(["x/2.jpg", "y/2.jpg"], top)


def test_an_id_of_another_folder_means_another_file(folder):
    top = folder("train/1.jpg", "train/cats/2.jpg", "3.jpg")
    for one in ("test/1.jpg", "test/1", "test/1.png", "rain/1.jpg"):
        with pytest.raises(
            DataError, match=rf"{one} \(is in another folder than train/1.jpg"
        ):
            match_ids([one], top)
    # One of several is enough, and is not left out as missing either.
    with pytest.raises(DataError, match=r"1 of 2 ids .*: test/1.jpg \(is in"):
        match_ids(["2.jpg", "test/1.jpg"], top, keep_missing=True)
    # The id or the file may say more of the way.
    ids = ["/home/me/train/1.jpg", "cats/2.jpg", "photos/3.jpg"]
    found = ["train/1.jpg", "train/cats/2.jpg", "3.jpg"]
    assert match_ids(ids, top)[0] == found
    # Nobody keeps the folder of an upload.
    ids = ["/data/upload/7/1.jpg", "/data/upload/7/0a1b2c3d-2.jpg"]
    assert match_ids(ids, top)[0] == found[:2]


def test_missing_ids_are_kept_for_the_scan(folder):
    top = folder(*FILES)
    files, rule = match_ids(["1", "gone", "10"], top, keep_missing=True)
    assert files == ["a/1.png", "gone", "b/10.png"]
    assert "without folder and ending" in rule
    # Not one id has a file: that is another folder.
    with pytest.raises(DataError, match="2 of 2"):
        match_ids(["gone", "lost"], top, keep_missing=True)


def test_names_with_spaces_and_backslashes(folder):
    top = folder(" lead.png", "b.png ", r"sub\1.png")
    # As readers of tables give the first, and as they are.
    ids = ["lead.png", r"sub\1.png"]
    assert match_ids(ids, top)[0] == [" lead.png", r"sub\1.png"]
    ids = [" lead.png", r"sub\1.png"]
    assert match_ids(ids, top)[0] == [" lead.png", r"sub\1.png"]
    top = folder("lead.png", "2.png")
    assert match_ids(["2.png"], top)[0] == ["2.png"]
    with pytest.raises(DataError, match="' lead.png' or 'lead.png'; rename"):
        match_ids(["lead.png"], top)


def test_a_file_has_one_spelling(folder):
    top = folder("1.png", "b/2.png")
    with pytest.raises(
        DataError, match=r"t.csv: 2 files .*'1.png' and './1.png' \(1.png\)"
    ):
        match_ids(["1.png", "b/2.png", "./1.png", r"b\2.png"], top, "t.csv")
    with pytest.raises(DataError, match="1 files are named in several ways"):
        match_ids(["1.png", "gone.png", "./1.png"], top, keep_missing=True)
    ids = ["1.png", "gone", "1.png", "lost"]
    found, _ = match_ids(ids, top, keep_missing=True)
    assert found == ["1.png", "gone", "1.png", "lost"]


def test_many_ids():
    files = [f"d{n % 7}/img_{n}.png" for n in range(50_000)]
    found = matching.ImageListing("nowhere", files)
    order = np.random.default_rng(0).permutation(len(files))
    made, rule = match_ids([f"img_{n}" for n in order], found)
    assert made == [files[n] for n in order]
    with pytest.raises(DataError, match="1 of 50000 .*img_50001"):
        match_ids([f"img_{n + 2 * (n == 49_999)}" for n in order], found)
