"""The server behind the review page: to this machine, and nobody else."""

import csv
import hmac
import http
import io
import itertools
import json
import os
import re
import secrets
import threading
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler
from wsgiref.simple_server import WSGIServer

from alim_keras import errors
from alim_keras import files
from alim_keras.report import page

_ANSWERS = "answers.csv"
# The files of answers, and their columns.
_COLUMNS = {_ANSWERS: ["id", "label"], "cannot_tell.csv": ["id"]}
_PICTURE = "image/webp"
# Sides in pixels of pictures, at most.
_SIZES = {"image": 4096, "thumb": 160}
# Bytes of an answer, at most, and how many items come at once.
_LONGEST, _AT_ONCE = 1 << 16, 40
_HEADERS = (
    ("Content-Security-Policy", page.policy()),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
)


class Answers:
    """The answers to a review list, and their two files.

    What the files in the folder hold already stays, also on items that are not
    among `ids`, the list in its order.
    """

    def __init__(self, folder, ids, class_names):
        self._folder, self._ids, self._names = folder, ids, class_names
        self._places = dict(zip(ids, range(len(ids))))
        self._lock = threading.Lock()
        # By id, a class name, or None for "cannot tell"; the last is last.
        self._labels = {}
        for name, columns in _COLUMNS.items():
            path = os.path.join(folder, name)
            if os.path.exists(path):
                self._read(path, columns)

    def _read(self, path, columns):
        try:
            # A spreadsheet writes a mark at the beginning.
            with open(path, encoding="utf-8-sig", newline="") as file:
                for row in csv.DictReader(file):
                    name, *label = [row[column] for column in columns]
                    self._labels[name] = label[0] if label else None
        except (KeyError, ValueError) as error:
            raise errors.DataError(
                f"{path}: CSV in UTF-8 with columns {' and '.join(columns)} "
                "was expected; mend it, or move it away. Received: "
                f"{errors.one_line(error)}"
            ) from error

    def of(self, place):
        """Returns `{"label": ...}` of an item, `{}` of one without answer."""
        name = self._ids[place]
        return {"label": self._labels[name]} if name in self._labels else {}

    def state(self, place):
        """Returns what the page is told of an item and of the whole list."""
        count = len(self._ids)
        after = itertools.chain(range(place + 1, count), range(place + 1))
        free = (n for n in after if self._ids[n] not in self._labels)
        state = {"place": place, "answered": len(self.given())}
        return {**state, **self.of(place), "next": next(free, place)}

    def given(self):
        """Returns the places that have an answer, the last one given last."""
        return [self._places[n] for n in self._labels if n in self._places]

    def change(self, wish):
        """Takes what the page says of an item, and returns its `state`.

        `wish` is a dict of its `place` and `label`, a class name or None for
        "cannot tell"; without `label` its answer is taken back. Anything else
        is a `ValueError`.
        """
        keys = wish.keys() if isinstance(wish, dict) else set()
        if not {"place"} <= keys <= {"place", "label"}:
            raise ValueError("a place and a label were expected")
        place, label = wish["place"], wish.get("label")
        if not isinstance(place, int) or place not in range(len(self._ids)):
            raise ValueError("no such place")
        if label is not None and label not in self._names:
            raise ValueError("no such class")
        name = self._ids[place]
        with self._lock:
            self._labels.pop(name, None)
            self.put({name: label} if "label" in wish else {})
            return self.state(place)

    def put(self, labels):
        """Adds answers, class names or None by id, and writes the files."""
        for name, label in labels.items():
            self._labels.pop(name, None)
            self._labels[name] = label
        for name in _COLUMNS:
            path = os.path.join(self._folder, name)
            files.write_atomically(path, self.text(name))

    def text(self, name=_ANSWERS):
        """Returns what answers.csv, or cannot_tell.csv, holds."""
        text, has_labels = io.StringIO(), name == _ANSWERS
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_COLUMNS[name])
        for item, label in self._labels.items():
            if has_labels and label is not None:
                writer.writerow([item, label])
            elif not has_labels and label is None:
                writer.writerow([item])
        return text.getvalue()


