import base64
import hashlib
import html
import html.parser
import io
import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sample_report import HOSTILE
from sample_report import data_of
from sample_report import sample_audit

from alim_keras.errors import CheckpointError
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.report import page as module
from alim_keras.report import tables


@pytest.fixture(scope="module")
def audit():
    return sample_audit(ids=[f"{HOSTILE[i % 5]}-{i}" for i in range(200)])


# Pictures of one brightness, the row's.
IMAGES = np.arange(200, dtype="uint8")[:, None, None, None]
IMAGES = np.broadcast_to(IMAGES, (200, 4, 4, 3))


@pytest.fixture(scope="module")
def text(audit):
    return audit.to_html(images=IMAGES)


def read(text):
    """Returns tags, attributes and text of a page; its tags must match."""
    tags, attributes, words, open_tags = [], [], [], []

    class Reader(html.parser.HTMLParser):
        def handle_starttag(self, tag, pairs):
            tags.append(tag)
            attributes.extend(pairs)
            if tag not in ("meta", "img", "input"):
                open_tags.append(tag)

        def handle_endtag(self, tag):
            assert open_tags.pop() == tag

        def handle_data(self, data):
            words.append(data)

    reader = Reader()
    reader.feed(text)
    reader.close()
    assert not open_tags
    return tags, attributes, re.sub(r"\s+", " ", "".join(words))


def test_the_page_says_what_the_audit_found(text, audit):
    shown = read(text)[2]
    for name, figure in audit.figures().items():
        assert f"{name}{figure} " in shown
    for part in (
        "sample <b>set</b>",
        "Given and settled classes",
        "Classes, the noisiest first",
        "Annotators",
        *HOSTILE,
        "<i>bob</i>",
    ):
        assert part in shown
    for wrong in ("nan", "None", "<NA>", "inf"):
        assert re.search(rf">\s*{wrong}\s*<", text) is None


def test_the_items_of_the_page(text, audit):
    data = data_of(text)
    items = data.pop("items")
    assert data == {
        "run": audit.identity,
        "classes": list(HOSTILE),
        "total": 20,
        "answered": 0,
        "start": 0,
        "before": [],
        "served": False,
        "map": None,
        "history": data["history"],
    }
    # Values that are no numbers are not known.
    assert data["history"]["test_accuracy"][3:5] == [None, 0.8125]
    assert data["history"]["noise_rate"][8:10] == [0.0, None]
    assert [item["id"] for item in items] == audit.review["id"].tolist()
    for item, row in zip(items, audit.review.itertuples(), strict=True):
        assert item["reason"].lower() == f"{row.reason}.".lower()
        names, chances, given = zip(*item["choices"], strict=True)
        assert list(names) == row.choices and list(chances) == row.chances
        assert list(given) == [name in row.candidates for name in names]
        assert [who for who, _ in item["votes"]] == ["ann", "<i>bob</i>"]
        assert {name for _, name in item["votes"]} == set(row.candidates)
        number = int(row.id.rsplit("-")[-1])
        assert decoded(item["image"])[0, 0].tolist() == [number] * 3


def test_neighbours_have_pictures_and_settled_labels():
    vectors = np.eye(40)[np.arange(200) % 40]
    audit = sample_audit(features=vectors)
    settled = audit.labels["label"].tolist()
    for item in data_of(audit.to_html(images=IMAGES[..., :1]))["items"]:
        row = int(item["id"][-9:-4])
        near = [decoded(uri)[0, 0, 0] for uri, _ in item["near"]]
        # Vectors of one direction: those 40 apart.
        assert set(near[:4]) <= {n for n in range(200) if n % 40 == row % 40}
        labels = [label for _, label in item["near"]]
        assert labels == [settled[n] for n in near]


