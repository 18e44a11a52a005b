"""The form and the player agree: what is opened fills the form, and the form's runs stand in or beside the player."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from decoding import load
from decoding.trace.file import write_trace
from tests.tiers import choose

from .conftest import Served
from .test_page import PLAYER, run_to_the_end
from .test_visitors import begin, nobody_is_left, slow

__all__ = ["slow"]
pytestmark = pytest.mark.filterwarnings("default")  # the server runs in this process, and Gradio's parts warn
NewPage = Callable[..., Any]
VALUE = "([selector, value]) => document.querySelector(selector)?.value === value"
WINDOW = "#p-lookahead-W input[type=number]"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Make a sampled run of the model that the page serves, as a file."""
    made = load("toy").generate(
        "Monday: high tide", "lookahead", {"W": 6, "N": 3, "G": 5}, {"temperature": 0.5, "seed": 4}, 20, record="full"
    )
    path = tmp_path / "run.jsonl"
    with path.open("w", encoding="ascii") as file:
        write_trace(made.trace, file)
    return path


def has(page: Any, selector: str, value: str) -> None:
    page.wait_for_function(VALUE, arg=[selector, value])


def open_trace(page: Any, trace: Path) -> None:
    page.set_input_files(".app-bar input[type=file]", trace)
    page.wait_for_function("SpecscopeApp.shown.viewer.facts.title === 'Your file'")


@pytest.mark.slow  # some seconds in a browser
def test_what_is_opened_fills_the_form_and_runs_again_with_one_press(
    new_page: NewPage, served: Served, trace: Path
) -> None:
    page = served.open(new_page())
    run = page.evaluate("SpecscopeApp.shown.viewer.facts.run")
    page.click("#run-again")
    page.wait_for_selector("#run-form .app-said:has-text('does not have the run')")
    assert page.evaluate("SpecscopeApp.shown.viewer.facts.run") == run and page.evaluate(f"{PLAYER}.record.last") > 0
    open_trace(page, trace)
    recorded = page.evaluate(f"{PLAYER}.record.steps.map((step) => step.emitted)")
    has(page, "#run-prompt textarea", "Monday: high tide")
    has(page, WINDOW, "6")
    has(page, "#run-length input", "20")
    page.click("#run-form button:has-text('Sampling')")
    has(page, "#s-seed input", "4")
    has(page, "#run-method input", "Lookahead")
    page.click(".app-recorded")
    page.click('.app-card[data-run="draft-model-names"]')
    has(page, "#run-prompt textarea", "Who are Xolvor, Britk, Umqar, Zedfin and Wolqua?")
    has(page, "#run-example input", "None: write your own prompt")  # no model of this page understands the example
    has(
        page, "#p-draft-model-gamma input[type=number]", str(page.evaluate(f"{PLAYER}.record.head.header.params.gamma"))
    )
    page.wait_for_selector("#run .app-hint:has-text('does not have the run')")  # it is the toy's here
    page.go_back()
    has(page, "#run-prompt textarea", "Monday: high tide")
    has(page, WINDOW, "6")
    page.fill(WINDOW, "9")  # which is no setting of the record
    page.click("#run-again")
    page.wait_for_function(f"SpecscopeApp.shown.viewer.facts.live && {PLAYER}.record.check")
    assert page.evaluate(f"{PLAYER}.record.steps.map((step) => step.emitted)") == recorded
    has(page, WINDOW, "6")


