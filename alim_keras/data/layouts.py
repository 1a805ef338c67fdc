"""From the cells of a table to votes: which columns say what.

Columns are known by their names or by flags, never by what their cells hold.
"""

import json
import re
import warnings

import numpy as np
import pandas as pd

from alim_keras.data.checks import row_ids
from alim_keras.data.class_names import class_numbers
from alim_keras.data.class_names import shown
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import DataWarning
from alim_keras.errors import first_five
from alim_keras.errors import nearest

LAYOUTS = ("auto", "list", "wide", "long", "multi_hot")
BLANK = ("", "nan")
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
_SCORES = ("confidences", "scores")
KNOWN = {*_ITEM, *_IMAGE, *_TASK, *_CANDIDATES, *_ANNOTATOR, *_LABEL}
KNOWN |= {*_CONFIDENCE, *_SCORES}
_PEOPLE = re.compile(
    r"(annotator|worker|user|rater|labell?er|person|(random_)?label|answer|vote"
    r"|choice|expert)[ _-]?[0-9]+"
)
# Columns that may say that an answer does not count.
_STATUS = re.compile(
    r"(.*[:. _])?(status|answer|was_cancelled|is_attn_check|gold\w*)"
    r"|golden:.*|assignmentstatus",
    re.IGNORECASE,
)
_VERDICTS = {"accept", "reject", "ignore"}
_SEPARATORS = "|;,"
_HOT = {"0": 0, "0.0": 0, "false": 0, "1": 1, "1.0": 1, "true": 1}


def places(frame, rows):
    """Returns where up to five rows stand: "lines 3, 4 (id a, b)"."""
    rows = frame.iloc[np.asarray(rows, np.int64)]
    rows = rows[~rows.index.duplicated()]
    unit = (rows.index.name or "row") + "s" * (len(rows) > 1)
    text = f"{unit} {first_five(rows.index)}"
    if "item" in rows:
        text += f" (id {first_five(rows['item'].tolist())})"
    return text


class _Header:
    """The columns of a table, looked up by flag or by known name."""

    def __init__(self, names, given, but=()):
        self.given, self.names = given, list(names)
        self.taken = set(but)
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
        if name not in alike and len(alike) != 1:
            raise DataError(
                f"there is no column {name!r}, as --{flag} says, among "
                f"{first_five(self.names)}{nearest(name, self.names)}"
            )
        self.taken.add(name if name in alike else alike[0])
        return name if name in alike else alike[0]

    def take(self, flag, role, words):
        """Returns the column of a role by flag or name, or None."""
        if self.given.get(flag) is not None:
            return self.find(self.given[flag], flag)
        names = self.known(words)
        if len(names) > 1:
            raise DataError(
                f"the columns {first_five(names)} could all be {role}; say "
                f"which with --{flag}={names[0]}"
            )
        self.taken.update(names)
        return names[0] if names else None


def votes_of_cells(cells, layout, given, class_names, notes):
    """Returns the votes of a table, a row for each answer or silent item."""
    verdict = _verdict(cells, given)
    header = _Header(cells.columns, given, verdict)
    base = _items(cells, header, notes)
    layout, reason = _layout(header, layout, class_names)
    notes.append(f"layout {layout}, from {reason}")
    names = frozenset(class_names or ())
    truth = None
    if layout != "long" and given["label_column"] is not None:
        truth = header.find(given["label_column"], "label_column")
        truths = _lists(cells[truth], base, lambda cell: answers(cell, names))
        base["truth"] = [(row or [None])[0] for row in truths]
        notes.append(f"true classes from {truth!r}")
    if layout == "multi_hot":
        columns = _hot_columns(header, class_names)
        votes = _hot(cells, base, columns)
        class_names = class_names or class_numbers(columns)[0]
    else:
        class_names = None
        read = {"list": _list, "wide": _wide, "long": _long}[layout]
        votes = read(cells, base, header, names, notes)
    # An item without an answer keeps a row.
    silent = pd.RangeIndex(len(base)).difference(votes.index)
    votes = pd.concat([votes, pd.DataFrame(index=silent)])
    votes = votes.sort_index(kind="stable")
    for name in base:
        votes[name] = base[name].to_numpy()[votes.index]
    if verdict:
        votes["verdict"] = cells["answer"].to_numpy()[votes.index]
    votes.index = cells.index[votes.index]
    _note_unused(header.rest(), notes)
    votes.attrs = {"layout": layout, "class_names": class_names, **base.attrs}
    return votes


