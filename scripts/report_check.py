"""Opens a report in headless Chromium and looks at what is really there. scripts/report-check starts this.

It talks to the browser over its debugging pipe, so that nothing has to be installed beside the browser. The
report is looked at in light and dark, on a wide screen and on a narrow one. Each time:

- every case of report.json has a row in a table, a dot in the overview, and a mark or bar in another plot;
- every plot takes room, and so does every mark and bar in it, and all of it lies within the plot;
- no label runs into another one;
- the page is no wider than the screen;
- nothing was loaded but the file itself, and nothing went to the console.
"""

import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SCREENS = [("light", 1360), ("dark", 1360), ("light", 390), ("dark", 390)]
SCREEN_HEIGHT = 900
SHOT_HEIGHT = 1400
OURS = "Ringway"
# An answer that takes longer than this never comes.
ANSWER_S = 60

# Runs in the page; says what is wrong.
LOOK = """
(cases, onLines) => {
  const wrong = [];
  const box = (element) => element.getBoundingClientRect();
  const seen = (element) => { const b = box(element); return b.width > 0 && b.height > 0; };
  const key = (name, baseline) => JSON.stringify([name, baseline]);

  const rows = new Map();
  for (const row of document.querySelectorAll("table.cases tbody tr"))
    rows.set(key(row.dataset.name, row.dataset.baseline), row);
  const dots = new Set(), lines = new Set(), marks = new Set();
  for (const mark of document.querySelectorAll("svg.plot [data-of]")) {
    const series = mark.closest("[data-series]").dataset.series;
    if (!seen(mark)) wrong.push(`no room: ${mark.dataset.of}, ${series}`);
    const kind = mark.closest("figure").dataset.kind;
    if (kind === "dots") dots.add(key(mark.dataset.of, series));
    // A line of percentiles is called after its contender, and then which of them it is.
    if (kind === "lines") lines.add(key(mark.dataset.of, series.split(", ")[0]));
    if (kind !== "dots") marks.add(mark.dataset.of);
  }
  for (const [name, baseline] of cases) {
    const row = rows.get(key(name, baseline));
    if (!row || !seen(row)) wrong.push(`no row: ${name} against ${baseline}`);
    if (!dots.has(key(name, baseline))) wrong.push(`no dot: ${name} against ${baseline}`);
    if (!marks.has(name) && !/\\/p\\d+$/.test(name)) wrong.push(`in no plot: ${name}`);
  }
  for (const [name, series] of onLines)
    if (!lines.has(key(name, series))) wrong.push(`not on the line of ${series}: ${name}`);
  if (rows.size !== cases.length) wrong.push(`${rows.size} rows for ${cases.length} cases`);

  // A drawing may lie a little over the edge of its own, as far as the padding around it goes.
  const slack = 3;
  const plots = [...document.querySelectorAll("svg.plot")];
  if (plots.length === 0) wrong.push("there is no plot");
  for (const plot of plots) {
    const title = plot.querySelector("title").textContent, frame = box(plot);
    if (!seen(plot)) wrong.push(`a plot takes no room: ${title}`);
    if (plot.querySelectorAll(".mark, .bar").length === 0) wrong.push(`nothing is drawn: ${title}`);
    const texts = [...plot.querySelectorAll("text")];
    for (const part of [...plot.querySelectorAll("text, .mark, .bar, .line")]) {
      const b = box(part);
      if (b.left < frame.left - slack || b.right > frame.right + slack ||
          b.top < frame.top - slack || b.bottom > frame.bottom + slack)
        wrong.push(`outside of its plot: ${part.textContent || part.getAttribute("class")} in ${title}`);
    }
    const boxes = texts.map((text) => [text.textContent, box(text)]);
    for (let i = 0; i < boxes.length; i++)
      for (let j = i + 1; j < boxes.length; j++) {
        const [s, a] = boxes[i], [t, b] = boxes[j];
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 3) wrong.push(`labels overlap: ${s} and ${t} in ${title}`);
      }
  }
  const legends = [...document.querySelectorAll("figure[data-kind=lines]")];
  for (const figure of legends) {
    const series = figure.querySelectorAll("svg.plot [data-series]").length;
    if (figure.querySelectorAll(".legend li").length !== series)
      wrong.push(`the legend is not of its series: ${figure.querySelector("figcaption").textContent}`);
  }
  const page = document.documentElement;
  if (page.scrollWidth > innerWidth) wrong.push(`wider than the screen: ${page.scrollWidth}`);
  return wrong;
}
"""

# Sorts the first table by its third column, both ways, and says the values in order.
SORT = """
() => {
  const table = document.querySelector("table.cases");
  const values = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[2].dataset.value));
  const button = table.tHead.rows[0].cells[2].querySelector("button");
  button.click(); const up = values();
  button.click(); const down = values();
  return [up, down];
}
"""


