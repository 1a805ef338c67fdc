"""Expectation-maximisation: the noise rate from predictions alone."""

import numpy as np
from scipy.special import softmax

from alim_keras.instance_lambda import instance_lambda
from alim_keras.noise_rate.checks import check_pairs
from alim_keras.noise_rate.estimate import Estimate

# Temperatures tried first, and around the best of them.
_COARSE = np.exp(np.linspace(np.log(0.1), np.log(10.0), 33))
_FINE = np.exp(np.linspace(-0.15, 0.15, 9))
# A size counts as if this many examples of the common rate were added.
SHRINKAGE = 20.0
# What is believed before any data: as if five examples of this rate were seen.
# It decides only where the network knows next to nothing.
GUESS = 0.2
_GUESS_EXAMPLES = 5.0
# Half the 95 % quantile of chi-square with one degree of freedom.
_DROP = 1.9207
# Factors on the odds at which the likelihood is profiled, as logarithms, and
# how far below the best a temperature may fit to take part.
_SHIFTS = np.linspace(-14.0, 14.0, 141)
_PLAUSIBLE = 20.0
_TOO_WIDE = 0.5
_SMALLEST = 1e-9


def em(logits, candidates, shrinkage=SHRINKAGE):
    """Estimates eta from predictions for examples that were not trained on.

    Under Assumption 1 of the paper the set S of size s has the likelihood

        P(S | x) ~ (1 - eta_s) m + eta_s (1 - m) s / (C - s),

    m being the probability that the network gives to S, since all sets of a
    size that hold the true label are equally likely, and so are all that do
    not. The E-step is `posterior`, the M-step the mean posterior of the
    examples of a size. Networks are sure of too much, so the temperature T of
    `m = sum_S softmax(logits / T)` is fitted along, by the same likelihood.
    Each size has a rate of its own, drawn to the common one where a size is
    rare: no protocol is assumed. A weak prior, five examples of a rate of
    0.2, keeps the answer sensible where the network has learnt nothing.

    Args:
        logits: Float array `(n, C)`, of examples that the network was *not*
            trained on: it has learnt to agree with the sets of the others.
        candidates: Multi-hot array `(n, C)`, the noisy sets.
        shrinkage: How many examples of the common rate are added to each
            size. Defaults to `20.0`.

    Returns:
        An `Estimate`. The interval is that of the profile likelihood of a
        common factor on the odds of all rates, over T. `details` holds
        `temperature`, `rate_by_size` (a list of C + 1, the entry of sizes
        that do not occur is the common rate) and `examples`.

    Raises:
        DataError: If shapes differ, logits are not finite, or nothing is
            there.

    Example:

    >>> found = em(np.log([[0.9, 0.05, 0.05]] * 40),
    ...            [[1, 0, 0]] * 30 + [[0, 1, 0]] * 10)
    >>> 0.1 < found.value < 0.3
    True

    Reference:
    - [Guo et al., 2017](https://arxiv.org/abs/1706.04599) (temperature)
    """
    logits, candidates = check_pairs(logits, candidates)
    count, num_classes = logits.shape
    sizes = candidates.sum(axis=1)
    usable = sizes < num_classes
    if not usable.any():
        return Estimate(
            0.0,
            0.0,
            0.0,
            "em",
            "every candidate set holds all classes, and such a set cannot "
            "be wrong.",
            posterior=np.zeros(count),
            details={"examples": 0},
        )
    fit = _Fit(logits[usable], candidates[usable], shrinkage)
    fit.try_temperatures(_COARSE)
    fit.try_temperatures(fit.best_temperature * _FINE)
    share = float(usable.mean())
    rates = fit.rates()
    low, high = fit.interval()
    value = fit.mean(rates)
    by_size = np.full(num_classes + 1, fit.common())
    by_size[fit.sizes] = rates
    by_size[num_classes] = 0.0
    mass = inside_mass(logits, candidates, fit.best_temperature)
    return Estimate(
        value=share * value,
        low=share * min(low, value),
        high=share * max(high, value),
        method="em",
        reason=_reason(int(usable.sum()), high - low),
        posterior=posterior(mass, sizes, num_classes, by_size),
        details={
            "examples": int(usable.sum()),
            "temperature": float(fit.best_temperature),
            "rate_by_size": [float(rate) for rate in by_size],
        },
    )


def inside_mass(logits, candidates, temperature=1.0):
    """Returns `sum_S softmax(logits / T)`, `(n,)` float64."""
    probabilities = softmax(np.asarray(logits, "float64") / temperature, axis=1)
    return np.minimum((probabilities * candidates).sum(axis=1), 1.0)


def posterior(mass, sizes, num_classes, rate_by_size):
    """Probability that each set is wrong: the E-step.

    Eq. 3's mass outside S with the closed form's lambda,
    `lambda (1 - m) / (m + lambda (1 - m))`.

    Args:
        mass: Array `(n,)`, the probability that the network gives to S.
        sizes: Integers `(n,)`.
        num_classes: C.
        rate_by_size: Array `(C + 1,)`, eta of each size.

    Returns:
        A float64 array `(n,)`.
    """
    rates = np.asarray(rate_by_size, "float64")[sizes]
    lam = instance_lambda(rates, sizes, num_classes, "size")
    outside = lam * (1.0 - mass)
    return outside / np.maximum(mass + outside, _SMALLEST)


