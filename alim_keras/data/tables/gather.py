"""From a table and its plan to the answers that it holds."""

import numpy as np

from alim_keras.data.candidate_sets import default_ids
from alim_keras.data.messages import first_five
from alim_keras.data.tables import cells
from alim_keras.data.tables import classes
from alim_keras.data.tables import splitting
from alim_keras.data.tables.table import LONGEST_ID
from alim_keras.data.tables.table import Numbering
from alim_keras.data.tables.table import id_text
from alim_keras.data.tables.table import id_texts
from alim_keras.data.tables.table import is_blank
from alim_keras.data.tables.votes import Answers
from alim_keras.errors import DataError

_HOT = {"0": False, "0.0": False, "false": False}
_HOT.update({"1": True, "1.0": True, "true": True})


def answers(table, plan, class_names, none_of_these, findings):
    """Returns the `Answers` of a table, its class names and true classes.

    Returns:
        `Answers`; the class names; int64 `(num_items,)` true classes with -1
        where one is not known, or None.
    """
    ids, records = items(table, plan.item, findings)
    if plan.layout == "multi_hot":
        tokens, vocabulary, annotators, names = _multi_hot(table, plan)
        known = cells.Known(class_names, none_of_these)
    else:
        vocabulary = cells.Vocabulary()
        known = cells.Known(class_names, none_of_these)
        read = {"list": _list, "wide": _wide, "long": _long}[plan.layout]
        tokens, annotators, names = read(
            table, plan, vocabulary, known, findings
        )
    truth = None
    if plan.truth is not None:
        truth = cells.single(table, plan.truth, vocabulary, known)
    every = [tokens] if truth is None else [tokens, truth]
    counts = sum(
        np.bincount(one.codes, minlength=len(vocabulary)) for one in every
    )

    def places(token):
        rows = np.concatenate([t.rows[t.codes == token] for t in every])
        text = _named(table, plan, np.unique(rows))
        if plan.layout == "wide":
            who = np.unique(annotators[tokens.codes == token])
            text += f", {first_five([f'column {names[one]!r}' for one in who])}"
        return text

    if class_names is None and plan.layout in ("wide", "long"):
        splitting.check_single(table, vocabulary.values, places)
    try:
        class_names, codes = classes.resolve(
            vocabulary.values,
            counts,
            places,
            class_names,
            none_of_these,
            findings,
        )
    except DataError as error:
        raise DataError(f"{table.path}: {error}") from error
    confidences = None
    if plan.confidence is not None:
        confidences = _confidences(table, plan, tokens)
    found = Answers(
        ids=ids,
        records=records,
        rows=tokens.rows,
        annotators=annotators,
        classes=codes[tokens.codes] if len(codes) else tokens.codes,
        confidences=confidences,
        annotator_names=names,
        whole=plan.layout != "long",
        place=lambda row: table.places([row]),
    )
    labels = None if truth is None else _truth(found, truth, codes, table)
    return found.only(found.classes != classes.NOTHING), class_names, labels


def _named(table, plan, rows):
    """Names rows by their place, and the first by its id."""
    text = table.places(rows)
    if plan.item is None or not len(rows):
        return text
    column = table.column(plan.item)
    ids = [id_text(column.values[column.codes[row]]) for row in rows[:5]]
    return f"{text} (id {', '.join(map(str, ids))})"


def items(table, name, findings):
    """Returns the ids, in order of appearance, and the item of each row."""
    if name is None:
        findings.note("the rows have no ids: they are numbered")
        return default_ids(len(table)), np.arange(len(table))
    column = table.column(name)
    texts = id_texts(column.values)
    for index, text in enumerate(texts if None in texts else ()):
        if text is None:
            rows = np.flatnonzero(column.codes == index)
            shown = repr(column.values[index])[:60]
            raise DataError(
                f"{table.path}: the id in column {name!r} is blank or no text "
                f"of up to {LONGEST_ID} characters in {table.places(rows)}; "
                f"give every row an id. Received: {shown}"
            )
    if texts == column.values:
        return np.array(texts, str), column.codes.astype(np.int64)
    findings.note("ids are taken as text without spaces around them")
    numbering = Numbering()
    numbers = numbering.codes(texts, len(texts))
    return np.array(list(numbering), str), numbers[column.codes].astype(
        np.int64
    )


def _list(table, plan, vocabulary, known, findings):
    (name,) = plan.cells
    tokens = cells.several(table, name, vocabulary, known, findings)
    return tokens, np.zeros(len(tokens.rows), np.int32), None


