"""What ALIM is told about the noise rate in a run, and where it is kept."""

import dataclasses

import numpy as np

from alim_keras import backend
from alim_keras import noise_rate
from alim_keras.app import build
from alim_keras.app.cross_fit import CrossFit
from alim_keras.app.cross_fit import groups_of
from alim_keras.app.run_folder import fingerprint
from alim_keras.data import known_data
from alim_keras.data import tables
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import first_five

# In the run folder: the estimate in force, and what it was made for.
FILE = "noise_rate.json"
_ESTIMATORS = {"em": noise_rate.em, "gmm": noise_rate.gmm}


def prepare(config, folder, training):
    """Returns what the run tells ALIM: a number, an estimator, or None.

    `annotated` and `cv` are estimated here, once, before the training; `em`
    and `gmm` by the returned estimator, as epochs end. Each estimate is
    printed and written to the run folder, where a continued run finds it.

    Args:
        config: The `Config`.
        folder: The `RunFolder`.
        training: The `TrainingSet`.

    Raises:
        ConfigError: There is nothing to estimate from.
        DataError: The file of true labels is unsound.
    """
    asked, why = requested(config), ""
    if asked is None or isinstance(asked, float):
        return asked
    if asked == "oracle":
        return _oracle(config, training)
    if asked == "auto":
        # Answers that take the place of sets are mostly those of a review
        # list, of items whose sets looked wrong: they do not stand for all.
        known = training.known
        is_sample = known is not None and not training.known_as_sets
        if is_sample and np.sum(known >= 0) >= noise_rate.ENOUGH:
            asked, why = "annotated", "enough true labels are known."
        elif config.machine.distribute == "multi_worker":
            asked, why = "em", "many processes train, and cv is for one."
        else:
            # Full sets cannot be wrong.
            sizes = training.sets.sizes[training.held_out]
            useful = int((sizes < training.num_classes).sum())
            asked, why = noise_rate.choose(useful)
        if backend.is_chief():
            print(f"--noise_rate=auto takes {asked}: {why}", flush=True)
    record = _Record(config, folder, training)
    if asked in _ESTIMATORS:
        _check_held_out(asked, config, training)
        batches = build.eval_batches(training, training.held_out)
        estimator = noise_rate.HeldOut(batches, _ESTIMATORS[asked])
        return RecordingEstimator(estimator, record)
    estimate = None
    if asked == "cv" or folder.checkpoint.exists():
        # Of a file of true labels that grew meanwhile, a run that goes on
        # takes the old state, and only such a run.
        estimate = record.read()
    if estimate is None:
        estimate = _estimate_once(asked, config, training)
        record.write(estimate)
    record.show(estimate)
    return estimate.value


def requested(config):
    """Returns `--noise_rate`, with the default that fits the sets.

    None if nobody asked and nobody needs it.
    """
    if config.alim.noise_rate is not None:
        return config.alim.noise_rate
    is_table = known_data.is_table(config.data.dataset)
    if not config.candidates.candidates_file and not is_table:
        return "oracle"
    is_needed = config.alim.lam in ("adaptive", "instance")
    return "auto" if is_needed and build.keeps_pseudo_labels(config) else None


def final(config, folder, training):
    """Returns the number or `Estimate` in force, or None."""
    asked = requested(config)
    if asked is None or isinstance(asked, float):
        return asked
    if asked == "oracle":
        return _oracle(config, training)
    return _Record(config, folder, training).read()


def check(config, training):
    """Raises if there is nothing to take the requested rate from."""
    asked = requested(config)
    if asked == "oracle":
        _oracle(config, training)
    elif asked in _ESTIMATORS:
        _check_held_out(asked, config, training)
    elif asked == "annotated":
        _annotations("", training)


def _oracle(config, training):
    level = training.sets.provenance.get("noise_level")
    if level is None and config.alim.lam in ("adaptive", "instance"):
        raise ConfigError(
            "--noise_rate=oracle needs simulated candidate sets, whose noise "
            "level is known; give --noise_rate=auto to estimate it, or a guess "
            "such as --noise_rate=0.2."
        )
    return level


