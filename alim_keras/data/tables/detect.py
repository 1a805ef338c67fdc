"""Finding out from its columns how a table lists its candidates."""

import dataclasses
import re

from alim_keras.data.messages import first_five
from alim_keras.data.tables import columns
from alim_keras.data.tables.table import Table
from alim_keras.data.tables.table import is_blank
from alim_keras.errors import DataError

_ZERO = ("0", "0.0", "false")
_ONE = ("1", "1.0", "true")
# Columns that say by their name that they are an annotator's: rater_2, a1.
_PEOPLE = re.compile(
    r"(annotator|worker|user|rater|labell?er|person|(random_)?label|answer|vote"
    r"|choice|expert|[awru])[ _-]?[0-9]+"
)


@dataclasses.dataclass(frozen=True)
class Asked:
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


def found(asked):
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
