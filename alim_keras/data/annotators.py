"""Votes as numbers, and what each annotator's votes are worth."""

import dataclasses

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import softmax

from alim_keras.data.checks import refuse
from alim_keras.errors import DataError
from alim_keras.errors import first_five

_STEPS = 6
# So many votes on each class are added to an annotator's, of all annotators'
# habits, and so many to theirs, at random.
_SHRINKAGE = 20.0
_COMMON = 2.0
_START = 0.8
# How often even a sure prediction is wrong, where votes speak beside it.
_DOUBT = 0.02
# Rows are worked through in blocks of about this many numbers.
_BLOCK = 1 << 22
# Most numbers in all confusion matrices.
_LARGEST = 2e7


@dataclasses.dataclass(frozen=True, eq=False)
class VoteArrays:
    """Votes as numbers, ordered by example.

    Attributes:
        rows: int64 `(V,)`, the row of the example.
        annotators: int64 `(V,)`, places in `names`.
        classes: int64 `(V,)`.
        names: The annotators, strings, in the order of appearance.
    """

    rows: np.ndarray
    annotators: np.ndarray
    classes: np.ndarray
    names: np.ndarray

    @classmethod
    def of(cls, votes, ids, class_names):
        """Reads a frame of votes; leaves out confidence 0 and no label."""
        rows = pd.Index(ids).get_indexer(votes["item"])
        if len(votes) and (rows < 0).all():
            raise DataError(
                "No vote is about one of the examples: the column `item` must "
                f"hold their ids. Received: {first_five(list(votes['item']))}"
            )
        here = (rows >= 0) & votes["annotator"].notna().to_numpy()
        if "confidence" in votes:
            # 0 says that the item is not of this class.
            here &= votes["confidence"].to_numpy("float64") != 0
        who, names = pd.factorize(votes["annotator"][here].astype(str))
        labels = votes["label"][here]
        classes = pd.Index(class_names).get_indexer(labels)
        unknown = labels[(classes < 0) & labels.notna()].unique()
        refuse(unknown, "votes", "labels are no class names")
        numbers = np.array([rows[here], who, classes], "int64")
        numbers = numbers[:, classes >= 0]
        order = np.argsort(numbers[0], kind="stable")
        return cls(*numbers[:, order], np.asarray(names, object))

    def __len__(self):
        return len(self.rows)

    def overlap(self):
        # With fewer votes an example `VoteModel` ranks worse than the sets do.
        return 0 < 1.5 * len(np.unique(self.rows)) <= len(self)


def shared_votes(training):
    """Returns `VoteArrays` of several annotators of the same items, or None.

    `training` is a `TrainingSet`.
    """
    if training.votes is None:
        return None
    votes = VoteArrays.of(training.votes, training.ids, training.class_names)
    return votes if votes.overlap() and len(votes.names) > 1 else None


class VoteModel:
    """P(votes | y): every annotator confuses classes in its own way.

    Dawid and Skene's model ([1979](https://doi.org/10.2307/2346806)), with the
    predictions in place of the classes' frequencies. The E-step is
    `P(y | x, votes) ~ P(y | x) prod pi_a[y, v]`, the M-step counts. The
    confusions of somebody who gave few votes are drawn to those of all.

    It takes `VoteArrays`, (N, C), and a function from an index array to log
    P(y | x), `(m, C)`; without it the votes alone speak.

    Attributes:
        confusions: Floats `(A, C, C)`, pi: from the true class to the vote,
            those of the annotators with most votes first.
    """

    def __init__(self, votes, shape, logs=lambda rows: 0.0):
        num_examples, num_classes = shape
        number = np.bincount(votes.annotators, minlength=len(votes.names))
        rank = np.argsort(np.argsort(-number, kind="stable"))
        # Those with the fewest votes share the last matrix.
        own = max(1, int(_LARGEST // num_classes**2) - 1)
        matrix = np.minimum(rank, own)
        count = int(matrix.max(initial=0)) + 1
        keys = matrix[votes.annotators] * num_classes + votes.classes
        # How often each annotator gave each vote to each example.
        self._given = sparse.csr_array(
            (np.ones(len(votes)), (votes.rows, keys)),
            shape=(num_examples, count * num_classes),
        )
        self._set(np.tile(_diagonal(_START, num_classes), (count, 1, 1)))
        for _ in range(_STEPS):
            counts = np.zeros((count * num_classes, num_classes))
            for rows in blocks(shape):
                counts += self._given[rows].T @ self.belief(rows, logs(rows))
            self._learn(counts)

    def belief(self, rows, logs):
        """Returns P(y | x, votes) of some rows; logs are of P(y | x)."""
        evidence = self._given[rows] @ self._logs
        return softmax(evidence + logs, axis=1).astype("float32")

    def voted(self, rows):
        """Returns which of some rows have votes, bool `(n,)`."""
        return np.diff(self._given.indptr)[rows] > 0

    def _learn(self, counts):
        """The M-step; `counts` has a row for each annotator and vote."""
        num_classes = counts.shape[1]
        counts = counts.reshape(-1, num_classes, num_classes)
        counts = counts.transpose(0, 2, 1)
        total = counts.sum(axis=0)
        right = np.trace(total) / max(total.sum(), 1e-30)
        plain = _diagonal(right, num_classes)
        common = _smoothed(total, plain, _COMMON * num_classes)
        self._set(np.maximum(_smoothed(counts, common, _SHRINKAGE), 1e-9))

    def _set(self, confusions):
        self.confusions = confusions
        # A row for each annotator and vote, a column for each true class.
        logs = np.log(confusions).transpose(0, 2, 1)
        self._logs = logs.reshape(-1, logs.shape[-1])


def likelihood_of_members(votes, sets):
    """Returns P(votes | y) of each candidate of sets, up to a factor by row.

    Of `VoteArrays` and `CandidateSets`, one number for each of `sets.indices`:
    by Dawid and Skene's model, in which all classes are equally frequent.
    """
    model, parts = VoteModel(votes, sets.shape), []
    for rows in blocks(sets.shape):
        owners, classes = sets.matrix[rows].nonzero()
        parts.append(model.belief(rows, 0.0)[owners, classes])
    return np.concatenate(parts)


def doubted(probabilities):
    """Returns log P of predictions that votes may outweigh, `(n, C)`."""
    floor = _DOUBT / probabilities.shape[1]
    return np.log((1 - _DOUBT) * probabilities + floor).astype("float32")


def blocks(shape):
    """Returns index arrays of about 4 million numbers that cover all rows."""
    step, everything = max(1, _BLOCK // shape[1]), np.arange(shape[0])
    return [everything[at : at + step] for at in everything[::step]]


def _diagonal(right, num_classes):
    """Returns confusions `(C, C)` that are right with one probability."""
    wrong = (1 - right) / max(num_classes - 1, 1)
    confusions = np.full((num_classes, num_classes), wrong)
    np.fill_diagonal(confusions, right)
    return confusions


def _smoothed(counts, towards, strength):
    """Returns frequencies with `strength` counts added to each row."""
    whole = counts.sum(axis=-1, keepdims=True)
    return (counts + strength * towards) / (whole + strength)
