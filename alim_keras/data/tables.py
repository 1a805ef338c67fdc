"""Reads files of labels: a file, a frame of votes, `CandidateSets`.

`read_votes` makes one pandas frame of any file, a row for each answer, and
`sets_of_votes` makes sets of that frame by stated rules. The columns of a file
are known by their names or by flags, never by what their cells hold.
"""

import ast
import contextlib
import json
import os
import re

import numpy as np
import pandas as pd

from alim_keras.data import checks
from alim_keras.data import exports
from alim_keras.data import formats
from alim_keras.data.class_names import check_class_names
from alim_keras.data.class_names import class_numbers
from alim_keras.data.class_names import sorted_names
from alim_keras.data.class_names import converted
from alim_keras.data.class_names import is_blank
from alim_keras.data.class_names import places
from alim_keras.data.class_names import shown
from alim_keras.data.votes import checked_votes
from alim_keras.data.votes import sets_of_votes
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import check_choice
from alim_keras.errors import first_five

LAYOUTS = ("auto", "list", "wide", "long", "multi_hot", *formats.GRADED)
LAYOUTS += ("complementary",)
# The names by which columns are known, in small letters.
_ITEM = ("id", "item", "item_id", "image_id", "name")
_TASK = ("task", "task_id")
_CANDIDATES = ("candidates", "candidate_labels", "partial_label", "labels")
_CANDIDATES += ("label_set", "predictions")
_ANNOTATOR = ("annotator", "worker", "user", "rater", "labeler", "user_id")
_ANNOTATOR += ("annotator_id", "worker_id", "completed_by", "rad_id")
_LABEL = ("label", "class", "answer", "choice", "vote", "class_name")
_LABEL += ("class_label",)
_CONFIDENCE = ("confidence", "score")
_SCORES = ("confidences", "scores", *_CONFIDENCE)
# Arguments of `sets_of_votes`.
RULES = "min_votes min_confidence min_share top_k top_p none_of_these empty_set"
RULES = f"{RULES} duplicates answered grades source".split()
# Columns that may say that an answer does not count.
_DOUBTFUL = re.compile(
    "status|answer|gold|attention|attn|cancel|reject|expire|approv|verdict|spam"
    "|control|honeypot|is_valid",
    re.IGNORECASE,
)
_WORDS = {"false": "0", "true": "1"}


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
            for each class that an item is not of), `"multi_hot"`, `"counts"`
            or `"probabilities"` (a column for each class) or `"auto"`, by the
            names of the columns. Arrays are multi-hot if it is auto, and with
            `"list"` class numbers filled up with -1.
        id_column: The column that names the items.
        candidates_column: The column, or array, of sets.
        annotator_column: The column of a long table that names who voted, or
            those of a wide table, with commas between them.
        label_column: The column of votes of a long table; in others that of
            the true class, blank where it is not known.
        confidence_column: The column of confidences or scores. Of all these a
            name may be a dotted path into JSON, see `exports.at`.
        class_names: Strings, the classes.
        where: String or strings `COLUMN=VALUE`, also with `!=`, `>` and `<`,
            which rows must meet.
        columns: Strings, the names of the columns of text without a header.
        ids: File of the ids of the rows, or a pattern such as `"{:05d}.png"`
            for the number of the row, from 0.
        records: Dotted path to the list of records in JSON.

    Returns:
        A `pandas.DataFrame` whose index is the line or the row in the file,
        with the columns item (string), annotator (string or None), label
        (string; None where no class is named), confidence (float or NaN; 0
        means NOT of this class) and, where the file has them, `image`, the
        path of the item's file, and `truth`, its true class or None. Each
        item has a row. `attrs` has `notes`, lines on what was read; `layout`;
        and `class_names`, the file's own or None.

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
        class_names = check_class_names(class_names)
    given = {
        "id_column": id_column,
        "candidates_column": candidates_column,
        "annotator_column": annotator_column,
        "label_column": label_column,
        "confidence_column": confidence_column,
    }
    if formats.format_of(path, format) == "npz":
        array_layouts = ("auto", "list", "multi_hot", *formats.GRADED)
        check_choice("layout", layout, array_layouts)
        column = given.pop("candidates_column")
        frame = formats.read_arrays(path, layout, column, class_names)
    else:
        frame = formats.read(path, format, columns, records)
    notes = frame.attrs.setdefault("notes", [])
    with checks.in_file(path):
        if ids:
            frame = formats.with_ids(frame, ids)
        frame = formats.filtered(frame, where, notes)
        if "layout" not in frame.attrs:
            name, found = exports.known_table(frame, format, given)
            if name:
                notes.append(f"read as an export of {name}")
            if isinstance(found, pd.DataFrame):
                frame, notes = found, [*notes, *found.attrs["notes"]]
            else:
                if name and layout == "auto":
                    usual = "list" if candidates_column else "long"
                    layout = found.pop("layout", usual)
                said = {role: value for role, value in given.items() if value}
                roles, given = {**given, **found, **said}, {}
                frame = _votes_of_cells(
                    frame, layout, roles, class_names, notes
                )
        unused = [f"--{name}" for name in given if given[name]]
        if unused:
            raise ConfigError(
                f"This file has no columns to choose from with {unused}"
            )
        return checked_votes(frame, notes)


