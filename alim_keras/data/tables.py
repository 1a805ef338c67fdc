"""Reads files of labels: a file, a frame of votes, `CandidateSets`.

The columns of a file are known by their names or by flags, never by what their
cells hold.
"""

import ast
import contextlib
import json
import os
import re

import numpy as np
import pandas as pd

from alim_keras.data import checks
from alim_keras.data import class_names as naming
from alim_keras.data import exports
from alim_keras.data import formats
from alim_keras.data.votes import checked_votes
from alim_keras.data.votes import sets_of_votes
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import check_choice
from alim_keras.errors import first_five

_ARRAYS = ("auto", "list", "multi_hot", *formats.GRADED)
LAYOUTS = (*_ARRAYS, "wide", "long", "complementary")
# The names by which columns are known, in small letters, by their roles.
_ITEMS = (
    ("id", "item", "item_id", "image_id", "name"),
    exports.IMAGE,
    ("task", "task_id"),
)
_LISTS = (
    "candidates candidate_labels partial_label labels label_set predictions"
)
_PEOPLE = "annotator worker user rater labeler user_id annotator_id worker_id"
_NAMES = {
    "image": exports.IMAGE,
    "candidates": _LISTS.split(),
    "annotator": [*_PEOPLE.split(), "completed_by", "rad_id"],
    "label": "label class answer choice vote class_name class_label".split(),
    "confidence": ["confidence", "score"],
}
# Arguments of `sets_of_votes`.
RULES = {*sets_of_votes.__kwdefaults__} - {"class_names"}
# Columns that may say that an answer does not count.
_DOUBTFUL = re.compile(
    "status|answer|gold|attention|attn|cancel|reject|expire|approv|verdict|spam"
    "|control|honeypot|is_valid",
    re.IGNORECASE,
)


def read_votes(
    path,
    *,
    format=None,
    layout="auto",
    id_column=None,
    candidates_column=None,
    annotator_column=None,
    label_column=None,
    confidence_column=None,
    class_names=None,
    where=(),
    columns=(),
    ids=None,
    records=None,
):
    r"""Reads a file in which people, searches or models named classes.

    Args:
        path: The file.
        format: One of `formats.FORMATS`; or `"FILE.py:function"`, a function
            from the path to such a frame. Defaults to that of the ending.
        layout: `"list"` (a column of sets), `"wide"` (a column for each
            annotator), `"long"` (a row for each vote), `"complementary"` (one
            for each class that an item is not of), `"multi_hot"`, `"counts"`,
            `"probabilities"` (a column for each class) or `"auto"`, by the
            names of the columns. Arrays are multi-hot if it is auto, and with
            `"list"` class numbers filled up with -1.
        id_column: The column of items. Each of these names may be a dotted
            path into JSON, see `exports.at`.
        candidates_column: The column, or array, of sets.
        annotator_column: The column that names who voted; of a wide table
            several, with commas between them.
        label_column: The column of votes of a long table; in others that of
            the true class, blank where it is not known.
        confidence_column: The column of confidences or scores.
        class_names: Strings, the classes.
        where: String or strings `COLUMN=VALUE`, also with `!=`, `>` and `<`,
            which rows must meet.
        columns: Strings, the names of the columns of text without a header.
        ids: File of the ids of the rows, or a pattern such as `"{:05d}.png"`
            for the number of the row, from 0.
        records: Dotted path to the list of records in JSON.

    Returns:
        A `pandas.DataFrame`, a row for each answer and at least one for each
        item, whose index is the line or the row in the file: item (string),
        annotator (string or None), label (string; None where no class is
        named), confidence (float or NaN; 0 means NOT of this class) and, where
        the file has them, `image`, the path of the item's file, and `truth`,
        its true class or None. `attrs` has `notes`, lines on what was read;
        `layout`; and `class_names`, the file's own or None.

    Raises:
        DataError: A file that cannot be read, or columns told apart.
        ConfigError: An argument out of its range or without use here.
        EnvironmentLacksError: The format needs a package that is absent.

    Example:

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("id,candidates\na,cat|dog\nb,dog\n")
    >>> read_votes(path)["label"].tolist()
    ['cat', 'dog', 'dog']
    """
    path, layout = os.fspath(path), layout or "auto"
    check_choice("layout", layout, LAYOUTS)
    if class_names is not None:
        class_names = naming.check_class_names(class_names)
    roles = {
        "id": id_column,
        "candidates": candidates_column,
        "annotator": annotator_column,
        "label": label_column,
        "confidence": confidence_column,
    }
    roles = {role: name for role, name in roles.items() if name}
    if formats.format_of(path, format) == "npz":
        check_choice("layout", layout, _ARRAYS)
        column = roles.pop("candidates", None)
        cells = formats.read_arrays(path, layout, column, class_names)
    else:
        cells = formats.read(path, format, columns, records)
    notes = cells.attrs.setdefault("notes", [])
    with checks.in_file(path):
        if ids:
            cells = formats.with_ids(cells, ids)
        cells = formats.filtered(cells, where, notes)
        if "layout" not in cells.attrs:
            name, found = exports.known_table(cells, format, roles)
            if name:
                notes.append(f"read as an export of {name}")
            if isinstance(found, pd.DataFrame):
                cells, notes = found, [*notes, *found.attrs["notes"]]
            else:
                table = _Table(cells, {**found, **roles}, class_names)
                if name and layout == "auto":
                    layout = "list" if "candidates" in table.roles else "long"
                cells, roles = _votes_of(table, layout, notes), {}
        if roles:
            flags = [f"--{role}_column" for role in roles]
            raise ConfigError(f"This file has no columns for {flags}")
        return checked_votes(cells, notes)


