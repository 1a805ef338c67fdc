"""Estimators of the noise rate, on top of `em`."""

import dataclasses

import keras
import numpy as np
from scipy.special import softmax

from alim_keras import backend
from alim_keras import draws
from alim_keras.data.annotators import likelihood_of_members
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.noise_rate.em import Estimate
from alim_keras.noise_rate.em import check_pairs
from alim_keras.noise_rate.em import em

# So many true labels end the doubt.
ENOUGH_LABELS = 50
# Of `cautious`: the widest interval whose middle is used, what share of the
# answers counts as sure, and how far from chance to them all they must be.
_WIDE, _SUREST, _SKILL = 0.125, 0.8, 0.25


def annotated(labels, candidates):
    """Estimates eta as the share of looked-up labels outside their set.

    The examples must be a random sample of the training set. The interval is
    Wilson's, which holds its level for small counts too, and at 0 of n.

    Args:
        labels: Integers `(n,)`, true classes.
        candidates: Multi-hot array `(n, C)`, the sets of the same examples.

    Returns:
        An `Estimate`. `details`: `labels`, `wrong`.

    Raises:
        DataError: If there is no label, or shapes differ.

    Example:

    >>> estimate = annotated([0, 1, 1, 0], [[1, 0]] * 4)
    >>> estimate.value, round(estimate.low, 3), round(estimate.high, 3)
    (0.5, 0.15, 0.85)

    Reference:
    - [Wilson, 1927](https://doi.org/10.1080/01621459.1927.10502953)
    """
    labels = np.asarray(labels, "int64")
    candidates = np.asarray(candidates) > 0
    count = len(labels)
    if not count or candidates.shape[:1] != (count,):
        raise DataError(
            "At least one true label and as many candidate sets were "
            f"expected. Received: {count} labels, sets {candidates.shape}"
        )
    wrong = int((~candidates[np.arange(count), labels]).sum())
    low, high = wilson(wrong, count)
    share = wrong / count
    reason = (
        f"{wrong} of {count} true labels that were given are not in their "
        f"set; about {3 * count} more labels would halve the interval."
    )
    details = {"labels": count, "wrong": wrong}
    return Estimate(share, low, high, "annotated", reason, details=details)


def from_votes(votes, sets):
    """Estimates eta by Dawid and Skene's model of several annotators.

    Args:
        votes: `data.annotators.VoteArrays`.
        sets: The `CandidateSets` that were made of them.

    Returns:
        An `Estimate` for the examples with votes. Its interval reaches up to
        the share of votes for a class that nobody else gave. `details`:
        `examples`, `alone`.
    """
    members = likelihood_of_members(votes, sets)
    outside = 1 - np.add.reduceat(members, sets.indptr[:-1], dtype="float64")
    voted, number = np.unique(votes.rows, return_counts=True)
    value = float(np.clip(outside[voted], 0, 1).mean())
    _, place, supporters = np.unique(
        votes.rows * sets.num_classes + votes.classes,
        return_inverse=True,
        return_counts=True,
    )
    several = np.isin(votes.rows, voted[number > 1])
    alone = float((supporters[place] == 1)[several].mean())
    low, high = wilson(round(value * len(voted)), len(voted))
    reason = (
        "each annotator's habits, learnt from the others' answers; it assumes "
        "that they err apart: a mistake that all share is not seen."
    )
    low, high = min(low, value), max(high, alone)
    details = {"examples": len(voted), "alone": alone}
    return Estimate(value, low, high, "votes", reason, details)


def wilson(successes, count):
    """Returns the ends of Wilson's 95 % interval of a share."""
    # Only here: it takes half a second to import.
    from scipy.stats import binomtest

    interval = binomtest(successes, count).proportion_ci(method="wilson")
    # Exact at the ends, where the arithmetic leaves 1e-17.
    low = 0.0 if successes == 0 else float(interval.low)
    return low, 1.0 if successes == count else float(interval.high)


