"""From votes to candidate sets, by stated rules."""

import os
import re
import warnings

import numpy as np
import pandas as pd

from alim_keras.data import formats
from alim_keras.data import layouts
from alim_keras.data.candidates import CandidateSets
from alim_keras.data.class_names import NONE_OF_THESE
from alim_keras.data.class_names import PADDING
from alim_keras.data.class_names import check_class_names
from alim_keras.data.class_names import class_numbers
from alim_keras.data.class_names import named_by_numbers
from alim_keras.data.class_names import shown
from alim_keras.data.validation import warn_of_odd_sets
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import DataWarning
from alim_keras.errors import first_five

_NO_ANSWER = {"na", "n/a", "none", "null", "-", "?"}
_LONGEST_ID = 1024


def checked_votes(votes, class_names, notes):
    """Returns votes with the columns and types that `read_votes` promises."""
    attrs = {"layout": "long", "class_names": None, "provenance": {}}
    attrs |= {**votes.attrs, "notes": notes}
    votes = votes.copy(deep=False)
    for name in ("annotator", "label", "confidence"):
        if name not in votes:
            votes[name] = None
    names = frozenset(class_names or attrs["class_names"] or ())

    def answer(cell):
        return (layouts.answers(cell, names) or [None])[0]

    votes["item"] = layouts.converted(votes, "item", _id_text)
    votes["label"] = layouts.converted(
        votes, "label", lambda cell: layouts.answers(cell, names)
    )
    lists = ["label"]
    if votes["confidence"].map(type).eq(list).any():
        lists.append("confidence")
        lengths = votes[lists].map(len)
        differs = lengths["label"] != lengths["confidence"]
        if differs.any():
            raise DataError(
                "candidates and their scores must be equally long in "
                f"{layouts.places(votes, differs)}"
            )
    votes = votes.explode(lists)
    votes["label"] = (
        votes["label"].astype(object).where(votes["label"].notna(), None)
    )
    votes["annotator"] = layouts.converted(votes, "annotator", _person)
    votes["confidence"] = _confidences(votes, attrs.get("confidence_column"))
    blank = np.sum(votes["label"].isna() & votes["annotator"].notna())
    if blank:
        notes.append(f"{blank} answers name no class")
    if "verdict" in votes:
        verdict = votes.pop("verdict")
        votes.loc[verdict == "reject", "confidence"] = 0.0
        votes.loc[verdict == "ignore", "label"] = None
        counts = verdict.value_counts()
        notes.append(
            f"{counts.get('ignore', 0)} records were ignored and "
            f"{counts.get('reject', 0)} rejected by the column 'answer'"
        )
    more = [name for name in ("image", "truth") if name in votes]
    for name in more:
        convert = answer if name == "truth" else _id_text
        votes[name] = layouts.converted(votes, name, convert)
        _check_one(votes, name)
    votes = votes[[*formats.VOTES, *more]]
    votes.attrs = attrs
    return votes


def _person(cell):
    is_blank = cell is None or cell != cell or not str(cell).strip()
    return None if is_blank else _id_text(cell)


