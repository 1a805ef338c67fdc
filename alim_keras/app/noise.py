"""The noise rate that ALIM is told in a run, and an audit's cross-fitting."""

import dataclasses
import itertools

import keras
import numpy as np
from scipy.special import softmax

from alim_keras import backend
from alim_keras import methods
from alim_keras import noise_rate
from alim_keras.app import build
from alim_keras.app.run_folder import fingerprint
from alim_keras.data import known_data
from alim_keras.data import tables
from alim_keras.data.annotators import shared_votes
from alim_keras.data.checks import refuse
from alim_keras.errors import ConfigError

# In the run folder: the estimate, and what it was made for.
FILE = "noise_rate.json"


def prepare(config, folder, training):
    """Returns what the run tells ALIM: a number, an estimator, or None.

    `annotated` and `votes` are estimated here, once; `auto`, where it can do
    neither, by the returned estimator, as epochs end: from the held-out part
    or, with `--head_folds`, from heads that did not see the example.
    """
    kept, asked = Kept(config, folder, training), requested(config)
    if asked in (None, "oracle") or isinstance(asked, float):
        return kept.in_force()
    if asked == "auto":
        asked, why = _choose(config, training)
        _tell(f"--noise_rate=auto takes {asked}: {why}")
    if asked == "em":
        is_folded = bool(config.method.head_folds)
        rows = training.trained if is_folded else training.held_out
        if not len(rows):
            raise ConfigError(
                "--noise_rate=auto looks at images held out of training; add "
                "--holdout=0.1, or give a number. Received: --holdout=0"
            )
        kept.estimator = noise_rate.HeldOut(build.eval_batches(training, rows))
        return kept
    # A file of true labels may have grown since the run began.
    estimate = kept.read() if folder.checkpoint.exists() else None
    return kept.keep(estimate or _estimate_once(asked, training)).value


def requested(config):
    """Returns `--noise_rate`, or what fits the sets; None if none needs it."""
    if config.alim.noise_rate is not None:
        return config.alim.noise_rate
    is_table = known_data.is_table(config.data.dataset)
    if not config.candidates.candidates_file and not is_table:
        return "oracle"
    is_needed = config.alim.lam == "adaptive"
    return "auto" if is_needed and build.keeps_pseudo_labels(config) else None


class Kept:
    """The estimate in force, kept in the run folder.

    With `estimator` it is one itself, for `callbacks.ALIM`.
    """

    def __init__(self, config, folder, training):
        self.config, self.folder, self.training = config, folder, training
        self.estimator, self.is_shown = None, False
        # A file that an earlier wish left in the folder does not count.
        settings = fingerprint(config.as_dict())
        self.made_for = [settings, training.sets.content_hash]

    def in_force(self):
        """Returns the number or `Estimate` in force, or None."""
        asked = requested(self.config)
        if asked is None or isinstance(asked, float):
            return asked
        if asked != "oracle":
            return self.read()
        level = self.training.sets.provenance.get("noise_level")
        if level is None and self.config.alim.lam == "adaptive":
            raise ConfigError(
                "--noise_rate=oracle needs simulated candidate sets, whose "
                "noise level is known; give --noise_rate=auto to estimate it, "
                "or a guess such as --noise_rate=0.2."
            )
        return level

    def read(self):
        """Returns the `Estimate` that is kept, or None."""
        content = self.folder.read(FILE)
        if content is None or content.get("made_for") != self.made_for:
            return None
        return noise_rate.Estimate(**content["estimate"])

    def keep(self, estimate):
        """Writes an estimate and prints the first; returns it."""
        if backend.is_chief():
            content = {"estimate": dataclasses.asdict(estimate)}
            self.folder.write(FILE, {**content, "made_for": self.made_for})
        if not self.is_shown:
            _tell(estimate.describe())
        self.is_shown = True
        return estimate

    def estimate(self, model, epoch):
        """Returns the `Estimate` at the end of an epoch."""
        return self.keep(self.estimator.estimate(model, epoch))


def _tell(text):
    if backend.is_chief():
        print(text, flush=True)


