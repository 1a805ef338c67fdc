"""Checkpoints that survive a kill, a crash and a damaged file."""

import glob
import json
import math
import os
import shutil
import warnings

import keras
import numpy as np

from alim_keras import errors
from alim_keras import files
from alim_keras.files import write_atomically

_WEIGHTS = ".weights.h5"


def state_bytes(model):
    """Returns the bytes that a model and its optimizer take."""
    variables = (*model.variables, *model.optimizer.variables)
    return sum(
        math.prod(v.shape) * np.dtype(v.dtype).itemsize for v in variables
    )


def _parts(state):
    """Returns the parts of a state that name a file of weights."""
    previous = state.get("previous") or {}
    parts = (state, state.get("best"), previous, previous.get("best"))
    return [part for part in parts if part and "weights" in part]


class RunCheckpoint(keras.callbacks.Callback):
    """Saves model and optimizer after each epoch, and restores them.

    A checkpoint counts once `state.json`, which names its file and the file's
    SHA-256, was replaced; all is on the disk before an older one is removed.
    The two newest and the best are kept: where the newest is damaged, training
    goes on from the one before, with a warning. List it last, so that it holds
    what the others changed. `folder` is made if missing.

    Attributes:
        criterion: Name of the log whose largest value is the best, the earliest
            in a tie; one of held-out sets, for the test set selects nothing.
            Defaults to None, the last epoch.
        state: Dict of the file: `epochs` (finished so far), `weights` (file
            name) and its `digest`, `seconds` (of training), `best` (epoch,
            value, logs, weights and digest of the selected epoch), and
            `previous`, all this of the epoch before.
    """

    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        self.state_file = os.path.join(folder, "state.json")
        self.state = {"epochs": 0, "seconds": 0.0}
        self.criterion = None

    def exists(self):
        """Whether there is a checkpoint; raises if there is no sound state."""
        if os.path.exists(self.state_file):
            return self._read()["epochs"] > 0
        if self._weight_files():
            raise errors.CheckpointError(
                f"{self.folder} holds checkpoints, and state.json, which "
                "names the newest, is missing. Bring it back, or remove the "
                "run folder to start again at the first epoch."
            )
        return False

    def read_state(self):
        """Reads `state.json` into `state`; raises if no checkpoint is sound."""
        self.state = self._read()
        damage = self._problem(self.state)
        if damage is None:
            return
        self.state = self.state.get("previous") or {}
        problem = self._problem(self.state)
        if problem is not None:
            found = "; ".join(dict.fromkeys([damage, problem]))
            raise errors.CheckpointError(
                f"{found}. Bring the file back from a copy, or use "
                "another run folder."
            )
        warnings.warn(
            f"{damage}; training goes on from the checkpoint before it, of "
            f"epoch {self.state['epochs']}.",
            stacklevel=2,
        )

    def restore(self, model, which="last"):
        """Loads the `"last"` or `"best"` checkpoint into a compiled model.

        Returns the number of finished epochs. Raises `CheckpointError` if no
        file is sound, or it does not fit.
        """
        self.read_state()
        chosen = self.state["best"] if which == "best" else self.state
        problem = self._problem(chosen)
        if problem is not None:
            raise errors.CheckpointError(
                f"{problem}; it holds the selected weights. Bring it back from "
                "a copy, or train again in another run folder."
            )
        path = os.path.join(self.folder, chosen["weights"])
        try:
            model.load_weights(path)
        except (OSError, ValueError, KeyError) as error:
            raise errors.CheckpointError(
                f"{path} does not fit this model: {errors.one_line(error)}"
            ) from error
        return self.state["epochs"]

    def on_train_begin(self, logs=None):
        if os.path.isdir(self.folder):
            files.remove_partial(self.folder)

    def on_epoch_end(self, epoch, logs=None):
        os.makedirs(self.folder, exist_ok=True)
        needed = state_bytes(self.model)
        # HDF5 may end the process where the disk is full.
        if shutil.disk_usage(self.folder).free < needed:
            raise errors.EnvironmentLacksError(
                f"{self.folder}: less than the {needed / 2**20:.0f} MiB of a "
                "checkpoint are free. Free some; the same command then goes "
                f"on from the last checkpoint, of epoch {self.state['epochs']}."
            )
        if not os.path.exists(self.state_file):
            # Weights without a state are then always a lost state.
            write_atomically(self.state_file, json.dumps(self.state))
        name = f"epoch-{epoch + 1:05d}{_WEIGHTS}"
        # Keras wants this ending.
        partial = os.path.join(self.folder, files.PARTIAL + _WEIGHTS)
        self.model.save_weights(partial, overwrite=True)
        file = {"weights": name, "digest": files.digest(partial)}
        files.move_written(partial, os.path.join(self.folder, name))

        logs = {key: float(value) for key, value in (logs or {}).items()}
        previous = {k: v for k, v in self.state.items() if k != "previous"}
        state = {**previous, **file, "epochs": epoch + 1, "previous": previous}
        state["seconds"] += logs.get("seconds", 0.0)
        value = logs[self.criterion] if self.criterion else float(epoch)
        largest = state["best"]["value"] if "best" in state else -math.inf
        # A comparison with NaN is False.
        if value > largest:
            best = {"epoch": epoch + 1, "value": value, "logs": logs}
            state["best"] = {**best, **file}
        write_atomically(self.state_file, json.dumps(state, indent=1))
        self.state = state
        wanted = {part["weights"] for part in _parts(state)}
        for unwanted in set(self._weight_files()) - wanted:
            os.remove(os.path.join(self.folder, unwanted))

    def _read(self):
        try:
            with open(self.state_file, encoding="utf-8") as file:
                state = json.load(file)
            if not isinstance(state["epochs"], int):
                raise ValueError("epochs is no number")
            # An earlier version kept the digests by file.
            digests = state.pop("digests", {})
            for part in _parts(state) if digests else ():
                part["digest"] = digests.get(part["weights"])
            return state
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise errors.CheckpointError(
                f"{self.state_file} is not a readable checkpoint state "
                f"({error}). Remove the run folder, or use another."
            ) from error

    def _problem(self, state):
        """Returns what is wrong with a state's file of weights, or None."""
        if "weights" not in state:
            return f"{self.folder} holds no other checkpoint"
        path = os.path.join(self.folder, state["weights"])
        if not os.path.exists(path):
            return f"Checkpoint {path} is missing"
        expected = state.get("digest")
        if expected and files.digest(path) != expected:
            return f"Checkpoint {path} is damaged: its content has changed"
        return None

    def _weight_files(self):
        # A file that is being written begins with a dot and does not match.
        return glob.glob("*" + _WEIGHTS, root_dir=self.folder)
