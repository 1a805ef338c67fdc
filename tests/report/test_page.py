import base64
import html.parser
import io
import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sample_report import HOSTILE
from sample_report import sample_audit

from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.report import page as module
from alim_keras.report import results


@pytest.fixture(scope="module")
def audit():
    return sample_audit(ids=[f"{HOSTILE[i % 5]}-{i}" for i in range(200)])


@pytest.fixture(scope="module")
def text(audit):
    images = np.zeros((200, 4, 4, 3), "uint8")
    images[:] = np.arange(200)[:, None, None, None]
    return audit.to_html(images=images)


def read(text):
    """Returns tags, attributes and text of a page; its tags must match."""
    tags, attributes, words, open_tags = [], [], [], []

    class Reader(html.parser.HTMLParser):
        def handle_starttag(self, tag, pairs):
            tags.append(tag)
            attributes.extend(pairs)
            if tag not in ("meta", "img"):
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
    assert audit.describe().replace("\n", " ") in shown
    for part in (
        "By epoch: loss.",
        "By epoch: covering_rate.",
        "By epoch: test_accuracy.",
        "Audit of sample <b>set</b>",
        "Shown: 20 of 20.",
        "ann: ",
        "Given and settled classes",
        "Classes, the noisiest first",
        "Annotators",
        *HOSTILE,
        "<i>bob</i>",
    ):
        assert part in shown
    for row in audit.review.itertuples():
        assert f"{row.rank}. {row.id} " in shown
        assert row.reason in shown
    for wrong in ("nan", "None", "<NA>", "inf"):
        assert re.search(rf">\s*{wrong}\s*<", text) is None


def test_nothing_of_the_data_becomes_markup_and_nothing_is_loaded(text):
    tags, attributes, _ = read(text)
    assert not {"script", "i", "iframe", "object", "link"} & set(tags)
    for wrong in ("<script", "<b>set", "<i>bob", "<img src=x"):
        assert wrong not in text
    assert "default-src 'none'; img-src data:; " in text
    assert re.search(r"https?://|//cdn|@import|url\(", text) is None
    for name, value in attributes:
        assert not name.startswith("on")
        if name in ("href", "src", "action", "srcset"):
            assert value.startswith("data:image/")


def test_pictures_belong_to_their_rows(text):
    _, attributes, _ = read(text)
    names = [value for name, value in attributes if name == "alt"]
    images = [value for name, value in attributes if name == "src"]
    for name, uri in zip(names[:20], images):
        row = int(name.rsplit("-")[-1])
        assert decoded(uri)[0, 0].tolist() == [row] * 3


def test_bare_audit(tmp_path):
    audit = sample_audit(bare=True)
    text = audit.to_html(tmp_path / "r.html", review_images=3)
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == text
    tags, _, shown = read(text)
    assert "img" not in tags and "figure" not in tags
    assert "Annotators" not in shown
    assert "Candidate labels" in shown and "Shown: 3 of 20." in shown
    assert "An audit with --folds asks networks" in shown
    # Feature vectors are images of one pixel, and have no picture.
    vectors = np.zeros((200, 1, 1, 7), "float32")
    assert audit.to_html(images=vectors, review_images=3) == text
    with pytest.raises(ConfigError, match="path must be the name of a file"):
        audit.to_html(tmp_path)


def test_tables_are_cut_after_a_thousand_rows():
    text = module._table(pd.DataFrame({"a_share": np.full(1010, 0.25)}))
    assert text.count("<tr") == 1001
    assert "<th>a share</th>" in text and "<td>0.250</td>" in text


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


def decoded(uri):
    head, _, data = uri.partition(",")
    assert head == "data:image/webp;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


@pytest.mark.parametrize("shape", [(32, 32, 3), (64, 1, 3), (28, 28, 1)])
def test_tiny_images_keep_every_pixel(shape):
    image = np.random.default_rng(0).integers(0, 256, shape).astype("uint8")
    found = decoded(module.data_uri(image))
    np.testing.assert_array_equal(found, np.broadcast_to(image, found.shape))


def test_large_images_are_scaled_down():
    image = np.zeros((600, 300, 3), "uint8")
    image[:300] = (200, 30, 60)
    found = decoded(module.data_uri(image))
    assert found.shape == (256, 128, 3)
    # The upper half is red and the lower black, up to WebP's loss.
    assert np.abs(found[64, 64].astype(int) - (200, 30, 60)).max() < 12
    assert found[192, 64].max() < 12


@pytest.mark.parametrize(
    "form, value, expected",
    [
        (results.percent, 0.1234, "12.3 %"),
        (results.percent, 0.00001, "0.001 %"),
        (results.percent, None, "-"),
        (results.listed, ["a"] * 14, f"{', '.join('a' * 12)} + 2 more"),
        (results.listed, [], "-"),
    ],
)
def test_forms_of_numbers_and_names(form, value, expected):
    assert form(value) == expected
