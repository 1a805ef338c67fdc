"""Items that are tested on or known, however their ids are written."""

import unicodedata

import numpy as np
import own
import pytest
from PIL import Image

from alim_keras.data import load_table
from alim_keras.errors import DataError

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


def rows(tmp_path, name, *cells, head=("id", "candidates")):
    return own.write_rows(tmp_path / name, [head, *cells])


def labels(tmp_path, name, *cells):
    return rows(tmp_path, name, *cells, head=("id", "label"))


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
def test_a_tested_file_is_not_trained_on(name, make, tmp_path):
    in_table, in_test = SPELT[name]
    files = in_table if in_table.endswith(".png") else f"{in_table}.png"
    folder = make(files, "2.png", "3.png")
    others = ["2", "3"] if in_table == "1" else ["2.png", "3.png"]
    path = rows(
        tmp_path, "t.csv", *((one, "cat|dog") for one in (in_table, *others))
    )
    spelt = in_test.format(folder=folder)
    test = labels(tmp_path, "v.csv", (spelt, "cat"))
    found = load_table(path, folder, test_labels=test)
    assert found.ids.tolist() == others
    assert found.test_ids.tolist() == [spelt]
    assert found.test_images.read().max() == 0
    assert found.images.read()[:, 0, 0, 0].tolist() == [10, 20]
    assert "1 items are tested on, not trained on" in found.notes
    assert "3 images" in found.notes[-2]
    known = labels(tmp_path, "k.csv", (spelt, "dog"))
    told = load_table(path, folder, known_labels=known)
    names = told.class_names
    assert told.known.tolist() == [names.index("dog"), -1, -1]


def test_files_that_are_no_images_of_the_folder_are_left_out(make, tmp_path):
    folder = make("1.png", "2.png", "3.png")
    Image.new("L", (4, 4)).save(tmp_path / "outside.png")
    path = rows(
        tmp_path,
        "t.csv",
        *(
            (n, "cat|dog")
            for n in ("1.png", "../outside.png", "3.png", "4.png")
        ),
    )
    with pytest.raises(DataError, match="2 of 4 ids have no image"):
        load_table(path, folder)
    found = load_table(path, folder, on_bad_image="skip")
    assert found.ids.tolist() == ["1.png", "3.png"]
    assert found.scan["problem"].dropna().to_dict() == {
        1: "it is not among the images of the folder",
        3: "there is no such file",
    }


def test_an_image_of_its_own_column(make, tmp_path):
    folder = make("1.png", "2.png", "3.png")
    head = ("id", "image", "candidates")
    cells = [(f"q{n}", f"{n}.png", "cat|dog") for n in (1, 2, 3)]
    # Two items may ask about one picture.
    path = rows(tmp_path, "t.csv", *cells, ("q4", "1.png", "cat"), head=head)
    for test_id in ("q1", "./1.png"):
        test = labels(tmp_path, "v.csv", (test_id, "cat"))
        found = load_table(path, folder, test_labels=test)
        assert found.ids.tolist() == ["q2", "q3"]
        assert found.test_images.read().max() == 0
    known = labels(tmp_path, "k.csv", ("q4", "dog"), ("3", "cat"))
    found = load_table(path, folder, known_labels=known)
    assert found.known.tolist() == [-1, -1, 0, 1]
    known = labels(tmp_path, "k.csv", ("1.png", "dog"))
    with pytest.raises(DataError, match="1 ids are not of the training set"):
        load_table(path, folder, known_labels=known)


def test_known_ids_are_items_and_each_once(make, tmp_path):
    folder = make("1.png", "2.png", "3.png")
    path = rows(tmp_path, "t.csv", *((f"{n}.png", "cat|dog") for n in (1, 2)))
    for cells, said in (
        ([("3.png", "cat")], "1 ids are not .*: 3.png; .*1.png, 2.png"),
        ([("9", "cat")], "k.csv: 1 ids are not .*: 9; .*such as 1.png, 2.png"),
        ([("1", "cat"), ("zzz", "cat")], "1 ids are not .*: zzz; .*1.png"),
        (
            [("1.png", "cat"), ("./1.png", "dog")],
            "1 ids .*name an item again: ./1.png",
        ),
    ):
        known = labels(tmp_path, "k.csv", *cells)
        with pytest.raises(DataError, match=said):
            load_table(path, folder, known_labels=known, on_bad_image="skip")


def test_ids_of_a_test_are_matched_together(make, tmp_path):
    folder = make(*(f"img-{n}.png" for n in range(12)))
    cells = [(f"img-{n}.png", "cat|dog") for n in range(6)]
    path = rows(tmp_path, "t.csv", *cells)
    for names, said in (
        (("img-1.png", "img-2.png", "9"), "1 of 3 ids have no image .*: 9"),
        (
            ("img-2", "img-2.png"),
            "1 of 2 ids have no image .*: img-2 .img-2.png",
        ),
        (("img-5.png", "img-99.png"), "1 of 2 .*--on_bad_image=skip"),
    ):
        test = labels(tmp_path, "v.csv", *((name, "cat") for name in names))
        with pytest.raises(DataError, match=f"v.csv: {said}"):
            load_table(path, folder, test_labels=test)
    data = load_table(path, folder, test_labels=test, on_bad_image="skip")
    assert data.test_ids.tolist() == ["img-5.png"]
    assert len(data.ids) == 5
    assert "1 of 7 images cannot be read: img-99.png" in " ".join(data.notes)


