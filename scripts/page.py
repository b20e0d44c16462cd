#!/usr/bin/env python3
"""Opens slablab's page in a browser without a screen, asks its questions, and compares its answers with the program's.

    cargo xtask page && cargo build && scripts/page.py target/page/slablab.html --program target/debug/slablab

Each answer's JSON must have the bytes of the program's `--format json` (that of `reproduce` the first 12 digits of its
numbers); the page must ask no network for anything;
nothing may be written to the browser's console; a text that is no dump gets one sentence. Each lesson's commands must be
those of docs/lessons.md, and its exercise takes what the program prints, and nothing else. With --pictures FOLDER it
leaves screenshots: light, dark, and 400 pixels wide.
"""

import argparse
import base64
import fcntl
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
RELEASES = "examples/releases"
AFTER, BEFORE = f"{RELEASES}/amd64_6.18.15_smp4.after.tar.xz", f"{RELEASES}/amd64_6.18.15_smp4.before.tar.xz"
OTHER = f"{RELEASES}/amd64_7.3.4_smp4.after.tar.xz"
TEXT = "examples/data/hackbench-6.18.slabinfo-end.txt"
PACKED, CALLS = "crates/readers/corpus/perfdata/file_compressed.perf.data", "examples/data/git-grep.trace.parquet"
SCRIPT = "examples/data/vm/hotanon_stream.t"
TRACE, STATE = "examples/data/hackbench-6.18.perf.data.xz", "examples/data/hackbench-6.18.before.tar.xz"
# The program's words, and the page's question with the same files.
QUESTIONS = (
    (["doctor", AFTER], {"verb": "doctor", "input": AFTER}),
    (["doctor", AFTER, "--since", BEFORE], {"verb": "doctor", "input": AFTER, "since": [BEFORE]}),
    (
        ["doctor", TEXT, "--page-size", "4K", "--cpus", "4"],
        {"verb": "doctor", "input": TEXT, "page-size": "4K", "cpus": 4},
    ),
    (["whatif", AFTER, "--max-order", "0"], {"verb": "whatif", "input": AFTER, "change": {"max-order": "0"}}),
    (
        ["whatif", AFTER, "--release", "7.0,7.3"],
        {"verb": "whatif", "input": AFTER, "change": {"release": "7.0,7.3"}},
    ),
    (
        ["whatif", OTHER, "--sheaf-capacity", "x2", "--cpus", "8,16"],
        {"verb": "whatif", "input": OTHER, "change": {"sheaf-capacity": "x2", "cpus": "8,16"}},
    ),
    (
        ["replay", TRACE, "--engine", "slub@6.18", "--engine", "slub@7.3,sheaf_capacity=16"],
        {"verb": "replay", "input": TRACE, "engines": ["slub@6.18", "slub@7.3,sheaf_capacity=16"]},
    ),
    (
        ["replay", TRACE, "--engine", "slab@6.1", "--before", STATE, "--cache", "vm_area_struct"],
        {"verb": "replay", "input": TRACE, "engines": ["slab@6.1"], "before": [STATE], "cache": "vm_area_struct"},
    ),
    (
        ["explain", TRACE, "slub@6.18", "slub@7.0"],
        {"verb": "explain", "input": TRACE, "from": "slub@6.18", "to": "slub@7.0"},
    ),
    (["replay", PACKED, "--engine", "slub@7.1"], {"verb": "replay", "input": PACKED, "engines": ["slub@7.1"]}),
    (["replay", CALLS, "--engine", "slub@7.1"], {"verb": "replay", "input": CALLS, "engines": ["slub@7.1"]}),
    (["sites", TRACE], {"verb": "sites", "input": TRACE}),
    (["what", "dentry", "kmalloc-1k"], {"verb": "what", "names": ["dentry", "kmalloc-1k"]}),
    (
        ["orders", "--policy", "patel-v3", "--against", "clamped", "--page-size", "64K", "--cpus", "16"],
        {"verb": "orders", "policy": "patel-v3", "against": "clamped", "page-size": ["64K"], "cpus": [16]},
    ),
    (
        ["pressure", "run", SCRIPT, "--vm", "vm@6.1,lru_gen"],
        {"verb": "pressure", "script": SCRIPT, "vm": "vm@6.1,lru_gen"},
    ),
    (["run", "micro", "--quick"], {"verb": "run", "experiment": "micro"}),
    (["reproduce", "2026", "--quick"], {"verb": "reproduce", "experiment": "2026"}),
    (
        ["run", "sheaves-micro", "--quick", "--repeats", "1", "--seed", "7"],
        {"verb": "run", "experiment": "sheaves-micro", "repeats": 1, "seed": 7},
    ),
)


