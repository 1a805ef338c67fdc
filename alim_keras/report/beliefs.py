"""P(y | x, S): what each example is, given predictions and its set."""

import numpy as np
from scipy import sparse
from scipy.special import gammaln
from scipy.special import log_softmax
from scipy.special import logsumexp
from scipy.special import softmax

from alim_keras import ops
from alim_keras.data.annotators import VoteModel
from alim_keras.data.annotators import doubted
from alim_keras.errors import DataError
from alim_keras.noise_rate import GUESS
from alim_keras.noise_rate import Estimate

# Beliefs that take the set in already, and predictions that do not.
BELIEFS = ("known", "table")
KINDS = (*BELIEFS, "folds", "prediction")
# `SetModel` learns from at most so many examples, of so many numbers.
_SAMPLE = 20_000
_SAMPLE_NUMBERS = 1 << 23
# By what factor the temperature may change in each step. It begins late, when
# it is known what people confuse.
_FACTORS = (1.0,) * 8 + (1.25,) * 8 + (1.05,) * 14
_LIMITS = (0.1, 10.0)
# So many average sets are added to each pair of classes, to each size of set
# and, of the rate `GUESS`, to all.
_PAIR = 5.0
_SHRINKAGE = 20.0
_GUESS_EXAMPLES = 5.0
_START = 0.1
# Improvements of r in each M-step; every one makes the sets likelier.
_INNER = 3
# Above this many numbers all classes are taken to be equally popular.
_LARGEST = 1e7
# The logarithm of nothing, finite so that differences of two exist.
_NEVER = -1e30


class Settler:
    """Turns predictions into the belief P(y | x, S), by the best rule there is.

    - Examples with votes: P(y | x, votes) by `VoteModel`, whatever the noise
      rate is.
    - Else predictions that are all `"folds"`, with no noise rate given:
      P(y | x, S) by `SetModel`, which learns the noise rate.
    - Else `P(y | x) (S + lambda (1 - S))` with lambda from the noise rate
      that is given (or `GUESS`) and the size of the set.

    The arguments are those of `examine`; `sources` are strings `(N,)`,
    `votes` `VoteArrays` or None. `value` is the noise rate, `reason` a
    sentence on it, `learnt` whether the sets gave it, `temperature` T of
    `P^(1/T)`.
    """

    def __init__(self, noise_rate, probabilities, sets, sources, votes=None):
        num_classes = sets.num_classes
        rows = np.flatnonzero(~np.isin(sources, BELIEFS))
        self.temperature = 1.0
        self._set_model = self._vote_model = rate_by_size = None
        self.value, self.reason = noise_rate, "a number that was given."
        if isinstance(noise_rate, Estimate):
            self.value, self.reason = noise_rate.value, noise_rate.reason
            rate_by_size = noise_rate.details.get("rate_by_size")
        elif noise_rate is None and set(sources[rows]) == {"folds"}:
            sample = _sample(rows, num_classes)
            model = SetModel(probabilities[sample], sets.rows(sample) > 0)
            self._set_model, self.temperature = model, model.temperature
            self.value = model.value
            self.reason = (
                f"it fits {len(sample):,} candidate sets best, given "
                "predictions of networks that were trained without them."
            )
        elif noise_rate is None:
            self.value = GUESS
            self.reason = "nothing is known about it: a guess."
        self.learnt = self._set_model is not None
        if not 0 <= self.value < 1:
            raise DataError(
                "The noise rate must lie in [0, 1). Received: "
                f"noise_rate={noise_rate}"
            )
        if rate_by_size is None:
            rate_by_size = np.full(num_classes + 1, self.value)
        sizes = np.arange(num_classes + 1)
        rate_by_size = np.minimum(rate_by_size, 1 - 1e-6)
        self._lam_by_size = ops.closed_form_lambda(
            rate_by_size, sizes, num_classes
        ).astype("float32")
        if votes is not None and len(rows) and votes.overlap():
            self.reason += (
                " Examples with votes do without it: there the habits of "
                "each annotator count."
            )
            is_predicted = np.isin(np.arange(len(sets)), rows)[:, None]

            def logs(part):
                found = self._doubted(probabilities[part])
                return np.where(is_predicted[part], found, 0)

            self._vote_model = VoteModel(votes, sets.shape, logs)

    def belief(self, rows, probabilities, weights):
        """Returns the belief in each class of some rows, `(n, C)`.

        Of graded sets, the most certain candidate counts as one of a plain
        set; what the others lack of its weight divides their belief.
        """
        sets = weights > 0
        if self._set_model is None:
            lam = self._lam_by_size[sets.sum(axis=1)][:, None]
            # Bayes's rule under Assumption 1: Eq. 3 with Eq. 5 and K = 1.
            belief = ops.pseudo_labels(probabilities, sets, lam, "scale")
            belief = np.array(belief, "float32")
        else:
            belief = self._set_model.belief(probabilities, sets)
        if (weights[sets] != 1).any():
            share = weights / weights.max(axis=1, keepdims=True)
            belief = belief * np.where(sets, share, 1)
            belief /= belief.sum(axis=1, keepdims=True)
        if self._vote_model is not None:
            voted = self._vote_model.voted(rows)
            belief[voted] = self._vote_model.belief(
                rows[voted], self._doubted(probabilities[voted])
            )
        return belief

    def _doubted(self, probabilities):
        return doubted(np.exp(tempered(probabilities, self.temperature)))


