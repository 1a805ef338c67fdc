"""The run folder: its lock, run.json, and whether a run may go on in it."""

import contextlib
import fcntl
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import shlex
import sys

import numpy as np

import alim_keras
from alim_keras import backend
from alim_keras import errors
from alim_keras import files
from alim_keras.app import cli
from alim_keras.app import defaults
from alim_keras.app.config import Config
from alim_keras.callbacks import RunCheckpoint
from alim_keras.data import CandidateSets
from alim_keras.data.matching import list_images

# Settings that may differ between a run and its continuation.
FREE = frozenset(
    "run_dir data_dir download progress candidates_file images".split()
)
# Settings that name files of labels.
_LABELS = (
    "dataset candidates_file known_labels test_labels class_names"
).split()
_PACKAGES = (
    "keras tensorflow tensorflow-datasets numpy scikit-learn absl-py"
).split()
# So many image files are decoded for their digest.
_SAMPLE = 100
# What a run must have started with, by the name of its digest.
_IDENTITY = {
    "items": "items",
    "tests": "test items or labels",
    "known": "true labels",
    "images": "pixels under the same names",
    "sets": "candidate sets",
}


class RunFolder:
    """Paths of a run, and its identity.

    Somebody else may have written the folder: only regular files are read.
    """

    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.checkpoint = RunCheckpoint(self.file("checkpoints"))

    def file(self, *names):
        """Returns a path in the folder."""
        return os.path.join(self.path, *names)

    def existing(self, name):
        """Returns the path of a regular file here, or None if it is missing."""
        path = self.file(name)
        if not os.path.lexists(path):
            return None
        if os.path.islink(path) or not os.path.isfile(path):
            why = "must be a regular file, and no link, folder or device."
            raise errors.CheckpointError(f"{path} {why}")
        return path

    @contextlib.contextmanager
    def lock(self, is_wanted=True):
        """Keeps a second process off the folder; freed even by `kill -9`."""
        if not is_wanted:
            yield
            return
        is_new = not os.path.exists(self.path)
        os.makedirs(self.path, exist_ok=True)
        self.existing(".lock")
        # Neither through a link that appeared meanwhile, nor waiting for the
        # other end of a pipe, nor emptying what is there.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        handle = os.open(self.file(".lock"), flags, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            files.remove_partial(self.path)
            yield
        except BlockingIOError as error:
            raise errors.CheckpointError(
                f"Another process works in {self.path}. Wait for it, or give "
                "this run its own --run_dir."
            ) from error
        finally:
            os.close(handle)
            # A run that was refused before it began leaves no folder.
            if is_new and os.listdir(self.path) == [".lock"]:
                os.remove(self.file(".lock"))
                os.rmdir(self.path)

    def _load(self, name, reader):
        path = self.existing(name)
        try:
            return None if path is None else reader(path)
        except (OSError, ValueError, TypeError) as error:
            raise errors.CheckpointError(
                f"{path} cannot be read: {errors.one_line(error)}. If it is "
                "damaged, remove it: the train command with this --run_dir "
                "writes it again."
            ) from error

    def read_text(self, name):
        """Returns the text of a file here, or None if it is missing."""
        return self._load(name, _text)

    def read(self, name):
        """Returns the dict in a JSON file here, or None if it is missing."""
        return self._load(name, lambda path: dict(json.loads(_text(path))))

    def candidates(self):
        """Returns the `CandidateSets` of the run, or None if missing."""
        return self._load("candidates.npz", CandidateSets.load)

    def write(self, name, content):
        """Writes a JSON file here, whole or not at all."""
        text = json.dumps(content, indent=2, allow_nan=False)
        files.write_atomically(self.file(name), text + "\n")

    def begun(self):
        """Returns run.json if there is work here that could be spoilt."""
        run = self.read("run.json")
        is_begun = self.checkpoint.exists() or self.finished() is not None
        return run if is_begun else None

    def finished(self):
        """Returns the results of a finished run, or None."""
        return self.read("results.json")

    def normalisation(self):
        """Returns the network's mean and deviation in a run that goes on.

        None without one. Those of the data may have changed since.
        """
        identity = (self.begun() or {}).get("identity")
        return identity and (tuple(identity["mean"]), tuple(identity["std"]))

    def check_same(self, config):
        """Raises if the run that is here was started with other settings.

        Also if the file of its network is another; of a finished run, whose
        data are not read again, if a file of labels is.
        """
        run = self.begun()
        if run is None:
            return
        settings = defaults.kept(config, self).as_dict()
        # A setting that an older version did not have stood at its default.
        before = {**Config().as_dict(), **run["settings"]}
        for name, value in settings.items():
            if name not in FREE and before[name] != value:
                was = cli.flag_text(name, before[name])
                now = cli.flag_text(name, value)
                self._refuse(f"was started with {was}", f" Received: {now}")
        names = ["network"] + (_LABELS if self.finished() else [])
        for name, digest in _digests_of_files(settings, names).items():
            # An older version did not note the network's.
            unnoted = digest if name == "network" else None
            if run["files"].get(name, unnoted) != digest:
                self._refuse(
                    f"has begun, and {settings[name]} has changed since"
                )

    def check_data(self, config, training):
        """Raises if the run here has other data, or a worker other settings."""
        sets, run = training.sets.content_hash, self.begun()
        if run is not None:
            before = {**run["identity"], "sets": run["candidates_hash"]}
            now = {**_identity(training), "sets": sets}
            for name, content in _IDENTITY.items():
                if before[name] != now[name]:
                    self._refuse(f"was started with other {content}")
        mine = [int(fingerprint(config.as_dict()), 16), int(sets[:7], 16), 0]
        if self.checkpoint.exists():
            self.checkpoint.read_state()
            mine[-1] = self.checkpoint.state["epochs"]
        everyones = backend.gather_processes(mine)
        others = np.flatnonzero((everyones != everyones[0]).any(axis=1))
        if len(others):
            raise errors.ConfigError(
                f"Worker {others[0]} has other settings, data or finished "
                "epochs than worker 0. Give all workers the same flags, data "
                "and version, and one --run_dir on a file system they share."
            )

    def _refuse(self, how, received=""):
        raise errors.CheckpointError(
            f"The run in {self.path} {how}. Continue it with the same settings "
            f"and files, or choose another --run_dir.{received}"
        )

    def write_identity(self, config, training, chosen=None):
        """Writes what names and repeats this run; `chosen` are the reasons."""
        if self.existing("run.json") is None:
            record = {**_record(config, training), "chosen": chosen or {}}
            self.write("run.json", record)
        if self.existing("candidates.npz") is None:
            training.sets.save(self.file("candidates.npz"))
        names = "".join(f"{name}\n" for name in training.class_names)
        flags = cli.flags_as_text(config)
        for name, text in (("class_names.txt", names), ("run.flags", flags)):
            if self.existing(name) is None:
                files.write_atomically(self.file(name), text)


