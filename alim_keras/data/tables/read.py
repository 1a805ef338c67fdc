"""`read_labels`: from a file to sets, votes and true classes."""

import os

import numpy as np

from alim_keras.data.messages import first_five
from alim_keras.data.tables import arrays
from alim_keras.data.tables import formats
from alim_keras.data.tables import gather
from alim_keras.data.tables import layout as layouts
from alim_keras.data.tables import votes
from alim_keras.data.tables.class_names import check_names
from alim_keras.data.tables.settle import settle
from alim_keras.data.tables.table import Findings
from alim_keras.data.tables.table import no_cycle_search
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError


def read_labels(
    path,
    *,
    layout="auto",
    id_column=None,
    candidates_column=None,
    annotator_column=None,
    label_column=None,
    class_names=None,
    min_votes=1,
    min_confidence=None,
    none_of_these=(),
    empty_set="error",
    duplicates="error",
    answered=None,
    where=None,
):
    r"""Reads a file in which people, searches or models named candidates.

    Formats, by the suffix: .csv, .tsv, .txt; .jsonl, .ndjson; .json (a Label
    Studio export or a list of records); .parquet; .npz and .npy, never with
    pickles; and a folder that HuggingFace `datasets` saved.

    Layouts: `list` (a column of sets: `cat|dog`, `["cat", "dog"]`), `wide` (a
    column for each annotator, blank = no vote), `long` (a row for each vote)
    and `multi_hot` (a column of 0 and 1 for each class). `"auto"` finds out
    and says so in the notes; what is ambiguous is refused.

    Args:
        path: The file, or the folder of a HuggingFace dataset.
        layout: `"auto"`, `"list"`, `"wide"`, `"long"` or `"multi_hot"`; for
            arrays `"list"` means class numbers padded with -1.
        id_column: The column that names the items. Defaults to one called
            id, item, image, file and the like.
        candidates_column: The column of sets. Defaults to one called
            candidates, candidate_labels, partial_label, labels, label_set or,
            failing these, suggested.
        annotator_column: The column of a long table that says who voted, or
            the columns of a wide table, with commas between them.
        label_column: In a long table the column of the class voted for; in
            others, and only if given, that of the true class, blank where it
            is not known.
        class_names: Strings, the classes in their order. Defaults to the
            names found, sorted, numbers as numbers. Whole numbers are places
            in this list unless a class is called by a number.
        min_votes: Integer, how many votes a class needs to enter the set.
        min_confidence: Float; votes with less are dropped. Defaults to None:
            all count.
        none_of_these: Strings that are votes for no class.
        empty_set: What happens to an item without a class: `"error"`,
            `"all"` (it may be anything) or `"drop"`.
        duplicates: What happens to an id with rows that differ: `"error"`,
            `"union"` or `"first"`. In a long table an id has many rows.
        answered: Function of the ids, strings `(N,)`, and the images as in
            `Labels`, that returns bool `(N,)`: items whose true class is to
            stand in place of their set, which may then be empty (such a one
            becomes the set of all classes). Defaults to None: none is.
        where: What the messages call the file. Defaults to `path`.

    Returns:
        A `Labels`.

    Raises:
        DataError: A file that is missing, empty, damaged or ambiguous, a cell
            that names no class, an id with contradicting rows, an empty set.
        ConfigError: An argument out of its range, or one that the file's
            layout has no use for.
        EnvironmentLacksError: The format needs a package that is absent.

    Example:

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("id,candidates\na,cat|dog\nb,dog\n")
    >>> found = read_labels(path)
    >>> found.candidates.class_names
    ('cat', 'dog')
    >>> found.candidates.sets.astype(int).tolist()
    [[1, 1], [0, 1]]
    """
    path = os.fspath(path)
    for name, value in (
        ("none_of_these", none_of_these),
        ("class_names", class_names),
    ):
        if isinstance(value, str):
            raise ConfigError(
                f"A list of names was expected. Received: {name}={value!r}"
            )
    rules = votes.Rules(
        min_votes,
        min_confidence,
        tuple(none_of_these),
        empty_set,
        duplicates,
        answered,
    )
    if class_names is not None:
        class_names = check_names(class_names)
    given = {
        "id_column": id_column,
        "candidates_column": candidates_column,
        "annotator_column": annotator_column,
        "label_column": label_column,
    }
    findings = Findings()
    try:
        with no_cycle_search():
            return _read(path, layout, given, class_names, rules, findings)
    except DataError as error:
        text = str(error)
        if path not in text:
            text = f"{path}: {text}"
        if where is not None:
            text = text.replace(path, str(where))
        # A cell may hold line ends; a message is one line.
        raise DataError(" ".join(text.split())) from error


