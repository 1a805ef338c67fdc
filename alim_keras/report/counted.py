"""How many sets are wrong, counted where true labels are known."""

import numpy as np

from alim_keras.noise_rate.annotated import ENOUGH
from alim_keras.noise_rate.annotated import wilson
from alim_keras.report import suspicion
from alim_keras.report import words


def outside(labels, sets, rows):
    """Returns whether the true label is outside its set, bool `(n,)`.

    Args:
        labels: Integers `(N,)`, the true labels, known for all of `rows`.
        sets: Multi-hot `(N, C)`, or `SparseCandidates`.
        rows: Integers `(n,)`, which examples.
    """
    found = np.empty(len(rows), bool)
    for part in suspicion.blocks(len(rows), sets.shape[1]):
        given = suspicion.dense_rows(sets, rows[part])
        found[part] = ~given[np.arange(len(part)), labels[rows[part]]]
    return found


def count(labels, sets):
    """Returns what true labels say of the share of wrong sets.

    Args:
        labels: Integers `(N,)`, -1 where not known.
        sets: Multi-hot `(N, C)`, or `SparseCandidates`: as they were given.

    Returns:
        Dict of `known_labels`, `realised_noise` and, of at least 50 known
        labels, the ends of Wilson's interval, `realised_noise_low` and
        `realised_noise_high`, which are both the share where all labels are
        known. Empty if none is.
    """
    rows = np.flatnonzero(labels >= 0)
    if not len(rows):
        return {}
    wrong = int(outside(labels, sets, rows).sum())
    share = wrong / len(rows)
    found = {"known_labels": len(rows), "realised_noise": share}
    if len(rows) >= ENOUGH:
        ends = share, share
        if len(rows) < len(labels):
            ends = wilson(wrong, len(rows))
        found["realised_noise_low"], found["realised_noise_high"] = ends
    return found


def verdict(facts):
    """Returns whether the expected number of wrong sets fits the counted one.

    Args:
        facts: `Audit.summary`.

    Returns:
        `"low"`, `"high"` or `"agrees"`; None where fewer than 50 true labels
        are known, or all.
    """
    expected = facts.get("suspect_share")
    if not words.known(facts.get("realised_noise_low")) or expected is None:
        return None
    total = facts["num_examples"]
    if facts["known_labels"] == total:
        return None
    low, high = _ends(facts)
    if expected * total < low:
        return "low"
    return "high" if expected * total > high else "agrees"


def in_words(facts):
    """Returns what was counted as sentences; empty if that is too little.

    Args:
        facts: `Audit.summary`.
    """
    share = facts.get("realised_noise")
    if not words.known(facts.get("realised_noise_low")):
        return ""
    total, known = facts["num_examples"], facts["known_labels"]
    wrong = round(share * known)
    shown = f"{words.count(wrong)} ({words.percent(share)})"
    if known == total:
        return (
            f"The true labels of all {words.count(total)} examples are known: "
            f"the sets of {shown} miss theirs."
        )
    text = (
        f"Of the {words.count(known)} examples whose true label is known "
        f"{shown} {'has' if wrong == 1 else 'have'} a set that misses it."
    )
    found = verdict(facts)
    if found is None:
        return text
    low, high = (words.count(end) for end in _ends(facts))
    estimate = words.count(facts["suspect_share"] * total)
    return (
        f"{text} If they are typical of all, as a random sample is, between "
        f"{low} and {high} of the {words.count(total)} sets do, "
    ) + {
        "low": f"and the estimate of {estimate} is too low, as it is where "
        "networks err as people do.",
        "high": f"and the estimate of {estimate} is too high, as it is where "
        "networks are less sure than they could be.",
        "agrees": f"which agrees with the estimate of {estimate}.",
    }[found]


def _ends(facts):
    """Returns how few and how many sets of all may be wrong."""
    total, known = facts["num_examples"], facts["known_labels"]
    wrong = round(facts["realised_noise"] * known)
    # Those that were counted are certain.
    return (
        max(facts["realised_noise_low"] * total, wrong),
        min(facts["realised_noise_high"] * total, total - known + wrong),
    )