def _verdict(cells, given):
    """Returns the column that says which records count, as a set.

    It is Prodigy's `answer`, which is "accept", "reject" or "ignore".
    """
    if "answer" not in cells or given["label_column"] == "answer":
        return set()
    are_verdicts = all(
        type(cell) is str and cell in _VERDICTS for cell in cells["answer"]
    )
    return {"answer"} if are_verdicts else set()


def _items(cells, header, notes):
    """Returns a frame with the item of each row, and its image if named."""
    for words in (_ITEM, _IMAGE, _TASK):
        item = header.take("id_column", "the id of an item", words)
        if item is not None:
            break
    has_images = cells.attrs.get("has_images", False)
    base = pd.DataFrame(index=cells.index)
    if item is not None:
        base["item"] = cells[item]
        notes.append(f"ids from the column {item!r}")
    elif has_images:
        base["item"] = row_ids(len(cells)).astype(object)
        notes.append("the rows have no ids: they are numbered")
    else:
        raise DataError(
            "no column names the items (id, image, file, ...); say which does "
            f"with --id_column={header.names[0]}. The columns are: "
            f"{first_five(header.names)}"
        )
    images = header.known(_IMAGE)
    if images and not has_images and item.lower() not in _IMAGE:
        if len(images) > 1:
            raise DataError(
                f"the columns {first_five(images)} could all name the image "
                f"files; make one of them the id with --id_column={images[0]}"
            )
        base["image"] = cells[header.find(images[0], "id_column")]
    return base


def _layout(header, layout, class_names):
    """Returns the layout and the reason for it, by the names of columns."""
    if layout != "auto":
        return layout, f"--layout={layout}"
    given = header.given
    annotators = given["annotator_column"] or ""
    if given["candidates_column"] is not None:
        return "list", "--candidates_column"
    lists = header.known(_CANDIDATES)
    people = [annotators] if annotators else header.known(_ANNOTATOR)
    if lists and people:
        raise DataError(
            f"it has the column {lists[0]!r} of candidates and {people[0]!r} "
            "of annotators; say which counts with --layout=list, or with "
            "--layout=long and --label_column=NAME"
        )
    if "," in annotators:
        return "wide", "--annotator_column"
    if lists:
        return "list", f"the column {lists[0]!r}"
    labels = header.known(_LABEL)
    if given["label_column"]:
        labels = [given["label_column"]]
    if people and labels:
        return "long", "the columns of annotators and labels"
    if people:
        raise DataError(
            f"the column {people[0]!r} names annotators, and none is known to "
            "hold labels; say which does with --label_column=NAME"
        )
    beside = {*labels, *header.known(_CONFIDENCE)}
    others = [name for name in header.rest() if name not in beside]
    if labels and not others:
        return "long", "the column of labels"
    if labels:
        raise DataError(
            f"it has the column {labels[0]!r} beside {first_five(others)}; say "
            "what they are: --layout=long (a label in each row), or "
            "--layout=wide (a column for each annotator) or multi_hot (a "
            "column for each class)"
        )
    if others and all(_PEOPLE.fullmatch(name.lower()) for name in others):
        return "wide", "the columns named as annotators"
    # Columns 0 and 1 of votes 0 and 1 would be read in silence.
    classes = set(class_names or ())
    if set(others) == classes and classes and not classes & {"0", "1"}:
        return "multi_hot", "the columns named as the classes"
    raise DataError(
        f"the columns {first_five(others)} may be those of annotators or of "
        "classes, or something else; say which with --layout=wide or "
        "--layout=multi_hot, or name that of the candidates with "
        "--candidates_column=NAME"
    )


def _note_unused(unused, notes):
    if not unused:
        return
    notes.append(f"columns that are not used: {first_five(unused)}")
    status = [name for name in unused if _STATUS.fullmatch(name)]
    if status:
        _warn(
            f"the column {status[0]!r} is not used; if by it some answers do "
            f"not count, leave them out with --where={status[0]}=VALUE"
        )


def _warn(text):
    warnings.warn(text, DataWarning, stacklevel=2)


def _lists(cells, base, read):
    """Returns the list of answers of each cell of a column."""
    lists = []
    for row, cell in enumerate(cells.tolist()):
        try:
            lists.append(read(cell))
        except ValueError as error:
            where = places(base, [row])
            raise DataError(
                f"column {cells.name!r}: {shown(cell)} in {where} {error}"
            ) from error
    return lists


