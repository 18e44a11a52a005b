"""The page in a real browser: what a visitor sees first, a live run, an address, a file, a race."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from app.store.recordings import Recordings
from tests.tiers import choose, slow
from tools.page import Visitor

from .conftest import Served

GOLDEN = Path(__file__).parents[2] / "golden"
pytestmark = pytest.mark.filterwarnings("default")  # the server runs in this process, and Gradio's parts warn
NewPage = Callable[..., Any]
PLAYER = "SpecscopeApp.shown.viewer.player"


def shown(page: Any) -> tuple[int, str]:
    """The step on the screen, and of which run."""
    got = page.evaluate(f"[{PLAYER}.state.step, SpecscopeApp.shown.viewer.facts.run]")
    return got[0], got[1]


def run_to_the_end(page: Any) -> None:
    page.click("#run-go")
    page.wait_for_function(f"!SpecscopeApp.shown.viewer.facts.title && {PLAYER}.record.check")


def test_a_recorded_run_is_opened_at_a_step_worth_seeing(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page())
    landing = Recordings().landing
    assert landing is not None and shown(page) == (landing.step, landing.id)
    assert page.inner_text(".app-title") == landing.title
    assert not page.evaluate(f"{PLAYER}.state.playing")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"{PLAYER}.state.step === {landing.step + 1}")
    page.keyboard.press("Space")
    page.wait_for_function(f"{PLAYER}.state.step > {landing.step + 1}")
    page.keyboard.press("Space")
    page.keyboard.press("Home")
    page.wait_for_function("new URLSearchParams(location.search).get('step') === '0'")
    assert f"run={landing.id}" in page.url


@slow  # some seconds in a browser
def test_charts_that_cannot_be_loaded_are_told_of(chromium: Any, served: Served) -> None:
    """Once the page waited for them for ever, twenty times a second, and said nothing."""
    context = chromium.new_context(viewport={"width": 1280, "height": 1800})  # charts are asked for where they are seen
    page = context.new_page()
    page.route("**/*plotly*", lambda route: route.abort())
    served.open(page, "?view=mask")
    page.wait_for_function("document.querySelector('.ss-notice').textContent.startsWith('The charts could not be')")
    page.wait_for_function(f"!{PLAYER}.waits")
    context.close()


@slow  # some seconds in a browser
def test_a_script_that_comes_after_the_page_fills_it_all_the_same(new_page: NewPage, served: Served) -> None:
    """Gradio waits for no script: on a slow network its components come first."""
    page, held = new_page(), list[Any]()
    page.route("**/specscope/player?*", lambda route: held.append(route))
    page.goto(f"{served.address}?screen=learn&lesson=verify", wait_until="commit")
    page.wait_for_selector("#app-theme")
    page.wait_for_function("document.querySelector('#learn .html-container, #learn-viewer')")
    assert page.evaluate("globalThis.SpecscopeApp") is None
    held.pop().continue_()
    page.wait_for_selector(".app-learn-foot")
    page.click("#app-theme")
    page.wait_for_function("document.body.classList.contains('dark')")


@slow  # some seconds in a browser
def test_a_phone_needs_no_sideways_scrolling_and_has_all_controls(new_page: NewPage, served: Served) -> None:
    """Its form stands below the player: with a run the page goes up to the text, though the player's foot was seen."""
    page = served.open(new_page(width=390, height=844), "?__theme=dark")
    assert page.evaluate("document.body.classList.contains('dark')")
    seen, form = page.locator(".app-root").bounding_box(), page.locator("#run-go").bounding_box()
    assert seen["y"] < form["y"]  # what there is to see stands above the form
    jump = page.get_by_role("button", name="Next rejection")
    assert not jump.is_visible()
    page.get_by_role("button", name="More controls").click()
    step = page.evaluate(f"{PLAYER}.state.step")
    jump.click()
    page.wait_for_function(f"{PLAYER}.state.step > {step}")
    assert page.locator(".ss-find").is_visible() and page.get_by_text("Sub-steps").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("tab", name="Race").click()
    page.wait_for_selector("#race-go")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("tab", name="Run").click()
    page.wait_for_selector("#run-go")
    text = "document.querySelector('.ss-text').getBoundingClientRect()"
    page.evaluate("scrollTo(0, scrollY + document.querySelector('.app-root').getBoundingClientRect().bottom - 300)")
    assert page.evaluate(f"{text}.bottom < 0")
    page.evaluate("document.querySelector('#run-go').focus({ preventScroll: true })")
    page.keyboard.press("Enter")
    page.wait_for_function(f"{text}.top >= 0 && {text}.bottom <= innerHeight")


