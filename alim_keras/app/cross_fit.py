"""Trainings of the run's own network on a part of its items."""

import dataclasses
import zipfile

import keras
import numpy as np
from scipy.special import softmax

from alim_keras import backend
from alim_keras import files
from alim_keras import methods
from alim_keras import noise_rate
from alim_keras import report
from alim_keras.app import build
from alim_keras.app.run_folder import fingerprint
from alim_keras.data import train_dataset
from alim_keras.errors import CheckpointError
from alim_keras.errors import ConfigError
from alim_keras.noise_rate import inference

# At most so many epochs, unless they have fewer steps than the second number.
EPOCHS = 12
STEPS = 240
# In the run folder: the predictions of networks that did not see the labels.
FILE = "folds.npz"


class CrossFit:
    """`fit_predict` of `noise_rate.out_of_fold`, from the run's settings.

    The network, its input, views, optimizer and batches are the run's, the
    batches smaller where a part does not fill one; the method is the plain
    `PartialLabelModel` with lambda 0 and Eq. 5, which every network can be
    trained with. One model serves all folds: it starts each from the same
    initial weights.

    Args:
        config: The `Config`.
        training: The `TrainingSet`; rows count within its `trained`.
        epochs: Of each training. Defaults to few: 12, or more where these
            have fewer than 240 steps, but never more than the run's.
        progress: Function of a string, called as each training begins.
    """

    def __init__(self, config, training, epochs=None, progress=print):
        self.config = config
        self.training = training
        self.epochs = epochs
        self.progress = progress
        self._fold = 0
        self._model = None

    def __call__(self, train_rows, predict_rows):
        """Returns the logits of `predict_rows`, float32 `(n, C)`."""
        config, training = self.config, self.training
        # The run fills a batch, and a part of its items may not.
        batch_size = min(config.train.batch_size, len(train_rows))
        steps = len(train_rows) // batch_size
        if self._model is None:
            self._make()
        else:
            for variable, value in self._start:
                variable.assign(value)
        rows = training.trained[train_rows]
        epochs = self.epochs
        if epochs is None:
            wanted = max(EPOCHS, -(-STEPS // steps))
            epochs = min(config.train.epochs, wanted)
            if epochs < wanted and not self._fold:
                self.progress(
                    f"--epochs={epochs} cuts these trainings short, of "
                    f"{wanted} epochs: the estimate may be far too low"
                )
        self._fold += 1
        small = ""
        if batch_size < config.train.batch_size:
            small = (
                f", in batches of {batch_size}, since {len(rows)} items do "
                f"not fill one of {config.train.batch_size}"
            )
        self.progress(
            f"network {self._fold}: {epochs} epochs on {len(rows):,} items"
            f"{small}"
        )
        rate = build.learning_rate(config, epochs)
        self._model.fit(
            train_dataset(
                training.images[rows],
                training.sets.take(rows),
                batch_size=batch_size,
                seed=config.run.seed,
            ),
            epochs=epochs,
            verbose=0,
            callbacks=[keras.callbacks.LearningRateScheduler(rate)],
        )
        batches = build.eval_batches(training, training.trained[predict_rows])
        logits = [
            keras.ops.convert_to_numpy(self._infer(x["image"]))
            for x, _ in batches
        ]
        return np.concatenate(logits)

    def _make(self):
        config, training = self.config, self.training
        backend.set_random_seed(config.run.seed)
        backbone, mean, std = build.backbone_of(config, training)
        model = methods.PartialLabelModel(
            backbone,
            training.num_classes,
            len(training.trained),
            views=build.views(config, training),
            mean=mean,
            std=std,
            table=build.table(config, training),
            # Labels of the last few epochs: the training is short.
            pseudo_label_momentum=(0.5, 0.5),
            weight_decay=config.train.weight_decay,
            seed=config.run.seed,
            name="cross_fit",
        )
        model.pseudo_label_table.use_onehot.assign(0.0)
        build.compile_model(config, model)
        # The initial weights again at each fold, and the optimizer's.
        self._start = [
            (variable, variable.numpy())
            for variable in (*model.variables, *model.optimizer.variables)
        ]
        self._infer = inference(model)
        self._model = model


def fold_probabilities(run, folder, folds, epochs=None):
    """Returns predictions of networks that were trained without the item.

    Nor were they trained on a copy of it. They are kept in the run folder, if
    it can be written to: a second audit need not train again.

    Args:
        run: The `OpenRun`.
        folder: The `RunFolder`.
        folds: Integer from 2, how many networks.
        epochs: Of each training. Defaults to as many as the run's.

    Returns:
        float32 `(N, C)`.
    """
    training = run.training
    if folds > len(training):
        raise ConfigError(
            f"There are {len(training)} items, so at most as many folds. "
            f"Received: --folds={folds}"
        )
    epochs = epochs or run.config.train.epochs
    made_for = [
        fingerprint(run.config.as_dict()),
        training.sets.content_hash,
        f"{folds} folds of {epochs} epochs, identical items in one",
    ]
    logits = _stored(folder, made_for, training.sets.shape)
    if logits is None:
        # The part that the run holds out is to be judged too.
        everything = dataclasses.replace(
            training, trained=np.arange(len(training)), held_out=np.arange(0)
        )
        logits = noise_rate.out_of_fold(
            CrossFit(
                run.config,
                everything,
                epochs,
                lambda text: print(f"Out-of-fold {text}", flush=True),
            ),
            len(training),
            folds,
            run.config.run.seed,
            groups_of(training, np.arange(len(training))),
        ).astype("float32", copy=False)
        _keep(folder, logits, made_for)
    # In their place and in blocks: there are many.
    for block in report.blocks(*logits.shape):
        part = slice(block[0], block[-1] + 1)
        logits[part] = softmax(logits[part], axis=1)
    return logits


def groups_of(training, rows):
    """Returns the groups of copies that folds must not split, int64 `(n,)`.

    Args:
        training: The `TrainingSet`.
        rows: Integers `(n,)`, the items that are split into folds.
    """
    if training.copies is None:
        return None
    groups = np.unique(training.copies[rows], return_inverse=True)[1]
    twins = int((np.bincount(groups)[groups] > 1).sum())
    if twins and backend.is_chief():
        print(
            f"{twins:,} items are identical to another one; as far as a fold "
            "can hold them, such come into one",
            flush=True,
        )
    return groups


def _keep(folder, logits, made_for):
    path = folder.file(FILE)
    try:
        with files.replacing(path) as file:
            np.savez(file, logits=logits, made_for=made_for)
    except OSError as error:
        print(
            f"{path} cannot be written ({error.strerror}): the networks of "
            "--folds are not kept, and another audit trains them again",
            flush=True,
        )


def _stored(folder, made_for, shape):
    """Returns the logits of an earlier audit, if they are of this wish."""
    try:
        path = folder.existing(FILE)
        if path is None:
            return None
        with np.load(path, allow_pickle=False) as arrays:
            logits, kept_for = arrays["logits"], arrays["made_for"]
    except (
        *(CheckpointError, OSError, ValueError, KeyError, EOFError),
        *(AttributeError, TypeError, zipfile.BadZipFile),
    ):
        print(
            f"{folder.file(FILE)} cannot be read: its networks are trained "
            "again"
        )
        return None
    fits = logits.shape == tuple(shape) and logits.dtype == np.float32
    return logits if fits and kept_for.tolist() == made_for else None
