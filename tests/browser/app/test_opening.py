"""The first ten seconds: a recorded race that plays once by itself, what it came to, and the ways on from it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from app.jobs.recorded_race import OPENING
from app.store.recordings import Recordings
from decoding.types import Trace
from tests.tiers import choose

from .conftest import Served
from .test_visitors import begin, nobody_is_left, slow

__all__ = ["slow"]

pytestmark = pytest.mark.filterwarnings("default")  # the server runs in this process, and Gradio's parts warn
NewPage = Callable[..., Any]
PLAYER = "SpecscopeApp.shown.viewer.player"
RACE = "SpecscopeApp.shown.viewer.opening.race"
GONE = "!document.querySelector('.app-opening') && !SpecscopeApp.shown.viewer.opening?.covers"


@pytest.fixture(scope="module")
def runs() -> list[Trace]:
    """Return the recordings that race: first the autoregressive one."""
    traces = [Recordings().trace(run) for run in OPENING.runs]
    return [trace for trace in traces if trace is not None]


def end_of(page: Any) -> None:
    """Wait until the race is over; it is played faster than for a visitor."""
    page.evaluate(f"{RACE}.change({{ speed: 2 }})")
    page.wait_for_function(f"{RACE}.ended")
    page.wait_for_selector(".ss-opening .ss-headline:not(:empty)")


def test_it_plays_once_by_itself_and_its_headline_is_the_records(
    new_page: NewPage, served: Served, runs: list[Trace]
) -> None:
    page = served.land(new_page(height=720))
    page.wait_for_function(f"{RACE}.state.playing && {RACE}.state.time > 0")
    assert page.inner_text(".app-asks") == f"SmolLM2 135M is asked: “{OPENING.prompt}”"
    assert page.locator(".ss-opening .ss-headline").inner_text() == ""
    assert page.evaluate(f"{RACE}.state.speed") is None  # slowed
    end_of(page)
    plain, fast = runs
    assert plain.ids == fast.ids
    times = [sum(step.timing.total_ms for step in trace.steps) for trace in (fast, plain)]
    words = "{:.2f} s; autoregressive decoding took {:.2f} s.".format(*(time / 1000 for time in times))
    assert page.inner_text(".ss-opening .ss-headline") == f"Prompt lookup finished first, in {words}"
    passes = f"{len(fast.steps)} instead of {len(plain.steps)}"
    assert f"It wrote the same text in fewer passes: {passes}." in page.inner_text(".ss-opening .ss-times")
    factor = re.search(r"Shown (\d+) times slower", page.inner_text(".ss-opening .ss-times"))
    assert factor and 4 < int(factor[1]) * times[1] / 1000 < 8  # seconds that it plays
    for lane, trace in enumerate(runs):
        seen = page.locator(f".ss-opening [data-lane='{lane}'] .ss-token:visible").all_inner_texts()
        text = "".join(trace.texts[token] for token in trace.ids if token not in trace.header.end_tokens)
        assert "".join(seen) == text
    assert not page.evaluate(f"{RACE}.state.playing") and page.locator("#run-go").is_hidden()


@pytest.mark.slow  # some seconds in a browser
@pytest.mark.parametrize(("width", "height"), [(1280, 720), pytest.param(390, 844, marks=pytest.mark.slow)])
def test_its_words_can_be_read_and_all_of_it_is_in_sight(
    new_page: NewPage, served: Served, width: int, height: int
) -> None:
    """On a projector and on a phone; nothing moves while it plays."""
    page = served.land(new_page(width=width, height=height))
    bottom = "document.querySelector('.ss-opening .app-first').getBoundingClientRect().bottom"
    page.wait_for_function(f"{RACE}.state.playing")
    before = page.evaluate(bottom)
    end_of(page)
    size = page.evaluate("parseFloat(getComputedStyle(document.querySelector('.ss-opening .ss-token')).fontSize)")
    assert size >= 20
    assert before == page.evaluate(bottom) <= height
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow  # some seconds in a browser
def test_it_is_stepped_through_by_keyboard_before_its_end(new_page: NewPage, served: Served) -> None:
    page = served.land(new_page(height=720))
    page.wait_for_function(f"{RACE}.state.playing")
    page.focus(".app-first")
    page.keyboard.press("Enter")
    landing = Recordings().landing
    assert landing is not None and landing.id == OPENING.runs[-1]
    page.wait_for_function(GONE)
    assert f"run={landing.id}" in page.url
    assert page.evaluate(f"[{PLAYER}.state.step, SpecscopeApp.shown.viewer.facts.run]") == [landing.step, landing.id]
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Player"
    # The text is where it is written, although it could not scroll while it was hidden.
    page.wait_for_function(
        "(() => { const box = document.querySelector('.app-root .ss-text').getBoundingClientRect();"
        f" const {{ tokens, until }} = {PLAYER}.text, at = tokens[until - 1].span.getBoundingClientRect();"
        " return box.height > 0 && at.top >= box.top && at.bottom <= box.bottom + 1; })()"
    )
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"{PLAYER}.root.dataset.at === '{landing.step + 1}/commit'")
    page.wait_for_function(f"location.search.includes('run={landing.id}&step={landing.step + 1}')")
    page.wait_for_selector(".app-settings")  # the form is folded away


@pytest.mark.slow  # some seconds in a browser
def test_keys_of_the_player_are_not_heard_behind_it_and_space_is_the_races(new_page: NewPage, served: Served) -> None:
    page = served.land(new_page())
    page.wait_for_function(f"{RACE}.state.playing")
    step = page.evaluate(f"{PLAYER}.state.step")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.wait_for_function(f"!{RACE}.state.playing && !{RACE}.ended")
    assert page.evaluate(f"[{PLAYER}.state.step, {PLAYER}.state.playing]") == [step, False]
    end_of_race = page.evaluate(f"{RACE}.length")
    page.evaluate(f"{RACE}.change({{ time: {end_of_race}, playing: false }})")
    page.click("text=Watch again")
    page.wait_for_function(f"{RACE}.state.playing && {RACE}.state.time < {end_of_race}")
    page.wait_for_function("document.querySelector('.ss-opening .ss-headline').textContent === ''")


@pytest.mark.slow  # some seconds in a browser
def test_without_motion_it_shows_its_end_at_once(new_page: NewPage, served: Served) -> None:
    page = new_page(alone=True, reduced_motion="reduce")
    page.add_init_script(
        "addEventListener('DOMContentLoaded', () => new MutationObserver(() => {"
        " if (globalThis.SpecscopeApp?.shown.viewer?.opening?.race.state.playing) globalThis.played = true;"
        "}).observe(document.body, { subtree: true, childList: true }));"
    )
    served.land(page)
    page.wait_for_selector(".ss-opening .ss-headline:not(:empty)")
    assert page.evaluate(f"[{RACE}.ended, {RACE}.state.playing, globalThis.played ?? false]") == [True, False, False]


ADDRESSES = ["?run=jacobi-defaults", "?method=lookahead", "?screen=race", "?example=sum", "?step=3", "?run=nobody"]


@pytest.mark.slow  # some seconds in a browser
@pytest.mark.parametrize("query", choose(ADDRESSES, ADDRESSES[2:4]))  # other tests open the page by the others
def test_an_address_leads_past_it(new_page: NewPage, served: Served, query: str) -> None:
    page = served.land(new_page(), query)
    assert page.evaluate(GONE) and not page.evaluate("document.body.classList.contains('app-opens')")


@pytest.mark.slow  # the test of Back goes by each of them
def test_other_ways_lead_on(new_page: NewPage, served: Served) -> None:
    page = served.land(new_page(), "?__theme=dark")  # a theme alone is no place
    page.click("text=Your own prompt")
    page.wait_for_function("document.activeElement === document.querySelector('#run-prompt textarea')")
    served.land(page)
    page.click(".app-opening >> text=Recorded runs")
    page.click('.app-card[data-run="jacobi-defaults"]')
    page.wait_for_function("SpecscopeApp.shown.viewer.facts.run === 'jacobi-defaults'")
    assert page.evaluate(GONE) and page.is_visible(".app-root")


@pytest.mark.slow  # some seconds in a browser
def test_back_from_what_it_led_to_shows_it_as_it_was(new_page: NewPage, served: Served) -> None:
    """Its address stayed after it was left, so that Back left the site."""
    page = served.land(new_page())
    page.wait_for_function(f"{RACE}.state.playing && {RACE}.state.time > 0")
    page.click("text=Step through it")
    page.wait_for_function(GONE)
    page.go_back()
    page.wait_for_function(f"SpecscopeApp.shown.viewer.opening.covers && {RACE}.state.playing")
    end_of(page)
    page.go_forward()
    page.wait_for_function(f"{GONE} && {PLAYER}.state.step === SpecscopeApp.shown.viewer.facts.step")
    page.go_back()
    page.wait_for_function(f"SpecscopeApp.shown.viewer.opening.covers && {RACE}.ended && !{RACE}.state.playing")
    page.click(".app-opening >> text=Your own prompt")
    page.reload()
    page.wait_for_selector("#run-prompt textarea", state="visible")
    page.click(".app-home")
    page.click(".app-opening >> text=Recorded runs")
    page.click('.app-card[data-run="jacobi-defaults"]')
    page.wait_for_function(f"{GONE} && location.search.includes('run=jacobi-defaults')")
    page.go_back()
    page.wait_for_selector(".app-opening")
    page.reload()
    page.wait_for_selector(".app-opening")


PLACES = ["?run=jacobi-defaults&__theme=dark", "?screen=race", "?screen=debug"]


@pytest.mark.slow  # some seconds in a browser
@pytest.mark.parametrize("query", choose(PLACES, PLACES[:1]))  # the name stands above all of them
def test_the_pages_name_leads_to_it_from_everywhere(new_page: NewPage, served: Served, query: str) -> None:
    page = served.open(new_page(), query, form=False)  # the server turns to the tab that it names
    page.focus(".app-home")
    page.keyboard.press("Enter")
    page.wait_for_selector(".app-opening", state="visible")
    assert parse_qs(urlsplit(page.url).query).keys() <= {"__theme"}
    page.go_back()
    wanted = query.removeprefix("?").partition("&")[0]
    page.wait_for_function("(wanted) => location.search.includes(wanted)", arg=wanted)
    page.wait_for_function("!document.querySelector('.app-opening')?.offsetParent")


@pytest.mark.slow  # no run hears of what covers it
def test_a_live_run_goes_on_behind_it(new_page: NewPage, served: Served, slow: threading.Event) -> None:
    page = served.open(new_page(), "?method=autoregressive&length=60&prompt=Monday%3A")
    page.wait_for_function("document.querySelector('#run-length input')?.value === '60'")
    begin(page)
    run = page.evaluate("SpecscopeApp.shown.viewer.facts.run")
    page.click(".app-home")
    page.wait_for_selector(".app-opening", state="visible")
    slow.set()
    page.wait_for_function(f"{PLAYER}.record.check")
    page.go_back()
    page.wait_for_function(f"{GONE} && SpecscopeApp.shown.viewer.facts.run === '{run}'")
    page.click(".app-home")
    page.click("text=Step through it")
    page.wait_for_function(f"{GONE} && SpecscopeApp.shown.viewer.facts.run !== '{run}'")
    page.click(".app-home")
    page.click(".app-opening >> text=Back to your run")
    page.wait_for_function(f"{GONE} && SpecscopeApp.shown.viewer.facts.run === '{run}'")
    nobody_is_left(served)


@pytest.mark.slow  # some seconds in a browser
def test_a_trace_that_is_dropped_on_it_is_shown(new_page: NewPage, served: Served) -> None:
    from .test_around import DROP, GOLDEN

    page = served.land(new_page())
    page.wait_for_function(f"{RACE}.state.playing")
    page.evaluate(DROP, [".app-opening", (GOLDEN / "medusa.jsonl").read_text()])
    page.wait_for_selector(".app-title:has-text('Medusa')", state="visible")
    assert page.evaluate(GONE)


@pytest.mark.slow  # some seconds in a browser
@pytest.mark.parametrize("theme", choose(["light", "dark"], ["dark"]))  # the page itself is looked at in light
def test_it_has_no_serious_violation_of_accessibility(new_page: NewPage, served: Served, theme: str) -> None:
    axe_core_python = pytest.importorskip("axe_core_python.sync_playwright")
    page = served.land(new_page(height=720), f"?__theme={theme}")
    end_of(page)
    report = axe_core_python.Axe().run(page)
    heavy = [each for each in report["violations"] if each["impact"] in ("serious", "critical")]
    assert [each["id"] for each in report["violations"] if each in heavy or each["id"] == "heading-order"] == []


@pytest.mark.slow  # some seconds in a browser
def test_where_it_cannot_be_loaded_the_player_stands_there(chromium: Any, served: Served) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.route("**/specscope/opening*", lambda route: route.abort())
    served.land(page)
    page.wait_for_function(GONE)
    assert page.is_visible(".app-root .ss-text") and page.is_visible(".app-settings")
    context.close()
