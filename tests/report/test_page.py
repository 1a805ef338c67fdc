import base64
import html.parser
import io
import re
import xml.etree.ElementTree as ElementTree

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
from alim_keras.report.page import page

SPACE = "\N{NO-BREAK SPACE}"


def pictures(rows):
    images = np.zeros((len(rows), 28, 28, 3), "uint8")
    images[:] = np.asarray(rows)[:, None, None, None] % 256
    return images


@pytest.fixture(scope="module")
def audit():
    return sample_audit(noise=0.4)


@pytest.fixture(scope="module")
def text(audit):
    return page(audit, pictures)


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
    _, _, shown = read(text)
    outside = int(audit.labels["outside"].sum())
    assert outside > 10
    for part in (
        f"200 items, 8 classes. Settled labels outside their set: {outside} (",
        "The noise rate is taken as 17.3 %: a number that was given.",
        "Labels are predictions of networks that were trained without these",
        "Of the 200 examples whose true label is known",
        "test accuracy0.812",
        "epochs40",
        "In 40 epochs: loss from",
        "sample <b>set</b>",
        "Shown: 20 of 20.",
        "ann: ",
        "(25.0 %)",
        "Where true labels are known",
        "Given and settled classes",
        "Classes, the noisiest first",
        "Annotators",
    ):
        assert part in shown
    for row in audit.review.itertuples():
        assert f"{row.rank}. {row.id}" in shown
        assert row.reason in shown
    for name in (*HOSTILE, "ann", "<i>bob</i>"):
        assert name in shown
    for wrong in ("nan", "None", "<NA>", "inf"):
        assert re.search(rf">\s*{wrong}\s*<", text) is None


def test_nothing_of_the_data_becomes_markup():
    ids = [f"{HOSTILE[i % 7]}-{i}" for i in range(200)]
    audit = sample_audit(ids=ids, noise=0.4)
    text = page(audit, pictures)
    tags, attributes, shown = read(text)
    assert not {"script", "i", "iframe", "object", "link"} & set(tags)
    for wrong in ("<script", "<b>set", "<i>bob", "<img src=x"):
        assert wrong not in text
    assert not [name for name, _ in attributes if name.startswith("on")]
    for name in audit.review["id"]:
        assert f". {name} " in shown


def test_the_page_loads_nothing(text):
    _, attributes, _ = read(text)
    pairs = dict(attributes)
    assert pairs["content"] is not None
    assert "default-src 'none'; img-src data:; " in text
    assert re.search(r"https?://|//cdn|@import|url\(", text) is None
    for name, value in attributes:
        if name in ("href", "src", "action", "srcset"):
            assert value.startswith("data:image/")


def test_pictures_belong_to_their_rows(audit):
    def fake(rows):
        return [np.full((4, 4, 3), row, "uint8") for row in rows]

    text = page(audit, fake, review_images=15)
    shown = re.findall(
        r'<img src="(data:image/webp[^"]*)" alt="Example (.*?)"', text
    )
    assert len(shown) == 15
    for uri, name in shown:
        row = int(re.search(r"(\d+)\.png", name)[1])
        assert decoded(uri)[0, 0].tolist() == [row] * 3


def test_bare_audit(tmp_path):
    audit = sample_audit(bare=True, name=None)
    text = audit.to_html(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == text
    tags, _, shown = read(text)
    assert "img" not in tags and "figure" not in tags
    assert "Annotators" not in shown and "true labels" not in shown
    assert "Candidate labels" in shown
    assert "review.csvthe items to look at first" in shown
    assert "An audit with --folds asks networks" in shown
    # Feature vectors are images of one pixel, and have no picture.
    vectors = np.zeros((200, 1, 1, 7), "float32")
    assert audit.to_html(images=vectors) == text


def test_a_large_audit():
    names = [f"class {i}" for i in range(1010)]
    audit = sample_audit(300, names)
    text = page(audit, review_images=3)
    _, _, shown = read(text)
    assert f"Shown: 3 of {len(audit.review)}." in shown
    # Rows of the changes, the classes and the others.
    assert 1000 < text.count("<tr") < 100 + 1000 + 30


def test_a_folder_is_no_file_for_the_page(tmp_path):
    with pytest.raises(ConfigError, match="path must be the name of a file"):
        sample_audit(20).to_html(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "images, message",
    [
        (np.zeros((19, 8, 8, 3), "uint8"), r"of 20 .* \(19, 8, 8, 3\)$"),
        (np.zeros((20, 8, 8), "uint8"), r"of 20 .* \(20, 8, 8\)$"),
        ([1, 2], "of 20 .* list$"),
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
    uri = module.data_uri(image)
    found = decoded(uri)
    assert found.shape == (256, 128, 3)
    # The upper half is red and the lower black, up to WebP's loss.
    assert np.abs(found[64, 64].astype(int) - (200, 30, 60)).max() < 12
    assert found[192, 64].max() < 12
    assert len(uri) < 3000


def svg(plot):
    finding, image = plot
    text = base64.b64decode(image.partition(",")[2])
    assert ElementTree.fromstring(text).tag.endswith("svg")
    return finding


def test_curves_say_what_they_show():
    # metrics.csv leaves empty what was not computed in an epoch.
    plots = module.curves(
        pd.DataFrame(
            {
                "epoch": [1, 2, 3],
                "loss": ["4.0", "2.0", "1.25"],
                "cls_loss": [1.0, 1.5, 3.0],
                "covering_rate": ["", 0.5, 0.75],
                "noise_rate": [0.2, np.inf, 0.2],
                "test_accuracy": ["", "", ""],
            }
        )
    )
    assert [svg(plot) for plot in plots] == [
        "In 3 epochs: loss from 4.00 to 1.25; cls loss from 1.00 to 3.00.",
        "In 3 epochs: covering rate from 0.500 to 0.750.",
        "In 3 epochs: noise rate from 0.200 to 0.200.",
    ]
    assert module.curves(None) == [] == module.curves(pd.DataFrame())


def test_the_ratio_says_what_it_shows():
    ratio = np.array([0.1, 0.1, 10.0, 1000.0, np.inf, np.nan, 0.0])
    outside = np.array([1, 1, 0, 0, 0, 0, 0], bool)
    (plot,) = module.ratio_histogram(ratio, outside, 0.25)
    finding = svg(plot)
    assert f"Of 4 examples, 50.0{SPACE}% have a ratio below 1;" in finding
    assert "not drawn are 3 without a ratio" in finding
    assert "below lambda, 0.250." in finding
    (bare,) = module.ratio_histogram(ratio, outside)
    assert "below lambda, -." in svg(bare)
    assert module.ratio_histogram([np.nan, np.inf], outside[:2]) == []


@pytest.mark.parametrize(
    "form, value, expected",
    [
        (results.count, 50000, "50,000"),
        (results.count, None, "-"),
        (results.number, 0.034567, "0.0346"),
        (results.number, 1234.5, "1,234"),
        (results.number, float("nan"), "-"),
        (results.percent, 0.1234, f"12.3{SPACE}%"),
        (results.percent, 0.0, f"0{SPACE}%"),
        (results.percent, 0.00001, f"<0.1{SPACE}%"),
        (results.percent, 0.99999, f">99.9{SPACE}%"),
        (results.percent, 1.0, f"100{SPACE}%"),
        (results.listed, ["a"] * 14, f"{', '.join('a' * 12)} + 2 more"),
        (results.listed, [], "-"),
    ],
)
def test_forms_of_numbers_and_names(form, value, expected):
    assert form(value) == expected
