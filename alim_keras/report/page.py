"""The audit as one HTML page that loads nothing and runs no script."""

import base64
import io

import jinja2
import markupsafe
import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from alim_keras import __version__
from alim_keras.errors import DataError
from alim_keras.report import results

# Rows of a table on the page; the files have all.
_MOST_ROWS = 1000
# Pixels of a picture's longer side, and up to which it is stored without loss.
_LARGEST, _TINY = 256, 64
# Colours that people with any kind of colour vision tell apart.
_COLOURS = ("#0072b2", "#c2500a", "#007a5e", "#a8487f")
# Columns of metrics.csv that share a plot.
_CURVES = (
    ["loss", "cls_loss", "cont_loss", "mix_loss"],
    ["covering_rate", "holdout_covering_rate", "outside"],
    ["lambda", "noise_rate"],
    ["pseudo_label_accuracy", "test_accuracy"],
)


def page(audit, pictures=None, review_images=200):
    """Returns the report of an audit as one HTML document, see `to_html`.

    Pictures, plots and style stand in the page, and its content policy
    forbids all else. Whatever comes from the data is escaped. `pictures` is a
    function from row numbers to uint8 images `(H, W, channels)`, or None.
    """
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.PackageLoader("alim_keras.report"),
    )
    tables = {
        "Given and settled classes": audit.confusions,
        "Classes, the noisiest first": audit.classes,
        "Annotators": audit.annotators,
    }
    text = environment.get_template("page.html.j2").render(
        version=__version__,
        name=audit.summary["name"] or "Candidate labels",
        sentences=audit.describe().split("\n"),
        cards=_cards(audit, review_images, pictures),
        review_total=len(audit.review),
        plots=_curves(audit.history),
        tables={
            title: _table(frame)
            for title, frame in tables.items()
            if frame is not None
        },
    )
    # A lone surrogate, as in an undecodable file name, cannot be stored.
    return text.encode("utf-8", "replace").decode("utf-8")


def _cards(audit, most, pictures):
    """Returns the facts on the first examples of the review list, dicts."""
    review = audit.review.iloc[:most]
    rows = pd.Index(audit.labels["id"]).get_indexer(review["id"])
    images = [None] * len(rows)
    if pictures is not None and len(rows):
        images = [data_uri(image) for image in pictures(rows)]
    cards = review.to_dict("records")
    for card, row, image in zip(cards, rows, images, strict=True):
        suspicion = audit.labels["suspicion"][row]
        card["image"] = image
        card["given"] = results.listed(card["candidates"])
        card["facts"] = {
            "Runner-up": card["runner_up"],
            "Suspicion of the set": results.percent(suspicion),
            "Suggested set": results.listed(card["suggested"]),
            "Votes": results.listed(_votes(audit, row)),
        }
    return cards


def _votes(audit, row):
    """Returns who gave which class to an example, strings."""
    votes = audit.votes
    if votes is None:
        return []
    span = votes.of_rows([row])
    return [
        f"{votes.names[who]}: {audit.class_names[label]}"
        for who, label in zip(votes.annotators[span], votes.classes[span])
    ]


def _table(frame):
    """Returns the first rows of a data frame as an HTML table, escaped."""
    frame = frame.iloc[:_MOST_ROWS]
    with pd.option_context("display.max_colwidth", None):
        text = frame.rename(
            columns=lambda name: name.replace("_", " ")
        ).to_html(
            index=False, border=0, float_format="{:,.3f}".format, na_rep="-"
        )
    return markupsafe.Markup(text)


def data_uri(image):
    """Encodes a picture for an `<img>` element, at most 256 pixels wide.

    uint8 `(H, W, channels)`: 3 (RGB), 4 (RGBA), else the first is shown grey.
    """
    if image.dtype != np.uint8:
        raise DataError(f"A picture must be uint8. Received: {image.dtype}")
    if image.shape[2] not in (3, 4):
        image = np.repeat(image[:, :, :1], 3, axis=2)
    picture = Image.fromarray(image)
    tiny = max(picture.size) <= _TINY
    picture.thumbnail((_LARGEST, _LARGEST), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    picture.save(out, "WEBP", lossless=tiny, quality=78, method=4)
    return _uri("webp", out)


def _curves(history):
    """Draws columns of metrics.csv by epoch, where they are known.

    Returns:
        List of pairs: a caption, and an SVG as a data URI.
    """
    plots = []
    for columns in _CURVES if history is not None else ():
        columns = [name for name in columns if name in history]
        frame = history[columns].apply(pd.to_numeric, errors="coerce")
        frame = frame.replace([np.inf, -np.inf], np.nan)
        # Values of every few epochs are joined by lines.
        frame = frame.dropna(axis=1, how="all").interpolate()
        if not frame.size:
            continue
        figure = Figure((5.2, 3.1), layout="constrained")
        figure.patch.set_visible(False)
        axes = figure.add_subplot(facecolor="none", xlabel="epoch")
        frame.index = np.arange(1, len(frame) + 1)
        frame.plot(ax=axes, color=list(_COLOURS[: len(frame.columns)]))
        out = io.BytesIO()
        # The same ids of clip paths in every run.
        with matplotlib.rc_context({"svg.hashsalt": "alim_keras"}):
            figure.savefig(out, format="svg", metadata={"Date": None})
        plots.append((f"By epoch: {', '.join(frame)}.", _uri("svg+xml", out)))
    return plots


def _uri(kind, file):
    text = base64.b64encode(file.getvalue()).decode("ascii")
    return f"data:image/{kind};base64,{text}"
