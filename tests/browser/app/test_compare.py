"""Two runs side by side: the same at the same height, each with its step, and an address that opens both again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.tiers import choose, slow

from .conftest import Served

HOSTILE = "%3Cimg%20src=x%20onerror=alert(1)%3E"
BOTH = "?run=smollm2-rain-lookahead&step=9&beside=smollm2-rain-medusa"
SECOND = "SpecscopeApp.shown.viewer.second.beside?.player"
TOPS = """[...document.querySelectorAll(".app-lead, .app-beside")].map((pane) =>
  [".ss-slim", ".ss-say", ".ss-text", ".ss-stage", ".ss-legend", "[data-view=tree]"].map((part) =>
    Math.round(pane.querySelector(part).getBoundingClientRect().top)))"""
STEPS = "[...document.querySelectorAll('.app-stage .ss-slim-step')].map((node) => node.innerText)"


@slow  # some seconds in a browser
def test_an_address_opens_two_runs_at_the_same_height(new_page: Callable[..., Any], served: Served) -> None:
    page = new_page(1440, 900)
    served.open(page, BOTH, form=False)
    page.wait_for_function(f"{SECOND}?.record.end && globalThis.Plotly")
    page.evaluate("SpecscopeApp.shown.viewer.player.cards.goto('tree')")
    page.wait_for_selector(".app-beside [data-view=tree]")
    page.wait_for_function(f"(([one, other]) => one.every((top, i) => Math.abs(top - other[i]) <= 1))({TOPS})")
    assert page.evaluate(STEPS)[0] == "Step 9 of 68"
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"{STEPS}[0] === 'Step 10 of 68'")
    page.wait_for_function(
        "location.search.includes('step=10') && location.search.includes('beside=smollm2-rain-medusa')"
    )
    page.click(".app-beside-close")
    assert "beside=" not in page.url
    page.go_back()
    page.wait_for_function(f"{SECOND}?.record.end")
    page.go_forward()
    page.wait_for_function("!SpecscopeApp.shown.viewer.second.beside")


@slow  # some seconds in a browser
@pytest.mark.parametrize("named", choose(["not-here", HOSTILE], [HOSTILE]))
def test_a_second_run_that_is_missing_is_said_in_one_sentence(
    new_page: Callable[..., Any], served: Served, named: str
) -> None:
    page = new_page(1280, 720)
    served.open(page, f"?run=smollm2-rain-lookahead&beside={named}", form=False)
    page.wait_for_selector(".app-notice:visible")
    assert "second run of this address is not here" in page.inner_text(".app-notice")
    assert page.evaluate("SpecscopeApp.shown.viewer.player.record.last") > 0
