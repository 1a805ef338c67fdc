"""The run folder: who may write to it, and whether a run may go on in it."""

import contextlib
import errno
import fcntl
import hashlib
import json
import os

from alim_keras.callbacks import RunCheckpoint
from alim_keras.data.candidate_sets import CandidateSets
from alim_keras.errors import CheckpointError
from alim_keras.errors import ConfigError
from alim_keras.files import write_atomically
from alim_keras.runs import identity

# Settings that may differ between a run and its continuation: they choose
# where and how it runs, not what it computes.
FREE = frozenset(
    "run_dir data_dir download progress verbose print_config flagfile preset "
    "tensorboard save_candidates candidates_file images "
    "image_cache verify".split()
)
# How a place that may not be written to refuses.
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


def fingerprint(settings):
    """Returns six hexadecimal digits that stand for what a run computes.

    Args:
        settings: Dict of every flag's value.
    """
    fixed = {k: v for k, v in settings.items() if k not in FREE}
    text = json.dumps(fixed, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:6]


class BusyError(CheckpointError):
    """Another process works in the run folder."""


class RunFolder:
    """Paths of a run, and its identity.

    Args:
        path: The folder.

    Attributes:
        read_only: Whether `lock` found that nothing can be written here.
    """

    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.read_only = False
        self.checkpoint = RunCheckpoint(self.file("checkpoints"))

    def file(self, *names):
        return os.path.join(self.path, *names)

    @contextlib.contextmanager
    def lock(self, to_read=False):
        """Keeps a second process off the folder; freed even by `kill -9`.

        Args:
            to_read: Whether the caller can do without writing here. Then a
                folder that cannot be written to needs no lock: files in it
                are only ever replaced whole.

        Raises:
            BusyError: Another process works here.
            ConfigError: This is a file, or cannot be written to.
        """
        if os.path.exists(self.path) and not os.path.isdir(self.path):
            raise ConfigError(
                "--run_dir must be a folder, new or of an earlier run, and "
                f"this is a file. Received: --run_dir={self.path}"
            )
        made = not os.path.isdir(self.path)
        try:
            os.makedirs(self.path, exist_ok=True)
            file = open(self.file(".lock"), "w")
        except OSError as error:
            if error.errno not in _FORBIDDEN:
                raise
            if not to_read:
                raise ConfigError(
                    f"{self.path} cannot be written to: {error.strerror}. "
                    "Give another folder, or a copy of this one that you may "
                    "write to."
                ) from error
            self.read_only = True
        if self.read_only:
            yield self
            return
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise BusyError(
                    f"Another process is training in {self.path}. Wait for "
                    "it, or give this run its own --run_dir."
                ) from error
            try:
                yield self
            finally:
                # A run that was refused before it began leaves no folder.
                if made and os.listdir(self.path) == [".lock"]:
                    os.remove(self.file(".lock"))
                    os.rmdir(self.path)

    def read(self, name):
        """Returns the content of a JSON file here, None if it is missing."""
        path = self.file(name)
        if not os.path.exists(path):
            return None
        try:
            with open(path, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"{path} cannot be read ({error}). Remove the run folder, or "
                "use another."
            ) from error

    def write(self, name, content):
        """Writes a JSON file here, in one stroke."""
        text = json.dumps(content, indent=2, allow_nan=False)
        write_atomically(self.file(name), text + "\n")

    def _begun(self):
        """Returns whether there is work here that could be spoilt."""
        return self.checkpoint.exists() or self.finished() is not None

    def finished_epochs(self):
        """Returns how many epochs the last checkpoint has behind it."""
        if not self.checkpoint.exists():
            return 0
        self.checkpoint.read_state()
        return self.checkpoint.state["epochs"]

    def trained_ids(self):
        """Returns the items of a run that goes on, in its order, or None."""
        path = self.file("candidates.npz")
        if not self.checkpoint.exists() or not os.path.exists(path):
            return None
        return CandidateSets.load(path).ids

    def normalisation(self):
        """Returns mean and deviation of a run that goes on, or None.

        They belong to the network; those of the data may have changed since
        with the order or the number of the images.
        """
        found = (self.read("run.json") or {}).get("identity")
        if found is None or not self._begun():
            return None
        return tuple(found["mean"]), tuple(found["std"])

    def finished(self):
        """Returns the results of a finished run, or None."""
        return self.read("results.json")

    def check_same(self, settings):
        """Raises if the run that is here was started with other settings.

        Args:
            settings: Dict of every flag's value.
        """
        run = self.read("run.json")
        if run is None or not self._begun():
            return
        before = run.get("settings", {})
        for name, value in settings.items():
            if name not in FREE and before.get(name) != value:
                raise CheckpointError(
                    f"The run in {self.path} was started with --{name}="
                    f"{before.get(name)}. Continue it with the same settings, "
                    "or choose another --run_dir. Received: "
                    f"--{name}={value}"
                )
        if self.finished() is not None:
            self._check_files(run, settings)

    def _check_files(self, run, settings):
        """Raises if a file of labels is not what a finished run was given.

        A run that goes on is asked about its data instead, since a table may
        have been sorted meanwhile; here nothing would be read.
        """
        before, given = run.get("files"), run.get("settings", {})
        now = identity.of_files(settings)
        for name in sorted({*now, *(before or {}), "candidates_file"}):
            path = settings.get(name)
            changed = (path is None) != (given.get(name) is None)
            if before is not None and not changed:
                # A file that is no longer there tells nothing of a change.
                lost = name not in now and path == given.get(name)
                changed = not lost and now.get(name) != before.get(name)
            if changed:
                what = "has changed since"
                if path is None:
                    path, what = given.get(name), "was read then"
                elif given.get(name) is None:
                    what = "was not read then"
                raise CheckpointError(
                    f"The run in {self.path} is finished, and {path} {what}. "
                    "To train on what is given now, choose another "
                    f"--run_dir. Received: --{name}={settings.get(name)}"
                )

    def check_data(self, now):
        """Raises if the run that is here was started with other data.

        Args:
            now: What `identity.of_data` says.
        """
        before = (self.read("run.json") or {}).get("identity")
        if before is None or not self._begun():
            return
        for name, what in (
            ("items", "other items"),
            ("tests", "another test set"),
            ("known", "other true labels"),
        ):
            if before[name] != now[name]:
                counts = ""
                if name == "items" and before["listed"] != now["listed"]:
                    counts = f", {before['listed']:,} and not {now['listed']:,}"
                raise CheckpointError(
                    f"The run in {self.path} was started with {what} than "
                    f"now{counts}. Restore the files, or choose "
                    "another --run_dir."
                )

    def check_candidates(self, content_hash):
        """Raises if the run that is here was started with other sets."""
        run = self.read("run.json")
        if run is None or not self._begun():
            return
        if run["candidates_hash"] != content_hash:
            raise CheckpointError(
                f"The run in {self.path} was started with the candidate sets "
                f"{run['candidates_hash'][:12]}..., not {content_hash[:12]}... "
                "Restore them, or choose another --run_dir."
            )
