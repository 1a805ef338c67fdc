"""P(S | y), how likely each set is given the true class, learnt from data."""

import numpy as np
from scipy import sparse
from scipy.special import gammaln
from scipy.special import log_softmax
from scipy.special import logsumexp
from scipy.special import softmax

from alim_keras.noise_rate import GUESS

# By what factor the temperature may change in each step. It begins late: with
# habits still unknown, doubt would explain what people confuse.
_FACTORS = (1.0,) * 8 + (1.25,) * 8 + (1.05,) * 14
_LIMITS = (0.1, 10.0)
# A pair of classes counts as if so many sets of average frequency were added,
# and a size of set as if so many sets of the common rate were.
_PAIR = 5.0
_SHRINKAGE = 20.0
_GUESS_EXAMPLES = 5.0
_START = 0.1
# Above this many numbers all classes are taken to be equally popular.
_LARGEST = 5e7
# The temperature is chosen by examples of about this many numbers.
_PROBE = 5_000_000
_TINY = np.finfo("float32").tiny


class SetModel:
    """P(S | y) where people confuse some classes more than others.

    Assumption 1 of the paper, without "all sets of a size are equally
    likely": given the true class y and the size s, the set holds y with
    probability `1 - eta_s`, and among the sets that do, as among those that
    do not, S has the probability `prod_j r_yj / e`, over the classes j in S
    other than y. `r_yj` are the odds that j stands in a set of y; e is the
    sum of that product over all such sets (an elementary symmetric polynomial
    of `r_y`), so only ratios of r matter. With all r = 1 this is
    `ops.instance_lambda`'s `"size"`.

    Expectation-maximisation: the E-step is `P(y | x, S) ~ P(y | x)^(1/T)
    P(S | y)`, the M-step counts: eta_s by size, drawn to the common rate
    where a size is rare, and r as if each class came into the sets of y
    independently, drawn to 1 where a class is rare. The temperature T rises
    or falls a little in each step, as the likelihood asks: networks that
    learn from noise are less sure than they could be, others more. Sets that
    hold all classes carry no information and are left out; those larger than
    any learnt from are taken to be equally likely.

    Args:
        probabilities: Floats `(n, C)`, of networks that did not fit the sets.
        sets: Bool `(n, C)`.

    Attributes:
        rate_by_size: Floats `(C + 1,)`, eta of each size of set.
        popularity: Floats `(C, C)`, r; its diagonal is 1.
        temperature: Float, T.
        value: Float, eta of all sets.
    """

    def __init__(self, probabilities, sets):
        num_classes = sets.shape[1]
        sizes = sets.sum(axis=1)
        partial = sizes < num_classes
        self._largest = int(sizes[partial].max(initial=0))
        if num_classes**2 * self._largest > _LARGEST:
            self._largest = 0
        self.popularity = np.ones((num_classes, num_classes), "float32")
        self.rate_by_size = np.full(num_classes + 1, _START)
        self.rate_by_size[num_classes] = 0.0
        self.temperature = 1.0
        self._update()
        logs = _logs(probabilities)
        for factor in _FACTORS:
            belief = self._fit_temperature(logs, sets, factor)
            self._fit_rates(belief, sets)
            if self._largest:
                self._fit_popularity(belief[partial], sets[partial])
            self._update()
        self.value = float(self.rate_by_size[sizes].mean())

    def belief(self, probabilities, sets):
        """Returns P(y | x, S), float32 `(n, C)`."""
        scaled = self.scaled(probabilities)
        return softmax(scaled + self._log_likelihood(sets), axis=1)

    def scaled(self, probabilities):
        """Returns the logarithm of `P^(1/T)`, normalised, `(n, C)`."""
        return self._scaled(_logs(probabilities))

    def _scaled(self, logs):
        return log_softmax(logs / np.float32(self.temperature), axis=1)

    def _log_likelihood(self, sets):
        """Returns log P(S | y, size of S), float32 `(n, C)`."""
        sizes = sets.sum(axis=1)
        values = np.where(sets, self._inside[sizes], self._outside[sizes])
        learnt = np.where((sizes <= self._largest)[:, None], sets, False)
        values += sparse.csr_array(learnt, dtype="float32") @ (
            self._log_popularity.T
        )
        return values

    def _fit_temperature(self, logs, sets, factor):
        """Changes the temperature by the factor, if that fits better.

        Returns the belief at the new one: the E-step.
        """
        likelihood = self._log_likelihood(sets)
        before, fits = self.temperature, {}
        part = slice(None, None, max(1, logs.size // _PROBE))
        for change in dict.fromkeys((1.0, factor, 1 / factor)):
            self.temperature = float(np.clip(before * change, *_LIMITS))
            joint = self._scaled(logs[part]) + likelihood[part]
            fit = logsumexp(joint, axis=1).sum(dtype="float64")
            fits[self.temperature] = fit
        self.temperature = max(fits, key=fits.get)
        return softmax(likelihood + self._scaled(logs), axis=1)

    def _fit_rates(self, belief, sets):
        sizes, num_classes = sets.sum(axis=1), sets.shape[1]
        outside = np.where(sets, 0, belief).sum(axis=1, dtype="float64")
        count = np.bincount(sizes, minlength=num_classes + 1)
        wrong = np.bincount(sizes, outside, num_classes + 1)
        # A full set cannot be wrong and tells nothing about the others.
        count[num_classes] = wrong[num_classes] = 0
        common = wrong.sum() + _GUESS_EXAMPLES * GUESS
        common /= count.sum() + _GUESS_EXAMPLES
        rates = (wrong + _SHRINKAGE * common) / (count + _SHRINKAGE)
        rates[num_classes] = 0.0
        self.rate_by_size = rates

    def _fit_popularity(self, belief, sets):
        members = sparse.csr_array(sets, dtype="float32")
        counts = (members.T @ belief).T
        np.fill_diagonal(counts, 0)
        total = belief.sum(axis=0)[:, None]
        mean = counts.sum(axis=1, keepdims=True) / max(len(counts) - 1, 1)
        odds = (counts + _PAIR) / (total - counts + _PAIR)
        # Over the odds of an average class, so that a rare y has r = 1.
        self.popularity = odds * (total - mean + _PAIR) / (mean + _PAIR)
        np.fill_diagonal(self.popularity, 1.0)

    def _update(self):
        """Derives the logarithms that `_log_likelihood` adds up."""
        num_classes = len(self.popularity)
        size = np.arange(num_classes + 1)
        # How many sets of k of the C - 1 other classes there are.
        others = np.maximum(num_classes - 1 - size, 0)
        sums = gammaln(num_classes) - gammaln(size + 1) - gammaln(others + 1)
        inside = np.tile(sums[:-1, None], num_classes)
        outside = np.tile(sums[:, None], num_classes)
        logs = np.log(self.popularity)
        if self._largest:
            weighted = log_symmetric(logs, self._largest).T
            inside[: self._largest] = weighted[:-1]
            outside[1 : self._largest + 1] = weighted[1:]
        rates = np.clip(self.rate_by_size, 1e-9, 1 - 1e-9)[:, None]
        rates[num_classes] = 0.0
        self._log_popularity = logs
        # By size of the set and true class. No class is outside a full set.
        self._inside = np.zeros((num_classes + 1, num_classes), "float32")
        self._inside[1:] = np.log1p(-rates[1:]) - inside
        self._outside = np.zeros_like(self._inside)
        self._outside[1:-1] = np.log(rates[1:-1]) - outside[1:-1]


def log_symmetric(logs, largest):
    """Returns logarithms of elementary symmetric polynomials, row by row.

    Args:
        logs: Floats `(C, C)`: logarithms; a row's own place is left out.
        largest: The highest degree.

    Returns:
        Floats `(C, largest + 1)`: for each row and degree k the sum over all
        k of its C - 1 numbers of their product; -inf where there is none.

    Example:

    >>> np.exp(log_symmetric(np.log([[1, 2, 3], [1, 1, 1], [1, 1, 1]]), 2))
    [[1, 5, 6], [1, 2, 1], [1, 2, 1]]
    """
    sums = np.full((len(logs), largest + 1), -np.inf)
    sums[:, 0] = 0.0
    for column, values in enumerate(np.asarray(logs, "float64").T):
        values = values.copy()
        values[column] = -np.inf
        sums[:, 1:] = np.logaddexp(sums[:, 1:], sums[:, :-1] + values[:, None])
    return sums


def _logs(probabilities):
    return np.log(np.maximum(probabilities, _TINY))