def _read(path, layout, given, class_names, rules, findings):
    kind = formats.kind_of(path)
    if kind == "arrays":
        return arrays.read(path, layout, given, class_names, rules, findings)
    table = formats.table(path, kind, findings)
    class_names = formats.settle_names(table, class_names, findings)
    plan = layouts.plan(table, layout, given, class_names)
    findings.note(f"layout {plan.layout}, from {plan.reason}")
    _say_columns(table, plan, findings)
    _check_use(plan.layout, plan.annotator, plan.confidence, rules)
    answers, class_names, labels = gather.answers(
        table, plan, class_names, rules.none_of_these, findings
    )
    findings.count("rows", len(table))
    images = table.images
    if plan.image is not None:
        images = _images(table, plan, answers)
    return settle(
        path,
        plan.layout,
        answers,
        class_names,
        rules,
        findings,
        labels=labels,
        images=images,
    )


def _say_columns(table, plan, findings):
    used = [plan.item, plan.image, *plan.cells, plan.annotator]
    used += [plan.confidence, plan.truth]
    unused = [name for name in table.names if name not in used]
    text = f"ids from the column {plan.item!r}" if plan.item else "no ids"
    if plan.layout == "list":
        text += f", candidates from {plan.cells[0]!r}"
    elif plan.layout == "long":
        text += f", labels from {plan.cells[0]!r}"
        text += f", annotators from {plan.annotator!r}" * bool(plan.annotator)
    else:
        text += f", {len(plan.cells)} columns: {first_five(plan.cells)}"
    if unused:
        text += f"; not used: {first_five(unused)}"
    findings.note(text)


def _check_use(layout, annotator, confidence, rules):
    if rules.min_votes > 1 and layout in ("list", "multi_hot"):
        raise ConfigError(
            "--min_votes counts votes, but this file gives one set for each "
            f"item (layout {layout}); leave it out. "
            f"Received: --min_votes={rules.min_votes}"
        )
    if rules.min_confidence is not None and confidence is None:
        raise ConfigError(
            "--min_confidence needs a column called confidence or score in a "
            f"long table. Received: --min_confidence={rules.min_confidence}"
        )


def _images(table, plan, answers):
    """Returns the path of each item's image, or refuses two for one item."""
    column = table.column(plan.image)
    paths = [
        gather.id_text(value) if value is not None else None
        for value in column.values
    ]
    for index, text in enumerate(paths):
        if text is None:
            rows = np.flatnonzero(column.codes == index)
            raise DataError(
                f"{table.path}: the column {plan.image!r} names no image in "
                f"{table.places(rows)}"
            )
    numbers = np.unique(paths, return_inverse=True)[1]
    first = np.full(len(answers.ids), len(table))
    np.minimum.at(first, answers.records, np.arange(len(table)))
    same = numbers[column.codes]
    wrong = np.flatnonzero(same != same[first[answers.records]])
    if len(wrong):
        raise DataError(
            f"{table.path}: two images for one id in {table.places(wrong)}, "
            f"id {answers.ids[answers.records[wrong[0]]]}"
        )
    return [paths[column.codes[row]] for row in first]
