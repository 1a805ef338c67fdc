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
import socketserver
import threading
from wsgiref import simple_server

from alim_keras import files
from alim_keras.report import page

_ANSWERS, _UNCLEAR = "answers.csv", "cannot_tell.csv"
_PICTURE = "image/webp"
# Sides in pixels of pictures, at most.
_SIZES = {"image": 4096, "thumb": 160}
# Bytes of an answer, at most, and how many items come at once.
_LONGEST, _AT_ONCE = 1 << 16, 40
_HEADERS = (
    ("Content-Security-Policy", page.policy()),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


class Answers:
    """The answers to a review list, on the disk as soon as they are given.

    What the files hold already stays, also on items that are not listed.

    Args:
        folder: Where answers.csv and cannot_tell.csv are.
        ids: Strings, the ids of the items in their order.
        class_names: C strings.
    """

    def __init__(self, folder, ids, class_names):
        self._folder, self._ids = folder, ids
        self._allowed, self._lock = {*class_names, None}, threading.Lock()
        # By id, a class name, or None for "cannot tell".
        self._labels, self._others, self._before = {}, {}, []
        self._listed = frozenset(ids)
        for name in (_ANSWERS, _UNCLEAR):
            place = os.path.join(folder, name)
            if os.path.exists(place):
                with open(place, encoding="utf-8", newline="") as file:
                    for row in csv.DictReader(file):
                        is_listed = row["id"] in self._listed
                        labels = self._labels if is_listed else self._others
                        labels[row["id"]] = row.get("label")

    def take(self, labels):
        """Takes the answers in a dict from ids to class names at once."""
        with self._lock:
            for name, label in labels.items():
                self._others.pop(name, None)
                self._labels.pop(name, None)
                own = self._labels if name in self._listed else self._others
                own[name] = label
            self._write({None, *labels.values()})

    def of(self, place):
        """Returns `{"answer": ...}` of an item, `{}` of one without."""
        name = self._ids[place]
        return {"answer": self._labels[name]} if name in self._labels else {}

    def state(self, place):
        """Returns what the page is told of an item and of the whole list."""
        count = len(self._ids)
        after = itertools.chain(range(place + 1, count), range(place + 1))
        free = (n for n in after if self._ids[n] not in self._labels)
        state = {"place": place, "answered": len(self._labels)}
        return {**state, **self.of(place), "next": next(free, place)}

    def change(self, wish):
        """Takes an answer, or takes the last one back; returns the `state`.

        Args:
            wish: Dict of `place` and `label`, a class name or None for
                "cannot tell"; or of `undo`.

        Raises:
            ValueError: It is neither, or names no item or class.
        """
        with self._lock:
            match wish:
                case {"undo": True} if not self._before:
                    return self.state(0)
                case {"undo": True}:
                    place, new = self._before.pop()
                    old = self.of(place)
                case {"place": int(place), "label": (str() | None) as label}:
                    if place not in range(len(self._ids)):
                        raise ValueError("no such place")
                    if label not in self._allowed:
                        raise ValueError("no such class")
                    old, new = self.of(place), {"answer": label}
                    self._before.append((place, old))
                case _:
                    raise ValueError("neither place and label nor undo")
            self._labels.pop(self._ids[place], None)
            if new:
                self._labels[self._ids[place]] = new["answer"]
            self._write({*old.values(), *new.values()})
            return self.state(place)

    def _write(self, labels):
        """Writes the files that hold some labels."""
        for is_unclear in {label is None for label in labels}:
            name = _UNCLEAR if is_unclear else _ANSWERS
            path = os.path.join(self._folder, name)
            files.write_atomically(path, self.text(is_unclear))

    def text(self, is_unclear=False):
        """Returns what answers.csv, or cannot_tell.csv, holds."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["id"] if is_unclear else ["id", "label"])
        for row in (self._others | self._labels).items():
            if (row[1] is None) == is_unclear:
                writer.writerow(row[:1] if is_unclear else row)
        return text.getvalue()


class Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    """Shows a review list to this machine, and to nobody else.

    It listens on 127.0.0.1, and answers only requests that name that host and
    begin with the token of its address.

    Args:
        text: String, the report's page.
        items: `page.Items`, whose pictures have an `address`.
        answers: `Answers` to them.
        pictures: Function from row numbers and a size in pixels to uint8
            images, or None.
        port: Integer, 0 for any that is free.

    Attributes:
        address: String, the address to open.
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
        """Answers a request, as WSGI has it."""
        try:
            path = self._checked(request)
            if request["REQUEST_METHOD"] == "POST":
                kind, content = "application/json", self._change(request, path)
            else:
                kind, content = self._content(path)
            status, content = (
                200,
                content if kind == _PICTURE else content.encode(),
            )
        except _Refused as error:
            status, kind = error.args[0], "text/plain"
            content = error.args[-1].encode()
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
        if kind == "items":
            places = range(number, len(self._items))[:_AT_ONCE]
            own = [{**self._items[n], **self._answers.of(n)} for n in places]
            return "application/json", json.dumps(own)
        if self._pictures and 0 <= number < self._items.num_examples:
            (image,) = self._pictures([number], _SIZES[kind])
            return _PICTURE, page.encoded(image, _SIZES[kind], effort=0)
        raise _Refused(404, "there is no such thing")

    def _page(self):
        state = self._answers.state(len(self._items) - 1)
        data = {"start": state["next"], "answered": state["answered"]}
        data |= {"items": [], "total": len(self._items), "served": True}
        return page.with_data(self._text, data)

    def _change(self, request, path):
        """Takes the answer in a request; returns the new state as JSON."""
        length = request.get("CONTENT_LENGTH") or ""
        size = int(length) if re.fullmatch(r"\d{1,9}", length) else -1
        origins = (None, *(f"http://{host}" for host in self._hosts))
        for is_wrong, status in (
            (path != "answer", 404),
            (request.get("HTTP_ORIGIN") not in origins, 403),
            (request.get("CONTENT_TYPE") != "application/json", 415),
            (size < 0, 411),
            (size > _LONGEST, 413),
        ):
            if is_wrong:
                # A browser reads no reply before its body is taken.
                request["wsgi.input"].read(min(max(size, 0), 16 * _LONGEST))
                raise _Refused(status, "this is no answer")
        try:
            wish = json.loads(request["wsgi.input"].read(size))
            return json.dumps(self._answers.change(wish))
        except (ValueError, RecursionError) as error:
            raise _Refused(400, "this is no answer") from error
        except OSError as error:
            raise _Refused(500, f"not written: {error}") from error


class _Handler(simple_server.WSGIRequestHandler):
    # Seconds to wait for a request, or the rest of one.
    timeout = 60

    def log_message(self, *_):
        """Says nothing: the terminal is a person's."""


class _Refused(Exception):
    """A status of HTTP, and the reason in words."""


def address(row, use):
    """Returns the address of an example's picture, below the token."""
    return f"{'image' if use == 'image' else 'thumb'}/{row}"
