"""`python -m alim_keras.check`: the bad-input table, and what it prints."""

import json
import os
import subprocess
import sys

import numpy as np
import own
import pytest
from PIL import Image

from alim_keras import check
from alim_keras import cli
from alim_keras.cli import check_flags

SMALL = "--width=4 --batch_size=4 --queue_size=8 --holdout=0.1".split()


@pytest.fixture
def run(capsys):
    """Checks a table; returns the exit code and what was printed."""

    def checked(path, *flags):
        code = cli.run(
            check_flags.COMMAND,
            check.main,
            [*SMALL, f"--dataset={path}", *flags],
            keras=False,
        )
        out, err = capsys.readouterr()
        assert len(err.strip().splitlines()) <= 1, err
        return code, out + err

    return checked


@pytest.fixture
def photos(tmp_path):
    """Twelve pictures, 0.png to 11.png."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for row in range(12):
        Image.new("L", (8, 8), 20 * row).save(folder / f"{row}.png")
    return folder


def table(folder, sets, head=("id", "candidates")):
    rows = [(f"{row}.png", one) for row, one in enumerate(sets)]
    return own.write_rows(folder / "labels.csv", [head, *rows])


CLEAN = ["cat|dog", "dog", "cat"] * 4


def cells(*changes):
    """The clean sets with some of them replaced: (row, set), ..."""
    found = list(CLEAN)
    for row, one in changes:
        found[row] = one
    return found


NUMBERS = [f"{row % 3}|{(row + 1) % 3}" for row in range(12)]
ONE_BASED = [f"{1 + row % 3}" for row in range(12)]
BAD = {
    "an empty set": (
        cells((4, "")),
        (),
        3,
        ["empty", "4.png", "--empty_set"],
    ),
    "an empty set as all": (
        cells((4, "")),
        ("--empty_set=all",),
        0,
        ["12, 2 classes", "max 2"],
    ),
    "an empty set dropped": (
        cells((4, "")),
        ("--empty_set=drop",),
        0,
        ["11, 2 classes", "1 "],
    ),
    "a label from C on": (
        [*NUMBERS[:-1], "3"],
        ("--class_names=3",),
        3,
        ["3", "11.png", "0..2"],
    ),
    "a label below 0": (
        [*NUMBERS[:-1], "-2"],
        ("--class_names=3",),
        3,
        ["-2", "11.png", "0..2"],
    ),
    "labels from 1": (
        ONE_BASED,
        ("--class_names=3",),
        3,
        ["1-based"],
    ),
    "all classes": (
        ["cat|dog"] * 12,
        (),
        0,
        ["12 of 12 candidate sets hold all 2 classes", "100.00% of the sets"],
    ),
    "one candidate": (["cat", "dog"] * 6, (), 0, ["1: 100.0%"]),
    "a class twice in a set": (
        cells((0, "cat|cat")),
        (),
        0,
        ["repeated within an item and count once, 1 items"],
    ),
    "a number that is not whole": (
        [*NUMBERS[:-1], "1.5"],
        ("--class_names=3",),
        3,
        ["1.5", "11.png"],
    ),
    "a whole float": (
        [*NUMBERS[:-1], "1.0"],
        ("--class_names=3",),
        0,
        ["Sound"],
    ),
    "an unknown class": (
        cells((5, "catt")),
        ("--class_names=cat,dog",),
        3,
        ["'catt'", "5.png", "did you mean cat?"],
    ),
    "a class in no set": (
        CLEAN,
        ("--class_names=cat,dog,emu",),
        0,
        ["1 classes are in no set: emu", "Sound"],
    ),
    "zeros that fill up": (
        ["0|1", "0|2", "0"] * 4,
        ("--class_names=3",),
        0,
        ["is in 100.0% of the candidate sets", "-1"],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_row_of_the_bad_input_table(name, photos, tmp_path, run):
    sets, flags, expected, words = BAD[name]
    path = table(tmp_path, sets)
    code, text = run(path, f"--images={photos}", *flags)
    assert code == expected, text
    for word in words:
        assert word in text, text


def test_one_id_twice(photos, tmp_path, run):
    rows = [("id", "candidates"), *zip(["0.png", "1.png"] * 6, CLEAN)]
    same = [("id", "candidates")] + [
        (f"{n}.png", CLEAN[n]) for n in (*range(12), 3)
    ]
    flag = f"--images={photos}"
    code, text = run(own.write_rows(tmp_path / "same.csv", same), flag)
    assert code == 0 and "12, 2 classes" in text
    assert "1 rows repeat an id and say the same" in text
    other = own.write_rows(tmp_path / "other.csv", rows)
    code, text = run(other, flag)
    assert code == 3 and "0.png" in text and "--duplicates" in text
    code, text = run(other, flag, "--duplicates=union", "--batch_size=1")
    assert code == 0 and "2, 2 classes" in text and "mean 2.000" in text


def test_a_blank_is_no_vote_in_wide_and_an_error_in_multi_hot(
    photos, tmp_path, run
):
    wide = [("id", "ann", "bob")] + [
        (f"{n}.png", "cat" if n % 2 else "dog", "dog" if n == 3 else "")
        for n in range(12)
    ]
    path = own.write_rows(tmp_path / "wide.csv", wide)
    code, text = run(path, f"--images={photos}")
    assert code == 0 and "2 with 1 to 12 votes" in text and "max 2" in text
    hot = [("id", "cat", "dog")] + [
        (f"{n}.png", n % 2, "" if n == 3 else 1) for n in range(12)
    ]
    path = own.write_rows(tmp_path / "hot.csv", hot)
    code, text = run(path, f"--images={photos}", "--layout=multi_hot")
    assert code == 3 and "3.png" in text
    hot[4] = ("3.png", 0.3, 1)
    own.write_rows(path, hot)
    code, text = run(path, f"--images={photos}", "--layout=multi_hot")
    assert code == 3 and "0.3" in text and "3.png" in text


def features(folder, **arrays):
    path = folder / "t.npz"
    values = np.random.default_rng(0).normal(size=(12, 3))
    np.savez(path, features=values, **arrays)
    return path


HOT = np.tile([[1, 0, 1], [0, 1, 0]], (6, 1))


@pytest.mark.parametrize(
    "sets, expected, words",
    [
        (HOT.astype(bool), 0, ["12, 3 classes", "3 for each item"]),
        (HOT.astype("float32"), 0, ["12, 3 classes"]),
        (HOT + 0.3, 3, ["1.3"]),
        (HOT * 2, 3, ["2"]),
        (HOT[:-1], 3, ["12", "11"]),
        (np.array([[0], [1, 2]] * 6, object), 3, ["pickle"]),
    ],
)
def test_arrays_of_sets(sets, expected, words, tmp_path, run):
    code, text = run(features(tmp_path, candidates=sets))
    assert code == expected, text
    for word in words:
        assert word in text, text


def test_a_matrix_of_another_width_than_there_are_names(tmp_path, run):
    path = features(tmp_path, candidates=HOT)
    code, text = run(path, "--class_names=a,b")
    assert code == 3 and "3" in text and "2" in text, text


def test_lists_of_lists_and_numbers_as_words(photos, tmp_path, run):
    path = tmp_path / "labels.jsonl"
    lines = [
        {"id": f"{n}.png", "candidates": [n % 2, 2] if n else ["0", 2.0]}
        for n in range(12)
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    code, text = run(path, f"--images={photos}", "--class_names=a,b,c")
    assert code == 0 and "mean 2.000" in text, text


@pytest.mark.parametrize("content", [b"", b"id,candidates\n"])
def test_an_empty_file_is_named(content, photos, tmp_path, run):
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    code, text = run(path, f"--images={photos}")
    assert code == 3 and "empty" in text and "labels.csv" in text


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


def test_a_full_look_lists_a_picture_that_was_cut_short(photos, tmp_path, run):
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64), "uint8")
    Image.fromarray(pixels).save(photos / "3.png")
    whole = (photos / "3.png").read_bytes()
    (photos / "3.png").write_bytes(whole[: len(whole) // 2])
    path = table(tmp_path, CLEAN)
    # Met as the pixels' mean is taken, for which some pictures are read.
    code, text = run(path, f"--images={photos}")
    assert code == 3 and "error" in text and "3.png" in text
    code, text = run(path, f"--images={photos}", "--verify=full")
    assert code == 3 and "  3.png: " in text


def test_rows_without_an_image_name_both_counts(photos, tmp_path, run):
    path = own.write_rows(
        tmp_path / "labels.csv",
        [("id", "candidates"), ("0.png", "cat"), ("x.png", "dog")],
    )
    code, text = run(path, f"--images={photos}")
    assert code == 3
    assert "  x.png: " in text and "Not sound: 1 images" in text


def test_truth_outside_sets_that_are_said_to_be_clean(photos, tmp_path, run):
    path = table(tmp_path, CLEAN)
    known = own.write_rows(
        tmp_path / "known.csv",
        [("id", "label"), ("1.png", "cat"), ("2.png", "cat")],
    )
    flags = (f"--images={photos}", f"--known_labels={known}")
    code, text = run(path, *flags, "--noise_rate=0")
    assert code == 0
    assert "1 of 2 candidate sets leave out the true class" in text
    assert "50.00% of their sets leave the truth out" in text
    code, text = run(path, *flags)
    assert "although the noise rate" not in text


def test_identical_pictures_are_told(photos, tmp_path, run):
    (photos / "4.png").write_bytes((photos / "1.png").read_bytes())
    code, text = run(table(tmp_path, CLEAN), f"--images={photos}")
    assert code == 0 and "2 images in 1 groups" in text
    assert "1.png, 4.png" in text


def test_what_will_happen(photos, tmp_path, run):
    code, text = run(table(tmp_path, CLEAN), f"--images={photos}")
    assert code == 0
    assert "8 x 8 x 1" in text and "told the noise rate auto" in text
    # 12 items, of which one in ten is held out: 11 in steps of 4.
    assert "2 steps of 4; 11 items train, 1 are held out, 0 test" in text
    assert "pseudo-label table" in text or "Memory per device" in text
    assert "true labels    none known" in text
    code, text = run(
        table(tmp_path, CLEAN), f"--images={photos}", "--batch_size=64"
    )
    assert code == 2 and "--batch_size=64" in text


@pytest.mark.parametrize(
    "flags, words",
    [
        (["--noise_rate=annotated"], "--known_labels=FILE"),
        (["--noise_rate=em", "--holdout=0"], "--holdout=0.1"),
        (["--noise_rate=em", "--method=cc", "--lam=0"], "--noise_rate=cv"),
    ],
)
def test_a_noise_rate_that_training_would_refuse(
    flags, words, photos, tmp_path, run
):
    code, text = run(table(tmp_path, CLEAN), f"--images={photos}", *flags)
    assert code == 2 and words in text and "Sound" not in text


def test_a_data_set_with_a_name(run):
    code, text = run("digits", "--train_size=96")
    assert code == 0
    assert "96, 10 classes" in text and "96 known" in text


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--known_as_sets",), "needs the true labels of some items"),
        (("--memory_limit=1KB",), "--memory_limit=1000"),
        (("--noise_rate=oracle",), "needs simulated candidate sets"),
    ],
)
def test_what_training_would_refuse(photos, tmp_path, run, flags, said):
    path = table(tmp_path, CLEAN)
    code, text = run(path, f"--images={photos}", *flags)
    assert code == 2 and said in text and "Sound" not in text


@pytest.mark.parametrize(
    "flag", ["--images=photos", "--min_votes=2", "--test_labels=t.csv"]
)
def test_flags_that_nothing_would_read(run, flag):
    code, text = run("digits", flag)
    name = flag.partition("=")[0]
    assert code == 2 and f"{name} is about a table of labels" in text


@pytest.mark.parametrize(
    "flag",
    [
        "--protocol=flip",
        "--ambiguity=0.3",
        "--noise_level=0.1",
        "--legacy_stream",
    ],
)
def test_sets_that_are_given_are_not_simulated(photos, tmp_path, run, flag):
    path = table(tmp_path, CLEAN)
    said = f"those of {path} are as they are; leave it out. Received: "
    said += flag if "=" in flag else f"{flag}=True"
    for given in (
        (path, f"--images={photos}"),
        (
            "digits",
            f"--candidates_file={path}",
        ),
    ):
        code, text = run(*given, flag)
        assert code == 2 and said in text
    # A preset may say it, of the simulation that the file replaces.
    preset = "--preset=cifar10_q0.1_eta0.1"
    code, text = run(path, f"--images={photos}", preset, "--batch_size=2")
    assert code == 0 and "Sound" in text


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


def test_feature_vectors_are_for_mlp(tmp_path, run):
    path = tmp_path / "t.npz"
    sets = np.eye(2, dtype=bool)[[0, 1] * 6]
    np.savez(path, features=np.ones((12, 3)), candidates=sets)
    assert run(path, "--network=mlp")[0] == 0
    code, text = run(path, "--network=small_cnn")
    assert code == 2 and "--network=mlp takes" in text


def test_nothing_is_written(photos, tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = table(tmp_path, CLEAN)
    flags = (f"--images={photos}", "--image_cache=disk")
    assert run(path, *flags, f"--run_dir={tmp_path / 'run'}")[0] == 0
    assert run(path, *flags)[0] == 0
    left = sorted(one.name for one in tmp_path.iterdir())
    assert left == ["labels.csv", "photos"]


def test_the_shell_sees_the_findings_only(photos, tmp_path, repository):
    # In a fresh process: what imports Keras before the backend is chosen
    # fails with another backend, and lets TensorFlow talk.
    pytest.importorskip("jax")
    path = table(tmp_path, CLEAN)
    result = subprocess.run(
        [sys.executable, "-m", "alim_keras.check", *SMALL, "--backend=jax"]
        + [f"--dataset={path}", f"--images={photos}"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(repository)},
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.endswith("Sound: training would take these data.\n")
