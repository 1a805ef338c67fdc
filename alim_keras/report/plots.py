"""Plots of the report, each with its finding in words and its numbers."""

import dataclasses

import numpy as np

from alim_keras.report import svg
from alim_keras.report.words import count
from alim_keras.report.words import number
from alim_keras.report.words import percent

# The numbers under a plot: a table of at most this many rows.
_MOST_ROWS = 100
_BINS = 48
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

LOSSES = {
    "loss": "loss",
    "cls_loss": "classification",
    "cont_loss": "contrastive",
    "mix_loss": "mixup",
}
SHARES = {
    "covering_rate": "covering rate",
    "holdout_covering_rate": "covering rate, held out",
    "outside": "outside the set",
}
STEERING = {"lambda": "lambda", "noise_rate": "noise rate"}
ACCURACIES = {
    "pseudo_label_accuracy": "settled labels",
    "test_accuracy": "test images",
}


@dataclasses.dataclass(frozen=True)
class Plot:
    """A picture, what it shows in words, and its numbers.

    Attributes:
        name: Short ASCII name, unique on the page; starts every id in `svg`.
        title: A few words.
        finding: What the plot shows, in sentences: its text alternative.
        svg: An `<svg>` element, without a prolog.
        columns: Headers of the table of its numbers.
        rows: Tuples of strings, one per row of that table.
    """

    name: str
    title: str
    finding: str
    svg: str
    columns: tuple
    rows: tuple


def curves(history):
    """Draws a run's progress: losses, shares, lambda, accuracy.

    Args:
        history: Data frame of metrics.csv, a row per epoch, or None.

    Returns:
        List of `Plot`; a plot none of whose columns is known is left out.
    """
    if history is None or not len(history):
        return []
    wanted = (
        ("losses", "Losses", LOSSES, number),
        ("shares", "Covering rate and labels outside", SHARES, percent),
        ("steering", "Lambda and noise rate", STEERING, number),
        ("accuracy", "Accuracy, where true labels are known", ACCURACIES)
        + (percent,),
    )
    with svg.settings():
        plots = [_lines(history, *one) for one in wanted]
    return [plot for plot in plots if plot is not None]


def ratio_histogram(ratio, outside, lam=None, when="on average"):
    """Draws how the candidate ratio is distributed, Figure 2 of the paper.

    Args:
        ratio: Floats `(N,)`, Eq. 6's value of each example: the largest
            probability in its set over the largest outside it. What is not
            above 0 or not finite (not seen, or all classes are candidates)
            is left out and counted.
        outside: Bools `(N,)`: the settled label is not in the set.
        lam: Lambda, to mark where Eq. 3 lets a label leave its set, or None.
        when: What lambda this is, in words. Defaults to `"on average"`.

    Returns:
        A `Plot`, or None where no ratio is known.
    """
    ratio = np.asarray(ratio, "float64")
    usable = np.isfinite(ratio) & (ratio > 0.0)
    if not usable.any():
        return None
    outside = np.asarray(outside, bool)[usable]
    logs = np.log10(ratio[usable])
    low, high = np.quantile(logs, [0.005, 0.995])
    low = int(np.clip(np.floor(low), -6, -1))
    high = int(np.clip(np.ceil(high), 1, 6))
    edges = np.linspace(low, high, _BINS + 1)
    groups = (
        ("settled inside the set", logs[~outside]),
        ("settled outside the set", logs[outside]),
    )
    counts = [
        np.histogram(np.clip(values, low, high), edges)[0]
        for _, values in groups
    ]
    with svg.settings():
        drawn = _histogram(groups, counts, edges, lam)
    parts = [
        "How much likelier the likeliest class in the set is than the "
        "likeliest outside it: the further left, the more the set looks "
        f"wrong. Of {count(usable.sum())} examples, "
    ]
    parts.append(
        f"{percent((logs < 0.0).mean())} have a class outside their set that "
        "is likelier than every class in it (ratio below 1). "
    )
    for label, values in groups:
        if len(values):
            median = number(10.0 ** np.median(values))
            parts.append(f"Median where {label}: {median}. ")
    if _marked(lam, low):
        parts.append(
            "By Eq. 3 a label leaves its set where the ratio is below lambda, "
            f"{number(lam)} {when}. "
        )
    parts.append("The outermost bars hold all that lies beyond. ")
    left_out = len(ratio) - usable.sum()
    if left_out:
        parts.append(
            f"Not drawn: {count(left_out)} whose ratio is not known, or whose "
            "set holds every class. "
        )
    rows = tuple(
        (number(10.0**a), number(10.0**b), count(i), count(o))
        for a, b, i, o in zip(edges, edges[1:], *counts, strict=False)
    )
    return Plot(
        "ratio",
        "How the examples are distributed",
        "".join(parts).strip(),
        drawn,
        ("from", "to", "inside", "outside"),
        rows,
    )


