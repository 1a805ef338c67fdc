"""One short training that several tests look at."""

import pytest
from golden import harness

# What the numbers depend on is said, not left to defaults.
SMOKE = (
    "--dataset=digits --train_size=192 --ambiguity=0.3 --noise_level=0.3 "
    "--epochs=6 --warmup_epochs=1 --batch_size=64 --seed=1 --norm=scale "
    "--scale_factor=1 --network=small_cnn --width=8 --queue_size=64 "
    "--embedding_dim=16 --learning_rate=0.05 --holdout=0.1 --progress=line"
).split()


@pytest.fixture(scope="session")
def smoke(tmp_path_factory):
    """Returns the folder of a finished run on TensorFlow, and its stdout."""
    folder = tmp_path_factory.mktemp("smoke") / "run"
    flags = [*SMOKE, "--backend=tensorflow", f"--run_dir={folder}"]
    code, out, err = harness.run("train", *flags)
    assert code == 0, err
    return folder, out
