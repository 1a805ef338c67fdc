"""Settings that nobody gave: which are chosen, why, and what wins over them."""

import dataclasses
import io
import json

import commands
import keras
import numpy as np
import pandas as pd
import pytest
import tiny

from alim_keras import data
from alim_keras import train
from alim_keras.app import defaults
from alim_keras.app.config import Config
from alim_keras.app.run_folder import RunFolder
from alim_keras.callbacks import run as running
from alim_keras.networks import image_statistics


@pytest.fixture(autouse=True)
def nothing_fetched(monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "no_keras"))


def images_of(count, side=8, channels=3):
    """Returns that many black images with full sets of two classes."""
    ids = np.arange(count).astype(str)
    sets = data.CandidateSets.from_dense(np.ones((count, 2)), ids, ("a", "b"))
    images = np.zeros((count, side, side, channels), np.uint8)
    return data.TrainingSet(
        name="mine",
        ids=ids,
        images=images,
        class_names=("a", "b"),
        test_images=images[:0],
        test_labels=np.zeros(0, int),
        test_ids=[],
        candidates=sets,
        mean=(0.0,) * channels,
        std=(1.0,) * channels,
    )


def chosen(training, **given):
    """Returns the resolved settings by name, and the reasons."""
    config = Config().replace(dataset="/my/labels.csv", **given)
    config, reasons = defaults.resolve(config, training)
    text = defaults.describe(reasons)
    assert all(len(line) < 120 for line in text.splitlines())
    return config.as_dict(), text


def test_a_data_set_with_a_name_keeps_its_values():
    given = Config().replace(epochs=3)
    config, reasons = defaults.resolve(given, images_of(40))
    assert config == given.replace(**{**defaults.STANDARD, "epochs": 3})
    assert reasons == {} and defaults.describe(reasons) == ""
    values = train.COMMAND.parse(["--dataset=digits"]).values
    assert defaults.STANDARD.items() <= values.items()


def test_photos_without_weights():
    values, text = chosen(images_of(234))
    expected = {
        "network": "image_statistics",
        "train_backbone": "none",
        "method": "proden",
        "lam": 0.1,
        "head_folds": 0,
        "holdout": 0.0,
        # 8 is the largest power of two for 20 steps of 234: there are 29.
        "batch_size": 8,
        "epochs": defaults.HEAD_EPOCHS,
        "warmup_epochs": round(0.2 * defaults.HEAD_EPOCHS),
        # 0.04 / 234^0.75 = 0.04 / 59.83 = 0.000669
        "weight_decay": 0.00067,
    }
    assert expected.items() <= values.items()
    assert "no pretrained weights" in text and "--network=FILE.keras" in text
    assert "234 photos" in text and "steps an epoch: 29" in text
    values, text = chosen(images_of(5000), image_size=32)
    expected = {
        "network": "cifar_resnet18",
        "width": 16,
        "image_size": 32,
        "method": "pico",
        "flip": 0.5,
        # 4,500 train: 128 for 35 steps; 4,000 / 35 = 114, of 80 at most.
        "batch_size": 128,
        "epochs": 80,
        "warmup_epochs": 16,
        "lam": "adaptive",
    }
    assert expected.items() <= values.items()
    assert "no pretrained weights" in text
    assert chosen(images_of(5000, channels=1))[0]["flip"] == 0.0


def test_a_held_out_part_is_there_for_those_who_look():
    assert chosen(images_of(40))[0]["holdout"] == 0.0
    assert chosen(images_of(40), head_folds=3, lam=0.5)[0]["holdout"] == 0.0
    for given in ({"lam": 0.5}, {"noise_rate": "auto"}, {"select": "cr"}):
        assert chosen(images_of(40), **given)[0]["holdout"] == 0.1


def test_votes_of_several_people_give_the_noise_rate():
    images = images_of(4)
    votes = {"item": [*images.ids] * 2, "annotator": ["x"] * 4 + ["y"] * 4}
    votes = pd.DataFrame({**votes, "label": "a"})
    several, text = chosen(dataclasses.replace(images, votes=votes))
    assert several["lam"] == "adaptive" and "votes of several people" in text
    # One person's answers say nothing of each other.
    own, _ = chosen(dataclasses.replace(images, votes=votes[:4]))
    assert own["lam"] == 0.1
    for values in (several, own):
        # Without weights the head is slower: 0.04 / 4^0.75 = 0.04 / 2.828.
        rates = values["learning_rate"], values["weight_decay"]
        assert rates == (2.0, 0.014)