def _check_held_out(name, config, training):
    if not len(training.held_out):
        raise ConfigError(
            f"--noise_rate={name} looks at images held out of training; add "
            "--holdout=0.1, or use --noise_rate=cv. Received: --holdout=0"
        )
    if not build.keeps_pseudo_labels(config):
        raise ConfigError(
            f"--noise_rate={name} is estimated for ALIM as epochs end, and "
            f"--method={config.method.method} keeps no pseudo labels for it; "
            "use --noise_rate=cv to know the rate all the same."
        )


def _estimate_once(asked, config, training):
    """Returns an `Estimate` that is made before the training."""
    if asked == "cv":
        if config.machine.distribute == "multi_worker":
            raise ConfigError(
                "--noise_rate=cv trains in one process; use "
                "--noise_rate=em, or cv in a run of one process and its "
                "result as --noise_rate=NUMBER. Received: "
                "--distribute=multi_worker"
            )
        rows = training.trained

        def progress(text):
            if backend.is_chief():
                print(f"Estimating the noise rate: {text}", flush=True)

        return noise_rate.cv(
            CrossFit(config, training, progress=progress),
            training.sets.take(rows),
            seed=config.run.seed,
            groups=groups_of(training, rows),
        )
    rows, labels = _annotations(asked.partition(":")[2], training)
    # The sets as they were given, where known labels stand in for some.
    given = training.candidates.take(rows)
    return noise_rate.annotated(labels, given)


def _annotations(path, training):
    """Returns rows and labels of a file, or of `--known_labels`."""
    if path:
        ids, labels = tables.read_known_labels(path, training.class_names)
        is_here = np.isin(ids, training.listed)
        if not is_here.all():
            raise DataError(
                f"{path}: {int((~is_here).sum())} of {len(ids)} ids are not in "
                f"{training.name}: {first_five(np.asarray(ids)[~is_here])}"
            )
        # A run may train on a part of the items.
        kept = np.isin(ids, training.ids)
        return training.rows_of(np.asarray(ids)[kept]), labels[kept]
    if training.known is None:
        raise ConfigError(
            "--noise_rate=annotated needs --known_labels=FILE, or a file of "
            "its own: --noise_rate=annotated:FILE"
        )
    rows = np.flatnonzero(training.known >= 0)
    return rows, training.known[rows]


class _Record:
    """The estimate in force, in the run folder and in a printed line."""

    def __init__(self, config, folder, training):
        self.folder = folder
        # A file that an earlier wish left in the folder does not count.
        self.made_for = [
            fingerprint(config.as_dict()),
            training.sets.content_hash,
        ]
        statistics = training.sets.statistics(training.labels)
        self.realised = statistics["realised_noise"]

    def read(self):
        """Returns the `Estimate` that is kept, or None."""
        content = self.folder.read_if_sound(FILE)
        if content is None or content.get("made_for") != self.made_for:
            return None
        return noise_rate.Estimate.from_dict(content["estimate"])

    def write(self, estimate):
        """Writes an estimate, in place of the one before."""
        if backend.is_chief():
            content = {
                "estimate": estimate.as_dict(),
                "realised": self.realised,
                "made_for": self.made_for,
            }
            self.folder.write(FILE, content)

    def show(self, estimate):
        """Prints an estimate in one line."""
        if backend.is_chief():
            known = ""
            if self.realised is not None:
                known = f" Realised: {self.realised:.3f} (uses true labels)."
            print(estimate.describe() + known, flush=True)


@dataclasses.dataclass
class RecordingEstimator:
    """An estimator whose estimates are written; the first is shown."""

    estimator: object
    record: _Record
    is_shown: bool = False

    def estimate(self, model, epoch):
        """Returns the `Estimate` at the end of an epoch."""
        estimate = self.estimator.estimate(model, epoch)
        self.record.write(estimate)
        if not self.is_shown:
            self.record.show(estimate)
        self.is_shown = True
        return estimate
