"""What check says of the training that would follow."""

import os
import subprocess
import sys

import numpy as np
import own
import pytest
from checking import CLEAN
from checking import SMALL
from checking import table


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