def _id_text(value):
    """Returns an id as a string, or refuses it."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, (float, np.floating)) and value == value // 1:
        value = int(value)
    is_bool = isinstance(value, (bool, np.bool_))
    if is_bool or not isinstance(value, (str, int, np.integer)):
        raise ValueError("is no text")
    text = str(value).strip()
    if not text or len(text) > _LONGEST_ID or "\0" in text:
        raise ValueError(
            f"is blank or no text of up to {_LONGEST_ID} characters"
        )
    if text.encode("utf-8", "replace").decode() != text:
        raise ValueError("is no UTF-8 text")
    return text


def _confidences(votes, column):
    """Returns the column of confidences as floats, or refuses one."""
    given = votes["confidence"]
    numbers = pd.to_numeric(given, errors="coerce").astype(np.float64)
    if given.notna().any():
        wrong = ~np.isfinite(numbers) & votes["label"].notna() & given.notna()
        if wrong.any():
            row = np.flatnonzero(wrong)[0]
            raise DataError(
                f"the confidence in column {column!r} must be a number. "
                f"Received: {shown(given.iloc[row])} in "
                f"{layouts.places(votes, [row])}"
            )
    return numbers


def _check_one(votes, column):
    """Refuses two values of a column for one item."""
    filled = votes[votes[column].notna()]
    first = filled.drop_duplicates("item").set_index("item")[column]
    differs = first.reindex(filled["item"]).to_numpy() != filled[column]
    if differs.any():
        rows = np.flatnonzero(votes.index.isin(filled.index[differs]))
        raise DataError(
            f"two values of {column!r} for one item in "
            f"{layouts.places(votes, rows)}"
        )


def sets_of_votes(
    votes,
    *,
    class_names=None,
    min_votes=1,
    min_confidence=None,
    none_of_these=(),
    empty_set="error",
    duplicates="error",
    answered=(),
    source="the votes",
):
    """Makes candidate sets of votes.

    A class is a candidate of an item if enough annotators named it. Two votes
    of one annotator for one class count once; a vote of confidence 0 says
    that the item is not of that class, and makes no candidate.

    Args:
        votes: Frame as of `read_votes`, or of one's own with the columns item
            and label, and if you like annotator and confidence.
        class_names: Strings, the classes in their order. Defaults to those
            of the file, or to the labels that occur, sorted, numbers as
            numbers. Whole numbers are places in this list unless a class is
            called by a number.
        min_votes: Integer, how many votes a class needs to enter the set.
        min_confidence: Float; votes with less do not count. Defaults to None:
            all count.
        none_of_these: Strings, answers that stand for no class.
        empty_set: What happens to an item without a candidate: `"error"`,
            `"all"` (it may be anything) or `"drop"`.
        duplicates: What happens to an item with rows that differ, in layouts
            where a row says all of an item: `"error"`, `"union"`, `"first"`.
        answered: Ids of items whose true label is to replace their set, which
            may be empty; then it holds all classes.
        source: String, what messages call the votes.

    Returns:
        `CandidateSets`, in the order in which the items occur; and the votes
        that counted, a frame with item, annotator, label and confidence,
        whose labels are class names. Its `attrs["notes"]` has all notes.

    Raises:
        DataError: A label that is no class, an empty set, rows that differ.
        ConfigError: An argument out of its range or without use here.

    Example:

    >>> votes = pd.DataFrame({"item": ["a", "a", "b"],
    ...                       "label": ["cat", "dog", "dog"]})
    >>> sets, _ = sets_of_votes(votes)
    >>> sets.dense().astype(int).tolist()
    [[1, 1], [0, 1]]
    """
    if isinstance(none_of_these, str):
        raise ConfigError(
            "A list of names was expected. Received: "
            f"none_of_these={none_of_these!r}"
        )
    if "layout" not in votes.attrs:
        votes = checked_votes(votes, class_names, [])
    attrs, rules = votes.attrs, (min_votes, min_confidence)
    _check_rules(votes, *rules, empty_set, duplicates)
    given = class_names or attrs["class_names"]
    given = None if given is None else check_class_names(given)
    notes = list(attrs["notes"])
    try:
        names, classes = _classes(votes, given, none_of_these, notes)
        items, ids = pd.factorize(votes["item"])
        counted = votes[formats.VOTES].assign(number=items, kind=classes)
        counted = counted[classes >= 0]
        if attrs["layout"] != "long":
            counted = _merge_rows(votes, items, counted, duplicates, notes)
        counted = _count(counted, min_confidence, notes)
        keys, sizes = np.unique(
            counted["number"] * len(names) + counted["kind"], return_counts=True
        )
        if min_votes > 1:
            notes.append(
                f"{np.sum(sizes < min_votes)} classes of items have fewer than "
                f"{min_votes} votes and are in no set"
            )
        keys = keys[sizes >= min_votes]
        rows, classes = keys // len(names), keys % len(names)
        is_open = ids.isin(list(answered))
        rows, classes, kept = _settle_empty(
            rows, classes, votes, ids, names, is_open, empty_set, rules, notes
        )
        unused = np.setdiff1d(np.arange(len(names)), classes)
        if len(unused):
            unused = first_five([names[number] for number in unused])
            notes.append(f"classes that are in no set: {unused}")
        candidates = CandidateSets.from_pairs(
            rows,
            classes,
            ids[kept],
            names,
            {
                **attrs["provenance"],
                "file": os.path.basename(source),
                "layout": attrs["layout"],
                "rule": _rule(*rules),
            },
            source,
        )
    except DataError as error:
        raise DataError(" ".join(f"{source}: {error}".split())) from error
    warn_of_odd_sets(candidates)
    counted = counted[kept[counted["number"]]]
    counted = counted.assign(label=np.array(names, object)[counted["kind"]])
    if counted["annotator"].notna().any():
        notes.append(f"{counted['annotator'].nunique()} annotators")
        counted["annotator"] = counted["annotator"].fillna("unknown")
    counted = counted[formats.VOTES]
    counted.attrs = {**attrs, "class_names": names, "notes": notes}
    return candidates, counted


def _check_rules(votes, min_votes, min_confidence, empty_set, duplicates):
    for name, value, known in (
        ("empty_set", empty_set, ("error", "all", "drop")),
        ("duplicates", duplicates, ("error", "union", "first")),
    ):
        if value not in known:
            raise ConfigError(
                f"One of {', '.join(known)} was expected. "
                f"Received: --{name}={value}"
            )
    if (
        isinstance(min_votes, bool)
        or min_votes != int(min_votes)
        or min_votes < 1
    ):
        raise ConfigError(
            "A whole number from 1 was expected. "
            f"Received: --min_votes={min_votes}"
        )
    if min_confidence is not None and not np.isfinite(min_confidence):
        raise ConfigError(
            "A finite number was expected. "
            f"Received: --min_confidence={min_confidence}"
        )
    layout = votes.attrs["layout"]
    if min_votes > 1 and layout in ("list", "multi_hot"):
        raise ConfigError(
            "--min_votes counts votes, but this file gives one set for each "
            f"item (layout {layout}); leave it out. Received: "
            f"--min_votes={min_votes}"
        )
    if min_confidence is not None and votes["confidence"].isna().all():
        raise ConfigError(
            "--min_confidence needs a column called confidence or score, or "
            f"scores beside lists. Received: --min_confidence={min_confidence}"
        )
    largest = votes["confidence"].max()
    if min_confidence is not None and min_confidence < 1 < largest:
        _warn(
            f"the confidences reach {largest:g}, and --min_confidence="
            f"{min_confidence:g}: are they in per cent?"
        )


def _warn(text):
    warnings.warn(text, DataWarning, stacklevel=3)


def _rule(min_votes, min_confidence):
    text = "every class that somebody named"
    if min_votes > 1:
        text = f"every class with at least {min_votes} votes"
    if min_confidence is not None:
        text += f" of confidence {min_confidence:g} or more"
    return text


def _classes(votes, given, none_of_these, notes):
    """Returns the class names, and the class of each vote or a negative."""
    codes, labels = pd.factorize(votes["label"])
    truths = []
    if "truth" in votes:
        truths = votes["truth"].dropna().unique()
        truths = [truth for truth in truths if truth not in set(labels)]

    def place(index):
        if index >= len(labels):
            rows = np.flatnonzero(votes["truth"] == truths[index - len(labels)])
            return layouts.places(votes, rows)
        rows = np.flatnonzero(codes == index)
        text = layouts.places(votes, rows)
        if votes.attrs["layout"] == "wide":
            who = votes["annotator"].iloc[rows].unique()
            text += f", column {first_five(list(map(repr, who)))}"
        return text

    if given is None and votes.attrs["layout"] in ("wide", "long"):
        _refuse_sets(labels, place)
    names, numbers = class_numbers(
        [*labels, *truths], given, none_of_these, place
    )
    if given is None:
        notes.append(f"{len(names)} classes were found: {first_five(names)}")
        _warn_of_odd_names(names, numbers[codes[codes >= 0]])
    elif any(label not in names for label in labels) and not named_by_numbers(
        names
    ):
        notes.append("class numbers are places in the class names, from 0")
    classes = np.append(numbers, PADDING)[codes]
    # The code of a blank label is -1, too.
    for number, text in (
        (PADDING, "answers -1 were taken as no answer"),
        (NONE_OF_THESE, "answers were none of the classes: left out"),
    ):
        count = np.sum((classes == number) & (codes >= 0))
        if count:
            notes.append(f"{count} {text}")
    return names, classes


def _refuse_sets(labels, place):
    """Refuses labels for one class that look like several."""
    known = set(labels)
    for index, label in enumerate(labels):
        parts = {part.strip() for part in label.split(",")} - {label}
        if (
            {"|", ";"} & set(label)
            or label[0] + label[-1] in ("[]", "()", "{}")
            or parts & known
        ):
            raise DataError(
                f"{shown(label)} in {place(index)} looks like several classes, "
                "but each cell names one here; say --layout=list if it is a "
                "set, or give the classes with --class_names"
            )


def _warn_of_odd_names(names, classes):
    """Warns of labels that occur and are hardly names of classes."""
    empty = [name for name in names if name.lower() in _NO_ANSWER]
    if empty:
        _warn(
            f"{empty[0]!r} is taken for a class and looks like no answer; if "
            f"it is none, say --none_of_these={','.join(empty)}"
        )
    joined = re.compile(r",|\bor\b|\band\b")
    odd = [
        name
        for name in names
        if name[-1] in ".?!"
        or name.count(" ") > 4
        or {part.strip() for part in joined.split(name)} - {name} & set(names)
    ]
    if odd:
        once = np.sum(np.bincount(classes[classes >= 0]) == 1)
        _warn(
            f"{len(odd)} classes look like sentences: {first_five(odd)}; "
            f"{once} of {len(names)} classes occur once; give the classes with "
            "--class_names"
        )


def _merge_rows(votes, items, counted, duplicates, notes):
    """Returns the votes that count where items have rows that differ."""
    place, _ = pd.factorize(votes.index)
    rows = pd.DataFrame({"item": items, "row": place}).drop_duplicates()
    repeated = rows[rows["item"].duplicated(keep=False)]
    if not len(repeated):
        return counted
    row = pd.Series(place, votes.index)[~votes.index.duplicated()]
    row = row[counted.index].to_numpy()
    answers = {number: set() for number in repeated["row"]}
    who = counted["annotator"].fillna("")
    for number, *answer in zip(row, who, counted["kind"]):
        if number in answers:
            answers[number].add(tuple(answer))
    first = repeated.drop_duplicates("item").set_index("item")["row"]
    lead = first[repeated["item"]].to_numpy()
    differs = [
        answers[number] != answers[leader]
        for number, leader in zip(repeated["row"], lead)
    ]
    differing = repeated["item"][differs].unique()
    if len(differing) and duplicates == "error":
        raise DataError(
            f"{len(differing)} ids have rows that differ: "
            f"{_items_text(votes, items, differing)}; keep one of each, or say "
            "what counts with --duplicates=union or --duplicates=first"
        )
    text = {"union": "united", "first": "only the first was kept"}
    if len(differing):
        notes.append(
            f"{len(differing)} ids have rows that differ: {text[duplicates]}"
        )
    equal = len(repeated) - len(first)
    equal -= repeated["item"].isin(differing).sum() - len(differing)
    if equal:
        notes.append(f"{equal} rows repeat an id and say the same: left out")
    later = np.isin(row, repeated["row"][repeated["row"].to_numpy() != lead])
    if duplicates == "union":
        later &= ~counted["number"].isin(differing).to_numpy()
    return counted[~later]


def _items_text(votes, items, numbers):
    """Returns up to five items by id and place: "a (line 2), b (line 3)"."""
    unit = votes.index.name or "row"
    texts = []
    for number in numbers[:6]:
        row = np.argmax(items == number)
        texts.append(f"{votes['item'].iloc[row]} ({unit} {votes.index[row]})")
    return first_five(texts)


def _count(counted, min_confidence, notes):
    """Returns the votes that count, those repeated once."""
    denied = counted["confidence"] == 0
    if denied.any():
        notes.append(
            f"{denied.sum()} answers of confidence 0 say that an item is not "
            "of a class: no candidates"
        )
        counted = counted[~denied]
    if min_confidence is not None:
        weak = ~(counted["confidence"] >= min_confidence)
        notes.append(
            f"{weak.sum()} votes are weaker than {min_confidence:g}: left out"
        )
        counted = counted[~weak]
    who = counted["annotator"]
    if who.isna().all():
        # Nobody is named, so that each row is a vote of its own.
        who = pd.Series(counted.index, counted.index)
    order = counted.assign(who=who.fillna("unknown"), place=range(len(counted)))
    order = order.sort_values("confidence", ascending=False, kind="stable")
    order = order.drop_duplicates(["number", "who", "kind"])
    once = counted.iloc[np.sort(order["place"])]
    if len(once) < len(counted):
        notes.append(
            f"{len(counted) - len(once)} answers are repeated within an item "
            "and count once"
        )
    return once


def _settle_empty(
    rows, classes, votes, ids, names, is_open, empty_set, rules, notes
):
    """Returns rows and classes of candidates, and which items are kept."""
    empty = np.bincount(rows, minlength=len(ids)) == 0
    filled, kept = empty & is_open, np.ones(len(ids), bool)
    numbers = np.flatnonzero(empty & ~is_open)
    if filled.any():
        notes.append(
            f"{filled.sum()} sets are empty and their true labels are known"
        )
    if len(numbers):
        items = pd.factorize(votes["item"])[0]
        text = (
            f"{len(numbers)} candidate sets are empty, ids "
            f"{_items_text(votes, items, numbers)}"
        )
        if empty_set == "error":
            raise DataError(
                f"{text}, by the rule: {_rule(*rules)}; name a class for each, "
                "or say what they mean with --empty_set=all (any class) or "
                "--empty_set=drop (leave them out)"
            )
        filled |= empty & (empty_set == "all")
        kept = filled | ~empty
        what = "given all classes" if empty_set == "all" else "left out"
        notes.append(f"{text}: {what}")
    if not kept.any():
        raise DataError("the table is empty once empty sets are left out")
    filled = np.flatnonzero(filled)
    rows = np.concatenate([rows, np.repeat(filled, len(names))])
    every = np.tile(np.arange(len(names)), len(filled))
    return (np.cumsum(kept) - 1)[rows], np.concatenate([classes, every]), kept


def true_labels(votes, candidates, none_of_these=()):
    """Returns the true classes that a table gives beside its votes.

    Args:
        votes: Frame as of `read_votes`.
        candidates: The `CandidateSets` made of it.
        none_of_these: Strings, answers that stand for no class.

    Returns:
        int64 `(N,)`, -1 where a true class is not known; None if the table
        gives none.
    """
    if "truth" not in votes:
        return None
    truths = votes[votes["truth"].notna()].drop_duplicates("item")
    codes, labels = pd.factorize(truths["truth"])
    _, numbers = class_numbers(
        labels,
        candidates.class_names,
        none_of_these,
        lambda index: layouts.places(truths, np.flatnonzero(codes == index)),
    )
    found = pd.Series(numbers[codes], truths["item"]).reindex(candidates.ids)
    return np.maximum(found.fillna(PADDING).to_numpy(np.int64), PADDING)
