"""What a run believes about each of its items, for the audit."""

import dataclasses
import io

import numpy as np
from scipy.special import softmax

from alim_keras import noise_rate
from alim_keras.data import eval_dataset
from alim_keras.errors import ConfigError
from alim_keras.files import write_atomically
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

    They are kept in the run folder: a second audit need not train again.

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
            f"{folds} folds of {epochs} epochs",
        ]
    )
    logits = _stored(folder.file(FILE), made_for)
    if logits is None:
        # The part that the run holds out is to be judged too.
        everything = dataclasses.replace(
            run.training, trained=np.arange(count), held_out=np.arange(0)
        )
        fit = CrossFit(
            run.settings,
            everything,
            epochs,
            lambda text: print(f"Out-of-fold {text}", flush=True),
        )
        logits = noise_rate.out_of_fold(fit, count, folds, run.settings.seed)
        content = io.BytesIO()
        np.savez(content, logits=logits, made_for=made_for)
        write_atomically(folder.file(FILE), content.getvalue())
    # `report.examine` finds the temperature and the noise rate by itself.
    return Beliefs(
        softmax(logits, axis=1).astype("float32"),
        np.full(count, "folds", object),
    )


def _stored(path, made_for):
    """Returns the logits of an earlier audit, if they are of this wish."""
    try:
        with np.load(path, allow_pickle=False) as found:
            if np.array_equal(found["made_for"], made_for):
                return found["logits"]
    except (OSError, ValueError, KeyError):
        pass
    return None
