"""The verdict of a run, from numbers worked out by hand."""

import json

import numpy as np
import own
import pytest

from alim_keras import data
from alim_keras.app import verdict


def compared(difference, error, by="known labels", than="the given labels"):
    found = {"difference": difference, "error": error}
    return {"than": than, **found, "count": 200, "by": by}


def test_a_difference_and_its_standard_error():
    # Mean 1/2; deviation sqrt(1/4) = 1/2; error 1/2 / sqrt(4) = 1/4.
    made = verdict._compared("votes", np.array([1.0, 0.0, 1.0, 0.0]), "x")
    found = {"difference": 0.5, "error": 0.25}
    assert made == {"than": "votes", **found, "count": 4, "by": "x"}


@pytest.mark.parametrize(
    "difference, by, advice",
    [
        (0.10, "known labels", "use labels.csv."),
        (-0.10, "known labels", "use the given labels."),
        # Within two standard errors, 4 points.
        (0.03, "known labels", "cannot be told from the given labels."),
        (
            -0.03,
            "the sets of nearest neighbours",
            "cannot be told from the given labels; 50 known labels would tell.",
        ),
    ],
)
def test_the_sentence_says_which_to_use(difference, by, advice):
    text = verdict._sentence("labels.csv", [compared(difference, 0.02, by)])
    gain = f"{100 * difference:+.1f}"
    assert text.startswith(f"labels.csv, by {by} (200): {gain}")
    assert text.endswith(f" points over the given labels: {advice}")


def test_the_worst_defeat_is_named_and_nothing_compared_is_no_sentence():
    made = [
        compared(-0.05, 0.01, than="the majority vote"),
        compared(-0.20, 0.01, than="a logistic regression"),
    ]
    text = verdict._sentence("labels.csv", made)
    assert text.endswith("use a logistic regression.")
    assert verdict._sentence("the model", []) == ""


def test_the_labels_of_a_run_are_judged_by_true_ones(finished_run):
    """The classes' names are digits, which a table must not turn to numbers."""
    results = json.loads((finished_run / "results.json").read_text())
    (found,) = results["verdict"]["labels"]
    sets = data.CandidateSets.load(finished_run / "candidates.npz")
    digits = data.load("digits")
    truth = digits.labels[digits.rows_of(sets.ids)]
    rows = own.read_rows(finished_run / "labels.csv")
    settled = {row["id"]: row["label"] for row in rows}
    members = map(sets.members, range(len(sets)))
    differences = [
        (settled[name] == str(label)) - (label in given) / len(given)
        for name, label, given in zip(sets.ids, truth, members)
    ]
    assert found["than"] == "picking in the sets"
    assert found["count"] == len(sets) == 96
    np.testing.assert_allclose(found["difference"], np.mean(differences))
    error = np.std(differences) / 96**0.5
    np.testing.assert_allclose(found["error"], error)
