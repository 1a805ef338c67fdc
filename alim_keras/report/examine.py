"""The audit of candidate sets, from probabilities."""

import numpy as np

from alim_keras import ops
from alim_keras.report import counted
from alim_keras.report import suspicion
from alim_keras.report.annotators import annotators
from alim_keras.report.audit import Audit
from alim_keras.report.checks import check
from alim_keras.report.checks import check_labels
from alim_keras.report.checks import check_length
from alim_keras.report.checks import check_rows
from alim_keras.report.checks import check_shape
from alim_keras.report.checks import check_votes
from alim_keras.report.confusions import Confusions
from alim_keras.report.labels import LabelRows
from alim_keras.report.review import review as review_list
from alim_keras.report.truth import truth

_WORDS = {
    "known": "true labels that a person gave",
    "table": "pseudo labels that the model learnt together with these sets",
    "folds": "predictions of networks that were trained without these sets",
    "prediction": "predictions of one network",
}


def examine(
    probabilities,
    candidates,
    *,
    class_names,
    ids,
    kind,
    votes=None,
    noise_rate=None,
    labels=None,
    known=None,
    history=None,
    name=None,
    review=200,
    ratio=None,
    facts=None,
    as_given=None,
):
    """Says what is in each example and which sets a person should look at.

    Rows of kind `"table"` are the belief P(y | x, S) already: ALIM's w. From
    predictions it follows by Bayes's rule, `P(y | x, S) ~ P(y | x) P(S | y)`:

    - with a noise rate that is given, by Assumption 1 of the paper, `P(S | y)
      ~ S + lambda (1 - S)` with lambda from the rate and the size of the set,
      see `alim_keras.instance_lambda`;
    - without one, and for `"folds"`, by `set_model.SetModel`, which learns
      the rate, and which classes go together;
    - where there are votes, `P(votes | y)` by `vote_model.VoteModel`.

    The settled label is the most probable class, the suspicion the belief's
    share outside the set.

    Args:
        probabilities: Floats `(N, C)`, rows that sum to 1.
        candidates: The given sets, multi-hot `(N, C)` or `SparseCandidates`.
        class_names: C strings.
        ids: N strings, no two of them equal.
        kind: What the probabilities are, one string or N of them: `"table"`,
            the learnt pseudo labels; `"folds"`, predictions of networks that
            did not fit these sets; `"prediction"`, other predictions;
            `"known"`, rows of 0 and 1 that a person gave.
        votes: A `Votes`, what each annotator said, or None.
        noise_rate: eta in `[0, 1)`, an `Estimate`, or None: learnt from
            predictions that are all `"folds"`, else 0.2. It does not matter
            to `"table"`.
        labels: Integers `(N,)`, the true labels, -1 where not known; or None.
            They are used for reporting only. Settled labels are compared with
            those that the audit was not told, by kind `"known"`.
        known: Bool `(N,)`, examples that a person has looked at already, which
            stay off the review list; or None.
        history: Data frame of metrics.csv, or None. Without `facts` its last
            row is taken for that of the model that is examined.
        name: What is examined, for the report.
        review: Length of the review list. Defaults to `200`.
        ratio: Floats `(N,)`, the candidate ratios of the training, since they
            cannot be computed from pseudo labels; or None.
        facts: Dict of numbers about the model that is examined, where it is
            not that of the last row of `history`: any of `epochs` (that it
            has behind it), `run_epochs` (of the whole training),
            `test_accuracy`, `lambda`, `noise_rate`; or None.
        as_given: The sets as somebody gave them, like `candidates`, where
            these hold known labels in the place of some: wrong sets are
            counted in them. Defaults to None: in `candidates`.

    Returns:
        An `Audit`.

    Raises:
        DataError: If shapes do not fit, a probability is negative or not
            finite, a set is empty, an id or a class name stands there twice
            or is no text, a label is no class, `votes` are none or about
            other examples, or `kind` is unknown.

    Example:

    >>> found = examine(
    ...     [[0.9, 0.1], [0.2, 0.8]], [[True, False], [True, False]],
    ...     class_names=["cat", "dog"], ids=["a", "b"], kind="folds",
    ...     noise_rate=0.3)
    >>> found.labels["label"].tolist(), found.labels["outside"].tolist()
    (['cat', 'dog'], [False, True])
    """
    if not hasattr(candidates, "rows"):
        candidates = np.asarray(candidates)
    probabilities = np.asarray(probabilities)
    sources = check(probabilities, candidates, class_names, ids, kind)
    labels = check_labels(labels, len(ids), len(class_names))
    check_length("known", known, len(ids))
    check_length("ratio", ratio, len(ids))
    count, num_classes = len(ids), len(class_names)
    check_votes(votes, count, num_classes)
    as_given = candidates if as_given is None else as_given
    check_shape("as_given", as_given, (count, num_classes))
    predicted = ~np.isin(sources, suspicion.BELIEFS)
    settler = suspicion.Settler(
        noise_rate, probabilities, candidates, sources, votes
    )
    rows_of_labels = LabelRows(ids, class_names)
    confusions = Confusions(num_classes)
    of_votes = _OfVotes(votes, count)
    ratios = np.full(count, np.nan, "float32") if ratio is None else ratio
    losses = np.full(count, np.nan, "float32")
    lam_total = 0.0
    for rows in suspicion.blocks(count, num_classes):
        given = suspicion.dense_rows(candidates, rows)
        part = np.asarray(probabilities[rows], "float32")
        check_rows(part, given, rows, ids)
        # Rows that no epoch has touched yet stand for a uniform set.
        untouched = part.max(axis=1, initial=0) <= 0
        part = np.where(untouched[:, None], _uniform(given), part)
        lam = settler.lam(given)
        lam_total += float(lam.sum())
        belief = part
        if predicted[rows].any():
            belief = settler.belief(rows, part, given)
            belief = np.where(predicted[rows, None], belief, part)
            if ratio is None:
                found = np.asarray(ops.candidate_ratio(part, given))
                ratios[rows] = np.where(predicted[rows], found, np.nan)
            inside = np.where(given, part, 0).sum(axis=1)
            losses[rows] = -np.log(np.maximum(inside, 1e-30))
        found = rows_of_labels.add(rows, belief, given)
        confusions.add(given, found["label"], found["outside"])
        of_votes.add(rows, belief)
    frame = rows_of_labels.frame(sources)
    settled = rows_of_labels.settled
    told, accuracy, counts = None, {}, {}
    asked = sources != "known"
    if labels is not None:
        counts = counted.count(labels, as_given)
        # What was told cannot be found.
        labels = np.where(asked, labels, -1)
    if labels is not None and (labels >= 0).any():
        told, accuracy = _truth(labels, settled, candidates, losses)
    summary = {
        "name": name,
        "num_examples": count,
        "num_classes": num_classes,
        "kind": "; ".join(_WORDS[k] for k in _kinds(sources)),
        "kinds": _kinds(sources),
        "outside": int(settled["outside"].sum()),
        "undecided": int(settled["undecided"].sum()),
        "suspect": float(settled["suspicion"].sum(dtype="float64")),
        "suspect_share": float(
            settled["suspicion"][asked].mean(dtype="float64")
        )
        if asked.any()
        else None,
        "mean_set_size": float(confusions.given.sum() / count)
        if count
        else None,
        "noise_rate": settler.value if predicted.any() else None,
        "noise_rate_reason": settler.reason if predicted.any() else None,
        "lambda": lam_total / count if predicted.any() else None,
        "temperature": settler.temperature,
        "epochs": None,
        "run_epochs": None,
        "test_accuracy": None,
        "known_labels": 0,
        "realised_noise": None,
        "realised_noise_low": None,
        "realised_noise_high": None,
        "compared_labels": 0,
        "settled_accuracy": None,
        **counts,
        **accuracy,
    }
    for fact, value in (_training(history) if facts is None else facts).items():
        if summary[fact] is None:
            summary[fact] = value
    return Audit(
        labels=frame,
        review=review_list(frame, settled, review, class_names, votes, known),
        classes=confusions.classes(class_names),
        confusions=confusions.frame(class_names),
        confusion_matrix=confusions.matrix,
        annotators=None
        if votes is None
        else annotators(votes, settled["label"], of_votes.belief, class_names),
        truth=told,
        summary=summary,
        ratio=None if np.isnan(ratios).all() else np.asarray(ratios),
        history=history,
        class_names=[str(one) for one in class_names],
        votes=votes,
    )


