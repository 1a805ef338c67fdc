"""Wrong sets counted where the truth is known, beside the expected number."""

import numpy as np
import pytest
from sample_examined import examined
from sample_examined import planted

from alim_keras.noise_rate.annotated import wilson
from alim_keras.report import counted
from alim_keras.report import page_summary

SPACE = "\N{NO-BREAK SPACE}"


def facts(wrong=5, known=200, total=10_000, suspect=64.0):
    low, high = wilson(wrong, known)
    return {
        "num_examples": total,
        "known_labels": known,
        "realised_noise": wrong / known,
        "realised_noise_low": low,
        "realised_noise_high": high,
        "suspect": suspect,
        "suspect_share": suspect / total,
    }


def with_known(count, kinds=None, **options):
    """Examines 2,000 examples, of which the truth of the first is known."""
    probabilities, sets, truth = planted()
    labels = np.where(np.arange(2000) < count, truth, -1)
    kind = np.full(2000, "folds", object)
    if kinds:
        told = np.arange(kinds)
        kind[told] = "known"
        probabilities = probabilities.copy()
        probabilities[told] = np.eye(10)[truth[told]]
    found = examined(
        (probabilities, sets, labels), kind=kind, noise_rate=0.1, **options
    )
    return found, ~sets[np.arange(2000), truth], truth


@pytest.mark.parametrize(
    "suspect, verdict, words",
    [
        (64, "low", "do, and the estimate of 64 is too low, as it is where"),
        (900, "high", "do, and the estimate of 900 is too high, as it is"),
        (300, "agrees", "do, which agrees with the estimate of 300."),
    ],
)
def test_the_estimate_is_held_against_the_count(suspect, verdict, words):
    found = facts(suspect=suspect)
    assert counted.verdict(found) == verdict
    text = counted.in_words(found)
    assert text.startswith(
        f"Of the 200 examples whose true label is known 5 (2.5{SPACE}%) have "
        "a set that misses it. If they are typical of all, as a random sample "
        "is, between 107 and 572 of the 10,000 sets do, "
    )
    assert words in text


def test_what_was_counted_is_certain():
    # 5 of 200 would be 0.6 to 3 of the 52 that are left out of 252.
    text = counted.in_words(facts(5, 200, 210, suspect=6))
    assert "between 5 and 12 of the 210 sets" in text
    assert "1 (0.5" in counted.in_words(facts(1)) and "has a set" in (
        counted.in_words(facts(1))
    )


def test_the_interval_of_the_summary():
    found, wrong, _ = with_known(200)
    summary = found.summary
    share = wrong[:200].mean()
    assert 0 < share < 0.2
    assert summary["known_labels"] == summary["compared_labels"] == 200
    assert summary["realised_noise"] == share
    ends = summary["realised_noise_low"], summary["realised_noise_high"]
    assert ends == wilson(int(wrong[:200].sum()), 200)
    assert summary["suspect_share"] == pytest.approx(summary["suspect"] / 2000)
    lead = page_summary.paragraphs(found)[-1]
    assert lead.endswith(counted.in_words(summary))
    assert "Of the 200 examples whose true label is known" in lead


def test_of_few_labels_nothing_is_said():
    found, wrong, _ = with_known(49)
    summary = found.summary
    assert summary["realised_noise"] == wrong[:49].mean()
    assert summary["realised_noise_low"] is None
    assert summary["realised_noise_high"] is None
    assert counted.in_words(summary) == "" and counted.verdict(summary) is None
    assert page_summary.paragraphs(found)[-1].endswith("expected to miss it.")
    assert with_known(50)[0].summary["realised_noise_low"] is not None


def test_of_all_labels_nothing_is_estimated():
    found, wrong, _ = with_known(2000)
    summary = found.summary
    for name in ("realised_noise", "realised_noise_low", "realised_noise_high"):
        assert summary[name] == wrong.mean()
    assert counted.in_words(summary) == (
        "The true labels of all 2,000 examples are known: the sets of "
        f"{wrong.sum()} ({100 * wrong.mean():.1f}{SPACE}%) miss theirs."
    )


def test_labels_that_were_told_count():
    """But the settled labels are compared with the others only."""
    found, wrong, _ = with_known(200, kinds=120)
    summary = found.summary
    assert summary["known_labels"] == 200
    assert summary["compared_labels"] == 80
    assert summary["realised_noise"] == wrong[:200].mean()
    suspicion = found.labels["suspicion"]
    assert summary["suspect_share"] == pytest.approx(suspicion[120:].mean())
    (figure,) = [
        one
        for one in page_summary.figures(found)
        if one.label == "Settled labels right"
    ]
    assert figure.note == "of 80 whose truth is known"
    # All were told: nothing is left to compare.
    found, wrong, _ = with_known(120, kinds=120)
    assert found.truth is None
    assert found.summary["compared_labels"] == 0
    assert found.summary["settled_accuracy"] is None
    assert found.summary["realised_noise"] == wrong[:120].mean()


def test_answers_in_place_of_sets_do_not_hide_what_was_given():
    probabilities, sets, truth = planted()
    replaced = sets.copy()
    replaced[:120] = np.eye(10, dtype=bool)[truth[:120]]
    labels = np.where(np.arange(2000) < 120, truth, -1)
    kind = np.where(np.arange(2000) < 120, "known", "folds").astype(object)
    probabilities = probabilities.copy()
    probabilities[:120] = np.eye(10)[truth[:120]]
    data = (probabilities, replaced, labels)
    options = {"kind": kind, "noise_rate": 0.1}
    wrong = ~sets[np.arange(120), truth[:120]]
    found = examined(data, as_given=sets, **options).summary
    assert found["realised_noise"] == wrong.mean() > 0
    assert examined(data, **options).summary["realised_noise"] == 0


def test_a_step_where_more_is_wrong_than_suspected():
    found, _, _ = with_known(200)
    assert not [one for one in page_summary.steps(found) if "random" in one]
    found.summary["suspect_share"] = 0.01
    assert [one for one in page_summary.steps(found) if "random part" in one]
