"""The review page in a browser: keys, storage, and what is saved."""

import dataclasses
import json
import re

import numpy as np
import pytest
from sample_report import answers_of
from sample_report import examined
from sample_report import planted

from scripts import report_screenshots

pytestmark = pytest.mark.skipif(
    report_screenshots.find() is None, reason="Chromium is not installed"
)


NAME, COUNT = (
    f"document.getElementById('{one}').textContent" for one in ("name", "count")
)


@pytest.fixture(scope="module")
def browser():
    with report_screenshots.browser() as started:
        yield started


@pytest.fixture(scope="module")
def audit():
    probabilities, sets, truth = planted(300)
    return examined((probabilities, sets, truth), review=40)


@pytest.fixture
def page(browser, audit, tmp_path):
    images = np.zeros((300, 8, 8, 3), "uint8")
    images[:] = np.arange(300)[:, None, None, None] % 256
    own(audit, tmp_path).to_html(tmp_path / "report.html", images)
    browser.open(tmp_path / "report.html")
    browser.until(NAME)
    return browser


def own(audit, tmp_path):
    """Returns the audit as one whose answers have a place of their own.

    Clearing the storage would be a race: a page that is left may still do it
    after the next one has stored something.
    """
    return dataclasses.replace(audit, identity=str(tmp_path))


def shown(page):
    """Returns the place and the id of the item that is asked about."""
    name = page.value(NAME)
    place, _, item = re.fullmatch(r"(\d+) of (\d+): (.*)", name).groups()
    return int(place) - 1, item


def progress(page):
    return page.value(COUNT)


def press(page, keys):
    """Presses keys, each once the answer to the last one is kept."""
    for key in keys:
        page.press(key)
        page.until("!busy")


def saved(page, tmp_path):
    """Presses the button; returns answers.csv as it reaches the disk."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    allow = {"behavior": "allow", "downloadPath": str(folder)}
    page.do("Page.setDownloadBehavior", **allow)
    page.value("document.getElementById('save').click()")
    for _ in range(6000):
        if (folder / "answers.csv").exists():
            return folder / "answers.csv"
        page.value("new Promise((done) => setTimeout(done, 10))")
    raise TimeoutError("answers.csv was not saved")


def test_answers_by_keys_outlive_a_reload_and_are_saved(page, audit, tmp_path):
    review, expected = audit.review, {}
    # The likeliest and the second class in turn, and once "cannot tell".
    for place in range(20):
        assert shown(page) == (place, review["id"][place])
        key = 1 + place % 2
        expected[review["id"][place]] = review["choices"][place][key - 1]
        press(page, " " if place == 7 else str(key))
    del expected[review["id"][7]]
    assert progress(page) == "20 of 40 answered"
    # Undone, and answered by another class, by its name.
    press(page, "u")
    assert progress(page) == "19 of 40 answered"
    assert shown(page) == (19, review["id"][19])
    expected[review["id"][19]] = "c7"
    press(page, ["0", "C", "7", "Enter"])
    assert progress(page) == "20 of 40 answered"
    # Another load of the page begins where this one ended.
    page.value("window.isOld = true")
    page.do("Page.reload")
    page.until("!window.isOld && document.readyState === 'complete'")
    # What the old page stored may reach the new one a moment later.
    page.until(f"{COUNT} === '20 of 40 answered'")
    page.until(f"{NAME}.startsWith('21 ')")
    assert shown(page) == (20, review["id"][20])
    found = answers_of(saved(page, tmp_path), audit.class_names)
    assert found == expected and len(found) == 19
    # Undo goes on where it was.
    press(page, "uu")
    assert progress(page) == "18 of 40 answered"
    assert shown(page) == (18, review["id"][18])


def test_two_tabs_of_one_page_stay_in_step(page, audit, tmp_path):
    press(page, "12")
    first = page.session
    page.new_page()
    page.open(tmp_path / "report.html")
    page.until(f"{COUNT} === '2 of 40 answered'")
    assert shown(page) == (2, audit.review["id"][2])
    second, page.session = page.session, first
    press(page, "1")
    page.session = second
    # What was answered elsewhere is asked about no more.
    page.until(f"{COUNT} === '3 of 40 answered' && {NAME}.startsWith('4 ')")
    press(page, "uu")
    assert shown(page) == (1, audit.review["id"][1])
    page.do("Page.close")
    page.session = first
    page.until(f"{COUNT} === '1 of 40 answered'")
    found = answers_of(saved(page, tmp_path), audit.class_names)
    assert found == {audit.review["id"][0]: audit.review["choices"][0][0]}


def test_an_answer_may_be_changed(page, audit, tmp_path):
    press(page, "12")
    page.press("ArrowLeft")
    page.press("ArrowLeft")
    page.until("visible === 0")
    press(page, "2")
    # The next one without an answer, not the next one.
    page.until(f"{NAME}[0] === '3'")
    choices = audit.review["choices"]
    expected = [choices[0][1], choices[1][1]]
    found = answers_of(saved(page, tmp_path), audit.class_names)
    assert [found[name] for name in audit.review["id"][:2]] == expected
    # Undo brings the first answer back.
    press(page, "u")
    page.until("items.get(0).label !== undefined")
    assert page.value("items.get(0).label") == choices[0][0]


def test_the_photograph_stands_above_the_fold(page):
    for width, height in report_screenshots.WIDTHS:
        page.screen(width, height)
        box = page.value(
            "JSON.stringify(document.getElementById('picture')"
            ".getBoundingClientRect())"
        )
        box = json.loads(box)
        assert box["bottom"] < height and box["height"] > 0.35 * height
        assert page.value("document.documentElement.scrollWidth") <= width


def test_tabs_show_one_part_at_a_time(page):
    visible = (
        "[...document.querySelectorAll('main > section')]"
        ".filter((s) => !s.hidden).map((s) => s.id).join()"
    )
    assert page.value(visible) == "review"
    page.value("[...document.querySelectorAll('header nav button')][1].click()")
    page.until(f"{visible} === 'summary'")
    # Keys answer on the review only.
    press(page, "1")
    assert progress(page) == "0 of 40 answered"


POINTER = """
canvas.setPointerCapture = () => {};
window.act = (kind, type, x, y, more) => {
  const event = new kind(type, { cancelable: true, ...more });
  const at = { offsetX: { value: x }, offsetY: { value: y } };
  canvas.dispatchEvent(Object.defineProperties(event, at));
};
window.drag = (first, ...others) => {
  act(PointerEvent, "pointerdown", ...first);
  for (const place of others) act(PointerEvent, "pointermove", ...place);
  act(PointerEvent, "pointerup", ...others.at(-1));
};
"""


@pytest.fixture
def mapped(page, tmp_path):
    """A page that shows the map of 300 items, and their audit."""
    features = np.random.default_rng(0).normal(size=(300, 12))
    audit = examined(planted(300), review=40, features=features)
    own(audit, tmp_path).to_html(tmp_path / "report.html")
    page.screen(1280, 900)
    page.open(tmp_path / "report.html")
    page.value("location.hash = '/map'")
    page.until("canvas.width > 300")
    page.value(POINTER)
    return audit


def drawn(page):
    """Returns where the map's points are, pixels `(N, 2)`."""
    page.until("!isDue")
    return np.reshape(page.value("[...points]"), (-1, 2))


