import dataclasses
import re
import types
import xml.etree.ElementTree as ElementTree

import pandas as pd
import pytest
from sample_audit import HOSTILE
from sample_audit import sample_audit
from sample_page import SPACE
from sample_page import pictures
from sample_page import read
from sample_page import table

from alim_keras.report import html
from alim_keras.report import page_items
from alim_keras.report import page_summary
from alim_keras.report import words


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
