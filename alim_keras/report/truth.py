"""How good the audit is, where true labels are known."""

import numpy as np

BUDGETS = (0.01, 0.02, 0.05, 0.10)


def hits(flagged, wrong):
    """Returns precision and recall of flags; NaN where undefined.

    Args:
        flagged: Bool `(n,)`.
        wrong: Bool `(n,)`, what should have been flagged.
    """
    flagged, wrong = np.asarray(flagged, bool), np.asarray(wrong, bool)
    found = int((flagged & wrong).sum())
    return _ratio(found, flagged.sum()), _ratio(found, wrong.sum())


def hits_at(score, wrong, budgets=BUDGETS):
    """Returns precision and recall of the highest scores, at each budget.

    Args:
        score: Floats `(n,)`, the higher the more suspect; of equal ones the
            earlier counts first.
        wrong: Bool `(n,)`.
        budgets: Shares of n, each rounded up to a whole number.

    Returns:
        A list of (number, precision, recall).

    Example:

    >>> hits_at([0.9, 0.1, 0.8, 0.3], [1, 0, 0, 1], budgets=[0.5])
    [(2, 0.5, 0.5)]
    """
    order = np.argsort(-np.asarray(score), kind="stable")
    found = []
    for budget in budgets:
        # 0.07 * 100 is 7.000000000000001.
        number = int(np.ceil(round(budget * len(order), 6)))
        flagged = np.zeros(len(order), bool)
        flagged[order[:number]] = True
        found.append((number, *hits(flagged, wrong)))
    return found


def truth(labels, settled, wrong, scores):
    """Returns what the flags and rankings are worth, as a data frame.

    Columns: `what`; `items`, how many are flagged; `precision`, the share of
    these that are so in truth; `recall`, the share of what is so in truth
    that is flagged. The first row is about the settled labels, `precision`
    being their accuracy; the others about wrong sets.

    Args:
        labels: int64 `(n,)`, the true labels.
        settled: Dict of arrays `(n,)`, see `settled_labels`.
        wrong: Bool `(n,)`, whether the truth is outside the set.
        scores: Dict from a name to floats `(n,)`, rankings to compare.
    """
    import pandas

    right = settled["label"] == labels
    rows = [("settled label right", len(labels), right.mean(), np.nan)]
    outside = settled["outside"]
    rows.append(("outside its set", int(outside.sum()), *hits(outside, wrong)))
    for name, score in scores.items():
        for budget, found in zip(BUDGETS, hits_at(score, wrong), strict=True):
            rows.append((f"{name}, top {100 * budget:g} %", *found))
    return pandas.DataFrame(
        rows, columns=["what", "items", "precision", "recall"]
    )


def _ratio(part, whole):
    return float(part / whole) if whole else float("nan")
