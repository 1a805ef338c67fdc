"""`python -m alim_keras.check`: what it says, and when it refuses."""

import commands
import numpy as np
import own
import pytest
from PIL import Image

SMALL = "--width=4 --batch_size=4 --queue_size=8 --holdout=0.1".split()
CLEAN = ["cat|dog", "dog", "cat"] * 4


def run(path, *flags):
    """Returns the exit code and what was printed."""
    code, out, err = commands.call("check", *SMALL, f"--dataset={path}", *flags)
    assert code != 1 and "Traceback" not in err, err
    return code, out + err


@pytest.fixture
def pictures(tmp_path):
    """Twelve pictures, 0.png to 11.png."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    for row in range(12):
        Image.new("L", (8, 8), 20 * row).save(folder / f"{row}.png")
    return folder


@pytest.fixture
def table(tmp_path):
    rows = [(f"{row}.png", one) for row, one in enumerate(CLEAN)]
    return own.write_rows(
        tmp_path / "labels.csv", [("id", "candidates"), *rows]
    )


def spoil(pictures):
    """Leaves one picture cut short, one missing and one empty."""
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64), "uint8")
    Image.fromarray(pixels).save(pictures / "3.png")
    whole = (pictures / "3.png").read_bytes()
    (pictures / "3.png").write_bytes(whole[: len(whole) // 2])
    (pictures / "7.png").unlink()
    (pictures / "9.png").write_bytes(b"")


def test_bad_images_are_named_at_once(pictures, table):
    spoil(pictures)
    code, text = run(table, f"--images={pictures}")
    assert code == 3 and "images that cannot be read: 3" in text
    listed = [line for line in text.splitlines() if line.startswith("  ")]
    names = [line.split(":")[0] for line in listed]
    assert names == ["  3.png", "  7.png", "  9.png"]
    code, text = run(table, f"--images={pictures}", "--on_bad_image=skip")
    assert code == 0 and "Left out: images that cannot be read: 3" in text
    assert all(line in text.splitlines() for line in listed)


def test_no_image_that_can_be_read(pictures, table):
    for row in range(12):
        (pictures / f"{row}.png").write_bytes(b"")
    for flag in ("--on_bad_image=error", "--on_bad_image=skip"):
        code, text = run(table, f"--images={pictures}", flag)
        assert code == 3 and "is --images the folder?" in text
    assert "no item is left: 12 of 12 images" in text and "mend them" in text


def test_what_will_happen(pictures, table):
    code, text = run(table, f"--images={pictures}")
    assert code == 0
    # 12 items, of which one in ten is held out: 11 in steps of 4.
    assert "steps an epoch: 2, batch: 4; items: 11 to train on, 1 held" in text
    assert "images of 8 x 8 x 1" in text and "realised noise  not known" in text
    code, text = run(table, f"--images={pictures}", "--batch_size=64")
    assert code == 2 and "--batch_size=64" in text


def test_truth_outside_sets_that_are_said_to_be_clean(
    pictures, table, tmp_path
):
    rows = [("id", "label"), ("1.png", "cat"), ("2.png", "cat")]
    known = own.write_rows(tmp_path / "known.csv", rows)
    flags = (f"--images={pictures}", f"--known_labels={known}")
    code, text = run(table, *flags, "--noise_rate=0")
    assert code == 0
    assert "1 of 2 candidate sets leave out the true class" in text
    code, text = run(table, *flags)
    assert "although the noise rate" not in text


def test_ids_of_a_file_that_is_not_there(pictures, table):
    code, text = run(table, f"--images={pictures}", "--ids=none.txt")
    assert code == 3 and "no such file. Received: --ids=none.txt" in text


def test_simulation_of_given_sets_is_refused(pictures, table):
    code, text = run(table, f"--images={pictures}", "--ambiguity=0.1")
    assert code == 2 and "--ambiguity is about simulated" in text


@pytest.mark.parametrize("flag", ["--method=proden2", "--network=nosuchnet"])
def test_names_that_training_refuses_are_refused(photos, flag):
    code, line = commands.fails(
        "check",
        f"--dataset={photos / 'labels.csv'}",
        f"--images={photos / 'photos'}",
        "--none_of_these=unsure",
        flag,
    )
    assert code == 2 and flag.partition("=")[2] in line
