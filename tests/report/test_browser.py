"""The report in a real browser: Chromium, where it is installed."""

import importlib.util
import json
import pathlib
import re

import numpy as np
import pytest
from sample_report import sample_audit

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
SPEC = importlib.util.spec_from_file_location(
    "report_screenshots", SCRIPTS / "report_screenshots.py"
)
chromium = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(chromium)

pytestmark = pytest.mark.skipif(
    chromium.find() is None, reason="Chromium is not installed"
)
# Writes what it sees of the page into the page's title.
PROBE = """
Promise.all([...document.images].map(image => image.decode())).then(() => {
  document.title = JSON.stringify({
    ground: getComputedStyle(document.body).backgroundColor,
    width: innerWidth,
    scroll: document.documentElement.scrollWidth,
    loaded: performance.getEntriesByType("resource").map(e => e.name)
      .filter(name => !name.startsWith("data:")),
  });
});
"""


def look(text, path, width, dark=False):
    """Returns the title of a page after its scripts have run."""
    path.write_text(text, encoding="utf-8")
    size = f"--window-size={width},844"
    budget = "--virtual-time-budget=9000"
    page = chromium.run(path, size, budget, "--dump-dom", dark=dark)
    return re.search("<title>(.*?)</title>", page)[1]


@pytest.mark.parametrize("width, dark", [(1280, False), (500, True)])
def test_nothing_sticks_out_and_no_script_runs(tmp_path, width, dark):
    text = sample_audit().to_html(images=np.zeros((200, 28, 28, 3), "uint8"))
    text = text.replace("</main>", f"<script>{PROBE}</script></main>")
    title = look(text, tmp_path / "r.html", width, dark)
    assert title.startswith("Audit of sample")
    text = re.sub("<meta http-equiv=[^>]*>", "", text)
    found = json.loads(look(text, tmp_path / "r.html", width, dark))
    assert found["width"] == width >= found["scroll"]
    assert found["loaded"] == []
    ground = "rgb(18, 22, 28)" if dark else "rgb(245, 246, 248)"
    assert found["ground"] == ground