def _sample(rows, num_classes):
    """Draws rows to learn from, the same every time."""
    most = min(_SAMPLE, max(1, _SAMPLE_NUMBERS // num_classes))
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


class SetModel:
    """P(S | y) where people confuse some classes more than others.

    Assumption 1 of the paper, without "all sets of a size are equally
    likely": given the true class y and the size s, the set holds y with
    probability `1 - eta_s`, and among the sets that do, as among those that
    do not, S has the probability `prod_j r_yj / e`, over the classes j in S
    other than y: `r_yj` is how popular j is in the sets of y, e the sum of
    the product over all such sets. With r = 1 it is `ops.closed_form_lambda`'s.

    Expectation-maximisation: the E-step is `P(y | x, S) ~ P(y | x)^(1/T)
    P(S | y)`, the M-step of r a few rounds of `expected_counts`; T moves a
    little in each step, as the likelihood asks. Sets that hold all classes
    are left out; those larger than any learnt from count as equally likely.

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
        # A row for all classes, where these are too many.
        width = num_classes if self._largest else 1
        self.popularity = np.ones((width, width))
        self.rate_by_size = np.full(num_classes + 1, _START)
        self.rate_by_size[num_classes] = 0.0
        self.temperature = 1.0
        self._update()
        for factor in _FACTORS:
            belief = self._fit_temperature(probabilities, sets, factor)
            self._fit_rates(belief, sets)
            if self._largest:
                self._fit_popularity(belief[partial], sets[partial])
            self._update()
        self.value = float(self.rate_by_size[sizes].mean())

    def belief(self, probabilities, sets):
        """Returns P(y | x, S), float32 `(n, C)`."""
        scaled = tempered(probabilities, self.temperature)
        return softmax(scaled + self._log_likelihood(sets), axis=1)

    def _log_likelihood(self, sets):
        """Returns log P(S | y, size of S), float32 `(n, C)`."""
        sizes = sets.sum(axis=1)
        values = np.where(sets, self._inside[sizes], self._outside[sizes])
        if self._largest:
            learnt = sets & (sizes <= self._largest)[:, None]
            members = sparse.csr_array(learnt, dtype="float32")
            values += members @ np.log(self.popularity.T).astype("float32")
        return values

    def _fit_temperature(self, probabilities, sets, factor):
        """Changes T by the factor, if that fits; returns the belief then."""
        likelihood = self._log_likelihood(sets)

        def joint(temperature):
            return tempered(probabilities, temperature) + likelihood

        def fit(temperature):
            return logsumexp(joint(temperature), axis=1).sum(dtype="float64")

        changes = np.array(list(dict.fromkeys((1.0, factor, 1 / factor))))
        temperatures = np.clip(self.temperature * changes, *_LIMITS)
        self.temperature = max(temperatures.tolist(), key=fit)
        return softmax(joint(self.temperature), axis=1)

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
        """The M-step of r, of sets that lack some class."""
        members = sparse.csr_array(sets, dtype="float32")
        counts = (members.T @ belief).T
        np.fill_diagonal(counts, 0)
        by_size = np.arange(self._largest + 1)[:, None] == sets.sum(axis=1)
        by_size = sparse.csr_array(by_size, dtype="float64")
        inside = by_size @ np.where(sets, belief, 0)
        # How many classes other than the true one were drawn, and how often.
        draws = by_size @ belief - inside
        draws[:-1] += inside[1:]
        for _ in range(_INNER):
            expected = expected_counts(self.popularity, draws.T)
            self.popularity = (counts + _PAIR) / (expected + _PAIR)
            np.fill_diagonal(self.popularity, 1.0)

    def _update(self):
        """Derives the logarithms that `_log_likelihood` adds up."""
        num_classes, width = len(self.rate_by_size) - 1, len(self.popularity)
        k = np.arange(num_classes)
        # How many sets of k of the C - 1 other classes there are.
        sums = gammaln(num_classes) - gammaln(k + 1) - gammaln(num_classes - k)
        inside = np.tile(sums[:, None], width)
        outside = inside.copy()
        if self._largest:
            logs = np.log(self.popularity)
            weighted = log_symmetric(logs, self._largest)[-1].T
            inside[: self._largest] = weighted[:-1]
            outside[: self._largest + 1] = weighted
        rates = np.clip(self.rate_by_size, 1e-9, 1 - 1e-9)[:, None]
        rates[num_classes] = 0.0
        # By size of the set and true class. No class is outside a full set.
        self._inside = np.zeros((num_classes + 1, width), "float32")
        self._inside[1:] = np.log1p(-rates[1:]) - inside
        self._outside = np.zeros_like(self._inside)
        self._outside[1:-1] = np.log(rates[1:-1]) - outside[1:]


def log_symmetric(logs, largest):
    """Returns logarithms of elementary symmetric polynomials, row by row.

    Of logarithms `(C, C)`: `(C + 1, C, largest + 1)`, for each row and degree
    k the sum of all products of k of its first numbers, of none to all C of
    them, its own place left out.
    """
    sums = np.full((len(logs) + 1, len(logs), largest + 1), _NEVER)
    sums[:, :, 0] = 0.0
    for j, column in enumerate(_others(logs).T):
        more = sums[j, :, :-1] + column[:, None]
        sums[j + 1, :, 1:] = np.logaddexp(sums[j, :, 1:], more)
    return sums


def expected_counts(weights, draws):
    """Returns how often each class is expected in draws, over its weight.

    Of weights `(C, C)` and draws `(C, K + 1)`, how many draws of k classes a
    row saw: `(C, C)`, for row i and class j, other than i, the sum over k of
    `draws[k] e_(k-1)(r without i and j) / e_k(r without i)`. A step of
    `weights = counts / expected_counts(weights, draws)` never makes the
    counts less likely ([Chen, Dempster and Liu,
    1994](https://doi.org/10.1093/biomet/81.3.457)).
    """
    logs = np.log(weights)
    sums = log_symmetric(logs, draws.shape[1] - 1)
    # From the last class to the first: how many draws take it, and how many
    # classes each draw still needs.
    left, drawn = draws.copy(), np.zeros_like(weights)
    for j, column in reversed(list(enumerate(_others(logs).T))):
        with_it = sums[j, :, :-1] + column[:, None] - sums[j + 1, :, 1:]
        taken = left[:, 1:] * np.exp(with_it)
        drawn[:, j] = taken.sum(axis=1)
        left[:, 1:] -= taken
        left[:, :-1] += taken
    return drawn / weights


def _others(logs):
    """Returns logarithms `(C, C)` without those of each class itself."""
    return np.where(np.eye(len(logs)), _NEVER, logs)


def tempered(probabilities, temperature):
    """Returns the logarithm of `P^(1/T)`, normalised, `(n, C)`."""
    logs = np.log(np.maximum(probabilities, np.finfo("float32").tiny))
    return log_softmax(logs / np.float32(temperature), axis=1)