class Server(ThreadingMixIn, WSGIServer):
    """Shows a review list to this machine, and to nobody else.

    It listens on 127.0.0.1, and answers only requests that name that host and
    begin with the token of its address.

    It takes the text of the report's page, `page.Items` whose pictures have
    an `address`, `Answers` to them, what `page.pictures` returns, and a port,
    0 for any that is free. `address` is the one to open.
    """

    daemon_threads = True

    def __init__(self, text, items, answers, pictures, port=0):
        self._text, self._items = text, items
        self._answers, self._pictures = answers, pictures
        # Refuses now a page that does not fit.
        self._page()
        super().__init__(("127.0.0.1", port), _Handler)
        self.set_app(self._reply)
        self.token = secrets.token_urlsafe(24)
        names = ("127.0.0.1", "localhost")
        self._hosts = [f"{name}:{self.server_port}" for name in names]
        self.address = f"http://{self._hosts[0]}/{self.token}/"

    def _reply(self, request, start):
        """Answers a request of WSGI."""
        length = request.get("CONTENT_LENGTH") or ""
        size = int(length) if re.fullmatch(r"\d{1,9}", length) else -1
        # Whoever asks: a browser reads no reply before its body is taken.
        body = request["wsgi.input"].read(min(max(size, 0), 16 * _LONGEST))
        try:
            path = self._checked(request)
            if request["REQUEST_METHOD"] == "POST":
                kind = "application/json"
                content = self._change(request, path, size, body)
            else:
                kind, content = self._content(path)
            status = 200
        except _Refused as error:
            kind, (status, content) = "text/plain", error.args
        except errors.DataError as error:
            # An image that was there at the start.
            status, kind, content = 404, "text/plain", str(error)
        if isinstance(content, str):
            content = content.encode()
        # A picture's address is never that of another one.
        keep = "private, max-age=86400" if kind == _PICTURE else "no-store"
        own = [("Content-Type", kind), ("Cache-Control", keep)]
        own.append(("Content-Length", str(len(content))))
        start(f"{status} {http.HTTPStatus(status).phrase}", [*own, *_HEADERS])
        return [content]

    def _checked(self, request):
        """Returns the path below the token of a request that may be here."""
        _, token, path = f"{request['PATH_INFO']}//".split("/", 2)
        if request.get("HTTP_HOST") not in self._hosts:
            raise _Refused(403, "this host is not served")
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            raise _Refused(403, "the address lacks its token")
        if request["REQUEST_METHOD"] not in ("GET", "POST"):
            raise _Refused(405, "only GET and POST are known")
        return path.removesuffix("//")

    def _content(self, path):
        """Returns kind and content of a path."""
        found = re.fullmatch(r"(items|image|thumb)/(\d{1,9})", path, re.ASCII)
        kind, number = found.groups() if found else (path, -1)
        number = int(number)
        if kind == "":
            return "text/html; charset=utf-8", self._page()
        if kind == _ANSWERS:
            return "text/csv; charset=utf-8", self._answers.text()
        if kind == "items" and found:
            places = range(number, len(self._items))[:_AT_ONCE]
            own = [{**self._items[n], **self._answers.of(n)} for n in places]
            return "application/json", json.dumps(own)
        if self._pictures and 0 <= number < self._items.num_examples:
            (image,) = self._pictures([number], _SIZES[kind])
            return _PICTURE, page.encoded(image, _SIZES[kind], effort=0)
        raise _Refused(404, "there is no such thing")

    def _page(self):
        count, before = len(self._items), self._answers.given()
        start = self._answers.state(count - 1)["next"]
        data = {"start": start, "answered": len(before), "before": before}
        data |= {"items": [], "total": count, "served": True}
        return page.with_data(self._text, data)

    def _change(self, request, path, size, body):
        """Takes the answer in a request; returns the new state as JSON."""
        origins = (None, *(f"http://{host}" for host in self._hosts))
        for is_wrong, status in (
            (path != "answer", 404),
            (request.get("HTTP_ORIGIN") not in origins, 403),
            (request.get("CONTENT_TYPE") != "application/json", 415),
            (size < 0, 411),
            (size > _LONGEST, 413),
        ):
            if is_wrong:
                raise _Refused(status, "this is no answer")
        try:
            return json.dumps(self._answers.change(json.loads(body)))
        except (ValueError, RecursionError) as error:
            raise _Refused(400, "this is no answer") from error
        except OSError as error:
            raise _Refused(500, f"not written: {error}") from error


class _Handler(WSGIRequestHandler):
    # Seconds to wait for a request, or the rest of one.
    timeout = 60

    def log_message(self, *_):
        """Says nothing: the terminal is a person's."""


class _Refused(Exception):
    """A status of HTTP, and the reason in words."""


def address(row, use):
    """Returns the address of an example's picture, below the token."""
    return f"{'image' if use == 'image' else 'thumb'}/{row}"
