"""Single examples on the report's page: grids, and what a click opens."""

import dataclasses
import json

import numpy as np

from alim_keras.report import page_tables
from alim_keras.report import thumbnails
from alim_keras.report import words

SOURCES = {
    "known": "true label that a person gave",
    "table": "learnt pseudo label",
    "prediction": "prediction of the network",
    "folds": "prediction of a network that never saw this set",
}
# Votes that a click lists for one example.
_MOST_VOTES = 40


@dataclasses.dataclass(frozen=True)
class Picture:
    """An encoded picture and its size in pixels."""

    uri: str
    width: int
    height: int
    tiny: bool


@dataclasses.dataclass(frozen=True)
class Item:
    """One example in a grid."""

    row: int
    given: str
    label: str
    probability: str
    rival: str
    alt: str
    picture: Picture | None


@dataclasses.dataclass(frozen=True)
class Grid:
    """A group of examples; `table` shows them where there is no picture."""

    name: str
    title: str
    note: str
    items: tuple
    table: object


def choices(labels, most):
    """Chooses the examples of the three grids.

    Args:
        labels: The audit's frame of labels.
        most: Integer, examples a grid.

    Returns:
        Dict of int64 arrays of row numbers, the first to look at first:
        `suspect` (their set most likely misses the truth: suspicion of a
        half or more, or settled outside), `undecided` (smallest margin
        first) and `corrected` (outside and not undecided; the most probable
        of each settled class in turn, so that every class shows).
    """
    suspicion = labels["suspicion"].fillna(0.0).to_numpy("float64")
    outside = labels["outside"].to_numpy(bool)
    undecided = labels["undecided"].to_numpy(bool)
    margin = labels["margin"].fillna(0.0).to_numpy("float64")
    probability = labels["probability"].fillna(0.0).to_numpy("float64")
    suspect = np.flatnonzero(outside | (suspicion >= 0.5))
    suspect = suspect[np.argsort(-suspicion[suspect], kind="stable")]
    open_rows = np.flatnonzero(undecided)
    open_rows = open_rows[np.argsort(margin[open_rows], kind="stable")]
    corrected = np.flatnonzero(outside & ~undecided)
    corrected = corrected[np.argsort(-probability[corrected], kind="stable")]
    if len(corrected):
        turn = labels.iloc[corrected].groupby("label", observed=True).cumcount()
        corrected = corrected[np.argsort(turn.to_numpy(), kind="stable")]
    return {
        "suspect": suspect[:most],
        "undecided": open_rows[:most],
        "corrected": corrected[:most],
    }


_WORDS = {
    "suspect": (
        "Most suspect sets",
        "Sets that most likely miss the true class, the most suspect first: "
        "the given set, the class it settled on and its probability.",
    ),
    "undecided": (
        "Undecided",
        "No class holds half of the probability; the closest calls first, "
        "with the runner-up.",
    ),
    "corrected": (
        "Corrected with confidence",
        "Settled outside the set with at least half of the probability: the "
        "surest of every class in turn.",
    ),
}


def encode(pictures, rows, size):
    """Encodes pictures of examples.

    Args:
        pictures: Function from an int64 array of row numbers to uint8
            images, or None.
        rows: int64 array of row numbers.
        size: Integer, pixels of the longer side at most.

    Returns:
        Dict of `Picture` by row number; empty without `pictures`.
    """
    encoded = {}
    if pictures is None or not len(rows):
        return encoded
    rows = np.unique(np.asarray(rows, "int64"))
    for row, image in zip(rows, pictures(rows), strict=True):
        uri, width, height = thumbnails.data_uri(image, size)
        tiny = thumbnails.is_tiny(*np.shape(image)[:2])
        encoded[int(row)] = Picture(uri, width, height, tiny)
    return encoded


def grids(labels, chosen, encoded):
    """Returns the three `Grid`s.

    Args:
        labels: The audit's frame of labels.
        chosen: From `choices`.
        encoded: Dict of `Picture` by row number.
    """
    result = []
    for name, rows in chosen.items():
        title, note = _WORDS[name]
        part = labels.iloc[rows]
        if len(rows):
            note += f" Shown: {words.count(len(rows))}."
        items = tuple(
            _item(row, one, encoded.get(int(row)), name == "undecided")
            for row, one in zip(rows, part.itertuples(index=False), strict=True)
        )
        columns = ["id", "candidates", "label", "probability"]
        columns += ["runner_up", "margin", "suspicion"]
        table = page_tables.frame_table(
            part[columns],
            f"{name}-items",
            title,
            titles=page_tables.EXAMPLES,
            items=rows,
        )
        result.append(Grid(name, title, note, items, table))
    return tuple(result)


def _item(row, one, picture, with_rival):
    given = words.listed(one.candidates, 3)
    probability = words.percent(one.probability)
    rival = str(one.runner_up) if with_rival and _named(one.runner_up) else ""
    alt = f"Example {one.id}"
    label = str(one.label)
    return Item(int(row), given, label, probability, rival, alt, picture)


def _named(value):
    return isinstance(value, str) and value != ""


def facts(labels, rows, votes, class_names):
    """Returns what a click opens, as JSON that may stand in a script element.

    Args:
        labels: The audit's frame of labels.
        rows: int64 array of the row numbers that can be opened.
        votes: `Votes` of the whole dataset, or None.
        class_names: C strings.

    Returns:
        Text: an object of `{row: {"id": ..., "facts": [[term, [value, ...]],
        ...]}}` with strings for all values; `<`, `>` and `&` are escaped.
    """
    rows = np.unique(np.asarray(rows, "int64"))
    said = _said(votes, rows, class_names)
    items = {}
    for row, one in zip(
        rows, labels.iloc[rows].itertuples(index=False), strict=True
    ):
        pairs = [
            ("Given set", [str(name) for name in one.candidates] or ["-"]),
            ("Settled label", [str(one.label)]),
            ("Probability", [words.percent(one.probability)]),
            ("Runner-up", [str(one.runner_up or words.UNKNOWN)]),
            ("Margin", [words.percent(one.margin)]),
            ("Standing", [_standing(one)]),
            ("Chance that the set is wrong", [words.percent(one.suspicion)]),
            ("Suggested set", [str(name) for name in one.suggested] or ["-"]),
            ("Kind of label", [SOURCES.get(one.source, str(one.source))]),
        ]
        if int(row) in said:
            pairs.insert(1, ("Votes", said[int(row)]))
        items[int(row)] = {"id": str(one.id), "facts": pairs}
    return script_json(items)


def script_json(value):
    r"""Writes JSON without characters that could end a script element.

    >>> script_json({"a": "</script>"})
    '{"a":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _standing(one):
    if one.undecided:
        where = "outside" if one.outside else "inside"
        return f"undecided, settled {where} the set"
    return "settled outside the set" if one.outside else "inside the set"


def _said(votes, rows, class_names):
    """Returns for each row with votes who said what, as strings."""
    if votes is None:
        return {}
    said = {}
    for place in np.flatnonzero(np.isin(votes.rows, rows)):
        name = votes.annotator_names[int(votes.annotators[place])]
        text = f"{name}: {class_names[int(votes.classes[place])]}"
        if votes.confidences is not None:
            text += f" ({words.percent(votes.confidences[place])})"
        said.setdefault(int(votes.rows[place]), []).append(text)
    for texts in said.values():
        if len(texts) > _MOST_VOTES:
            texts[_MOST_VOTES:] = [f"and {len(texts) - _MOST_VOTES} more"]
    return said
