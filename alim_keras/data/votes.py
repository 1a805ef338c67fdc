"""From votes to candidate sets, by stated rules."""

import dataclasses
import os
import re
import warnings

import numpy as np
import pandas as pd

from alim_keras.data import checks
from alim_keras.data import class_names as naming
from alim_keras.data.annotators import VoteArrays
from alim_keras.data.annotators import likelihood_of_members
from alim_keras.data.candidates import CandidateSets
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import DataWarning
from alim_keras.errors import check_choice
from alim_keras.errors import check_number
from alim_keras.errors import first_five

GRADES = ("none", "votes", "confidence")
# With fewer annotators to an item, votes say little of the annotators.
_SEVERAL_VOTES = 1.5
# Smallest weight of a candidate.
_LEAST = 1e-6
# What each rule, or grade, needs one of.
_VOTES, _SCORES = "a row or a column for each vote", "confidences or scores"
_NEEDS = {"min_votes": [_VOTES], "min_confidence": [_SCORES]}
_NEEDS |= dict.fromkeys(("min_share", "top_k", "top_p"), [_VOTES, _SCORES])
_NEEDS |= {"grades=votes": [_VOTES], "grades=confidence": [_SCORES]}
VOTES = ["item", "annotator", "label", "confidence"]
# More candidates than this are not made of answers that say no.
_MOST = 100_000_000
# Labels that look like a list of several.
_SEVERAL = re.compile(r".*[|;].*|\[.*\]|\(.*\)|\{.*\}", re.DOTALL)


def checked_votes(votes, notes):
    """Returns votes with the columns and types that `read_votes` promises."""
    attrs = {"layout": "long", "class_names": None, "provenance": {}}
    attrs |= {"doubts": [], **votes.attrs, "notes": notes}
    votes = votes.reindex(columns=[*votes, *{*VOTES} - {*votes}])
    votes = votes.astype(object).where(votes.notna(), None)
    votes["item"] = naming.converted(votes, "item", naming.text_of)
    more = [name for name in ("image", "truth") if name in votes]
    for name in ("annotator", *more):
        if votes[name].notna().any():
            votes[name] = naming.converted(votes, name, naming.text_or_none)
    for name in more:
        differ = votes.groupby("item")[name].transform("nunique") > 1
        _refuse(votes, differ, f"an item must not have two values of {name!r}")
    votes["label"] = naming.converted(votes, "label", naming.answers)
    if votes[["label", "confidence"]].map(type).eq(list).any(axis=None):
        votes = _flat(votes)
    given = votes["confidence"]
    votes["confidence"] = pd.to_numeric(given, errors="coerce").astype(float)
    wrong = votes["label"].notna() & given.notna()
    wrong &= ~np.isfinite(votes["confidence"])
    name = attrs.get("confidence_column", "confidence")
    odd = naming.shown(next(iter(given[wrong]), None))
    text = f"the confidence {name!r} must be a number, not {odd}"
    _refuse(votes, wrong, text)
    if "verdict" in votes:
        votes.loc[votes["verdict"] == "reject", "confidence"] = 0.0
        votes.loc[votes["verdict"] == "ignore", "label"] = None
        each = votes["verdict"].value_counts().astype(str)
        notes.append(f"the answers: {', '.join(each.index + ' ' + each)}")
    votes = votes[[*VOTES, *more]]
    votes.attrs = attrs
    return votes


def _flat(votes):
    """Returns a row for each answer in a list, with its own score."""
    rows = []
    cells = zip(votes["label"], votes["confidence"])
    for row, (pairs, scores) in enumerate(cells):
        pairs = pairs if isinstance(pairs, list) else [(pairs, None)]
        # A row that names no class stays, as its item is to be known.
        pairs = pairs or [(None, None)]
        scores = scores if isinstance(scores, list) else [scores] * len(pairs)
        scores = scores or [None]
        if len(scores) != len(pairs):
            expected = "candidates and their scores must be equally many"
            _refuse(votes, np.arange(len(votes)) == row, expected)
        for (label, own), score in zip(pairs, scores):
            rows.append((row, label, score if own is None else own))
    columns = ["row", "label", "confidence"]
    flat = pd.DataFrame(rows, columns=columns, dtype=object)
    votes = votes.iloc[flat.pop("row").astype(int)]
    votes[["label", "confidence"]] = flat.set_index(votes.index)
    return votes