def _reason(count, width):
    if width > _TOO_WIDE:
        return (
            f"the network's predictions for {count} images it was not trained "
            "on say next to nothing yet, so this is hardly more than a guess."
        )
    return (
        f"it fits {count} candidate sets best, given the network's predictions "
        "for images it was not trained on."
    )


class _Fit:
    """Likelihood over temperatures and rates, for sets that are not full."""

    def __init__(self, logits, candidates, shrinkage):
        order = np.argsort(candidates.sum(axis=1), kind="stable")
        self.logits, self.candidates = logits[order], candidates[order]
        sizes = self.candidates.sum(axis=1)
        self.sizes, self.starts, self.group, self.counts = np.unique(
            sizes, return_index=True, return_inverse=True, return_counts=True
        )
        self.ratio = sizes / (logits.shape[1] - sizes)
        self.shrinkage = shrinkage
        self.temperatures = np.zeros(0)
        self.masses = np.zeros((0, len(sizes)))
        self.by_size = np.zeros((0, len(self.sizes)))
        self.fits = np.zeros(0)

    def try_temperatures(self, temperatures):
        """Adds the best rates, and their likelihood, at each temperature."""
        masses = np.stack(
            [inside_mass(self.logits, self.candidates, t) for t in temperatures]
        )
        common = self._common(masses)
        rates = self._solve(masses, self.starts, self.shrinkage, common)
        fits = (
            self._likelihood(masses, rates)
            + _GUESS_EXAMPLES
            * (GUESS * np.log(common) + (1 - GUESS) * np.log1p(-common)).ravel()
        )
        self.temperatures = np.append(self.temperatures, temperatures)
        self.masses = np.concatenate([self.masses, masses])
        self.by_size = np.concatenate([self.by_size, rates])
        self.fits = np.append(self.fits, fits)

    @property
    def best(self):
        return int(np.argmax(self.fits))

    @property
    def best_temperature(self):
        return self.temperatures[self.best]

    def rates(self):
        """Rates of the sizes at the best temperature."""
        return self.by_size[self.best]

    def common(self):
        """The one rate that fits best at the best temperature."""
        return float(self._common(self.masses[self.best][None])[0, 0])

    def mean(self, rates):
        return float(rates @ self.counts / self.counts.sum())

    def _terms(self, masses, rates):
        """The likelihood of each set, `(temperatures, n)`."""
        rates = rates[..., self.group]
        found = (1.0 - rates) * masses + rates * (1.0 - masses) * self.ratio
        return np.maximum(found, 1e-300)

    def _likelihood(self, masses, rates):
        return np.log(self._terms(masses, rates)).sum(axis=1)

    def _common(self, masses):
        centre = np.full((len(masses), 1), GUESS)
        return self._solve(masses, [0], _GUESS_EXAMPLES, centre)

    def _solve(self, masses, starts, strength, centre):
        """Where the derivative of the log likelihood is zero, by bisection.

        It is concave in each rate. `strength` examples of the rate `centre`
        are added to each group of sets that `starts` begins.
        """
        wrong = (1.0 - masses) * self.ratio
        slope = wrong - masses
        lengths = np.diff([*starts, masses.shape[1]])
        low = np.zeros((len(masses), len(lengths)))
        high = np.ones_like(low)
        for _ in range(40):
            middle = (low + high) / 2
            rates = np.repeat(middle, lengths, axis=1)
            terms = masses + rates * slope
            score = np.add.reduceat(
                slope / np.where(terms == 0, 1e-300, terms), starts, axis=1
            )
            score += strength * (centre / middle - (1 - centre) / (1 - middle))
            low = np.where(score > 0, middle, low)
            high = np.where(score > 0, high, middle)
        return np.where(high < 1e-6, 0.0, (low + high) / 2)

    def interval(self):
        """The 95 % interval of the mean rate, by the profile likelihood.

        All odds grow by a common factor; at each the best temperature counts.
        """
        plausible = self.masses[self.fits > self.fits.max() - _PLAUSIBLE]
        rates = np.clip(self.rates(), 1e-6, 1 - 1e-6)
        odds = np.exp(_SHIFTS)[:, None] * rates / (1 - rates)
        rates = odds / (1 + odds)
        fits = np.array(
            [
                self._likelihood(plausible, np.tile(each, (len(plausible), 1)))
                for each in rates
            ]
        ).max(axis=1)
        values = rates @ self.counts / self.counts.sum()
        inside = np.flatnonzero(fits > fits.max() - _DROP)
        return (
            self._crossing(values, fits, inside[0], -1),
            self._crossing(values, fits, inside[-1], 1),
        )

    def _crossing(self, values, fits, inside, step):
        """Where the likelihood leaves the interval, beside `inside`."""
        outside = inside + step
        if not 0 <= outside < len(values):
            # It hardly falls on the way to 0 or to 1.
            return float(step > 0)
        level = fits.max() - _DROP
        part = (fits[inside] - level) / (fits[inside] - fits[outside])
        return float(values[inside] + part * (values[outside] - values[inside]))
