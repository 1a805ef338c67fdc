import json

import numpy as np
import pandas as pd
import pytest
from sample_audit import sample_audit
from sample_page import SPACE
from sample_page import read

from alim_keras.report import html
from alim_keras.report import page_items
from alim_keras.report import words


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
