"""Takes pictures of a report in headless Chromium.

    python scripts/report_screenshots.py runs/mine/report.html --out shots

The report may be a file, or the address that `alim-keras review` prints. It
needs Chromium (on Debian: apt-get install chromium). For each of two widths,
1280 and 390 pixels, and each of light and dark it stores the top of the page
as a PNG. `--tab summary` opens another tab.
"""

import argparse
import base64
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDTHS = ((1280, 900), (390, 844))
SECONDS = 60


def find():
    """Returns the path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A Chromium with a page, driven by the DevTools protocol.

    With more than one page, `session` is the one that commands go to.
    """

    def __init__(self, process, read, write):
        self.process, self._read, self._write = process, read, write
        self._number, self._rest = 0, b""
        self.new_page()

    def new_page(self):
        """Opens another page, which commands go to from now on."""
        self.session = None
        target = self.do("Target.createTarget", url="about:blank")
        self.session = self.do(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )["sessionId"]
        self.do("Page.enable")

    def do(self, method, **params):
        """Sends a command of the protocol; returns its result."""
        self._number += 1
        order = {"id": self._number, "method": method, "params": params}
        if self.session:
            order["sessionId"] = self.session
        os.write(self._write, json.dumps(order).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                part = os.read(self._read, 1 << 20)
                if not part:
                    raise EOFError("Chromium has ended")
                self._rest += part
            message, _, self._rest = self._rest.partition(b"\0")
            reply = json.loads(message)
            if reply.get("id") == self._number:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                return reply["result"]

    def open(self, address):
        """Opens a file or an address, and waits until it is loaded."""
        if "://" not in str(address):
            address = pathlib.Path(address).resolve().as_uri()
        self.do("Page.navigate", url="about:blank")
        self.until("location.href === 'about:blank'")
        self.do("Page.navigate", url=str(address))
        self.until("location.href !== 'about:blank'")
        self.until("document.readyState === 'complete'")

    def value(self, expression):
        """Returns the value of a JavaScript expression."""
        found = self.do(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def until(self, expression):
        """Waits until an expression is true."""
        end = time.monotonic() + SECONDS
        while not self.value(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"Never true: {expression}")
            time.sleep(0.005)

    def press(self, key):
        """Presses and releases a key."""
        code = {"Enter": 13, "Escape": 27, " ": 32}.get(key, ord(key[-1]))
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        common = {"key": key, "windowsVirtualKeyCode": code}
        self.do("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.do("Input.dispatchKeyEvent", type="keyUp", **common)

    def screen(self, width, height, dark=False):
        """Sets the size of the window in pixels, and light or dark."""
        self.do(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme"}
        scheme["value"] = "dark" if dark else "light"
        self.do("Emulation.setEmulatedMedia", features=[scheme])

    def shot(self):
        """Returns what the window shows, as a PNG."""
        return base64.b64decode(self.do("Page.captureScreenshot")["data"])


@contextlib.contextmanager
def browser():
    """Starts a Chromium with an empty profile; yields a `Browser`."""
    to_child, to_us = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory() as profile:
        command = [find(), "--headless=new", "--disable-gpu"]
        command += ["--hide-scrollbars", "--no-first-run", "about:blank"]
        command += ["--remote-debugging-pipe", f"--user-data-dir={profile}"]
        if os.geteuid() == 0:
            # Chromium's sandbox refuses to work for root.
            command.append("--no-sandbox")

        # The protocol's pipes are numbers 3 and 4.
        places = f'exec "$@" 3<&{to_child[0]} 4>&{to_us[1]}'
        process = subprocess.Popen(
            ["bash", "-c", places, "bash", *command],
            pass_fds=(to_child[0], to_us[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_child[0])
        os.close(to_us[1])
        try:
            yield Browser(process, to_us[0], to_child[1])
        finally:
            process.terminate()
            process.wait()
            os.close(to_us[0])
            os.close(to_child[1])
            # Its other processes write to the profile for a moment more.
            time.sleep(0.2)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("report")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--tab", default="review")
    given = parser.parse_args()
    if find() is None:
        sys.exit("Chromium is not installed (Debian: chromium).")
    given.out.mkdir(parents=True, exist_ok=True)
    with browser() as page:
        page.open(given.report)
        page.value(f"location.hash = '/{given.tab}'")
        for width, height in WIDTHS:
            for scheme in ("light", "dark"):
                page.screen(width, height, scheme == "dark")
                time.sleep(0.3)
                path = given.out / f"{given.tab}_{width}_{scheme}.png"
                path.write_bytes(page.shot())
                print(path)


if __name__ == "__main__":
    main()
