"""The report's sentences and the form of its numbers."""

import math
import numbers

UNKNOWN = "-"
_SPACE = "\N{NO-BREAK SPACE}"
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


def is_known(value):
    """Returns whether a value is neither None nor NaN nor infinite."""
    if value is None:
        return False
    return not isinstance(value, numbers.Real) or math.isfinite(value)


def count(value):
    """Returns a whole number with thousands separators; "-" if not known."""
    return f"{round(float(value)):,}" if is_known(value) else UNKNOWN


def number(value):
    """Returns a number with three significant digits; "-" if not known.

    >>> number(0.034567), number(1234.5), number(float("nan"))
    ('0.0346', '1,234', '-')
    """
    if not is_known(value):
        return UNKNOWN
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.3g}"


def percent(share):
    """Returns a share as a percentage; "-" if not known.

    A share that is not quite 0 or 1 is never written as if it were. The space
    before the sign does not break.

    >>> percent(0.1234), percent(0.0), percent(0.00001), percent(0.99999)
    ('12.3 %', '0 %', '<0.1 %', '>99.9 %')
    """
    if not is_known(share):
        return UNKNOWN
    text = f"{100 * share:.1f}"
    if share in (0.0, 1.0):
        text = f"{100 * share:.0f}"
    elif text == "0.0":
        text = "<0.1"
    elif text == "100.0":
        text = ">99.9"
    return f"{text}{_SPACE}%"


def plural(value, noun, many=None):
    """Returns a count with its noun, such as "1 set" or "2,000 sets"."""
    return f"{count(value)} {noun if value == 1 else many or f'{noun}s'}"


def listed(names, most=12):
    """Returns names with commas; beyond `most` of them how many are left.

    >>> listed(["cat", "dog", "owl"], 2)
    'cat, dog + 1 more'
    """
    text = ", ".join(map(str, names[:most])) or UNKNOWN
    return f"{text} + {len(names) - most} more" if len(names) > most else text


def counted(facts):
    """Returns in sentences how many sets are wrong where the truth is known.

    Empty where fewer than 50 true labels are known.

    Args:
        facts: `Audit.summary`.
    """
    if facts["realised_noise_low"] is None:
        return ""
    share, total = facts["realised_noise"], facts["num_examples"]
    known = facts["known_labels"]
    wrong = round(share * known)
    shown = f"{count(wrong)} ({percent(share)})"
    if known == total:
        return (
            f"The true labels of all {count(total)} examples are known: "
            f"the sets of {shown} miss theirs."
        )
    low = max(facts["realised_noise_low"] * total, wrong)
    # Those that were counted are certain.
    high = min(facts["realised_noise_high"] * total, total - known + wrong)
    estimate = (facts["suspect_share"] or 0) * total
    fits = "which agrees with"
    if estimate < low:
        fits = "more than"
    elif estimate > high:
        fits = "fewer than"
    return (
        f"Of the {count(known)} examples whose true label is known "
        f"{shown} {'has' if wrong == 1 else 'have'} a set that misses it. If "
        "they are typical of all, as a random sample is, between "
        f"{count(low)} and {count(high)} of the {count(total)} sets do, {fits} "
        f"the estimate of {count(estimate)}."
    )


def sentences(facts):
    """Returns the result of an audit as sentences.

    Args:
        facts: `Audit.summary`.
    """
    total = facts["num_examples"]
    shares = {
        name: f"{count(facts[name])} ({percent(facts[name] / total)})"
        for name in ("outside", "undecided", "suspect")
    }
    texts = [
        f"{plural(total, 'item')}, "
        f"{plural(facts['num_classes'], 'class', 'classes')}. Settled labels "
        f"outside their set: {shares['outside']}; undecided: "
        f"{shares['undecided']}; sets expected to miss the true class: "
        f"{shares['suspect']}. Labels are {facts['kind']}."
    ]
    epochs, run_epochs = facts["epochs"], facts["run_epochs"]
    if epochs != run_epochs and "folds" not in facts["kinds"]:
        texts.append(
            f"The network is that of epoch {epochs} of {run_epochs}, selected."
        )
    if is_known(facts["noise_rate"]):
        texts.append(
            f"The noise rate is taken as {percent(facts['noise_rate'])}: "
            f"{facts['noise_rate_reason']}"
        )
    known = counted(facts)
    return [*texts, known] if known else texts


def kinds(facts):
    """Returns where the settled labels come from, as sentences."""
    sources = facts["kinds"]
    texts = []
    for source, examples in sources.items():
        these = plural(examples, "example")
        if len(sources) == 1:
            these = "all examples"
        texts.append(_KINDS[source].format(these=these))
    return texts


def no_review(audit):
    """Returns why the review list is empty."""
    total = audit.summary["num_examples"]
    if audit.looked_at == total:
        return (
            f"the true labels of all {count(total)} items were given, so that "
            "none is left to look at"
        )
    return "no item calls for a look"


def steps(audit):
    """Returns what to do next, as sentences."""
    facts = audit.summary
    texts = [f"The review list is empty: {no_review(audit)}."]
    if len(audit.review):
        texts = [
            f"Look at the {plural(len(audit.review), 'example')} of "
            "the review list (review.csv): they are those where a look is "
            "expected to help most, grouped by class."
        ]
    if facts["undecided"] > 0.2 * facts["num_examples"]:
        texts.append(
            "More than a fifth of the examples are undecided. Train longer or "
            "with a larger network before you trust single labels."
        )
    if facts["outside"]:
        texts.append(
            'Correct the sets: the column "suggested" of labels.csv holds the '
            "suggested set of every example in the form that the training "
            "reads. Train again on the corrected sets and compare."
        )
    if "table" in facts["kinds"]:
        texts.append(
            "If much depends on the labels, audit with --folds: that trains "
            "several networks, each without the sets it is asked about."
        )
    return texts


def figures(facts):
    """Returns the numbers of `Audit.summary` that are known, by name."""
    forms = {"num_examples": count, "outside": count, "suspect": count}
    for name in ("noise_rate", "test_accuracy", "settled_accuracy"):
        forms[name] = percent
    for name in ("suspect_share", "realised_noise", "realised_noise_low"):
        forms[name] = percent
    forms["realised_noise_high"] = percent
    return {
        name.removeprefix("num_").replace("_", " "): forms.get(
            name, count if isinstance(value, int) else number
        )(value)
        for name, value in facts.items()
        if isinstance(value, (int, float)) and is_known(value)
    }
