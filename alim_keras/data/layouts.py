"""From the cells of a table to votes: which columns say what.

Columns are known by their names or by flags, never by what their cells hold.
"""

import json
import re
import warnings

import numpy as np
import pandas as pd

from alim_keras.data.checks import row_ids
from alim_keras.data.class_names import BLANK
from alim_keras.data.class_names import class_numbers
from alim_keras.data.class_names import converted
from alim_keras.data.class_names import places
from alim_keras.data.class_names import shown
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import DataWarning
from alim_keras.errors import first_five
from alim_keras.errors import nearest

LAYOUTS = ("auto", "list", "wide", "long", "multi_hot")
# The names by which columns are known, in small letters.
_ITEM = ("id", "item", "item_id", "image_id", "name")
_IMAGE = ("image", "file", "filename", "file_name", "path", "image_path")
_TASK = ("task", "task_id")
_CANDIDATES = ("candidates", "candidate_labels", "partial_label", "labels")
_CANDIDATES += ("label_set", "suggested")
_ANNOTATOR = ("annotator", "worker", "user", "rater", "labeler")
_ANNOTATOR += ("annotator_id", "worker_id", "completed_by", "_annotator_id")
_LABEL = ("label", "class", "answer", "choice", "vote")
_CONFIDENCE = ("confidence", "score")
_SCORES = ("confidences", "scores", *_CONFIDENCE)
KNOWN = {*_ITEM, *_IMAGE, *_TASK, *_CANDIDATES, *_ANNOTATOR, *_LABEL, *_SCORES}
# Columns that may say that an answer does not count.
_STATUS = re.compile(
    r"(.*[:. _])?(assignment)?status|answer|was_cancelled|is_attn_check|gold.*",
    re.IGNORECASE,
)
_VERDICTS = {"accept", "reject", "ignore"}
_SEPARATORS = "|;,"
_HOT = {"0": 0, "0.0": 0, "false": 0, "1": 1, "1.0": 1, "true": 1}
_NO_LIST = (
    'is no JSON list; write all sets as ["cat", "dog"], or all as cat|dog, or '
    "give the classes with --class_names"
)


class _Header:
    """The columns of a table, looked up by flag or by known name."""

    def __init__(self, names, given, taken=()):
        self.given, self.names, self.taken = given, list(names), set(taken)
        self._lowered = {}
        for name in self.names:
            self._lowered.setdefault(name.lower(), []).append(name)

    def known(self, words):
        """Returns the columns with these names that have no role yet."""
        names = (name for word in words for name in self._lowered.get(word, ()))
        return [name for name in names if name not in self.taken]

    def rest(self):
        """Returns the columns that have no role yet."""
        return [name for name in self.names if name not in self.taken]

    def find(self, name, flag):
        """Returns the column that a flag names, and takes it."""
        alike = self._lowered.get(name.lower(), [])
        alike = [name] if name in alike else alike
        if len(alike) != 1:
            raise DataError(
                f"there is no column {name!r}, as --{flag} says, among "
                f"{first_five(self.names)}{nearest(name, self.names)}"
            )
        self.taken.add(alike[0])
        return alike[0]

    def take(self, flag, role, words, needed=False):
        """Returns the column of a role by flag or name, or None."""
        if self.given.get(flag) is not None:
            return self.find(self.given[flag], flag)
        names = self.known(words)
        if len(names) > 1:
            hint = f"say which with --{flag}={names[0]}"
            hint = hint if flag else "keep one of them"
            raise DataError(
                f"the columns {first_five(names)} could all be {role}; {hint}"
            )
        if needed and not names:
            raise DataError(
                f"no column is known to be {role}; say which it is with "
                f"--{flag}={(self.rest() or ['NAME'])[0]}. The columns are: "
                f"{first_five(self.names)}"
            )
        self.taken.update(names)
        return names[0] if names else None


