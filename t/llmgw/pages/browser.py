"""Chromium without a window, driven over its DevTools protocol.

The protocol is JSON messages, each ended by NUL, over two pipes
(--remote-debugging-pipe), so it needs neither a driver nor a port.  One thread
reads; a caller that waits for an answer or a fact polls what was read.
"""

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from ..proc.place import SLOW
from ..proc.wait import PATIENCE, QUICK, Stopwatch, TooLate, wait_for

PROGRAM = os.environ.get("CHROMIUM", "chromium-headless-shell")

# No sandbox: a container cannot have one, and the page is ours.  The other
# options keep it from asking other hosts for anything.
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         "--disable-dev-shm-usage", "--disable-background-networking",
         "--disable-component-update", "--no-first-run", "--no-proxy-server",
         "--remote-debugging-pipe", "--force-color-profile=srgb"]

# Seconds that Chromium's start may take.
START = 10


class Browser:
    """One process; pages are made by page()."""

    def __init__(self):
        if not shutil.which(PROGRAM):
            raise RuntimeError(f"{PROGRAM} is not installed: make deps")
        self.profile = tempfile.mkdtemp(prefix="llmgw-chromium-")
        self.n, self.answers, self.events = 0, {}, []
        self.news = threading.Condition()
        # in the child these are 3 (to read) and 4 (to write)
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()
        self.err = tempfile.TemporaryFile("w+", errors="replace")
        self.proc = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "bash",
             PROGRAM, *FLAGS, f"--user-data-dir={self.profile}",
             "about:blank"],
            pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL,
            stdout=self.err, stderr=self.err, start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        threading.Thread(target=self._read, daemon=True).start()
        try:
            self.ask("Browser.getVersion", takes=START)
        except AssertionError:
            self.close()
            raise

    def _read(self):
        rest = b""
        while data := os.read(self.back, 1 << 16):
            *whole, rest = (rest + data).split(b"\0")
            with self.news:
                for message in map(json.loads, whole):
                    if "id" in message:
                        self.answers[message["id"]] = message
                    else:
                        self.events.append(message)
                self.news.notify_all()
        with self.news:
            self.answers[None] = "the browser has ended"
            self.news.notify_all()

    def ask(self, method, session=None, takes=QUICK, **params):
        self.n += 1
        watch = Stopwatch(takes)
        message = {"id": self.n, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        with self.news:
            came = self.news.wait_for(
                lambda: self.n in self.answers or None in self.answers,
                PATIENCE * SLOW)
            answer = self.answers.pop(self.n, None)
        if answer is None:
            self.err.seek(0)
            raise (AssertionError if came else TooLate)(
                f"{method}: no answer\n{self.err.read()}")
        watch.over(method)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def page(self, width=1280, height=900, dark=False, scale=1):
        return Page(self, width, height, dark, scale)

    def close(self):
        if self.proc.poll() is None:
            os.killpg(self.proc.pid, signal.SIGKILL)
        self.proc.wait()
        os.close(self.to)
        self.err.close()
        for _ in range(50):     # its helper processes end a moment later
            shutil.rmtree(self.profile, ignore_errors=True)
            if not os.path.exists(self.profile):
                return
            time.sleep(0.02)


class Page:
    """A tab.  Its errors are in .complaints()."""

    def __init__(self, browser, width, height, dark, scale):
        self.browser = browser
        self.target = browser.ask("Target.createTarget",
                                  url="about:blank")["targetId"]
        self.session = browser.ask("Target.attachToTarget", flatten=True,
                                   targetId=self.target)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.ask(f"{domain}.enable")
        self.size(width, height, scale)
        self.media(dark)

    def ask(self, method, **params):
        return self.browser.ask(method, self.session, **params)

    def size(self, width, height, scale=1):
        self.ask("Emulation.setDeviceMetricsOverride", width=width,
                 height=height, deviceScaleFactor=scale, mobile=width < 500)

    def media(self, dark):
        self.ask("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme",
             "value": "dark" if dark else "light"}])

    def open(self, url):
        self.js("window.is_left = true")
        self.ask("Page.navigate", url=url)
        wait_for(lambda: self._has_come(url), f"{url} to load")

    def _has_come(self, url):
        try:
            return url == self.js("!window.is_left && location.href"
                                  " && document.readyState === 'complete'"
                                  " && location.href")
        except AssertionError:
            return False            # one document has gone, none has come

    def js(self, expression):
        """The expression's value; waits for a promise."""
        got = self.ask("Runtime.evaluate", expression=expression,
                       returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise AssertionError(f"{expression}: {got['exceptionDetails']}")
        return got["result"].get("value")

    def text(self, selector="body"):
        return self.js(f"document.querySelector({json.dumps(selector)})"
                       "?.innerText ?? ''")

    def wait_text(self, selector, text, takes=QUICK):
        """Waits until its text contains that."""
        try:
            wait_for(lambda: text in self.text(selector),
                     f"{selector} to say {text!r}", takes)
        except TooLate:
            raise TooLate(f"{selector} does not say {text!r} but"
                          f" {self.text(selector)!r}") from None

    def click(self, selector):
        self.js(f"document.querySelector({json.dumps(selector)}).click()")

    def key(self, key, code=None, **more):
        text = {"text": "\r"} if key == "Enter" else {}
        virtual = {"Tab": 9, "Enter": 13, " ": 32}.get(key, 0)
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key,
                     code=code or key, windowsVirtualKeyCode=virtual,
                     **(text if kind == "keyDown" else {}), **more)

    def heard(self, method):
        """Parameters of the events of that name so far."""
        with self.browser.news:
            return [e["params"] for e in self.browser.events
                    if e["method"] == method
                    and e.get("sessionId") == self.session]

    def complaints(self):
        """Errors and warnings on its console, exceptions, refusals."""
        found = [e["entry"]["text"] for e in self.heard("Log.entryAdded")
                 if e["entry"]["level"] in ("error", "warning")]
        found += [str(e["exceptionDetails"])
                  for e in self.heard("Runtime.exceptionThrown")]
        found += [str(e["args"])
                  for e in self.heard("Runtime.consoleAPICalled")
                  if e["type"] in ("error", "warning", "assert")]
        return found

    def requests(self):
        return [e["request"]["url"]
                for e in self.heard("Network.requestWillBeSent")]

    def names(self):
        """(role, name) of what a screen reader would announce."""
        nodes = self.ask("Accessibility.getFullAXTree")["nodes"]
        return [(n["role"]["value"], n.get("name", {}).get("value", ""))
                for n in nodes if not n["ignored"]]

    def picture(self, path, whole=True):
        got = self.ask("Page.captureScreenshot", format="png",
                       captureBeyondViewport=whole)
        with open(path, "wb") as f:
            f.write(base64.b64decode(got["data"]))

    def close(self):
        self.browser.ask("Target.closeTarget", targetId=self.target)
