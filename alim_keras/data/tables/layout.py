"""Finding out how a table lists its candidates."""

import dataclasses
import re

from alim_keras.data.messages import first_five
from alim_keras.data.tables import columns
from alim_keras.data.tables.table import Table
from alim_keras.data.tables.table import is_blank
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

LAYOUTS = ("list", "wide", "long", "multi_hot")
_ZERO = ("0", "0.0", "false")
_ONE = ("1", "1.0", "true")
# Columns that say by their name that they are an annotator's: rater_2, a1.
_PEOPLE = re.compile(
    r"(annotator|worker|user|rater|labell?er|person|(random_)?label|answer|vote"
    r"|choice|expert|[awru])[ _-]?[0-9]+"
)


@dataclasses.dataclass(frozen=True)
class Plan:
    """Which columns of a table say what.

    Args:
        layout: `"list"`, `"wide"`, `"long"` or `"multi_hot"`.
        item: The column of ids; None if the rows are the items.
        image: The column of image paths, or None.
        cells: The columns that name classes, or (multi-hot) stand for one.
        annotator: The column of annotators in a long table, or None.
        confidence: The column of confidences in a long table, or None.
        truth: The column of true classes, or None.
        reason: What the layout was found out from.
    """

    layout: str
    item: str
    image: str
    cells: tuple
    annotator: str = None
    confidence: str = None
    truth: str = None
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class _Asked:
    """What the user has said about the columns."""

    table: Table
    item: str
    image: str
    candidates: str
    annotator: str
    label: str
    class_names: tuple

    @property
    def rest(self):
        """Columns that are neither the id, the image nor the truth."""
        label = self.label and self.table.find(self.label, "label_column")
        return [
            name
            for name in self.table.names
            if name not in (self.item, self.image, label)
        ]

    def refuse(self, what, how):
        raise DataError(f"{self.table.path}: {what}; {how}")


def plan(table, layout, given, class_names=None):
    """Returns the `Plan` of a table.

    Args:
        table: `Table`.
        layout: One of `LAYOUTS`, or `"auto"`.
        given: Dict of id_column, candidates_column, annotator_column and
            label_column: names that the user gave, or None.
        class_names: Strings, or None if not given.

    Raises:
        DataError: The layout or a column is ambiguous or missing.
    """
    if layout not in ("auto", *LAYOUTS):
        raise ConfigError(
            f"A layout of auto, {', '.join(LAYOUTS)} was expected. "
            f"Received: --layout={layout}"
        )
    item, image = columns.item_and_image(table, given["id_column"])
    asked = _Asked(
        table,
        item,
        image,
        given["candidates_column"],
        given["annotator_column"],
        given["label_column"],
        class_names,
    )
    reason = f"--layout={layout}"
    if layout == "auto":
        layout, reason = _found(asked)
    make = {"list": _list, "wide": _wide, "long": _long}.get(layout, _hot)
    return make(asked, reason)


def _found(asked):
    """Returns the layout and what it was found out from, or refuses."""
    table = asked.table
    lists = [n for n in columns.known(table, columns.CANDIDATES)]
    lists = [n for n in lists if n in asked.rest]
    if asked.candidates is not None:
        return "list", f"--candidates_column={asked.candidates}"
    annotators = [
        name
        for name in columns.known(table, columns.ANNOTATOR)
        if name in asked.rest
    ]
    labels = [
        name
        for name in columns.known(table, columns.LABEL)
        if name != asked.item
    ]
    several = asked.annotator is not None and "," in asked.annotator
    has_annotator = bool(annotators) or (asked.annotator and not several)
    if several and not lists:
        return "wide", f"--annotator_column={asked.annotator}"
    if lists and (has_annotator or several):
        asked.refuse(
            f"it has the column {lists[0]!r} with lists and "
            f"{(annotators or [asked.annotator])[0]!r} with annotators",
            "say which counts with --layout=list, or with --layout=long and "
            "--label_column=NAME",
        )
    if lists:
        return "list", f"the column {lists[0]!r}"
    if has_annotator:
        if not labels and asked.label is None:
            asked.refuse(
                "it names annotators but no column of labels",
                "say which it is with --label_column=NAME",
            )
        return "long", "its columns of annotators and labels"
    others = [n for n in asked.rest if n not in labels]
    others = [
        n for n in others if n not in columns.known(table, columns.CONFIDENCE)
    ]
    if labels or asked.label is not None:
        if others:
            asked.refuse(
                f"it has the column {(labels or [asked.label])[0]!r} beside "
                f"{first_five(others)}",
                "say what they are: --layout=long (a label in each row), or "
                "--layout=wide (a column for each annotator) or multi_hot (a "
                "column for each class)",
            )
        return "long", "its column of labels"
    return _by_contents(asked, asked.rest)


