"""What the page shows before anything is run: the gallery's order, a recording from elsewhere, the recorded race."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from app import ui
from app.jobs.recorded_race import opening
from app.server import serving as server
from app.server.middleware.origin import Owner
from app.state import AppState
from app.store.recordings import Recordings
from tests.tiers import choose, slow

from .conftest import Served
from .test_around import GOLDEN, RACED

pytestmark = pytest.mark.filterwarnings("default")  # the server runs in this process, and Gradio's parts warn
NewPage = Callable[..., Any]


@slow  # some seconds in a browser
def test_the_gallery_is_in_the_order_of_the_recordings(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page())
    page.click(".app-recorded")
    rows = list(Recordings())
    groups = dict.fromkeys((row.family, row.group) for row in rows)
    order = list(groups)
    ids = page.evaluate("[...document.querySelectorAll('.app-card')].map((card) => card.dataset.run)")
    assert ids == [row.id for row in sorted(rows, key=lambda row: order.index((row.family, row.group)))]
    assert page.locator(".app-gallery h3").all_inner_texts() == list(dict.fromkeys(row.family for row in rows))
    assert page.locator(".app-gallery h4").all_inner_texts() == [group for _, group in groups]


@pytest.mark.slow  # some seconds in a browser
@pytest.mark.parametrize("width", choose([1440, 390], [1440]))
def test_a_recorded_race_plays_before_anything_is_loaded_and_a_live_one_takes_its_place(
    new_page: NewPage, served: Served, width: int
) -> None:
    page = served.open(new_page(width=width, height=844))
    page.get_by_role("tab", name="Race").click()
    page.wait_for_selector(".app-race-head:has-text('A recorded race')")
    page.wait_for_function("SpecscopeApp.shown.race.state.time > 0")
    page.click("#race button[aria-label='Show the result']")
    page.wait_for_function("document.querySelector('#race .ss-verdict').textContent.includes('wrote the same')")
    lanes = page.locator("#race .ss-lane").count()
    assert 2 <= lanes <= 6 and page.locator(".app-after a").count() == lanes
    assert "Recorded on another machine" in page.inner_text(".app-race-head") or not page.inner_text(
        ".app-race-head .app-machine"
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "run=" in page.locator(".app-after a").first.get_attribute("href")
    assert page.evaluate("location.search") == "?screen=race"
    page.fill("#race-length input", "16")
    page.click("#race-go")
    page.wait_for_function(RACED)
    assert page.locator(".app-race-head").is_hidden()


@slow  # some seconds in a browser
def test_a_visitor_who_wants_no_motion_sees_the_end_of_the_recorded_race(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page(reduced_motion="reduce"), "?screen=race")
    page.wait_for_function(
        "SpecscopeApp.shown.race?.length && SpecscopeApp.shown.race.state.time >= SpecscopeApp.shown.race.length"
    )
    assert not page.evaluate("SpecscopeApp.shown.race.state.playing")


@slow  # some seconds in a browser
def test_a_run_from_another_machine_says_so(new_page: NewPage, served: Served, tmp_path: Any) -> None:
    path = tmp_path / "run.jsonl"
    head, _, rest = (GOLDEN / "medusa.jsonl").read_text().partition("\n")
    header = json.loads(head) | {"processor": "<b>Abacus</b> 9", "threads": 2}
    path.write_text(f"{json.dumps(header)}\n{rest}")
    page = served.open(new_page())
    page.set_input_files(".app-bar input[type=file]", path)
    page.wait_for_function("SpecscopeApp.shown.viewer.facts.title === 'Your file'")
    words = "Recorded on another machine (<b>Abacus</b> 9, 2 threads, float64)."
    assert page.inner_text(".app-what .app-machine") == words
    assert "<b>Abacus</b> 9 · 2 threads" in page.inner_text(".ss-foot >> nth=0")


MODEL = ("Your own prompt", "Run live", "Change", "Landscape", "What if?", "press Race")


@slow  # some seconds in a browser
def test_a_replay_page_offers_what_needs_no_model(new_page: NewPage) -> None:
    app_state = AppState(replay_only=True)
    landing = app_state.recordings.landing
    assert landing is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    site = server.Site(app_state.calls.recording_lines(landing.id), opening(app_state.recordings))
    running = server.Running(ui.build(app_state), site, app_state.tracker, Owner()).start("127.0.0.1", port)
    try:
        page = Served(f"http://127.0.0.1:{port}/", app_state).land(new_page())
        visible = "button:not([role=tab]):visible, summary:visible, .app-shows:visible"
        page.wait_for_selector(".app-first")
        seen = page.locator(visible).all_inner_texts()
        page.click(".app-first")
        page.wait_for_selector(".app-root", state="visible")
        seen += page.locator(visible).all_inner_texts()
        page.get_by_role("tab", name="Race").click()
        page.wait_for_function("SpecscopeApp.shown.race?.length > 0")
        seen += page.locator(visible).all_inner_texts()
        assert "Recorded runs" in seen
        assert not [words for words in seen for name in MODEL if name in words]
        page.reload()
        page.wait_for_selector("#race .ss-lane", state="visible")
        assert "left out" not in page.inner_text("#race")
        page.goto(f"{page.url}&methods=jacobi")
        page.wait_for_selector("#race .app-what >> text='methods' in the address was left out")
    finally:
        running.stop()
