"""What each annotator says of each class: learnt from votes, predictions."""

import numpy as np
from scipy import sparse
from scipy.special import softmax

_STEPS = 6
# An annotator counts as if this many of its votes on each class fell as all
# annotators' do, and all as if this many did at random.
_SHRINKAGE = 20.0
_COMMON = 2.0
_START = 0.8
# Annotators beyond this many numbers, those with the fewest votes, have no
# confusion matrix of their own.
_LARGEST = 2e7


class VoteModel:
    """P(votes | y): every annotator confuses classes in its own way.

    Dawid and Skene's model, with the predictions in place of the classes'
    frequencies: given the true class the votes are independent, and
    annotator a says v with probability `pi_a[y, v]`. The E-step is
    `P(y | x, votes) ~ P(y | x) prod pi_a[y, v]`, the M-step counts. A
    confusion matrix is drawn to the one of all annotators where somebody gave
    few votes.

    Args:
        votes: A `Votes`.
        rows: Integers `(n,)`, ascending: the examples to learn from.
        read: Function from a part of `rows` to the logarithms of their
            probabilities, `(m, C)`, normalised or not.
        blocks: List of index arrays that cover `range(n)`.
        num_classes: C.

    Attributes:
        confusions: Floats `(A, C, C)`, pi: from the true class to the vote.

    Reference:
    - [Dawid and Skene, 1979](https://doi.org/10.2307/2346806)
    """

    def __init__(self, votes, rows, read, blocks, num_classes):
        self._num_classes = num_classes
        who = np.asarray(votes.annotators, "int64")
        people = len(votes.annotator_names)
        place = np.arange(people)
        own = max(1, int(_LARGEST // num_classes**2) - 1)
        if people > own:
            order = np.argsort(-np.bincount(who, minlength=people))
            place[order[:own]] = np.arange(own)
            # The others share the matrix behind these.
            place[order[own:]] = own
        order = np.argsort(votes.rows, kind="stable")
        self._rows = np.asarray(votes.rows, "int64")[order]
        classes = np.asarray(votes.classes, "int64")
        self._keys = (place[who] * num_classes + classes)[order]
        count = int(place.max(initial=0)) + 1
        wrong = (1 - _START) / max(num_classes - 1, 1)
        start = np.full((num_classes, num_classes), wrong)
        np.fill_diagonal(start, _START)
        self._set(np.broadcast_to(start, (count, num_classes, num_classes)))
        for _ in range(_STEPS):
            counts = np.zeros((count * num_classes, num_classes))
            for part in blocks:
                chosen = rows[part]
                belief = self.belief(chosen, read(chosen))
                said = self._said(chosen).T.tocsr()
                heard = np.flatnonzero(np.diff(said.indptr))
                counts[heard] += said[heard] @ belief
            self._learn(counts)

    def belief(self, rows, logs):
        """Returns P(y | x, votes) of ascending rows, float32 `(n, C)`.

        Without votes it is P(y | x), whose logarithms are given.
        """
        found = self._said(rows) @ self._logs
        return softmax(found + logs, axis=1).astype("float32")

    def voted(self, rows):
        """Returns which of some rows have votes, bool `(n,)`."""
        place = np.searchsorted(self._rows, rows)
        return place < np.searchsorted(self._rows, rows, side="right")

    def _said(self, rows):
        """Returns how often each annotator gave each vote, sparse."""
        shape = (len(rows), len(self.confusions) * self._num_classes)
        if not len(rows):
            return sparse.csr_matrix(shape)
        start = np.searchsorted(self._rows, rows[0])
        end = np.searchsorted(self._rows, rows[-1], side="right")
        theirs, keys = self._rows[start:end], self._keys[start:end]
        places = np.searchsorted(rows, theirs)
        known = rows[places] == theirs
        ones = np.ones(int(known.sum()))
        pairs = (places[known], keys[known])
        return sparse.csr_matrix((ones, pairs), shape=shape)

    def _learn(self, counts):
        """The M-step; `counts` has a row for each annotator and vote."""
        num_classes = self._num_classes
        counts = counts.reshape(-1, num_classes, num_classes)
        counts = counts.transpose(0, 2, 1)
        total = counts.sum(axis=0)
        right = np.trace(total) / max(total.sum(), 1e-30)
        wrong = (1 - right) / max(num_classes - 1, 1)
        plain = np.full((num_classes, num_classes), wrong)
        np.fill_diagonal(plain, right)
        common = _drawn(total, plain, _COMMON * num_classes)
        self._set(np.maximum(_drawn(counts, common, _SHRINKAGE), 1e-9))

    def _set(self, confusions):
        self.confusions = confusions
        # A row for each annotator and vote, a column for each true class.
        logs = np.log(confusions).transpose(0, 2, 1)
        self._logs = logs.reshape(-1, self._num_classes)


def _drawn(counts, towards, strength):
    """Returns frequencies with `strength` counts added to each row."""
    whole = counts.sum(axis=-1, keepdims=True)
    return (counts + strength * towards) / (whole + strength)