def _by_contents(asked, names):
    table = asked.table
    if not names:
        asked.refuse(
            f"no column but {asked.item!r} was found",
            "name that of the candidates with --candidates_column=NAME",
        )
    values = {name: _values(table, name) for name in names}
    binary = all(v <= {*_ZERO, *_ONE} for v in values.values())
    classes = set(asked.class_names or ())
    if classes and set(names) == classes:
        if not classes & {*_ZERO, *_ONE} and (
            binary or not any(v & classes for v in values.values())
        ):
            return "multi_hot", "its columns, which are named as the classes"
    elif not binary and all(_PEOPLE.fullmatch(n.lower()) for n in names):
        return "wide", "its columns, which are named as annotators"
    elif not binary and not any(_numeric(v) for v in values.values()):
        # Numbers may be anything: an age, a width.
        if classes and not classes & set(names):
            return "wide", "its columns, which are not named as the classes"
        if not classes and _share_values(values):
            return "wide", "its columns, which share their values"
    asked.refuse(
        f"the columns {first_five(names)} may be those of annotators or of "
        "classes, or something else",
        "say which with --layout=wide or --layout=multi_hot, or name the "
        "one of the candidates with --candidates_column=NAME",
    )


def _values(table, name):
    values = table.column(name).values
    return {str(v).strip().lower() for v in values if not is_blank(v)}


def _numeric(values):
    return bool(values) and all(
        value.removeprefix("-").replace(".", "", 1).isdecimal()
        for value in values
    )


def _share_values(values):
    """Returns whether every column says something that another says too."""
    filled = [found for found in values.values() if found]
    return len(filled) > 1 and all(
        any(one & other for other in filled if other is not one)
        for one in filled
    )


def _list(asked, reason):
    table = asked.table
    names = [
        name
        for name in columns.known(table, columns.CANDIDATES)
        if name in asked.rest
    ]
    # labels.csv has both: what was given, and what is suggested instead.
    but = [n for n in names if n.lower() == "suggested"]
    but = but if len(names) > len(but) else []
    cells = columns.one(
        table,
        columns.CANDIDATES,
        "candidates_column",
        "the candidates",
        asked.candidates,
        [*but, *(n for n in table.names if n not in asked.rest)],
    )
    if cells is None:
        asked.refuse(
            "no column of candidates was found",
            f"say which it is with --candidates_column={asked.rest[0]}"
            if asked.rest
            else "add a column named candidates",
        )
    return _made(asked, "list", (cells,), reason)


def _made(asked, layout, cells, reason, **more):
    truth = asked.label and asked.table.find(asked.label, "label_column")
    if truth in cells:
        asked.refuse(
            f"the column {truth!r} cannot hold the true class and the "
            "candidates",
            "take away --label_column",
        )
    return Plan(
        layout,
        asked.item,
        asked.image,
        cells,
        truth=truth,
        reason=reason,
        **more,
    )


def _long(asked, reason):
    table = asked.table
    label = columns.one(
        table, columns.LABEL, "label_column", "the label", asked.label
    )
    if label is None and asked.candidates is not None:
        label = table.find(asked.candidates, "candidates_column")
    if label is None:
        asked.refuse(
            "no column of labels was found",
            "say which it is with --label_column=NAME",
        )
    annotator = columns.one(
        table,
        columns.ANNOTATOR,
        "annotator_column",
        "the annotator",
        asked.annotator,
    )
    confidence = columns.one(
        table, columns.CONFIDENCE, "layout", "the confidence"
    )
    return Plan(
        "long",
        asked.item,
        asked.image,
        (label,),
        annotator,
        confidence,
        reason=reason,
    )


def _wide(asked, reason):
    table = asked.table
    if asked.annotator is not None:
        cells = tuple(
            table.find(name.strip(), "annotator_column")
            for name in asked.annotator.split(",")
        )
        if len(set(cells)) < len(cells):
            raise ConfigError(
                "An annotator is named twice. Received: "
                f"--annotator_column={asked.annotator}"
            )
        return _made(asked, "wide", cells, reason)
    return _made(asked, "wide", _all_others(asked), reason)


def _all_others(asked):
    """Returns the columns left, if none of them looks like something else."""
    names = (*columns.LABEL, *columns.CANDIDATES, *columns.CONFIDENCE)
    odd = [
        name for name in columns.known(asked.table, names) if name in asked.rest
    ]
    if odd:
        asked.refuse(
            f"is the column {odd[0]!r} that of an annotator?",
            "name those of the annotators with --annotator_column=A,B,C, or "
            f"the true classes with --label_column={odd[0]}",
        )
    if not asked.rest:
        asked.refuse("it has a column of ids only", "add the labels")
    return tuple(asked.rest)


def _hot(asked, reason):
    if asked.class_names is None:
        return _made(asked, "multi_hot", _all_others(asked), reason)
    names = asked.rest
    missing = [n for n in asked.class_names if n not in names]
    others = [n for n in names if n not in asked.class_names]
    if missing or others:
        what = [f"none for {first_five(missing)}"] if missing else []
        what += [f"{first_five(others)} is no class"] if others else []
        asked.refuse(
            f"the multi-hot table has {len(names)} columns for "
            f"{len(asked.class_names)} classes: {', '.join(what)}",
            "name the columns as the classes and take others away",
        )
    return _made(asked, "multi_hot", tuple(asked.class_names), reason)
