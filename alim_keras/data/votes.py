"""From votes to candidate sets, by stated rules."""

import os
import re
import warnings

import numpy as np
import pandas as pd

from alim_keras.data.candidates import CandidateSets
from alim_keras.data.checks import warn_of_odd_sets
from alim_keras.data.class_names import NONE_OF_THESE
from alim_keras.data.class_names import PADDING
from alim_keras.data.class_names import answers
from alim_keras.data.class_names import check_class_names
from alim_keras.data.class_names import class_numbers
from alim_keras.data.class_names import converted
from alim_keras.data.class_names import in_file
from alim_keras.data.class_names import places
from alim_keras.data.class_names import shown
from alim_keras.data.class_names import why_no_text
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import DataWarning
from alim_keras.errors import check_choice
from alim_keras.errors import check_number
from alim_keras.errors import first_five

VOTES = ["item", "annotator", "label", "confidence"]
_NO_ANSWER = {"na", "n/a", "none", "null", "-", "?"}
_JOINED = re.compile(r",|\bor\b|\band\b")
_LONGEST_ID = 1024


def checked_votes(votes, class_names=None, notes=()):
    """Returns votes with the columns and types that `read_votes` promises."""
    names = frozenset(class_names or votes.attrs.get("class_names") or ())
    attrs = {"layout": "long", "class_names": None, "provenance": {}}
    attrs |= {**votes.attrs, "notes": notes}
    votes = votes.reindex(columns=[*votes, *{*VOTES} - {*votes}])
    votes["item"] = converted(votes, "item", _id_text)
    votes["label"] = converted(votes, "label", lambda c: answers(c, names))
    lists = ["label"]
    if votes["confidence"].map(type).eq(list).any():
        lists.append("confidence")
        lengths = votes[lists].map(len)
        differs = lengths["label"] != lengths["confidence"]
        if differs.any():
            raise DataError(
                "candidates and their scores must be equally long in "
                f"{places(votes, differs)}"
            )
    votes = votes.explode(lists)
    votes["label"] = converted(votes, "label", _or_none)
    votes["annotator"] = converted(votes, "annotator", _person)
    given, is_named = votes["confidence"], votes["label"].notna()
    votes["confidence"] = pd.to_numeric(given, errors="coerce").astype(float)
    wrong = is_named & given.notna() & ~np.isfinite(votes["confidence"])
    if wrong.any():
        name = attrs.get("confidence_column", "confidence")
        raise DataError(
            f"the confidence in column {name!r} must be a number. Received: "
            f"{shown(given[wrong].iloc[0])} in {places(votes, wrong)}"
        )
    if "verdict" in votes:
        votes = _by_verdict(votes, notes)
    blank = np.sum(votes["label"].isna() & votes["annotator"].notna())
    if blank:
        notes.append(f"{blank} answers name no class")
    more = [name for name in ("image", "truth") if name in votes]
    for name in more:
        convert = _id_text
        if name == "truth":
            convert = lambda cell: (answers(cell, names) or [None])[0]  # noqa: E731
        votes[name] = converted(votes, name, convert)
        first = votes.groupby("item", sort=False)[name].transform("first")
        differs = votes[name].notna() & (votes[name] != first)
        if differs.any():
            raise DataError(
                f"two values of {name!r} for one item in "
                f"{places(votes, differs)}"
            )
    votes = votes[[*VOTES, *more]]
    votes.attrs = attrs
    return votes


def _by_verdict(votes, notes):
    """Returns votes without ignored ones; those rejected are a no."""
    verdict = votes.pop("verdict")
    votes.loc[verdict == "reject", "confidence"] = 0.0
    votes.loc[verdict == "ignore", "label"] = None
    counts = verdict.value_counts()
    notes.append(
        f"{counts.get('ignore', 0)} records were ignored and "
        f"{counts.get('reject', 0)} rejected by the column 'answer'"
    )
    # An item that nobody answered keeps a row.
    answered = votes["item"].isin(votes["item"][verdict != "ignore"])
    return votes[(verdict != "ignore") | ~answered]


def _or_none(cell):
    return None if cell is None or cell != cell else cell


def _person(cell):
    return _id_text(cell) if answers(cell) else None


