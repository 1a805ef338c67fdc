"""The audit as one HTML page that loads nothing and runs no script."""

import base64
import functools
import importlib.resources
import io

import jinja2
import markupsafe
import numpy as np
import pandas as pd
from PIL import Image

from alim_keras import __version__
from alim_keras.errors import DataError
from alim_keras.report import plots
from alim_keras.report import words

# Rows of one table and of the review list on the page; the files have all.
_MOST_ROWS = 1000
_REVIEW_ROWS = 300
_CONFUSIONS = 100
_MOST_CLASSES = 30
_MOST_VOTES = 40
# Pixels of a picture's longer side, and up to which it is stored without loss.
_LARGEST, _TINY = 256, 64
_TITLES = {
    "adds": "right and alone",
    "chance_corrected": "kappa",
    "confusions": "typical confusions",
    "given": "sets with it",
    "given_wrong": "of them wrong",
    "given_wrong_share": "share wrong",
    "outside": "of them outside",
    "outside_share": "share outside",
    "settled": "settled as it",
}
_SHARES = ("adds", "agreement", "alone", "precision", "recall", "share")
_SOURCES = {
    "known": "true label that a person gave",
    "table": "learnt pseudo label",
    "prediction": "prediction of the network",
    "folds": "prediction of a network that never saw this set",
}
_GROUPS = {
    "suspect": (
        "Most suspect sets",
        "Sets that most likely miss the true class, the most suspect first.",
    ),
    "undecided": (
        "Undecided",
        "No class holds half of the probability, or two hold the same; the "
        "closest calls first.",
    ),
    "corrected": (
        "Corrected with confidence",
        "Settled outside the set with at least half of the probability: the "
        "surest of every class in turn.",
    ),
}


def page(audit, pictures=None, review_images=60):
    """Returns the report of an audit as one HTML document.

    Pictures, plots and style stand in the page, and its content policy
    forbids all else. It follows the reader's choice of light or dark.
    Whatever comes from the data (ids, class names, annotators) is escaped.

    Args:
        audit: The `Audit`.
        pictures: Function from an int64 array `(n,)` of row numbers of
            `audit.labels` to n uint8 images `(H, W, channels)`; None for
            examples without pictures. Defaults to None.
        review_images: Integer, examples in each of the three groups at most.
            Defaults to `60`.

    Returns:
        The document, a string to be stored as UTF-8.

    Raises:
        DataError: If `pictures` returns what is no image.
    """
    labels, facts = audit.labels, audit.summary
    review = audit.review.iloc[:_REVIEW_ROWS]
    number_of = {name: row for row, name in enumerate(labels["id"])}
    chosen = choices(labels, review_images)
    chosen["review"] = np.array([number_of[name] for name in review["id"]], int)
    rows = np.unique(np.concatenate([*chosen.values()]).astype("int64"))
    items = _items(audit, rows, pictures)
    for record in review.to_dict("records"):
        items[number_of[record["id"]]]["review"] = record
    ratio = None
    if audit.ratio is not None:
        learnt = "table" in facts["kinds"] and words.is_known(facts["epochs"])
        when = f"after epoch {facts['epochs']}" if learnt else "on average"
        ratio = plots.ratio_histogram(
            audit.ratio, labels["outside"], facts["lambda"], when
        )
    folder = importlib.resources.files("alim_keras.report") / "templates"
    text = _template().render(
        version=__version__,
        style=markupsafe.Markup((folder / "style.css").read_text("utf-8")),
        name=facts["name"] or "Candidate labels",
        summary=words.sentences(facts),
        kinds=words.kinds(facts),
        steps=words.steps(audit),
        figures=words.figures(facts),
        truth=None if audit.truth is None else table(audit.truth),
        plots=plots.curves(audit.history) + ([ratio] if ratio else []),
        matrix=matrix(audit.confusion_counts, audit.class_names),
        confusions=table(audit.confusions.iloc[:_CONFUSIONS], titles={}),
        classes=table(audit.classes),
        annotators=None
        if audit.annotators is None
        else table(audit.annotators),
        groups=[
            (*_GROUPS[name], [items[row] for row in rows])
            for name, rows in chosen.items()
            if name in _GROUPS
        ],
        review=[items[row] for row in chosen["review"]],
        review_total=len(audit.review),
        no_review=words.no_review(audit),
    )
    # A lone surrogate, as in an undecodable file name, cannot be stored.
    return text.encode("utf-8", "replace").decode("utf-8")


