import dataclasses
import json
import re

from sample_audit import HOSTILE
from sample_audit import sample_audit
from sample_page import pictures
from sample_page import read
from sample_page import table

from alim_keras.report import html
from alim_keras.report import page_items


def test_nothing_of_the_data_becomes_markup():
    ids = [f"{HOSTILE[i % 7]}-{i}" for i in range(200)]
    text = html.page(sample_audit(ids=ids, noise=0.4), pictures)
    page = read(text)
    assert len(page.find("script")) == 2
    assert {one.tag for one in page.find("section", id="review")[0].find()} <= {
        "h2", "p", "div", "label", "input", "output", "table", "thead",
        "tbody", "tr", "th", "td", "button", "bdi", "img", "wbr",
    }  # fmt: skip
    shown = {row[0] for row in table(page, "review")}
    assert shown <= set(ids) and len(shown) == 20
    for wrong in ("<script>alert", "<b>set", "<i>bob", "<img src=x"):
        assert wrong not in text
    for image in page.find("img"):
        assert image.attributes["src"].startswith("data:image/webp;base64,")
        assert "onerror" not in image.attributes


def test_json_cannot_end_its_element():
    text = page_items.script_json(["</script><!--", "&", "\u2028", '"'])
    assert re.search(r"[<>&\u2028]", text) is None
    assert json.loads(text) == ["</script><!--", "&", "\u2028", '"']


def test_names_that_cannot_be_stored_are_shown_all_the_same(audit):
    # As of a folder whose name is not UTF-8.
    other = dataclasses.replace(audit, summary=dict(audit.summary))
    other.summary["name"] = "bad\udcff"
    text = html.page(other)
    assert read(text).find("h1")[0].text == "bad?"
    text.encode("utf-8")


def test_the_page_loads_nothing(text, page):
    (policy,) = page.find("meta", http_equiv="Content-Security-Policy")
    rules = policy.attributes["content"]
    assert rules.startswith("default-src 'none'; img-src data:; ")
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='", rules)
    without = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert re.search(r"https?://|//cdn|@import|url\((?!#)", without) is None
    for one in page.find():
        assert one.tag not in ("link", "iframe", "object", "embed", "base")
        assert not [k for k in one.attributes if k.startswith("on")]
        for name in ("href", "src", "action", "srcset"):
            value = one.attributes.get(name, "#")
            assert value.startswith(("#", "data:image/webp;base64,"))