def _choose(config, training):
    """Returns what `auto` takes, and why."""
    # Answers that take the place of sets are mostly those of a review list, of
    # items whose sets looked wrong: they do not stand for all.
    known = training.known
    is_sample = known is not None and not training.known_as_sets
    num_labels = int(np.sum(known >= 0)) if is_sample else 0
    if num_labels >= noise_rate.ENOUGH_LABELS:
        return "annotated", f"{num_labels} true labels need no assumption."
    if shared_votes(training) is not None:
        return "votes", "several annotators answered for the same items."
    if config.method.head_folds:
        return "em", "heads that did not see an item judge its set."
    return "em", "predictions for the held-out part judge its sets."


def _estimate_once(asked, training):
    """Returns an `Estimate` that is made before the training."""
    if asked == "votes":
        votes = shared_votes(training)
        if votes is None:
            raise ConfigError(
                "--noise_rate=votes needs several annotators who answered for "
                "the same items, in a column `annotator`, or one each."
            )
        return noise_rate.from_votes(votes, training.sets)
    rows, labels = _annotations(asked.partition(":")[2], training)
    # The sets as they were given, where known labels stand in for some.
    given = training.candidates.take(rows).dense()
    return noise_rate.annotated(labels, given)


def _annotations(path, training):
    """Returns rows and labels of a file, or of `--known_labels`."""
    if not path:
        if training.known is None:
            raise ConfigError(
                "--noise_rate=annotated needs --known_labels=FILE, or a file "
                "of its own: --noise_rate=annotated:FILE"
            )
        rows = np.flatnonzero(training.known >= 0)
        return rows, training.known[rows]
    ids, labels = tables.read_known_labels(path, training.class_names)
    ids = np.asarray(ids, str)
    strange = ids[~np.isin(ids, training.listed)]
    refuse(strange, path, f"ids that are not in {training.name}")
    # A run may train on a part of the items.
    kept = np.isin(ids, training.ids)
    return training.rows_of(ids[kept]), np.asarray(labels)[kept]


def cross_fit(config, training, epochs):
    """Returns the `fit_predict` of `noise_rate.out_of_fold` for a run.

    The method is the plain `PartialLabelModel` with lambda 0 and Eq. 5, which
    every network can be trained with; the rest is the run's. One model serves
    all folds, from the same initial weights.
    """
    backend.set_random_seed(config.run.seed)
    arguments, options = build.common_arguments(config, training)
    # Labels of the last few epochs: the training is short.
    options |= {"pseudo_label_momentum": (0.5, 0.5), "name": "cross_fit"}
    model = methods.PartialLabelModel(*arguments, **options)
    model.pseudo_label_table.use_onehot.assign(0.0)
    build.compile_model(config, model)
    variables = (*model.variables, *model.optimizer.variables)
    start = [(v, v.numpy()) for v in variables]
    infer, count = noise_rate.inference(model), itertools.count(1)

    def fit_predict(rows, predicted, training=training):
        for variable, value in start:
            variable.assign(value)
        # The run fills a batch, and a part of its items may not.
        size = min(config.train.batch_size, len(rows))
        part = dataclasses.replace(training, trained=rows)
        _tell(
            f"Out-of-fold network {next(count)}, epochs: {epochs}, items: "
            f"{len(rows):,}"
        )
        rate = build.learning_rate(config.replace(epochs=epochs))
        model.fit(
            build.train_batches(config.replace(batch_size=size), part),
            epochs=epochs,
            verbose=0,
            callbacks=[keras.callbacks.LearningRateScheduler(rate)],
        )
        return infer(build.eval_batches(training, predicted))[0]

    return fit_predict


def fold_probabilities(config, training, folds, epochs=None):
    """Returns what networks predict that saw no item nor copy, `(N, C)`."""
    fit_predict = cross_fit(config, training, epochs or config.train.epochs)
    split = folds, config.run.seed, training.copies
    logits = noise_rate.out_of_fold(fit_predict, len(training), *split)
    return softmax(logits, axis=1)
