"""The Debug page in a real browser, on a page that replays only: it needs no model.

All tests have one page after the other, each with an address of its own.
"""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from analysis.metrics import Selection, compared
from analysis.store.folder import read_folder, write_folder
from app import ui
from app.server import serving as server
from app.server.middleware.origin import Owner
from app.state import AppState
from app.store.run_folders import SHIPPED
from tests import ROOT
from tests.app.conftest import CATALOG
from tests.app.debug_folders import make_folders
from tests.evaluate.made_tables import made_tables

from ..conftest import PATIENCE, Watched

pytestmark = pytest.mark.filterwarnings("default")  # the server runs in this process, and Gradio's parts warn
SAMPLES = ROOT / "assets" / "samples"
POCKET = {"folder": "pocket", "f.method": "draft_model", "f.setting": "default"}
SIZE = {"width": 1280, "height": 900}
CARD = "SpecscopeApp.shown.debug.cards.cards.find(({ facts }) => facts.key === '%s')"
DROP = """([files]) => {
  const dropped = new DataTransfer();
  for (const [name, content] of files) {
    dropped.items.add(new File([Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0))], name));
  }
  document.querySelector(".ss-debug").dispatchEvent(
    new DragEvent("drop", { dataTransfer: dropped, bubbles: true, cancelable: true }));
}"""
FOCUSED = """() => {
  const { tagName, textContent, ariaLabel } = document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
  const visible = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
  return [ariaLabel ?? (tagName === "BODY" ? "" : textContent), visible];
}"""


@dataclass
class DebugPage:
    """The page, its address, and the folder of the owner's run folders."""

    page: Any
    address: str
    place: Path

    def land(self) -> None:
        """Open the page as a visitor does who knows no other address."""
        self.page.goto(self.address)
        self.wait("globalThis.SpecscopeApp?.shown.viewer?.player.record.last >= 0")

    def open(self, **query: str) -> None:
        """Open another view, as an address names it."""
        self.page.get_by_role("tab", name="Debug").click()
        self.wait("SpecscopeApp.shown.debug.opened.facts")  # of what it opens by itself
        given = urlencode({"screen": "debug"} | query)
        self.page.evaluate("(query) => SpecscopeApp.shown.debug.load(query, true)", given)
        self.page.wait_for_function("SpecscopeApp.shown.debug.root.offsetParent")

    def unfold(self, opens: bool) -> None:
        """Show filters and SQL, or hide them."""
        given = "(opens) => document.querySelectorAll('.app-debug-box').forEach((box) => { box.open = opens; })"
        self.page.evaluate(given, opens)

    @property
    def query(self) -> dict[str, str]:
        """Return the address's fields."""
        return {name: values[0] for name, values in parse_qs(urlsplit(self.page.url).query).items()}

    @property
    def count(self) -> str:
        """Return what is said of how much was chosen."""
        return str(self.page.locator(".app-debug-count").evaluate("(line) => line.firstChild?.data ?? ''"))

    def wait(self, condition: str) -> None:
        """Wait until a condition holds."""
        self.page.wait_for_function(condition)

    def counts(self, words: str) -> None:
        """Wait until so much is chosen."""
        self.wait(f"document.querySelector('.app-debug-count').textContent.startsWith('{words}')")

    def card(self, key: str) -> Any:
        """Return a metric's card, once it is in sight and drawn."""
        card = self.page.locator(f".app-debug-card[data-key={key}]")
        card.evaluate("(card) => card.scrollIntoView({ block: 'center' })")
        self.wait(f"{CARD % key}.measured && (!{CARD % key}.measured.figure || {CARD % key}.figure.listens)")
        self.wait("!SpecscopeApp.shown.debug.cards.asking")  # those around it have their height
        card.evaluate("(card) => card.scrollIntoView({ block: 'center' })")
        return card

    def listed(self) -> tuple[str, str]:
        """Return the title of the list of steps, and what it says of them."""
        self.page.wait_for_selector("dialog[open] .app-debug-step")
        return self.page.inner_text("dialog[open] h2"), self.page.inner_text("dialog[open] [role=status]")

    def plays(self, step: int) -> None:
        """Wait until the player shows a step of a run of a folder."""
        self.wait("SpecscopeApp.shown.viewer.facts.title?.startsWith('A run of')")
        self.wait(
            f"SpecscopeApp.shown.viewer.player.state.step === {step} && SpecscopeApp.shown.viewer.root.offsetParent"
        )

    def drop(self, *files: tuple[str, bytes]) -> None:
        """Drop files on it."""
        self.page.evaluate(DROP, [[[name, base64.b64encode(data).decode()] for name, data in files]])

    @property
    def notice(self) -> Any:
        """Return the sentence on what went wrong."""
        return self.page.locator(".ss-debug > .app-debug-notice:not([hidden])")