class _OfVotes:
    """Looks up the belief in the class of each vote, block by block."""

    def __init__(self, votes, count):
        self.votes = votes
        if votes is not None:
            self.belief = np.zeros(len(votes.rows))
            self._order = np.argsort(votes.rows, kind="stable")
            self._ordered = np.asarray(votes.rows)[self._order]

    def add(self, rows, belief):
        if self.votes is None:
            return
        ends = np.searchsorted(self._ordered, [rows[0], rows[-1] + 1])
        places = self._order[slice(*ends)]
        own = np.asarray(self.votes.rows)[places] - rows[0]
        total = np.maximum(belief.sum(axis=1), 1e-30)
        classes = np.asarray(self.votes.classes)[places]
        self.belief[places] = belief[own, classes] / total[own]


def _kinds(sources):
    """Returns how many rows there are of each kind, those that occur."""
    counts = {kind: int((sources == kind).sum()) for kind in suspicion.KINDS}
    return {kind: number for kind, number in counts.items() if number}


def _truth(labels, settled, candidates, losses):
    """Returns the frame on known labels, and its part of the summary."""
    labels = np.asarray(labels)
    rows = np.flatnonzero(labels >= 0)
    chosen = {name: values[rows] for name, values in settled.items()}
    wrong = counted.outside(labels, candidates, rows)
    scores = {"suspicion": chosen["suspicion"]}
    if not np.isnan(losses[rows]).any():
        scores["loss of the predictions"] = losses[rows]
    frame = truth(labels[rows], chosen, wrong, scores)
    return frame, {
        "compared_labels": len(rows),
        "settled_accuracy": float((chosen["label"] == labels[rows]).mean()),
    }


def _training(history):
    """Returns what the last row of metrics.csv says."""
    if history is None or not len(history):
        return {}
    last = history.iloc[-1]
    found = {"epochs": len(history), "run_epochs": len(history)}
    for name in ("test_accuracy", "lambda", "noise_rate"):
        value = last.get(name)
        if value not in (None, "") and value == value:
            found[name] = float(value)
    return found


def _uniform(given):
    return given / given.sum(axis=1, keepdims=True, dtype="float32")