def _text(path):
    return pathlib.Path(path).read_text(encoding="utf-8")


def fingerprint(settings):
    """Returns six hexadecimal digits that stand for what settings compute."""
    fixed = {k: v for k, v in settings.items() if k not in FREE}
    text = json.dumps(fixed, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def _identity(training):
    """Returns digests of what a run's numbers rest on beside its sets."""
    images, pixels = training.images, hashlib.sha256()
    if isinstance(images, np.ndarray):
        pixels.update(np.ascontiguousarray(images))
    else:
        # All sizes, and the pixels of a sample: a copied folder is the same.
        sizes = training.scan["bytes"].to_numpy()
        pixels.update(sizes[training.file_rows])
        step = max(1, len(images) // _SAMPLE)
        pixels.update(images.read(slice(None, None, step)))
    return {
        "mean": list(training.mean),
        "std": list(training.std),
        "items": _digest_of_rows(training.listed),
        "tests": _digest_of_rows(training.test_ids, training.test_labels),
        "known": _digest_of_rows(training.ids, training.labels),
        "images": pixels.hexdigest(),
    }


def _record(config, training):
    """Returns the content of run.json."""
    settings, everything = config.as_dict(), importlib.metadata.distributions()
    installed = {package.name: package.version for package in everything}
    return {
        "command": shlex.join(sys.orig_argv),
        "settings": settings,
        "seed": config.run.seed,
        "candidates_hash": training.sets.content_hash,
        "candidates": training.sets.provenance,
        "notes": list(training.notes),
        "identity": _identity(training),
        "files": _digests_of_files(settings, ["network", *_LABELS]),
        "data": {
            "name": training.name,
            "training_images": len(training),
            "trained_on": len(training.trained),
            "test_images": len(training.test_images),
            "image_shape": list(training.images.shape[1:]),
            "class_names": list(training.class_names),
        },
        "versions": {
            "python": platform.python_version(),
            "alim_keras": alim_keras.__version__,
            **{name: installed.get(name) for name in _PACKAGES},
        },
        "machine": {
            "system": platform.platform(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "gpus": backend.gpu_names(),
        },
    }


def _digests_of_files(settings, names):
    """Returns digests of the files that are there, by the settings' names."""
    digests = {}
    for name in names:
        # Not the name of a data set, nor names of classes.
        path = settings[name] or ""
        if os.path.isabs(path) and os.path.isfile(path):
            digests[name] = files.digest(path)
        elif os.path.isabs(path) and os.path.isdir(path):
            # A folder with a folder for each class.
            digests[name] = _digest_of_rows(list_images(path).files)
    return digests


def _digest_of_rows(ids, labels=None):
    """Returns a digest that does not depend on the order of the rows."""
    ids = np.asarray(ids, str)
    order = np.argsort(ids)
    text = "\0".join(ids[order].tolist())
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape"))
    if labels is not None:
        digest.update(np.asarray(labels, np.int64)[order].tobytes())
    return digest.hexdigest()