def choices(labels, most):
    """Chooses the examples of the three groups.

    Args:
        labels: The audit's frame of labels.
        most: Integer, examples a group.

    Returns:
        Dict of int64 arrays of row numbers, the first to look at first:
        `suspect` (their set most likely misses the truth: suspicion of a
        half or more, or settled outside), `undecided` (smallest margin
        first) and `corrected` (outside and not undecided; the most probable
        of each settled class in turn, so that every class shows).
    """
    frame = labels.reset_index(drop=True)
    suspect = frame[frame.outside | (frame.suspicion >= 0.5)]
    undecided = frame[frame.undecided]
    corrected = frame[frame.outside & ~frame.undecided]
    corrected = corrected.sort_values(
        "probability", ascending=False, kind="stable"
    )
    turn = corrected.groupby("label").cumcount().to_numpy()
    groups = {
        "suspect": suspect.sort_values(
            "suspicion", ascending=False, kind="stable"
        ),
        "undecided": undecided.sort_values("margin", kind="stable"),
        "corrected": corrected.iloc[np.argsort(turn, kind="stable")],
    }
    return {name: part.index[:most].to_numpy() for name, part in groups.items()}


def _items(audit, rows, pictures):
    """Returns what the page shows of some examples, a dict by row number."""
    images = {}
    if pictures is not None and len(rows):
        pairs = zip(rows, pictures(rows), strict=True)
        images = {row: data_uri(image) for row, image in pairs}
    votes = _votes(audit, rows)
    items = {}
    part = audit.labels.iloc[rows].to_dict("records")
    for row, record in zip(rows.tolist(), part, strict=True):
        facts = [
            ("Given set", words.listed(record["candidates"])),
            ("Settled label", record["label"]),
            ("Probability", words.percent(record["probability"])),
            ("Runner-up", record["runner_up"] or words.UNKNOWN),
            ("Margin", words.percent(record["margin"])),
            (
                "Chance that the set is wrong",
                words.percent(record["suspicion"]),
            ),
            ("Suggested set", words.listed(record["suggested"])),
            ("Kind of label", _SOURCES[record["source"]]),
        ]
        if row in votes:
            facts.insert(1, ("Votes", words.listed(votes[row], _MOST_VOTES)))
        items[row] = {
            **record,
            "given": words.listed(record["candidates"], 3),
            "share": words.percent(record["probability"]),
            "facts": facts,
            "image": images.get(row),
        }
    return items


def _votes(audit, rows):
    """Returns for each row with votes who gave which, a list of strings."""
    votes, texts = audit.votes, {}
    if votes is None:
        return texts
    for vote in np.flatnonzero(np.isin(votes.rows, rows)):
        name = votes.names[votes.annotators[vote]]
        text = f"{name}: {audit.class_names[votes.classes[vote]]}"
        if words.is_known(votes.confidences[vote]):
            text += f" ({words.percent(votes.confidences[vote])})"
        texts.setdefault(int(votes.rows[vote]), []).append(text)
    return texts


def table(frame, titles=None):
    """Returns a data frame as an HTML table of at most 1,000 rows, escaped.

    Args:
        frame: Data frame; floats in columns of shares become percentages.
        titles: Dict of headers by column. Defaults to the page's.
    """
    titles = _TITLES if titles is None else titles
    columns = {}
    for name, column in frame.iloc[:_MOST_ROWS].items():
        form = str
        if column.dtype.kind in "iu":
            form = words.count
        elif column.dtype.kind == "f":
            share = str(name).split("_")[-1] in _SHARES
            form = words.percent if share else words.number
        title = titles.get(name, str(name).replace("_", " "))
        columns[title] = [form(value) for value in column]
    return _html(pd.DataFrame(columns))


def matrix(counts, names):
    """Returns the table of given (rows) and settled classes (columns).

    Args:
        counts: Sparse `(C, C)`, see `tables.confusion_counts`.
        names: C strings.

    Returns:
        HTML of all classes, or of the 30 with the most mass off the diagonal.
    """
    mass = counts.sum(axis=0) + counts.sum(axis=1) - 2 * counts.diagonal()
    shown = np.sort(np.argsort(-mass, kind="stable")[:_MOST_CLASSES])
    chosen = [names[c] for c in shown]
    frame = pd.DataFrame(counts[shown][:, shown].toarray(), columns=chosen)
    frame = frame.map(lambda mass: words.number(mass) if mass else "")
    frame.insert(0, "given \\ settled", chosen, allow_duplicates=True)
    return _html(frame)


def _html(frame):
    with pd.option_context("display.max_colwidth", None):
        return markupsafe.Markup(frame.to_html(index=False, border=0))


def data_uri(image):
    """Encodes one picture for an `<img>` element.

    Pictures of at most 64 pixels a side are stored without loss, larger ones
    as WebP of quality 78, scaled down to 256 pixels where they exceed it.

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
        image = image[:, :, 0]
    picture = Image.fromarray(image)
    tiny = max(picture.size) <= _TINY
    picture.thumbnail((_LARGEST, _LARGEST), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    if picture.mode == "L":
        picture = picture.convert("RGB")
    picture.save(out, "WEBP", lossless=tiny, quality=78, method=4)
    text = base64.b64encode(out.getvalue()).decode("ascii")
    return f"data:image/webp;base64,{text}"


@functools.cache
def _template():
    folder = importlib.resources.files("alim_keras.report") / "templates"
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined
    )
    text = (folder / "page.html.j2").read_text(encoding="utf-8")
    return environment.from_string(text)
