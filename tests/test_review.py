"""The server of the review page: answers, speed, and whom it refuses."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading

import commands
import numpy as np
import own
import pandas as pd
import pytest
from sample_report import answers_of
from sample_report import sample_audit

from alim_keras.errors import CheckpointError
from alim_keras.errors import DataError
from alim_keras.report import server as module
from alim_keras.report.page import Items
from scripts import report_screenshots

NAMES = ["cat", "dog, small", 'a "b"']
MANY = 100_000


def answer(place, label):
    return {"place": place, "label": label}


def test_answers_are_on_the_disk_as_soon_as_they_are_given(tmp_path):
    (tmp_path / "answers.csv").write_text("label,id\ncat,elsewhere.png\n")
    answers = module.Answers(tmp_path, ["a,1", "b", "c"], NAMES)
    state = answers.change(answer(0, NAMES[1]))
    assert state == {
        "place": 0, "answered": 1, "label": "dog, small", "next": 1
    }  # fmt: skip
    answers.change(answer(2, None))
    state = answers.change(answer(1, NAMES[2]))
    # None is left: the place stays.
    assert (state["answered"], state["next"]) == (3, 1)
    # The one of another list stays.
    expected = {"elsewhere.png": "cat", "a,1": NAMES[1], "b": NAMES[2]}
    assert answers_of(tmp_path / "answers.csv", NAMES) == expected
    assert (tmp_path / "cannot_tell.csv").read_text() == "id\nc\n"
    # Another answer, and none.
    answers.change(answer(0, None))
    assert (tmp_path / "cannot_tell.csv").read_text() == 'id\nc\n"a,1"\n'
    state = answers.change({"place": 1})
    assert state == {"place": 1, "answered": 2, "next": 1}
    assert answers_of(tmp_path / "answers.csv", NAMES) == {
        "elsewhere.png": "cat"
    }
    # Many at once, also on items that are not listed.
    answers.put({"a,1": NAMES[1], "unlisted": "cat"})
    expected = {"elsewhere.png": "cat", "a,1": NAMES[1], "unlisted": "cat"}
    assert answers_of(tmp_path / "answers.csv", NAMES) == expected
    # A second server goes on where the first one ended.
    again = module.Answers(tmp_path, ["a,1", "b", "c"], NAMES)
    assert [again.of(place) for place in range(3)] == [
        {"label": NAMES[1]}, {}, {"label": None}
    ]  # fmt: skip
    assert again.state(0) == {
        "place": 0, "answered": 2, "label": NAMES[1], "next": 1
    }  # fmt: skip
    assert not [name for name in os.listdir(tmp_path) if "partial" in name]


@pytest.mark.parametrize(
    "wish",
    [
        None, [], {}, {"label": "cat"}, {"place": 0, "labels": "cat"},
        answer(-1, "cat"), answer(3, "cat"), answer("0", "cat"),
        answer(0.0, "cat"), answer(0, "cow"), answer(0, ["cat"]), answer(0, 0),
    ],
)  # fmt: skip
def test_what_is_no_answer_changes_nothing(tmp_path, wish):
    answers = module.Answers(tmp_path, ["a", "b", "c"], NAMES)
    with pytest.raises(ValueError, match="place|class"):
        answers.change(wish)
    assert os.listdir(tmp_path) == []
    assert answers.state(0)["answered"] == 0


def test_answers_of_a_spreadsheet_are_read(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("id,label\na,cat\n", encoding="utf-8-sig")
    assert module.Answers(tmp_path, ["a"], NAMES).of(0) == {"label": "cat"}
    for damaged in (b"id;label\na;cat\n", b"id\na\n", b"id,label\n\xff,cat\n"):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="columns id and label"):
            module.Answers(tmp_path, ["a"], NAMES)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server of 100,000 items, and the folder of its answers."""
    folder = tmp_path_factory.mktemp("served")
    ids = [f"{row:06d}.jpg" for row in range(MANY)]
    listed = pd.DataFrame(
        {
            "id": ids[::-1],
            "reason": "outside its set, 90 % sure of cat",
            "candidates": json.dumps(NAMES[1:]),
            "choices": json.dumps(NAMES),
            "chances": "[0.9, 0.06, 0.04]",
            "neighbours": json.dumps(ids[:5]),
        }
    )
    photos = np.random.default_rng(0).integers(0, 256, (5, 600, 800, 3))
    photos = np.repeat(np.repeat(photos[:, ::20, ::20], 20, 1), 20, 2)

    def pictures(rows, largest):
        if rows == [7]:
            raise DataError("seven cannot be read")
        return [photos[row % 5].astype("uint8") for row in rows]

    labels = pd.DataFrame({"id": ids, "label": "cat"})
    items = Items(listed, labels, module.address)
    answers = module.Answers(folder, items.ids, NAMES)
    text = sample_audit().to_html()
    with module.Server(text, items, answers, pictures) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server, folder
        server.shutdown()