class Browser:
    """A browser that is spoken to by its debugging protocol, over two pipes."""

    def __init__(self, program, profile, width=1200):
        here, there = os.pipe(), os.pipe()
        self.write, self.read = here[1], there[0]
        words = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        words += ["--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe"]
        words += [f"--user-data-dir={profile}", f"--window-size={width},900", "about:blank"]

        # Above the numbers that the browser expects, so that neither is in the other's way.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (here[0], there[1])]

        def pipes():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.process = subprocess.Popen(
            [program, *words], preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for end in (here[0], there[1], *ends):
            os.close(end)
        self.number, self.rest, self.events, self.session = 0, b"", [], None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                more = os.read(self.read, 1 << 20)
                if not more:
                    raise SystemExit("the browser ended")
                self.rest += more
            text, self.rest = self.rest.split(b"\0", 1)
            got = json.loads(text)
            if got.get("id") == self.number:
                if "error" in got:
                    raise SystemExit(f"{method}: {got['error']}")
                return got["result"]
            self.events.append(got)

    def value(self, expression):
        """The value of an expression, awaited."""
        got = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in got:
            raise SystemExit(f"{expression[:80]}: {got['exceptionDetails']}")
        return got["result"].get("value")

    def until(self, expression, seconds=600):
        """Waits until an expression is true."""
        end = time.monotonic() + seconds
        while not self.value(expression):
            if time.monotonic() > end:
                raise SystemExit(f"{expression}: not within {seconds} s")
            time.sleep(0.02)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && typeof ask === 'function'")

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self):
        """What the page asked of the network, and what it or the browser wrote to the console."""
        found = []
        for event in self.events:
            method, got = event["method"], event["params"]
            if method == "Network.requestWillBeSent":
                url = got["request"]["url"]
                if not url.startswith(("file:", "blob:", "data:", "about:")):
                    found.append(f"a request for {url}")
            elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
                found.append(f"the console: {json.dumps(got)[:300]}")
            elif method == "Log.entryAdded" and got["entry"]["level"] == "error":
                found.append(f"the log: {got['entry']['text']}")
        return found

    def end(self):
        """Ends the browser, and waits until it no longer writes into its profile."""
        self.session = None
        try:
            self.call("Browser.close")
            self.process.wait(timeout=10)
        except (OSError, SystemExit, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


def alike(answer):
    """An answer without its line about names of this machine, which a page has not."""
    return b"".join(line for line in answer.splitlines(True) if b"call sites are addresses: " not in line)


def twelve(answer):
    """An answer with 12 digits of each number: of the last, exp and ln of a C library are not those of a page."""
    return json.loads(answer or "null", parse_float=lambda number: f"{float(number):.12g}")


def asked(browser, question):
    """The reply to a question, asked by the page's own worker with files of the source tree."""
    paths = [question.get("input"), question.get("script"), *(path for key in ("since", "before", "results") for path in question.get(key, []))]
    files = {path: base64.b64encode(pathlib.Path(path).read_bytes()).decode() for path in paths if path}
    browser.value(
        f"""(async () => {{
            await ready;
            files.clear();
            for (const [name, base64] of Object.entries({json.dumps(files)}))
                files.set(name, new File([bytesOf(base64)], name));
            window.reply = undefined;
            const given = [...files].map(([name, file]) => ({{ name, file }}));
            worker.addEventListener("message", ({{ data }}) => data.reply && (window.reply = data));
            last = {{}};
            worker.postMessage({{ question: {json.dumps(question)}, files: given }});
        }})()"""
    )
    browser.until("window.reply")
    return browser.value("window.reply")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--program", default="target/debug/slablab")
    parser.add_argument("--pictures", type=pathlib.Path)
    parser.add_argument("--large", type=int, metavar="MB", help="also a text of so many MB, timed beside the program")
    given = parser.parse_args()
    if not given.page.is_file():
        parser.error(f"{given.page}: no such file; `cargo xtask page` writes target/page/slablab.html")
    if not shutil.which(given.program):
        parser.error(f"{given.program}: no such program; `cargo build` makes target/debug/slablab")
    program = os.environ.get("SLABLAB_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if not program:
        sys.exit("no browser: install chromium, or name one in SLABLAB_BROWSER")
    wrong = []
    # A child of a browser that had to be killed may still write there.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            begun = time.monotonic()
            browser.open(f"{given.page.resolve().as_uri()}#example=0")
            browser.until("!document.getElementById('answer').hidden")
            print(f"the first answer: {time.monotonic() - begun:.2f} s")
            for words, question in (*QUESTIONS, *compared(given.program, profile)):
                reply = asked(browser, question)
                expected = subprocess.run([given.program, *words, "--format", "json"], capture_output=True, check=False)
                got = reply["reply"]
                same = alike(got["json"].encode()) == alike(expected.stdout)
                if words[0] == "reproduce":
                    same = twelve(got["json"]) == twelve(expected.stdout)
                if got.get("error") or not same or not got["command"].startswith("slablab " + words[0]):
                    wrong.append(f"{' '.join(words)}: {got.get('error') or 'other bytes than the program'}")
                print(f"{'equal' if same else 'OTHER':6} {len(got['json']):8} bytes {reply['ms']:6.0f} ms  {' '.join(words)}")
                if got["error"]:
                    print(f"       {got['error']}")
            wrong += refused(browser)
            wrong += asked_by_hand(browser)
            wrong += put_and_asked(browser)
            if given.large:
                wrong += large(browser, given.program, given.large)
            wrong += lessons(browser, given.program)
            wrong += browser.complaints()
            if given.pictures:
                given.pictures.mkdir(parents=True, exist_ok=True)
                pictures(browser, given.page.resolve().as_uri(), given.pictures)
        finally:
            browser.end()
    for line in wrong:
        print(f"wrong: {line}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


def compared(program, folder):
    """Questions about results, which the program writes into a folder."""
    results = [f"{folder}/{engine}.json" for engine in ("slub@7.1", "slub@7.3")]
    for path in results:
        words = [program, "replay", TRACE, "--engine", pathlib.Path(path).stem, "--format", "json", "--output", path]
        subprocess.run(words, check=True, capture_output=True)
    yield ["compare", *results], {"verb": "compare", "results": results}


def refused(browser):
    """Files that are no dumps: each must get a sentence."""
    wrong = []
    for name, data in (
        ("hello.txt", b"hello"),
        ("two.bytes", b"\x00\x01"),
        ("huge.number", b"slabinfo - version: 2.1\n# name\nx 1 2 3 4 99999999999999999999999 1\n"),
        ("random.bytes", random.Random(1).randbytes(1 << 20)),
        ("bomb.gz", gzip.compress(bytes(1 << 30))),
    ):
        file = f"new File([bytesOf({json.dumps(base64.b64encode(data).decode())})], {json.dumps(name)})"
        browser.value(f"put({{question: {{verb: 'doctor'}}}}, [{file}])")
        browser.until("document.body.getAttribute('aria-busy') === 'false'")
        error = browser.value("document.getElementById('error').textContent")
        print(f"refused: {error}")
        if "defect" in error or not error:
            wrong.append(f"{name}: {error or 'no error'}")
    return wrong


def asked_by_hand(browser):
    """What is wrong when a reader gives two states, the older one first, and then keeps two results."""
    wrong, idle = [], "document.body.getAttribute('aria-busy') === 'false' && !document.getElementById('answer').hidden"

    def expect(what, script, expression, expected):
        browser.value(script)
        browser.until(idle)
        found = browser.value(expression)
        print(f"{what}: {found}")
        if expected not in found:
            wrong.append(f"{what}: expected {expected}, found {found}")

    states = ", ".join(
        f"new File([`Slab: {kib} kB\\nSReclaimable: 9000 kB\\nSUnreclaim: {kib - 9000} kB\\nMemTotal: 900000 kB\\n`], '{name}')"
        for name, kib in (("before.txt", 30000), ("after.txt", 90000))
    )
    choose = "document.querySelector('[name=verb][value={}]').click(); "
    sentence = "document.getElementById('sentence').textContent"
    expect("two states", choose.format("doctor") + f"files.clear(); taken([{states}]); ask()", sentence, "grew by")
    micro = choose.format("run") + "files.clear(); listed(); $('experiment').value = 'brouer'; "
    expect("a run", micro + "ask()", sentence, "slab@6.1 is worse")
    expect("another seed", "keep(); $('seed').value = 7; ask()", "last.reply.command", "slablab run brouer --quick --seed 7")
    expect("both kept", "keep()", "last.reply.command", "compare 'run brouer --quick.json' 'run brouer --quick --seed 7.json'")
    # A file that is left over is not the experiment that was named.
    expect("a name beside files", choose.format("run") + "$('experiment').value = 'brouer'; ask()", sentence, "slab@6.1 is worse")
    return wrong


def put_and_asked(browser):
    """Examples whose question the form does not ask as it was put in."""
    wrong = []
    for number in range(browser.value("EXAMPLES.list.length")):
        browser.value(f"(async () => {{ await bundled(EXAMPLES.list[{number}].question); stop(); }})()")
        put, found = json.loads(browser.value(f"JSON.stringify([EXAMPLES.list[{number}].question, last])"))
        # What the form adds says what is the case without it.
        if found != {"change": {}, **put} and found != put:
            wrong.append(f"example {number}: the form asks {found}, expected {put}")
    return wrong


def large(browser, program, megabytes):
    """A log of so many MB with a slabinfo at its end, in the page and by the program."""
    line = "Nov 30 12:00:00 host kernel: [{:12d}] a line of a log without any meaning for memory, among very many\n"
    count = (megabytes << 20) // len(line.format(0))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "large.txt")
        with path.open("w") as file:
            file.writelines(map(line.format, range(count)))
            file.write(pathlib.Path(TEXT).read_text())
        begun = time.monotonic()
        words = [program, "doctor", str(path), "--page-size", "4K", "--cpus", "4", "--format", "json"]
        expected = json.loads(subprocess.run(words, capture_output=True, check=False).stdout)
        program_s = time.monotonic() - begun
    # The browser makes the same file: it would not be given by an address.
    script = f"""(() => {{
        const text = (number) => String(number).padStart(12);
        const parts = [];
        for (let at = 0; at < {count}; at++) parts.push({json.dumps(line)}.replace("{{:12d}}", text(at)));
        parts.push({json.dumps(pathlib.Path(TEXT).read_text())});
        const question = {{ verb: "doctor", "page-size": "4K", cpus: 4 }};
        window.reply = undefined;
        worker.addEventListener("message", ({{ data }}) => data.reply && (window.reply = data));
        last = {{}};
        const file = new File(parts, "large.txt");
        worker.postMessage({{ question: {{ ...question, input: "large.txt" }}, files: [{{ name: "large.txt", file }}] }});
    }})()"""
    browser.value(script)
    browser.until("window.reply")
    reply = browser.value("window.reply")
    print(f"{megabytes} MB of text: {reply['ms'] / 1000:.1f} s in the page, {program_s:.1f} s by the program")
    got = json.loads(reply["reply"]["json"] or "{}")
    same = got.get("caches") and got["caches"] == expected["caches"]
    return [] if same else [f"{megabytes} MB of text: {reply['reply'].get('error') or 'other caches than the program'}"]


def lessons(browser, program):
    """What is wrong with the lessons: commands that the document has not, and answers that are not taken."""
    wrong, document = [], pathlib.Path("docs/lessons.md").read_text()
    for number in range(browser.value("EXAMPLES.lessons.length")):
        browser.value(f"learn({number})")
        idle = "document.body.getAttribute('aria-busy') === 'false' && !isChecking"
        browser.until(idle)
        title, answer = browser.value("lesson.title"), browser.value("lesson.answer")
        commands = [browser.value("last.reply.command")]
        # No word has a space in it.
        words = None
        for mine in ("no answer", None):
            if words:
                text = subprocess.run([program, *words[1:], "--wide"], capture_output=True, text=True, check=True).stdout
                mine = re.search(answer, " ".join(text.split()))[1]
            browser.value(f"document.getElementById('mine').value = {json.dumps(mine)}; check()")
            browser.until(idle)
            said = browser.value("document.getElementById('checked').textContent")
            words = browser.value("last.reply.command").split()
            if said.startswith("Right") == (mine == "no answer"):
                wrong.append(f"lesson {title}: {mine} gets: {said}")
        commands.append(" ".join(words))
        wrong += [f"lesson {title}: docs/lessons.md has no {command}" for command in commands if command not in document]
        print(f"lesson {title}: {mine}: {said}")
    return wrong


def pictures(browser, url, folder):
    for scheme, width in (("light", 1200), ("dark", 1200), ("light", 400)):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.call("Emulation.setEmulatedMedia", features=features)
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=1600, deviceScaleFactor=1, mobile=False)
        for number in range(browser.value("EXAMPLES.list.length")):
            browser.call("Page.navigate", url="about:blank")
            browser.open(f"{url}#example={number}")
            browser.until("!document.getElementById('answer').hidden")
            time.sleep(0.5)
            browser.picture(folder / f"{scheme}-{width}-{number}.png")


if __name__ == "__main__":
    main()
