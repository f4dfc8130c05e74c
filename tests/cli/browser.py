"""Looks at a page as a reader does: headless Chromium shows it, and what the reader cannot see is reported.

    browser.py CHROMIUM WIDTH ADDRESS [--give FILE] [--screenshot PNG]

Reports what lies beyond the right edge of a window of that many pixels, and what is cut off inside the page,
with all folded parts open. --give: give the file to the page of `predict --serve`, and wait for its answer, whose
first class must be emphasised. --screenshot: write the whole page as an image.
Exit status 0: all can be seen. Chromium is driven over its DevTools protocol, through two pipes (3 and 4).
"""
import argparse
import base64
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SECONDS = 60
# Elements that are wider than the window, and boxes whose content is wider than they are.
HIDDEN = """(width => {
  const found = [];
  const name = e => e.tagName.toLowerCase() + (e.className.length ? '.' + e.className : '');
  const page = document.scrollingElement.scrollWidth;
  if (page > width) found.push('the page is ' + page + ' pixels wide');
  for (const e of document.body.querySelectorAll('*')) {
    if (e.closest('svg') !== e && e.closest('svg')) continue;
    const right = e.getBoundingClientRect().right;
    if (right > width + 0.5) found.push(name(e) + ' ends at ' + right + ': ' + e.textContent.slice(0, 60));
    if (getComputedStyle(e).overflowX !== 'visible' && e.clientWidth && e.scrollWidth > e.clientWidth + 1)
      found.push(name(e) + ' shows ' + e.clientWidth + ' of ' + e.scrollWidth + ' pixels');
  }
  return found;
})"""
# Of the first and the second row of an answer: how its class is written.
ROWS = """[...document.querySelectorAll('figure tr')].slice(0, 2).map(row => {
  const style = getComputedStyle(row.lastChild);
  return [row.lastChild.textContent, +style.fontWeight, parseFloat(style.fontSize)];
})"""


class Browser:
    """A Chromium without a window."""

    def __init__(self, program):
        self.home = tempfile.mkdtemp()
        to_browser, from_browser = os.pipe(), os.pipe()

        def connect():
            ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_browser[0], from_browser[1])]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe",
             "--user-data-dir=" + self.home, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=connect, start_new_session=True)
        os.close(to_browser[0])
        os.close(from_browser[1])
        self.out, self.come = to_browser[1], from_browser[0]
        self.rest, self.number, self.session = b"", 0, None
        pages = self.ask("Target.getTargets")["targetInfos"]
        page = next(p["targetId"] for p in pages if p["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]

    def message(self):
        while b"\0" not in self.rest:
            more = os.read(self.come, 1 << 20)
            if not more:
                sys.exit("browser.py: the browser ended")
            self.rest += more
        line, self.rest = self.rest.split(b"\0", 1)
        return json.loads(line)

    def ask(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"browser.py: {method}: {answer['error']['message']}")
                return answer["result"]

    def value(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            sys.exit(f"browser.py: {expression[:60]}: {answer['exceptionDetails']['text']}")
        return answer["result"].get("value")

    def wait_for(self, expression):
        end = time.monotonic() + SECONDS
        while not self.value(expression):
            if time.monotonic() > end:
                sys.exit(f"browser.py: {expression} did not come true")
            time.sleep(0.05)

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)


def give(browser, file):
    """Give a file to the page's input; return what is wrong with its answer."""
    browser.ask("DOM.enable")
    root = browser.ask("DOM.getDocument")["root"]["nodeId"]
    field = browser.ask("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
    browser.ask("DOM.setFileInputFiles", nodeId=field, files=[os.path.abspath(file)])
    browser.wait_for("document.querySelectorAll('figure tr').length > 1")
    first, second = browser.value(ROWS)
    print("the page answers", first[0])
    return [] if first[1] > second[1] and first[2] > second[2] else ["the first class is not emphasised"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chromium")
    parser.add_argument("width", type=int)
    parser.add_argument("address")
    parser.add_argument("--give")
    parser.add_argument("--screenshot")
    wanted = parser.parse_args()
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("browser.py: out of time"))
    signal.alarm(2 * SECONDS)
    browser = Browser(wanted.chromium)
    try:
        browser.ask("Emulation.setDeviceMetricsOverride", width=wanted.width, height=800, deviceScaleFactor=1,
                    mobile=wanted.width < 600)
        browser.ask("Page.navigate", url=wanted.address)
        browser.wait_for("document.readyState === 'complete' && location.protocol !== 'about:'")
        browser.value("document.querySelectorAll('details').forEach(e => { e.open = true; })")
        problems = give(browser, wanted.give) if wanted.give else []
        problems += browser.value(f"{HIDDEN}({wanted.width})")
        if wanted.screenshot:
            with open(wanted.screenshot, "wb") as file:
                file.write(base64.b64decode(browser.ask(
                    "Page.captureScreenshot", captureBeyondViewport=True)["data"]))
    finally:
        browser.close()
    for problem in problems[:20]:
        print(problem)
    sys.exit(1 if problems else 0)


main()
