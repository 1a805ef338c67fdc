"""What each example is, given its set: Bayes's rule, and what it leaves out."""

import numpy as np

from alim_keras import ops
from alim_keras.errors import DataError
from alim_keras.instance_lambda import instance_lambda
from alim_keras.noise_rate import Estimate
from alim_keras.noise_rate.em import GUESS
from alim_keras.report.set_model import SetModel
from alim_keras.report.vote_model import VoteModel

# Beliefs that take the set in already, and predictions that do not.
BELIEFS = ("known", "table")
KINDS = (*BELIEFS, "folds", "prediction")
# Rows are worked through in blocks of about this many numbers.
BLOCK = 1 << 22
# What sets are like is learnt from so many examples.
SAMPLE = 20000
# With fewer answers to an item, on average, who gave them says little.
_VOTES_PER_ITEM = 1.5
TINY = np.finfo("float32").tiny


def _agree_or_not(votes):
    """Returns whether there are items that several annotators looked at.

    One answer to an item tells a person's habits from the network's only: on
    such labels the model of votes ranks worse than that of sets.
    """
    items = len(np.unique(votes.rows))
    return items > 0 and len(votes.rows) >= _VOTES_PER_ITEM * items


def belief(probabilities, given, lam):
    """Returns P(y | x, S) under Assumption 1 of the paper: Bayes's rule.

    `P(y | x, S) ~ P(y | x) (S + lambda (1 - S))`, which is Eq. 3 with Eq. 5
    and K = 1, all sets of one size being equally likely.

    Args:
        probabilities: Floats `(n, C)`, P(y | x), of a network that was not
            trained on these examples.
        given: Multi-hot `(n, C)`, the sets.
        lam: Floats `(n,)`, see `alim_keras.instance_lambda`.

    Returns:
        float32 `(n, C)`, rows that sum to 1. A row whose probabilities are all
        0 inside its set and lambda 0 is uniform over the set.

    Example:

    >>> belief([[0.7, 0.2, 0.1]], [[0, 1, 1]], [0.5])  # .35 : .2 : .1
    [[0.538, 0.308, 0.154]]
    """
    lam = np.asarray(lam, "float32")[:, None]
    found = ops.pseudo_labels(probabilities, given, lam, "scale")
    return np.array(found, "float32")


class Settler:
    """Turns predictions into the belief P(y | x, S), by the best rule there is.

    - For examples with votes, P(y | x, votes) by `VoteModel`, whatever the
      noise rate is: how often each annotator errs is learnt.
    - Else, for predictions that did not fit the sets and without a given
      noise rate, P(y | x, S) by `SetModel`, which learns the noise rate and
      which classes go together.
    - Else `belief`, with the noise rate that is given (or `em.GUESS`).

    Args:
        noise_rate: A number in `[0, 1)`, an `Estimate`, or None.
        probabilities: Floats `(N, C)`.
        sets: Multi-hot `(N, C)`, or `SparseCandidates`.
        sources: Strings of `KINDS`, `(N,)`; rows of `BELIEFS` are left
            alone.
        votes: A `Votes`, or None.

    Attributes:
        value: Float, the noise rate.
        temperature: Float T of `P^(1/T)`; 1 where nothing was estimated.
        reason: String, one sentence: what the noise rate rests on.
    """

    def __init__(self, noise_rate, probabilities, sets, sources, votes=None):
        num_classes = sets.shape[1]
        rows = np.flatnonzero(~np.isin(sources, BELIEFS))
        fitted = noise_rate is None and bool((sources[rows] == "folds").all())
        self.temperature = 1.0
        self._sets = self._votes = None
        self.reason = "a number that was given."
        by_size = None
        if fitted and len(rows):
            sample = _sample(rows)
            given = dense_rows(sets, sample)
            self._sets = SetModel(probabilities[sample], given)
            self.temperature = self._sets.temperature
            self.value = self._sets.value
            self.reason = (
                f"it fits {len(sample):,} candidate sets best, given "
                "predictions of networks that were trained without them."
            )
            by_size = self._sets.rate_by_size
        elif isinstance(noise_rate, Estimate):
            self.value, self.reason = noise_rate.value, noise_rate.reason
            by_size = noise_rate.details.get("rate_by_size")
        else:
            if noise_rate is None:
                self.reason = "nothing is known about it: a guess."
                noise_rate = GUESS
            self.value = float(noise_rate)
        if not 0 <= self.value < 1:
            raise DataError(
                "The noise rate must lie in [0, 1). Received: "
                f"noise_rate={noise_rate}"
            )
        if by_size is None:
            by_size = np.full(num_classes + 1, self.value)
        sizes = np.arange(num_classes + 1)
        by_size = np.minimum(by_size, 1 - 1e-6)
        self._lambda = instance_lambda(by_size, sizes, num_classes, "size")
        if votes is not None and len(rows) and _agree_or_not(votes):
            self.reason += (
                " Examples with votes do without it: there the habits of "
                "each annotator count."
            )
            self._votes = VoteModel(
                votes,
                rows,
                lambda chosen: self._logs(probabilities[chosen]),
                list(blocks(len(rows), num_classes)),
                num_classes,
            )

    def lam(self, given):
        """Returns lambda of some sets `(n, C)`, float64 `(n,)`."""
        return self._lambda[given.sum(axis=1)]

    def belief(self, rows, probabilities, given):
        """Returns the belief in each class of some rows, float32 `(n, C)`."""
        if self._sets is None:
            found = belief(probabilities, given, self.lam(given))
        else:
            found = self._sets.belief(probabilities, given)
        if self._votes is not None:
            voted = self._votes.voted(rows)
            found[voted] = self._votes.belief(
                rows[voted], self._logs(probabilities[voted])
            )
        return found

    def _logs(self, probabilities):
        """Returns the logarithms of `P^(1/T)`, normalised or not."""
        if self._sets is not None:
            return self._sets.scaled(probabilities)
        return np.log(np.maximum(probabilities, TINY))


def _sample(rows):
    """Returns rows to learn from; which they are is the same every time.

    They are drawn: evenly spaced ones may all be of one class, or of one
    person, in a table that was made in turns.
    """
    if len(rows) <= SAMPLE:
        return rows
    chosen = np.random.default_rng(0).choice(len(rows), SAMPLE, replace=False)
    return rows[np.sort(chosen)]


def dense_rows(sets, rows):
    """Returns some candidate sets as a bool matrix `(n, C)`."""
    if hasattr(sets, "rows"):
        return sets.rows(rows) > 0
    return np.asarray(sets[rows]) > 0


def blocks(count, num_classes):
    """Yields index arrays that cover `range(count)`, of a bearable size."""
    step = max(1, BLOCK // max(num_classes, 1))
    for start in range(0, count, step):
        yield np.arange(start, min(start + step, count))
