"""Plots of the report, each with its result in words."""

import base64
import dataclasses
import io

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from alim_keras.report.words import count
from alim_keras.report.words import number
from alim_keras.report.words import percent

_BINS = 48
# Colours that people with any kind of colour vision tell apart.
_COLOURS = ("#0072b2", "#c2500a", "#007a5e", "#a8487f")
_DASHES = ("-", "--", "-.", ":")
_SETTINGS = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "grid.color": "#dde1e8",
    # The same ids of clip paths in every run.
    "svg.hashsalt": "alim_keras",
}
# Title, form of the numbers, and names of columns of metrics.csv.
_CURVES = (
    (
        "Losses",
        number,
        {
            "loss": "loss",
            "cls_loss": "classification",
            "cont_loss": "contrastive",
            "mix_loss": "mixup",
        },
    ),
    (
        "Covering rate and labels outside",
        percent,
        {
            "covering_rate": "covering rate",
            "holdout_covering_rate": "covering rate, held out",
            "outside": "outside the set",
        },
    ),
    (
        "Lambda and noise rate",
        number,
        {"lambda": "lambda", "noise_rate": "noise rate"},
    ),
    (
        "Accuracy, where true labels are known",
        percent,
        {
            "pseudo_label_accuracy": "settled labels",
            "test_accuracy": "test images",
        },
    ),
)


@dataclasses.dataclass(frozen=True)
class Plot:
    """A picture and its result in words.

    Attributes:
        title: A few words.
        finding: Sentences that say what the plot shows.
        image: Data URI of an SVG image.
    """

    title: str
    finding: str
    image: str


def curves(history):
    """Draws a run's progress: losses, shares, lambda, accuracy.

    Args:
        history: Data frame of metrics.csv, a row per epoch, or None.

    Returns:
        List of `Plot`; a plot none of whose columns is known is left out.
    """
    if history is None or not len(history):
        return []
    plots = [_lines(history, *curve) for curve in _CURVES]
    return [plot for plot in plots if plot is not None]


def _lines(history, title, form, columns):
    """Returns a `Plot` of columns of `history` by epoch, or None."""
    known = [name for name in columns if name in history]
    frame = history[known].apply(pd.to_numeric, errors="coerce")
    frame = frame.replace([np.inf, -np.inf], np.nan).dropna(axis=1, how="all")
    if not len(frame.columns):
        return None
    epochs = np.arange(1, len(history) + 1)
    changes = []
    for name, values in frame.items():
        first, last = values.dropna().iloc[[0, -1]]
        verb = "fell" if last < first else "rose"
        text = f"{columns[name]} {verb} from {form(first)} to {form(last)}"
        if form(first) == form(last):
            text = f"{columns[name]} {form(last)} at both ends"
        changes.append(text)

    def draw(axes):
        for (name, values), colour, dash in zip(
            frame.items(), _COLOURS, _DASHES, strict=False
        ):
            seen = values.notna().to_numpy()
            # A line through one point is not seen.
            marker = "o" if seen.sum() == 1 else ""
            style = {"color": colour, "ls": dash, "marker": marker}
            axes.plot(epochs[seen], values[seen], label=columns[name], **style)
        axes.set_xlabel("epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
        if form is percent:
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
            axes.set_ylim(0.0, 1.0)

    span = f"From epoch 1 to {count(len(history))}"
    return Plot(title, f"{span}: {'; '.join(changes)}.", _svg(draw))


def ratio_histogram(ratio, outside, lam=None, when="on average"):
    """Draws how the candidate ratio is distributed, Figure 2 of the paper.

    Args:
        ratio: Floats `(N,)`, Eq. 6's value of each example: the largest
            probability in its set over the largest outside it. What is not
            above 0 or not finite (not seen, or all classes are candidates)
            is left out and counted.
        outside: Bools `(N,)`: the settled label is not in the set.
        lam: Lambda, to mark where Eq. 3 lets a label leave its set, or None.
        when: Words on which lambda this is. Defaults to `"on average"`.

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
    groups = {
        "settled inside the set": logs[~outside],
        "settled outside the set": logs[outside],
    }
    marked = lam is not None and 10.0**low < lam < 0.99
    finding = [
        "How much likelier the likeliest class in the set is than the "
        "likeliest outside it: the further left, the more the set looks "
        f"wrong. Of {count(usable.sum())} examples, "
        f"{percent((logs < 0.0).mean())} have a class outside their set that "
        "is likelier than every class in it (ratio below 1)."
    ]
    for label, values in groups.items():
        if len(values):
            median = number(10.0 ** np.median(values))
            finding.append(f"Median where {label}: {median}.")
    if marked:
        finding.append(
            "By Eq. 3 a label leaves its set where the ratio is below lambda, "
            f"{number(lam)} {when}."
        )
    finding.append("The outermost bars hold all that lies beyond.")
    if not usable.all():
        finding.append(
            f"Not drawn: {count((~usable).sum())} whose ratio is not known, or "
            "whose set holds every class."
        )

    def draw(axes):
        edges = np.linspace(low, high, _BINS + 1)
        for (label, values), colour, dash in zip(
            groups.items(), _COLOURS, _DASHES, strict=False
        ):
            heights, _ = np.histogram(np.clip(values, low, high), edges)
            axes.stairs(heights, edges, fill=True, color=colour, alpha=0.3)
            axes.stairs(heights, edges, color=colour, ls=dash, label=label)
        if marked:
            axes.axvline(np.log10(lam), color="#566072", label="lambda")
        ticks = np.arange(low, high + 1)
        axes.set_xticks(ticks, [f"{10.0**tick:g}" for tick in ticks])
        axes.set_xlim(low, high)
        axes.set_xlabel("largest probability in the set / largest outside it")
        axes.set_ylabel("examples")

    return Plot("Candidate ratios", " ".join(finding), _svg(draw))


def _svg(draw):
    """Returns a drawing as a data URI, whatever matplotlib's settings are.

    Args:
        draw: Function that draws into axes.
    """
    out = io.BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        figure = Figure((5.2, 3.1), layout="constrained")
        figure.patch.set_visible(False)
        axes = figure.add_subplot(facecolor="none")
        draw(axes)
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False
        )
        FigureCanvasSVG(figure)
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = base64.b64encode(out.getvalue()).decode("ascii")
    return f"data:image/svg+xml;base64,{text}"
