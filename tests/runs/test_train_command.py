"""What the train command does with good and bad wishes."""

import json
import subprocess

import keras
import numpy as np
import pytest
from comparing import checkpoint
from comparing import metrics

import alim_keras
from alim_keras.cli import train_flags
from alim_keras.data import CandidateSets
from alim_keras.data import sources
from alim_keras.errors import NonFiniteError


@pytest.mark.parametrize(
    "flags, code, words",
    [
        (["--epoch=3"], 2, ["epoch", "--epochs"]),
        (["--ambiguity=nan"], 2, ["--ambiguity=nan", "0", "1"]),
        (["--noise_level=1.5"], 2, ["--noise_level=1.5"]),
        (["digits"], 2, ["digits"]),
        (["--preset=cifar11"], 2, ["cifar11", "cifar10"]),
        (["--flagfile=nowhere.flags"], 2, ["nowhere.flags"]),
        (["--nojitter=false"], 2, ["nojitter"]),
        (["--norm=softmax"], 2, ["softmax", "onehot", "scale"]),
        (["--network=ResNet50V3"], 2, ["ResNet50V3", "ResNet50V2"]),
        (["--method=picco"], 2, ["picco", "pico"]),
        (["--weights=nowhere.h5"], 3, ["nowhere.h5"]),
        (["--dataset=nowhere.npz"], 3, ["nowhere.npz"]),
        (["--candidates_file=nowhere.npz"], 3, ["nowhere.npz"]),
        (["--batch_size=2000"], 2, ["--batch_size=2000"]),
        (["--train_size=5000"], 2, ["5000"]),
        (["--protocol=superclass"], 2, ["superclass"]),
        (["--distribute=mirrored", "--replicas=3"], 2, ["3"]),
        (["--select=aa", "--holdout=0"], 2, ["--select=aa", "--holdout"]),
        (["--replicas=2"], 2, ["--distribute=mirrored"]),
        (["--tensorboard"], 6, ["pip install tensorboard"]),
    ],
)
def test_a_bad_wish_ends_with_one_line_and_its_code(
    flags, code, words, run_train, tmp_path, lines, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert run_train(tmp_path / "run", "--preset=none", *flags) == code
    (line,) = lines()
    for word in words:
        assert word in line
    assert "Traceback" not in line
    assert not (tmp_path / "run").exists()


def test_a_file_in_the_place_of_the_run_folder_is_named(
    run_train, tmp_path, lines
):
    path = tmp_path / "run"
    path.write_text("mine")
    assert run_train(path) == 2
    (line,) = lines()
    assert f"--run_dir={path}" in line
    assert path.read_text() == "mine"


def test_a_process_ends_with_the_code(spawn, tmp_path):
    done = subprocess.run(
        [spawn.python, "-m", "alim_keras.train", "--ambiguity=nan"],
        env=spawn.environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_published_setting_needs_no_flags():
    """`--dataset=cifar100 --norm=scale` alone is reference.md's 3.1."""
    settings = train_flags.COMMAND.parse(["--dataset=cifar100", "--norm=scale"])
    published = {
        "ambiguity": 0.05,
        "noise_level": 0.3,
        "protocol": "flip",
        "norm": "scale",
        "warmup_epochs": 80,
        "epochs": 1000,
        "batch_size": 128,
        "learning_rate": 0.01,
        "lr_schedule": "cosine",
        "momentum": 0.9,
        "weight_decay": 0.001,
        "network": "cifar_resnet18",
        "queue_size": 8192,
        "key_momentum": 0.999,
        "prototype_momentum": 0.99,
        "temperature": 0.07,
        "contrastive_weight": 0.5,
        "mixup_weight": 1.0,
        "mixup_alpha": 4.0,
        "pseudo_label_momentum_start": 0.95,
        "pseudo_label_momentum_end": 0.8,
        "update": "step",
        "lam": "adaptive",
        "noise_rate": None,
        "holdout": 0.0,
        "select": "last",
        "crop_scale": 0.2,
        "flip": 0.5,
        "jitter": True,
        "strong_operations": 3,
        "cutout": 0.5,
    }
    values = settings.as_dict()
    assert {name: values[name] for name in published} == published


def test_cosine_runs_from_near_the_rate_to_a_thousandth():
    from alim_keras.runs import build

    settings = train_flags.COMMAND.parse(["--epochs=4", "--learning_rate=0.1"])
    rate = build.learning_rate(settings)
    # lr(e) = 1e-4 + (0.1 - 1e-4) (1 + cos(pi e / 4)) / 2, e = 1..4
    share = [(1 + np.cos(np.pi * e / 4)) / 2 for e in (1, 2, 3, 4)]
    expected = [1e-4 + 0.0999 * s for s in share]
    np.testing.assert_allclose([rate(e) for e in range(4)], expected)
    assert rate(3) == pytest.approx(1e-4)


def test_logged_rates_are_the_schedules(finished_run):
    rates = [float(row["learning_rate"]) for row in metrics(finished_run)]
    share = [(1 + np.cos(np.pi * e / 3)) / 2 for e in (1, 2, 3)]
    expected = [5e-5 + (0.05 - 5e-5) * s for s in share]
    np.testing.assert_allclose(rates, expected, rtol=1e-5)


def test_true_labels_change_nothing_but_reports(run_train, tmp_path):
    """Random true labels, of training and test set, and the same sets."""
    data = sources.load("digits").subset(96, 0)
    stream = np.random.default_rng(0)
    arrays = {
        "train_images": data.images,
        "train_labels": data.labels,
        "train_ids": data.ids,
        "test_images": data.test_images[:50],
        "test_labels": data.test_labels[:50],
        "label_names": np.array(data.class_names),
    }
    np.savez(tmp_path / "true.npz", **arrays)
    arrays["train_labels"] = stream.integers(0, 10, 96)
    arrays["test_labels"] = stream.integers(0, 10, 50)
    np.savez(tmp_path / "random.npz", **arrays)
    sets = tmp_path / "sets.npz"
    alim_keras.data.simulate_candidates(
        data.labels,
        10,
        ambiguity=0.3,
        noise_level=0.3,
        ids=data.ids,
        class_names=data.class_names,
    ).save(sets)
    for name in ("true", "random"):
        code = run_train(
            tmp_path / name,
            "--preset=none",
            "--network=small_cnn",
            "--width=8",
            "--queue_size=64",
            "--epochs=3",
            "--warmup_epochs=1",
            "--select=cr",
            "--noise_rate=0.3",
            f"--dataset={tmp_path / name}.npz",
            f"--candidates_file={sets}",
        )
        assert code == 0
    first, second = (
        checkpoint(tmp_path / "true"),
        checkpoint(tmp_path / "random"),
    )
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)
    results = [
        json.loads((tmp_path / name / "results.json").read_text())
        for name in ("true", "random")
    ]
    same = ("selected_epoch", "lambda", "covering_rate", "outside")
    assert [results[0][k] for k in same] == [results[1][k] for k in same]
    # The reports did read the labels.
    rows = [metrics(tmp_path / name)[-1] for name in ("true", "random")]
    assert rows[0]["test_loss"] != rows[1]["test_loss"]
    told = "pseudo_label_accuracy"
    assert results[0][told] != results[1][told]


def test_views_on_the_host_and_on_the_device_are_the_same_run(
    run_train, tmp_path
):
    flags = ("--epochs=2", "--jitter", "--strong_operations=3")
    assert run_train(tmp_path / "device", *flags) == 0
    assert run_train(tmp_path / "host", *flags, "--views=tf_data") == 0
    first, second = (
        checkpoint(tmp_path / "device"),
        checkpoint(tmp_path / "host"),
    )
    for name, value in first.items():
        np.testing.assert_allclose(
            value, second[name], atol=1e-4, rtol=1e-3, err_msg=name
        )


@pytest.mark.parametrize(
    "flags",
    [
        ("--update=epoch", "--scores=classifier"),
        ("--lam=0.4", "--scale_factor=0.5", "--norm=scale"),
        ("--precision=mixed_float16",),
        ("--precision=mixed_bfloat16", "--steps_per_execution=2"),
        ("--jit_compile",),
        ("--mixup_weight=0", "--lr_schedule=constant", "--holdout=0"),
        ("--legacy_stream", "--protocol=pico"),
        ("--distribute=mirrored", "--replicas=2"),
    ],
)
def test_every_way_to_train_ends_well(flags, run_train, tmp_path):
    assert run_train(tmp_path / "run", *flags) == 0
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    rows = metrics(tmp_path / "run")
    assert len(rows) == 2
    assert 0.0 <= results["test_accuracy"] <= 1.0
    assert ("mix_loss" in rows[0]) == ("--mixup_weight=0" not in flags)
    if "--lam=0.4" in flags:
        # The smoke preset warms up for one epoch; 0.4 is set at its end.
        assert [float(row["lambda"]) for row in rows] == pytest.approx(
            [0.4] * 2
        )
    if "--holdout=0" in flags:
        assert results["covering_rate"] is None


def test_two_replicas_train_as_one_device_does(run_train, tmp_path):
    flags = ("--epochs=3", "--jitter")
    assert run_train(tmp_path / "one", *flags) == 0
    two = (*flags, "--distribute=mirrored", "--replicas=2")
    assert run_train(tmp_path / "two", *two) == 0
    first, second = checkpoint(tmp_path / "one"), checkpoint(tmp_path / "two")
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_allclose(
            value, second[name], atol=1e-5, rtol=1e-4, err_msg=name
        )
    for one, other in zip(metrics(tmp_path / "one"), metrics(tmp_path / "two")):
        for name, value in one.items():
            assert float(value) == pytest.approx(
                float(other[name]), abs=1e-5, rel=1e-5
            ), name


def test_a_rate_that_explodes_ends_with_4_and_names_the_part(
    run_train, tmp_path, lines
):
    code = run_train(
        tmp_path / "run", "--learning_rate=1e25", "--lr_schedule=constant"
    )
    (line,) = lines()
    assert code == 4
    assert "loss became NaN or infinite in step" in line
    assert not (tmp_path / "run" / "checkpoints" / "state.json").exists()


def test_a_broken_image_leaves_the_last_good_checkpoint(tmp_path):
    """A NaN in the second epoch: its step and loss are named."""
    stream = np.random.default_rng(0)
    images = stream.uniform(0, 255, (16, 8, 8, 1)).astype("float32")
    sets = np.eye(4, dtype="float32")[stream.integers(0, 4, 16)]
    model = alim_keras.PiCO(
        alim_keras.networks.small_cnn((8, 8, 1), width=4),
        4,
        16,
        queue_size=8,
        embedding_dim=4,
    )
    model.compile(keras.optimizers.SGD(0.01))
    saved = alim_keras.callbacks.RunCheckpoint(str(tmp_path))
    x = {"image": images, "index": np.arange(16)}

    def fit(initial_epoch):
        model.fit(
            x,
            sets,
            batch_size=4,
            epochs=initial_epoch + 1,
            initial_epoch=initial_epoch,
            verbose=0,
            callbacks=[alim_keras.callbacks.NonFiniteGuard(), saved],
        )

    fit(0)
    good = checkpoint_of(tmp_path)
    images[3, 2, 2, 0] = np.nan
    with pytest.raises(NonFiniteError, match="cls loss.* in step [5-8] "):
        fit(1)
    for name, value in checkpoint_of(tmp_path).items():
        np.testing.assert_array_equal(value, good[name], err_msg=name)
    assert saved.restore(model) == 1
    assert np.isfinite(model.predict(images[:2], verbose=0)).all()


def checkpoint_of(folder):
    """`checkpoint` expects a run folder around the checkpoints."""
    around = folder.parent / f"{folder.name}-run"
    if not around.exists():
        around.mkdir()
        (around / "checkpoints").symlink_to(folder)
    return checkpoint(around)


def test_sets_from_a_file_are_the_sets_from_the_seed(run_train, tmp_path):
    sets = tmp_path / "sets.npz"
    save = f"--save_candidates={sets}"
    assert run_train(tmp_path / "seed", "--epochs=1", save) == 0
    load = f"--candidates_file={sets}"
    # What the noise rate is, the file does not say.
    told = ("--epochs=1", load, "--noise_rate=0.3")
    assert run_train(tmp_path / "file", *told) == 0
    assert CandidateSets.load(sets).provenance["protocol"] == "flip"
    first = metrics(tmp_path / "seed")[0]
    second = metrics(tmp_path / "file")[0]
    assert first == second
