import numpy as np
import pandas as pd
import pytest
from sample_audit import HOSTILE
from sample_audit import sample_audit
from sample_page import SPACE
from sample_page import headers
from sample_page import read
from sample_page import table

from alim_keras.report import html
from alim_keras.report import page_tables
from alim_keras.report import words


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
