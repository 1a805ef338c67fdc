import dataclasses
import html.parser as html_parser
import json
import re
import types
import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest
from sample_audit import HOSTILE
from sample_audit import sample_audit

from alim_keras.report import html
from alim_keras.report import page_items
from alim_keras.report import page_summary
from alim_keras.report import page_tables
from alim_keras.report import words

VOID = ("meta", "img", "input", "wbr")
SPACE = "\N{NO-BREAK SPACE}"


class Node:
    """An element: `find` gives those below it, `text` all text in it."""

    def __init__(self, tag, attributes):
        self.tag, self.attributes, self.children = tag, attributes, []

    def find(self, tag=None, **wanted):
        found = []
        for child in self.children:
            if isinstance(child, Node):
                same = all(
                    child.attributes.get(k.rstrip("_").replace("_", "-")) == v
                    for k, v in wanted.items()
                )
                if (tag is None or child.tag == tag) and same:
                    found.append(child)
                found += child.find(tag, **wanted)
        return found

    @property
    def text(self):
        parts = (c.text if isinstance(c, Node) else c for c in self.children)
        return re.sub(r"\s+", " ", "".join(parts)).strip()


def read(text):
    """Parses a page; raises if an element is not closed as it was opened."""
    root = Node("root", {})
    stack = [root]

    class Builder(html_parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            node = Node(tag, dict(attributes))
            stack[-1].children.append(node)
            if tag not in VOID:
                stack.append(node)

        def handle_startendtag(self, tag, attributes):
            stack[-1].children.append(Node(tag, dict(attributes)))

        def handle_endtag(self, tag):
            assert stack.pop().tag == tag

        def handle_data(self, data):
            stack[-1].children.append(data)

    builder = Builder(convert_charrefs=True)
    builder.feed(text)
    builder.close()
    assert stack == [root]
    return root


def table(page, name):
    """Returns the rows of a table's body as tuples of texts."""
    (found,) = page.find("table", id=f"table-{name}")
    (body,) = found.find("tbody")
    return [
        tuple(cell.text for cell in row.children if isinstance(cell, Node))
        for row in body.find("tr")
    ]


def headers(page, name):
    (found,) = page.find("table", id=f"table-{name}")
    return [one.text for one in found.find("thead")[0].find("th")]


def pictures(rows):
    images = np.zeros((len(rows), 28, 28, 3), "uint8")
    images[:] = np.asarray(rows)[:, None, None, None] % 256
    return images


@pytest.fixture(scope="module")
def audit():
    return sample_audit(noise=0.4)


@pytest.fixture(scope="module")
def text(audit):
    return html.page(audit, pictures)


@pytest.fixture(scope="module")
def page(text):
    return read(text)


def test_figures(page, audit):
    figures = {
        card.find("dt")[0].text: card.find("dd")[0].text
        for card in page.find("dl", class_="figures")[0].find(
            "div", class_="card"
        )
    }
    outside = int(audit.labels["outside"].sum())
    assert outside > 10
    assert figures["Examples"] == "200"
    assert figures["Classes"] == "8"
    assert figures["Settled outside"] == str(outside)
    undecided = int(audit.labels["undecided"].sum())
    assert figures["Undecided"] == str(undecided) != "0"
    assert figures["Noise rate"] == "17.3 %"
    assert figures["Epochs"] == "40"
    assert figures["Test accuracy"] == "81.2 %"
    right = audit.summary["settled_accuracy"]
    assert figures["Settled labels right"] == f"{100 * right:.1f} %"


def test_summary_in_words(page, audit):
    (lead,) = page.find("div", class_="lead")
    outside = int(audit.labels["outside"].sum())
    assert lead.text.startswith(
        "200 examples with candidate sets over 8 classes were looked at; "
    )
    assert (
        f"{outside} settled labels ({outside / 2:.1f} %) lie outside the given "
        "set."
    ) in lead.text
    assert "miss the true class, is taken as 17.3 %: " in lead.text
    (kind,) = page.find("aside", class_="kind")
    assert "predictions of networks that never saw the label" in kind.text
    assert page.find("h1")[0].text == "sample <b>set</b>"
    assert page.find("title")[0].text == "Audit of sample <b>set</b>"


@pytest.mark.parametrize(
    "sources, expected",
    [
        (["table"] * 3, ["of all examples are the learnt table"]),
        (["prediction"] * 3, ["of all examples come from predictions of one"]),
        (
            ["table", "table", "folds"],
            ["of 2 examples are the learnt", "of 1 example come from predict"],
        ),
        (["other"] * 3, ["of all examples come from other."]),
    ],
)
def test_kind_of_labels(sources, expected):
    one = types.SimpleNamespace(labels=pd.DataFrame({"source": sources}))
    found = page_summary.kinds(one)
    assert len(found) == len(expected)
    for sentence, part in zip(found, expected, strict=True):
        assert part in sentence


def test_sections_come_in_order(page):
    order = [one.attributes.get("id") for one in page.find("section")]
    assert order == [
        "summary",
        "figures",
        "training",
        "ratio",
        "confusions",
        "classes",
        "annotators",
        "examples",
        "review",
    ]
    links = [one.attributes["href"] for one in page.find("nav")[0].find("a")]
    assert links == [f"#{name}" for name in order]
    ids = [
        one.attributes["id"] for one in page.find() if "id" in one.attributes
    ]
    assert len(ids) == len(set(ids))


def test_class_table(page, audit):
    rows = table(page, "classes")
    assert len(rows) == 8
    assert headers(page, "classes")[0] == "class"
    by_name = {row[0]: row for row in rows}
    assert set(by_name) == set(HOSTILE)
    # A class without a set: zeros for counts, "-" for shares of nothing.
    settled, share = (
        headers(page, "classes").index(name)
        for name in ("settled as it", "share outside")
    )
    assert by_name["never given"][settled] == "0"
    assert by_name["never given"][share] == "-"
    frame = audit.classes.set_index("class")
    for name in HOSTILE[:-1]:
        assert by_name[name][settled] == str(frame.loc[name, "settled"])
        expected = words.percent(frame.loc[name, "outside_share"])
        assert by_name[name][share] == expected.replace(SPACE, " ")


def test_annotator_table(page, audit):
    rows = table(page, "annotators")
    assert [row[:2] for row in rows] == [
        ("ann", "200"),
        ("<i>bob</i>", "200"),
        ("never asked", "0"),
    ]
    assert set(rows[2][2:]) == {"-"}
    agreement = audit.annotators["agreement"][0]
    assert rows[0][2] == f"{100 * agreement:.1f} %"


def test_truth_table(page, audit):
    rows = table(page, "truth")
    assert rows[1][:2] == ("outside its set", str(audit.summary["outside"]))
    assert rows[1][2] == words.percent(audit.truth["precision"][1]).replace(
        SPACE, " "
    )


def test_matrix(page, audit):
    (found,) = page.find("table", class_="matrix")
    rows = found.find("tbody")[0].find("tr")
    assert [row.find("th")[0].text for row in rows] == list(HOSTILE)
    shown = [[cell.text for cell in row.find("td")] for row in rows]
    assert shown[7] == [""] * 8
    for given in range(7):
        for settled in range(7):
            value = audit.confusion_matrix[given, settled]
            text = shown[given][settled]
            expected = f"{value:.1f}" if value % 1 and value < 10 else None
            expected = expected or (f"{value:.0f}" if value else "")
            assert text == expected


def test_matrix_shows_the_most_confused_classes():
    counts = np.diag(np.full(40, 5.0))
    # Classes 3 and 39 are confused most, then 5 to 32 a little each.
    counts[3, 39] = 4.0
    for one in range(5, 33):
        counts[one, one - 1] = 1.0
    found = page_tables.matrix(counts, [f"c{i}" for i in range(40)])
    assert len(found.names) == len(found.rows) == 30
    assert {"c3", "c39", "c31"} <= set(found.names)
    assert "c0" not in found.names and "c33" not in found.names
    assert "Of 40 classes the 30 that are confused most." in found.note
    row = found.rows[found.names.index("c3")]
    place = found.names.index("c39")
    assert row.cells[place].text == "4"
    # The largest share off the diagonal has the full colour.
    assert row.cells[place].strength == "1.000"
    assert row.cells[found.names.index("c3")].same
    # 4 of 9.
    assert row.cells[place].title == (
        f"given c3, settled c39: 4, 44.4{SPACE}% of c3"
    )


def test_matrix_of_thirty_classes_is_whole():
    found = page_tables.matrix(np.eye(30), [str(i) for i in range(30)])
    assert len(found.names) == 30 and "most" not in found.note
    assert found.rows[0].cells[1].text == ""
    tiny = page_tables.matrix([[0.01, 0.25], [1234.5, 3]], ["a", "b"])
    shown = [[cell.text for cell in row.cells] for row in tiny.rows]
    assert shown == [["<0.1", "0.2"], ["1,234", "3"]]


def test_choice_of_examples():
    labels = pd.DataFrame(
        {
            "suspicion": [0.9, 0.2, 0.95, 0.6, 0.97, np.nan],
            "outside": [True, False, True, False, True, False],
            "undecided": [False, True, False, True, False, False],
            "margin": [0.5, 0.2, 0.8, 0.1, 0.9, np.nan],
            "probability": [0.7, 0.4, 0.9, 0.35, 0.95, np.nan],
            "label": ["x", "x", "y", "y", "y", "x"],
        }
    )
    found = page_items.choices(labels, 60)
    assert found["suspect"].tolist() == [4, 2, 0, 3]
    assert found["undecided"].tolist() == [3, 1]
    # One of each class in turn: y 0.95, x 0.7, then y 0.9.
    assert found["corrected"].tolist() == [4, 0, 2]
    assert page_items.choices(labels, 1)["suspect"].tolist() == [4]
    empty = page_items.choices(labels.iloc[:0], 60)
    assert [len(rows) for rows in empty.values()] == [0, 0, 0]


def test_grids(page, audit):
    grids = page.find("ul", class_="grid")
    chosen = page_items.choices(audit.labels, 60)
    assert len(grids) == 3
    for grid, rows in zip(grids, chosen.values(), strict=True):
        tiles = grid.find("button")
        assert [int(one.attributes["data-item"]) for one in tiles] == list(rows)
        assert 0 < len(tiles) <= 60
    row = audit.labels.iloc[chosen["suspect"][0]]
    tile = grids[0].find("button")[0]
    given = tile.find("span", class_="given")[0].text
    assert given == f"{words.listed(row['candidates'])} \N{RIGHTWARDS ARROW}"
    assert tile.find("b")[0].text == row["label"]
    chance = words.percent(row["probability"]).replace(SPACE, " ")
    assert tile.text.endswith(f"{row['label']} {chance}")
    (image,) = tile.find("img")
    assert image.attributes["src"].startswith("data:image/webp;base64,")
    assert image.attributes["class"] == "tiny"
    assert image.attributes["alt"] == f"Example {row['id']}"
    rival = audit.labels["runner_up"].iloc[chosen["undecided"][0]]
    assert grids[1].find("span", class_="rival")[0].text == f"or {rival}"


def test_pictures_belong_to_their_rows(audit):
    def fake(rows):
        return [np.full((40 + row, 40, 3), 7, "uint8") for row in rows]

    page = read(html.page(audit, fake, review_images=5))
    grids = page.find("ul", class_="grid")
    assert len(grids[0].find("button")) == 5
    for grid in grids:
        for tile in grid.find("button"):
            height = int(tile.find("img")[0].attributes["height"])
            assert height == min(40 + int(tile.attributes["data-item"]), 256)
    (review,) = page.find("table", id="table-review")
    openers = review.find("button", class_="open")
    assert len(openers) == 20
    for opener in openers:
        # Those of the review list are small: at most 96 pixels.
        row = int(opener.attributes["data-item"])
        height = int(opener.find("img")[0].attributes["height"])
        assert height == min(40 + row, 96)


def test_review_table(page, audit):
    rows = table(page, "review")
    assert len(rows) == 20
    assert headers(page, "review")[:4] == [
        "id",
        "rank",
        "given set",
        "settled label",
    ]
    for shown, row in zip(rows, audit.review.itertuples(), strict=True):
        assert shown[:2] == (row.id, str(row.rank))
        assert shown[2] == words.listed(row.candidates)
        assert row.reason in shown


def test_only_the_first_rows_of_a_long_review_list_are_shown():
    audit = sample_audit(500, review=400)
    assert len(audit.review) > 300
    page = read(html.page(audit))
    assert len(table(page, "review")) == 300
    text = page.find("section", id="review")[0].text
    assert f"The first 300 of {len(audit.review)}; review.csv has all." in text


def test_what_a_click_opens(page, audit):
    (data,) = page.find("script", id="items")
    items = json.loads("".join(data.children))
    openers = {
        one.attributes["data-item"]
        for one in page.find("button")
        if "data-item" in one.attributes
    }
    assert set(items) == openers
    for row, item in items.items():
        expected = audit.labels.iloc[int(row)]
        facts = dict(item["facts"])
        assert item["id"] == expected["id"]
        assert facts["Given set"] == list(expected["candidates"])
        assert facts["Settled label"] == [expected["label"]]
        assert facts["Runner-up"] == [expected["runner_up"]]
        assert facts["Margin"] == [words.percent(expected["margin"])]
        assert facts["Suggested set"] == list(expected["suggested"])
        assert [one.split(": ")[0] for one in facts["Votes"]] == [
            "ann",
            "<i>bob</i>",
        ]
        said = {one.split(": ", 1)[1] for one in facts["Votes"]}
        assert said == set(expected["candidates"])


def test_many_votes_are_cut_short():
    from alim_keras.data.tables import Votes

    votes = Votes(
        rows=np.zeros(50, int),
        annotators=np.arange(50, dtype="int32"),
        classes=np.arange(50, dtype="int32") % 2,
        confidences=np.full(50, 0.25, "float32"),
        annotator_names=tuple(f"p{i}" for i in range(50)),
    )
    labels = sample_audit(3).labels
    found = json.loads(page_items.facts(labels, [0, 1], votes, ["x", "y"]))
    said = dict(found["0"]["facts"])["Votes"]
    assert said[:2] == [f"p0: x (25.0{SPACE}%)", f"p1: y (25.0{SPACE}%)"]
    assert len(said) == 41 and said[-1] == "and 10 more"
    assert "Votes" not in dict(found["1"]["facts"])


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


def test_plots_have_words_and_numbers(text, page):
    figures = page.find("figure")
    assert len(figures) == 5
    for figure in figures:
        (image,) = figure.find("div", role="img")
        label = image.attributes["aria-label"]
        finding = figure.find("figcaption")[0].find("p")[0].text
        assert label.replace(SPACE, " ").endswith(finding)
        assert len(finding) > 40
        rows = figure.find("details")[0].find("tbody")[0].find("tr")
        assert len(rows) >= 40
    drawings = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    assert len(drawings) == 5
    for drawing in drawings:
        ElementTree.fromstring(drawing)


def test_lambda_of_learnt_labels_is_that_of_the_last_epoch(audit):
    # `audit` is of folds: its lambda is the mean over the examples.
    found = html.page(audit)
    assert (
        f"lambda, {words.number(audit.summary['lambda'])} on average" in found
    )
    learnt = dataclasses.replace(audit, labels=audit.labels.copy())
    learnt.labels["source"] = "table"
    # In epoch 40 the one logged after 39: 0.43 - 0.3 e^(-29/9) = 0.418.
    assert "lambda, 0.418 in the last epoch" in html.page(learnt)


def test_lambda_is_that_of_the_selected_epoch():
    audit = sample_audit()
    audit.labels["source"] = "table"
    audit.summary.update(epochs=21, run_epochs=40, test_accuracy=0.75)
    text = html.page(audit)
    # In epoch 21 the one logged after 20: 0.43 - 0.3 e^(-10/9) = 0.331.
    assert "lambda, 0.331 in epoch 21." in text
    figures = read(text).find("dl", class_="figures")[0].text
    assert "Epochs21the selected one of 40" in figures
    assert "Test accuracy75.0 %after epoch 21" in figures
    # Nobody logs the lambda of the first epoch.
    audit.summary["epochs"] = 1
    assert "below lambda" not in html.page(audit)
    audit.summary["epochs"] = 40
    figures = read(html.page(audit)).find("dl", class_="figures")[0].text
    assert "selected" not in figures and "after epoch" not in figures


def test_bare_audit():
    audit = sample_audit(bare=True, name=None)
    text = html.page(audit)
    page = read(text)
    order = [one.attributes["id"] for one in page.find("section")]
    assert order == [
        "summary",
        "figures",
        "confusions",
        "classes",
        "examples",
        "review",
    ]
    assert page.find("img") == [] and page.find("figure") == []
    assert page.find("h1")[0].text == "Candidate labels"
    # Tables in place of grids; a click opens the example all the same.
    rows = table(page, "suspect-items")
    chosen = page_items.choices(audit.labels, 60)["suspect"]
    assert [row[0] for row in rows] == audit.labels["id"].iloc[chosen].tolist()
    assert (
        "was neither told nor estimated"
        in page.find("div", class_="lead")[0].text
    )
    for wrong in ("nan", "None", "<NA>", "inf"):
        assert re.search(rf">\s*{wrong}\s*<", text) is None
    assert "audit with --folds" in page.find("div", class_="card next")[0].text


def test_nothing_to_review():
    audit = sample_audit(50, review=0, noise=0.0)
    page = read(html.page(audit, pictures))
    assert page.find("table", id="table-review") == []
    assert (
        "Nothing calls for a look." in page.find("section", id="review")[0].text
    )


def test_no_example_at_all():
    page = read(html.page(sample_audit(0, kind="table"), pictures))
    lead = page.find("div", class_="lead")[0].text
    assert lead.startswith("0 examples with candidate sets over 8 classes")
    assert "(-)" in lead and "nan" not in lead
    assert {row[0] for row in table(page, "classes")} == set(HOSTILE)


def test_the_same_audit_gives_the_same_page(audit, text):
    assert html.page(audit, pictures) == text


def test_a_wrong_picture_is_refused(audit):
    with pytest.raises(ValueError, match="must be uint8"):
        html.page(audit, lambda rows: np.zeros((len(rows), 8, 8, 3)))


def test_size_of_a_large_audit():
    audit = sample_audit(50_000, [f"class {i}" for i in range(100)], review=400)
    generator = np.random.default_rng(0)

    def photographs(rows):
        # Noise packs worse than any photograph.
        for _ in rows:
            small = generator.integers(0, 256, (40, 40, 3)).astype("uint8")
            yield np.kron(small, np.ones((8, 8, 1), "uint8"))

    text = html.page(audit, lambda rows: list(photographs(rows)))
    assert len(text.encode("utf-8")) < 15e6
    page = read(text)
    assert page.find("dl", class_="figures")[0].find("dd")[0].text == "50,000"
    assert len(page.find("table", class_="matrix")[0].find("tr")) == 31


@pytest.mark.parametrize(
    "value, column, whole, text, number",
    [
        (1234567, "given", False, "1,234,567", 1234567),
        (0.1234, "outside_share", False, f"12.3{SPACE}%", 0.1234),
        (0.1234, "gain", False, "0.123", 0.1234),
        (12.0, "count", True, "12", 12),
        (12.0, "count", False, "12.0", 12.0),
        (float("nan"), "share", False, "-", None),
        (float("inf"), "gain", False, "-", None),
        (None, "label", False, "-", None),
        ("", "bias", False, "-", None),
        (pd.NA, "votes", False, "-", None),
        ([], "candidates", False, "-", None),
        (["a", "b"], "candidates", False, "a, b", None),
        (True, "outside", False, "yes", None),
        (np.bool_(False), "outside", False, "no", None),
        (np.int64(3), "votes", False, "3", 3),
        (np.float32(0.25), "margin", False, f"25.0{SPACE}%", 0.25),
    ],
)
def test_cells(value, column, whole, text, number):
    found = page_tables.cell(value, column, whole)
    assert (found.text, found.value) == (text, number)


def test_names_from_right_to_left_are_kept_apart():
    hebrew = HOSTILE[4]
    assert words.listed([hebrew, "cat"]) == f"\u2068{hebrew}\u2069, cat"
    arrow = page_tables.cell(f"{hebrew} -> cat 3", "confusions").text
    assert arrow == f"{hebrew} \u200e\u2192\u200e{SPACE}cat 3"


def test_long_tables_are_cut_and_say_so():
    frame = pd.DataFrame({"annotator": range(1500), "votes": 1})
    found = page_tables.frame_table(frame, "annotators", "Annotators", "Note.")
    assert len(found.rows) == 1000
    assert found.note == "Note. The first 1,000 of 1,500."


def colours(style):
    """Returns the two schemes of the style sheet: dicts of variables."""
    pairs = re.findall(r"(--\w+): light-dark\((#\w+), (#\w+)\)", style)
    return [{name: pair[i] for name, *pair in pairs} for i in (0, 1)]


def mixed(over, under, share):
    return [share * o + (1 - share) * u for o, u in zip(rgb(over), rgb(under))]


def rgb(colour):
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def contrast(one, other):
    """Returns the contrast of two colours as WCAG 2 defines it."""
    lights = []
    for colour in (one, other):
        parts = rgb(colour) if isinstance(colour, str) else colour
        linear = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
            for c in (part / 255 for part in parts)
        ]
        lights.append(np.dot(linear, [0.2126, 0.7152, 0.0722]))
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def test_contrast_is_as_wcag_has_it():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", [0, 1])
def test_colours_can_be_read_in_both_schemes(text, scheme):
    found = colours(text)[scheme]
    for ground in ("--page", "--card", "--soft", "--hover"):
        for front in ("--ink", "--muted", "--accent"):
            assert contrast(found[front], found[ground]) >= 4.5
    for line in ("--c1", "--c2", "--c3", "--c4", "--c5"):
        assert contrast(found[line], found["--card"]) >= 3.0
    # The deepest cells of the matrix: 70 % of these colours.
    for cell in ("--same", "--other"):
        deep = mixed(found[cell], found["--card"], 0.7)
        assert contrast(found["--ink"], deep) >= 4.5
