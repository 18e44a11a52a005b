"""A real browser, and a bare page on loopback that holds nothing but plotly.js, the player and what tests look into."""

from __future__ import annotations

import contextlib
import functools
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import plotly
import pytest

from decoding.types import Trace
from viz.page import style
from viz.scripts import join
from viz.stream.play import Play

playwright = pytest.importorskip("playwright.sync_api", reason="the pages are tested in a browser: install playwright")
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
PATIENCE = 60_000  # milliseconds: on a machine with other work a page may take its time
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>player</title><link rel="icon" href="data:,"><link rel="stylesheet" href="/style.css">
<style>body { margin: 0 8px } body.dark { background: #14171C }</style></head>
<body><main><h1>A page</h1><label>Prompt <input id="other"></label><div id="player"></div></main>
<script src="/plotly.js"></script><script src="/player.js"></script></body></html>"""


def files() -> dict[str, tuple[str, bytes]]:
    """What the bare page consists of."""
    return {
        "/": ("text/html", PAGE.encode()),
        "/plotly.js": ("text/javascript", PLOTLY.read_bytes()),
        "/player.js": ("text/javascript", join(Path(__file__).parent / "surface.js").encode()),
        "/style.css": ("text/css", style().encode()),
    }


@pytest.fixture(scope="session")
def sent_runs() -> list[Sent]:
    """Collect the runs that pages were sent; a page asks for more by a run's place in this list."""
    return []


@pytest.fixture(scope="session")
def site(sent_runs: list[Sent]) -> Iterator[str]:
    """The address of the bare page."""
    contents = files()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            kind, content = contents.get(path, ("text/plain", b""))
            if path.startswith("/answer/"):
                number, question, step = path.removeprefix("/answer/").split("/")
                content = sent_runs[int(number)].answer(question, int(step)).encode()
            self.send_response(200 if content else 404)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "max-age=3600")  # and what of plotly.js is compiled stays compiled
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