def answers(cell, names):
    """Returns the classes that a cell for one answer names, as strings."""
    if isinstance(cell, str):
        text = cell.strip()
        if text in names:
            return [cell]
        if text.lower() in BLANK:
            return []
        if not text.startswith("{"):
            return [cell]
        cell = _parsed(text, cell)  # Label Studio's CSV holds JSON.
    if isinstance(cell, dict) and set(cell) == {"choices"}:
        cell = cell["choices"]
    if isinstance(cell, (list, tuple)):
        return [_class_text(value) for value in cell]
    if cell is None or cell != cell:
        return []
    return [_class_text(cell)]


def _parsed(text, default):
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return default


def _class_text(value):
    """Returns a class name or number of a typed file as a string."""
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("names no class: a name is missing in it")
        return value
    if isinstance(value, bool):
        raise ValueError("names no class: true and false are none")
    if value is None or value != value:
        raise ValueError("names no class: it is blank inside a set")
    if not isinstance(value, (int, float)):
        raise ValueError(
            "names no class: a class name or number was expected; if it is a "
            "set, say --layout=list"
        )
    if abs(value) >= 1e15 or value != int(value):
        raise ValueError("names no class: a class number must be whole")
    return str(int(value))


def _list(cells, base, header, names, notes):
    """Returns the votes of a table with a set in each row."""
    known = header.known(_CANDIDATES)
    if header.given["candidates_column"] is None and len(known) > 1:
        # labels.csv has the sets that were given and those to use instead.
        header.taken.update(name for name in known if name == "suggested")
    column = header.take("candidates_column", "the candidates", _CANDIDATES)
    if column is None:
        raise DataError(
            "no column of candidates is known; say which it is with "
            f"--candidates_column={(header.rest() or ['NAME'])[0]}"
        )
    texts = [cell for cell in cells[column] if isinstance(cell, str)]
    texts = [text for text in texts if text.strip() not in names]
    in_json = any(text.lstrip().startswith("[") for text in texts)
    plain = [text for text in texts if text.lstrip()[:1] not in ("[", "{")]
    signs = [sign for sign in _SEPARATORS if any(sign in t for t in plain)]
    sign = signs[0] if signs else None
    if len(signs) > 1:
        both = next(row for row in plain if signs[1] in row)
        raise DataError(
            f"column {column!r} is separated by "
            f"{' and '.join(map(repr, signs))}; write JSON lists, or one of "
            "them alone (a cell that is one class of --class_names stays "
            f"whole). Received: {shown(both)}"
        )
    joined = [name for name in names if sign and sign in name]

    def split(cell):
        text = cell.strip() if isinstance(cell, str) else ""
        if not text or text in names or text.lower() in BLANK:
            return answers(cell, names)
        if text[0] == "[" and isinstance(values := _parsed(text, None), list):
            return [_class_text(value) for value in values]
        if text[0] + text[-1] in ("[]", "()", "{}") or text[0] == "[":
            if not isinstance(_parsed(text, None), dict):
                raise ValueError(
                    'is no JSON list; write ["cat", "dog"] with double '
                    "quotes, or cat|dog, or give the classes with "
                    "--class_names"
                )
        if in_json:
            raise ValueError("is no JSON list as others are; write all alike")
        if sign is None or text[0] == "{":
            return answers(cell, names)
        if any(name in text for name in joined):
            raise ValueError(
                f"can be read in two ways, as {sign!r} stands in a class name "
                'too; write the sets as JSON lists, ["cat", "dog"]'
            )
        return [_class_text(part) for part in cell.split(sign)]

    lists = _lists(cells[column], base, split)
    notes.append(
        f"candidates from {column!r}, "
        + (f"separated by {sign!r}" if sign else "one or a list in a cell")
    )
    votes = pd.DataFrame({"label": pd.Series(lists, dtype=object)})
    scores = header.known((*_SCORES, *_CONFIDENCE))[:1]
    if scores and all(isinstance(cell, list) for cell in cells[scores[0]]):
        header.taken.update(scores)
        votes["confidence"] = cells[scores[0]].to_numpy()
        lengths = votes["confidence"].map(len) - votes["label"].map(len)
        if lengths.any():
            raise DataError(
                f"the columns {column!r} and {scores[0]!r} must be equally "
                f"long in {places(base, np.flatnonzero(lengths))}"
            )
        notes.append(f"confidences from {scores[0]!r}")
    elif scores and any(len(names) > 1 for names in lists):
        notes.append(f"{scores[0]!r} is no list like {column!r}: not used")
    return votes.explode(list(votes))