class _Table:
    """A table whose columns are given roles one after the other."""

    def __init__(self, cells, roles, class_names):
        self.cells, self.class_names = cells, class_names
        self.roles = {role: name for role, name in roles.items() if name}
        # The columns that have a role, or that a path leads into.
        names = self.roles.values()
        self.used = {formats.open_path(cells, name) for name in names}

    @property
    def rest(self):
        return [name for name in self.cells if name not in self.used]

    def known(self, role, words=()):
        """Returns the column that a flag names, or those known by names."""
        if role in self.roles:
            return [self.roles[role]]
        words = words or _NAMES[role]
        return [name for name in self.rest if name.lower() in words]

    def take(self, role, words=(), needed=True):
        """Returns the column of a role by flag or name, or None."""
        names = self.known(role, words)
        if role in self.roles:
            formats.check_column(*names, self.cells, f"{role}_column")
        elif len(names) > 1 or (needed and not names):
            hint = f", or say which with --{role}_column=NAME"
            hint = "" if role == "image" else hint  # It has no flag.
            raise DataError(
                f"one column was expected to be the {role}; keep one{hint}. "
                f"Received: {first_five(names or [*self.cells])}"
            )
        self.used.update(names)
        return names[0] if names else None


def _votes_of(table, layout, notes):
    """Returns the votes of a table."""
    cells = table.cells
    has_images = cells.attrs.get("has_images", False)
    known = (words for words in _ITEMS if table.known("id", words))
    words = next(known, _ITEMS[0])
    item = table.take("id", words, needed=not has_images)
    rows = checks.default_ids(len(cells), "row")
    items = rows if item is None else cells[item]
    votes = table.items = pd.DataFrame({"item": items}, index=cells.index)
    if not has_images and item.lower() not in exports.IMAGE:
        image = table.take("image", needed=False)
        if image is not None:
            votes["image"] = cells[image]
    for role in ("verdict", "truth"):
        if role in table.roles:
            votes[role] = cells[table.take(role)]
    table.layout = layout = _layout(table) if layout == "auto" else layout
    is_long = layout in ("long", "complementary")
    if "label" in table.roles and not is_long:
        votes["truth"] = cells[table.take("label")]
    found, columns = _READ[layout](table)
    layout = "long" if is_long or "verdict" in votes else layout
    notes.append(f"layout {layout}, from the columns {first_five(columns)}")
    used = cells.attrs.get("where", ())
    unused = [name for name in table.rest if name not in used]
    if unused:
        notes.append(f"columns that are not used: {first_five(unused)}")
    odd = filter(_DOUBTFUL.search, unused)
    odd = [name for name in odd if cells[name].map(str).nunique() > 1]
    votes = votes.join(found)
    votes.attrs = {"layout": layout, **found.attrs}
    if odd:
        votes.attrs["doubts"] = [
            f"columns that may say which answers count are not used: "
            f"{first_five(odd)}; --where=COLUMN=VALUE takes those rows only"
        ]
    return votes