def test_a_live_run_is_seen_proven_and_found_again_by_its_address(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page(), "?method=lookahead")
    page.fill("#run-prompt textarea", "Monday: high <tide> & `low`")
    page.fill("#run-length input", "24")
    run_to_the_end(page)
    assert page.evaluate(f"{PLAYER}.record.check.exact === {PLAYER}.record.check.checked")
    page.keyboard.press("Escape")
    page.click(".app-title")
    page.keyboard.press("Home")
    page.wait_for_function("new URLSearchParams(location.search).get('step') === '0'")
    query = parse_qs(urlsplit(page.url).query)
    assert query["method"] == ["lookahead"] and query["prompt"] == ["Monday: high <tide> & `low`"]
    first = page.evaluate(f"JSON.stringify({PLAYER}.record.steps.map((step) => step.emitted))")
    again = served.open(new_page(), "?" + urlsplit(page.url).query)
    again.wait_for_function("!SpecscopeApp.shown.viewer.facts.title")
    assert again.evaluate(f"{PLAYER}.state.step") == 0
    assert again.input_value("#run-prompt textarea") == "Monday: high <tide> & `low`"
    assert again.input_value("#run-length input") == "24"
    assert again.evaluate(f"JSON.stringify({PLAYER}.record.steps.map((step) => step.emitted))") == first


def test_an_unknown_run_says_so_and_the_page_lives(new_page: NewPage, served: Served) -> None:
    page = new_page()
    page.goto(served.address + "?run=" + "x" * 22)
    page.wait_for_function("document.body.innerText.includes('no longer stores')")
    page.click(".app-recorded")
    page.click('.app-card[data-run="prompt-lookup-defaults"]')
    page.wait_for_function("SpecscopeApp.shown.viewer.facts.run === 'prompt-lookup-defaults'")
    assert "run=prompt-lookup-defaults" in page.url


@slow  # some seconds in a browser
def test_the_same_mistake_twice_is_told_twice(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page())
    for _ in range(2):
        page.fill("#run-prompt textarea", " ")
        page.click("#run-go")
        page.wait_for_selector("#run-form .app-said:has-text('The prompt is empty')")
        page.click(".app-recorded")
        page.click('.app-card[data-run="prompt-lookup-defaults"]')
        page.wait_for_function("SpecscopeApp.shown.viewer.facts.run === 'prompt-lookup-defaults'")
        page.wait_for_function("document.querySelector('#run-prompt textarea').value.length > 1")  # the recording's


def test_hostile_addresses_and_texts_are_inert(new_page: NewPage, served: Served, tmp_path: Path) -> None:
    """Tokens come from models and files: none may become markup, a template or a script. Nor may an address."""
    page = served.open(
        new_page(),
        "?screen=%3Cimg%20src=x%20onerror=alert(1)%3E&method=__import__&step=-1&view=$%7Balert(1)%7D&chat=%5B%5B",
    )
    page.wait_for_function("document.body.innerText.includes('in the address')")
    assert page.locator("img[src=x]").count() == 0
    landing = Recordings().landing
    assert landing is not None and shown(page)[1] == landing.id
    evil = [
        "<img src=x onerror=alert(1)>", "${alert(2)}", "`", "</script><script>alert(3)</script>", "\u202eabc",
        "\u200b\u200d", "{{constructor.constructor('alert(4)')()}}", "a" * 10_000, "&lt;b&gt;", "<a href='http://x'>y</a>",
    ]  # fmt: skip
    golden = [json.loads(line) for line in (GOLDEN / "lookahead.jsonl").read_text().splitlines()]
    for line in golden:
        if line["kind"] == "texts":
            line["texts"] = {token: evil[int(token) % len(evil)] for token in line["texts"]}
    written = [token for line in golden if line["kind"] == "step" for token in line["emitted"]]
    golden[-1]["text"] = "".join(evil[token % len(evil)] for token in written)  # or it would contradict itself
    path = tmp_path / "evil.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in golden))
    page.set_input_files(".app-bar input[type=file]", path)
    page.wait_for_function("SpecscopeApp.shown.viewer.facts.title === 'Your file'")
    for step in range(6, 12):
        page.evaluate(f"{PLAYER}.goto({{ step: {step} }})")
        page.wait_for_function(f"{PLAYER}.root.dataset.at === '{step}/commit'")
    assert page.locator("img[src=x], .app-root script, .ss a[href='http://x']").count() == 0
    assert "<img src=x onerror=alert(1)>" in page.evaluate("document.querySelector('.ss').textContent")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_a_race_is_run_raced_and_judged(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page())
    page.goto(served.address + "?screen=race&methods=autoregressive,lookahead,draft_model&length=24&prompt=Monday%3A")
    page.wait_for_selector("#race-go")
    page.wait_for_function("document.querySelector('#race-length input')?.value === '24'")
    page.click("#race-go")
    page.click("#race button[aria-label='Show the result']")
    page.wait_for_function("document.querySelector('#race .ss-verdict')?.textContent.includes('same 24 tokens')")
    assert page.locator(".ss-lane").count() == 3
    assert "methods=autoregressive%2Clookahead%2Cdraft_model" in page.url
    link = page.locator(".app-after a").nth(1)
    assert link.inner_text() == "Open Lookahead"
    opened = served.open(new_page(), "?" + urlsplit(link.get_attribute("href")).query)
    opened.wait_for_function(f"{PLAYER}.record.check?.exact === 24")
    assert opened.inner_text(".ss-title") == "Lookahead"


