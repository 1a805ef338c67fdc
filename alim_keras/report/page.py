"""The audit as one HTML page that loads nothing and runs no script."""

import base64
import importlib.resources
import io

import jinja2
import markupsafe
import matplotlib
import numpy as np
import pandas as pd
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from PIL import Image

from alim_keras import __version__
from alim_keras.errors import DataError
from alim_keras.report import results

# Rows of a table on the page, and of confusions; the files have all.
_MOST_ROWS = 1000
_CONFUSIONS = 100
_MOST_VOTES = 40
# Pixels of a picture's longer side, and up to which it is stored without loss.
_LARGEST, _TINY = 256, 64
_SHARES = ("adds", "agreement", "alone", "precision", "recall", "share")
_BINS = 48
# Colours that people with any kind of colour vision tell apart.
_COLOURS = ("#0072b2", "#c2500a", "#007a5e", "#a8487f")
_DASHES = ("-", "--", "-.", ":")
_STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "grid.color": "#dde1e8",
    # The same ids of clip paths in every run.
    "svg.hashsalt": "alim_keras",
}
# Columns of metrics.csv that share a plot.
_CURVES = (
    ["loss", "cls_loss", "cont_loss", "mix_loss"],
    ["covering_rate", "holdout_covering_rate", "outside"],
    ["lambda", "noise_rate"],
    ["pseudo_label_accuracy", "test_accuracy"],
)


def page(audit, pictures=None, review_images=200):
    """Returns the report of an audit as one HTML document, a string.

    Pictures, plots and style stand in the page, and its content policy
    forbids all else. It follows the reader's choice of light or dark.
    Whatever comes from the data (ids, class names, annotators) is escaped.

    Args:
        audit: The `Audit`.
        pictures: Function from an int64 array `(n,)` of row numbers of
            `audit.labels` to n uint8 images `(H, W, channels)`, or None.
        review_images: Integer, rows of the review list on the page at most.
    """
    folder = importlib.resources.files("alim_keras.report") / "templates"
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(
        (folder / "page.html.j2").read_text(encoding="utf-8")
    )
    style = (folder / "style.css").read_text(encoding="utf-8")
    plots = curves(audit.history)
    if audit.ratio is not None:
        outside, lam = audit.labels["outside"], audit.summary["lambda"]
        plots += ratio_histogram(audit.ratio, outside, lam)
    text = template.render(
        version=__version__,
        style=markupsafe.Markup(style),
        name=audit.summary["name"] or "Candidate labels",
        sentences=results.sentences(audit.summary),
        files=audit.files(),
        figures=results.figures(audit.summary),
        cards=_cards(audit, review_images, pictures),
        review_total=len(audit.review),
        plots=plots,
        tables={
            title: table(frame)
            for title, frame in {
                "Where true labels are known": audit.truth,
                "Given and settled classes": audit.confusions.iloc[
                    :_CONFUSIONS
                ],
                "Classes, the noisiest first": audit.classes,
                "Annotators": audit.annotators,
            }.items()
            if frame is not None
        },
    )
    # A lone surrogate, as in an undecodable file name, cannot be stored.
    return text.encode("utf-8", "replace").decode("utf-8")


def _cards(audit, most, pictures):
    """Returns the facts on the first examples of the review list, dicts."""
    review = audit.review.iloc[:most]
    row_of = {name: row for row, name in enumerate(audit.labels["id"])}
    rows = np.array([row_of[name] for name in review["id"]], "int64")
    images = [None] * len(rows)
    if pictures is not None and len(rows):
        images = [data_uri(image) for image in pictures(rows)]
    cards = []
    labels = audit.labels.iloc[rows].to_dict("records")
    records = review.to_dict("records")
    for row, record, label, image in zip(
        rows, records, labels, images, strict=True
    ):
        facts = {
            "Given set": results.listed(label["candidates"]),
            "Votes": results.listed(_votes(audit, row), _MOST_VOTES),
            "Settled label": label["label"],
            "Probability": results.percent(label["probability"]),
            "Runner-up": label["runner_up"],
            "Margin": results.percent(label["margin"]),
            "Suspicion of the set": results.percent(label["suspicion"]),
            "Suggested set": results.listed(label["suggested"]),
            "Source of the label": label["source"],
            "Gain of a look": results.number(record["gain"]),
        }
        cards.append({**record, "facts": facts, "image": image})
    return cards


def _votes(audit, row):
    """Returns who gave which class to an example, strings."""
    votes = audit.votes
    if votes is None:
        return []
    span = votes.of_rows([row])
    return [
        f"{votes.names[who]}: {audit.class_names[label]}"
        + (f" ({results.percent(sure)})" if results.is_known(sure) else "")
        for who, label, sure in zip(
            votes.annotators[span],
            votes.classes[span],
            votes.confidences[span],
            strict=True,
        )
    ]