class Browser:
    """A browser with one page, and what it tells on its own account."""

    def __init__(self, chromium, profile):
        to_browser, self.pipe_out = os.pipe()
        self.pipe_in, from_browser = os.pipe()
        flags = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-extensions", "--hide-scrollbars", "--force-device-scale-factor=1",
            f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank",
        ]
        # The browser reads at 3 and writes at 4.
        script = 'exec "$@" 3<&"$0" 4>&"$OUT"'
        self.process = subprocess.Popen(
            ["bash", "-c", script, str(to_browser), chromium, *flags],
            pass_fds=(to_browser, from_browser),
            env={**os.environ, "OUT": str(from_browser)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.last = 0
        self.session = None
        self.events = []

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=ANSWER_S)

    def message(self):
        while b"\0" not in self.buffer:
            chunk = os.read(self.pipe_in, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser has ended")
            self.buffer += chunk
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, **parameters):
        self.last += 1
        request = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.pipe_out, json.dumps(request).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.last:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self.events.append(message)

    def wait_for(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.message())

    def open_page(self):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def call(self, function, *arguments):
        call = f"({function})({', '.join(json.dumps(argument) for argument in arguments)})"
        result = self.ask("Runtime.evaluate", expression=call, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"]))
        return result["result"]["value"]


def complaints(events, address):
    """What went to the console, or was loaded from elsewhere."""
    for event in events:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if url != address and not url.startswith("data:"):
                yield f"loaded: {url}"
        elif method == "Runtime.consoleAPICalled":
            yield f"console: {parameters['type']} {parameters['args']}"
        elif method == "Runtime.exceptionThrown":
            yield f"exception: {parameters['exceptionDetails'].get('text')}"
        elif method == "Log.entryAdded":
            yield f"log: {parameters['entry']['text']}"


def on_lines(cases):
    """The pairs of a case and a contender that must be on lines: those of a path with several sizes."""
    sizes = {}
    for name, _ in cases:
        path, _, last = name.rpartition("/")
        if re.fullmatch(r"\d+(\.\d+)?", last) and float(last) > 0:
            sizes.setdefault(path, set()).add(last)
    long = {f"{path}/{size}" for path, of_it in sizes.items() if len(of_it) > 1 for size in of_it}
    return [[name, series] for name, baseline in cases if name in long for series in (OURS, baseline)]


def take(browser, shots, name, width):
    """The page in pictures of a height that can be looked at."""
    height = browser.call("() => document.documentElement.scrollHeight")
    for number, top in enumerate(range(0, height, SHOT_HEIGHT)):
        part = {"x": 0, "y": top, "width": width, "height": min(SHOT_HEIGHT, height - top), "scale": 1}
        picture = browser.ask("Page.captureScreenshot", captureBeyondViewport=True, format="png", clip=part)
        (shots / f"{name}-{number:02}.png").write_bytes(base64.b64decode(picture["data"]))


def look(browser, folder, screen, shots):
    scheme, width = screen
    address = (folder / "report.html").resolve().as_uri()
    report = json.loads((folder / "report.json").read_text())
    cases = [[case["name"], case["baseline_name"]] for case in report["cases"]]
    browser.ask(
        "Emulation.setDeviceMetricsOverride",
        width=width, height=SCREEN_HEIGHT, deviceScaleFactor=1, mobile=width < 600,
    )
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.events = []
    browser.ask("Page.navigate", url=address)
    browser.wait_for("Page.loadEventFired")
    wrong = browser.call(LOOK, cases, on_lines(cases))
    up, down = browser.call(SORT)
    if up != sorted(up) or down != sorted(down, reverse=True):
        wrong.append("a table is not sorted by a click")
    if shots:
        take(browser, shots, f"{scheme}-{width}", width)
    wrong = list(complaints(browser.events, address)) + wrong
    plots = browser.call("() => document.querySelectorAll('svg.plot').length")
    return wrong, plots, len(cases)


def main(chromium, folder, shots=None):
    shots = pathlib.Path(shots) if shots else None
    if shots:
        shots.mkdir(parents=True, exist_ok=True)
    failed = False
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(chromium, profile)
        try:
            browser.open_page()
            for screen in SCREENS:
                wrong, plots, cases = look(browser, pathlib.Path(folder), screen, shots)
                result = "ok" if not wrong else f"{len(wrong)} WRONG"
                print(f"{screen[0]}, {screen[1]} wide: {plots} plots, {cases} cases: {result}")
                for line in wrong[:40]:
                    print(f"  {line}")
                failed = failed or bool(wrong)
        finally:
            browser.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