class _Header:
    """The columns of a table, which are given roles one after the other."""

    def __init__(self, names, given):
        self.names, self.given, self.rest = [*names], given, [*names]

    def known(self, words):
        """Returns the columns with these names that have no role yet."""
        return [name for name in self.rest if name.lower() in words]

    def use(self, names):
        """Gives columns a role."""
        used = frozenset(names)
        self.rest = [name for name in self.rest if name not in used]

    def take(self, role, words, needed=True):
        """Returns the column of a role by flag or name, or None."""
        flag, names = f"{role}_column", self.known(words)
        if self.given.get(flag) is not None:
            names = [self.given[flag]]
            formats.check_column(*names, self.names, flag)
        elif len(names) > 1 or (needed and not names):
            hint = f", or say which with --{flag}=NAME"
            hint = "" if role == "image" else hint  # It has no flag.
            raise DataError(
                f"one column was expected to be the {role}; keep one{hint}. "
                f"Received: {first_five(names or self.names)}"
            )
        self.use(names)
        return names[0] if names else None


def _votes_of_cells(cells, layout, given, class_names, notes):
    """Returns the votes of a table; `given` has roles, as `exports` says."""
    verdict, truth = given.pop("verdict", None), given.pop("truth", None)
    opened = [formats.open_path(cells, n) for n in given.values() if n]
    header = _Header(cells.columns, given)
    header.use(opened)
    base = _items(cells, header)
    if verdict is not None:
        base["verdict"], column = verdict
        header.use([column])
    if layout == "auto":
        layout = _layout(header, class_names)
    if layout != "long" and given["label_column"] is not None:
        truth = header.take("label", ())
    if truth is not None:
        base["truth"] = cells[truth]
        header.use([truth])
    votes, columns = _READ[layout](cells, base, header, class_names, layout)
    if layout == "complementary" or verdict is not None:
        layout = "long"
    notes.append(f"layout {layout}, from the columns {first_five(columns)}")
    base.attrs["layout"] = layout
    used = cells.attrs.get("where", ())
    unused = [name for name in header.rest if name not in used]
    if unused:
        notes.append(f"columns that are not used: {first_five(unused)}")
    odd = [
        name
        for name in unused
        if _DOUBTFUL.search(name) and cells[name].map(str).nunique() > 1
    ]
    if odd:
        base.attrs["doubts"] = [
            f"columns that may say which answers count are not used: "
            f"{first_five(odd)}; --where=COLUMN=VALUE takes those rows only"
        ]
    votes = base.join(votes)
    votes.attrs = base.attrs
    return votes


def _items(cells, header):
    """Returns a frame with the item of each row, and its image if named."""
    has_images = cells.attrs.get("has_images", False)
    kinds = (_ITEM, exports.IMAGE, _TASK)
    words = next((words for words in kinds if header.known(words)), ())
    item = header.take("id", words, needed=not has_images)
    ids = checks.row_ids(len(cells)) if item is None else cells[item]
    base = pd.DataFrame({"item": ids}, index=cells.index)
    if not has_images and item.lower() not in exports.IMAGE:
        image = header.take("image", exports.IMAGE, needed=False)
        if image is not None:
            base["image"] = cells[image]
    return base


def _layout(header, class_names):
    """Returns the layout that the names of the columns tell."""
    given, lists = header.given, header.known(_CANDIDATES)
    people = given["annotator_column"] or header.known(_ANNOTATOR)
    label = given["label_column"]
    labels = [label] if label else header.known(_LABEL)
    beside = {*labels, *header.known(_CONFIDENCE), given["confidence_column"]}
    others = [name for name in header.rest if name not in beside]
    if given["candidates_column"] or (lists and not people):
        return "list"
    if "," in (given["annotator_column"] or ""):
        return "wide"
    if labels and not lists and (people or not others):
        return "long"
    # Columns 0 and 1 of votes 0 and 1 would be read in silence.
    classes = set(class_names or ())
    if classes and classes == {*others} and not classes & {"0", "1"}:
        return "multi_hot"
    raise DataError(
        f"what are the columns {first_five([*labels, *others])}? Say "
        "--layout=list (a set in a row), --layout=long (a label in a row; "
        "--label_column=NAME says in which column), --layout=wide (a column "
        "for an annotator) or --layout=multi_hot (a column for a class)"
    )