@pytest.fixture(scope="module")
def shared(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DebugPage]:
    """Yield the page in a tab, at the beginning on a recorded run."""
    place = make_folders(tmp_path_factory.mktemp("runs"))
    worse = {"source": "specscope", "name": "The worse"}
    write_folder(place / "worse", *made_tables(24, 12, 1, seed=1).values(), worse)
    app_state = AppState(CATALOG, "toy", replay_only=True, runs_folder=place)
    landing = app_state.recordings.landing
    assert landing is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    site = server.Site(app_state.calls.recording_lines(landing.id))
    running = server.Running(ui.build(app_state), site, app_state.tracker, Owner()).start("127.0.0.1", port)
    context = chromium.new_context(viewport=SIZE)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    watched, page = Watched(), context.new_page()
    page.set_default_timeout(PATIENCE)
    watched.attach(page)
    debug = DebugPage(page, f"http://127.0.0.1:{port}/", place)
    debug.land()
    yield debug
    context.close()
    running.stop()
    assert (watched.errors, watched.strangers) == ([], [])


@pytest.fixture
def debug(shared: DebugPage) -> Iterator[DebugPage]:
    """Yield the page without anything that a test before has opened."""
    shared.page.set_viewport_size(SIZE)
    yield shared
    shared.page.evaluate("document.querySelectorAll('dialog[open]').forEach((box) => box.close())")


@pytest.mark.slow
def test_a_page_without_a_model_opens_the_sample(debug: DebugPage) -> None:
    """Such a page had no Debug tab; nor may what it opens with turn back who has turned to it already."""
    held = list[Any]()
    debug.page.goto("about:blank")  # where it lands, a page may still have to ask: what is held shall be the next one's
    debug.page.route("**/run/predict*", lambda route: held.append(route))
    with debug.page.expect_request("**/run/predict*"):
        debug.land()
    assert debug.page.locator("[role=tab]:visible").all_inner_texts() == ["Run", "Race", "Debug", "Cost", "Learn"]
    debug.page.get_by_role("tab", name="Debug").click()
    try:
        with debug.page.expect_response(lambda response: "/run/predict" in response.url):
            held[0].continue_()
    finally:
        debug.page.unroute_all()  # else the next test would wait for what is held
    debug.counts("223 of 3,680 steps chosen")
    assert debug.page.is_visible(".ss-debug")
    assert debug.query == {"screen": "debug"} | POCKET
    debug.wait("document.querySelector('.ss-debug > .ss-verdict').textContent.startsWith('1.69 times as fast')")


@pytest.mark.slow  # some seconds in a browser
def test_filters_change_the_cards_and_back_brings_them_again(debug: DebugPage) -> None:
    debug.open(**POCKET)
    before = debug.card("survival").inner_text()
    debug.unfold(True)
    debug.page.fill("[aria-label='Accepted at least']", "3")
    debug.page.get_by_role("button", name="Apply").click()
    debug.counts("174 of")
    assert debug.query["f.accepted"] == "3" and "steps.accepted >= 3" in debug.page.input_value(".ss-debug textarea")
    after = debug.card("survival").inner_text()
    assert "93% of 223 steps" in before and "100% of 174 steps" in after
    debug.page.go_back()
    debug.counts("223 of")
    assert debug.page.input_value("[aria-label='Accepted at least']") == ""