def test_nothing_of_the_data_becomes_markup_and_nothing_is_loaded(text):
    tags, attributes, _ = read(text)
    assert tags.count("script") == 2
    assert not {"i", "iframe", "object", "link"} & set(tags)
    for wrong in ("<script>alert", "<b>set", "<i>bob", "<img src=x"):
        assert wrong not in text
    # The policy allows the script of the page alone.
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'Policy" content="([^"]*)"', text)
    assert html.unescape(policy) == module.policy()
    assert module.policy() == (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src "
        "'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri "
        "'none'; form-action 'none'"
    )
    # The name of SVG's elements is no address.
    rest = text.replace("http://www.w3.org/2000/svg", "")
    assert re.search(r"https?://|//cdn|@import|url\(", rest) is None
    for name, value in attributes:
        assert not name.startswith("on")
        if name in ("href", "src", "action", "srcset"):
            assert value.startswith("data:image/") or value == "answers.csv"


def test_other_data_take_the_place_of_a_pages_own(text):
    new = {"run": "</script><b>", "items": []}
    changed = module.with_data(text, new)
    assert data_of(changed) == {**data_of(text), **new}
    assert len(changed) < len(text)
    with pytest.raises(CheckpointError, match="of another version"):
        module.with_data(text.replace('"use strict"', "0"), {})


def test_bare_audit(tmp_path):
    audit = sample_audit(bare=True)
    text = audit.to_html(tmp_path / "r.html", review_images=3)
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == text
    _, _, shown = read(text)
    assert "Annotators" not in shown and "by epoch" not in shown
    assert "Candidate labels" in shown
    assert "an audit with --folds asks networks" in shown
    data = data_of(text)
    assert data["total"] == len(data["items"]) == 3
    item = data["items"][0]
    assert item["image"] is None and item["votes"] == item["near"] == []
    # Feature vectors are images of one pixel, and have no picture.
    vectors = np.zeros((200, 1, 1, 7), "float32")
    assert audit.to_html(images=vectors, review_images=3) == text
    with pytest.raises(ConfigError, match="path must be the name of a file"):
        audit.to_html(tmp_path)


def test_tables_are_cut_after_a_thousand_rows():
    frame = {"a_size": np.full(1010, 0.25), "share": [np.nan] + [0.25] * 1009}
    text = module._table(pd.DataFrame(frame))
    assert text.count("<tr") == 1001
    assert "<th>a size</th>" in text and "<td>0.25</td>" in text
    assert "<td>25 %</td>" in text and "<td>-</td>" in text
    shown = [tables.percent(share) for share in (0.1234, 0.00001, None)]
    assert shown == ["12.3 %", "0.001 %", "-"]


@pytest.mark.parametrize(
    "images, message",
    [
        (np.zeros((19, 8, 8, 3), "uint8"), r"of 20 .*=\(19, 8, 8, 3\)$"),
        (np.zeros((20, 8, 8), "uint8"), r"of 20 .*=\(20, 8, 8\)$"),
        ([1, 2], r"of 20 .*=\(2,\)$"),
        (np.zeros((20, 8, 8, 3), "float32"), "must be uint8"),
    ],
)
def test_pictures_that_do_not_fit_are_refused(images, message):
    with pytest.raises(DataError, match=message):
        sample_audit(20).to_html(images=images)


def opened(content):
    return np.asarray(Image.open(io.BytesIO(content)))


def decoded(uri):
    head, _, data = uri.partition(",")
    assert head == "data:image/webp;base64"
    return opened(base64.b64decode(data))


@pytest.mark.parametrize("shape", [(32, 32, 3), (64, 1, 3), (28, 28, 1)])
def test_tiny_images_keep_every_pixel(shape):
    image = np.random.default_rng(0).integers(0, 256, shape).astype("uint8")
    found = opened(module.encoded(image, 256))
    np.testing.assert_array_equal(found, np.broadcast_to(image, found.shape))


def test_large_images_are_scaled_down():
    image = np.zeros((600, 300, 3), "uint8")
    image[:300] = (200, 30, 60)
    found = opened(module.encoded(image, 256))
    assert found.shape == (256, 128, 3)
    # The upper half is red and the lower black, up to WebP's loss.
    assert np.abs(found[64, 64].astype(int) - (200, 30, 60)).max() < 12
    assert found[192, 64].max() < 12