def test_photos_with_a_network_in_a_file(tmp_path):
    inputs = keras.Input((None, None, 3))
    outputs = keras.layers.GlobalAveragePooling2D()(inputs)
    path = str(tmp_path / "net.keras")
    keras.Model(inputs, outputs).save(path)
    for given in ({"weights": path}, {"network": path}):
        values, text = chosen(images_of(40), **given)
        assert (values["network"], values["weights"]) == (path, None)
        assert values["train_backbone"] == "none"
        assert values["method"] == "proden"
        assert values["head_folds"] == defaults.HEAD_FOLDS
        why = "too few" if "weights" in given else "the features of net"
        assert why in text and "warning" not in text
    assert "flip" not in text
    values, _ = chosen(images_of(40), network=path, train_backbone="all")
    assert (values["method"], values["flip"]) == ("pico", 0.5)


def test_what_is_given_wins():
    given = {"network": "small_cnn", "method": "lws", "lam": 0.3, "epochs": 6}
    given |= {"batch_size": 5, "learning_rate": 0.2, "holdout": 0.2}
    values, text = chosen(images_of(40), **given)
    assert given.items() <= values.items()
    # ALIM acts in any run longer than five epochs.
    assert values["warmup_epochs"] == 1
    assert "epochs: 6" not in text and "batch_size" not in text


def test_a_run_keeps_what_was_chosen(tmp_path):
    folder = RunFolder(tmp_path)
    values, _ = chosen(images_of(234))
    run = {"settings": values, "chosen": {"epochs": "why", "warning": "w"}}
    folder.write("run.json", run)
    config, given = Config(), Config().replace(epochs=7)
    assert defaults.kept(config, folder) == config
    folder.write("results.json", {})
    expected = config.replace(epochs=values["epochs"])
    assert defaults.kept(config, folder) == expected
    assert defaults.kept(given, folder) == given


def test_a_run_whose_alim_never_acts_says_so(photos, tmp_path):
    table, place = photos / "labels.csv", tmp_path / "run"
    flags = (f"--images={photos / 'photos'}", "--network=small_cnn")
    out = commands.trained_own(place, table, *flags, "--warmup_epochs=2")
    why = "never acted: --warmup_epochs=2 took all --epochs=2"
    assert f"ALIM {why}." in out
    assert json.loads((place / "results.json").read_text())["alim"] == why
    run = json.loads((place / "run.json").read_text())
    assert "weight_decay" in run["chosen"] and "epochs" not in run["chosen"]
    assert run["settings"]["weight_decay"] == 0.001
    assert "--learning_rate=0.05" in (place / "run.flags").read_text()


def test_the_time_left_is_that_of_whole_epochs(monkeypatch):
    # It begins, has done its only step, which compiles at first, and ends.
    ticks = iter([0, 10, 11, 11, 13, 14])
    monkeypatch.setattr(running.time, "monotonic", lambda: next(ticks))
    progress = running.Progress("line", io.StringIO())
    progress.set_params({"epochs": 4, "steps": 1})
    progress.set_model(tiny.plain())
    progress.on_train_begin()
    for epoch in range(2):
        progress.on_epoch_begin(epoch)
        progress.on_train_batch_end(0)
        progress.on_epoch_end(epoch, {"loss": 1.0})
    lines = progress.file.getvalue().splitlines()[-2:]
    # 11 - 10, three times; 14 - 11, twice.
    assert "about 3 s left" in lines[0] and "about 6 s left" in lines[1]


def test_the_line_of_an_epoch_is_short():
    shown = [running.duration(seconds) for seconds in (0.2, 89, 170, 8000)]
    assert shown == ["1 s", "89 s", "3 min", "2 h 13 min"]
    parts = [f"{label} {form.format(0.98)}" for _, label, form in running.SHOWN]
    line = "  ".join(["epoch 1000/1000", *parts, "about 20 h 13 min left"])
    assert len(line) < 120


def test_colours_and_edges():
    """A picture of one red, with a step in brightness from left to right."""
    pixels = np.zeros((1, 64, 64, 3), "float32")
    pixels[..., 0] = 255.0
    pixels[:, :, 32:, 1:] = 51.0
    found = image_statistics().predict(pixels, verbose=0)[0]
    cells = found[:192].reshape(8, 8, 3) * 2.9
    np.testing.assert_allclose(cells[:, :4], [[[1, 0, 0]] * 4] * 8, atol=1e-6)
    np.testing.assert_allclose(cells[:, 4:, 1], 0.2, atol=1e-6)
    # All pixels have the shades 3, 0, 0 of four: the place 3 x 16 = 48.
    colours = found[192:256] * 0.69
    assert colours[48] == pytest.approx(1.0) and colours.sum() < 1.001
    # The edge runs down between two cells, so its angle is 0 in both.
    edges = found[256:].reshape(8, 8, 9) * 4.9
    assert (edges[:, [3, 4], 0] > 0.9).all()
    assert np.abs(np.delete(edges, [3, 4], axis=1)).max() < 1e-3
    assert np.abs(edges[:, [3, 4], 1:]).max() < 1e-3
