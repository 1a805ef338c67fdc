"""P(y | x, S): what each example is, given predictions and its set."""

import numpy as np

from alim_keras import ops
from alim_keras.errors import DataError
from alim_keras.noise_rate import GUESS
from alim_keras.noise_rate import Estimate
from alim_keras.report.labels import blocks
from alim_keras.report.set_model import SetModel
from alim_keras.report.votes import VoteModel

# Beliefs that take the set in already, and predictions that do not.
BELIEFS = ("known", "table")
KINDS = (*BELIEFS, "folds", "prediction")
# `SetModel` learns from at most so many examples, of so many numbers.
_SAMPLE = 20_000
_SAMPLE_NUMBERS = 1 << 26
_TINY = np.finfo("float32").tiny


def bayes_belief(probabilities, sets, lam):
    """Returns P(y | x, S) under Assumption 1 of the paper: Bayes's rule.

    `P(y | x, S) ~ P(y | x) (S + lambda (1 - S))`, which is Eq. 3 with Eq. 5
    and K = 1, all sets of one size being equally likely.

    Args:
        probabilities: Floats `(n, C)`, P(y | x), of a network that was not
            trained on these examples.
        sets: Multi-hot `(n, C)`.
        lam: Floats `(n,)`, see `ops.instance_lambda`.

    Returns:
        float32 `(n, C)`, rows that sum to 1. A row whose probabilities are all
        0 inside its set and lambda 0 is uniform over the set.

    Example:

    >>> bayes_belief([[0.7, 0.2, 0.1]], [[0, 1, 1]], [0.5])  # .35 : .2 : .1
    [[0.538, 0.308, 0.154]]
    """
    lam = np.asarray(lam, "float32")[:, None]
    belief = ops.pseudo_labels(probabilities, sets, lam, "scale")
    return np.array(belief, "float32")


class Settler:
    """Turns predictions into the belief P(y | x, S), by the best rule there is.

    - For examples with votes, P(y | x, votes) by `VoteModel`, whatever the
      noise rate is: how often each annotator errs is learnt.
    - Else, for predictions that did not fit the sets and without a given
      noise rate, P(y | x, S) by `SetModel`, which learns the noise rate and
      which classes go together.
    - Else `bayes_belief`, with the noise rate that is given (or `GUESS`).

    Args:
        noise_rate: A number in `[0, 1)`, an `Estimate`, or None.
        probabilities: Floats `(N, C)`.
        sets: `CandidateSets`.
        sources: Strings of `KINDS`, `(N,)`; rows of `BELIEFS` are left
            alone.
        votes: `VoteArrays`, or None.

    Attributes:
        value: Float, the noise rate.
        temperature: Float T of `P^(1/T)`; 1 where nothing was estimated.
        reason: String, one sentence: what the noise rate rests on.
    """

    def __init__(self, noise_rate, probabilities, sets, sources, votes=None):
        num_classes = sets.num_classes
        rows = np.flatnonzero(~np.isin(sources, BELIEFS))
        self.temperature = 1.0
        self._set_model = self._vote_model = None
        by_size = None
        if (
            noise_rate is None
            and len(rows)
            and (sources[rows] == "folds").all()
        ):
            sample = _sample(rows, num_classes)
            given = sets.rows(sample) > 0
            self._set_model = SetModel(probabilities[sample], given)
            self.temperature = self._set_model.temperature
            self.value = self._set_model.value
            by_size = self._set_model.rate_by_size
            self.reason = (
                f"it fits {len(sample):,} candidate sets best, given "
                "predictions of networks that were trained without them."
            )
        elif isinstance(noise_rate, Estimate):
            self.value, self.reason = noise_rate.value, noise_rate.reason
            by_size = noise_rate.details.get("rate_by_size")
        elif noise_rate is None:
            self.value, self.reason = (
                GUESS,
                "nothing is known about it: a guess.",
            )
        else:
            self.value, self.reason = noise_rate, "a number that was given."
        self.value = float(self.value)
        if not 0 <= self.value < 1:
            raise DataError(
                "The noise rate must lie in [0, 1). Received: "
                f"noise_rate={noise_rate}"
            )
        if by_size is None:
            by_size = np.full(num_classes + 1, self.value)
        self._lambda = ops.instance_lambda(
            np.minimum(by_size, 1 - 1e-6),
            np.arange(num_classes + 1),
            num_classes,
            "size",
        )
        if votes is not None and len(rows) and votes.overlap():
            self.reason += (
                " Examples with votes do without it: there the habits of "
                "each annotator count."
            )
            self._vote_model = VoteModel(
                votes,
                [rows[part] for part in blocks(len(rows), num_classes)],
                lambda chosen: self._logs(probabilities[chosen]),
                num_classes,
            )

    def lam(self, sizes):
        """Returns lambda of sets of some sizes `(n,)`, float64 `(n,)`."""
        return self._lambda[sizes]

    def belief(self, rows, probabilities, sets):
        """Returns the belief in each class of ascending rows, `(n, C)`."""
        if self._set_model is None:
            lam = self.lam(sets.sum(axis=1))
            belief = bayes_belief(probabilities, sets, lam)
        else:
            belief = self._set_model.belief(probabilities, sets)
        if self._vote_model is not None:
            voted = self._vote_model.voted(rows)
            belief[voted] = self._vote_model.belief(
                rows[voted], self._logs(probabilities[voted])
            )
        return belief

    def _logs(self, probabilities):
        """Returns the logarithms of `P^(1/T)`, normalised or not."""
        if self._set_model is not None:
            return self._set_model.scaled(probabilities)
        return np.log(np.maximum(probabilities, _TINY))


def _sample(rows, num_classes):
    """Returns rows to learn from; which they are is the same every time.

    They are drawn: evenly spaced ones may all be of one class, or of one
    person, in a table that was made in turns.
    """
    most = min(_SAMPLE, max(1, _SAMPLE_NUMBERS // num_classes))
    if len(rows) <= most:
        return rows
    chosen = np.random.default_rng(0).choice(len(rows), most, replace=False)
    return rows[np.sort(chosen)]