def _refuse(votes, wrong, expected):
    if wrong.any():
        raise DataError(f"{expected}. Received: {naming.places(votes, wrong)}")


def sets_of_votes(
    votes,
    *,
    class_names=None,
    min_votes=1,
    min_confidence=None,
    min_share=None,
    top_k=None,
    top_p=None,
    none_of_these=(),
    empty_set="error",
    duplicates="error",
    answered=(),
    grades=None,
    source="the votes",
):
    """Makes candidate sets of votes: classes that enough annotators named.

    Two votes of one annotator for one class count once; votes that name no
    annotator are each one person's. A vote of confidence 0 in a table of votes
    is a no: a class that as many reject as name is no candidate, and an item
    that is only said not to be of a class has all others as candidates.

    Args:
        votes: Frame as of `read_votes`, or of one's own with the columns item
            and label, and if you like annotator and confidence.
        class_names: Strings, the classes in their order. Defaults to those
            of the file, or to the labels that occur, sorted, numbers by
            value. Whole numbers are places in this list unless a class is
            called by a number.
        min_votes: Integer, how many votes a class needs to enter the set.
        min_confidence: Float; votes with less do not count.
        min_share: Float, the share of an item's votes, or of the sum of its
            confidences, that a class needs to enter.
        top_k: Integer, how many classes enter at most, those with the most
            votes or confidence, of equal ones the first.
        top_p: Float; as few of these enter as hold this share together.
        none_of_these: Strings, answers that stand for no class.
        empty_set: What happens to an item without a candidate: `"error"`,
            `"all"` (it may be anything) or `"drop"`, also if it is only said
            not to be of a class.
        duplicates: What happens to an item with rows that differ, in layouts
            where a row says all of an item: `"error"`, `"union"`, `"first"`.
        answered: Ids of items whose set may be empty, as their true label is
            to replace it; then it holds all classes.
        grades: The weights of candidates, the best of an item 1: `"votes"`,
            P(votes | class) by `annotators.VoteModel`; `"confidence"`, the
            sum of the confidences of its votes, one that is blank counting 1;
            or `"none"`. Defaults to those that `CandidateSets` saved; else to
            `"votes"` where 1.5 annotators on average voted on an item.
        source: String, what messages call the votes.

    Returns:
        `CandidateSets`, in the order in which the items occur; and a frame of
        the votes that counted, whose labels are class names, with all notes
        in `attrs["notes"]`.

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
    rules = dict(locals())
    if none_of_these:
        naming.check_class_names(none_of_these, "none_of_these")
    if "layout" not in votes.attrs:  # It is a frame of one's own.
        votes = checked_votes(votes, [])
    rules["rule"] = _checked_rules(votes, rules)
    attrs, notes = votes.attrs, list(votes.attrs["notes"])
    doubts, layout = list(attrs["doubts"]), attrs["layout"]
    largest = votes["confidence"].max()
    if 0 < (min_confidence or 0) < 1 < largest:
        doubts.append(
            f"the confidences reach {largest:g}, and --min_confidence="
            f"{min_confidence:g}: are they in per cent?"
        )
    with checks.in_file(source):
        given = class_names or attrs["class_names"]
        names, kinds = _classes(votes, given, none_of_these, notes, doubts)
        numbers, ids = pd.factorize(votes["item"])
        counted = votes[VOTES].assign(number=numbers, kind=kinds)
        if layout != "long":
            counted = _merge_rows(counted, duplicates, notes)
        counted = _counted(counted, layout, min_confidence, notes)
        tally = _tally(counted, len(names))
        pairs = _candidates(tally, len(names), rules, notes)
        is_empty = ~np.isin(np.arange(len(ids)), pairs // len(names))
        kept = _kept(votes, ids, is_empty, rules, notes, doubts)
        full = _all_pairs(np.flatnonzero(is_empty & kept), len(names))
        rows, kinds = np.divmod(np.append(pairs, full), len(names))
        unused = np.delete(names, kinds)
        if len(unused):
            notes.append(f"classes that are in no set: {first_five(unused)}")
        file, rule = os.path.basename(source), rules["rule"]
        provenance = {"file": file, "layout": layout, "rule": rule}
        sets = CandidateSets.from_pairs(
            (np.cumsum(kept) - 1)[rows],
            kinds,
            ids[kept],
            names,
            provenance=attrs["provenance"] | provenance,
            source=source,
        )
        counted = counted[~counted["no"] & kept[counted["number"]]]
        counted["label"] = np.array(names, object)[counted["kind"]]
        has_scores = counted["confidence"].notna().any()
        few = min(3, len(names) - 1)
        remedy = f": --top_k={few}, --top_p=0.9 or --min_share=0.1 cuts them"
        doubts += checks.odd_sets(sets, remedy if has_scores else "")
        if given is None:
            doubts += naming.odd_names(votes["label"], names, notes)
        for text in doubts:
            warnings.warn(text, DataWarning, stacklevel=2)
        grades = grades or _usual_grades(counted, attrs)
        if grades != "none":
            pairs = np.repeat(np.flatnonzero(kept), sets.sizes) * len(names)
            pairs += sets.indices
            sets = _graded(sets, grades, counted, tally, pairs, notes)
    if counted["annotator"].notna().any():
        notes.append(f"annotators: {counted['annotator'].nunique()}")
        counted["annotator"] = counted["annotator"].fillna("unknown")
    counted = counted[VOTES]
    counted.attrs = {**attrs, "class_names": names, "notes": notes}
    return sets, counted


def _checked_rules(votes, rules):
    """Returns the rules as text; raises for those that do not fit the votes."""
    check_choice("empty_set", rules["empty_set"], ("error", "all", "drop"))
    check_choice("duplicates", rules["duplicates"], ("error", "union", "first"))
    check_choice("grades", rules["grades"] or "none", GRADES)
    check_number("min_votes", rules["min_votes"], 1, whole=True)
    check_number("min_confidence", rules["min_confidence"], optional=True)
    check_number("min_share", rules["min_share"], 0, 1, optional=True)
    check_number("top_k", rules["top_k"], 1, whole=True, optional=True)
    check_number("top_p", rules["top_p"], 0, low_open=True, optional=True)
    given = {n: rules[n] for n in _NEEDS if rules.get(n) is not None}
    asked = {*given, f"grades={rules['grades']}"}
    if rules["min_votes"] == 1:
        asked.remove("min_votes")
    layout = votes.attrs["layout"]
    is_set = layout in ("list", "multi_hot", "probabilities")
    has_scores = votes["confidence"].any()  # 0 is a no, and blank is none.
    has = {_VOTES: not is_set, _SCORES: has_scores}
    for name, needs in _NEEDS.items():
        if name in asked and not any(map(has.get, needs)):
            raise ConfigError(
                f"--{name} needs {', or '.join(needs)}. Received: a table of "
                f"the layout {layout}"
            )
    return ", ".join(f"{name} {value:g}" for name, value in given.items())


def _classes(votes, given, none_of_these, notes, doubts):
    """Returns the class names, and the class of each vote or a negative."""
    labels = votes["label"].dropna().unique()
    if given is None and votes.attrs["layout"] in ("wide", "long"):
        known = {*labels}
        for label in labels:
            parts = {part.strip() for part in label.split(",")} - {label}
            if _SEVERAL.fullmatch(label) or parts & known:
                where = naming.places(votes, votes["label"] == label)
                raise DataError(
                    f"{naming.shown(label)} of {where} looks like several "
                    "classes, and one was expected; say --layout=list, or give "
                    "the classes with --class_names"
                )
    columns = [name for name in ("label", "truth") if name in votes]
    names, numbers = naming.class_numbers(votes, columns, given, none_of_these)
    classes = votes["label"].map(numbers)
    blank = [label for label in labels if numbers[label] == naming.NO_ANSWER]
    if blank:
        count = np.sum(classes == naming.NO_ANSWER)
        doubts.append(
            f"{count} answers are {first_five(blank)}, and count as none, as "
            "by --none_of_these; --class_names can make them classes"
        )
    if given is None:
        notes.append(f"{len(names)} classes were found: {first_five(names)}")
    elif {n for n in labels if numbers[n] >= 0} - {*names}:
        notes.append("class numbers are places in the class names, from 0")
    _note(notes, classes == checks.PADDING, "answers are -1: left out")
    none = classes == naming.NONE_OF_THESE
    _note(notes, none, "answers are none of these: left out")
    return names, classes.fillna(checks.PADDING).astype(np.int64)


def _merge_rows(counted, duplicates, notes):
    """Returns the votes that count where items have rows that differ."""
    rows = counted[["item", "number"]][~counted.index.duplicated()]
    rows = rows[rows["number"].duplicated(keep=False)]
    # A row that names no class, by a word of --none_of_these too, is empty.
    named = counted[(counted["kind"] >= 0) & counted.index.isin(rows.index)]
    scores = named["confidence"].fillna(-1.0)
    pairs = zip(named["annotator"].fillna(""), named["kind"], scores)
    pairs = pd.Series([*pairs], named.index, dtype=object).groupby(level=0)
    rows = rows.assign(pairs=pairs.agg(lambda row: tuple(sorted(row))))
    distinct = rows.drop_duplicates(["number", "pairs"])
    _note(notes, len(rows) - len(distinct), "rows are repeated: left out")
    again = distinct["number"].duplicated()
    differing = distinct["number"][again].unique()
    if len(differing):
        text = f"{len(differing)} ids have rows that differ"
        if duplicates == "error":
            first = rows["number"].isin(differing) & ~rows["item"].duplicated()
            raise DataError(
                f"{text}: {naming.places(rows, first)}; keep one of each, or "
                "say what counts with --duplicates=union or --duplicates=first"
            )
        notes.append(f"{text}: --duplicates={duplicates}")
    keep = distinct if duplicates == "union" else distinct[~again]
    return counted[~counted.index.isin(rows.index.difference(keep.index))]


def _counted(counted, layout, min_confidence, notes):
    """Returns the votes that count, those repeated once; `no` marks a no."""
    counted = counted[counted["kind"] >= 0]
    counted = counted.assign(no=counted["confidence"] == 0)
    if min_confidence is not None:
        weak = ~counted["no"] & ~(counted["confidence"] >= min_confidence)
        text = f"votes are weaker than {min_confidence:g}: left out"
        _note(notes, weak, text)
        counted = counted[~weak]
    if layout != "counts":
        # Each row is a vote of its own where nobody is named.
        nobody = counted["annotator"].isna()
        text = "answers name no annotator: each counts as one person's"
        _note(notes, nobody & ~nobody.all(), text)
        who = counted["annotator"].where(~nobody, counted.index.to_series())
        order = counted.assign(who=who, place=range(len(counted)))
        order = order.sort_values("confidence", ascending=False, kind="stable")
        again = order.duplicated(["number", "who", "kind", "no"])
        text = "answers are repeated within an item and count once"
        _note(notes, again, text)
        counted = counted.iloc[np.sort(order["place"][~again])]
    if layout != "long":  # A score of 0 is nobody's answer.
        return counted[~counted["no"]]
    _note(notes, counted["no"], "answers of confidence 0 are a no")
    return counted


def _tally(counted, num_classes):
    """Returns votes, noes and weight of pairs, by item * classes + class."""
    code = counted["number"] * num_classes + counted["kind"]
    noes, weight = counted["no"], counted["confidence"].fillna(1.0)
    tally = pd.DataFrame({"votes": ~noes, "noes": noes, "weight": weight})
    tally = tally.groupby(code.to_numpy()).sum()
    return tally.assign(number=tally.index // num_classes)


def _all_pairs(items, num_classes):
    return np.add.outer(items * num_classes, np.arange(num_classes)).ravel()


def _candidates(tally, num_classes, rules, notes):
    """Returns the pairs, of a tally's index, that are candidates."""
    named, noes = tally[tally["votes"] > 0], tally[tally["noes"] > 0]
    struck = named["noes"] >= named["votes"]
    text = "candidates are rejected by as many as name them: taken out"
    _note(notes, struck, text)
    pairs = named[~struck]
    leading = _leading(pairs, rules).index
    if rules["empty_set"] == "drop":
        return leading.to_numpy()
    items = np.setdiff1d(noes["number"], pairs["number"])
    text = "items are only said not to be of a class: all others are candidates"
    _note(notes, len(items), text)
    if len(items) * num_classes > _MOST:
        raise DataError(
            f"{len(items):,} {text}, too many; leave them out with "
            "--empty_set=drop"
        )
    others = np.setdiff1d(_all_pairs(items, num_classes), noes.index)
    return np.append(leading, others)


