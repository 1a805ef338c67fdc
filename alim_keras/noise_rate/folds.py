"""Out-of-fold predictions, and the estimate that rests on them."""

import dataclasses
import heapq

import numpy as np

from alim_keras.errors import ConfigError
from alim_keras.noise_rate.em import em

FOLDS = 3


def out_of_fold(fit_predict, num_examples, folds=FOLDS, seed=0, groups=None):
    """Predicts every example by a network that was trained without it.

    Args:
        fit_predict: Function of two sorted int64 arrays of rows, those to
            train on and those to predict, that returns the logits of the
            latter, `(n, C)`. It is called once for each fold.
        num_examples: N.
        folds: k, at least 2. Defaults to `3`.
        seed: Of the split. Defaults to `0`.
        groups: Integers `(N,)` from 0: examples with the same number, such as
            identical images, come into one fold, so that no network is asked
            about an example whose twin it was trained on. A group of more
            than N/k examples is split up all the same. Defaults to None:
            every example for itself.

    Returns:
        A float array `(N, C)`.

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
    fold = _split(num_examples, folds, seed, groups)
    logits = None
    for number in range(folds):
        rows = np.flatnonzero(fold == number)
        found = np.asarray(fit_predict(np.flatnonzero(fold != number), rows))
        if logits is None:
            logits = np.empty((num_examples, found.shape[1]), found.dtype)
        logits[rows] = found
    return logits


def _split(num_examples, folds, seed, groups):
    """Returns the fold of each example, int64 `(N,)`."""
    stream = np.random.default_rng([seed, 0xF01D])
    order = stream.permutation(num_examples)
    fold = np.empty(num_examples, "int64")
    if groups is None:
        fold[order] = np.arange(num_examples) % folds
        return fold
    groups = np.asarray(groups)
    sizes = np.bincount(groups, minlength=1)
    # One picture in the place of many, say, that are lost: in one fold they
    # would leave too little to train on.
    sizes[sizes * folds > num_examples] = 1
    # Large groups first, each into the emptiest fold.
    order = order[np.argsort(-sizes[groups[order]], kind="stable")]
    emptiest = [(0, number) for number in range(folds)]
    place = {}
    for row, group in zip(order.tolist(), groups[order].tolist(), strict=True):
        if sizes[group] > 1 and group in place:
            fold[row] = place[group]
            continue
        count, number = emptiest[0]
        heapq.heapreplace(emptiest, (count + int(sizes[group]), number))
        fold[row] = place[group] = number
    return fold


def cv(fit_predict, candidates, folds=FOLDS, seed=0, groups=None):
    """Estimates eta by `em` on out-of-fold predictions of the training set.

    All training examples take part, so the interval is narrow where few are
    held out; it costs k trainings, each on (k - 1)/k of the examples.

    Args:
        fit_predict: See `out_of_fold`.
        candidates: Multi-hot array `(N, C)` of the training set.
        folds: k. Defaults to `3`.
        seed: Of the split. Defaults to `0`.
        groups: Integers `(N,)`: which examples come into one fold, see
            `out_of_fold`. A network that was trained on an example's twin
            knows the twin's set. Defaults to None.

    Returns:
        An `Estimate`, whose `posterior` is about all N examples.
    """
    logits = out_of_fold(fit_predict, len(candidates), folds, seed, groups)
    found = em(logits, candidates)
    return dataclasses.replace(
        found,
        method="cv",
        reason=f"{found.reason[:-1]} ({folds} networks, each trained without "
        "the images it predicts).",
        details={**found.details, "folds": folds},
    )