def _list(cells, base, header, class_names, layout):
    """Returns the votes of a table with a set in each row."""
    names = frozenset(class_names or ())
    column = header.take("candidates", _CANDIDATES)
    texts = [cell.strip() for cell in cells[column] if isinstance(cell, str)]
    texts = [t for t in texts if t[:1] not in ("[", "{") and t not in names]
    signs = [sign for sign in "|;," if any(sign in text for text in texts)]
    if len(signs) > 1:
        both = next(text for text in texts if signs[1] in text)
        raise DataError(
            f"column {column!r} is separated by {signs[0]!r} and {signs[1]!r}; "
            "write JSON lists, or give names that hold them by --class_names. "
            f"Received: {shown(both)}"
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

    named = pd.DataFrame({"item": base["item"], "label": cells[column]})
    votes = pd.DataFrame({"label": converted(named, "label", split)})
    scores = [header.given["confidence_column"]]
    scores = scores if scores[0] else header.known(_SCORES)[:1]
    if scores and cells[scores[0]].map(type).eq(list).all():
        header.use(scores)
        votes["confidence"] = cells[scores[0]]
    return votes, [column]


def _long(cells, base, header, class_names, layout):
    """Returns the votes of a table with an answer in each row."""
    columns = {
        "label": header.take("label", _LABEL),
        "annotator": header.take("annotator", _ANNOTATOR, needed=False),
        "confidence": header.take("confidence", _CONFIDENCE, needed=False),
    }
    base.attrs["confidence_column"] = columns["confidence"]
    votes = {role: cells[name] for role, name in columns.items() if name}
    if layout == "complementary":
        votes["confidence"] = 0.0
    columns = [name for name in columns.values() if name]
    return pd.DataFrame(votes, cells.index), columns


def _wide(cells, base, header, class_names, layout):
    """Returns the votes of a table with a column for each annotator."""
    text = header.given["annotator_column"]
    odd = header.known((*_LABEL, *_CANDIDATES, *_CONFIDENCE))
    if odd and not text:
        raise DataError(
            f"is the column {odd[0]!r} that of an annotator? Name those of the "
            "annotators with --annotator_column=A,B,C, or the true classes "
            f"with --label_column={odd[0]}"
        )
    columns = header.rest
    if text:
        columns = list(dict.fromkeys(map(str.strip, text.split(","))))
        for name in columns:
            formats.check_column(name, header.names, "annotator_column")
    header.use(columns)
    votes = cells[columns].rename_axis(columns="annotator")
    votes = votes.stack(future_stack=True).rename("label")
    votes = votes.reset_index("annotator")
    return votes[~votes["label"].map(is_blank)], columns


def _hot(cells, base, header, class_names, layout):
    """Returns the votes of a table with a column of numbers for each class."""
    columns = header.rest
    if layout in formats.GRADED and class_names:
        columns = [name for name in columns if name in class_names]
    header.use(columns)
    classes = class_names or check_class_names(sorted_names(columns))
    odd = [*pd.Index(classes).symmetric_difference(columns, sort=False)]
    if odd:
        raise DataError(
            f"the {layout} table has {len(columns)} columns for "
            f"{len(classes)} classes; these differ: {first_five(odd)}"
        )

    def place(row, number):
        cell = shown(cells[columns[number]].iloc[row])
        return f"the column {columns[number]!r}, {cell}, {places(base, [row])}"

    texts = list(map(str, cells[columns].to_numpy().ravel()))
    codes, texts = pd.factorize(np.array(texts, object))
    texts = [text.strip().lower() for text in texts]
    numbers = [_WORDS.get(text, text) for text in texts]
    numbers = pd.to_numeric(np.array(numbers, object), errors="coerce")
    numbers = numbers[codes].reshape(len(cells), -1)
    rows, numbers, scores = formats.matrix_votes(numbers, layout, place)
    base.attrs["class_names"] = classes
    labels = np.array(columns, object)[numbers]
    votes = {"label": labels, "confidence": scores}
    return pd.DataFrame(votes, base.index[rows]), columns


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
        _, numbers = class_numbers(known, ["label"], class_names)
        classes = known["label"].map(numbers).fillna(checks.PADDING)
        classes = classes.to_numpy(np.int64)
        twice, wrong = known["item"].duplicated(keep=False), classes < 0
        if twice.any():
            raise DataError(f"ids are there twice: {places(known, twice)}")
        if wrong.any():
            label = known["label"].fillna("")[wrong].iloc[0]
            raise DataError(
                f"ids are without a class of {first_five(class_names)}: "
                f"{places(known, wrong)}; the first has {shown(label)}"
            )
    return known["item"].to_numpy(str), classes