def _leading(pairs, rules):
    """Returns the pairs of item and class that lead within their item."""
    pairs = pairs[pairs["votes"] >= rules["min_votes"]]
    min_share, top_p = rules["min_share"] or 0.0, rules["top_p"] or np.inf
    top_k = rules["top_k"] or np.inf
    if (min_share, top_k, top_p) == (0.0, np.inf, np.inf):
        return pairs
    if (min_share or top_p < 1) and (pairs["weight"] < 0).any():
        raise DataError(
            "--min_share and --top_p need shares, and some scores are "
            "negative; --top_k takes any numbers"
        )
    total = pairs.groupby("number")["weight"].transform("sum")
    pairs = pairs.assign(share=pairs["weight"] / total)
    # The sum of the shares of 0.7 and 0.2 is a little less than 0.9.
    pairs = pairs.sort_values("weight", ascending=False, kind="stable")
    leaders = pairs.groupby("number")
    before = leaders["share"].cumsum() - pairs["share"]
    keep = (before < top_p - 1e-9) & (leaders.cumcount() < top_k)
    return pairs[keep & (pairs["share"] >= min_share - 1e-9)]


def _kept(votes, ids, is_empty, rules, notes, doubts):
    """Returns which items stay; raises for sets that must not be empty."""
    is_known = is_empty & ids.isin(list(rules["answered"]))
    _note(notes, is_known, "sets are empty and their true labels are known")
    kept, empty_set = ~is_empty | is_known, rules["empty_set"]
    if kept.all():
        return kept
    first = votes["item"].isin(ids[~kept]) & ~votes["item"].duplicated()
    text = f"{np.sum(~kept)} candidate sets are empty, "
    text += naming.places(votes, first)
    if empty_set == "error" or not (kept.any() or empty_set == "all"):
        raise DataError(
            f"{text}, by the rule: {rules['rule']}; name a class for each, or "
            "say --empty_set=all (any class) or drop (leave them out)"
            f"{'. '.join(['', *doubts])}"
        )
    notes.append(f"{text}: --empty_set={empty_set}")
    return kept | (empty_set == "all")