def _layout(table):
    """Returns the layout that the names of the columns tell."""
    roles, lists = table.roles, table.known("candidates")
    people, labels = table.known("annotator"), table.known("label")
    scores = [n for n in table.rest if n.lower() in _NAMES["confidence"]]
    beside = {*labels, *scores, roles.get("confidence")}
    others = [name for name in table.rest if name not in beside]
    if "candidates" in roles or (lists and not people):
        return "list"
    if "," in roles.get("annotator", ""):
        return "wide"
    if labels and not lists and (people or not others):
        return "long"
    # Columns 0 and 1 of votes 0 and 1 would be read in silence.
    classes = set(table.class_names or ())
    if classes and classes == {*others} and not classes & {"0", "1"}:
        return "multi_hot"
    raise DataError(
        f"what are the columns {first_five([*labels, *others])}? Say "
        "--layout=list (a set in a row), --layout=long (a label in a row; "
        "--label_column=NAME says in which column), --layout=wide (a column "
        "for an annotator) or --layout=multi_hot (a column for a class)"
    )


def _list(table):
    """Returns the votes of a table with a set in each row."""
    cells, names = table.cells, frozenset(table.class_names or ())
    column = table.take("candidates")
    texts = [cell.strip() for cell in cells[column] if isinstance(cell, str)]
    texts = [t for t in texts if t[:1] not in ("[", "{") and t not in names]
    signs = [sign for sign in "|;," if any(sign in text for text in texts)]
    if len(signs) > 1:
        both = next(text for text in texts if signs[1] in text)
        raise DataError(
            f"column {column!r} is separated by {signs[0]!r} and {signs[1]!r}; "
            "write JSON lists, or give names that hold them by --class_names. "
            f"Received: {naming.shown(both)}"
        )

    def split(cell):
        text = cell.strip() if isinstance(cell, str) else ""
        if not text or text in names:
            return cell
        if text[0] not in "[{(":
            return cell.split(signs[0]) if signs else [cell]
        for read in (json.loads, ast.literal_eval):
            with contextlib.suppress(ValueError, RecursionError, SyntaxError):
                value = read(text)
                is_set = isinstance(value, (set, tuple))
                return sorted(value, key=str) if is_set else value
        raise ValueError('is no JSON list; write ["cat", "dog"] or cat|dog')

    votes = table.items[["item"]].assign(label=cells[column])
    votes["label"] = naming.converted(votes, "label", split)
    words = ("confidences", "scores", *_NAMES["confidence"])
    for score in table.known("confidence", words)[:1]:
        formats.check_column(score, cells, "confidence_column")
        if cells[score].map(type).eq(list).all():
            table.used.add(score)
            votes["confidence"] = cells[score]
    return votes.drop(columns="item"), [column]


def _long(table):
    """Returns the votes of a table with an answer in each row."""
    columns = {
        "label": table.take("label"),
        "annotator": table.take("annotator", needed=False),
        "confidence": table.take("confidence", needed=False),
    }
    columns = {role: name for role, name in columns.items() if name}
    votes = {role: table.cells[name] for role, name in columns.items()}
    if table.layout == "complementary":
        votes["confidence"] = 0.0
    votes = pd.DataFrame(votes, table.cells.index)
    votes.attrs["confidence_column"] = columns.get("confidence")
    return votes, [*columns.values()]


def _wide(table):
    """Returns the votes of a table with a column for each annotator."""
    text, columns = table.roles.get("annotator"), table.rest
    words = [*_NAMES["label"], *_NAMES["candidates"], *_NAMES["confidence"]]
    odd = [name for name in columns if name.lower() in words]
    if text:
        columns = list(dict.fromkeys(map(str.strip, text.split(","))))
        for name in columns:
            formats.check_column(name, table.cells, "annotator_column")
    elif odd:
        raise DataError(
            f"is the column {odd[0]!r} that of an annotator? Name those of the "
            "annotators with --annotator_column=A,B,C, or the true classes "
            f"with --label_column={odd[0]}"
        )
    table.used.update(columns)
    votes = table.cells[columns].rename_axis(columns="annotator")
    votes = votes.stack(future_stack=True).rename("label")
    votes = votes.reset_index("annotator")
    return votes[~votes["label"].map(naming.is_blank)], columns