def test_a_bar_opens_its_steps_and_a_step_the_player(debug: DebugPage) -> None:
    debug.open(**POCKET)
    card = debug.card("acceptance_histogram")
    box = card.locator(".bars .point path").last.bounding_box()
    debug.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    debug.page.wait_for_selector("[data-key=acceptance_histogram] .hovertext")
    debug.page.mouse.down()
    debug.page.mouse.up()
    assert debug.listed() == ("Acceptance histogram: accepted 5", "139 steps. Press one to open it in the player.")
    debug.page.get_by_role("button", name="Question 1, step 2").first.click()
    debug.plays(2)
    assert debug.query.keys() == {"run", "step"}
    debug.page.go_back()  # to the list, at the next step of it
    assert debug.listed()[0] == "Acceptance histogram: accepted 5"


@pytest.mark.slow  # some seconds in a browser
def test_a_query_that_cannot_run_loses_nothing(debug: DebugPage) -> None:
    """The charts were gone, and with them the way back."""
    debug.open(**POCKET)
    debug.unfold(True)
    shown, address = debug.card("survival").inner_text(), debug.page.url
    for sql, sentence in (("SELEC run", "syntax error"), ("DROP TABLE runs", "Only a SELECT can be run here")):
        debug.page.fill(".ss-debug textarea", sql)
        debug.page.focus(".ss-debug textarea")
        debug.page.keyboard.press("Control+Enter")
        refused = debug.page.locator(".app-debug-box .app-debug-notice", has_text=sentence)
        refused.wait_for()
        assert "\n" not in refused.inner_text() and debug.page.input_value(".ss-debug textarea") == sql
        assert debug.count.startswith("223 of") and debug.page.url == address
    assert debug.card("survival").inner_text() == shown
    debug.page.fill(".ss-debug textarea", "SELECT run, step FROM steps WHERE accepted = 4")
    debug.page.keyboard.press("Control+Enter")
    steps = read_folder(SHIPPED / "pocket").steps
    debug.counts(f"{steps['accepted'].to_pylist().count(4)} of")
    assert refused.is_hidden() and debug.query["sql"].endswith("accepted = 4")
    assert debug.page.locator(".ss-debug > .app-debug-notice").is_hidden()  # it asked for the query, not for filters


@pytest.mark.slow  # some seconds in a browser
def test_the_filters_come_back_after_a_query(debug: DebugPage) -> None:
    """They were lost, and with them the method and what it was compared with."""
    view = {"folder": "pocket", "f.method": "medusa", "f.setting": "default", "f.accepted": "2"}
    view |= {"against": "pocket", "b.method": "draft_model", "b.setting": "short"}
    debug.open(**view)
    debug.wait("document.querySelector('.app-debug-count').textContent.includes('to compare with')")
    before = debug.count
    debug.unfold(True)
    for leave in ("Back to the filters", "Apply"):
        debug.page.fill(".ss-debug textarea", "SELECT run, step FROM steps WHERE accepted = 4")
        debug.page.get_by_role("button", name="Run query").click()
        debug.wait("location.search.includes('sql=')")
        debug.wait("document.querySelector('.ss-debug textarea').value.endsWith('= 4')")
        assert debug.page.input_value("[aria-label='Accepted at least']") == ""
        if leave == "Apply":
            debug.page.fill("[aria-label='Accepted at least']", "2")
        debug.page.get_by_role("button", name=leave).click()
        debug.wait("!location.search.includes('sql=')")
        debug.counts(before)
        assert debug.query == {"screen": "debug"} | view
        assert debug.page.input_value("[aria-label='Accepted at least']") == "2"


@pytest.mark.slow  # some seconds in a browser
def test_two_folders_are_compared(debug: DebugPage) -> None:
    debug.open(folder="own-1-first", **{"f.method": "*"})
    debug.page.select_option("[aria-label='Compare with']", label="The worse")
    sides = [Selection.from_folder(read_folder(debug.place / name)) for name in ("first", "worse")]
    sentence = compared(*sides)["sentence"]
    assert sentence.startswith("Acceptance fell from 3")
    debug.wait(f"document.querySelector('.ss-debug > .ss-verdict').textContent === {sentence!r}")
    debug.card("questions").locator("tbody td").last.click()  # any cell of a row
    title, words = debug.listed()
    assert title.startswith("Every question: question q") and words.startswith("24 steps")
    accepted = debug.page.locator("dialog[open] .app-debug-step .ss-quiet")
    assert " of 4 accepted" in accepted.first.inner_text()
    debug.page.get_by_role("button", name="B: all methods (The worse)").click()
    debug.page.wait_for_selector("dialog[open] .app-debug-step :text('of 1 accepted')")