def test_a_method_races_with_settings_that_a_visitor_types(new_page: NewPage, served: Served) -> None:
    """Each method raced once, with a preset; the address opens the same race again."""
    page = served.open(
        new_page(), "?screen=race&methods=jacobi,lookahead&preset.lookahead=W=3&length=16&prompt=Monday%3A"
    )
    page.wait_for_function("document.querySelector('#race-length input')?.value === '16'")
    page.click("#race-methods label:has-text('Jacobi')")
    page.click("text=Settings of the methods")
    page.fill("#race-lookahead input", "W=4, N=3")
    page.click("#race-go")  # without Enter
    page.wait_for_function("SpecscopeApp.shown.race.address?.includes('methods=') && SpecscopeApp.shown.race.ready")
    titles = ["Lookahead (W=3)", "Lookahead (W=4, N=3)"]
    assert page.locator(".ss-lane h2").all_inner_texts() == titles
    assert page.locator(".app-after a").all_inner_texts() == [f"Open {title}" for title in titles]
    page.click("#race button[aria-label='Show the result']")
    page.wait_for_function("document.querySelector('#race .ss-verdict')?.textContent.includes('same 16 tokens')")
    chosen = (
        "[...document.querySelectorAll('#race-lookahead .token')].map((token) => token.innerText.trim()).join('; ')"
    )
    again = served.open(new_page(), "?" + urlsplit(page.url).query)
    again.wait_for_function(f"{chosen} === 'W=3; W=4, N=3'")
    assert again.locator("#race-methods input:checked").count() == 1


@slow  # some seconds in a browser
def test_a_reference_is_copied_from_and_travels_and_the_race_takes_the_prompt_along(
    new_page: NewPage, served: Served
) -> None:
    asked = "?method=prompt_lookup&length=24&prompt=Monday%3A+high+tide&reference=A%20tide%20table."
    page = served.open(new_page(), asked)
    page.wait_for_function("document.querySelector('#p-prompt-lookup-reference textarea')?.value === 'A tide table.'")
    run_to_the_end(page)
    assert "reference=A+tide+table." in page.evaluate("SpecscopeApp.shown.viewer.facts.address")
    page.click(".app-title")
    page.keyboard.press("c")
    page.wait_for_function("document.querySelector('#race-prompt textarea')?.value === 'Monday: high tide'")
    page.wait_for_function("document.querySelector('#race-length input')?.value === '24'")


@slow  # some seconds in a browser
def test_a_second_run_joins_the_race(new_page: NewPage, served: Served) -> None:
    """It replaced the first one without a word."""
    page = served.open(new_page())
    boxes = "[...document.querySelectorAll('#race-methods input:checked')]"
    chosen = f"{boxes}.map((box) => box.closest('label').innerText.trim()).join()"
    tide = "&length=24&prompt=Monday%3A+high+tide"
    for address, lanes in (
        (f"method=jacobi{tide}", "Autoregressive,Jacobi"),
        (f"method=lookahead{tide}", "Autoregressive,Jacobi,Lookahead"),
        ("method=lookahead&prompt=Tuesday", "Autoregressive,Lookahead"),
    ):
        pressed = f"SpecscopeApp.shown.viewer.io.race('model=toy&{address}')"
        # A press counts for nothing until the one before it is answered, so another follows.
        page.wait_for_function(f"{chosen} === '{lanes}' || ({pressed}, false)", polling=3000)
    assert "were replaced" in page.locator("#race .app-hint.prose").inner_text()


