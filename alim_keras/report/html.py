"""The audit as one HTML page that loads nothing."""

import base64
import functools
import hashlib
import importlib.resources

import numpy as np

from alim_keras.report import page_items
from alim_keras.report import page_summary
from alim_keras.report import page_tables
from alim_keras.report import plots
from alim_keras.report import thumbnails

# Rows of the review list that the page shows; review.csv has all.
_REVIEW_ROWS = 300
_REVIEW_PIXELS = 96
# Without `class`, which is the settled label, and the runner-up, which the
# window of an example shows.
_REVIEW_COLUMNS = (
    "id",
    "rank",
    "candidates",
    "label",
    "probability",
    "suggested",
    "reason",
    "gain",
)
_CONFUSIONS = 100
_CLASSES = (
    "Settled as it: examples whose settled label is this class, and how many "
    "of these lack it in their set. Sets with it: how many hold it, and how "
    "many of these settled on a class outside. The noisiest class comes first."
)
_ANNOTATORS = (
    "Agreement: with the settled labels; kappa: the same beyond chance, 1 at "
    "best. Bias: what is given too often. Alone: a class that nobody else "
    "gave; right and alone: it was the settled label too."
)


def page(audit, pictures=None, review_images=60):
    """Writes the report of an audit as one HTML document.

    The page loads nothing: pictures, plots, style and script stand in it, and
    its content policy forbids all else. It follows the reader's choice of
    light or dark, and can be read on a phone and printed. Whatever comes from
    the data (ids, class names, annotators) is escaped.

    Args:
        audit: The `Audit`.
        pictures: Function from an int64 array `(n,)` of row numbers of
            `audit.labels` to n uint8 images `(H, W, channels)`, an array or
            a sequence; None for examples without pictures, such as feature
            vectors, which are shown in tables. Defaults to None.
        review_images: Integer, examples in each of the three grids at most.
            Defaults to `60`.

    Returns:
        The document, a string to be stored as UTF-8.

    Raises:
        DataError: If `pictures` gives what is no image.

    Example:

    >>> text = alim_keras.report.html.page(audit, images.__getitem__)
    >>> pathlib.Path("report.html").write_text(text, encoding="utf-8")
    """
    from alim_keras import __version__

    labels = audit.labels
    names = [str(name) for name in audit.class_names]
    chosen = page_items.choices(labels, review_images)
    in_grids = np.concatenate([*chosen.values()]).astype("int64")
    review = audit.review.iloc[:_REVIEW_ROWS]
    review_rows = _rows_of(labels, review["id"])
    large = page_items.encode(pictures, in_grids, thumbnails.LARGEST)
    small = page_items.encode(pictures, review_rows, _REVIEW_PIXELS)
    context = {
        "version": __version__,
        "name": audit.summary.get("name") or "Candidate labels",
        "pictures": pictures is not None,
        "summary": page_summary.paragraphs(audit),
        "kind": page_summary.kinds(audit),
        "steps": page_summary.steps(audit),
        "figures": page_summary.figures(audit),
        "truth": _truth(audit.truth),
        "curves": plots.curves(audit.history),
        "ratio": None,
        "matrix": page_tables.matrix(audit.confusion_matrix, names),
        "confusions": page_tables.frame_table(
            audit.confusions.iloc[:_CONFUSIONS],
            "confusions",
            "The most frequent changes",
        ),
        "classes": page_tables.frame_table(
            audit.classes,
            "classes",
            "Classes",
            _CLASSES,
            page_tables.CLASSES,
        ),
        "annotators": None,
        "grids": page_items.grids(labels, chosen, large),
        "review": _review_table(audit.review, review, review_rows, small),
    }
    context["title"] = f"Audit of {context['name']}"
    if audit.ratio is not None:
        context["ratio"] = plots.ratio_histogram(
            audit.ratio, labels["outside"], *_lambda(audit)
        )
    if audit.annotators is not None:
        context["annotators"] = page_tables.frame_table(
            audit.annotators,
            "annotators",
            "Annotators",
            _ANNOTATORS,
            page_tables.ANNOTATORS,
        )
    context["sections"] = _sections(context)
    context["items"] = _safe(
        page_items.facts(
            labels,
            np.concatenate([in_grids, review_rows]),
            getattr(audit, "votes", None),
            names,
        )
    )
    text = (
        _environment()
        .get_template("page.html.j2")
        .render({**context, **_files()})
    )
    # A lone surrogate, as in an undecodable file name, cannot be stored.
    return text.encode("utf-8", "replace").decode("utf-8")


