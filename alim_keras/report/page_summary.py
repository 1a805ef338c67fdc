"""What the audit found, in words and in key figures."""

import dataclasses

from alim_keras.report import counted
from alim_keras.report import words

_KINDS = {
    "known": "The labels of {these} are true labels that a person gave.",
    "folds": (
        "The settled labels of {these} come from predictions of networks that "
        "never saw the label: the examples were split into folds, and each "
        "fold was predicted by a network trained on the others. The given set "
        "is weighed in afterwards; it cannot have taught the network its own "
        "mistake."
    ),
    "prediction": (
        "The settled labels of {these} come from predictions of one network, "
        "with the given set weighed in. For examples that were held out of "
        "its training that is a fair second opinion; if it "
        "was trained on these very sets, it can have learnt their mistakes, "
        "and some wrong sets will look right."
    ),
    "table": (
        "The settled labels of {these} are the learnt table of pseudo "
        "labels. The network was trained on these very sets, so it can have "
        "learnt their mistakes, and some wrong sets will look right. An audit "
        "with --folds gives labels from networks that never saw the set."
    ),
}


@dataclasses.dataclass(frozen=True)
class Figure:
    """A key figure: its name, its value and a few words."""

    label: str
    value: str
    note: str = ""


def paragraphs(audit):
    """Returns what was looked at and what was found, as sentences.

    Args:
        audit: The `Audit`.
    """
    facts = audit.summary
    total = facts["num_examples"]
    looked = (
        f"{words.plural(total, 'example')} with candidate sets over "
        f"{words.plural(facts['num_classes'], 'class', 'classes')} were "
        "looked at"
    )
    if words.known(facts.get("mean_set_size")):
        size = words.number(facts["mean_set_size"])
        looked += f"; a set holds {size} classes on average"
    outside, undecided = facts["outside"], facts["undecided"]
    found = (
        f"{words.plural(outside, 'settled label')} "
        f"({_share(outside, total)}) {_verb(outside, 'lies', 'lie')} outside "
        f"the given set. {words.plural(undecided, 'example')} "
        f"({_share(undecided, total)}) {_verb(undecided, 'is', 'are')} "
        "undecided: no class holds half of the probability."
    )
    texts = [f"{looked}.", found, _noise(facts, total)]
    counts = counted.in_words(facts)
    return [*texts, counts] if counts else texts


def _noise(facts, total):
    """Says how many sets miss the true class, as far as that is known."""
    rate, reason = facts.get("noise_rate"), facts.get("noise_rate_reason")
    text = "The noise rate, the share of sets that miss the true class, "
    if not words.known(rate):
        text += "was neither told nor estimated."
    elif reason:
        text += f"is taken as {words.percent(rate)}: {reason.strip()}"
    else:
        text += f"is put at {words.percent(rate)}."
    suspect = facts.get("suspect")
    if words.known(suspect):
        text += (
            f" Added up over the examples, {words.count(suspect)} sets "
            f"({_share(suspect, total)}) are expected to miss it."
        )
    return text


def kinds(audit):
    """Returns which kind of labels the audit shows, as sentences."""
    sources = audit.labels["source"].astype(str).value_counts()
    result = []
    for source, number in sources.items():
        these = "all examples"
        if len(sources) > 1:
            these = words.plural(number, "example")
        text = _KINDS.get(source, "The settled labels of {these} come from ")
        text = text.format(these=these)
        result.append(text if source in _KINDS else f"{text}{source}.")
    return result


def steps(audit):
    """Returns what to do next, as sentences."""
    facts = audit.summary
    total = max(1, facts["num_examples"])
    result = []
    if len(audit.review):
        result.append(
            f"Look at the {words.plural(len(audit.review), 'example')} of "
            "the review list (review.csv): they are those where a look is "
            "expected to help most, grouped by class."
        )
    else:
        result.append("The review list is empty: nothing calls for a look.")
    if counted.verdict(facts) == "low":
        result.append(
            "If the known true labels are a random sample, more sets are "
            "wrong than the networks suspect: check a random part of those "
            "that are not flagged as well."
        )
    if facts["undecided"] > 0.2 * total:
        result.append(
            "More than a fifth of the examples are undecided. Train longer or "
            "with a larger network before you trust single labels."
        )
    if facts["outside"]:
        result.append(
            'Correct the sets: the column "suggested" of labels.csv holds the '
            "suggested set of every example in the form that the training "
            "reads."
        )
        result.append("Train again on the corrected sets and compare.")
    if (audit.labels["source"] == "table").any():
        result.append(
            "If much depends on the labels, audit with --folds: that trains "
            "several networks, each without the sets it is asked about."
        )
    return result


def figures(audit):
    """Returns the key `Figure`s; those that are not known say "-"."""
    facts = audit.summary
    total = facts["num_examples"]
    result = [
        Figure("Examples", words.count(total)),
        Figure("Classes", words.count(facts["num_classes"])),
        Figure("Mean set size", words.number(facts.get("mean_set_size"))),
        Figure(
            "Settled outside",
            words.count(facts["outside"]),
            f"{_share(facts['outside'], total)} of all",
        ),
        Figure(
            "Undecided",
            words.count(facts["undecided"]),
            f"{_share(facts['undecided'], total)} of all",
        ),
        Figure(
            "Noise rate",
            words.percent(facts.get("noise_rate")),
            "share of sets without the truth",
        ),
        Figure("Lambda", words.number(facts.get("lambda"))),
    ]
    selected = ""
    if facts.get("run_epochs") and facts["epochs"] < facts["run_epochs"]:
        selected = f"the selected one of {words.count(facts['run_epochs'])}"
    if words.known(facts.get("epochs")):
        result.append(Figure("Epochs", words.count(facts["epochs"]), selected))
    if words.known(facts.get("test_accuracy")):
        result.append(
            Figure(
                "Test accuracy",
                words.percent(facts["test_accuracy"]),
                f"after epoch {facts['epochs']}" if selected else "",
            )
        )
    if words.known(facts.get("settled_accuracy")):
        number = words.count(facts.get("compared_labels"))
        result.append(
            Figure(
                "Settled labels right",
                words.percent(facts["settled_accuracy"]),
                f"of {number} whose truth is known",
            )
        )
    return result


def _share(part, total):
    return words.percent(part / total if total else None)


def _verb(number, one, many):
    return one if number == 1 else many