def votes_of_cells(cells, layout, given, class_names, notes):
    """Returns the votes of a table, a row for each cell that names classes.

    Args:
        cells: Frame as of the readers in `formats`.
        layout: One of `LAYOUTS`.
        given: Dict of id_column, candidates_column, annotator_column and
            label_column: names or None.
        class_names: Strings, or None.
        notes: List, gets lines of text on what was read.

    Returns:
        Frame with item, label, and if the table has them annotator,
        confidence, image, truth and verdict, all as the cells are; an item
        without an answer has a row.
    """
    verdict = None
    if "answer" in cells and given["label_column"] != "answer":
        # Prodigy says in this column whether a record counts.
        if cells["answer"].map(lambda cell: str(cell) in _VERDICTS).all():
            verdict = "answer"
    header = _Header(cells.columns, given, {verdict})
    base = _items(cells, header)
    layout, reason = _layout(header, layout, class_names)
    if layout != "long" and given["label_column"] is not None:
        base["truth"] = cells[
            header.find(given["label_column"], "label_column")
        ]
    if verdict:
        base["verdict"] = cells[verdict]
    read = {"list": _list, "long": _long, "wide": _wide, "multi_hot": _hot}
    votes, columns = read[layout](cells, base, header, class_names)
    # An item without an answer keeps a row.
    silent = pd.RangeIndex(len(base)).difference(votes.index)
    votes = pd.concat([votes, pd.DataFrame(index=silent)])
    votes = votes.sort_index(kind="stable")
    for name in base:
        votes[name] = base[name].to_numpy()[votes.index]
    votes.index = cells.index[votes.index]
    notes.append(f"layout {layout}, from {reason}")
    notes.append(f"answers from the columns {first_five(columns)}")
    if "annotator" in votes and layout == "wide":
        heard = set(votes["annotator"])
        silent = [name for name in columns if name not in heard]
        if silent:
            notes.append(
                f"{len(silent)} annotator columns are blank and were ignored: "
                f"{first_five(silent)}"
            )
    filtered = set(cells.attrs.get("where", ()))
    unused = [name for name in header.rest() if name not in filtered]
    if unused:
        notes.append(f"columns that are not used: {first_five(unused)}")
    status = [name for name in unused if _STATUS.fullmatch(name)]
    if status:
        warnings.warn(
            f"the column {status[0]!r} is not used; if by it some answers do "
            f"not count, leave them out with --where={status[0]}=VALUE",
            DataWarning,
            stacklevel=3,
        )
    votes.attrs = {"layout": layout, "class_names": None, **base.attrs}
    return votes


def _items(cells, header):
    """Returns a frame with the item of each row, and its image if named."""
    has_images = cells.attrs.get("has_images", False)
    words = next((w for w in (_ITEM, _IMAGE, _TASK) if header.known(w)), ())
    role = "the id of an item"
    item = header.take("id_column", role, words, needed=not has_images)
    base = pd.DataFrame(index=cells.index)
    base["item"] = row_ids(len(cells)) if item is None else cells[item]
    if not has_images and item.lower() not in _IMAGE:
        image = header.take(None, "the image of an item", _IMAGE)
        if image is not None:
            base["image"] = cells[image]
    return base


def _layout(header, layout, class_names):
    """Returns the layout and the reason for it, by the names of columns."""
    given = header.given
    lists, people = header.known(_CANDIDATES), header.known(_ANNOTATOR)
    labels = header.known(_LABEL)
    if given["annotator_column"]:
        people = [given["annotator_column"]]
    if given["label_column"]:
        labels = [given["label_column"]]
    beside = {*labels, *header.known(_CONFIDENCE)}
    others = [name for name in header.rest() if name not in beside]
    classes = set(class_names or ())
    if layout != "auto":
        return layout, f"--layout={layout}"
    if given["candidates_column"]:
        return "list", "--candidates_column"
    if lists and people:
        raise DataError(
            f"it has the column {lists[0]!r} of candidates and {people[0]!r} "
            "of annotators; say which counts with --layout=list, or with "
            "--layout=long and --label_column=NAME"
        )
    if people and "," in people[0]:
        return "wide", "--annotator_column"
    if lists:
        return "list", f"the column {lists[0]!r}"
    if people and not labels:
        raise DataError(
            f"the column {people[0]!r} names annotators, and none is known to "
            "hold labels; say which does with --label_column=NAME"
        )
    if labels and (people or not others):
        return "long", "the columns of annotators and labels"
    # Columns 0 and 1 of votes 0 and 1 would be read in silence.
    if set(others) == classes and classes and not classes & {"0", "1"}:
        return "multi_hot", "the columns named as the classes"
    raise DataError(
        f"the columns {first_five([*labels, *others])} may be those of "
        "annotators or of classes, or something else; say which with "
        "--layout=long (a label in each row), --layout=wide (a column for each "
        "annotator) or --layout=multi_hot (a column for each class), or name "
        "that of the candidates with --candidates_column=NAME"
    )


