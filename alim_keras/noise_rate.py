"""Estimating eta, the share of candidate sets that miss the true label.

docs/noise_rate.md has the mathematics, and how far off each estimator was.
"""

import dataclasses

import keras
import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.optimize import fminbound
from scipy.special import expit
from scipy.special import logit
from scipy.special import softmax

from alim_keras import backend
from alim_keras import draws
from alim_keras.data.annotators import likelihood_of_members
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

# Logarithms of the temperatures tried first; the best is refined.
_TEMPERATURES = np.linspace(np.log(0.1), np.log(10.0), 17)
# A size counts as if this many examples of the common rate were added.
_SHRINKAGE = 20.0
# The belief before any data: as if five examples of this rate were seen. It
# decides only where the network knows next to nothing.
GUESS = 0.2
_GUESS_EXAMPLES = 5.0
# Half the 95 % quantile of chi-square with one degree of freedom.
_DROP = 1.9207
# The likelihood is profiled over factors on the odds up to exp(14); a
# temperature takes part if it fits at most this much worse than the best.
_LARGEST_SHIFT = 14.0
_PLAUSIBLE = 20.0
_SMALLEST = 1e-9
# So many true labels end the doubt.
ENOUGH_LABELS = 50
# Of `cautious`: the widest interval whose middle is used, what share of the
# answers counts as sure, and how far from chance to them all they must be.
_WIDE, _SUREST, _SKILL = 0.125, 0.8, 0.25


@dataclasses.dataclass(frozen=True)
class Estimate:
    """An estimate of eta, the share of sets that miss the true label.

    Args:
        value: Float in `[0, 1]`.
        low, high: Floats, the ends of the 95 % interval.
        method: `"em"`, `"votes"` or `"annotated"`.
        reason: String, one sentence: what the estimate rests on.
        details: Dict of plain values that explain the estimate.
    """

    value: float
    low: float
    high: float
    method: str
    reason: str
    details: dict = dataclasses.field(default_factory=dict)

    def describe(self):
        """Returns one line for people."""
        return (
            f"Noise rate {self.value:.3f} (95 % interval {self.low:.3f} to "
            f"{self.high:.3f}) by {self.method}: {self.reason}"
        )


def em(logits, candidates):
    """Estimates eta from predictions for examples that were not trained on.

    Under Assumption 1 of the paper the set S of size s has the likelihood

        P(S | x) ~ (1 - eta_s) m + eta_s (1 - m) s / (C - s),

    m being the probability that the network gives to S. The temperature T of
    `m = sum_S softmax(logits / T)` is fitted along; rare sizes are drawn to
    the common rate, and that weakly to 0.2, see docs/noise_rate.md. The answer
    is a lower bound where wrong labels resemble the image, see `cautious`.

    Args:
        logits: Float array `(n, C)`, of examples that the network was *not*
            trained on: it has learnt to agree with the sets of the others.
        candidates: Multi-hot array `(n, C)`, the noisy sets.

    Returns:
        An `Estimate`. The interval is that of the profile likelihood of a
        common factor on all odds. `details`: `examples`, `temperature`,
        `rate_by_size` (C + 1; the common rate for sizes that do not occur).

    Raises:
        DataError: If shapes differ, there is no example, logits are not
            finite or a set is empty.

    Example:

    >>> estimate = em(np.log([[0.9, 0.05, 0.05]] * 40),
    ...               [[1, 0, 0]] * 30 + [[0, 1, 0]] * 10)
    >>> 0.1 < estimate.value < 0.3
    True

    Reference:
    - [Guo et al., 2017](https://arxiv.org/abs/1706.04599) (temperature)
    """
    logits, candidates = _checked(logits, candidates)
    usable = ~candidates.all(axis=1)
    count, share = int(usable.sum()), float(usable.mean())
    if not count:
        reason = "every set holds all classes, and such a set cannot be wrong."
        return Estimate(0.0, 0.0, 0.0, "em", reason, details={"examples": 0})
    fit = _Fit(logits[usable], candidates[usable])
    low, high = fit.interval()
    value = fit.mean(fit.rates)
    rate_by_size = np.full(logits.shape[1] + 1, fit.common)
    rate_by_size[fit.sizes] = fit.rates
    rate_by_size[-1] = 0.0
    reason = (
        f"it fits the {count} candidate sets best, by the network's "
        "predictions for images it was not trained on; a lower bound where "
        "wrong labels resemble the image."
    )
    details = {
        "examples": count,
        "temperature": float(fit.temperature),
        "rate_by_size": rate_by_size.tolist(),
    }
    low, high = share * min(low, value), share * max(high, value)
    return Estimate(share * value, low, high, "em", reason, details)