def _id_text(value):
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (str, int, np.integer)):
        raise ValueError("is no text")
    text = str(value).strip()
    if why := why_no_text(text, lines=True):
        raise ValueError(why)
    if not text or len(text) > _LONGEST_ID:
        raise ValueError(
            f"is blank or no text of up to {_LONGEST_ID} characters"
        )
    return text


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
    attrs, notes = votes.attrs, list(votes.attrs["notes"])
    _check_rules(votes, min_votes, min_confidence, empty_set, duplicates)
    rule = "every class that somebody named"
    if min_votes > 1:
        rule = f"every class with at least {min_votes} votes"
    if min_confidence is not None:
        rule += f" of confidence {min_confidence:g} or more"
    given = class_names or attrs["class_names"]
    given = None if given is None else check_class_names(given)
    with in_file(source):
        names, classes = _classes(votes, given, none_of_these, notes)
        items, ids = pd.factorize(votes["item"])
        counted = votes[VOTES].assign(number=items, kind=classes)
        if attrs["layout"] != "long":
            counted = _merge_rows(counted, duplicates, notes)
        counted = _count(counted[counted["kind"] >= 0], min_confidence, notes)
        pairs, sizes = np.unique(
            counted["number"] * len(names) + counted["kind"], return_counts=True
        )
        pairs = pairs[sizes >= min_votes]
        if len(pairs) < len(sizes):
            notes.append(
                f"{len(sizes) - len(pairs)} classes of items have fewer than "
                f"{min_votes} votes and are in no set"
            )
        empty = np.bincount(pairs // len(names), minlength=len(ids)) == 0
        filled = empty & ids.isin(list(answered))
        if filled.any():
            notes.append(
                f"{filled.sum()} sets are empty and their true labels are known"
            )
        kept = filled | ~empty
        if not kept.all():
            text = (
                f"{np.sum(~kept)} candidate sets are empty, ids "
                f"{_items_text(votes, ids[~kept])}"
            )
            if empty_set == "error":
                raise DataError(
                    f"{text}, by the rule: {rule}; name a class for each, or "
                    "say what they mean with --empty_set=all (any class) or "
                    "--empty_set=drop (leave them out)"
                )
            fill = empty_set == "all"
            filled, kept = filled | (empty & fill), kept | fill
            notes.append(f"{text}: {'given all classes' * fill or 'left out'}")
        if not kept.any():
            raise DataError("the table is empty once empty sets are left out")
        every = np.flatnonzero(filled)[:, None] * len(names)
        every = (every + np.arange(len(names))).ravel()
        pairs = np.concatenate([pairs, every])
        unused = np.setdiff1d(np.arange(len(names)), pairs % len(names))
        if len(unused):
            unused = first_five([names[number] for number in unused])
            notes.append(f"classes that are in no set: {unused}")
        candidates = CandidateSets.from_pairs(
            (np.cumsum(kept) - 1)[pairs // len(names)],
            pairs % len(names),
            ids[kept],
            names,
            provenance={
                **attrs["provenance"],
                "file": os.path.basename(source),
                "layout": attrs["layout"],
                "rule": rule,
            },
            source=source,
        )
    warn_of_odd_sets(candidates)
    counted = counted[kept[counted["number"]]]
    counted["label"] = np.array(names, object)[counted["kind"]]
    if counted["annotator"].notna().any():
        notes.append(f"{counted['annotator'].nunique()} annotators")
        counted["annotator"] = counted["annotator"].fillna("unknown")
    counted = counted[VOTES]
    counted.attrs = {**attrs, "class_names": names, "notes": notes}
    return candidates, counted


def _check_rules(votes, min_votes, min_confidence, empty_set, duplicates):
    check_choice("empty_set", empty_set, ("error", "all", "drop"))
    check_choice("duplicates", duplicates, ("error", "union", "first"))
    check_number("min_votes", min_votes, low=1, whole=True)
    check_number("min_confidence", min_confidence, optional=True)
    layout, largest = votes.attrs["layout"], votes["confidence"].max()
    if min_votes > 1 and layout in ("list", "multi_hot"):
        raise ConfigError(
            "--min_votes counts votes, but this file gives one set for each "
            f"item (layout {layout}); leave it out. Received: "
            f"--min_votes={min_votes}"
        )
    if min_confidence is not None and np.isnan(largest):
        raise ConfigError(
            "--min_confidence needs a column called confidence or score, or "
            f"scores beside lists. Received: --min_confidence={min_confidence}"
        )
    if min_confidence is not None and 0 < min_confidence < 1 < largest:
        _warn(
            f"the confidences reach {largest:g}, and --min_confidence="
            f"{min_confidence:g}: are they in per cent?"
        )


def _warn(text):
    warnings.warn(text, DataWarning, stacklevel=4)


def _classes(votes, given, none_of_these, notes):
    """Returns the class names, and the class of each vote or a negative."""
    is_single = given is None and votes.attrs["layout"] in ("wide", "long")
    both = votes["label"]
    if "truth" in votes:
        both = pd.concat([both, votes["truth"]])
    codes, labels = pd.factorize(both)

    def place(index):
        rows = np.unique(np.flatnonzero(codes == index) % len(votes))
        text = places(votes, rows)
        if votes.attrs["layout"] == "wide":
            who = votes["annotator"].iloc[rows].dropna().unique()
            text += f", column {first_five(list(map(repr, who)))}"
        return text

    for index, label in enumerate(labels if is_single else ()):
        parts = {part.strip() for part in label.split(",")} - {label}
        brackets = label[0] + label[-1] in ("[]", "()", "{}")
        if brackets or {"|", ";"} & set(label) or parts & set(labels):
            raise DataError(
                f"{shown(label)} in {place(index)} looks like several classes, "
                "but each cell names one here; say --layout=list if it is a "
                "set, or give the classes with --class_names"
            )
    names, numbers = class_numbers(labels, given, none_of_these, place)
    classes = np.append(numbers, PADDING)[codes[: len(votes)]]
    if given is None:
        notes.append(f"{len(names)} classes were found: {first_five(names)}")
        _warn_of_odd_names(names, classes)
    elif not set(labels[numbers >= 0]) <= set(names):
        notes.append("class numbers are places in the class names, from 0")
    padded = np.sum((classes == PADDING) & votes["label"].notna())
    left_out = np.sum(classes == NONE_OF_THESE)
    if padded:
        notes.append(f"{padded} answers -1 were taken as no answer")
    if left_out:
        notes.append(f"{left_out} answers were none of the classes: left out")
    return names, classes


def _warn_of_odd_names(names, classes):
    """Warns of labels that occur and are hardly names of classes."""
    empty = [name for name in names if name.lower() in _NO_ANSWER]
    if empty:
        _warn(
            f"{empty[0]!r} is taken for a class and looks like no answer; if "
            f"it is none, say --none_of_these={','.join(empty)}"
        )
    known = set(names)
    odd = [
        name
        for name in names
        if name[-1] in ".?!"
        or name.count(" ") > 4
        or {part.strip() for part in _JOINED.split(name)} & known - {name}
    ]
    if odd:
        once = np.sum(np.bincount(classes[classes >= 0]) == 1)
        _warn(
            f"{len(odd)} classes look like sentences: {first_five(odd)}; "
            f"{once} of {len(names)} classes occur once; give the classes with "
            "--class_names"
        )


def _merge_rows(counted, duplicates, notes):
    """Returns the votes that count where items have rows that differ."""
    rows = pd.Series(pd.factorize(counted.index)[0], counted.index)
    lead = rows.groupby(counted["number"].to_numpy()).transform("first")
    again = counted["number"][rows != lead].unique()
    if not len(again):
        return counted
    part = counted.assign(place=rows)[counted["number"].isin(again)]
    part["said"] = list(zip(part["annotator"].fillna(""), part["kind"]))
    said = part.groupby("place", sort=False).agg(
        number=("number", "first"), said=("said", frozenset)
    )
    # A row that names no class, by a word of --none_of_these too, is empty.
    said["said"] = said["said"].map(
        lambda pairs: {p for p in pairs if p[1] >= 0}
    )
    first = said.drop_duplicates("number").set_index("number")["said"]
    first = first[said["number"]].to_numpy()
    differing = said["number"][said["said"].to_numpy() != first].unique()
    number = len(differing)
    if number and duplicates == "error":
        ids = counted["item"][counted["number"].isin(differing)].unique()
        raise DataError(
            f"{number} ids have rows that differ: {_items_text(counted, ids)}; "
            "keep one of each, or say what counts with --duplicates=union or "
            "--duplicates=first"
        )
    if number:
        how = "united" if duplicates == "union" else "only the first was kept"
        notes.append(f"{number} ids have rows that differ: {how}")
    equal = said["number"][~said["number"].isin(differing)]
    if len(equal):
        equal = len(equal) - equal.nunique()
        notes.append(f"{equal} rows repeat an id and say the same: left out")
    united = counted["number"].isin(differing if duplicates == "union" else [])
    return counted[(rows == lead) | united]


def _items_text(votes, ids):
    """Returns up to five items by id and place: "a (line 2), b (line 3)"."""
    rows = votes[votes["item"].isin(ids[:6])].drop_duplicates("item")
    unit = votes.index.name or "row"
    texts = [f"{item} ({unit} {row})" for row, item in rows["item"].items()]
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
    # Where nobody is named, each row is a vote of its own.
    who = counted["annotator"].fillna("unknown")
    if counted["annotator"].isna().all():
        who = counted.index
    order = counted.assign(who=who, place=range(len(counted)))
    order = order.sort_values("confidence", ascending=False, kind="stable")
    order = order.drop_duplicates(["number", "who", "kind"])
    repeated = len(counted) - len(order)
    if repeated:
        notes.append(
            f"{repeated} answers are repeated within an item and count once"
        )
    return counted.iloc[np.sort(order["place"])]


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
    names = candidates.class_names
    _, numbers = class_numbers(
        labels, names, none_of_these, lambda i: places(truths, codes == i)
    )
    found = pd.Series(numbers[codes], truths["item"]).reindex(candidates.ids)
    return np.maximum(found.fillna(PADDING).to_numpy(np.int64), PADDING)
