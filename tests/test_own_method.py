"""docs/own_method.md: what a method of one's own gets for nothing."""

import json
import runpy

import commands
import keras
import numpy as np
import pytest
import tiny

import alim_keras

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
    return tiny.build(method, momentum=0.0, **options)


def test_labels_and_loss_by_hand(path):
    assert len(path.read_text().splitlines()) < 60
    model = build(path, smoothing=0.3)
    assert model.get_config()["smoothing"] == 0.3
    x, y = tiny.batch(6)
    logits = model.encode(model.prepare(x["image"]), training=True)["logits"]
    z = keras.ops.convert_to_numpy(logits)
    value = np.where(y > 0, np.exp(np.abs(z - 1) * z), -1.0)
    expected = np.eye(3)[value.argmax(axis=1)]
    soft = 0.7 * expected + 0.3 / 3
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    logs = model.train_on_batch(x, y, return_dict=True)
    loss = -(soft * log_p).sum(axis=1).mean()
    assert logs["loss"] == pytest.approx(loss, rel=1e-5)
    np.testing.assert_array_equal(model.pseudo_labels.numpy()[:6], expected)


def test_alim_lets_its_labels_leave_the_sets(path):
    images, candidates, _ = tiny.examples(24)
    model = build(path)
    alim = alim_keras.callbacks.ALIM(noise_rate=0.3, warmup_epochs=2)
    data = tiny.batches(images, candidates, 6)
    history = tiny.fit(model, data, epochs=4, callbacks=[alim])
    assert history["outside"][:2] == [0.0, 0.0]
    assert max(history["outside"][2:]) > 0.0
    assert history["lambda"][-1] > 0.0


def test_the_command_trains_and_exports_it(path, tmp_path):
    folder = tmp_path / "run"
    flags = [*FLAGS, f"--method={path}:CAVL", f"--run_dir={folder}"]
    assert commands.run("train", *flags) == 0
    results = json.loads((folder / "results.json").read_text())
    assert results["lambda"] == pytest.approx(0.4)
    if keras.config.backend() == "tensorflow":
        assert (folder / "saved_model" / "saved_model.pb").exists()
    model = keras.saving.load_model(folder / "model.keras")
    assert type(model).__name__ == "CAVL" and model.smoothing == 0.1
    rows = model.pseudo_labels.numpy()
    touched = rows.sum(axis=1) > 0
    assert touched.sum() >= 64
    np.testing.assert_allclose(rows[touched].max(axis=1), 1.0)


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        ("{path}:Nothing", "smoothing=1", "no class Nothing"),
        ("no_such_file.py:CAVL", "smoothing=1", "no_such_file.py"),
        ("{path}:CAVL", "smoothness=1", "Did you mean smoothing?"),
        ("{path}:CAVL", "smoothing", "name=value"),
        ("prodem", "mixup_alpha=1", "Did you mean proden"),
        ("lwc", "beta=-2", "beta"),
        ("lwc", "num_classes=3", "has no argument num_classes"),
    ],
)
def test_a_wrong_method_is_a_wrong_flag(path, tmp_path, method, options, words):
    lam = "0" if method == "lwc" else "0.5"
    flags = [
        *FLAGS[:3],
        f"--method={method.format(path=path)}",
        f"--method_options={options}",
        f"--lam={lam}",
        f"--run_dir={tmp_path / 'run'}",
    ]
    code, _, err = commands.call("train", *flags)
    assert code == 2 and words in err and err.count("\n") == 1
