"""Expectation-maximisation: the noise rate from predictions alone."""

import dataclasses

import numpy as np
from scipy.optimize import brentq
from scipy.optimize import fminbound
from scipy.special import expit
from scipy.special import logit
from scipy.special import softmax

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


@dataclasses.dataclass(frozen=True)
class Estimate:
    """An estimate of eta, the share of sets that miss the true label.

    Args:
        value: Float in `[0, 1]`.
        low: Float, lower end of the 95 % interval.
        high: Float, upper end.
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

    def as_dict(self):
        """Returns plain values for JSON."""
        return dataclasses.asdict(self)


def em(logits, candidates):
    """Estimates eta from predictions for examples that were not trained on.

    Under Assumption 1 of the paper the set S of size s has the likelihood

        P(S | x) ~ (1 - eta_s) m + eta_s (1 - m) s / (C - s),

    m being the probability that the network gives to S. The temperature T of
    `m = sum_S softmax(logits / T)` is fitted along, since networks are sure of
    too much. Each size has a rate of its own, drawn to the common one where it
    is rare. A weak prior, five examples of a rate of
    0.2, helps where the network has learnt little. Where wrong labels resemble
    the image, the network shares them, and the answer is a lower bound;
    `cautious` takes that into account.

    Args:
        logits: Float array `(n, C)`, of examples that the network was *not*
            trained on: it has learnt to agree with the sets of the others.
        candidates: Multi-hot array `(n, C)`, the noisy sets.

    Returns:
        An `Estimate`. The interval is that of the profile likelihood of a
        common factor on all odds. `details`: `examples`, `temperature`,
        `rate_by_size` (C + 1; the common rate for sizes that do not occur).

    Raises:
        DataError: As `check_pairs`.

    Example:

    >>> estimate = em(np.log([[0.9, 0.05, 0.05]] * 40),
    ...               [[1, 0, 0]] * 30 + [[0, 1, 0]] * 10)
    >>> 0.1 < estimate.value < 0.3
    True

    Reference:
    - [Guo et al., 2017](https://arxiv.org/abs/1706.04599) (temperature)
    """
    logits, candidates = check_pairs(logits, candidates)
    num_classes = logits.shape[1]
    usable = ~candidates.all(axis=1)
    count, share = int(usable.sum()), float(usable.mean())
    if not count:
        reason = "every set holds all classes, and such a set cannot be wrong."
        return Estimate(0.0, 0.0, 0.0, "em", reason, details={"examples": 0})
    fit = _Fit(logits[usable], candidates[usable])
    low, high = fit.interval()
    value = fit.mean(fit.rates)
    rate_by_size = np.full(num_classes + 1, fit.common)
    rate_by_size[fit.sizes] = fit.rates
    rate_by_size[num_classes] = 0.0
    reason = (
        f"it fits {count} candidate sets best, given the network's predictions "
        "for images it was not trained on; a lower bound where wrong labels "
        "resemble the image."
    )
    return Estimate(
        share * value,
        share * min(low, value),
        share * max(high, value),
        "em",
        reason,
        details={
            "examples": count,
            "temperature": float(fit.temperature),
            "rate_by_size": rate_by_size.tolist(),
        },
    )


def inside_mass(logits, candidates, temperature=1.0):
    """Returns `sum_S softmax(logits / T)`, `(n,)` float64."""
    probabilities = softmax(np.asarray(logits, "float64") / temperature, axis=1)
    return np.minimum((probabilities * candidates).sum(axis=1), 1.0)


def check_pairs(logits, candidates):
    """Returns logits as float64 and candidate sets as bool, both `(n, C)`.

    Raises:
        DataError: If shapes differ, there is no example, logits are not
            finite or a set is empty.
    """
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
        plausible = [
            mass for misfit, _, mass, *_ in self._tried if misfit < limit
        ]
        log_odds = logit(np.clip(self.rates, 1e-6, 1 - 1e-6))

        def shifted(shift):
            return expit(log_odds + shift)

        def profile(shift):
            at = shifted(shift)
            return max(self._likelihood(mass, at) for mass in plausible)

        grid = np.linspace(-_LARGEST_SHIFT, _LARGEST_SHIFT, 57)
        top = max(grid, key=profile)
        top = fminbound(lambda s: -profile(s), top - 0.5, top + 0.5, xtol=1e-3)
        level = profile(top) - _DROP
        ends = [0.0, 1.0]
        for side, end in enumerate((-_LARGEST_SHIFT, _LARGEST_SHIFT)):
            # Where the likelihood hardly falls, the end stays 0 or 1.
            if profile(end) < level:
                crossing = brentq(lambda s: profile(s) - level, end, top)
                ends[side] = self.mean(shifted(crossing))
        return tuple(ends)
