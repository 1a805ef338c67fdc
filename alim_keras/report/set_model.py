"""How likely each set is, given the true class: learnt from predictions."""

import numpy as np
from scipy.special import log_softmax
from scipy.special import logsumexp
from scipy.special import softmax

from alim_keras.instance_lambda import instance_lambda
from alim_keras.noise_rate.em import GUESS
from alim_keras.noise_rate.em import SHRINKAGE

# By what factor the temperature may change in each step. It begins late: with
# habits still unknown, doubt would explain what people confuse.
_FACTORS = (1.0,) * 8 + (1.25,) * 8 + (1.05,) * 14
# A pair of classes counts as if so many sets of average frequency were added.
_PAIR = 5.0
_GUESS_EXAMPLES = 5.0
_START = 0.1
# Above this many numbers all classes are taken to be equally popular.
_LARGEST = 5e7
_LIMITS = (0.1, 10.0)
_TINY = np.finfo("float32").tiny


class SetModel:
    """P(S | y): people confuse a cat with a dog, not with a lorry.

    Assumption 1 of the paper, and in place of "all sets of a size are equally
    likely": given the true class y and the size s, the set holds y with
    probability `1 - eta_s`, and among the sets that do, as among those that
    do not, S has the probability `prod_j r_yj / e`, over the classes j in S
    other than y. `r_yj` says how much more often j stands in the sets of y
    than an average class does, and e is the sum of that product over all
    such sets (an elementary symmetric polynomial of `r_y`). With all r = 1
    this is `instance_lambda`'s `"size"`.

    Expectation-maximisation finds r and eta_s: the E-step is `P(y | x, S) ~
    P(y | x)^(1/T) P(S | y)`. r is drawn to 1 where a class is rare, eta_s to
    the common rate where a size is. The temperature T rises or falls a little
    in each step, as the likelihood tells: networks that learn from noise are
    less sure than they could be, others more.

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
        largest = int(sizes.max())
        self.popularity = np.ones((num_classes, num_classes))
        self.rate_by_size = np.full(num_classes + 1, _START)
        self._update(largest)
        self.temperature = 1.0
        weights = sets.astype("float32")
        expected = np.maximum(num_classes - 1, 1)
        for factor in _FACTORS:
            self._turn(probabilities, sets, factor)
            belief = self.belief(probabilities, sets)
            outside = np.where(sets, 0, belief).sum(axis=1, dtype="float64")
            self._rates(outside, sizes)
            if num_classes**2 * largest <= _LARGEST:
                counts = (belief.T @ weights).astype("float64")
                np.fill_diagonal(counts, 0)
                average = counts.sum(axis=1, keepdims=True) / expected
                self.popularity = (counts + _PAIR) / (average + _PAIR)
                np.fill_diagonal(self.popularity, 1.0)
            self._update(largest)
        self.value = float(self.rate_by_size[sizes].mean())

    def belief(self, probabilities, given):
        """Returns P(y | x, S), float32 `(n, C)`."""
        scaled = self.scaled(probabilities)
        return softmax(scaled + self._log_likelihood(given), axis=1)

    def scaled(self, probabilities):
        """Returns the logarithm of `P^(1/T)`, normalised, `(n, C)`."""
        logs = np.log(np.maximum(probabilities, _TINY))
        return log_softmax(logs / np.float32(self.temperature), axis=1)

    def _log_likelihood(self, given):
        sizes = given.sum(axis=1)
        found = given.astype("float32") @ self._log_popularity.T
        found += np.where(given, self._inside[sizes], self._outside[sizes])
        return found

    def _turn(self, probabilities, sets, factor):
        """Changes the temperature by the factor, if that fits better."""
        likelihood = self._log_likelihood(sets)
        fits = {}
        before = self.temperature
        for change in (1.0, factor, 1 / factor):
            self.temperature = float(np.clip(before * change, *_LIMITS))
            found = logsumexp(self.scaled(probabilities) + likelihood, axis=1)
            fits[self.temperature] = found.sum(dtype="float64")
        self.temperature = max(fits, key=fits.get)

    def lam(self, given):
        """Returns lambda of sets `(n, C)`, all classes equally popular."""
        num_classes = given.shape[1]
        sizes = given.sum(axis=1)
        rates = self.rate_by_size[sizes]
        return instance_lambda(rates, sizes, num_classes, "size")

    def _rates(self, outside, sizes):
        num_classes = len(self.rate_by_size) - 1
        count = np.bincount(sizes, minlength=num_classes + 1)
        wrong = np.bincount(sizes, outside, minlength=num_classes + 1)
        # A full set cannot be wrong and says nothing about the others.
        count[num_classes] = 0
        wrong[num_classes] = 0
        common = wrong.sum() + _GUESS_EXAMPLES * GUESS
        common /= count.sum() + _GUESS_EXAMPLES
        rates = (wrong + SHRINKAGE * common) / (count + SHRINKAGE)
        rates[num_classes] = 0.0
        self.rate_by_size = rates

    def _update(self, largest):
        """Derives the logarithms that `belief` adds up."""
        logs = np.log(self.popularity)
        sums = log_symmetric(logs, largest)
        rates = np.clip(self.rate_by_size[: largest + 1], 1e-9, 1 - 1e-9)
        self._log_popularity = logs.astype("float32")
        # By size of the set and true class; sizes above the largest one seen
        # are taken for as large.
        inside, outside = np.zeros((2, len(self.rate_by_size), len(logs)))
        for size in range(1, len(inside)):
            known = min(size, largest)
            inside[size] = np.log1p(-rates[known]) - sums[:, known - 1]
            outside[size] = np.log(rates[known]) - np.where(
                np.isfinite(sums[:, known]), sums[:, known], 0
            )
        self._inside = inside.astype("float32")
        self._outside = outside.astype("float32")


def log_symmetric(logs, largest):
    """Logarithms of the elementary symmetric polynomials of some rows.

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
    for place, column in enumerate(np.asarray(logs).T):
        one = column.copy()
        one[place] = -np.inf
        sums[:, 1:] = np.logaddexp(sums[:, 1:], sums[:, :-1] + one[:, None])
    return sums