def _checked(logits, candidates):
    """Returns logits as float64 and candidate sets as bool, both `(n, C)`."""
    logits = np.asarray(logits, "float64")
    candidates = np.asarray(candidates) > 0
    if logits.ndim != 2 or logits.shape != candidates.shape or not logits.size:
        raise DataError(
            "Logits and candidate sets must both be (n, C), with at least one "
            f"example. Received: logits {logits.shape}, candidates "
            f"{candidates.shape}"
        )
    if not np.isfinite(logits).all():
        raise DataError(
            "Logits must be finite; the network that made them has diverged. "
            f"Received: {int((~np.isfinite(logits)).sum())} that are not"
        )
    empty = np.flatnonzero(~candidates.any(axis=1))
    if len(empty):
        raise DataError(
            "Every candidate set must hold a class. Received: "
            f"{len(empty)} empty sets, first row {empty[0]}"
        )
    return logits, candidates


def inside_mass(logits, candidates, temperature=1.0):
    """Returns `sum_S softmax(logits / T)`, `(n,)` float64."""
    probabilities = softmax(np.asarray(logits, "float64") / temperature, axis=1)
    return np.minimum((probabilities * candidates).sum(axis=1), 1.0)


class _Fit:
    """Likelihood over temperatures and rates, for sets that are not full.

    `temperature`, the `common` rate and the `rates` of `sizes` fit best.
    """

    def __init__(self, logits, candidates):
        self._logits, self._candidates = logits, candidates
        sizes = candidates.sum(axis=1)
        self.sizes, self._group, self._counts = np.unique(
            sizes, return_inverse=True, return_counts=True
        )
        self._ratio = sizes / (logits.shape[1] - sizes)
        self._tried = []
        coarse = [self._misfit(t) for t in _TEMPERATURES]
        start = _TEMPERATURES[np.argmin(coarse)]
        step = _TEMPERATURES[1] - _TEMPERATURES[0]
        fminbound(self._misfit, start - step, start + step, xtol=1e-3)
        self._best = min(self._tried, key=lambda tried: tried[0])
        _, self.temperature, _, self.common, self.rates = self._best

    def mean(self, rates):
        """Returns the rate of all examples from those of the sizes."""
        return float(rates @ self._counts / self._counts.sum())

    def _misfit(self, log_temperature):
        """Minus the likelihood at a temperature, with the best rates."""
        temperature = np.exp(log_temperature)
        mass = inside_mass(self._logits, self._candidates, temperature)
        common = self._rate(mass, slice(None), _GUESS_EXAMPLES, GUESS)
        groups = [self._group == group for group in range(len(self.sizes))]
        rates = np.array(
            [self._rate(mass, g, _SHRINKAGE, common) for g in groups]
        )
        prior = GUESS * np.log(common) + (1 - GUESS) * np.log1p(-common)
        misfit = -self._likelihood(mass, rates) - _GUESS_EXAMPLES * prior
        self._tried.append((misfit, temperature, mass, common, rates))
        return misfit

    def _likelihood(self, mass, rates):
        rates = rates[self._group]
        terms = (1.0 - rates) * mass + rates * (1.0 - mass) * self._ratio
        return float(np.log(np.maximum(terms, 1e-300)).sum())

    def _rate(self, mass, members, strength, centre):
        """The best rate with `strength` examples of the rate `centre` added."""
        mass, ratio = mass[members], self._ratio[members]
        slope = (1.0 - mass) * ratio - mass

        def score(rate):
            added = centre / rate - (1.0 - centre) / (1.0 - rate)
            return (slope / (mass + rate * slope)).sum() + strength * added

        if score(_SMALLEST) <= 0:
            return 0.0
        return brentq(score, _SMALLEST, 1.0 - _SMALLEST)

    def interval(self):
        """Returns the 95 % interval, by profile likelihood over all odds."""
        limit = self._best[0] + _PLAUSIBLE
        plausible = [tried[2] for tried in self._tried if tried[0] < limit]
        log_odds = logit(np.clip(self.rates, 1e-6, 1 - 1e-6))

        def profile(shift):
            rates = expit(log_odds + shift)
            return max(self._likelihood(mass, rates) for mass in plausible)

        grid = np.linspace(-_LARGEST_SHIFT, _LARGEST_SHIFT, 57)
        top = max(grid, key=profile)
        top = fminbound(lambda s: -profile(s), top - 0.5, top + 0.5, xtol=1e-3)
        level = profile(top) - _DROP
        ends = [0.0, 1.0]
        for side, end in enumerate((-_LARGEST_SHIFT, _LARGEST_SHIFT)):
            # Where the likelihood hardly falls, the end stays 0 or 1.
            if profile(end) < level:
                crossing = brentq(lambda s: profile(s) - level, end, top)
                ends[side] = self.mean(expit(log_odds + crossing))
        return ends


