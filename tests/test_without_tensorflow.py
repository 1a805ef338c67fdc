"""On JAX, in a Python in which TensorFlow is not installed."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import own
import pytest

pytest.importorskip("jax", reason="needs JAX, of the extra `test`")

LIBRARY = """
import importlib.util, json, sys
import keras
import numpy as np
import alim_keras, tiny
from alim_keras.errors import EnvironmentLacksError

assert importlib.util.find_spec("tensorflow") is None
images, candidates, labels = tiny.examples(24)
model = tiny.pico(compile_options={"jit_compile": True})
callbacks = alim_keras.callbacks
alim = callbacks.ALIM(noise_rate=0.1, warmup_epochs=1, labels=labels)
history = tiny.fit(
    model,
    tiny.batches(images, candidates, 8),
    epochs=3,
    callbacks=[alim, callbacks.NonFiniteGuard()],
    validation_data=alim_keras.data.eval_dataset(images, labels, 3),
)
loss, _ = model.evaluate(images, candidates, verbose=0)
p = model.predict(images, verbose=0)
model.save("model.keras")
again = keras.saving.load_model("model.keras")
np.testing.assert_array_equal(again.predict(images, verbose=0), p)
try:
    model.export("saved_model")
except EnvironmentLacksError as error:
    refusal = str(error)
# -log of what the candidates get, as everywhere.
np.testing.assert_allclose(
    loss, -np.log((p * candidates).sum(axis=1)).mean(), rtol=1e-5
)
rows = model.pseudo_labels.numpy()
np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-5)
found = {"backend": keras.config.backend(), "history": history}
found["loaded"] = [m for m in sys.modules if m.startswith("tensorflow")]
json.dump({**found, "refusal": refusal}, open("found.json", "w"))
"""


@pytest.fixture
def run(repository, tmp_path):
    """Runs Python in an empty folder, without TensorFlow."""
    tests = repository / "tests"
    places = (tests / "without_tensorflow", tests, repository)

    def run(*arguments, **variables):
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", **variables}
        environment["PYTHONPATH"] = os.pathsep.join(map(str, places))
        return subprocess.run(
            [sys.executable, *arguments],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )

    return run


def test_arrays_are_trained_on(run, tmp_path):
    done = run("-c", LIBRARY, KERAS_BACKEND="jax")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["backend"] == "jax" and found["loaded"] == []
    history = found["history"]
    for name in ("cls_loss", "cont_loss", "mix_loss", "val_loss"):
        assert len(history[name]) == 3 and np.isfinite(history[name]).all()
        assert len(set(history[name])) == 3, name
    assert 0.0 < history["lambda"][-1] < 1.0
    assert not (tmp_path / "saved_model").exists()
    command = "python -m alim_keras.export RUN_FOLDER"
    for words in ("on TensorFlow", "model.keras", command):
        assert words in found["refusal"]


def test_the_command_trains_and_says_what_it_leaves_out(run, tmp_path):
    flags = (
        "--backend=jax --preset=smoke --train_size=96 --holdout=0.1 "
        "--progress=none --epochs=2 --run_dir=run"
    )
    done = run("-m", "alim_keras.train", *flags.split())
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    folder = tmp_path / "run"
    results = json.loads((folder / "results.json").read_text())
    assert results["epochs"] == 2
    rows = own.read_rows(folder / "metrics.csv")
    assert [int(row["epoch"]) for row in rows] == [1, 2]
    assert float(rows[-1]["test_accuracy"]) == results["test_accuracy"]
    assert np.isfinite([float(row["loss"]) for row in rows]).all()
    # A head, and a row for each of 96 images.
    assert len((folder / "labels.csv").read_text().splitlines()) == 97
    for name in ("model.keras", "run.json", "run.flags", "candidates.npz"):
        assert (folder / name).exists()
    assert not list(folder.glob("*saved_model*"))
    (line,) = re.findall("saved_model is left out.*", done.stdout)
    assert "tensorflow is not installed" in line
