"""What ALIM is told about the noise rate in a run, and where it is kept."""

import dataclasses

import numpy as np

from alim_keras import backend
from alim_keras import noise_rate
from alim_keras.data import SparseCandidates
from alim_keras.data import eval_dataset
from alim_keras.data.known_labels import read_annotations
from alim_keras.data.sources import is_own
from alim_keras.errors import ConfigError
from alim_keras.noise_rate import Estimate
from alim_keras.noise_rate.annotated import ENOUGH
from alim_keras.runs import beliefs
from alim_keras.runs import choice
from alim_keras.runs.cross_fit import CrossFit
from alim_keras.runs.folder import fingerprint

# In the run folder: the estimate in force, and what it was made for.
FILE = "noise_rate.json"
ESTIMATORS = {"em": noise_rate.em, "gmm": noise_rate.gmm}


def prepare(settings, folder, training):
    """Returns what the run tells ALIM: a number, an estimator, or None.

    `annotated` and `cv` are estimated here, once, before the training; `em`
    and `gmm` by the returned estimator, as epochs end. Each estimate is
    printed and written to the run folder, where a continued run finds it.

    Args:
        settings: The train command's settings.
        folder: The `RunFolder`.
        training: The `TrainingData`.

    Raises:
        ConfigError: If there is nothing to estimate from.
        DataError: If the file of true labels is unsound.
    """
    asked, why = wish(settings), ""
    if asked is None or isinstance(asked, float):
        return asked
    if asked == "oracle":
        return _oracle(settings, training.candidates)
    if asked == "auto":
        if _is_sample_known(settings, training):
            asked, why = "annotated", "enough true labels are known."
        elif settings.distribute == "multi_worker":
            asked, why = "em", "many processes train, and cv is for one."
        else:
            asked, why = noise_rate.choose(_num_held_out(training))
        if backend.is_chief():
            print(f"--noise_rate=auto takes {asked}: {why}", flush=True)
    if asked in ESTIMATORS:
        return _held_out(asked, settings, folder, training)
    keeper = Keeper(settings, folder, training)
    found = None
    if asked == "cv" or folder.checkpoint.exists():
        # Of a file of true labels that grew meanwhile, a run that goes on
        # takes the old state, and only such a run.
        found = keeper.stored()
    if found is None:
        found = _once(asked, settings, training)
        keeper.keep(found)
    keeper.show(found)
    return found.value


def _is_sample_known(settings, training):
    """Returns whether enough true labels are known, and stand for all.

    Answers that take the place of sets are mostly those of a review list, of
    items whose sets looked wrong.
    """
    if training.known is None or settings.known_as_sets:
        return False
    return np.sum(training.known >= 0) >= ENOUGH


def check(settings, training):
    """Raises for a wish that `prepare` could not fulfil."""
    asked = wish(settings)
    if asked == "oracle":
        _oracle(settings, training.candidates)
    elif asked in ESTIMATORS:
        _check_held_out(asked, settings, training)
    elif asked == "annotated":
        _annotations("", training)


def wish(settings):
    """Returns `--noise_rate`, with the default that fits the sets.

    None if nobody asked and nobody needs it.
    """
    if settings.noise_rate is not None:
        return settings.noise_rate
    if not settings.candidates_file and not is_own(settings.dataset):
        return "oracle"
    needed = settings.lam in ("adaptive", "instance")
    return "auto" if needed and choice.keeps_pseudo_labels(settings) else None


def final(settings, folder, training):
    """Returns the number or `Estimate` in force as the run ends, or None."""
    asked = wish(settings)
    if asked is None or isinstance(asked, float):
        return asked
    if asked == "oracle":
        return _oracle(settings, training.candidates)
    return Keeper(settings, folder, training).stored()


def _oracle(settings, candidates):
    level = candidates.provenance.get("noise_level")
    if level is None and settings.lam in ("adaptive", "instance"):
        raise ConfigError(
            "--noise_rate=oracle needs simulated candidate sets, whose noise "
            "level is known; give --noise_rate=auto to estimate it, or a guess "
            "such as --noise_rate=0.2."
        )
    return level