def _list(cells, base, header, class_names):
    """Returns the votes of a table with a set in each row."""
    names = frozenset(class_names or ())
    if header.known(_CANDIDATES[:-1]):
        # labels.csv has the sets that were given and those to use instead.
        header.taken.update(header.known(_CANDIDATES[-1:]))
    flag = "candidates_column"
    column = header.take(flag, "the candidates", _CANDIDATES, needed=True)
    texts = [cell for cell in cells[column] if isinstance(cell, str)]
    texts = [text for text in texts if text.strip() not in names]
    in_json = any(text.lstrip().startswith("[") for text in texts)
    texts = [text for text in texts if text.lstrip()[:1] not in ("[", "{")]
    signs = [sign for sign in _SEPARATORS if any(sign in t for t in texts)]
    sign = signs[0] if signs else None
    if len(signs) > 1:
        both = next(text for text in texts if signs[1] in text)
        raise DataError(
            f"column {column!r} is separated by {sign!r} and {signs[1]!r}; "
            "write JSON lists, or one of them alone (a cell that is one class "
            f"of --class_names stays whole). Received: {shown(both)}"
        )
    joined = [name for name in names if sign and sign in name]

    def split(cell):
        text = cell.strip() if isinstance(cell, str) else ""
        if not text or text in names or text.lower() in BLANK:
            return cell
        if text[0] in "[{":
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                value = None
            if isinstance(value, list if text[0] == "[" else dict):
                return value
        if in_json or text[0] == "[" or text[0] + text[-1] in ("()", "{}"):
            raise ValueError(_NO_LIST)
        if any(name in text for name in joined):
            raise ValueError(
                f"can be read in two ways, as {sign!r} stands in a class name "
                'too; write the sets as JSON lists, ["cat", "dog"]'
            )
        return cell.split(sign) if sign else [cell]

    named = pd.DataFrame({"item": base["item"], "label": cells[column]})
    votes = pd.DataFrame({"label": converted(named, "label", split)})
    scores = header.known(_SCORES)[:1]
    if scores and cells[scores[0]].map(type).eq(list).all():
        header.taken.update(scores)
        votes["confidence"] = cells[scores[0]]
    return votes.reset_index(drop=True), [column]


def _long(cells, base, header, class_names):
    """Returns the votes of a table with an answer in each row."""
    flag = "label_column"
    if header.given["candidates_column"] and not header.given[flag]:
        flag = "candidates_column"
    columns = {
        "label": header.take(flag, "the label", _LABEL, needed=True),
        "annotator": header.take(
            "annotator_column", "the annotator", _ANNOTATOR
        ),
        "confidence": header.take(None, "the confidence", _CONFIDENCE),
    }
    base.attrs["confidence_column"] = columns["confidence"]
    votes = {role: cells[name] for role, name in columns.items() if name}
    columns = [name for name in columns.values() if name]
    return pd.DataFrame(votes).reset_index(drop=True), columns


def _wide(cells, base, header, class_names):
    """Returns the votes of a table with a column for each annotator."""
    text = header.given["annotator_column"]
    odd = header.known((*_LABEL, *_CANDIDATES, *_CONFIDENCE))
    if text is not None:
        columns = [name.strip() for name in text.split(",")]
        columns = [header.find(name, "annotator_column") for name in columns]
        if len(set(columns)) < len(columns):
            raise ConfigError(
                "An annotator is named twice. Received: "
                f"--annotator_column={text}"
            )
    elif odd:
        raise DataError(
            f"is the column {odd[0]!r} that of an annotator? Name those of the "
            "annotators with --annotator_column=A,B,C, or the true classes "
            f"with --label_column={odd[0]}"
        )
    else:
        columns = header.rest()
        header.taken.update(columns)
    votes = pd.DataFrame(
        {
            "annotator": np.tile(np.array(columns, object), len(cells)),
            "label": cells[columns].to_numpy(object).ravel(),
        },
        index=np.repeat(np.arange(len(cells)), len(columns)),
    )
    texts = votes["label"].map(lambda cell: str(cell).strip())
    blank = texts.str.lower().isin(BLANK) & ~texts.isin(class_names or ())
    votes = votes[~blank & votes["label"].notna()]
    if not len(votes):
        raise DataError("the table is empty, it has no answer of an annotator")
    return votes, columns


def _hot(cells, base, header, class_names):
    """Returns the votes of a table with a column of 0 and 1 for each class."""
    columns = header.rest()
    classes = set(columns if class_names is None else class_names)
    present = set(columns)
    missing = [name for name in class_names or () if name not in present]
    others = [name for name in columns if name not in classes]
    if missing or others:
        reasons = [f"none for {first_five(missing)}"] * bool(missing)
        reasons += [f"{first_five(others)} is no class"] * bool(others)
        raise DataError(
            f"the multi-hot table has {len(columns)} columns for "
            f"{len(class_names)} classes: {', '.join(reasons)}; name the "
            "columns as the classes and take others away"
        )
    if not columns:
        raise DataError("it has a column of ids only; add those of classes")
    header.taken.update(columns)
    flat = pd.Series(cells[columns].to_numpy(object).ravel(), dtype=object)
    codes, values = pd.factorize(flat.map(str))
    hot = [_HOT.get(value.strip().lower(), -1) for value in values]
    hot = np.array(hot)[codes].reshape(len(cells), len(columns))
    if (hot < 0).any():
        rows, numbers = np.nonzero(hot < 0)
        name = columns[numbers[0]]
        cell = cells[name].iloc[rows[0]]
        is_blank = cell is None or str(cell).strip().lower() in BLANK
        raise DataError(
            f"the multi-hot column {name!r} must hold only 0 and 1. Received: "
            f"{'blank' if is_blank else shown(cell)} in "
            f"{places(base, rows[:1])}"
        )
    rows, numbers = np.nonzero(hot)
    base.attrs["class_names"] = class_names or class_numbers(columns)[0]
    labels = np.array(columns, object)[numbers]
    return pd.DataFrame({"label": labels}, rows), columns