def test_labels_of_items_that_are_left_out_are_counted(make, tmp_path):
    folder = make(*(f"{n}.png" for n in range(6)))
    cells = [(f"{n}.png", "" if n == 1 else "cat|dog") for n in range(6)]
    path = rows(tmp_path, "t.csv", *cells)
    (folder / "2.png").write_bytes(b"")
    test = labels(tmp_path, "v.csv", ("3", "cat"))
    known = labels(
        tmp_path, "k.csv", *((f"./{n}.png", "dog") for n in range(5))
    )
    how = {"empty_set": "drop", "on_bad_image": "skip"}
    data = load_table(path, folder, known_labels=known, test_labels=test, **how)
    assert data.ids.tolist() == ["0.png", "4.png", "5.png"]
    assert data.known.tolist() == [1, 1, -1]
    assert "2 of the 5 true labels" in " ".join(data.notes)


@pytest.mark.parametrize("policy", ["error", "drop", "all"])
def test_a_known_label_needs_no_set(policy, make, tmp_path):
    folder = make(*(f"{n}.png" for n in range(4)))
    sets = ["unsure", "cat|dog", "unsure", "dog|owl"]
    cells = [(f"{n}.png", one) for n, one in enumerate(sets)]
    path = rows(tmp_path, "t.csv", *cells)
    known = labels(tmp_path, "k.csv", ("./0.png", "owl"), ("./2.png", "cat"))
    reading = {"none_of_these": ("unsure",), "empty_set": policy}
    reading["known_as_sets"] = True
    data = load_table(path, folder, known_labels=known, **reading)
    expected = [[0, 0, 1], [1, 1, 0], [1, 0, 0], [0, 1, 1]]
    assert data.sets.dense().astype(int).tolist() == expected
    assert data.sets.provenance["known_as_sets"] == 2
    # Nobody's answer leaves all open.
    assert data.candidates.dense()[[0, 2]].all()
    assert data.known.tolist() == [2, -1, 0, -1]
    # Others are what the policy says.
    known = labels(tmp_path, "k.csv", ("./0.png", "owl"))
    if policy == "error":
        with pytest.raises(DataError, match="1 candidate sets .*empty.*2.png"):
            load_table(path, folder, known_labels=known, **reading)
    else:
        data = load_table(path, folder, known_labels=known, **reading)
        kept = [*"0123"] if policy == "all" else [*"013"]
        assert [name[0] for name in data.ids] == kept


def test_a_tested_file_that_is_trained_on_by_another_name(make, tmp_path):
    folder = make("1.png", "2.png", "3.png", "4.png")
    (folder / "5.png").symlink_to(folder / "2.png")
    (folder / "6.png").write_bytes((folder / "3.png").read_bytes())
    path = rows(
        tmp_path, "t.csv", *((f"{n}.png", "cat|dog") for n in (1, 2, 3))
    )
    test = labels(tmp_path, "v.csv", *((f"{n}.png", "cat") for n in (5, 6, 4)))
    notes = " ".join(load_table(path, folder, test_labels=test).notes)
    assert (
        "2 images are tested on that show the same as one that is trained on: "
        "5.png (2.png), 6.png (3.png); leave one of them out"
    ) in notes
    test = labels(tmp_path, "v.csv", ("4.png", "cat"))
    notes = " ".join(load_table(path, folder, test_labels=test).notes)
    assert "show the same" not in notes


# Tables that hold features or images.

SETS = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]])


@pytest.mark.parametrize(
    "name, values",
    [
        ("features", np.arange(15, dtype="float32").reshape(5, 1, 1, 3)),
        ("images", np.arange(5 * 16, dtype="uint8").reshape(5, 4, 4, 1)),
    ],
)
def test_items_of_the_table_are_tested_on(name, values, tmp_path):
    table = tmp_path / "t.npz"
    np.savez(table, ids=[*"abcde"], candidates=SETS, **{name: values})
    test = labels(tmp_path, "v.csv", ("d", 2), ("b", 1))
    data = load_table(table, test_labels=test)
    assert data.ids.tolist() == ["a", "c", "e"]
    np.testing.assert_array_equal(data.images, values[[0, 2, 4]])
    assert data.test_ids.tolist() == ["d", "b"]
    np.testing.assert_array_equal(data.test_images, values[[3, 1]])
    assert data.test_labels.tolist() == [2, 1]
    np.testing.assert_array_equal(data.sets.dense(), SETS[[0, 2, 4]] > 0)
    # Those tested on count for nothing that training knows.
    alone = values[[0, 2, 4]].astype("float64") / 255
    np.testing.assert_allclose(data.mean, alone.mean((0, 1, 2)), rtol=1e-6)
    test = labels(tmp_path, "v.csv", ("d", 2), ("x", 1))
    text = f"1 ids are not in .*t.npz, which holds the {name} itself: x$"
    with pytest.raises(DataError, match=text):
        load_table(table, test_labels=test)