def _num_held_out(training):
    """How many held-out sets could be wrong: those that are not full."""
    sets = training.sets[training.held_out]
    sparse = isinstance(sets, SparseCandidates)
    sizes = sets.sizes if sparse else sets.sum(axis=1)
    return int((sizes < training.sets.shape[1]).sum())


def _sets(training, rows):
    sets = training.sets[rows]
    if isinstance(sets, SparseCandidates):
        return sets.rows(np.arange(len(sets)))
    return sets


def _check_held_out(name, settings, training):
    if not len(training.held_out):
        raise ConfigError(
            f"--noise_rate={name} looks at images held out of training; add "
            "--holdout=0.1, or use --noise_rate=cv. Received: --holdout=0"
        )
    if not choice.keeps_pseudo_labels(settings):
        raise ConfigError(
            f"--noise_rate={name} is estimated for ALIM as epochs end, and "
            f"--method={settings.method} keeps no pseudo labels for it; use "
            "--noise_rate=cv to know the rate all the same."
        )


def _held_out(name, settings, folder, training):
    _check_held_out(name, settings, training)
    rows = training.held_out
    data = eval_dataset(
        training.data.images[rows], training.sets[rows], training.sets.shape[1]
    )
    estimator = noise_rate.HeldOut(data, ESTIMATORS[name])
    return Kept(estimator, Keeper(settings, folder, training))


def _once(asked, settings, training):
    """The estimates that are made before the training."""
    if asked == "cv":
        if settings.distribute == "multi_worker":
            raise ConfigError(
                "--noise_rate=cv trains in one process; use "
                "--noise_rate=em, or cv in a run of one process and its "
                "result as --noise_rate=NUMBER. Received: "
                "--distribute=multi_worker"
            )
        rows = training.trained
        if backend.is_chief():
            print(
                f"Estimating the noise rate: {noise_rate.folds.FOLDS} short "
                "trainings",
                flush=True,
            )
        return noise_rate.cv(
            CrossFit(settings, training),
            _sets(training, rows),
            seed=settings.seed,
            groups=beliefs.groups_of(training.data.images, rows),
        )
    rows, labels = _annotations(asked.partition(":")[2], training)
    # The sets as they were given, where known labels stand in for some.
    given = training.given or training.candidates
    ids = training.data.ids[rows]
    return noise_rate.annotated(labels, given.align(ids))


def _annotations(path, training):
    """Returns rows and labels of a file, or of `--known_labels`."""
    data, known = training.data, training.known
    if path:
        return read_annotations(path, data.ids, data.class_names)
    if known is None:
        raise ConfigError(
            "--noise_rate=annotated needs --known_labels=FILE, or a file of "
            "its own: --noise_rate=annotated:FILE"
        )
    rows = np.flatnonzero(known >= 0)
    return rows, known[rows]


class Keeper:
    """Keeps the estimate in force in the run folder, and shows it."""

    def __init__(self, settings, folder, training):
        self.folder = folder
        # A file that an earlier wish left in the folder does not count.
        self.made_for = [
            fingerprint(settings.as_dict()),
            training.candidates.content_hash,
        ]
        self.realised = training.candidates.statistics(training.data.labels)[
            "realised_noise"
        ]

    def stored(self):
        """Returns the `Estimate` that is kept, or None."""
        found = self.folder.read(FILE)
        if found is None or found.get("made_for") != self.made_for:
            return None
        return Estimate.from_dict(found["estimate"])

    def keep(self, estimate):
        """Writes an estimate, in place of the one before."""
        if backend.is_chief():
            self.folder.write(
                FILE,
                {
                    "estimate": estimate.as_dict(),
                    "realised": self.realised,
                    "made_for": self.made_for,
                },
            )

    def show(self, estimate):
        """Prints an estimate in one line."""
        if backend.is_chief():
            known = ""
            if self.realised is not None:
                known = f" Realised: {self.realised:.3f} (uses true labels)."
            print(estimate.describe() + known, flush=True)


@dataclasses.dataclass
class Kept:
    """An estimator whose estimates are kept; the first is shown."""

    estimator: object
    keeper: Keeper
    shown: bool = False

    def estimate(self, model, epoch):
        """Returns the `Estimate` at the end of an epoch."""
        found = self.estimator.estimate(model, epoch)
        self.keeper.keep(found)
        if not self.shown:
            self.keeper.show(found)
        self.shown = True
        return found
