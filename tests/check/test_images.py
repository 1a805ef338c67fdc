"""What check says of the image files."""

import numpy as np
import own
import pytest
from checking import CLEAN
from checking import table
from PIL import Image

from alim_keras.data.sources import image_data


def test_all_bad_images_are_named_at_once(photos, tmp_path, run):
    path = table(tmp_path, CLEAN)
    (photos / "2.png").write_bytes(b"")
    (photos / "5.png").write_bytes(b"no image")
    (photos / "7.png").unlink()
    out = tmp_path / "problems.csv"
    code, text = run(path, f"--images={photos}", f"--problems={out}")
    assert code == 3
    for name in ("2.png", "5.png", "7.png"):
        assert f"  {name}: " in text
    found = own.read_rows(out)
    assert [one["file"] for one in found] == ["2.png", "5.png", "7.png"]
    assert "zero" in found[0]["problem"]
    code, text = run(path, f"--images={photos}", "--on_bad_image=skip")
    assert code == 0 and "9, 2 classes" in text


def test_a_full_look_lists_a_picture_that_was_cut_short(
    photos, tmp_path, run, monkeypatch
):
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64), "uint8")
    Image.fromarray(pixels).save(photos / "3.png")
    whole = (photos / "3.png").read_bytes()
    (photos / "3.png").write_bytes(whole[: len(whole) // 2])
    path = table(tmp_path, CLEAN)
    # One of those that are decoded for mean and deviation, like most here.
    code, text = run(path, f"--images={photos}")
    assert code == 3 and "  3.png: it is cut short" in text
    monkeypatch.setattr(image_data, "_SAMPLE", 2)
    code, text = run(path, f"--images={photos}")
    assert code == 0 and "Sound" in text
    code, text = run(path, f"--images={photos}", "--verify=full")
    assert code == 3 and "  3.png: " in text


def spoil(photos):
    """Leaves one picture cut short, one missing and one empty."""
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64), "uint8")
    Image.fromarray(pixels).save(photos / "3.png")
    whole = (photos / "3.png").read_bytes()
    (photos / "3.png").write_bytes(whole[: len(whole) // 2])
    (photos / "7.png").unlink()
    (photos / "9.png").write_bytes(b"")


def test_problems_of_every_kind_are_listed(photos, tmp_path, run):
    path = table(tmp_path, CLEAN)
    spoil(photos)
    out = tmp_path / "p.csv"
    flags = (f"--images={photos}", f"--problems={out}")
    code, text = run(path, *flags)
    assert code == 3 and "Not sound: 3 images" in text
    assert "are left out" not in text
    rows = own.read_rows(out)
    assert [one["file"] for one in rows] == ["3.png", "7.png", "9.png"]
    assert rows[0]["problem"] == "it is cut short"
    out.unlink()
    code, text = run(path, *flags, "--on_bad_image=skip")
    assert code == 0 and "3 images cannot be read and are left out" in text
    assert "9, 2 classes" in text and own.read_rows(out) == rows


def test_problems_are_written_if_no_image_is_left(photos, tmp_path, run):
    path = table(tmp_path, CLEAN)
    for row in range(12):
        (photos / f"{row}.png").write_bytes(b"")
    out = tmp_path / "p.csv"
    for flag in ("--on_bad_image=error", "--on_bad_image=skip"):
        code, text = run(path, f"--images={photos}", f"--problems={out}", flag)
        assert code == 3 and "no item has an image that can be read" in text
        assert len(own.read_rows(out)) == 12
        out.unlink()


@pytest.mark.parametrize("flag", ["error", "skip"])
def test_tested_items_are_no_training_items(photos, tmp_path, run, flag):
    rows = [(str(row), one) for row, one in enumerate(CLEAN)]
    path = own.write_rows(tmp_path / "t.csv", [("id", "candidates"), *rows])
    rows = [(f"{row}.png", "cat") for row in range(3)]
    test = own.write_rows(tmp_path / "v.csv", [("id", "label"), *rows])
    flags = (f"--images={photos}", f"--test_labels={test}")
    code, text = run(path, *flags, f"--on_bad_image={flag}")
    assert code == 0 and "3 items are tested on, not trained on" in text
    assert "9, 2 classes" in text and "3 test" in text


@pytest.mark.parametrize("flag", ["error", "skip"])
def test_what_training_cannot_match_is_not_sound(photos, tmp_path, run, flag):
    for folder in "ab":
        (photos / folder).mkdir()
        for row in range(6):
            Image.new("L", (8, 8)).save(photos / folder / f"{row}.jpg")
    ids = [*(f"a/{n}" for n in range(6)), *(f"b/{n}.jpg" for n in range(6))]
    path = own.write_rows(
        tmp_path / "t.csv", [("id", "candidates"), *zip(ids, CLEAN)]
    )
    code, text = run(path, f"--images={photos}", f"--on_bad_image={flag}")
    assert code == 3 and "in one way" in text and "Sound" not in text


def test_rows_without_an_image_name_both_counts(photos, tmp_path, run):
    path = own.write_rows(
        tmp_path / "labels.csv",
        [("id", "candidates"), ("0.png", "cat"), ("x.png", "dog")],
    )
    code, text = run(path, f"--images={photos}")
    assert code == 3
    assert "  x.png: " in text and "Not sound: 1 images" in text


def test_identical_pictures_are_told(photos, tmp_path, run):
    (photos / "4.png").write_bytes((photos / "1.png").read_bytes())
    code, text = run(table(tmp_path, CLEAN), f"--images={photos}")
    assert code == 0 and "2 images in 1 groups" in text
    assert "1.png, 4.png" in text


def test_problems_are_written_to_a_file_only(photos, tmp_path, run):
    path = table(tmp_path, CLEAN)
    given = (f"--images={photos}", f"--problems={photos}")
    code, text = run(path, *given)
    assert code == 2 and "--problems must be the name of a file" in text


def test_class_folders_have_no_votes(tmp_path, run):
    for row in range(12):
        place = tmp_path / "cat dog".split()[row % 2]
        place.mkdir(exist_ok=True)
        Image.new("L", (8, 8), 20 * row).save(place / f"{row}.png")
    assert run(tmp_path)[0] == 0
    code, text = run(tmp_path, "--min_votes=2")
    assert code == 2 and "--min_votes=2" in text
