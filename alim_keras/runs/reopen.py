"""A finished or interrupted run, opened again from its folder."""

import contextlib
import dataclasses
import os
import tempfile

import keras

from alim_keras.data.candidate_sets import CandidateSets
from alim_keras.errors import CheckpointError
from alim_keras.errors import ConfigError
from alim_keras.runs import build
from alim_keras.runs import loading


@dataclasses.dataclass
class OpenRun:
    """A run with its model and data.

    Attributes:
        settings: The train command's settings.
        training: The `TrainingData`.
        model: The model, with the weights of the epoch that was asked for.
        epoch: That epoch's number, from 1.
        epochs: How many the run has behind it.
    """

    settings: object
    training: loading.TrainingData
    model: keras.Model
    epoch: int
    epochs: int


def check_begun(folder):
    """Raises unless the folder holds at least one finished epoch."""
    if os.path.isfile(folder.path):
        raise ConfigError(
            "RUN must be the folder of a run, and this is a file in "
            f"{os.path.dirname(folder.path)}. Received: {folder.path}"
        )
    if not folder.checkpoint.exists():
        raise CheckpointError(
            f"There is no checkpoint in {folder.path}. Give the folder of a "
            "run that finished at least one epoch."
        )


def reopen(folder, command, checkpoint="selected", **moved):
    """Opens the run in a folder, which must be locked.

    Args:
        folder: The `RunFolder`.
        command: The train command's `cli.Command`.
        checkpoint: `"selected"` or `"last"`: which epoch's weights.
        **moved: Paths that stand in place of the run's, where not None:
            `data_dir`, `images`.

    Returns:
        An `OpenRun`.
    """
    check_begun(folder)
    overrides = [f"--{k}={v}" for k, v in moved.items() if v is not None]
    flags = [
        f"--flagfile={folder.file('run.flags')}",
        f"--run_dir={folder.path}",
        *overrides,
    ]
    settings = command.parse(flags)
    if folder.read_only and settings.image_cache == "disk":
        # Its file lies there, and is written to as images are read.
        flags.append("--image_cache=none")
        settings = command.parse(flags)
    keras.config.set_dtype_policy(settings.precision)
    candidates = CandidateSets.load(folder.file("candidates.npz"))
    folder.check_candidates(candidates.content_hash)
    with _recorded_names(settings, candidates) as names:
        training = loading.training_data(
            command.parse([*flags, *names]),
            candidates,
            normalisation=folder.normalisation(),
        )
    model = build.model(settings, training, restored=True)
    build.compile_model(settings, model)
    which = "best" if checkpoint == "selected" else "last"
    folder.checkpoint.restore(model, which)
    state = folder.checkpoint.state
    epoch = state["best"]["epoch"] if which == "best" else state["epochs"]
    return OpenRun(settings, training, model, epoch, state["epochs"])


@contextlib.contextmanager
def _recorded_names(settings, candidates):
    """Yields flags that read the table with the names that the run had.

    The file of `--class_names` may be gone, or about other classes now; what
    the run learnt is about those in its candidate sets.
    """
    if not settings.class_names:
        yield []
        return
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", suffix=".txt"
    ) as file:
        file.writelines(f"{name}\n" for name in candidates.class_names)
        file.flush()
        yield [f"--class_names={file.name}"]
