"""The page: a review list to answer, and what an audit found, on tabs."""

import base64
import hashlib
import io
import json
import re

import jinja2
import markupsafe
import numpy as np
import pandas as pd
from PIL import Image

from alim_keras import __version__
from alim_keras.data.images import DiskImages
from alim_keras.data.images import image_rows
from alim_keras.errors import CheckpointError
from alim_keras.errors import DataError
from alim_keras.report.tables import percent

# Rows of a table on the page; the files have all.
_MOST_ROWS = 1000
# Pixels of the longer side of a picture that stands in the page, and of a
# neighbour's; and up to which one is stored without loss.
_LARGE, _SMALL, _TINY = 384, 80, 64
# Steps of a coordinate of the map.
_MAP = 4095
# Shares, which the page shows as percentages.
_SHARES = {"share", "outside_share", "given_wrong_share", "agreement"}
_DATA = '<script type="application/json" id="data">'


class Items:
    """The items of a review list as the page wants them: dicts.

    Of the frames `tables.review`, or review.csv as strings, and labels.csv.
    `address` is a function from an example's row and one of "image", "thumb"
    and "near" to the address of such a picture, or None; or None.
    """

    def __init__(self, review, labels, address):
        self._review, self._index = review, pd.Index(labels["id"])
        self._settled = labels["label"].tolist()
        self._address = address or (lambda row, use: None)
        self.num_examples = len(labels)
        self.ids = review["id"].tolist()
        self.rows = self._index.get_indexer(self.ids)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, place):
        row, item = int(self.rows[place]), self._review.iloc[place]
        given = set(_list(item["candidates"]))
        pairs = zip(_list(item["choices"]), _list(item["chances"]))
        return {
            "id": item["id"],
            "reason": f"{item['reason'][:1].upper()}{item['reason'][1:]}.",
            "choices": [(name, share, name in given) for name, share in pairs],
            "votes": _list(item.get("votes", "[]")),
            "near": [
                (self._address(n, "near"), self._settled[n])
                for n in self.near(place)
            ],
            "image": self._address(row, "image"),
            "thumb": self._address(row, "thumb"),
        }

    def near(self, place):
        """Returns the rows of an item's neighbours, a list of integers."""
        names = _list(self._review["neighbours"].iloc[place])
        return self._index.get_indexer(names).tolist()


def pictures(images, count):
    """Returns a function from rows and a size to pictures, or None.

    `images` are `count`, uint8 `(N, H, W, channels)` or `DiskImages`; feature
    vectors have no picture.
    """
    if images is None or np.shape(images)[1:3] == (1, 1):
        return None
    if len(np.shape(images)) != 4 or len(images) != count:
        raise DataError(
            "Argument `images` must be (N, H, W, channels), a picture for "
            f"each of {count} examples. Received: shape={np.shape(images)}"
        )
    if isinstance(images, DiskImages):
        # Show files as they are, not as the network sees them.
        return images.pictures
    return lambda rows, largest: image_rows(images, rows)


def page(audit, pictures=None, review_images=200):
    """Returns the report of an audit as one HTML document, see `to_html`.

    It loads nothing, and whatever comes from the data is escaped. `pictures`
    is a function from row numbers and a size in pixels to uint8 images
    `(H, W, channels)`, or None.
    """
    review, uris = audit.review.iloc[:review_images], {}
    items = Items(review, audit.labels, lambda row, use: uris.get((row, use)))
    if pictures is not None:
        near = {row for place in range(len(items)) for row in items.near(place)}
        for use, rows, size in (
            ("image", items.rows.tolist(), _LARGE),
            ("near", sorted(near), _SMALL),
        ):
            for row, picture in zip(rows, pictures(rows, size)):
                content = base64.b64encode(encoded(picture, size)).decode()
                uris[row, use] = f"data:image/webp;base64,{content}"
    data = {
        "run": audit.identity,
        "classes": audit.class_names,
        "total": len(items),
        "answered": 0,
        "start": 0,
        "before": [],
        "items": [items[place] for place in range(len(items))],
        "history": {},
        "served": False,
        "map": _map(audit),
    }
    if audit.history is not None:
        history = audit.history.apply(pd.to_numeric, errors="coerce")
        history = history.replace([np.inf, -np.inf], np.nan).astype(object)
        history = history.where(history.notna(), None)
        data["history"] = history.to_dict("list")
    text = _ENVIRONMENT.get_template("page.html.j2").render(
        version=__version__,
        name=audit.summary["name"] or "Candidate labels",
        figures=audit.figures(),
        audit=audit,
        table=_table,
        policy=policy(),
        data=data,
        script=markupsafe.Markup(_script()),
    )
    # A lone surrogate, as in an undecodable file name, cannot be stored.
    return text.encode("utf-8", "replace").decode("utf-8")


