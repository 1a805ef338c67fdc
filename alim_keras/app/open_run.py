"""A finished or interrupted run, opened again from its folder."""

import dataclasses
import os

import keras

from alim_keras.app import build
from alim_keras.app import load
from alim_keras.app.config import Config
from alim_keras.data.training_set import TrainingSet
from alim_keras.errors import CheckpointError
from alim_keras.errors import ConfigError


@dataclasses.dataclass
class OpenRun:
    """A run with its model and data.

    Attributes:
        config: The `Config`.
        training: The `TrainingSet`.
        model: The model, with the weights of the epoch that was asked for.
        epoch: That epoch's number, from 1.
        epochs: How many the run has behind it.
    """

    config: Config
    training: TrainingSet
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


def open_run(folder, command, options, checkpoint="selected"):
    """Opens the run in a folder, which must be locked.

    Args:
        folder: The `RunFolder`.
        command: The train command, a `cli.Command`.
        options: Settings with `data_dir` and `images`, which stand in place
            of the run's where not None, and `trust_code`.
        checkpoint: `"selected"` or `"last"`: which epoch's weights.

    Returns:
        An `OpenRun`.
    """
    check_begun(folder)
    text = folder.read_text("run.flags")
    candidates = folder.candidates()
    for name, content in (("run.flags", text), ("candidates.npz", candidates)):
        if content is None:
            raise CheckpointError(
                f"There is no {name} in {folder.path}. The train command with "
                "this --run_dir writes it again."
            )
    config = command.read(text).config.replace(run_dir=folder.path)
    for name in ("data_dir", "images"):
        if getattr(options, name) is not None:
            config = config.replace(**{name: getattr(options, name)})
    _check_code(config, options.trust_code)
    keras.config.set_dtype_policy(config.machine.precision)
    training = load.training_set(
        config, candidates=candidates, normalisation=folder.normalisation()
    )
    model = build.model(config, training, restored=True)
    build.compile_model(config, model)
    which = "best" if checkpoint == "selected" else "last"
    folder.checkpoint.restore(model, which)
    state = folder.checkpoint.state
    epoch = state["best"]["epoch"] if which == "best" else state["epochs"]
    return OpenRun(config, training, model, epoch, state["epochs"])


def _check_code(config, is_trusted):
    """Raises if run.flags names code, and nobody said that it may run."""
    for name in ("method", "format"):
        value = config.as_dict()[name]
        if value and ":" in value and not is_trusted:
            raise ConfigError(
                f"The run's run.flags names code of its own, --{name}={value}, "
                "which would run with your rights. Read it, then add "
                "--trust_code."
            )
