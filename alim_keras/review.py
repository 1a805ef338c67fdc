"""Serves the review page of an audited run, for answers on this machine.

    python -m alim_keras.review runs/mine

Answers are written as they are given: answers.csv, which `--known_labels`
reads, and cannot_tell.csv.
"""

import csv
import dataclasses
import hmac
import http.server
import io
import itertools
import json
import os
import re
import secrets
import sys
import threading

from alim_keras import files
from alim_keras.app import cli
from alim_keras.app import process
from alim_keras.app.config import ReopenConfig
from alim_keras.app.values import path
from alim_keras.app.values import whole
from alim_keras.errors import CheckpointError

_ANSWERS, _UNCLEAR = "answers.csv", "cannot_tell.csv"
_HEADS = {_ANSWERS: "id,label\n", _UNCLEAR: "id\n"}
# Sides in pixels of pictures.
_SIZES = {"image": 4096, "thumb": 160}
# Bytes of an answer, at most, and how many items come at once.
_LONGEST, _AT_ONCE = 1 << 16, 40
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclasses.dataclass(frozen=True)
class ReviewConfig:
    """Review.

    Attributes:
        out: Folder where audit --out wrote. Without it: the run's own.
        port: Port of 127.0.0.1 to listen on. Without it: any that is free.
    """

    out: str | None = path()
    port: int | None = whole(None, low=1, high=65535)


COMMAND = cli.Command(
    name="review",
    doc=(
        "Serves the review page of an audited run to a browser on this "
        "machine, with whole images from the disk, and writes answers.csv as "
        "answers are given: true labels for --known_labels."
    ),
    groups=(ReviewConfig, ReopenConfig),
    words=("run",),
    examples=("review runs/mine", "review runs/mine --out=audit"),
)


class Answers:
    """The answers to a review list, on the disk as soon as they are given.

    Those that the files hold already stay, also of items that are not listed.

    Args:
        folder: Where answers.csv and cannot_tell.csv are.
        ids: Strings, the ids of the items in their order.
        class_names: C strings.
    """

    def __init__(self, folder, ids, class_names):
        self._folder, self._ids, self._listed = folder, ids, frozenset(ids)
        self._allowed, self._lock = {*class_names, None}, threading.RLock()
        # By id: a class name, or None for "cannot tell"; and rows of files.
        self._labels, self._rows = {}, {name: {} for name in _HEADS}
        self._before, self._count = [], 0
        for name in _HEADS:
            place = os.path.join(folder, name)
            if os.path.exists(place):
                with open(place, encoding="utf-8", newline="") as file:
                    for row in csv.DictReader(file):
                        self._put(row["id"], {"answer": row.get("label")})

    def of(self, place):
        """Returns `{"answer": ...}` of an item, `{}` of one without."""
        name = self._ids[place]
        return {"answer": self._labels[name]} if name in self._labels else {}

    def state(self, place):
        """Returns what the page is told of an item and of the whole list."""
        with self._lock:
            count = len(self._ids)
            after = itertools.chain(range(place + 1, count), range(place + 1))
            free = (n for n in after if self._ids[n] not in self._labels)
            state = {"place": place, "answered": self._count, **self.of(place)}
            return {**state, "next": next(free, place)}

    def text(self, name=_ANSWERS):
        """Returns what answers.csv, or cannot_tell.csv, holds."""
        with self._lock:
            return "".join([_HEADS[name], *self._rows[name].values()])

    def change(self, wish):
        """Takes an answer, or takes the last one back; returns the `state`.

        Args:
            wish: Dict of `place` and `label`, a class name or None for
                "cannot tell"; or of `undo`.

        Raises:
            ValueError: It is neither, or names no item or class.
        """
        with self._lock:
            if wish == {"undo": True}:
                if not self._before:
                    return self.state(0)
                place, after = self._before.pop()
            else:
                place, label = _place_and_label(wish)
                if place not in range(len(self._ids)):
                    raise ValueError(f"{place} is no place of the list")
                if label not in self._allowed:
                    raise ValueError(f"{label!r} is no class")
                self._before.append((place, self.of(place)))
                after = {"answer": label}
            for name in self._put(self._ids[place], after):
                target = os.path.join(self._folder, name)
                files.write_atomically(target, self.text(name))
            return self.state(place)

    def _put(self, name, answer):
        """Puts an answer in place of that of an id; returns changed files."""
        changed = {file for file, rows in self._rows.items() if name in rows}
        for file in changed:
            del self._rows[file][name]
        is_listed = name in self._listed
        self._count += is_listed * (bool(answer) - (name in self._labels))
        self._labels.pop(name, None)
        if answer:
            label = self._labels[name] = answer["answer"]
            file = _UNCLEAR if label is None else _ANSWERS
            row = io.StringIO()
            cells = [name] if label is None else [name, label]
            csv.writer(row, lineterminator="\n").writerow(cells)
            self._rows[file][name] = row.getvalue()
            changed.add(file)
        return changed


