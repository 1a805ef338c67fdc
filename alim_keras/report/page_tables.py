"""Tables of the report's page, made from data frames."""

import dataclasses

import numpy as np

from alim_keras.report import words

# What columns are called on the page; others by their name.
EXAMPLES = {
    "candidates": "given set",
    "label": "settled label",
    "runner_up": "runner-up",
    "suggested": "suggested set",
}
CLASSES = {
    "confusions": "typical confusions",
    "given": "sets with it",
    "given_wrong": "of them wrong",
    "given_wrong_share": "share wrong",
    "outside": "of them outside",
    "outside_share": "share outside",
    "settled": "settled as it",
}
ANNOTATORS = {
    "adds": "right and alone",
    "alone": "alone",
    "chance_corrected": "kappa",
    "expected_agreement": "expected agreement",
}
_SHARES = (
    "accuracy",
    "adds",
    "agreement",
    "alone",
    "margin",
    "precision",
    "probability",
    "recall",
    "share",
    "suspicion",
)
# A page with more rows than this in one table opens slowly.
_MOST_ROWS = 1000
_MOST_CLASSES = 30
# Columns with longer texts than these are kept from being tall and thin.
_WIDE, _LONG = 16, 48


@dataclasses.dataclass(frozen=True)
class Column:
    """A column: its header, and "num", "" or for longer text "wide", "long"."""

    title: str
    kind: str = ""


@dataclasses.dataclass(frozen=True)
class Cell:
    """What a cell shows, and the number it sorts by, or None."""

    text: str
    value: float | None = None


@dataclasses.dataclass(frozen=True)
class Row:
    """Cells of a row; `item` is the example that it opens, or None."""

    cells: tuple
    item: int | None = None
    picture: object = None


@dataclasses.dataclass(frozen=True)
class Table:
    """A table: `name` is unique on the page."""

    name: str
    title: str
    columns: tuple
    rows: tuple
    note: str = ""


def cell(value, column="", whole=False):
    """Returns the `Cell` of a value in a column of that name.

    Floats are written without decimals if `whole`, and as percentages if the
    name of the column says that they are shares.
    """
    if isinstance(value, (list, tuple, np.ndarray)):
        return Cell(words.listed(value, 12))
    if isinstance(value, (bool, np.bool_)):
        return Cell("yes" if value else "no")
    if isinstance(value, (int, np.integer)):
        return Cell(words.count(value), int(value))
    if isinstance(value, (float, np.floating)):
        if not words.known(value):
            return Cell(words.UNKNOWN)
        share = column.removesuffix("_share").split("_")[-1]
        if column.endswith("share") or share in _SHARES:
            return Cell(words.percent(value), float(f"{value:.7g}"))
        if whole:
            return Cell(words.count(value), int(value))
        return Cell(words.number(value), float(f"{value:.7g}"))
    text = "" if _missing(value) else str(value)
    if column == "confusions":
        # As drawn elsewhere on the page. The marks keep it between its two
        # names where these are written from right to left.
        arrow = "\N{LEFT-TO-RIGHT MARK}\N{RIGHTWARDS ARROW}"
        arrow += "\N{LEFT-TO-RIGHT MARK}\N{NO-BREAK SPACE}"
        text = text.replace(" -> ", f" {arrow}")
    return Cell(text or words.UNKNOWN)


