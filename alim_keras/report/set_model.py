"""How likely each set is, given the true class: learnt from predictions."""

import numpy as np
from scipy import sparse
from scipy.special import gammaln
from scipy.special import log_softmax
from scipy.special import logsumexp
from scipy.special import softmax

from alim_keras.instance_lambda import instance_lambda
from alim_keras.noise_rate.em import GUESS
from alim_keras.noise_rate.em import SHRINKAGE
from alim_keras.report.symmetric import expected_counts
from alim_keras.report.symmetric import log_symmetric

# By what factor the temperature may change in each step. It begins late: with
# habits still unknown, doubt would explain what people confuse.
_FACTORS = (1.0,) * 8 + (1.25,) * 8 + (1.05,) * 14
# A pair of classes counts as if so many sets of average frequency were added.
_PAIR = 5.0
# Improvements of r in each M-step; every one makes the sets likelier.
_INNER = 3
_GUESS_EXAMPLES = 5.0
_START = 0.1
# Above this many numbers all classes are taken to be equally popular.
_LARGEST = 5e7
_LIMITS = (0.1, 10.0)
# The temperature is chosen by examples of about this many numbers.
_PROBE = 5_000_000
_TINY = np.finfo("float32").tiny


class SetModel:
    """P(S | y): people confuse a cat with a dog, not with a lorry.

    Assumption 1 of the paper, and in place of "all sets of a size are equally
    likely": given the true class y and the size s, the set holds y with
    probability `1 - eta_s`, and among the sets that do, as among those that
    do not, S has the probability `prod_j r_yj / e`, over the classes j in S
    other than y. `r_yj` says how popular j is in the sets of y: two classes j
    stand there in the ratio of their r, where one of them does. e is the sum
    of that product over all such sets (an elementary symmetric polynomial of
    `r_y`). With all r = 1 this is `instance_lambda`'s `"size"`.

    Expectation-maximisation finds r and eta_s: the E-step is `P(y | x, S) ~
    P(y | x)^(1/T) P(S | y)`, the M-step of r a few rounds of
    `expected_counts`. r is drawn to 1 where a class is rare, eta_s to
    the common rate where a size is. The temperature T rises or falls a little
    in each step, as the likelihood tells: networks that learn from noise are
    less sure than they could be, others more. Sets that hold all classes say
    nothing and are left out; those larger than any learnt from are taken to be
    equally likely.

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
        self.popularity = np.ones((num_classes, num_classes))
        self.rate_by_size = np.full(num_classes + 1, _START)
        self.rate_by_size[num_classes] = 0.0
        self.temperature = 1.0
        if num_classes**2 * self._largest > _LARGEST:
            self._largest = 0
        self._update()
        logs = _logs(probabilities)
        for factor in _FACTORS:
            belief = self._turn(logs, sets, factor)
            outside = np.where(sets, 0, belief).sum(axis=1, dtype="float64")
            self._rates(outside, sizes)
            if self._largest:
                self._popularity(belief[partial], sets[partial])
            self._update()
        self.value = float(self.rate_by_size[sizes].mean())

    def belief(self, probabilities, given):
        """Returns P(y | x, S), float32 `(n, C)`."""
        scaled = self.scaled(probabilities)
        return softmax(scaled + self._log_likelihood(given), axis=1)

    def scaled(self, probabilities):
        """Returns the logarithm of `P^(1/T)`, normalised, `(n, C)`."""
        return self._scaled(_logs(probabilities))

    def lam(self, given):
        """Returns lambda of sets `(n, C)`, all classes equally popular."""
        num_classes = given.shape[1]
        sizes = given.sum(axis=1)
        rates = self.rate_by_size[sizes]
        return instance_lambda(rates, sizes, num_classes, "size")

    def _scaled(self, logs):
        return log_softmax(logs / np.float32(self.temperature), axis=1)

    def _log_likelihood(self, given):
        sizes = given.sum(axis=1)
        found = self._outside[sizes]
        rows, classes = np.nonzero(given)
        found[rows, classes] = self._inside[sizes[rows], classes]
        learnt = sizes[rows] <= self._largest
        found += _sparse(given.shape, rows[learnt], classes[learnt]) @ (
            self._log_popularity.T
        )
        return found

    def _turn(self, logs, sets, factor):
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
        likelihood += self._scaled(logs)
        return softmax(likelihood, axis=1)

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

    def _popularity(self, belief, sets):
        """The M-step of r, of sets that lack some class."""
        num_classes = sets.shape[1]
        sizes = sets.sum(axis=1)
        members = _sparse(sets.shape, *np.nonzero(sets))
        counts = (members.T @ belief).T.astype("float64")
        np.fill_diagonal(counts, 0)
        # How many classes other than the true one were drawn, and how often.
        draws = np.zeros((num_classes, self._largest + 1))
        for size in np.unique(sizes):
            rows = sizes == size
            whole = belief[rows].sum(axis=0, dtype="float64")
            inside = np.where(sets[rows], belief[rows], 0)
            inside = inside.sum(axis=0, dtype="float64")
            draws[:, size] += whole - inside
            if size:
                draws[:, size - 1] += inside
        for _ in range(_INNER):
            expected = expected_counts(self.popularity, draws)
            self.popularity = (counts + _PAIR) / (expected + _PAIR)
            np.fill_diagonal(self.popularity, 1.0)

    def _update(self):
        """Derives the logarithms that `belief` adds up."""
        num_classes = len(self.popularity)
        degrees = np.arange(num_classes + 1)
        # How many sets of k of the C - 1 other classes there are.
        others = np.maximum(num_classes - 1 - degrees, 0)
        sums = gammaln(num_classes) - gammaln(degrees + 1) - gammaln(others + 1)
        sums = np.tile(sums, (num_classes, 1))
        logs = np.log(self.popularity)
        learnt = slice(1, self._largest + 1)
        inside, outside = sums[:, :-1].T.copy(), sums.T.copy()
        if self._largest:
            found = log_symmetric(logs, self._largest).T
            inside[: self._largest] = found[:-1]
            outside[learnt] = found[1:]
        rates = np.clip(self.rate_by_size, 1e-9, 1 - 1e-9)[:, None]
        rates[num_classes] = 0.0
        self._log_popularity = logs.astype("float32")
        # By size of the set and true class. Nobody is outside a full set.
        self._inside = np.zeros((num_classes + 1, num_classes), "float32")
        self._inside[1:] = np.log1p(-rates[1:]) - inside
        self._outside = np.zeros_like(self._inside)
        self._outside[1:-1] = np.log(rates[1:-1]) - outside[1:-1]


def _sparse(shape, rows, classes):
    ones = np.ones(len(rows), "float32")
    return sparse.csr_array((ones, (rows, classes)), shape=shape)


def _logs(probabilities):
    return np.log(np.maximum(probabilities, _TINY))
