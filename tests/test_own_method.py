"""docs/own_method.md: what a method of one's own gets for nothing."""

import json
import runpy

import keras
import numpy as np
import pytest
import tiny
from comparing import assert_same_run

import alim_keras
from alim_keras import callbacks
from alim_keras import cli
from alim_keras import train
from alim_keras.cli import train_flags

FLAGS = (
    "--preset=smoke --train_size=96 --batch_size=32 --progress=none "
    "--epochs=2 --warmup_epochs=1 --mixup_weight=1 --lam=0.4 "
    "--method_options=smoothing=0.1"
).split()


@pytest.fixture(scope="module")
def path(repository):
    return repository / "examples" / "own_method.py"


def build(path, **options):
    method = runpy.run_path(str(path))["CAVL"]
    keras.utils.set_random_seed(1)
    model = method(tiny.backbone(), tiny.CLASSES, 24, **options)
    model.compile(optimizer=keras.optimizers.SGD(0.1), run_eagerly=True)
    return model


def test_it_is_short(path):
    assert len(path.read_text().splitlines()) < 60


def test_labels_and_loss_by_hand(path):
    model = build(path, smoothing=0.3)
    x, y = tiny.batch(6)
    logits = model.encode(model.prepare(x["image"]), training=True)["logits"]
    z = keras.ops.convert_to_numpy(logits)
    value = np.where(y > 0, np.exp(np.abs(z - 1) * z), -1.0)
    expected = np.eye(3)[value.argmax(axis=1)]
    soft = 0.7 * expected + 0.3 / 3
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    logs = model.train_on_batch(x, y, return_dict=True)
    assert logs["loss"] == pytest.approx(
        -(soft * log_p).sum(1).mean(), rel=1e-5
    )
    np.testing.assert_array_equal(model.pseudo_labels.numpy()[:6], expected)


def test_alim_lets_its_labels_leave_the_sets(path):
    images, candidates, labels = tiny.examples(24)
    model = build(path)
    history = tiny.fit(
        model,
        tiny.batches(images, candidates, 6),
        epochs=4,
        callbacks=[
            alim_keras.callbacks.ALIM(
                noise_rate=0.3, warmup_epochs=2, labels=labels
            )
        ],
    )
    assert history["outside"][:2] == [0.0, 0.0]
    assert max(history["outside"][2:]) > 0.0
    assert history["lambda"][-1] > 0.0


def run(path, folder):
    command = [*FLAGS, f"--method={path}:CAVL", f"--run_dir={folder}"]
    return cli.run(train_flags.COMMAND, train.main, command)


def test_the_command_trains_resumes_and_exports_it(path, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    original = callbacks.RunCheckpoint.on_epoch_end

    def cut(self, epoch, logs=None):
        original(self, epoch, logs)
        raise Killed

    assert run(path, tmp_path / "whole") == 0
    with monkeypatch.context() as patch:
        patch.setattr(callbacks.RunCheckpoint, "on_epoch_end", cut)
        with pytest.raises(Killed):
            run(path, tmp_path / "cut")
    assert run(path, tmp_path / "cut") == 0
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    results = json.loads((tmp_path / "cut" / "results.json").read_text())
    assert results["lambda"] == pytest.approx(0.4)
    assert (tmp_path / "cut" / "saved_model" / "saved_model.pb").exists()
    model = keras.saving.load_model(tmp_path / "cut" / "model.keras")
    assert type(model).__name__ == "CAVL" and model.smoothing == 0.1
    rows = model.pseudo_labels.numpy()
    # Two epochs of two batches of 32 leave a few of 86 examples out.
    touched = rows.sum(axis=1) > 0
    assert 64 <= touched.sum() <= 86
    np.testing.assert_allclose(rows[touched].max(axis=1), 1.0)


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        ("{path}:Nothing", "smoothing=1", "no class Nothing"),
        ("{path}x.py:CAVL", "smoothing=1", "cannot be loaded"),
        ("no_such_module:CAVL", "smoothing=1", "no_such_module"),
        ("{path}:CAVL", "smoothness=1", "Did you mean smoothing?"),
        ("{path}:CAVL", "smoothing", "name=value"),
        ("prodem", "mixup_alpha=1", "Did you mean proden?"),
        ("cc", "mixup_alpha=1", "keeps no pseudo labels"),
    ],
)
def test_what_is_wrong_is_named(path, capsys, method, options, words):
    flags = [
        f"--method={method.format(path=path)}",
        f"--method_options={options}",
        "--lam=0.5",
        "--preset=smoke",
    ]
    assert cli.run(train_flags.COMMAND, train.main, flags) == 2
    line = capsys.readouterr().err
    assert words in line and line.count("\n") == 1


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        ("gce", "exponent=2", "exponent=2"),
        ("lwc", "beta=nan", "beta='nan'"),
        ("sce", "alpha=-1", "alpha=-1"),
        ("gce", "num_classes=3", "has no argument num_classes"),
    ],
)
def test_a_bad_option_is_a_bad_flag(capsys, tmp_path, method, options, words):
    flags = [
        "--preset=smoke",
        "--train_size=96",
        "--batch_size=32",
        f"--method={method}",
        f"--method_options={options}",
        f"--run_dir={tmp_path / 'run'}",
    ]
    assert cli.run(train_flags.COMMAND, train.main, flags) == 2
    line = capsys.readouterr().err
    assert words in line and line.count("\n") == 1
