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
    """Returns where up to five rows stand: "lines 3, 4 (id a, b)".

    Args:
        frame: Frame whose index is the line or row in the file, with the
            column item.
        rows: Integers or bool, rows of the frame.
    """
    rows = frame[["item"]].iloc[np.arange(len(frame))[rows]]
    rows = rows[~rows.index.duplicated()]
    unit = (rows.index.name or "row") + "s" * (len(rows) > 1)
    ids = first_five(rows["item"].tolist())
    return f"{unit} {first_five(rows.index)} (id {ids})"


def converted(frame, column, convert):
    """Returns `convert` of the cells of a column, called once per string.

    Args:
        frame: As of `places`.
        column: String.
        convert: Function of a cell, which raises `ValueError` for one that it
            cannot convert; the text says why.
    """
    results, known = [], {}
    for row, cell in enumerate(frame[column].tolist()):
        is_text = type(cell) is str
        if not is_text or cell not in known:
            try:
                result = convert(cell)
            except ValueError as error:
                raise DataError(
                    f"the {column} {shown(cell)} in {places(frame, [row])} "
                    f"{error}"
                ) from error
            if is_text:
                known[cell] = result
        results.append(known[cell] if is_text else result)
    return pd.Series(results, frame.index, dtype=object)


class _Header:
    """The columns of a table, looked up by flag or by known name."""

    def __init__(self, names, given, but=()):
        self.given, self.names, self.taken = given, list(names), set(but)
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
    verdict = _verdict(cells, given)
    header = _Header(cells.columns, given, verdict)
    base = _items(cells, header)
    layout, reason = _layout(header, layout, class_names)
    truth = None
    if layout != "long" and given["label_column"] is not None:
        truth = header.find(given["label_column"], "label_column")
        base["truth"] = cells[truth]
    if verdict:
        base["verdict"] = cells["answer"]
    attrs = {"layout": layout, "class_names": None}
    if layout == "multi_hot":
        columns = _hot_columns(header, class_names)
        votes = _hot(cells, base, columns)
        attrs["class_names"] = class_names or class_numbers(columns)[0]
    elif layout == "wide":
        columns = _people(header)
        votes = _wide(cells[columns], class_names or (), notes)
    else:
        read = _list if layout == "list" else _long
        votes, columns = read(cells, base, header, frozenset(class_names or ()))
    # An item without an answer keeps a row.
    silent = pd.RangeIndex(len(base)).difference(votes.index)
    votes = pd.concat([votes, pd.DataFrame(index=silent)])
    votes = votes.sort_index(kind="stable")
    for name in base:
        votes[name] = base[name].to_numpy()[votes.index]
    votes.index = cells.index[votes.index]
    notes.append(f"layout {layout}, from {reason}")
    notes.append(f"answers from the columns {first_five(columns)}")
    unused = set(header.rest()) - set(cells.attrs.get("where", ()))
    _note_unused([name for name in header.rest() if name in unused], notes)
    votes.attrs = {**attrs, **base.attrs}
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


def _items(cells, header):
    """Returns a frame with the item of each row, and its image if named."""
    has_images = cells.attrs.get("has_images", False)
    words = next((w for w in (_ITEM, _IMAGE, _TASK) if header.known(w)), ())
    item = header.take(
        "id_column", "the id of an item", words, needed=not has_images
    )
    base = pd.DataFrame(index=cells.index)
    base["item"] = row_ids(len(cells)) if item is None else cells[item]
    if has_images or item.lower() in _IMAGE:
        return base
    image = header.take(None, "the image of an item", _IMAGE)
    if image is not None:
        base["image"] = cells[image]
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
        warnings.warn(
            f"the column {status[0]!r} is not used; if by it some answers do "
            f"not count, leave them out with --where={status[0]}=VALUE",
            DataWarning,
            stacklevel=4,
        )


def answers(cell, names=()):
    """Returns the classes that a cell for one answer names, as strings."""
    if isinstance(cell, str):
        text = cell.strip()
        if text.lower() in BLANK and text not in names:
            return []
        # Label Studio's CSV holds JSON.
        parsed = _parsed(text) if text.startswith("{") else None
        if text in names or not isinstance(parsed, dict):
            return [text]
        cell = parsed
    if isinstance(cell, dict) and set(cell) == {"choices"}:
        cell = cell["choices"]
    if isinstance(cell, (list, tuple)):
        return [_class_text(value) for value in cell]
    if cell is None or cell != cell:
        return []
    return [_class_text(cell)]


