"""Checkpoints that survive a kill at any moment."""

import json
import math
import os
import shutil

import keras
import numpy as np

from alim_keras.errors import CheckpointError
from alim_keras.errors import EnvironmentLacksError
from alim_keras.files import write_atomically


class RunCheckpoint(keras.callbacks.Callback):
    """Saves model and optimizer after each epoch, and restores them.

    A checkpoint counts once `state.json`, which names its file, was replaced
    in one stroke; what an interrupted write leaves behind is swept up by the
    next. List it last, so that it holds what the others changed.

    Args:
        folder: Where to write; made if missing.

    Attributes:
        state: Dict saved beside the weights: `epochs` (finished so far),
            `weights` (file name), `seconds` (of training), `best` (epoch,
            value, logs and file of the selected weights).
    """

    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        self.state = {"epochs": 0, "seconds": 0.0}

    @property
    def state_file(self):
        return os.path.join(self.folder, "state.json")

    def exists(self):
        """Returns whether there is a checkpoint to go on from."""
        return os.path.exists(self.state_file)

    def read_state(self):
        """Reads `state.json` into `state`, without touching a model."""
        try:
            with open(self.state_file, encoding="utf-8") as file:
                self.state = json.load(file)
            self.state["epochs"], self.state["weights"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{self.state_file} is not a readable checkpoint state "
                f"({error}). Remove the run folder, or use another."
            ) from error

    def restore(self, model, which="last"):
        """Loads a checkpoint into a built, compiled model.

        Args:
            model: The model, as it was when saved.
            which: `"last"` or `"best"`. Defaults to `"last"`.

        Returns:
            The number of finished epochs.
        """
        self.read_state()
        entry = self.state if which == "last" else self.state["best"]
        path = os.path.join(self.folder, entry["weights"])
        try:
            model.load_weights(path)
        except (OSError, ValueError, KeyError) as error:
            first_line = str(error).strip().splitlines()[0]
            raise CheckpointError(
                f"Checkpoint {path} does not fit this model: {first_line}"
            ) from error
        return self.state["epochs"]

    def mark_best(self, epoch, value, logs):
        """Makes the checkpoint that this epoch is about to write the best."""
        self.state["best"] = {
            "epoch": epoch + 1,
            "value": value,
            "weights": _file_name(epoch),
            "logs": {k: float(v) for k, v in logs.items()},
        }

    def on_epoch_end(self, epoch, logs=None):
        os.makedirs(self.folder, exist_ok=True)
        self._check_space()
        partial = os.path.join(self.folder, "partial.weights.h5")
        self.model.save_weights(partial, overwrite=True)
        os.replace(partial, os.path.join(self.folder, _file_name(epoch)))
        self.state.update(epochs=epoch + 1, weights=_file_name(epoch))
        self.state["seconds"] += (logs or {}).get("seconds", 0.0)
        write_atomically(self.state_file, json.dumps(self.state, indent=1))
        self._sweep()

    def _check_space(self):
        """Raises where the disk is too full: HDF5 may end the process there."""
        needed = sum(
            math.prod(one.shape) * np.dtype(one.dtype).itemsize
            for one in (*self.model.variables, *self.model.optimizer.variables)
        )
        free = shutil.disk_usage(self.folder).free
        if free < needed:
            raise EnvironmentLacksError(
                f"{self.folder}: a checkpoint takes {needed / 2**20:.0f} MiB, "
                f"and {free / 2**20:.0f} MiB of the disk are free. Free some; "
                "the same command then goes on from the last checkpoint, of "
                f"epoch {self.state['epochs']}."
            )

    def _sweep(self):
        """Removes weights that the state no longer names."""
        wanted = {self.state["weights"]}
        if "best" in self.state:
            wanted.add(self.state["best"]["weights"])
        for name in os.listdir(self.folder):
            if name.endswith(".weights.h5") and name not in wanted:
                os.remove(os.path.join(self.folder, name))


def _file_name(epoch):
    return f"epoch-{epoch + 1:05d}.weights.h5"