def out_of_fold(fit_predict, num_examples, folds=3, seed=0, groups=None):
    """Returns logits `(N, C)` of networks trained without what they predict.

    Args:
        fit_predict: Function of two sorted int64 arrays of rows, those to
            train on and those to predict, that returns the logits of the
            latter, `(n, C)`. It is called once for each fold.
        num_examples: N.
        folds: k, at least 2. Defaults to `3`.
        seed: Of the split. Defaults to `0`.
        groups: Integers `(N,)`: examples with the same number, such as
            identical images, come into one fold, see `draws.folds`. Defaults
            to None: each for itself.

    Raises:
        ConfigError: If there are not 2 to N folds.

    Example:

    >>> def fit_predict(train_rows, predict_rows):
    ...     return np.zeros((len(predict_rows), 3)) + len(train_rows)
    >>> out_of_fold(fit_predict, 4, folds=2)[:, 0]
    [2.0, 2.0, 2.0, 2.0]
    """
    if not 2 <= folds <= num_examples:
        raise ConfigError(
            "Cross-validation needs from 2 folds to one for each of the "
            f"{num_examples} examples. Received: folds={folds}"
        )
    fold = draws.folds(num_examples, folds, seed, groups)
    pairs = [
        (np.flatnonzero(fold != k), np.flatnonzero(fold == k))
        for k in range(folds)
    ]
    answers = [np.asarray(fit_predict(*rows)) for rows in pairs]
    order = np.argsort(np.concatenate([rows for _, rows in pairs]))
    return np.concatenate(answers)[order]


def cautious(logits, candidates):
    """`em`, with an interval that allows for mistakes that people make.

    `em` takes a wrong label that resembles its image for doubt of the network,
    so its lower end holds where wrong labels fall at random. The upper end
    here is the share of sets that miss the network's answer, among the four
    fifths of the answers for each class that it is surest of. Where the ends
    are more than 0.125 apart, or the answers hardly meet more sets than
    chance, the value is the lower end, in the latter case 0: with it ALIM was
    never worse than without, see docs/noise_rate.md.

    Arguments and errors are those of `em`.
    """
    estimate = em(logits, candidates)
    logits, candidates = check_pairs(logits, candidates)
    usable = ~candidates.all(axis=1)
    if not usable.any():
        return estimate
    answers = softmax(logits[usable], axis=1)
    chosen, sure = answers.argmax(axis=1), answers.max(axis=1)
    sets, share = candidates[usable], float(usable.mean())
    missed = ~sets[np.arange(len(sets)), chosen]
    rank = np.lexsort((-sure, chosen))
    place = np.empty(len(sets))
    counts = np.bincount(chosen)
    place[rank] = np.concatenate([np.arange(n) / n for n in counts if n])
    surest = missed[place < _SUREST]
    high = share * wilson(int(surest.sum()), len(surest))[1]
    low, high = estimate.low, max(estimate.high, high)
    if missed.mean() > (1 - _SKILL) * (1 - sets.mean()):
        low = 0.0
    details = {**estimate.details, "missed": float(missed.mean())}
    reason = estimate.reason
    value = estimate.value
    if high - low > _WIDE:
        rates = np.array(details.get("rate_by_size", 0.0))
        rates *= low / max(value, 1e-9)
        details["rate_by_size"] = np.minimum(rates, 1.0).tolist()
        value = low
        reason = (
            "its lower end, for wrong labels that fall at random; more if they "
            f"resemble the image. To know it, look up {ENOUGH_LABELS} labels "
            "of a random sample: a file id,label for --known_labels."
        )
    return dataclasses.replace(
        estimate,
        value=value,
        low=low,
        high=high,
        reason=reason,
        details=details,
    )


class HeldOut:
    """Estimates eta by `cautious`, from a held-out part of the training set.

    `callbacks.ALIM(noise_rate=...)` takes any object with its one method. That
    may depend on the weights and the epoch only, so that an interrupted run
    goes on unchanged.

    Args:
        data: Batches `(x, candidates)` with the noisy sets, see
            `alim_keras.data.eval_dataset`.

    Example:

    ```python
    held_out = alim_keras.data.eval_dataset(images, candidates, num_classes)
    model.fit(train, epochs=100, callbacks=[alim_keras.callbacks.ALIM(
        noise_rate=alim_keras.noise_rate.HeldOut(held_out))])
    ```
    """

    def __init__(self, data):
        self.data = data
        self._model = self._infer = None

    def estimate(self, model, epoch):
        """Returns the `Estimate` after an epoch, counted from 0.

        None leaves the one before in force.
        """
        if self._model is not model:
            self._model, self._infer = model, inference(model)
        logits, candidates = [], []
        for x, y in self.data:
            logits.append(keras.ops.convert_to_numpy(self._infer(x)))
            candidates.append(keras.ops.convert_to_numpy(y))
        return cautious(np.concatenate(logits), np.concatenate(candidates))


def inference(model):
    """Returns the function from a batch's x to logits, in inference mode.

    They are out of fold for a model with `folds` and its training examples.
    """
    return backend.compiled(model.held_out_logits, model.variables)