@pytest.mark.slow  # some seconds in a browser
def test_an_address_restores_the_view(debug: DebugPage) -> None:
    """As another visitor gets it: from nothing, and with the chart in sight that it points to."""
    view = POCKET | {"f.accepted": "2", "against": "own-1-first", "b.method": "medusa", "b.setting": "default"}
    debug.open(**view)
    debug.card("step_time").get_by_role("button", name="Copy a link to Step time").click()
    debug.page.wait_for_selector("[data-key=step_time] [role=status]:text('The link is copied.')")
    link = debug.page.evaluate("navigator.clipboard.readText()")
    debug.page.goto("about:blank")
    debug.page.goto(link)
    debug.wait("globalThis.SpecscopeApp?.shown.debug?.cards.cards.length")
    assert debug.query == {"screen": "debug", "chart": "step_time"} | view
    debug.wait(f"{CARD % 'step_time'}.figure.listens && !SpecscopeApp.shown.debug.cards.asking")
    top, bottom, focused = debug.page.evaluate(
        f"[...['top', 'bottom'].map((side) => {CARD % 'step_time'}.node.getBoundingClientRect()[side]), "
        "document.activeElement.dataset.key]"
    )
    assert top >= 0 and bottom <= SIZE["height"] and focused == "step_time"
    assert debug.page.input_value("[aria-label='Accepted at least']") == "2"
    menus = ("Run folder", "Method", "Compare with", "Its method")
    chosen = [debug.page.input_value(f"[aria-label='{name}']") for name in menus]
    assert chosen == ["pocket", "draft_model", "own-1-first", "medusa"]
    debug.page.select_option("[aria-label=Setting]", "short")
    debug.wait("!location.search.includes('chart=')")  # the visitor has gone on


@pytest.mark.slow  # some seconds in a browser
def test_dropped_files_are_opened_or_refused_in_a_sentence(debug: DebugPage) -> None:
    debug.open(**POCKET)
    debug.drop(("vllm.jsonl", (SAMPLES / "vllm.jsonl").read_bytes()))
    debug.wait("document.querySelector('.app-debug-facts').textContent.includes('recorded by vllm · imported 20')")
    debug.page.get_by_role("button", name="List them").click()
    debug.page.locator("dialog[open] .app-debug-step button").first.click()
    debug.page.wait_for_selector("dialog[open] [role=status]:text('This run has no trace')")  # where one looks
    debug.page.keyboard.press("Escape")
    lacking = debug.page.locator(".app-debug-card[data-key=p_against_q].app-debug-lacking")
    lacking.scroll_into_view_if_needed()
    lacking.wait_for()
    debug.wait(f'{CARD % "step_time"}.body.innerText === "vLLM\'s answer does not record it."')  # not "VLLM's"
    shown, address = debug.count, debug.page.url
    hostile = [(f"{name}.parquet", b"PAR1" + b"\xff" * 400 + b"PAR1") for name in ("runs", "steps", "nodes")]
    for files, sentence in (
        ([("<img src=x onerror=alert(1)>.json", b"<script>alert(1)</script>")], "the file holds no record"),
        (hostile, "runs.parquet is no Parquet file that can be read"),
    ):
        debug.drop(*files)
        debug.notice.filter(has_text=sentence).wait_for()
        notice = debug.notice.locator("[role=alert]")
        assert "\n" not in notice.inner_text() and not debug.page.locator(".ss-debug img").count()
        assert (debug.count, debug.page.url) == (shown, address)
        assert 0 <= debug.notice.bounding_box()["y"] < 200  # in sight, wherever the page was scrolled to


