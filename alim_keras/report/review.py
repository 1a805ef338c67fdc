"""What a person should look at first."""

import numpy as np

# A look that repairs less than this is not worth a place on the list.
_LEAST = 1e-3
COLUMNS = (
    "rank",
    "id",
    "class",
    "reason",
    "gain",
    "candidates",
    "label",
    "probability",
    "runner_up",
    "suggested",
)


def gains(suspicion, probability):
    """Returns the expected number of wrong entries that a look repairs.

    `gain = P(truth outside S) + P(truth is not the settled label)`, between 0
    and 2. labels.csv has two entries that somebody may train on, the given
    set and the settled label; who looks knows the truth and mends both.

    Args:
        suspicion: Floats `(N,)`.
        probability: Floats `(N,)`, of the settled label.

    Example:

    >>> gains([0.9, 0.1], [0.9, 0.4])  # sure of another class; undecided
    [1.0, 0.7]
    """
    return np.asarray(suspicion) + (1.0 - np.asarray(probability))


def review(labels, settled, budget, class_names, votes=None, known=None):
    """Returns the rows to look at, the classes with most to gain first.

    The `budget` rows with the largest gain are chosen over all classes; then
    the rows of a settled class stay together, for a person decides faster
    among pictures that should look alike, and the classes come in the order
    of their total gain. `rank` counts by gain, over all classes.

    Args:
        labels: The frame of labels.csv.
        settled: Dict of arrays `(N,)`, see `settled_labels`.
        budget: Number of rows, 0 or more.
        class_names: C strings.
        votes: A `Votes`, for words on annotators who disagree, or None.
        known: Bool `(N,)`, examples that somebody has looked at already and
            that are left out, or None.

    Returns:
        A pandas data frame.
    """
    gain = gains(settled["suspicion"], settled["probability"])
    able = gain >= _LEAST
    if known is not None:
        able &= ~np.asarray(known, bool)
    rows = np.flatnonzero(able)
    rows = rows[np.argsort(-gain[rows], kind="stable")[: max(budget, 0)]]
    rank = np.arange(1, len(rows) + 1)
    group = settled["label"][rows]
    totals = np.bincount(group, gain[rows]) if len(rows) else np.zeros(0)
    order = np.lexsort((rank, group, -totals[group]))
    rows = rows[order]
    chosen = labels.iloc[rows]
    disagreeing = disagreements(votes, rows, class_names)
    frame = chosen.assign(
        **{
            "rank": rank[order],
            "class": chosen["label"],
            "gain": gain[rows],
            "reason": np.array(
                [
                    reason(one, disagreeing.get(row, ""))
                    for row, one in zip(
                        rows.tolist(),
                        chosen.to_dict("records"),
                        strict=True,
                    )
                ],
                object,
            ),
        }
    )
    return frame[list(COLUMNS)].reset_index(drop=True)


def reason(row, annotators=""):
    """Returns in words why a row of labels.csv is worth a look.

    Args:
        row: Dict of the row.
        annotators: Words on annotators who disagree, or "".

    Example:

    >>> reason({"outside": True, "undecided": False, "probability": 0.93,
    ...         "label": "cat", "runner_up": "dog", "suspicion": 0.95})
    "outside its set, 0.93 sure of cat"
    """
    between = f"undecided between {row['label']} and {row['runner_up']}"
    if row["outside"] and row["undecided"]:
        words = [f"outside its set, {between}"]
    elif row["outside"]:
        words = [
            f"outside its set, {row['probability']:.2f} sure of {row['label']}"
        ]
    elif row["undecided"]:
        words = [between]
    else:
        words = [f"only {row['probability']:.2f} sure of {row['label']}"]
        if row["suspicion"] * 2 >= 1 - row["probability"]:
            words = [
                f"its set is wrong with probability {row['suspicion']:.2f}"
            ]
    if annotators:
        words.append(f"annotators disagree: {annotators}")
    return "; ".join(words)


def disagreements(votes, rows, class_names):
    """Returns what annotators said where they gave several classes.

    Args:
        votes: A `Votes`, or None.
        rows: Integers, the rows that are asked for.
        class_names: C strings.

    Returns:
        A dict from a row to words such as `"cat 2, dog 1"`.
    """
    if votes is None:
        return {}
    asked = np.isin(votes.rows, rows)
    found = {}
    for row, one in zip(
        np.asarray(votes.rows)[asked].tolist(),
        np.asarray(votes.classes)[asked].tolist(),
        strict=True,
    ):
        counts = found.setdefault(row, {})
        counts[one] = counts.get(one, 0) + 1
    return {
        row: ", ".join(
            f"{class_names[one]} {number}"
            for one, number in sorted(
                counts.items(), key=lambda item: (-item[1], item[0])
            )
        )
        for row, counts in found.items()
        if len(counts) > 1
    }