@pytest.mark.slow  # some seconds in a browser
@pytest.mark.parametrize("width", choose([1440, 390], [390]))
def test_one_setting_is_changed_and_two_players_go_in_step(
    new_page: NewPage, served: Served, trace: Path, width: int
) -> None:
    page = served.open(new_page(width=width, height=900))
    open_trace(page, trace)
    has(page, WINDOW, "6")
    page.click(".app-change")
    page.fill(WINDOW, "3")
    page.click("#run-beside")
    second = "SpecscopeApp.shown.viewer.second.beside.player"
    page.wait_for_function(f"SpecscopeApp.shown.viewer.second.beside && {second}.record.end")
    page.wait_for_selector(".app-verdict:has-text('Window size (W) 6 → 3')")
    assert "the same text" in page.inner_text(".app-verdict")
    assert (
        page.evaluate("SpecscopeApp.shown.viewer.facts.title") == "Your file" and page.locator(".app-back").is_hidden()
    )
    first, beside = (page.locator(part).bounding_box() for part in (".app-lead", ".app-beside"))
    assert beside["y"] > first["y"] if width == 390 else beside["x"] > first["x"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    written = """(player) => {
      const { record, state } = player, step = record.steps[state.step];
      return step.start - record.head.header.prompt_length + step.emitted.length;
    }"""
    page.click(".app-title")
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowRight", "End"):
        page.keyboard.press(key)
        page.wait_for_function(f"{PLAYER}.request === undefined && {second}.request === undefined")
        one, other = page.evaluate(f"[{PLAYER}, {second}].map({written})")
        whole = page.evaluate(f"{second}.record.steps[{second}.state.step].emitted.length")
        assert one <= other < one + whole  # in the step that writes the same token
    page.focus(".app-beside .ss-text")  # its keys are the first player's
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(f"{PLAYER}.state.step === {PLAYER}.record.last - 1")
    page.click(".app-beside-close")
    page.wait_for_selector(".app-beside", state="detached")
    assert page.locator(".app-back").is_visible()
    assert page.evaluate(f"document.activeElement === {PLAYER}.root")  # the keys go on there


@pytest.mark.slow  # some seconds in a browser
def test_a_refused_prompt_leaves_what_is_shown_and_moves_nothing(new_page: NewPage, served: Served) -> None:
    """It wiped the player, and its sentence slid under the transport bar."""
    page = served.open(new_page(height=720))
    page.wait_for_selector("#run-go")
    page.evaluate("scrollTo(0, 200)")
    before = page.evaluate(f"[SpecscopeApp.shown.viewer.facts.run, {PLAYER}.root.dataset.at]")
    words = "document.querySelector('.ss-words').getBoundingClientRect().top"
    page.fill("#run-prompt textarea", " ")
    page.wait_for_function("document.querySelector('#run-form .app-hint').innerText.trim() === ''")  # of the example
    place = page.evaluate(words)
    for _ in range(2):
        page.click("#run-go")
        part = "#run-form .app-said"
        page.wait_for_selector(f"{part}:has-text('The prompt is empty')")
        assert page.locator(":text('The prompt is empty'):visible").count() == 1
        box = page.locator(part).bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 720
        on_top = "([x, y, part]) => Boolean(document.elementFromPoint(x, y)?.closest(part))"
        assert page.evaluate(on_top, [box["x"] + 20, box["y"] + box["height"] / 2, part])
    assert page.evaluate(f"[SpecscopeApp.shown.viewer.facts.run, {PLAYER}.root.dataset.at]") == before
    assert page.evaluate(words) == place


@pytest.mark.slow  # some seconds in a browser
def test_a_run_that_ends_stays_at_its_answer(new_page: NewPage, served: Served) -> None:
    """It jumped to an earlier step, and the answer was gone."""
    page = served.open(new_page())
    page.fill("#run-length input", "24")
    run_to_the_end(page)
    last, step = page.evaluate(f"[{PLAYER}.record.last, SpecscopeApp.shown.viewer.facts.step]")
    assert 0 < step < last
    page.wait_for_function(f"location.search.includes('step={last}')")
    assert page.inner_text(".ss-headline").startswith(f"{last + 1} passes wrote 24 tokens: ")
    assert page.locator("#run-stop").get_attribute("aria-disabled") == "true"  # there is nothing to stop
    page.click(".ss-conclusion button")
    page.wait_for_function(f"location.search.includes('step={step}')")
    assert not page.locator(".ss-conclusion").is_visible()


@pytest.mark.slow  # some seconds in a browser
def test_a_visitor_who_has_moved_is_left_there(new_page: NewPage, served: Served, slow: Any) -> None:
    page = served.open(new_page(), "?method=autoregressive&length=40&prompt=Monday%3A")
    has(page, "#run-length input", "40")
    begin(page)
    page.click(".app-title")
    page.keyboard.press("Home")
    page.wait_for_function(f"{PLAYER}.state.step === 0")
    slow.set()
    page.wait_for_function(f"{PLAYER}.record.check")
    assert page.evaluate(f"{PLAYER}.state.step") == 0
    nobody_is_left(served)


@pytest.mark.slow  # some seconds in a browser
def test_the_settings_that_a_card_advises_fill_the_form(new_page: NewPage, served: Served) -> None:
    """No shipped folder has a rule that is surely faster: the server's answer is given one."""
    page = new_page()
    page.goto(f"{served.address}?screen=debug&chart=stop_rules")
    card = "SpecscopeApp.shown.debug.cards.cards.find(({ facts }) => facts.key === 'stop_rules')"
    page.wait_for_function(f"globalThis.SpecscopeApp?.shown.debug && {card}?.measured")
    assert page.locator("text=Open a run with these settings").count() == 0
    page.evaluate(f"{{ const card = {card}; card.measured.results[0].run = 'method=lookahead&p.W=6'; card.draw(); }}")
    page.click("text=Open a run with these settings")
    has(page, WINDOW, "6")
    has(page, "#run-method input", "Lookahead")
