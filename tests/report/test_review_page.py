"""The review page in a browser: keys, storage, and what is saved."""

import re

import numpy as np
import pytest
from sample_report import examined
from sample_report import planted

from alim_keras.data import tables
from scripts import report_screenshots

pytestmark = pytest.mark.skipif(
    report_screenshots.find() is None, reason="Chromium is not installed"
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
    audit.to_html(tmp_path / "report.html", images)
    browser.open(tmp_path / "report.html")
    browser.value("localStorage.clear()")
    browser.open(tmp_path / "report.html")
    browser.until("document.getElementById('name').textContent")
    return browser


def shown(page):
    """Returns the place and the id of the item that is asked about."""
    name = page.value("document.getElementById('name').textContent")
    place, _, item = re.fullmatch(r"(\d+) of (\d+): (.*)", name).groups()
    return int(place) - 1, item


def progress(page):
    return page.value("document.getElementById('count').textContent")


def press(page, key, answers):
    """Presses a key, and waits until another item or count is shown."""
    before = shown(page), progress(page)
    page.press(key)
    page.until(
        "(document.getElementById('name').textContent"
        f" !== {page.value('document.getElementById(`name`).textContent')!r})"
        if before is None
        else "!busy"
    )


def saved(page, tmp_path):
    """Presses the button; returns answers.csv as it reaches the disk."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    page.do("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    page.value("document.getElementById('save').click()")
    for _ in range(400):
        if (folder / "answers.csv").exists():
            return folder / "answers.csv"
        page.value("new Promise((done) => setTimeout(done, 10))")
    raise TimeoutError("answers.csv was not saved")