def ask(address, path="", method="GET", body=None, token=None, **headers):
    """Sends a request as it stands; returns status, body and headers."""
    host, own_token = address.split("/")[2:4]
    token = own_token if token is None else token
    connection = http.client.HTTPConnection(host)
    headers = {name.replace("_", "-"): v for name, v in headers.items()}
    if method == "POST":
        headers = {"Content-Type": "application/json", **headers}
    with contextlib.closing(connection):
        # A server may answer and hang up before it was sent a whole body.
        with contextlib.suppress(BrokenPipeError):
            connection.request(method, f"/{token}/{path}", body, headers)
        reply = connection.getresponse()
        return reply.status, reply.read(), reply.headers


def test_what_the_server_shows(served):
    server, _ = served
    assert server.server_address[0] == "127.0.0.1"
    status, page, headers = ask(server.address)
    assert status == 200 and b'"served": true' in page
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    status, items, _ = ask(server.address, "items/99990")
    items = json.loads(items)
    assert [item["id"] for item in items[::9]] == ["000009.jpg", "000000.jpg"]
    assert items[0]["image"] == "image/9" and items[0]["thumb"] == "thumb/9"
    assert items[0]["near"][1] == ["thumb/1", "cat"]
    status, image, headers = ask(server.address, "image/99999")
    assert (status, headers["Content-Type"]) == (200, "image/webp")
    assert image[8:12] == b"WEBP"
    assert len(ask(server.address, "thumb/99999")[1]) < len(image)
    assert ask(server.address, "image/7")[:2] == (404, b"seven cannot be read")


def test_the_server_refuses(served, tmp_path):
    server, folder = served
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    good = json.dumps(answer(0, "cat"))

    def status(*args, **kwargs):
        code, body, _ = ask(server.address, *args, **kwargs)
        assert b"secret" not in body
        return code

    # Other hosts: a name of somebody else's that points here, too.
    for host in ("evil.example", "127.0.0.1", "localhost:1", ""):
        assert status(Host=host) == 403
    assert status(Host=f"localhost:{server.server_port}") == 200
    # Without the token not even the page.
    for token in ("", "x", server.token[:-1], server.token + "x"):
        assert status(token=token) == 403
        assert status("answer", "POST", good, token=token) == 403
    # Paths: nothing but numbers of the data set.
    for path in (
        "../secret.txt", f"image/{secret}", "image/../../secret.txt",
        "image/%2e%2e/secret.txt", "image/-1", "image/100000", "image/1.0",
        "image/1/", "image/%D9%A1",
        "items/x", "items", "labels.csv", "answers.csv/", "image/",
        f"file://{secret}", "thumb/99999999999",
    ):  # fmt: skip
        assert status(path) == 404, path
    # Other methods.
    for method in ("PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE"):
        assert status("answer", method) == 405
    assert status("", "POST", good) == 404
    # Bodies: too long, of no length, no JSON, from another page.
    assert status("answer", "POST", "x" * (1 << 17)) == 413
    assert status("answer", "POST", iter([b"x"])) == 411
    assert status("answer", "POST", good, Content_Length="-1") == 411
    for body in ("", "[" * 60_000, "{}", '{"place": 1e999, "label": "cat"}'):
        assert status("answer", "POST", body) == 400
    assert status("answer", "POST", b"\xff") == 400
    assert status("answer", "POST", good, Content_Type="text/plain") == 415
    origin = "http://evil.example"
    assert status("answer", "POST", good, Origin=origin) == 403
    assert not (folder / "answers.csv").exists()
    assert server._answers.state(0)["answered"] == 0


def test_a_page_of_another_version_is_refused(served):
    server, _ = served
    rest = (server._items, server._answers, None)
    with pytest.raises(CheckpointError, match="audit command writes it again"):
        module.Server("<p>A report of long ago</p>", *rest)


