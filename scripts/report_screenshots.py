"""Opens a report in headless Chromium, takes pictures and says what it saw.

    python scripts/report_screenshots.py runs/mine/report.html --out shots

It needs Chromium (on Debian: apt-get install chromium). For each of two
widths, 1280 and 390 pixels, and each of light and dark it stores the top of
the page, the whole page, and the window of the first example; it prints
errors on the console, requests for anything but the file itself, whether the
page is wider than the window, and the seconds until it is loaded. The exit
status is 1 if something was wrong.
"""

import argparse
import pathlib
import sys

import _chromium

WIDTHS = ((1280, 900), (390, 844))


def look(report, out, width, height, dark):
    """Takes the pictures of one size and scheme; returns what is wrong."""
    name = f"{report.stem}-{width}-{'dark' if dark else 'light'}"
    wrong = []
    with _chromium.Page(width, height, dark) as page:
        seconds = page.open(report)
        page.screenshot(out / f"{name}.png")
        page.screenshot(out / f"{name}-whole.png", whole=True)
        if page.run("document.documentElement.scrollWidth") > width:
            wrong.append("the page is wider than the window")
        if page.run("!!document.querySelector('[data-item]')"):
            page.run("document.querySelector('[data-item]').click()")
            page.screenshot(out / f"{name}-item.png")
        wrong += [f"console: {line}" for line in page.console]
        own = report.resolve().as_uri()
        wrong += [f"request: {one}" for one in page.requests if one != own]
    return name, seconds, wrong


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("report", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    if _chromium.find() is None:
        sys.exit("Chromium is not installed (Debian: chromium).")
    arguments.out.mkdir(parents=True, exist_ok=True)
    failed = False
    for width, height in WIDTHS:
        for dark in (False, True):
            name, seconds, wrong = look(
                arguments.report, arguments.out, width, height, dark
            )
            failed |= bool(wrong)
            print(f"{name}: loaded in {seconds:.2f} s, {wrong or 'all well'}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