def table(frame):
    """Returns a data frame as an HTML table of at most 1,000 rows, escaped."""
    columns = {}
    for name, column in frame.iloc[:_MOST_ROWS].items():
        form = str
        if column.dtype.kind in "iu":
            form = results.count
        elif column.dtype.kind == "f":
            share = name.split("_")[-1] in _SHARES
            form = results.percent if share else results.number
        columns[name.replace("_", " ")] = [form(value) for value in column]
    with pd.option_context("display.max_colwidth", None):
        text = pd.DataFrame(columns).to_html(index=False, border=0)
    return markupsafe.Markup(text)


def data_uri(image):
    """Encodes one picture for an `<img>` element, at most 256 pixels wide.

    Small ones are stored without loss, others as WebP of quality 78.

    Args:
        image: uint8 array `(H, W, channels)`; channels are 1 (grey), 3 (RGB)
            or 4 (RGBA), any other number shows the first as grey.

    Raises:
        DataError: For another dtype or shape.
    """
    image = np.asarray(image)
    if image.dtype != np.uint8 or image.ndim != 3 or not image.size:
        raise DataError(
            "A picture must be uint8 of shape (H, W, channels). "
            f"Received: dtype={image.dtype}, shape={image.shape}"
        )
    if image.shape[2] not in (3, 4):
        image = np.repeat(image[:, :, :1], 3, axis=2)
    picture = Image.fromarray(image)
    tiny = max(picture.size) <= _TINY
    picture.thumbnail((_LARGEST, _LARGEST), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    picture.save(out, "WEBP", lossless=tiny, quality=78, method=4)
    text = base64.b64encode(out.getvalue()).decode("ascii")
    return f"data:image/webp;base64,{text}"


def curves(history):
    """Draws the columns of metrics.csv by epoch.

    Returns:
        List of pairs: a sentence and a data URI; a plot none of whose columns
        is known is left out.
    """
    plots = []
    for columns in _CURVES if history is not None else ():
        columns = [name for name in columns if name in history]
        frame = history[columns].apply(pd.to_numeric, errors="coerce")
        frame = frame.replace([np.inf, -np.inf], np.nan)
        frame = frame.dropna(axis=1, how="all")
        if not frame.size:
            continue
        frame.index = np.arange(1, len(frame) + 1)
        frame.columns = [name.replace("_", " ") for name in frame]
        changes = []
        for name, values in frame.items():
            first, last = map(results.number, values.dropna().iloc[[0, -1]])
            changes.append(f"{name} from {first} to {last}")

        def draw(axes, frame=frame):
            # Values of every few epochs are joined by lines.
            lines = frame.interpolate(limit_area="inside")
            colours = list(_COLOURS[: len(lines.columns)])
            lines.plot(ax=axes, style=list(_DASHES), color=colours, marker=".")
            axes.set_xlabel("epoch")

        finding = f"In {len(frame)} epochs: {'; '.join(changes)}."
        plots.append((finding, _svg(draw)))
    return plots


def ratio_histogram(ratio, outside, lam=None):
    """Draws how the candidate ratio is distributed, Figure 2 of the paper.

    Args:
        ratio: Floats `(N,)`, Eq. 6's value of each example: the largest
            probability in its set over the largest outside it. What is not
            above 0 or not finite (not seen, or all classes are candidates)
            is left out and counted.
        outside: Bools `(N,)`: the settled label is not in the set.
        lam: Lambda, to mark where Eq. 3 lets a label leave its set, or None.
    """
    ratio = np.asarray(ratio, "float64")
    usable = np.isfinite(ratio) & (ratio > 0.0)
    if not usable.any():
        return []
    logs = np.log10(ratio[usable])
    low, high = np.quantile(logs, [0.005, 0.995])
    low = int(np.clip(np.floor(low), -6, -1))
    high = int(np.clip(np.ceil(high), 1, 6))
    outside = np.asarray(outside, bool)[usable]
    finding = (
        "Candidate ratios: how much likelier the likeliest class in the set is "
        "than the likeliest outside it. Of "
        f"{results.count(usable.sum())} examples, "
        f"{results.percent((logs < 0.0).mean())} have a ratio below 1; not "
        f"drawn are {results.count((~usable).sum())} without a ratio. By Eq. 3 "
        "a label leaves its set where the ratio is below lambda, "
        f"{results.number(lam)}."
    )

    def draw(axes):
        edges = np.linspace(low, high, _BINS + 1)
        for label, chosen, colour in (
            ("settled inside the set", ~outside, _COLOURS[0]),
            ("settled outside the set", outside, _COLOURS[1]),
        ):
            values = np.clip(logs[chosen], low, high)
            axes.hist(values, edges, color=colour, alpha=0.6, label=label)
        if lam is not None and 10.0**low < lam < 0.99:
            axes.axvline(np.log10(lam), color="#566072", label="lambda")
        ticks = np.arange(low, high + 1)
        axes.set_xticks(ticks, [f"{10.0**tick:g}" for tick in ticks])
        axes.set_xlabel("largest probability in the set / largest outside it")

    return [(finding, _svg(draw))]


def _svg(draw):
    """Returns what a function draws into axes as a data URI of an SVG."""
    out = io.BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
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