class _QuietFiles(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextlib.contextmanager
def serve_files(folder: Path) -> Iterator[str]:
    """Serve a folder as a web server does that knows nothing of the page; yield its address, which ends in a slash."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_QuietFiles, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@dataclass
class Watched:
    """What went wrong on a page: errors, and requests that left this machine."""

    errors: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    def attach(self, page: Any) -> None:
        """Listen to a page."""
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._console)
        page.on("dialog", self._dialog)
        page.on("request", self._request)

    def _console(self, got: Any) -> None:
        """Note errors and warnings, but not that a script that comes early was used late, as on a busy machine."""
        if got.type in ("error", "warning") and "was preloaded using link preload but not used" not in got.text:
            self.errors.append(got.text)

    def _dialog(self, dialog: Any) -> None:
        self.errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        where = urlsplit(request.url)
        if where.scheme not in ("data", "blob", "file") and where.hostname != "127.0.0.1":
            self.strangers.append(request.url)


class Tab:
    """A page that tests have one after the other, each as if it had just been opened.

    A page that is really new has plotly.js compiled anew, which takes longer than most tests.
    """

    def __init__(self, chromium: Any) -> None:
        self.context, self.watched, self.free = chromium.new_context(), Watched(), True
        self._page = None

    def open(self, width: int, height: int, reduced_motion: str = "no-preference") -> Any:
        """Hand out the page, blank and of this size, to a visitor who wants motion or none."""
        if self._page is None or self._page.is_closed():
            self._page = self.context.new_page()
            self._page.set_default_timeout(PATIENCE)
            self.watched.attach(self._page)
        self.free = False
        self._page.set_viewport_size({"width": width, "height": height})
        self._page.emulate_media(reduced_motion=reduced_motion)
        return self._page

    def reset(self) -> Watched:
        """Leave nothing of a test: neither its document and history nor storage, permissions, routes or the pointer.

        Returns what went wrong until then: a page that is left aborts its requests, which is no error of a test.
        """
        self.context.clear_permissions()
        self.context.clear_cookies()
        if self._page is not None and not self._page.is_closed():
            # What a script threw just now comes before the answer to this.
            self._page.evaluate("() => new Promise((done) => setTimeout(done))")
        seen = Watched([*self.watched.errors], [*self.watched.strangers])
        if self._page is not None and not self._page.is_closed():
            self._page.unroute_all()
            self._page.evaluate("() => { try { sessionStorage.clear(); } catch { /* a blank page has none */ } }")
            self._page.goto("about:blank")
            self._page.mouse.move(-1, -1)
            session = self.context.new_cdp_session(self._page)
            session.send("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": "all"})
            session.send("Page.resetNavigationHistory")
            session.detach()
        self.watched.errors.clear()
        self.watched.strangers.clear()
        self.free = True
        return seen


@pytest.fixture(scope="session")
def tab(chromium: Any) -> Iterator[Tab]:
    """One page for all tests of a process."""
    made = Tab(chromium)
    yield made
    made.context.close()


@pytest.fixture
def new_page(chromium: Any, tab: Tab) -> Iterator[Callable[..., Any]]:
    """Opens pages; at the end none may have had an error, or asked anyone but this machine.

    The first is the process's own, unless a test wants one `alone`, for a script that would stay; each of the others
    has a context of its own, as another visitor's would.
    """
    opened, watched = [], Watched()

    def open_page(
        width: int = 1280,
        height: int = 1000,
        alone: bool = False,
        reduced_motion: str = "no-preference",
        has_touch: bool = False,
    ) -> Any:
        if tab.free and not alone and not has_touch:
            return tab.open(width, height, reduced_motion)
        context = chromium.new_context(
            viewport={"width": width, "height": height}, reduced_motion=reduced_motion, has_touch=has_touch
        )
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        watched.attach(page)
        opened.append(context)
        return page

    yield open_page
    for context in opened:
        context.close()
    seen = tab.reset()
    assert [*watched.errors, *seen.errors] == []
    assert [*watched.strangers, *seen.strangers] == []


@dataclass
class Shown:
    """A player on a page, and the run that it shows."""

    page: Any
    trace: Trace
    play: Play

    def run(self, code: str, argument: Any = None) -> Any:
        """The value of an expression in which `player` is the player and `given` the argument."""
        return self.page.evaluate(f"async (given) => {{ await settled(); return {code}; }}", argument)

    def do(self, code: str, argument: Any = None) -> None:
        """Run a statement, then let the page draw."""
        self.page.evaluate(f"async (given) => {{ {code}; await settled(); }}", argument)

    def wait(self, condition: str) -> None:
        """Wait until a condition holds."""
        self.page.wait_for_function(condition)

    def at(self, place: str) -> None:
        """Wait until the player has drawn a place, as "3/commit"."""
        self.wait(f"player.root.dataset.at === {json.dumps(place)}")

    def walk(self, steps: Iterable[int], phases: Iterable[str], code: str) -> list[Any]:
        """The value of an expression at each of these places, without tokens that travel there."""
        walk = f"""async ([steps, phases]) => {{
          const values = [];
          for (const step of steps) {{
            for (const phase of phases) {{
              player.seek(step, phase, false);
              await settled();
              if (player.root.dataset.at !== `${{step}}/${{phase}}`) throw Error(`not drawn: ${{step}}/${{phase}}`);
              values.push({code});
            }}
          }}
          return values;
        }}"""
        return list(self.page.evaluate(walk, [[*steps], [*phases]]))

    def open(self, *views: str) -> None:
        """Open views beside those that are open."""
        for view in views:
            self.do("player.cards.toggle(given, true)", view)

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def text(self, selector: str) -> str:
        """The text that is seen in an element, once the page has drawn what was asked of it."""
        self.do("")
        return str(self.page.inner_text(selector))


# A page has settled when a frame was drawn, neither it nor what watches sizes and sights asks for another, and nothing
# that it asked for is on its way. What these watchers see comes behind the frame, as tasks of their own: hence two
# tasks more.
START = """(given) => {
  const frame = () => new Promise(requestAnimationFrame), task = () => new Promise((done) => setTimeout(done, 0));
  let unanswered = 0;
  globalThis.settled = async () => {
    do {
      await frame();
      await task();
      await task();
    } while (player.request !== undefined || player.cards.waiting || unanswered);
  };
  globalThis.asked = [];
  const answer = (kind) => async (k) => {
    asked.push(`${kind} ${k}`);
    unanswered += 1;
    try {
      return await (await fetch(`/answer/${given.number}/${kind}/${k}`)).text();
    } finally {
      unanswered -= 1;
    }
  };
  globalThis.player = new Specscope.Player(document.getElementById("player"), {
    source: { detail: answer("detail"), step: answer("step"), rows: answer("rows") },
    on: { link: (place) => `https://example.org/?${new URLSearchParams(place)}`, compare: () => asked.push("compare") },
  });
  if (given.lines) player.feed(given.lines);
}"""


@dataclass(frozen=True)
class Sent:
    """A run as a page gets it: its lines at once, and answers when it asks, which cost more than all lines."""

    trace: Trace  # kept, so that no other trace gets its place in memory
    play: Play
    lines: str
    number: int  # under which the page asks

    def answer(self, kind: str, k: int) -> str:
        """Return what the page asks of a step."""
        return {"detail": self.play.detail, "step": self.play.full, "rows": self.play.rows}[kind](k)


@pytest.fixture(scope="session")
def send(sent_runs: list[Sent]) -> Callable[[Trace, int | None], Sent]:
    """Writes the lines of a run, once for all tests that show it."""
    written = dict[tuple[int, int | None], Sent]()

    def sent(trace: Trace, cap: int | None) -> Sent:
        if (id(trace), cap) not in written:
            play = Play(trace.header, cap=cap)
            lines = play.begin(trace.texts) + "".join(play.step(each) for each in trace.steps) + play.end(trace.summary)
            written[id(trace), cap] = Sent(trace, play, lines, len(sent_runs))
            sent_runs.append(written[id(trace), cap])
        return written[id(trace), cap]

    return sent


@pytest.fixture
def show(new_page: Callable[..., Any], site: str, send: Callable[..., Sent]) -> Callable[..., Shown]:
    """Opens a page with the player, feeds it a run, and opens views of it."""

    def shown(
        trace: Trace,
        *,
        cap: int | None = None,
        step: int | None = 0,
        feed: bool = True,
        views: Sequence[str] = (),
        **options: Any,
    ) -> Shown:
        page = new_page(**options)
        page.goto(site)
        sent = send(trace, cap)
        page.evaluate(START, {"number": sent.number, "lines": sent.lines if feed else ""})
        opened = Shown(page, trace, sent.play)
        if step is not None and feed:
            opened.do(f"player.goto({{ step: {step} }})")
            opened.at(f"{step}/commit")
        if views:
            opened.open(*views)
        return opened

    return shown
