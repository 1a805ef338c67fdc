"""Takes pictures of a report in headless Chromium.

    python scripts/report_screenshots.py runs/mine/report.html --out shots

It needs Chromium (on Debian: apt-get install chromium). For each of two
widths, 1280 and 390 pixels, and each of light and dark it stores the top of
the page as a PNG.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDTHS = ((1280, 900), (390, 844))


def find():
    """Returns the path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def run(report, *arguments, dark=False):
    """Opens a page in a browser of its own; returns what it prints."""
    command = [find(), "--headless=new", "--disable-gpu", "--hide-scrollbars"]
    if os.geteuid() == 0:
        # Chromium's sandbox refuses to work for root.
        command.append("--no-sandbox")
    if dark:
        command.append("--force-dark-mode")
    command += [*arguments, pathlib.Path(report).resolve().as_uri()]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("report", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    given = parser.parse_args()
    if find() is None:
        sys.exit("Chromium is not installed (Debian: chromium).")
    given.out.mkdir(parents=True, exist_ok=True)
    for width, height in WIDTHS:
        for scheme in ("light", "dark"):
            path = given.out / f"report_{width}_{scheme}.png"
            size = f"--window-size={width},{height}"
            picture = f"--screenshot={path}"
            run(given.report, size, picture, dark=scheme == "dark")
            print(path)


if __name__ == "__main__":
    main()