def _long(table, plan, vocabulary, known, findings):
    (name,) = plan.cells
    tokens = cells.single(table, name, vocabulary, known)
    blank = len(table) - len(np.unique(tokens.rows))
    if blank:
        findings.note(f"{blank} rows have a blank label: no vote")
        findings.count("blank_votes", blank)
    if plan.annotator is None:
        # Nobody is named, so that each row is a vote of its own.
        return tokens, tokens.rows.astype(np.int32), None
    people, names = _people(table, plan.annotator, findings)
    return tokens, people[tokens.rows], names


def _people(table, name, findings):
    column = table.column(name)
    texts = [
        "unknown" if is_blank(value) else id_text(value)
        for value in column.values
    ]
    for index, text in enumerate(texts):
        if text is None:
            rows = np.flatnonzero(column.codes == index)
            raise DataError(
                f"{table.path}: the annotator in {table.places(rows)} is no "
                f"name. Received: {column.values[index]!r:.60}"
            )
    blank = [i for i, v in enumerate(column.values) if is_blank(v)]
    if blank:
        count = int(np.isin(column.codes, blank).sum())
        findings.note(f"{count} votes name no annotator: called 'unknown'")
    numbering = Numbering()
    numbers = numbering.codes(texts, len(texts))
    return numbers[column.codes], tuple(numbering)


def _wide(table, plan, vocabulary, known, findings):
    rows, codes, people, names, blank = [], [], [], [], []
    for name in plan.cells:
        tokens = cells.single(table, name, vocabulary, known)
        if not len(tokens.rows):
            blank.append(name)
            continue
        rows.append(tokens.rows)
        codes.append(tokens.codes)
        people.append(np.full(len(tokens.rows), len(names), np.int32))
        names.append(name)
    if blank:
        findings.note(
            f"{len(blank)} annotator columns are blank and were ignored: "
            f"{first_five(blank)}"
        )
        findings.count("blank_annotators", len(blank))
    if not names:
        raise DataError(
            f"{table.path}: the table is empty, all cells of its annotators "
            "are blank"
        )
    tokens = cells.Tokens(np.concatenate(rows), np.concatenate(codes))
    return tokens, np.concatenate(people), tuple(names)


def _multi_hot(table, plan):
    vocabulary = cells.Vocabulary()
    rows, codes = [], []
    for name in plan.cells:
        column = table.column(name)
        hot = [_HOT.get(str(v).strip().lower()) for v in column.values]
        for index, value in enumerate(hot):
            if value is None:
                cell = column.values[index]
                what = "blank" if is_blank(cell) else repr(cell)[:60]
                where = np.flatnonzero(column.codes == index)
                raise DataError(
                    f"{table.path}: the multi-hot column {name!r} must hold "
                    f"only 0 and 1. Received: {what} in "
                    f"{_named(table, plan, where)}"
                )
        here = np.flatnonzero(np.array(hot, bool)[column.codes])
        rows.append(here)
        (number,) = vocabulary.number([name])
        codes.append(np.full(len(here), number, np.int32))
    tokens = cells.Tokens(np.concatenate(rows), np.concatenate(codes))
    return tokens, vocabulary, np.zeros(len(tokens.rows), np.int32), None


def _confidences(table, plan, tokens):
    column = table.column(plan.confidence)
    values = []
    for index, value in enumerate(column.values):
        try:
            number = float("nan" if isinstance(value, bool) else value)
        except (TypeError, ValueError, OverflowError):
            number = float("nan")
        values.append(number)
        if not np.isfinite(number):
            rows = np.flatnonzero(column.codes == index)
            rows = rows[np.isin(rows, tokens.rows)]
            if not len(rows):
                continue  # A blank label needs no confidence.
            raise DataError(
                f"{table.path}: the confidence in column "
                f"{plan.confidence!r} must be a number. Received: "
                f"{repr(value)[:60]} in {table.places(rows)}"
            )
    return np.array(values, np.float32)[column.codes[tokens.rows]]


def _truth(found, truth, codes, table):
    """Returns the true class of each item, or refuses two for one item."""
    known = codes[truth.codes]
    keep = known != classes.NOTHING
    rows, known = truth.rows[keep], known[keep]
    item = found.records[rows]
    labels = np.full(len(found.ids), -1, np.int64)
    labels[item[::-1]] = known[::-1]
    wrong = np.flatnonzero(labels[item] != known)
    if len(wrong):
        raise DataError(
            f"{table.path}: two true classes for one id in "
            f"{table.places(rows[wrong])}, id {found.ids[item[wrong[0]]]}"
        )
    return labels