def _lambda(audit):
    """Returns the lambda that the ratios were held against, and when."""
    learnt = (audit.labels["source"] == "table").mean() > 0.5
    if learnt and audit.history is not None and "lambda" in audit.history:
        import pandas as pd

        logged = pd.to_numeric(audit.history["lambda"], errors="coerce")
        # The ratios are those of the model that is shown, and a row of
        # metrics.csv holds the lambda of the next epoch.
        epochs = audit.summary.get("epochs") or len(logged)
        when = f"in epoch {epochs}"
        if epochs == len(logged):
            when = "in the last epoch"
        if epochs == 1:
            # What was in force then is not logged.
            return None, when
        if 1 < epochs <= len(logged) and np.isfinite(logged.iloc[epochs - 2]):
            return float(logged.iloc[epochs - 2]), when
    return audit.summary.get("lambda"), "on average"


def _rows_of(labels, ids):
    """Returns the row number of each id, int64."""
    numbers = {name: row for row, name in enumerate(labels["id"])}
    return np.asarray([numbers[name] for name in ids], "int64")


def _review_table(whole, shown, rows, pictures):
    note = (
        "What a person should look at first, grouped by settled label; the "
        "classes with most to gain come first. The rank counts over all of "
        "them, by how much a look is expected to help. Choose an id to see "
        "the example."
    )
    if len(shown) < len(whole):
        note += (
            f" The first {len(shown):,} of {len(whole):,}; review.csv has all."
        )
    if not len(whole):
        note = "Nothing calls for a look."
    return page_tables.frame_table(
        shown[list(_REVIEW_COLUMNS)],
        "review",
        "Review list",
        note,
        page_tables.EXAMPLES,
        rows,
        pictures,
    )


def _truth(truth):
    """Returns a table of what true labels tell, or None."""
    if truth is None:
        return None
    import pandas as pd

    if not isinstance(truth, pd.DataFrame):
        truth = pd.DataFrame(
            [(str(k).replace("_", " "), v) for k, v in dict(truth).items()],
            columns=["measure", "value"],
        )
    return page_tables.frame_table(truth, "truth", "True labels")


def _sections(context):
    """Returns anchors and names of the sections that the page has."""
    every = (
        ("summary", "Summary", True),
        ("figures", "Figures", True),
        ("training", "Training", context["curves"]),
        ("ratio", "Ratio", context["ratio"]),
        ("confusions", "Confusions", True),
        ("classes", "Classes", True),
        ("annotators", "Annotators", context["annotators"]),
        ("examples", "Examples", True),
        ("review", "Review list", True),
    )
    return [(anchor, name) for anchor, name, shown in every if shown]


@functools.cache
def _environment():
    import jinja2

    folder = importlib.resources.files("alim_keras.report") / "templates"
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(
            lambda name: (folder / name).read_text(encoding="utf-8")
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["breakable"] = _breakable
    return environment


@functools.cache
def _files():
    """Returns style, script and the policy that lets only these run."""
    folder = importlib.resources.files("alim_keras.report") / "templates"
    style = (folder / "style.css").read_text(encoding="utf-8")
    script = (folder / "script.js").read_text(encoding="utf-8")
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    policy = (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{base64.b64encode(digest).decode('ascii')}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return {"style": _safe(style), "script": _safe(script), "policy": policy}


def _breakable(text):
    """Escapes a text and lets a line of a narrow column end in long names."""
    import markupsafe

    text = str(markupsafe.escape(text))
    for mark in "_/":
        text = text.replace(mark, f"{mark}<wbr>")
    return markupsafe.Markup(text)


def _safe(text):
    import markupsafe

    return markupsafe.Markup(text)