def _usual_grades(counted, attrs):
    """Returns the grades of sets for which none are asked."""
    people = counted.groupby("number")["annotator"].nunique().mean()
    is_shared = attrs["layout"] in ("long", "wide") and people >= _SEVERAL_VOTES
    return attrs.get("grades", "votes" if is_shared else "none")


def _graded(sets, grades, counted, tally, pairs, notes):
    """Returns the sets with weights; `pairs` are places in the tally."""
    if grades == "votes":
        people = counted.fillna({"annotator": "unknown"})
        votes = VoteArrays.of(people, sets.ids, sets.class_names)
        weights = likelihood_of_members(votes, sets)
    else:
        text = "confidences that are grades must not be negative"
        _refuse(counted, counted["confidence"] < 0, text)
        weights = tally["weight"][tally["votes"] > 0]
        # Sets that hold all classes because they were empty have no votes.
        weights = weights.reindex(pairs, fill_value=1.0).to_numpy()
    best = np.maximum.reduceat(weights, sets.indptr[:-1])
    weights = np.maximum(weights / np.repeat(best, sets.sizes), _LEAST)
    provenance = {**sets.provenance, "grades": grades}
    notes.append(
        f"candidates have weights, by --grades={grades}: on average "
        f"{weights.mean():.2f}"
    )
    matrix = sets.matrix.copy()
    matrix.data = weights
    return dataclasses.replace(sets, matrix=matrix, provenance=provenance)


def _note(notes, rows, text):
    if np.any(rows):
        notes.append(f"{np.sum(rows)} {text}")


def true_labels(votes, candidates):
    """Returns true classes of a table in the order of its sets, or None."""
    if "truth" not in votes:
        return None
    truths = votes[votes["truth"].notna()].drop_duplicates("item")
    names = candidates.class_names
    _, numbers = naming.class_numbers(truths, ["truth"], names)
    labels = truths.set_index("item")["truth"].map(numbers)
    labels = labels.reindex(candidates.ids)
    return labels.where(labels >= 0, checks.PADDING).to_numpy(np.int64)