@slow  # some seconds in a browser
def test_the_race_takes_a_recording_along(new_page: NewPage, served: Served) -> None:
    """The key only led to the race, which stood there with a prompt of its own."""
    page = served.open(new_page(), "?run=draft-model-names")
    page.wait_for_function("SpecscopeApp.shown.viewer.facts.run === 'draft-model-names'")
    page.click(".app-title")
    page.keyboard.press("c")
    asked = "Who are Xolvor, Britk, Umqar, Zedfin and Wolqua?"
    page.wait_for_function(
        "(asked) => document.querySelector('#race-prompt textarea')?.value.includes(asked)", arg=asked
    )
    assert page.input_value("#race-length input") == "64"
    assert page.locator("#race-methods input:checked").count() == 2
    assert "does not have the run's model" in page.locator("#race .app-hint.prose").inner_text()  # it is the toy's here


COVERED = """() => {
  const field = document.activeElement, { left, top, width, height } = field.getBoundingClientRect();
  const above = [top + 2, top + height - 2].map((y) => document.elementFromPoint(left + width / 2, y));
  return above.some((each) => !field.contains(each) && !each?.contains(field));
}"""


@slow  # some seconds in a browser
def test_keys_come_to_nothing_that_is_covered(new_page: NewPage, served: Served) -> None:
    """At 200% the bar of Race covered the field that had the focus."""
    page = served.open(new_page(width=720, height=450), "?screen=race")
    page.wait_for_selector("#race .ss-lane")
    page.locator("#race-methods input").first.focus()
    seen = set()
    while "Race" not in seen:
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.innerText"))
        assert not page.evaluate(COVERED) and len(seen) < 12, seen
    assert {"New tokens", "Model"} <= seen


@slow  # some seconds in a browser
def test_a_menu_that_is_left_by_keys_closes(new_page: NewPage, served: Served) -> None:
    """Its list stayed open over the fields below it."""
    page = served.open(new_page(), "?screen=race")
    page.wait_for_selector("#race .ss-lane")
    for key in ("Tab", "Shift+Tab"):
        page.click("#race-model input")
        page.wait_for_selector("[role=listbox]", timeout=10_000)
        page.keyboard.press(key)
        page.wait_for_selector("[role=listbox]", state="detached", timeout=10_000)


@slow  # it opens the page four times
def test_the_chosen_theme_is_kept_and_an_address_wins(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page())
    page.click("#app-theme")
    for query, dark in (("", True), ("?__theme=light", False), ("?__theme=dark", True)):
        served.open(page, query)
        assert page.evaluate("document.body.classList.contains('dark')") is dark


@slow  # axe reads every screen; the opening is read always
@pytest.mark.parametrize("theme", choose(["light", "dark"], ["light"]))  # the opening is looked at in dark
def test_no_serious_violation_of_accessibility(new_page: NewPage, served: Served, theme: str) -> None:
    axe_core_python = pytest.importorskip("axe_core_python.sync_playwright")
    page = served.open(new_page(height=2400), f"?__theme={theme}&view=mask")  # charts are drawn where they can be seen
    page.keyboard.press("5")
    page.keyboard.press("n")
    page.keyboard.press("/")  # with what waits behind a button
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot').length >= 2")
    for tab in ("Run", "Race"):
        page.get_by_role("tab", name=tab).click()
        page.wait_for_selector("#race-go" if tab == "Race" else "#run-go")
        report = axe_core_python.Axe().run(page)
        serious = [
            (violation["id"], violation["nodes"][0]["html"][:200], violation["nodes"][0]["failureSummary"][:200])
            for violation in report["violations"]
            if violation["impact"] in ("serious", "critical")
        ]
        assert serious == []


@slow  # it watches a page at rest
def test_a_page_at_rest_draws_nothing(new_page: NewPage, served: Served) -> None:
    """Gradio's sign that the page is loading asked for sixty frames a second for as long as the page was open."""
    page = new_page(alone=True)
    page.add_init_script(
        "const ask = requestAnimationFrame; globalThis.asked = 0;"
        "globalThis.requestAnimationFrame = (drawn) => { globalThis.asked += 1; return ask(drawn); };"
    )
    served.open(page)
    rests = "(() => { const rests = asked === globalThis.before; globalThis.before = asked; return rests; })()"
    page.wait_for_function(rests, polling=300)
    step = page.evaluate(f"{PLAYER}.state.step")
    page.keyboard.press("ArrowRight")  # and what has to be drawn still is
    page.wait_for_function(f"{PLAYER}.root.dataset.at.startsWith('{step + 1}/')")