def _map(audit):
    """Returns what the page's map shows of each item, or None."""
    if audit.surroundings is None:
        return None
    frame, names = audit.labels, audit.class_names
    number = {name: c for c, name in enumerate(names)}
    places = audit.surroundings.places
    span = np.maximum(np.ptp(places, axis=0), 1e-12)
    places = ((places - places.min(axis=0)) / span * _MAP).round().astype(int)
    votes, index = audit.votes, pd.Index(frame["id"])
    return {
        "places": places.tolist(),
        "ids": frame["id"].tolist(),
        "labels": [number[name] for name in frame["label"]],
        "sets": [[number[n] for n in given] for given in frame["candidates"]],
        "suspicion": (100 * frame["suspicion"]).fillna(0).astype(int).tolist(),
        # The row of each place of the review list.
        "listed": index.get_indexer(audit.review["id"]).tolist(),
        "people": [] if votes is None else list(map(str, votes.names)),
        "votes": []
        if votes is None
        else np.stack([votes.rows, votes.annotators, votes.classes]).tolist(),
    }


def with_data(text, data):
    """Returns a report with some data changed, for a server behind it."""
    before, mark, rest = text.partition(_DATA)
    own, end, after = rest.partition("</script>")
    if not end or f"<script>{_script()}</script>" not in after:
        raise CheckpointError(
            "report.html is of another version of this package; the audit "
            "command writes it again."
        )
    data = jinja2.utils.htmlsafe_json_dumps({**json.loads(own), **data})
    return f"{before}{mark}{data}{end}{after}"


def policy():
    """Returns the content policy of the page: its own script, and no other."""
    digest = hashlib.sha256(_script().encode()).digest()
    return (
        "default-src 'none'; script-src 'sha256-"
        f"{base64.b64encode(digest).decode()}'; style-src 'unsafe-inline'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'"
    )


_ENVIRONMENT = jinja2.Environment(
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    loader=jinja2.PackageLoader("alim_keras.report"),
)


def _script():
    return _ENVIRONMENT.get_template("page.js").render()


def _list(value):
    return json.loads(value) if isinstance(value, str) else value


def _table(frame):
    """Returns the first rows of a data frame as an HTML table, escaped."""
    frame = frame.iloc[:_MOST_ROWS]
    forms = {name: percent for name in _SHARES & {*frame}}
    with pd.option_context("display.max_colwidth", None):
        text = frame.to_html(
            index=False,
            border=0,
            formatters=forms,
            float_format="{:,.3g}".format,
            na_rep="-",
        )
    # Only heads of columns have names of more than one word.
    text = re.sub(r"<th>\w+</th>", lambda m: m[0].replace("_", " "), text)
    return markupsafe.Markup(text)


def encoded(image, largest, effort=4):
    """Returns a picture as a WebP file, bytes, its sides at most `largest`.

    uint8 `(H, W, channels)`: 3 (RGB), 4 (RGBA), else the first is shown grey.
    Up to 64 pixels it is stored without loss. `effort` is from 0, fast, to 6.
    """
    if image.dtype != np.uint8:
        raise DataError(f"A picture must be uint8. Received: {image.dtype}")
    if image.shape[2] not in (3, 4):
        image = np.repeat(image[:, :, :1], 3, axis=2)
    picture = Image.fromarray(image)
    tiny = max(picture.size) <= _TINY
    picture.thumbnail((largest, largest), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    picture.save(out, "WEBP", lossless=tiny, quality=80, method=effort)
    return out.getvalue()