def shrunk_rates(wrong, count):
    """Returns rates, each drawn to the common one, and that to `GUESS`.

    Of expected numbers of wrong sets and numbers of sets, by size.
    """
    common = wrong.sum() + _GUESS_EXAMPLES * GUESS
    common /= count.sum() + _GUESS_EXAMPLES
    return (wrong + _SHRINKAGE * common) / (count + _SHRINKAGE)


def annotated(labels, candidates):
    """Estimates eta as the share of looked-up labels outside their set.

    The examples must be a random sample of the training set. The interval is
    Wilson's.

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
        f"true labels that are not in their set: {wrong} of {count} that were "
        f"given; about {3 * count} more would halve the interval."
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
        `alone`, the share of votes for a class that nobody else gave.
        `details`: `examples`, `alone`.
    """
    members = likelihood_of_members(votes, sets)
    outside = 1 - np.add.reduceat(members, sets.indptr[:-1], dtype="float64")
    voted = np.unique(votes.rows)
    value = float(np.clip(outside[voted], 0, 1).mean())
    frame = pd.DataFrame({"row": votes.rows, "given": votes.classes})
    is_alone = frame.groupby(["row", "given"])["row"].transform("size") == 1
    has_others = frame.groupby("row")["row"].transform("size") > 1
    alone = float(is_alone[has_others].mean())
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
        groups: Integers `(N,)`, or None: examples of one group come into one
            fold, see `draws.folds`.

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
    answers = [
        fit_predict(np.flatnonzero(fold != k), np.flatnonzero(fold == k))
        for k in range(folds)
    ]
    order = np.argsort(np.argsort(fold, kind="stable"))
    return np.concatenate(answers)[order]


def is_chance(missed, sets, skill=_SKILL):
    """Whether answers miss sets nearly as often as random ones would."""
    return missed.mean() > (1 - skill) * (1 - sets.mean())


def cautious(logits, candidates):
    """`em`, with an interval that allows for mistakes that people make.

    `em` takes a wrong label that resembles its image for doubt of the network.
    The upper end here is the share of sets that miss the network's answer,
    among the four fifths of the answers for each class that it is surest of.
    Where the ends are more than 0.125 apart, or the answers hardly meet more
    sets than chance, the value is the lower end, in the latter case 0, see
    docs/noise_rate.md. Arguments and errors are those of `em`.
    """
    estimate = em(logits, candidates)
    logits = np.asarray(logits, "float64")
    candidates = np.asarray(candidates) > 0
    usable = ~candidates.all(axis=1)
    if not usable.any():
        return estimate
    answers, sets = softmax(logits[usable], axis=1), candidates[usable]
    chosen = answers.argmax(axis=1)
    missed = ~sets[np.arange(len(sets)), chosen]
    by_answer = pd.Series(-answers.max(axis=1)).groupby(chosen)
    place = (by_answer.rank(method="first") - 1) / by_answer.transform("size")
    surest = missed[place < _SUREST]
    high = usable.mean() * wilson(int(surest.sum()), len(surest))[1]
    low, high = estimate.low, max(estimate.high, float(high))
    if is_chance(missed, sets):
        low = 0.0
    details = {**estimate.details, "missed": float(missed.mean())}
    value, reason = estimate.value, estimate.reason
    if high - low > _WIDE:
        rates = np.array(details["rate_by_size"])
        rates *= low / max(value, 1e-9)
        details["rate_by_size"] = np.minimum(rates, 1.0).tolist()
        value = low
        reason = (
            "its lower end, for wrong labels that fall at random; more if they "
            f"resemble the image. To know it, look up {ENOUGH_LABELS} labels "
            "of a random sample: a file id,label for --known_labels."
        )
    return Estimate(value, low, high, "em", reason, details)


class HeldOut:
    """Estimates eta by `cautious`, from a held-out part of the training set.

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
        """Returns the `Estimate` after an epoch, counted from 0."""
        if self._model is not model:
            self._model, self._infer = model, inference(model)
        return cautious(*self._infer(self.data))


def inference(model, function=None):
    """Returns the function from batches `(x, y)` to logits and y, as arrays.

    Of a model with `folds` and its training examples they are out of fold.
    Another `function` of x and the model's variables takes their place.
    """
    infer = backend.compiled(function or model.held_out_logits, model.variables)

    def run(batches):
        pairs = ((infer(x), y) for x, y in batches)
        parts = (map(keras.ops.convert_to_numpy, pair) for pair in pairs)
        return tuple(map(np.concatenate, zip(*parts)))

    return run
