"""The report in a real browser: Chromium, where it is installed."""

import importlib.util
import json
import pathlib

import numpy as np
import pytest
from sample_audit import sample_audit

from alim_keras.report import html

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
SPEC = importlib.util.spec_from_file_location(
    "_chromium", SCRIPTS / "_chromium.py"
)
chromium = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(chromium)

pytestmark = pytest.mark.skipif(
    chromium.find() is None, reason="Chromium is not installed"
)


@pytest.fixture(scope="module")
def audit():
    return sample_audit(noise=0.4)


@pytest.fixture(scope="module")
def report(audit, tmp_path_factory):
    images = np.zeros((200, 28, 28, 3), "uint8")
    images[:] = np.arange(200)[:, None, None, None]
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(html.page(audit, images.__getitem__), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser():
    with chromium.Page() as page:
        yield page


@pytest.fixture
def page(browser, report):
    """The report, fresh; whatever it complained of fails the test."""
    browser.console.clear()
    browser.requests.clear()
    browser.resize(1280, 900)
    browser.scheme(dark=False)
    browser.open(report)
    yield browser
    assert browser.console == []
    assert browser.requests == [report.as_uri()]


def column(page, name, number):
    return page.run(
        f"[...document.querySelector('#table-{name}').tBodies[0].rows]"
        f".filter(row => !row.hidden)"
        f".map(row => row.cells[{number}].textContent)"
    )


def header(name, number):
    return (
        f"document.querySelector('#table-{name}').tHead.rows[0].cells[{number}]"
    )


def test_the_page_opens(page):
    assert page.run("document.title") == "Audit of sample <b>set</b>"
    # Every picture can be decoded: 28 pixels wide as it was made.
    widths = page.run(
        "Promise.all([...document.images].map(async image => "
        "(await image.decode(), image.naturalWidth)))"
    )
    assert len(widths) > 40 and set(widths) == {28}


@pytest.mark.parametrize("width", [1280, 390, 320])
@pytest.mark.parametrize("dark", [False, True])
def test_no_scrolling_sideways(page, width, dark):
    page.resize(width, 844)
    page.scheme(dark)
    assert page.run("innerWidth") == width
    assert page.run("document.documentElement.scrollWidth") <= width
    # Nothing sticks out but what lies in a box that scrolls.
    wide = page.run(
        "[...document.querySelectorAll('main *')].filter(one => "
        "!one.closest('.scroll, svg') && "
        "one.getBoundingClientRect().right > innerWidth + 1)"
        ".map(one => one.outerHTML.slice(0, 80))"
    )
    assert wide == []


def test_a_click_sorts_by_number(page, audit):
    outside = [str(one) for one in sorted(audit.classes["outside"])]
    assert page.run(header("classes", 3) + ".textContent") == "of them outside"
    order = header("classes", 3) + ".getAttribute('aria-sort')"
    assert page.run(order) == "none"
    click = header("classes", 3) + ".firstChild.click()"
    page.run(click)
    assert column(page, "classes", 3) == outside[::-1]
    assert page.run(order) == "descending"
    page.run(click)
    assert column(page, "classes", 3) == outside
    assert page.run(order) == "ascending"
    # Only one header says that it sorts.
    page.run(header("classes", 1) + ".firstChild.click()")
    assert page.run(order) == "none"


def test_what_is_not_known_comes_last(page):
    number = 4
    click = header("classes", number) + ".firstChild.click()"
    for _ in range(2):
        page.run(click)
        shares = column(page, "classes", number)
        assert shares[-1] == "-" and "-" not in shares[:-1]


def test_names_sort_as_words_by_the_keyboard(page):
    page.run(header("review", 0) + ".firstChild.focus()")
    page.press("Enter")
    names = column(page, "review", 0)
    assert names == sorted(names) and len(set(names)) == 20
    assert (
        page.run(header("review", 0) + ".getAttribute('aria-sort')")
        == "ascending"
    )


def type_in(page, name, text):
    box = f"document.querySelector('[data-filter={name}]')"
    page.run(
        f"{box}.value = {json.dumps(text)};"
        f"{box}.dispatchEvent(new Event('input'))"
    )
    return page.run(f"document.querySelector('[data-count={name}]').value")


def test_a_filter_hides_rows(page, audit):
    label = audit.review["label"][0]
    expected = [
        row.id
        for row in audit.review.itertuples()
        if label in str([row.candidates, row.label, row.suggested, row.reason])
    ]
    assert 0 < len(expected) < 20
    said = type_in(page, "review", label.upper())
    assert said == f"{len(expected)} of 20 rows"
    assert column(page, "review", 0) == expected
    assert type_in(
        page, "review", f"{expected[0]} outside nothing-like-it"
    ) == ("0 of 20 rows")
    assert type_in(page, "review", "  ") == "20 rows"
    assert len(column(page, "review", 0)) == 20


def opened(page):
    return page.run(
        "document.querySelector('#item').open && "
        "document.querySelector('#item-title').textContent"
    )


def test_an_example_opens_and_closes(page, audit):
    assert opened(page) is False
    tiles = "document.querySelectorAll('ul.grid')[0].querySelectorAll('button')"
    rows = page.run(f"[...{tiles}].map(one => Number(one.dataset.item))")
    page.run(f"{tiles}[0].focus()")
    page.press("Enter")
    assert opened(page) == audit.labels["id"][rows[0]]
    facts = page.run("document.querySelector('#item dl').textContent")
    expected = audit.labels.iloc[rows[0]]
    assert expected["label"] in facts and "ann: " in facts
    source = page.run("document.querySelector('#item img').src")
    assert source == page.run(f"{tiles}[0].querySelector('img').src")
    page.press("ArrowRight")
    assert opened(page) == audit.labels["id"][rows[1]]
    page.press("ArrowLeft")
    page.press("ArrowLeft")
    assert opened(page) == audit.labels["id"][rows[0]]
    page.press("ArrowRight")
    # The buttons do the same; at the end one goes dark, and keys still work.
    press = "document.querySelector('[data-step=\"{}\"]').{}"
    page.run(press.format(-1, "focus()"))
    page.press("Enter")
    assert opened(page) == audit.labels["id"][rows[0]]
    assert page.run(press.format(-1, "disabled")) is True
    page.press("ArrowRight")
    assert opened(page) == audit.labels["id"][rows[1]]
    page.press("Escape")
    assert opened(page) is False
    # The keyboard goes on at the example that was shown last.
    assert page.run(f"[...{tiles}].indexOf(document.activeElement)") == 1


def test_the_window_follows_what_the_table_shows(page, audit):
    name = audit.review["id"][5]
    type_in(page, "review", name)
    page.run(
        "document.querySelector('#table-review tr:not([hidden]) .open').click()"
    )
    assert opened(page) == name
    disabled = page.run(
        "[...document.querySelectorAll('[data-step]')].map(b => b.disabled)"
    )
    assert disabled == [True, True]
    page.run("document.querySelector('[data-close]').click()")
    assert opened(page) is False


def background(page):
    return page.run("getComputedStyle(document.body).backgroundColor")


def test_light_and_dark(page):
    light = background(page)
    assert light == "rgb(245, 246, 248)"
    page.scheme(dark=True)
    dark = background(page)
    assert dark == "rgb(18, 22, 28)"
    switch = "document.querySelector('#scheme')"
    assert page.run(f"{switch}.textContent") == "Light"
    page.run(f"{switch}.click()")
    assert background(page) == light
    page.run(f"{switch}.click()")
    assert background(page) == dark
    line = page.run(
        "getComputedStyle(document.querySelector('.plot-losses "
        '[style*="--c1"]\')).stroke'
    )
    assert line == "rgb(86, 180, 233)"
    # On paper it is light, whatever the screen is.
    page.scheme(dark=True, medium="print")
    assert background(page) == "rgb(255, 255, 255)"
    ink = page.run("getComputedStyle(document.body).color")
    assert ink == "rgb(26, 34, 48)"
    page.run("localStorage.clear()")


def test_a_script_that_slipped_in_would_not_run(report, browser, tmp_path):
    other = tmp_path / "other.html"
    text = report.read_text(encoding="utf-8")
    slipped = "<script>document.title = 'mine'</script></main>"
    other.write_text(text.replace("</main>", slipped), encoding="utf-8")
    browser.console.clear()
    browser.open(other)
    assert browser.run("document.title") == "Audit of sample <b>set</b>"
    assert any("script-src" in line for line in browser.console)