def _place_and_label(wish):
    match wish:
        case {"place": int(place), "label": (str() | None) as label}:
            return place, label
    raise ValueError("place and label, or undo, was expected")


class Server(http.server.ThreadingHTTPServer):
    """Shows a review list to this machine, and to nobody else.

    It listens on 127.0.0.1, and answers only requests that name that host and
    begin with the token of its address.

    Args:
        text: String, the report's page.
        items: `report.page.Items`, with addresses such as "image/7".
        answers: `Answers` to them.
        pictures: Function from row numbers and a size in pixels to uint8
            images, or None.
        class_names: C strings.
        port: Integer, 0 for any that is free.

    Attributes:
        address: String, the address to open.
    """

    daemon_threads = True

    def __init__(self, text, items, answers, pictures, class_names, port=0):
        from alim_keras.report.page import policy

        self.items, self.answers, self.pictures = items, answers, pictures
        self.data = {"run": "", "classes": list(class_names), "items": []}
        self.data |= {"total": len(items), "served": True}
        self.headers = {**_HEADERS, "Content-Security-Policy": policy()}
        # Refuses now a page that does not fit.
        self.text = text
        self.page()
        super().__init__(("127.0.0.1", port), _Handler)
        self.token = secrets.token_urlsafe(24)
        names = ("127.0.0.1", "localhost")
        self.hosts = [f"{name}:{self.server_port}" for name in names]
        self.address = f"http://{self.hosts[0]}/{self.token}/"

    def page(self):
        """Returns the page as it stands now."""
        from alim_keras.report.page import with_data

        state = self.answers.state(len(self.items) - 1)
        now = {"start": state["next"], "answered": state["answered"]}
        return with_data(self.text, {**self.data, **now})

    def content(self, path):
        """Returns the kind and the content of a path below the token."""
        from alim_keras.report.page import encoded

        if path == "":
            return "text/html; charset=utf-8", self.page()
        if path == _ANSWERS:
            return "text/csv; charset=utf-8", self.answers.text()
        found = re.fullmatch(r"(items|image|thumb)/(\d{1,9})", path, re.ASCII)
        kind, number = found.groups() if found else (None, 0)
        number = int(number)
        if kind == "items":
            places = range(number, len(self.items))[:_AT_ONCE]
            listed = [{**self.items[n], **self.answers.of(n)} for n in places]
            return "application/json", json.dumps(listed)
        if kind and self.pictures and number < self.items.num_examples:
            (image,) = self.pictures([number], _SIZES[kind])
            return "image/webp", encoded(image, _SIZES[kind], effort=0)
        raise _Refused(404, "There is no such thing here.")


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    # Seconds to wait for a request, or the rest of one.
    timeout = 60

    def do_GET(self):
        self._reply(self.server.content)

    def do_POST(self):
        self._reply(self._answer)

    def _reply(self, act):
        try:
            status, (kind, content) = 200, act(self._path())
        except _Refused as error:
            status, why = error.args
            kind, content = "text/plain; charset=utf-8", why
            # A body may stand there that nobody reads.
            self.close_connection = True
        content = content.encode() if isinstance(content, str) else content
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        # A picture's address is never that of another one.
        is_picture = status == 200 and kind.startswith("image")
        keep = "private, max-age=86400" if is_picture else "no-store"
        self.send_header("Cache-Control", keep)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _path(self):
        """Returns the path below the token, of a request that may be here."""
        if self.headers.get_all("Host") not in [[h] for h in self.server.hosts]:
            raise _Refused(403, "This host is not served.")
        _, token, path = f"{self.path}//".split("/", 2)
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise _Refused(403, "The address lacks its token.")
        return path.removesuffix("//")

    def _answer(self, path):
        own = [None, *(f"http://{host}" for host in self.server.hosts)]
        length = self.headers.get("Content-Length", "")
        if path != "answer":
            raise _Refused(404, "There is no such thing here.")
        if self.headers.get("Origin") not in own:
            raise _Refused(403, "Another page may not answer.")
        if self.headers.get_content_type() != "application/json":
            raise _Refused(415, "An answer is JSON.")
        if not re.fullmatch(r"\d{1,9}", length, re.ASCII):
            raise _Refused(411, "An answer says how long it is.")
        if int(length) > _LONGEST:
            raise _Refused(413, "An answer is shorter.")
        try:
            wish = json.loads(self.rfile.read(int(length)))
            state = self.server.answers.change(wish)
        except (ValueError, RecursionError) as error:
            raise _Refused(400, f"This is no answer: {error}.") from error
        except OSError as error:
            raise _Refused(500, f"It cannot be written: {error}.") from error
        return "application/json", json.dumps(state)

    def log_message(self, *_):
        """Says nothing: the terminal is a person's."""