def _parsed(text):
    try:
        return json.loads(text) if text[0] in "[{" else None
    except (ValueError, RecursionError):
        return None


def _class_text(value):
    """Returns a class name or number of a typed file as a string."""
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("names no class: a name is missing in it")
        return value.strip()
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


def _list(cells, base, header, names):
    """Returns the votes of a table with a set in each row."""
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
    if len(signs) > 1:
        both = next(text for text in texts if signs[1] in text)
        raise DataError(
            f"column {column!r} is separated by {signs[0]!r} and {signs[1]!r}; "
            "write JSON lists, or one of them alone (a cell that is one class "
            f"of --class_names stays whole). Received: {shown(both)}"
        )
    sign = signs[0] if signs else None
    joined = [name for name in names if sign and sign in name]

    def split(cell):
        text = cell.strip() if isinstance(cell, str) else ""
        if not text or text in names or text.lower() in BLANK:
            return cell
        values = _parsed(text)
        if isinstance(values, list if text[0] == "[" else dict):
            return values
        if in_json or text[0] == "[" or text[0] + text[-1] in ("()", "{}"):
            raise ValueError(
                'is no JSON list; write all sets as ["cat", "dog"], or all as '
                "cat|dog, or give the classes with --class_names"
            )
        if any(name in text for name in joined):
            raise ValueError(
                f"can be read in two ways, as {sign!r} stands in a class name "
                'too; write the sets as JSON lists, ["cat", "dog"]'
            )
        return cell.split(sign) if sign else [cell]

    named = pd.DataFrame({"item": base["item"], "label": cells[column]})
    votes = pd.DataFrame({"label": converted(named, "label", split)})
    scores = header.known((*_SCORES, *_CONFIDENCE))[:1]
    if scores and cells[scores[0]].map(type).eq(list).all():
        header.taken.update(scores)
        votes["confidence"] = cells[scores[0]]
    return votes.reset_index(drop=True), [column]


def _long(cells, base, header, names):
    """Returns the votes of a table with an answer in each row."""
    if header.given["candidates_column"] and not header.given["label_column"]:
        label = header.take("candidates_column", "the label", ())
    else:
        label = header.take("label_column", "the label", _LABEL, needed=True)
    flag = "annotator_column"
    columns = {
        "label": label,
        "annotator": header.take(flag, "the annotator", _ANNOTATOR),
        "confidence": header.take(None, "the confidence", _CONFIDENCE),
    }
    base.attrs["confidence_column"] = columns["confidence"]
    votes = {role: cells[name] for role, name in columns.items() if name}
    columns = [name for name in columns.values() if name]
    return pd.DataFrame(votes).reset_index(drop=True), columns


def _people(header):
    """Returns the columns of the annotators of a wide table."""
    text = header.given["annotator_column"]
    if text is not None:
        names = [
            header.find(n.strip(), "annotator_column") for n in text.split(",")
        ]
        if len(set(names)) < len(names):
            raise ConfigError(
                f"An annotator is named twice. Received: --annotator_column={text}"
            )
        return names
    odd = header.known((*_LABEL, *_CANDIDATES, *_CONFIDENCE))
    if odd:
        raise DataError(
            f"is the column {odd[0]!r} that of an annotator? Name those of the "
            "annotators with --annotator_column=A,B,C, or the true classes "
            f"with --label_column={odd[0]}"
        )
    names = header.rest()
    header.taken.update(names)
    return names


def _wide(cells, class_names, notes):
    """Returns the votes of a table with a column for each annotator."""
    votes = pd.DataFrame(
        {
            "annotator": np.tile(cells.columns.to_numpy(object), len(cells)),
            "label": cells.to_numpy(object).ravel(),
        },
        index=np.repeat(np.arange(len(cells)), cells.shape[1]),
    )
    texts = votes["label"].map(lambda cell: str(cell).strip())
    is_blank = texts.str.lower().isin(BLANK) & ~texts.isin(class_names)
    is_blank |= votes["label"].isna()
    votes = votes[~is_blank]
    silent = [name for name in cells if name not in set(votes["annotator"])]
    if silent:
        notes.append(
            f"{len(silent)} annotator columns are blank and were ignored: "
            f"{first_five(silent)}"
        )
    if not len(votes):
        raise DataError("the table is empty, it has no answer of an annotator")
    return votes


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
