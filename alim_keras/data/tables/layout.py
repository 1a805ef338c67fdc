"""Finding out how a table lists its candidates."""

import dataclasses

from alim_keras.data.messages import first_five
from alim_keras.data.tables import columns
from alim_keras.data.tables.detect import Asked
from alim_keras.data.tables.detect import found
from alim_keras.errors import ConfigError

LAYOUTS = ("list", "wide", "long", "multi_hot")


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
    asked = Asked(
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
        layout, reason = found(asked)
    make = {"list": _list, "wide": _wide, "long": _long}.get(layout, _hot)
    return make(asked, reason)


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
    confidences = columns.known(table, columns.CONFIDENCE)
    if len(confidences) > 1:
        asked.refuse(
            f"the columns {first_five(confidences)} could all be the "
            "confidence of a vote",
            "keep one of them",
        )
    confidence = confidences[0] if confidences else None
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