class _Refused(Exception):
    """A status of HTTP, and the reason in words."""


def main(line):
    """Serves the review list of the run named on the command line."""
    import pandas as pd

    from alim_keras.app import build
    from alim_keras.app import load
    from alim_keras.app.run_folder import RunFolder
    from alim_keras.data.annotators import VoteArrays
    from alim_keras.report.page import Items
    from alim_keras.report.results import pictures

    folder = RunFolder(line.words["run"])
    out = RunFolder(line.options.out or folder.path)
    for name in ("report.html", "labels.csv", "review.csv"):
        if out.existing(name) is None:
            raise CheckpointError(
                f"There is no {name} in {out.path}. The audit command writes "
                "it, for this run."
            )
    with out.lock():
        config = build.settings(line, folder)
        training = load.training_set(config, folder, reopen=True)
        as_text = {"dtype": str, "keep_default_na": False}
        labels, review = (
            pd.read_csv(out.file(name), **as_text)
            for name in ("labels.csv", "review.csv")
        )
        if labels["id"].tolist() != training.ids.tolist():
            raise CheckpointError(
                f"{out.file('labels.csv')} is not about the items of the run."
            )
        names, votes = training.class_names, training.votes
        if votes is not None:
            votes = VoteArrays.of(votes, training.ids, names)
        show = pictures(training.images, len(training))
        items = Items(
            review,
            training.ids,
            labels["label"],
            votes,
            names,
            show and _address,
        )
        answers = Answers(out.path, items.ids, names)
        report, port = out.read_text("report.html"), line.options.port or 0
        with Server(report, items, answers, show, names, port) as server:
            print(
                f"{len(items):,} items; the answers go to {out.file(_ANSWERS)}"
                f"\nOpen {server.address} in a browser; Ctrl-C ends this.",
                flush=True,
            )
            server.serve_forever()


def _address(row, use):
    return f"{'image' if use == 'image' else 'thumb'}/{row}"


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main))