@pytest.mark.slow  # some seconds in a browser
def test_all_of_it_is_reached_and_pressed_by_keys(debug: DebugPage) -> None:
    debug.open(**POCKET)
    debug.unfold(False)
    debug.card("survival")
    debug.page.get_by_role("tab", name="Learn").focus()  # the last tab
    seen = list[str]()
    while not seen or not seen[-1].startswith("Survival by position. "):
        debug.page.keyboard.press("Tab")
        name, visible = debug.page.evaluate(FOCUSED)
        assert name and visible and len(seen) < 40, seen
        seen.append(name)
        if name == "Filters":
            debug.page.keyboard.press("Enter")  # unfolds them
    assert seen[:9] == ["Run folder", "Method", "Setting", "Compare with", "Open files", "Copy link", "Steps as CSV",
                        "Steps as Parquet", "Filters"]  # fmt: skip
    assert seen[9] == "A guess contains" and seen[23:27] == ["Apply", "Clear", "SQL", "List them"]
    first = "Mean acceptance length"
    assert seen[27:30] == [f"Copy a link to {first}", f"How {first} is computed", f"{first} as a table"]
    spoken = debug.page.locator("[data-key=survival] [aria-live]")
    assert spoken.inner_text().startswith("position 1, accepted 208")
    for key in ("ArrowRight", "ArrowRight", "ArrowUp"):
        debug.page.keyboard.press(key)
    assert spoken.inner_text().startswith("position 3, accepted ")
    debug.page.wait_for_selector("[data-key=survival] .hovertext")
    debug.page.keyboard.press("Enter")
    assert debug.listed()[0] == "Survival by position: position 3"
    debug.page.keyboard.press("Tab")
    debug.page.keyboard.press("Enter")
    debug.plays(0)
    debug.page.go_back()
    assert debug.listed()[0] == "Survival by position: position 3"
    debug.page.keyboard.press("Escape")
    assert debug.page.evaluate(FOCUSED)[0].startswith("Survival by position. ")  # and not at the top of the page
    debug.page.keyboard.press("Shift+Tab")
    debug.page.keyboard.press("Enter")  # the table
    debug.page.wait_for_selector("dialog[open] table")
    debug.page.keyboard.press("Tab")  # which can be scrolled
    debug.page.keyboard.press("Tab")
    debug.page.keyboard.press("Enter")
    assert debug.listed()[0] == "Survival by position: position 1"
    for _ in range(2):
        debug.page.keyboard.press("Tab")
    assert debug.page.evaluate(FOCUSED) == ["Question 1, step 1", True]
    debug.page.keyboard.press("Enter")
    debug.plays(1)
    debug.page.keyboard.press("ArrowRight")  # the player has the keys
    debug.plays(2)


@pytest.mark.slow  # all of the page is walked by keys above
def test_charts_of_every_kind_are_walked_by_keys(debug: DebugPage) -> None:
    """Lines and upright bars are above; here cells, lying bars, and bars that are no parts of the steps."""
    debug.open(**POCKET)
    whole = "speed-up measured as Spec-Bench does"
    for key, title in (
        ("p_against_q", "p against q: drafter from 0.9, target from 0.9"),
        ("by_category", "By category: category code"),
        ("speedup", f"Expected and measured speed-up: {whole}"),
    ):
        plot = debug.card(key).locator(".app-debug-plot")
        debug.page.keyboard.press("Shift")  # the next focus is one by keys
        plot.focus()
        debug.page.keyboard.press("End")
        debug.page.wait_for_selector(f"[data-key={key}] .hovertext")
        debug.page.keyboard.press("Enter")
        assert debug.listed()[0] == title
        debug.page.keyboard.press("Escape")


@pytest.mark.slow  # a layout that seldom changes
def test_a_phone_needs_no_sideways_scrolling(debug: DebugPage) -> None:
    debug.open(**POCKET, **{"f.accepted": "2"})
    debug.page.set_viewport_size({"width": 390, "height": 844})
    debug.card("survival")
    assert debug.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tools, sentence = (
        debug.page.locator(f".ss-debug {part}").bounding_box() for part in (".app-tools >> nth=0", "> .ss-verdict")
    )
    assert tools["y"] + tools["height"] + 8 <= sentence["y"]  # they touched
    widths = {
        round(box["width"])
        for box in (each.bounding_box() for each in debug.page.locator(".app-debug-field input").all())
    }
    assert len(widths) == 1  # those of numbers were narrower
