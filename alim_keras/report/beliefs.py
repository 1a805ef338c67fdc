"""P(y | x, S): what each example is, given predictions and its set."""

import numpy as np
from scipy import sparse
from scipy import special

from alim_keras import noise_rate as estimators
from alim_keras import ops
from alim_keras.data.annotators import VoteModel
from alim_keras.data.annotators import doubted
from alim_keras.errors import DataError
from alim_keras.report.labels import fill_untouched

# Kinds of beliefs that take the set in already; others are predictions.
BELIEFS = ("known", "table")
# `Settler` learns from at most so many examples, of so many numbers.
_SAMPLE = 20_000
_SAMPLE_NUMBERS = 1 << 23
# It learns in so many steps, each of which may change T by such a factor.
_STEPS = 30
_FACTORS = np.array([1.0, 1.02, 1 / 1.02])
# So many average sets are added to each pair of classes. Of more classes than
# this all are taken to be equally popular.
_PAIR = 5.0
_MOST_CLASSES = 3000


class Settler:
    """Turns predictions into the belief P(y | x, S), by the best rule there is.

    - Examples with votes: P(y | x, votes) by `VoteModel`, whatever the noise
      rate is.
    - Else `P(y | x)^(1/T) P(S | y)`. Of the sets of size s

          P(S | y) ~ (S_y + lambda_s (1 - S_y)) prod_j r_yj

      over the classes j in S other than y. lambda_s follows from the noise
      rate (`ops.closed_form_lambda`); r_yj, on average 1, says how popular j
      is in the sets of y. This is exact for sets of one other class.

    Noise rates, T and r are learnt where none is given and all predictions
    are `"folds"`. Else T and r are 1, and the rate is the given one or `GUESS`.

    The arguments are those of `examine`, `CandidateSets`, strings `(N,)` and
    `VoteArrays` or None. `value` is the noise rate, `reason` a sentence on it,
    `learnt` whether the sets gave it, `temperature` is T, `popularity` r,
    `(C, C)`, or None for 1.
    """

    def __init__(self, noise_rate, probabilities, sets, sources, votes=None):
        self._probabilities, self._sets = probabilities, sets
        self._is_predicted = ~np.isin(sources, BELIEFS)
        rows, num_classes = np.flatnonzero(self._is_predicted), sets.num_classes
        self.temperature, self.popularity = 1.0, None
        self.value, self.reason, rate_by_size = noise_rate, None, None
        self.learnt = noise_rate is None and set(sources[rows]) == {"folds"}
        if self.learnt:
            most = min(_SAMPLE, max(1, _SAMPLE_NUMBERS // num_classes))
            sample = np.random.default_rng(0).permutation(rows)[:most]
            rate_by_size = self._learn(
                probabilities[sample], sets.rows(sample) > 0
            )
            self.reason = (
                f"it fits {len(sample):,} candidate sets best, given "
                "predictions of networks that were trained without them."
            )
        elif isinstance(noise_rate, estimators.Estimate):
            self.value, self.reason = noise_rate.value, noise_rate.reason
            rate_by_size = noise_rate.details.get("rate_by_size")
        elif noise_rate is not None:
            self.reason = "a number that was given."
        elif len(rows):
            self.value = estimators.GUESS
            self.reason = "nothing is known about it: a guess."
        if self.value is not None and not 0 <= self.value < 1:
            raise DataError(
                "The noise rate must lie in [0, 1). Received: "
                f"noise_rate={noise_rate}"
            )
        if rate_by_size is None:
            rate_by_size = np.full(num_classes + 1, self.value or 0.0)
        self._log_lam_by_size = _log_lam(rate_by_size)
        self._vote_model = None
        if votes is not None and len(rows) and votes.overlap():
            self.reason += (
                " Examples with votes do without it: there the habits of "
                "each annotator count."
            )
            self._vote_model = VoteModel(votes, sets.shape, self._doubted)

    def belief(self, rows):
        """Returns the belief in each class of some rows, `(n, C)`."""
        weights = self._sets.rows(rows)
        belief = fill_untouched(self._probabilities[rows], weights)
        predicted = self._is_predicted[rows]
        if predicted.any():
            belief[predicted] = self._settled(
                belief[predicted], weights[predicted]
            )
        if self._vote_model is not None:
            voted = predicted & self._vote_model.voted(rows)
            belief[voted] = self._vote_model.belief(
                rows[voted], self._doubted(rows[voted])
            )
        return belief

    def _settled(self, probabilities, weights):
        """Returns what follows from predictions and sets, `(n, C)`.

        Of graded sets, the most certain candidate counts as one of a plain
        set; what the others lack of its weight divides their belief.
        """
        sets = weights > 0
        logs = tempered(probabilities, self.temperature)
        belief = special.softmax(logs + self._log_likelihood(sets), axis=1)
        if (weights[sets] != 1).any():
            share = weights / weights.max(axis=1, keepdims=True)
            belief = belief * np.where(sets, share, 1)
            belief /= belief.sum(axis=1, keepdims=True)
        return belief

    def _doubted(self, rows):
        """Returns log P(y | x) beside votes, `(n, C)`, 0 without prediction."""
        logs = tempered(self._probabilities[rows], self.temperature)
        return np.where(
            self._is_predicted[rows][:, None], doubted(np.exp(logs)), 0
        )

    def _log_likelihood(self, sets):
        """Returns log P(S | y), up to a number for each set, `(n, C)`."""
        log_lam = self._log_lam_by_size[sets.sum(axis=1)][:, None]
        likelihood = np.where(sets, np.float32(0), log_lam)
        if self.popularity is not None:
            # A full set tells nothing.
            members = sets & ~sets.all(axis=1, keepdims=True)
            members = sparse.csr_array(members, dtype="float32")
            likelihood += members @ np.log(self.popularity.T)
        return likelihood

    def _learn(self, probabilities, sets):
        """Learns T and r; returns the noise rate of each size of set.

        By expectation-maximisation, which starts where `noise_rate.em` ends.
        """
        num_examples, num_classes = sets.shape
        self.value, answers = 0.0, probabilities.argmax(axis=1)
        missed = ~sets[np.arange(num_examples), answers]
        if estimators.is_chance(missed, sets, skill=0.05):
            # Such networks cannot say which sets are wrong.
            return np.zeros(num_classes + 1)
        logits = np.log(np.maximum(probabilities, np.finfo("float32").tiny))
        start = estimators.em(logits, sets).details
        self.temperature = start.get("temperature", 1.0)
        rates = start.get("rate_by_size", np.zeros(num_classes + 1))
        # A full set cannot be wrong and tells nothing about the others.
        is_partial = ~sets.all(axis=1)
        probabilities, sets = probabilities[is_partial], sets[is_partial]
        sizes = sets.sum(axis=1)
        count = np.bincount(sizes, minlength=num_classes + 1)
        for _ in range(_STEPS):
            self._log_lam_by_size = _log_lam(rates)
            likelihood = self._log_likelihood(sets)

            def fit(temperature, likelihood=likelihood):
                joint = tempered(probabilities, temperature) + likelihood
                return special.logsumexp(joint, axis=1).sum(dtype="float64")

            self.temperature = max(self.temperature * _FACTORS, key=fit)
            logs = tempered(probabilities, self.temperature)
            belief = special.softmax(logs + likelihood, axis=1)
            outside = np.where(sets, 0, belief).sum(axis=1, dtype="float64")
            wrong = np.bincount(sizes, outside, num_classes + 1)
            rates = estimators.shrunk_rates(wrong, count)
            if num_classes <= _MOST_CLASSES:
                self.popularity = _popularity(belief, sets)
        self.value = float(rates @ count / num_examples)
        return rates


def _log_lam(rate_by_size):
    """Returns the logarithm of lambda of each size of set, `(C + 1,)`."""
    rates = np.minimum(rate_by_size, 1 - 1e-6)
    sizes = np.arange(len(rates))
    lam = ops.closed_form_lambda(rates, sizes, len(rates) - 1)
    with np.errstate(divide="ignore"):
        return np.log(lam).astype("float32")


def _popularity(belief, sets):
    """Returns r, `(C, C)`: how often sets of y hold j, over the mean."""
    members = sparse.csr_array(sets, dtype="float32")
    counts = (members.T @ belief).T
    np.fill_diagonal(counts, 0)
    mean = counts.sum(axis=1, keepdims=True) / max(len(counts) - 1, 1)
    popularity = (counts + _PAIR) / (mean + _PAIR)
    np.fill_diagonal(popularity, 1)
    return popularity


def tempered(probabilities, temperature):
    """Returns the logarithm of `P^(1/T)`, normalised, `(n, C)`."""
    logs = np.log(np.maximum(probabilities, np.finfo("float32").tiny))
    return special.log_softmax(logs / np.float32(temperature), axis=1)