@slow  # some seconds in a browser
def test_only_the_chosen_methods_values_count(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page(), "?method=lookahead&length=24&prompt=Monday%3A")
    page.wait_for_function("document.querySelector('#run-length input')?.value === '24'")
    page.locator(".app-method input[type=number]:visible").first.fill("99999")
    page.click("#run-go")
    page.wait_for_function("document.querySelector('#run-form .app-said')?.textContent.includes('99999')")
    page.click("#run-method input")
    page.get_by_role("option", name="Autoregressive").click()
    run_to_the_end(page)
    assert page.inner_text(".ss-title") == "Autoregressive"


def test_no_component_hears_of_events(served: Served) -> None:
    """What Gradio tells of a run's progress, it tells to every input and output, and copies all of each for that."""
    got = Visitor(int(urlsplit(served.address).port or 0)).read()["dependencies"]
    events = [event for event in got if event["backend_fn"] and event["targets"][0][1] != "unload"]
    assert len(events) > 20 and all(event["show_progress_on"] == [] for event in events)
    assert max(len(event["inputs"]) for event in events) <= 2
    # The form of a run, for its buttons, those that race settings and its menu of models; and that of a race, for its
    # button, its menu of models and runs that are put into it: gathered before the event begins.
    assert sum(len(event["inputs"]) > 10 for event in got) == 7


@slow  # some seconds in a browser
def test_a_second_run_finds_the_views_as_they_were_left(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page(height=1800), "?method=autoregressive&length=24&prompt=Monday%3A")
    page.wait_for_function("document.querySelector('#run-length input')?.value === '24'")
    run_to_the_end(page)
    page.click(".ss-tab:has-text('Timeline')")
    page.click(".ss-tab:has-text('Lossless check')")
    page.click("[data-view=timeline] .ss-close")
    page.wait_for_function("!document.querySelector('.ss-card[data-view=timeline]')")
    opened = "[...document.querySelectorAll('.ss-card[data-view]')].map((card) => card.dataset.view)"
    left = page.evaluate(opened)
    page.evaluate(f"globalThis.before = {PLAYER}.record.version")
    page.evaluate("globalThis.card = document.querySelector('.ss-card[data-view]')")
    page.click("#run-go")
    page.wait_for_function(f"{PLAYER}.record.version !== before && {PLAYER}.record.check")
    page.wait_for_function("!document.querySelector('.ss-past')")
    assert "check" in left and page.evaluate(opened) == left
    assert page.evaluate("card.isConnected")


@slow  # some seconds in a browser
def test_a_long_text_is_scrolled_to_where_it_is_written(new_page: NewPage, served: Served) -> None:
    """It stood at its beginning, whatever was written below."""
    page = served.open(new_page(width=800, height=600), "?method=autoregressive&length=256&prompt=Monday%3A")
    page.wait_for_function("document.querySelector('#run-length input')?.value === '256'")
    run_to_the_end(page)
    seen = """(last) => {
      const text = document.querySelector('.ss-text'), { tokens, until } = SpecscopeApp.shown.viewer.player.text;
      const box = text.getBoundingClientRect(), at = tokens[until - 1].span.getBoundingClientRect();
      const inside = at.top >= box.top && at.bottom <= box.bottom + 1;
      return inside && (last ? text.scrollTop > 0 : text.scrollTop === 0);
    }"""
    page.wait_for_function(seen, arg=True)
    page.evaluate(f"{PLAYER}.seek(0)")
    page.wait_for_function(f"{PLAYER}.root.dataset.at.startsWith('0/')")
    page.wait_for_function(seen, arg=False)


@slow  # some seconds in a browser
def test_a_run_moves_nothing_that_is_in_sight_and_has_the_keys(new_page: NewPage, served: Served) -> None:
    """Once Space pressed Run again after the mouse had, and Home was for nobody."""
    page = served.open(new_page(height=800))
    page.fill("#run-length input", "24")  # the driver scrolls to what it writes into
    page.evaluate("scrollTo(0, 240)")
    before = page.evaluate("scrollY")
    run_to_the_end(page)
    assert page.evaluate("scrollY") == before > 0
    run = shown(page)[1]
    page.keyboard.press("Home")
    page.wait_for_function(f"{PLAYER}.state.step === 0")
    page.keyboard.press("Space")
    page.wait_for_function(f"{PLAYER}.state.step > 0")
    assert shown(page)[1] == run
