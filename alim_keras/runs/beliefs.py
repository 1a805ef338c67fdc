"""What a run believes about each of its items, for the audit."""

import dataclasses
import hashlib
import os

import numpy as np
from scipy.special import softmax

from alim_keras import backend
from alim_keras import noise_rate
from alim_keras.data import eval_dataset
from alim_keras.data import image_rows
from alim_keras.data.candidate_file import open_npz
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.files import replacing
from alim_keras.report import suspicion
from alim_keras.runs.cross_fit import CrossFit
from alim_keras.runs.folder import fingerprint

# In the run folder: the predictions of networks that did not see the labels.
FILE = "folds.npz"


@dataclasses.dataclass
class Beliefs:
    """Probabilities of all items, in the order of the data.

    Attributes:
        probabilities: float32 `(N, C)`.
        kinds: Strings `(N,)`: `"table"`, `"prediction"` or `"folds"`.
        noise_rate: A number, an `Estimate` or None.
        ratio: Floats `(N,)`, the candidate ratios of training, or None.
    """

    probabilities: np.ndarray
    kinds: np.ndarray
    noise_rate: object = None
    ratio: np.ndarray | None = None


def of_run(run, rate):
    """Returns what the run's network learnt.

    The pseudo labels of the items that it was trained on, if it keeps some,
    and predictions for all others.

    Args:
        run: The `OpenRun`.
        rate: The noise rate in force, a number, an `Estimate` or None.
    """
    model, training = run.model, run.training
    sets, trained = training.sets, training.trained
    count, num_classes = sets.shape
    kinds = np.full(count, "prediction", object)
    found = np.zeros((count, num_classes), "float32")
    ratio, predicted = None, np.arange(count)
    if model.keeps_pseudo_labels:
        table = model.pseudo_label_table
        found[trained] = table.dense_rows(0, len(trained))
        kinds[trained] = "table"
        predicted = training.held_out
        if hasattr(table, "candidate_ratio"):
            ratio = np.full(count, np.nan, "float32")
            ratio[trained] = table.candidate_ratio.numpy()
    if len(predicted):
        batches = eval_dataset(
            training.data.images[predicted], sets[predicted], num_classes
        )
        found[predicted] = model.predict(batches, verbose=0)
    return Beliefs(found, kinds, rate, ratio)


def of_folds(run, folder, folds, epochs):
    """Returns predictions of networks that were trained without the item.

    Nor were they trained on one that is identical to it. They are kept in the
    run folder, if it can be written to: a second audit need not train again.

    Args:
        run: The `OpenRun`.
        folder: The `RunFolder`.
        folds: Integer from 2, how many networks.
        epochs: Of each training, or None for as many as the run's.
    """
    count = len(run.training.sets)
    if folds > count:
        raise ConfigError(
            f"There are {count} items, so at most as many folds. Received: "
            f"--folds={folds}"
        )
    epochs = epochs or run.settings.epochs
    made_for = np.array(
        [
            fingerprint(run.settings.as_dict()),
            run.training.candidates.content_hash,
            f"{folds} folds of {epochs} epochs, identical items in one",
        ]
    )
    path = folder.file(FILE)
    shape = tuple(run.training.sets.shape)
    logits = _stored(path, made_for, shape)
    if logits is None:
        logits = _train_folds(run, folds, epochs)
        _keep(path, logits, made_for)
    # `report.examine` finds the temperature and the noise rate by itself.
    return Beliefs(_probabilities(logits), np.full(count, "folds", object))


def _train_folds(run, folds, epochs):
    """Returns the logits of networks without the item, float32 `(N, C)`."""
    training = run.training
    count = len(training.sets)
    groups = groups_of(training.data.images, np.arange(count))
    # The part that the run holds out is to be judged too.
    everything = dataclasses.replace(
        training, trained=np.arange(count), held_out=np.arange(0)
    )
    fit = CrossFit(
        run.settings,
        everything,
        epochs,
        lambda text: print(f"Out-of-fold {text}", flush=True),
    )
    found = noise_rate.out_of_fold(fit, count, folds, run.settings.seed, groups)
    return found.astype("float32", copy=False)


def _keep(path, logits, made_for):
    """Keeps logits for the next audit, where that is possible."""
    try:
        with replacing(path) as file:
            np.savez(file, logits=logits, made_for=made_for)
    except OSError as error:
        print(
            f"{path} cannot be written ({error.strerror}): the networks of "
            "--folds are not kept, and another audit trains them again",
            flush=True,
        )


def groups_of(images, rows):
    """Returns the groups that folds must not split, and says how many items.

    Args:
        images: Array or `DiskImages`, `(N, H, W, channels)`.
        rows: Integers `(n,)`, the items that are split into folds.

    Returns:
        int64 `(n,)`, see `identical`.
    """
    # All, since choosing rows of an array copies it.
    groups = identical(images)[rows]
    twins = int((np.bincount(groups)[groups] > 1).sum())
    if twins and backend.is_chief():
        print(
            f"{twins:,} items are identical to another one; as far as a fold "
            "can hold them, such come into one",
            flush=True,
        )
    return groups


def identical(images):
    """Numbers the items so that identical ones have the same number.

    All are read once; to train on them takes that often.

    Args:
        images: Array or `DiskImages`, `(N, H, W, channels)`.

    Returns:
        int64 `(N,)`, from 0.
    """
    digests = np.empty(len(images), "uint64")
    for rows in suspicion.blocks(len(images), int(np.prod(images.shape[1:]))):
        for row, pixels in zip(rows, image_rows(images, rows), strict=True):
            digest = hashlib.blake2b(pixels.tobytes(), digest_size=8).digest()
            digests[row] = int.from_bytes(digest, "little")
    return np.unique(digests, return_inverse=True)[1].reshape(-1)


def _probabilities(logits):
    """Returns the softmax of logits, in their place: there are many."""
    for rows in suspicion.blocks(*logits.shape):
        part = slice(rows[0], rows[-1] + 1)
        logits[part] = softmax(logits[part], axis=1)
    return logits


def _stored(path, made_for, shape):
    """Returns the logits of an earlier audit, if they are of this wish."""
    if not os.path.exists(path):
        return None
    try:
        found = open_npz(path)
    except DataError:
        print(f"{path} cannot be read: its networks are trained again")
        return None
    logits = found.get("logits", np.zeros(0))
    if not np.array_equal(found.get("made_for"), made_for):
        return None
    if logits.shape != shape or logits.dtype != np.float32:
        return None
    return logits
