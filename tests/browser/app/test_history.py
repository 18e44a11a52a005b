"""Back and Forward: what was shown is shown again, and nobody leaves the page by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Served
from .test_around import DROP, GOLDEN
from .test_page import PLAYER, run_to_the_end

pytestmark = pytest.mark.filterwarnings("default")  # the server runs in this process, and Gradio's parts warn
NewPage = Callable[..., Any]
RUN = "SpecscopeApp.shown.viewer.facts.run"


def choose(page: Any, run: str) -> None:
    page.click(".app-recorded")
    page.click(f'.app-card[data-run="{run}"]')
    page.wait_for_function(f"{RUN} === '{run}'")


def go(page: Any, keys: list[str], step: int) -> None:
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_function(f"location.search.includes('step={step}&')")


def shows(page: Any, run: str, step: int) -> None:
    page.wait_for_function(f"{RUN} === '{run}' && {PLAYER}.state.step === {step}")
    page.wait_for_function("(run) => document.querySelector('.app-root').dataset.run === run", arg=run)


@pytest.mark.slow  # many pages of history
def test_back_and_forward_bring_what_was_shown(new_page: NewPage, served: Served) -> None:
    """After two recordings, Back left the site."""
    page = served.open(new_page())
    landing = page.evaluate(RUN)
    page.keyboard.press("Home")
    page.wait_for_function("location.search.includes('step=0')")
    choose(page, "jacobi-defaults")
    go(page, ["Home", "ArrowRight", "ArrowRight", "ArrowRight"], 3)
    choose(page, "medusa-defaults")
    go(page, ["Home", "ArrowRight"], 1)
    page.click(".ss-tab:has-text('Token tree')")
    page.wait_for_function("location.search.includes('view=tree')")
    page.go_back()
    shows(page, "jacobi-defaults", 3)
    page.go_back()
    shows(page, landing, 0)
    page.go_forward()
    shows(page, "jacobi-defaults", 3)
    page.go_forward()
    shows(page, "medusa-defaults", 1)
    assert page.evaluate(f"{PLAYER}.state.open.has('tree')")


@pytest.mark.slow  # some seconds in a browser
def test_moves_within_a_run_are_no_entries(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page())
    choose(page, "jacobi-defaults")
    before = page.evaluate("history.length")
    go(page, ["Home"], 0)
    go(page, ["End", "Home", "ArrowRight"], 1)
    assert page.evaluate("history.length") == before


@pytest.mark.slow  # Back and Forward find recordings by default
def test_back_finds_a_run_of_ones_own_and_a_file(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page())
    page.fill("#run-length input", "16")
    run_to_the_end(page)
    run, last = page.evaluate(f"[{RUN}, {PLAYER}.record.last]")
    page.wait_for_function(f"location.search.includes('run={run}') && {PLAYER}.state.step === {last}")
    assert page.evaluate(DROP, [".ss-text", (GOLDEN / "medusa.jsonl").read_text()]) == [True] * 4
    page.wait_for_function("SpecscopeApp.shown.viewer.facts.title === 'Your file'")
    file = page.evaluate(RUN)
    choose(page, "jacobi-defaults")
    page.go_back()
    page.wait_for_function(f"{RUN} === '{file}'")
    page.go_back()
    page.wait_for_function(f"{RUN} === '{run}'")


@pytest.mark.slow  # some seconds in a browser
def test_back_turns_to_the_tab_that_was_seen(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page())
    page.get_by_role("tab", name="Race").click()
    page.wait_for_selector("#race-go", state="visible")
    page.go_back()
    page.wait_for_selector("#run-go", state="visible")
    page.go_forward()
    page.wait_for_selector("#race-go", state="visible")
    assert page.evaluate("location.search") == "?screen=race"


FRAME = "getComputedStyle(SpecscopeApp.shown.viewer.player.root).outlineStyle !== 'none'"


@pytest.mark.slow  # a look of the focus
def test_only_who_moves_by_keys_sees_that_the_player_has_them(new_page: NewPage, served: Served) -> None:
    """A frame stayed around the whole player after a file was opened, or a recording chosen with the mouse."""
    page = served.open(new_page())
    choose(page, "jacobi-defaults")
    assert page.evaluate(DROP, [".ss-text", (GOLDEN / "medusa.jsonl").read_text()]) == [True] * 4
    page.wait_for_function("SpecscopeApp.shown.viewer.facts.title === 'Your file'")
    page.keyboard.press("Home")
    page.wait_for_function(f"{PLAYER}.state.step === 0")
    assert page.evaluate(f"document.activeElement === {PLAYER}.root")
    assert not page.evaluate(FRAME)
    page.focus(".app-details")
    page.keyboard.press("Tab")
    page.focus(".app-recorded")
    page.keyboard.press("Enter")
    page.focus('.app-card[data-run="jacobi-defaults"]')
    page.keyboard.press("Enter")
    page.wait_for_function(f"{RUN} === 'jacobi-defaults'")
    page.wait_for_function(f"document.activeElement === {PLAYER}.root")
    assert page.evaluate(FRAME)