def test_the_map_zooms_and_moves(page, mapped):
    before = drawn(page)
    wide = page.value("canvas.clientWidth")
    assert before.min(axis=0) == pytest.approx([6, 6])
    assert before[:, 0].max() == pytest.approx(wide - 6)
    # The place under the pointer stays.
    page.value("act(WheelEvent, 'wheel', 100, 200, {deltaY: -500})")
    zoomed = drawn(page)
    expected = [100, 200] + np.exp(1) * (before - [100, 200])
    np.testing.assert_allclose(zoomed, expected, atol=0.01)
    page.value(
        "for (const [type, x] of [['down', 50], ['move', 30], ['up', 30]])"
        " act(PointerEvent, 'pointer' + type, x, 9, {shiftKey: true})"
    )
    np.testing.assert_allclose(drawn(page), zoomed - [20, 0], atol=0.01)
    # A lasso picks what it surrounds on the screen.
    page.value("drag([-1, -1], [-1, 400], [400, 400], [400, -1])")
    inside = (abs(drawn(page) - 199.5) < 200.5).all(axis=1).sum()
    said = page.value("document.getElementById('under').textContent")
    assert 0 < inside < 300 and said.startswith(f"{inside} items, ")
    # Two fingers, from 100 to 200 pixels apart, as far as they are.
    before = drawn(page)
    page.value(
        "for (const [type, x, pointerId] of [['down', 100, 1], ['down', 200,"
        " 2], ['move', 300, 2], ['up', 300, 2], ['up', 100, 1]])"
        " act(PointerEvent, 'pointer' + type, x, 0, {pointerId})"
    )
    expected = 2 * (before - [200, 0]) + [250, 0]
    np.testing.assert_allclose(drawn(page), expected, atol=0.01)
    page.value("act(MouseEvent, 'dblclick', 9, 9)")
    assert drawn(page).min(axis=0) == pytest.approx([6, 6])


def test_a_lasso_on_the_map_filters_the_list(page, mapped):
    # Around the left half of the map.
    page.value(
        "drag([1, 1], [1, 2000], [canvas.clientWidth / 2, 2000], "
        "[canvas.clientWidth / 2, 1])"
    )
    places = mapped.surroundings.places[:, 0]
    left = places < (places.min() + places.max()) / 2
    ids = mapped.labels["id"].to_numpy()
    expected = [n for n in mapped.review["id"] if n in set(ids[left])]
    said = page.value("document.getElementById('under').textContent")
    assert said.startswith(f"{left.sum()} items, {len(expected)} of them")
    assert 5 < len(expected) < 35
    page.value("document.querySelector('#under button').click()")
    for item in expected[:3]:
        page.until(f"{NAME}.endsWith(': {item}')")
        press(page, "1")
    page.press("ArrowLeft")
    page.until(f"{NAME}.endsWith(': {expected[2]}')")
    page.value("document.getElementById('all').click()")
    page.until(f"{NAME}.startsWith('1 of 40')")
    assert progress(page) == "3 of 40 answered"