def _long(cells, base, header, names, notes):
    """Returns the votes of a table with an answer in each row."""
    label = header.take("label_column", "the label", _LABEL)
    if label is None and header.given["candidates_column"] is not None:
        label = header.take("candidates_column", "the label", ())
    if label is None:
        raise DataError(
            "no column of labels is known; say which it is with "
            "--label_column=NAME"
        )
    lists = _lists(cells[label], base, lambda cell: answers(cell, names))
    votes = pd.DataFrame({"label": pd.Series(lists, dtype=object)})
    who = header.take("annotator_column", "the annotator", _ANNOTATOR)
    if who is not None:
        votes["annotator"] = cells[who].to_numpy()
    confidences = header.known(_CONFIDENCE)
    if len(confidences) > 1:
        raise DataError(
            f"the columns {first_five(confidences)} could all be the "
            "confidence of a vote; keep one of them"
        )
    if confidences:
        header.taken.update(confidences)
        votes["confidence"] = cells[confidences[0]].to_numpy()
        base.attrs["confidence_column"] = confidences[0]
    notes.append(f"labels from {label!r}, annotators from {who!r}")
    return votes.explode("label")


def _wide(cells, base, header, names, notes):
    """Returns the votes of a table with a column for each annotator."""
    if header.given["annotator_column"] is not None:
        columns = header.given["annotator_column"].split(",")
        columns = [header.find(n.strip(), "annotator_column") for n in columns]
        if len(set(columns)) < len(columns):
            raise ConfigError(
                "An annotator is named twice. Received: --annotator_column="
                f"{header.given['annotator_column']}"
            )
    else:
        odd = header.known((*_LABEL, *_CANDIDATES, *_CONFIDENCE))
        columns = header.rest()
        if odd or not columns:
            raise DataError(
                f"is the column {odd[0]!r} that of an annotator? Name those "
                "of the annotators with --annotator_column=A,B,C, or the true "
                f"classes with --label_column={odd[0]}"
                if odd
                else "it has a column of ids only; add the labels"
            )
        header.taken.update(columns)
    parts, blank = [], []
    for column in columns:
        lists = _lists(cells[column], base, lambda c: answers(c, names))
        part = pd.DataFrame({"label": pd.Series(lists, dtype=object)})
        part = part.explode("label").dropna()
        part["annotator"] = column
        (parts if len(part) else blank).append(part if len(part) else column)
    if blank:
        notes.append(
            f"{len(blank)} annotator columns are blank and were ignored: "
            f"{first_five(blank)}"
        )
    if not parts:
        raise DataError(
            "the table is empty, all cells of its annotators are blank"
        )
    notes.append(f"annotators are the columns {first_five(columns)}")
    return pd.concat(parts)


def _hot_columns(header, class_names):
    """Returns the columns of a multi-hot table."""
    columns = header.rest()
    missing = [n for n in class_names or () if n not in set(columns)]
    others = [n for n in columns if n not in set(class_names or columns)]
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
    return columns


def _hot(cells, base, columns):
    """Returns the votes of a table with a column of 0 and 1 for each class."""
    rows = []
    for column in columns:
        codes, values = pd.factorize(cells[column].astype(str))
        hot = [_HOT.get(value.strip().lower()) for value in values]
        # Blank cells of typed files have the code -1.
        hot = np.array([-1 if h is None else h for h in hot] + [-1])[codes]
        if (hot < 0).any():
            wrong = np.flatnonzero(hot < 0)
            cell = cells[column].iloc[wrong[0]]
            blank = cell is None or str(cell).strip().lower() in BLANK
            raise DataError(
                f"the multi-hot column {column!r} must hold only 0 and 1. "
                f"Received: {'blank' if blank else shown(cell)} in "
                f"{places(base, wrong)}"
            )
        rows.append(np.flatnonzero(hot))
    labels = np.repeat(np.array(columns, object), [len(r) for r in rows])
    return pd.DataFrame({"label": labels}, index=np.concatenate(rows))