def frame_table(
    frame, name, title, note="", titles=None, items=None, pictures=None
):
    """Makes a table of a data frame.

    Args:
        frame: Data frame; the first column names the row.
        name: Short ASCII name, unique on the page.
        title: A few words.
        note: What is said above the table.
        titles: Dict of headers by column; others are named as they are.
        items: Integers `(rows,)`, the example that each row opens, or None.
        pictures: Dict of pictures by example, or None.

    Returns:
        A `Table` of at most 1,000 rows; its note says if rows are left out.
    """
    total = len(frame)
    if total > _MOST_ROWS:
        frame = frame.iloc[:_MOST_ROWS]
        left = f"The first {words.count(_MOST_ROWS)} of {words.count(total)}."
        note = f"{note} {left}".strip()
    values = []
    for column in frame.columns:
        whole = False
        if frame[column].dtype.kind == "f":
            numbers = frame[column].dropna()
            whole = bool((numbers == numbers.round()).all())
        values.append([cell(v, str(column), whole) for v in frame[column]])
    columns = tuple(
        Column(
            (titles or {}).get(column, str(column).replace("_", " ")),
            _kind(frame[column], cells),
        )
        for column, cells in zip(frame.columns, values, strict=True)
    )
    rows = []
    for place, cells in enumerate(zip(*values, strict=True)):
        item = None if items is None else int(items[place])
        picture = (pictures or {}).get(item)
        rows.append(Row(cells, item, picture))
    return Table(name, title, columns, tuple(rows), note)


def _kind(column, cells):
    """Returns the kind of a column, see `Column`."""
    if column.dtype.kind in "iuf":
        return "num"
    longest = max((len(one.text) for one in cells), default=0)
    return "long" if longest > _LONG else "wide" if longest > _WIDE else ""


@dataclasses.dataclass(frozen=True)
class MatrixCell:
    """A cell of the matrix: `strength` in [0, 1] is how much colour it has."""

    text: str
    title: str = ""
    strength: str = "0"
    same: bool = False


@dataclasses.dataclass(frozen=True)
class MatrixRow:
    """A given class and its cells."""

    name: str
    cells: tuple


@dataclasses.dataclass(frozen=True)
class Matrix:
    """The confusion matrix, or the part of it that is shown."""

    names: tuple
    rows: tuple
    note: str


def matrix(counts, names):
    """Lays out the matrix of given and settled classes.

    Args:
        counts: Floats `(C, C)`, rows given (a set counts split evenly over
            its classes), columns settled.
        names: C strings.

    Returns:
        A `Matrix` of all classes, or of the 30 with the most mass off the
        diagonal where there are more.
    """
    counts = np.asarray(counts, "float64")
    names = [str(name) for name in names]
    note = (
        "Rows: the class that was given; a set of two counts half in each of "
        "its rows. Columns: the class that the example settled on. "
    )
    shown = np.arange(len(names))
    if len(names) > _MOST_CLASSES:
        off = counts - np.diag(np.diag(counts))
        mass = off.sum(axis=0) + off.sum(axis=1)
        shown = np.sort(np.argsort(-mass, kind="stable")[:_MOST_CLASSES])
        note += (
            f"Of {words.count(len(names))} classes the {_MOST_CLASSES} that "
            "are confused most. "
        )
    totals = counts.sum(axis=1)
    part = counts[np.ix_(shown, shown)]
    shares = part / np.maximum(totals[shown], 1e-12)[:, None]
    off = shares - np.diag(np.diag(shares))
    largest = max(float(off.max(initial=0.0)), 1e-12)
    rows = []
    for i, given in enumerate(shown):
        cells = []
        for j, settled in enumerate(shown):
            share = float(shares[i, j])
            text = _mass(part[i, j])
            title = (
                f"given {names[given]}, settled {names[settled]}: {text}, "
                f"{words.percent(share)} of {names[given]}"
            )
            same = i == j
            strength = share if same else share / largest
            cells.append(MatrixCell(text, title, f"{strength:.3f}", same))
        rows.append(MatrixRow(names[given], tuple(cells)))
    note += (
        "Blue: the given class was kept. Orange: another class; the deeper, "
        "the larger its share of the row."
    )
    return Matrix(tuple(names[c] for c in shown), tuple(rows), note)


def _mass(value):
    """Writes a mass: whole where it is large, nothing where it is nothing."""
    if value <= 0.0:
        return ""
    if value >= 10.0 or float(value).is_integer():
        return words.count(value)
    return f"{value:.1f}" if value >= 0.05 else "<0.1"


def _missing(value):
    # The order matters: pandas' NA is neither equal nor unequal to itself.
    return value is None or str(value) in ("<NA>", "NaT") or value != value
