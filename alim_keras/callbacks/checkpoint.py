"""Checkpoints that survive a kill, a crash and a damaged file."""

import json
import math
import os
import shutil
import warnings

import keras
import numpy as np

from alim_keras.errors import CheckpointError
from alim_keras.errors import EnvironmentLacksError
from alim_keras.files import PARTIAL
from alim_keras.files import digest
from alim_keras.files import move_written
from alim_keras.files import remove_partial
from alim_keras.files import write_atomically

_WEIGHTS = ".weights.h5"


class RunCheckpoint(keras.callbacks.Callback):
    """Saves model and optimizer after each epoch, and restores them.

    A checkpoint counts once `state.json`, which names its file and the file's
    SHA-256, was replaced; files and folder are on the disk before the epoch
    before the last is removed. The two newest checkpoints and the best are
    kept: where the newest file is damaged, training goes on from the one
    before, with a warning. List it last, so that it holds what the others
    changed.

    Args:
        folder: Where to write; made if missing.

    Attributes:
        state: Dict saved beside the weights: `epochs` (finished so far),
            `weights` (file name), `seconds` (of training), `best` (epoch,
            value, logs and file of the selected weights), `digests` (by file
            name) and `previous`, the first four of the epoch before.
    """

    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        self.state = {"epochs": 0, "seconds": 0.0}
        self._best = None

    @property
    def state_file(self):
        return os.path.join(self.folder, "state.json")

    def exists(self):
        """Returns whether there is a checkpoint to go on from.

        Raises:
            CheckpointError: If there are weights and no readable state.
        """
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
        """Reads `state.json` into `state`, without touching a model.

        Raises:
            CheckpointError: If it is unreadable or no checkpoint is sound.
        """
        state = self._read()
        digests = state.get("digests", {})
        damaged = []
        for candidate in (state, state.get("previous")):
            if candidate is None or not candidate.get("weights"):
                continue
            problem = self._problem(candidate["weights"], digests)
            if problem is None:
                self.state = {"digests": digests, **candidate}
                if damaged:
                    warnings.warn(
                        f"{damaged[0]}; training goes on from the checkpoint "
                        f"before it, of epoch {candidate['epochs']}.",
                        stacklevel=2,
                    )
                return
            damaged.append(problem)
        raise CheckpointError(
            f"{'; '.join(damaged) or self.folder + ' holds no checkpoint'}. "
            "Bring the file back from a copy, or use another run folder."
        )

    def restore(self, model, which="last"):
        """Loads a checkpoint into a built, compiled model.

        Args:
            model: The model, as it was when saved.
            which: `"last"` or `"best"`. Defaults to `"last"`.

        Returns:
            The number of finished epochs.

        Raises:
            CheckpointError: If no file is sound, or it does not fit.
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
            first_line = (str(error).strip() or repr(error)).splitlines()[0]
            raise CheckpointError(
                f"Checkpoint {path} does not fit this model: {first_line}"
            ) from error
        return self.state["epochs"]

    def mark_best(self, epoch, value, logs):
        """Makes the checkpoint that this epoch is about to write the best."""
        self._best = {
            "epoch": epoch + 1,
            "value": value,
            "weights": _file_name(epoch),
            "logs": {k: float(v) for k, v in logs.items()},
        }

    def on_train_begin(self, logs=None):
        if os.path.isdir(self.folder):
            remove_partial(self.folder)

    def on_epoch_end(self, epoch, logs=None):
        os.makedirs(self.folder, exist_ok=True)
        self._check_space()
        if not os.path.exists(self.state_file):
            # Weights without a state are then always a lost state.
            self._write(self.state)
        name = _file_name(epoch)
        # Keras wants this ending.
        partial = os.path.join(self.folder, PARTIAL + _WEIGHTS)
        self.model.save_weights(partial, overwrite=True)
        digests = {**self.state.get("digests", {}), name: digest(partial)}
        move_written(partial, os.path.join(self.folder, name))
        previous = {
            key: self.state[key]
            for key in ("epochs", "weights", "seconds", "best")
            if key in self.state
        }
        best = self._best or self.state.get("best")
        self._best = None
        state = {
            "epochs": epoch + 1,
            "weights": name,
            "seconds": previous["seconds"] + (logs or {}).get("seconds", 0.0),
        }
        if best:
            state["best"] = best
        if "weights" in previous:
            state["previous"] = previous
        wanted = _named_files(state)
        state["digests"] = {n: d for n, d in digests.items() if n in wanted}
        self._write(state)
        self.state = state
        for unwanted in set(self._weight_files()) - wanted:
            os.remove(os.path.join(self.folder, unwanted))

    def _read(self):
        try:
            with open(self.state_file, encoding="utf-8") as file:
                state = json.load(file)
            if not isinstance(state["epochs"], int) or (
                state["epochs"] and not isinstance(state["weights"], str)
            ):
                raise ValueError("epochs or weights is no sound value")
            state["seconds"] = float(state.get("seconds", 0.0))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{self.state_file} is not a readable checkpoint state "
                f"({error}). Remove the run folder, or use another."
            ) from error
        return state

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
        if not os.path.isdir(self.folder):
            return []
        return [
            name
            for name in os.listdir(self.folder)
            if name.endswith(_WEIGHTS) and not name.startswith(PARTIAL)
        ]

    def _check_space(self):
        """Raises where the disk is too full: HDF5 may end the process there."""
        needed = sum(
            math.prod(variable.shape) * np.dtype(variable.dtype).itemsize
            for variable in (
                *self.model.variables,
                *self.model.optimizer.variables,
            )
        )
        free = shutil.disk_usage(self.folder).free
        if free < needed:
            raise EnvironmentLacksError(
                f"{self.folder}: a checkpoint takes {needed / 2**20:.0f} MiB, "
                f"and {free / 2**20:.0f} MiB of the disk are free. Free some; "
                "the same command then goes on from the last checkpoint, of "
                f"epoch {self.state['epochs']}."
            )


def _file_name(epoch):
    return f"epoch-{epoch + 1:05d}{_WEIGHTS}"


def _named_files(state):
    """Returns the file names that a state and its previous one need."""
    names = set()
    for part in (state, state.get("previous", {})):
        names.add(part.get("weights"))
        names.add(part.get("best", {}).get("weights"))
    return names - {None}