def _marked(lam, low):
    """Whether lambda is marked: known, on the axis and apart from 1."""
    return lam is not None and 10.0**low < lam < 0.99


def _histogram(groups, counts, edges, lam):
    """Draws the two groups over each other."""
    low, high = int(edges[0]), int(edges[-1])
    figure, axes = svg.figure(5.6, 3.1)
    for (label, _), heights, colour, dash in zip(
        groups, counts, svg.SERIES, svg.DASHES, strict=False
    ):
        axes.stairs(heights, edges, fill=True, color=colour, alpha=0.3)
        axes.stairs(
            heights, edges, color=colour, label=label, linestyle=dash, lw=1.8
        )
    axes.axvline(0.0, color=svg.MUTED, lw=1.0, linestyle=":")
    if _marked(lam, low):
        place = np.log10(lam)
        axes.axvline(place, color=svg.MUTED, lw=1.0, linestyle=":")
        axes.annotate(
            "lambda",
            (place, 0.98),
            xycoords=("data", "axes fraction"),
            xytext=(-4, 0),
            textcoords="offset points",
            ha="right",
            va="top",
            color=svg.MUTED,
        )
    step = 1 if high - low <= 8 else 2
    ticks = np.arange(low, high + 1, step)
    axes.set_xticks(ticks, [_decade(tick) for tick in ticks])
    axes.set_xlim(low, high)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("largest probability in the set / largest outside it")
    axes.set_ylabel("examples")
    svg.legend(axes)
    return svg.text(figure, "ratio")


def _lines(history, name, title, columns, form):
    """Returns a `Plot` of columns of `history` by epoch, or None."""
    import pandas as pd

    series = {
        label: pd.to_numeric(history[column], errors="coerce").to_numpy(
            "float64"
        )
        for column, label in columns.items()
        if column in history
    }
    series = {
        label: np.where(np.isfinite(values), values, np.nan)
        for label, values in series.items()
        if np.isfinite(values).any()
    }
    if not series:
        return None
    epochs = np.arange(1, len(history) + 1)
    if "epoch" in history:
        epochs = pd.to_numeric(history["epoch"]).to_numpy("int64")
    figure, axes = svg.figure(5.0, 3.0)
    for (label, values), colour, dash in zip(
        series.items(), svg.SERIES, svg.DASHES, strict=False
    ):
        seen = np.isfinite(values)
        # A line through one point is not seen.
        axes.plot(
            epochs[seen],
            values[seen],
            color=colour,
            linestyle=dash,
            marker="o" if seen.sum() == 1 else "",
            lw=1.8,
            label=label,
        )
    axes.set_xlabel("epoch")
    if len(epochs) > 1:
        axes.set_xlim(epochs[0], epochs[-1])
    axes.xaxis.get_major_locator().set_params(integer=True)
    if form is percent:
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        axes.set_ylim(0.0, 1.0)
    else:
        if all(np.nanmin(values) >= 0.0 for values in series.values()):
            axes.set_ylim(bottom=0.0)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    svg.legend(axes)
    changes = [_change(label, values, form) for label, values in series.items()]
    picked = np.unique(
        np.linspace(0, len(epochs) - 1, min(len(epochs), _MOST_ROWS)).round()
    ).astype(int)
    rows = tuple(
        (count(epochs[i]), *(form(values[i]) for values in series.values()))
        for i in picked
    )
    span = f"From epoch {count(epochs[0])} to {count(epochs[-1])}"
    return Plot(
        name,
        title,
        f"{span}: {'; '.join(changes)}.",
        svg.text(figure, name),
        ("epoch", *series),
        rows,
    )


def _change(label, values, form):
    first, last = values[np.isfinite(values)][[0, -1]]
    if form(first) == form(last):
        return f"{label} {form(last)} at both ends"
    verb = "fell" if last < first else "rose"
    return f"{label} {verb} from {form(first)} to {form(last)}"


def _decade(power):
    """Writes ten to a power: 0.01, 1, 100, beyond that with an exponent."""
    if abs(power) <= 3:
        return f"{10.0**power:,g}"
    return "10" + str(power).translate(_SUPERSCRIPTS)