def _hot(table):
    """Returns the votes of a table with a column of numbers for each class."""
    columns, layout = table.rest, table.layout
    if layout in formats.GRADED and table.class_names:
        columns = [name for name in columns if name in table.class_names]
    table.used.update(columns)
    classes = table.class_names
    if classes is None:
        classes = naming.check_class_names(naming.sorted_names(columns))
    odd = [*pd.Index(classes).symmetric_difference(columns, sort=False)]
    if odd:
        raise DataError(
            f"the {layout} table has {len(columns)} columns for "
            f"{len(classes)} classes; these differ: {first_five(odd)}"
        )
    cells = table.cells[columns].to_numpy(object)

    def place(row, number):
        cell = naming.shown(cells[row, number])
        where = naming.places(table.items, [row])
        return f"the column {columns[number]!r}, {cell}, {where}"

    texts = pd.Series(cells.ravel()).astype(str)
    codes, texts = pd.factorize(texts, use_na_sentinel=False)
    texts = pd.Series(texts).str.strip().str.lower()
    texts = texts.replace({"false": "0", "true": "1"})
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(float)
    numbers = numbers[codes].reshape(cells.shape)
    rows, numbers, scores = formats.matrix_votes(numbers, layout, place)
    labels = np.array(columns, object)[numbers]
    votes = {"label": labels, "confidence": scores}
    votes = pd.DataFrame(votes, table.items.index[rows])
    votes.attrs["class_names"] = classes
    return votes, columns


_READ = {"list": _list, "wide": _wide}
_READ |= dict.fromkeys(("long", "complementary"), _long)
_READ |= dict.fromkeys(("multi_hot", *formats.GRADED), _hot)


def read_labels(path, *, class_names=None, **options):
    r"""Reads a file of labels as candidate sets.

    Takes the arguments of `read_votes` and of `sets_of_votes`.

    Returns:
        `CandidateSets`; the votes that counted, or None if nobody is named;
        and a list of strings, what was read, left out and merged.

    Example:

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("id,candidates\na,cat|dog\nb,dog\n")
    >>> candidates, votes, notes = read_labels(path)
    >>> candidates.class_names, candidates.dense().astype(int).tolist()
    (('cat', 'dog'), [[1, 1], [0, 1]])
    """
    rules = {name: options.pop(name) for name in RULES if name in options}
    rules.setdefault("source", os.fspath(path))
    votes = read_votes(path, class_names=class_names, **options)
    sets, counted = sets_of_votes(votes, class_names=class_names, **rules)
    named = counted["annotator"].notna().any()
    return sets, counted if named else None, counted.attrs["notes"]


def read_known_labels(path, class_names):
    """Returns ids and true labels, int64, of a table of `id` and `label`."""
    cells = formats.read(os.fspath(path))
    with checks.in_file(path):
        if not {"id", "label"} <= {*cells} or "suspicion" in cells:
            raise DataError(
                "the columns id and label of true labels were expected, and "
                f"no audit's labels.csv. Received: {[*cells]}"
            )
        cells = cells.rename(columns={"id": "item"})[["item", "label"]]
        known = checked_votes(cells, [])
        _, numbers = naming.class_numbers(known, ["label"], class_names)
        classes = known["label"].map(numbers).fillna(checks.PADDING)
        classes = classes.to_numpy(np.int64)
        wrong = {
            "are there twice": known["item"].duplicated(keep=False),
            f"are without a class of {first_five(class_names)}": classes < 0,
        }
        for text, rows in wrong.items():
            if rows.any():
                label = naming.shown(known["label"].fillna("")[rows].iloc[0])
                raise DataError(
                    f"ids {text}: {naming.places(known, rows)}; the first has "
                    f"{label}"
                )
    return known["item"].to_numpy(str), classes
