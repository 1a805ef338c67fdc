"""A headless Chromium, driven over a pipe by its DevTools protocol.

No package is needed: messages are JSON, each ended by a zero byte, which the
browser reads from file descriptor 3 and writes to 4.
"""

import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find():
    """Returns the path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """A tab of a browser of its own.

    `console` collects errors and warnings of the page, `requests` the
    addresses that it asked for, data URIs left out.

    Use it as a context manager: the browser ends with it.
    """

    def __init__(self, width=1280, height=900, dark=False, limit=60.0):
        self.limit = limit
        self.console, self.requests = [], []
        self._number, self._buffer, self._events = 0, b"", []
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command = [
            find(),
            "--headless=new",
            "--remote-debugging-pipe",
            "--no-first-run",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            f"--user-data-dir={self._folder.name}",
            "about:blank",
        ]
        if os.geteuid() == 0:
            # Chromium's sandbox refuses to work for root.
            command.insert(1, "--no-sandbox")
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # Copies above 4, so that neither is overwritten before it is moved.
        high = [
            fcntl.fcntl(one, fcntl.F_DUPFD, 10)
            for one in (theirs_in, theirs_out)
        ]
        shell = f'exec 3<&{high[0]} 4>&{high[1]}; exec "$@"'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", shell, "bash", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=high,
            start_new_session=True,
        )
        for one in (theirs_in, theirs_out, *high):
            os.close(one)
        targets = self._ask("Target.getTargets")["targetInfos"]
        target = next(one for one in targets if one["type"] == "page")
        self._session = None
        self._session = self._ask(
            "Target.attachToTarget",
            targetId=target["targetId"],
            flatten=True,
        )["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")
        self.resize(width, height)
        self.scheme(dark)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._session = None
            self._ask("Browser.close")
            self._process.wait(10)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)
        self._folder.cleanup()

    def resize(self, width, height):
        """Sets the size of the window's content, in CSS pixels."""
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def scheme(self, dark, medium=""):
        """Sets what the reader's system asks for: dark or light colours."""
        self._ask(
            "Emulation.setEmulatedMedia",
            media=medium,
            features=[
                {
                    "name": "prefers-color-scheme",
                    "value": "dark" if dark else "light",
                }
            ],
        )
        self._settle()

    def open(self, path):
        """Loads a file; returns the seconds until its `load` event."""
        start = time.monotonic()
        self._events.clear()
        uri = pathlib.Path(path).resolve().as_uri()
        self._ask("Page.navigate", url=uri)
        while "Page.loadEventFired" not in self._events:
            self._handle(self._read())
        return time.monotonic() - start

    def run(self, expression):
        """Returns the value of a JavaScript expression in the page."""
        answer = self._ask(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def press(self, key):
        """Presses and releases a key, such as `Escape` or `Enter`."""
        codes = {"Escape": 27, "Enter": 13, "ArrowRight": 39, "ArrowLeft": 37}
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self._ask(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=codes[key],
                **(text if kind == "keyDown" else {}),
            )
        self._settle()

    def screenshot(self, path, whole=False):
        """Stores a PNG of the window, or of the whole page."""
        settings = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self._ask("Page.getLayoutMetrics")["cssContentSize"]
            settings["clip"] = {
                "x": 0,
                "y": 0,
                "width": size["width"],
                "height": size["height"],
                "scale": 1,
            }
        data = self._ask("Page.captureScreenshot", **settings)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def pdf(self, path):
        """Stores what would be printed."""
        data = self._ask("Page.printToPDF", printBackground=False)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def _settle(self):
        """Waits for what the page hears of later, at the latest in a frame.

        Such are `change` of `matchMedia` and `close` of a dialog.
        """
        self.run(
            "new Promise(done => requestAnimationFrame("
            "() => requestAnimationFrame(() => setTimeout(done, 0, true))))"
        )

    def _ask(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._handle(answer)

    def _read(self):
        end = time.monotonic() + self.limit
        while b"\0" not in self._buffer:
            left = max(0.0, end - time.monotonic())
            if not select.select([self._in], [], [], left)[0]:
                raise TimeoutError(f"No answer in {self.limit:g} s")
            part = os.read(self._in, 1 << 20)
            if not part:
                raise OSError("The browser has ended")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _handle(self, event):
        method, given = event.get("method"), event.get("params", {})
        self._events.append(method)
        if method == "Runtime.exceptionThrown":
            self.console.append(json.dumps(given["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            if given["type"] in ("error", "warning", "assert"):
                self.console.append(json.dumps(given["args"]))
        elif method == "Log.entryAdded":
            if given["entry"]["level"] in ("error", "warning"):
                self.console.append(given["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            address = given["request"]["url"]
            if not address.startswith("data:"):
                self.requests.append(address)