@pytest.mark.skipif(
    report_screenshots.find() is None, reason="Chromium is not installed"
)
def test_a_browser_answers_20_of_100000_items_by_keys(served):
    server, folder = served
    is_shown = (
        "typeof busy === 'boolean' && !busy && "
        "document.getElementById('picture').complete && "
        "document.getElementById('picture').naturalWidth === 800 && "
        "document.getElementById('name').textContent.split(' ')[0] === '%d'"
    )
    with report_screenshots.browser() as page:
        first, waits = [], []
        for _ in range(3):
            page.open(server.address)
            page.until(is_shown % 1)
            # By the page's own clock, from its start on.
            first.append(page.value("performance.now()"))
        for place in range(20):
            page.value("window.isPressed = performance.now()")
            page.press(" " if place == 7 else "123"[place % 3])
            page.until(is_shown % (place + 2))
            waits.append(page.value("performance.now() - isPressed"))
        page.open(server.address)
        page.until(is_shown % 21)
        # Undo goes on where it was.
        for place in (20, 19):
            page.press("u")
            page.until(is_shown % place)
            count = page.value("document.getElementById('count').textContent")
            assert count == f"{place - 1} of 100,000 answered"
        for place in (20, 21):
            page.press("1")
            page.until(is_shown % place)
        count = page.value("document.getElementById('count').textContent")
    assert count == "20 of 100,000 answered"
    # The machine may do other work as well.
    assert min(first) < 2000
    assert min(waits) < 100
    expected = {
        f"{MANY - 1 - place:06d}.jpg": NAMES[place % 3] for place in range(19)
    }
    del expected[f"{MANY - 8:06d}.jpg"]
    assert answers_of(folder / "answers.csv", NAMES) == {
        **expected,
        "099980.jpg": "cat",
    }
    assert (folder / "cannot_tell.csv").read_text() == "id\n099992.jpg\n"
    _, text, headers = ask(server.address, "answers.csv")
    assert text == (folder / "answers.csv").read_bytes()


def test_the_command_from_a_run_to_known_labels(tmp_path):
    own.write_folder(tmp_path, count=40, tested=4)
    flags = f"--images={tmp_path / 'photos'}"
    table, run = tmp_path / "labels.csv", tmp_path / "run"
    assert commands.train_own(run, table, flags)[0] == 0
    code, line = commands.fails("review", run)
    assert code == 5 and "no report.html" in line and "audit" in line
    flags_of_audit = ("--review=30", "--review_format=label_studio")
    code, out, _ = commands.call("audit", run, *flags_of_audit)
    assert code == 0 and "review.label_studio.json" in out
    listed = own.read_rows(run / "review.csv")
    words = [sys.executable, "-m", "alim_keras", "review", str(run)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        lines = [server.stdout.readline() for _ in range(2)]
        assert lines[0].startswith(f"{len(listed)} items; the answers go to")
        address = lines[1].split()[1]
        # One writer: nobody else works in the folder meanwhile.
        assert commands.fails("audit", run)[0] == 5
        items = json.loads(ask(address, "items/0")[1])
        assert [item["id"] for item in items] == [row["id"] for row in listed]
        assert ask(address, items[0]["image"])[1][8:12] == b"WEBP"
        for place in range(3):
            body = json.dumps(answer(place, own.NAMES[place]))
            assert ask(address, "answer", "POST", body)[0] == 200
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0
    answers = own.read_rows(run / "answers.csv")
    ids = [row["id"] for row in listed]
    assert answers == [
        {"id": name, "label": label} for name, label in zip(ids[:3], own.NAMES)
    ]
    known = f"--known_labels={run / 'answers.csv'}"
    words = (f"--dataset={table}", flags, known, "--known_as_sets")
    code, out, _ = commands.call("check", *words, "--none_of_these=unsure")
    assert code == 0
    assert "3 of the 3 true labels" in out and "in place of their sets" in out
    # What another program exports is added.
    tasks = json.loads((run / "review.label_studio.json").read_text())[5:7]
    for task in tasks:
        result = task.pop("predictions")[0]["result"]
        result[0]["value"]["choices"] = [own.NAMES[0]]
        task["annotations"] = [{"completed_by": 7, "result": result}]
    export = tmp_path / "export.json"
    export.write_text(json.dumps(tasks))
    code, out, err = commands.call("review", run, f"--answers={export}")
    assert code == 0 and "2 answers to 2 items" in out, err
    more = [{"id": name, "label": own.NAMES[0]} for name in ids[5:7]]
    assert own.read_rows(run / "answers.csv") == [*answers, *more]
    # The list of an older audit has no votes, and this run has some.
    older = pd.DataFrame(listed).drop(columns="votes").to_csv(index=False)
    for damaged in ("", "id\na.jpg\n", older):
        (run / "review.csv").write_text(damaged)
        code, line = commands.fails("review", run)
        assert code == 5 and "review.csv is damaged" in line and "audit" in line
