"""Checkpoints that survive a kill, a crash and a damaged file."""

import glob
import json
import math
import os
import shutil
import warnings

import keras
import numpy as np

from alim_keras.errors import CheckpointError
from alim_keras.errors import EnvironmentLacksError
from alim_keras.errors import one_line
from alim_keras.files import PARTIAL
from alim_keras.files import digest
from alim_keras.files import move_written
from alim_keras.files import remove_partial
from alim_keras.files import write_atomically

_WEIGHTS = ".weights.h5"


class RunCheckpoint(keras.callbacks.Callback):
    """Saves model and optimizer after each epoch, and restores them.

    A checkpoint counts once `state.json`, which names its file and the file's
    SHA-256, was replaced; all is on the disk before an older one is removed.
    The two newest and the best are kept: where the newest is damaged, training
    goes on from the one before, with a warning. List it last, so that it holds
    what the others changed.

    Args:
        folder: Where to write; made if missing.

    Attributes:
        criterion: Name of the log by which the best is chosen, the largest;
            ties go to the earlier epoch, one that logs NaN is passed over.
            The test set selects nothing: give a log of held-out candidate
            sets. Defaults to None, the last epoch.
        state: Dict saved beside the weights: `epochs` (finished so far),
            `weights` (file name), `seconds` (of training), `best` (epoch,
            value, logs and file of the selected weights), `digests` (by file
            name) and `previous`, the first four of the epoch before.
    """

    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        self.state_file = os.path.join(folder, "state.json")
        self.state = {"epochs": 0, "seconds": 0.0, "digests": {}}
        self.criterion = None

    def exists(self):
        """Whether there is a checkpoint; raises if there is no sound state."""
        if os.path.exists(self.state_file):
            return self._read()["epochs"] > 0
        if self._weight_files():
            raise CheckpointError(
                f"{self.folder} holds checkpoints, and state.json, which "
                "names the newest, is missing. Bring it back, or remove the "
                "run folder to start again at the first epoch."
            )
        return False

    def read_state(self):
        """Reads `state.json` into `state`; raises if no checkpoint is sound."""
        state = self._read()
        digests = state["digests"]
        damage = []
        for candidate in (state, state.get("previous")):
            if candidate is None or "weights" not in candidate:
                continue
            problem = self._problem(candidate["weights"], digests)
            if problem is None:
                self.state = {**candidate, "digests": digests}
                if damage:
                    warnings.warn(
                        f"{damage[0]}; training goes on from the checkpoint "
                        f"before it, of epoch {candidate['epochs']}.",
                        stacklevel=2,
                    )
                return
            damage.append(problem)
        raise CheckpointError(
            f"{'; '.join(damage) or self.folder + ' holds no checkpoint'}. "
            "Bring the file back from a copy, or use another run folder."
        )

    def restore(self, model, which="last"):
        """Loads the `"last"` or `"best"` checkpoint into a compiled model.

        Returns the number of finished epochs. Raises `CheckpointError` if no
        file is sound, or it does not fit.
        """
        self.read_state()
        name = self.state["weights"]
        if which == "best":
            name = self.state["best"]["weights"]
            problem = self._problem(name, self.state["digests"])
            if problem is not None:
                raise CheckpointError(
                    f"{problem}; it holds the selected weights. Bring it back "
                    "from a copy, or train again in another run folder."
                )
        path = os.path.join(self.folder, name)
        try:
            model.load_weights(path)
        except (OSError, ValueError, KeyError) as error:
            raise CheckpointError(
                f"Checkpoint {path} does not fit this model: {one_line(error)}"
            ) from error
        return self.state["epochs"]

    def on_train_begin(self, logs=None):
        if os.path.isdir(self.folder):
            remove_partial(self.folder)

    def on_epoch_end(self, epoch, logs=None):
        os.makedirs(self.folder, exist_ok=True)
        self._check_space()
        if not os.path.exists(self.state_file):
            # Weights without a state are then always a lost state.
            self._write(self.state)
        name = f"epoch-{epoch + 1:05d}{_WEIGHTS}"
        # Keras wants this ending.
        partial = os.path.join(self.folder, PARTIAL + _WEIGHTS)
        self.model.save_weights(partial, overwrite=True)
        digests = {**self.state["digests"], name: digest(partial)}
        move_written(partial, os.path.join(self.folder, name))

        logs = {key: float(value) for key, value in (logs or {}).items()}
        previous = {
            key: value
            for key, value in self.state.items()
            if key not in ("digests", "previous")
        }
        state = {**previous, "epochs": epoch + 1, "weights": name}
        state["seconds"] += logs.get("seconds", 0.0)
        value = logs[self.criterion] if self.criterion else float(epoch)
        largest = state["best"]["value"] if "best" in state else -math.inf
        # A comparison with NaN is False.
        if value > largest:
            best = {"epoch": epoch + 1, "value": value, "weights": name}
            state["best"] = {**best, "logs": logs}
        if "weights" in previous:
            state["previous"] = previous
        wanted = {
            part["weights"]
            for each in (state, previous)
            for part in (each, each.get("best", {}))
            if "weights" in part
        }
        state["digests"] = {n: d for n, d in digests.items() if n in wanted}
        self._write(state)
        self.state = state
        for unwanted in set(self._weight_files()) - wanted:
            os.remove(os.path.join(self.folder, unwanted))

    def _read(self):
        try:
            with open(self.state_file, encoding="utf-8") as file:
                state = json.load(file)
            if not isinstance(state["epochs"], int):
                raise ValueError("epochs is no number")
            return {"digests": {}, **state}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{self.state_file} is not a readable checkpoint state "
                f"({error}). Remove the run folder, or use another."
            ) from error

    def _write(self, state):
        write_atomically(self.state_file, json.dumps(state, indent=1))

    def _problem(self, name, digests):
        """Returns what is wrong with a file of weights, or None."""
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            return f"Checkpoint {path} is missing"
        if name in digests and digest(path) != digests[name]:
            return f"Checkpoint {path} is damaged: its content has changed"
        return None

    def _weight_files(self):
        # A file that is being written begins with a dot and does not match.
        return glob.glob("*" + _WEIGHTS, root_dir=self.folder)

    def _check_space(self):
        """Raises where the disk is too full: HDF5 may end the process there."""
        variables = self.model.variables + self.model.optimizer.variables
        needed = sum(
            math.prod(v.shape) * np.dtype(v.dtype).itemsize for v in variables
        )
        free = shutil.disk_usage(self.folder).free
        if free < needed:
            raise EnvironmentLacksError(
                f"{self.folder}: a checkpoint takes {needed / 2**20:.0f} MiB, "
                f"and {free / 2**20:.0f} MiB of the disk are free. Free some; "
                "the same command then goes on from the last checkpoint, of "
                f"epoch {self.state['epochs']}."
            )
