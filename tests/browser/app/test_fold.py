"""The form folds away while a record is shown, and the page has one title."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.tiers import choose, slow

from .conftest import Served
from .test_page import PLAYER

# Layouts; the server runs in this process, and Gradio's parts warn.
pytestmark = [slow, pytest.mark.filterwarnings("default")]
NewPage = Callable[..., Any]
TOP = "document.querySelector('.app-root').getBoundingClientRect().top"


@pytest.mark.parametrize("width", choose([1280, 390], [390]))
def test_a_record_has_the_room_until_the_form_is_wanted(new_page: NewPage, served: Served, width: int) -> None:
    page = served.open(new_page(width=width, height=844), form=False)
    button, form = page.locator(".app-settings"), page.locator("#run-form")
    assert button.get_attribute("aria-expanded") == "false" and form.is_hidden()
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    page.wait_for_function("document.querySelector('#run-form').getBoundingClientRect().top < innerHeight - 80")
    page.fill("#run-length input", "77")
    page.evaluate("document.querySelector('.app-settings').click()")
    assert form.is_hidden()
    button.click()
    assert page.input_value("#run-length input") == "77"
    # The visitor's own choice lasts, while a record plays and afterwards.
    page.evaluate(f"{PLAYER}.change({{ speed: '8' }}), {PLAYER}.togglePlay()")
    page.wait_for_function(f"{PLAYER}.state.step >= 7")
    assert form.is_visible()
    served.open(page, form=False)
    assert form.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_form_that_an_address_filled_folds_away_in_play_and_moves_nothing(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page(height=720), "?method=lookahead&length=24&prompt=Monday%3A", form=False)
    page.wait_for_selector("#run-go", state="visible")
    page.evaluate("document.activeElement.blur()")
    page.evaluate("scrollTo(0, 120)")
    top = page.evaluate(TOP)
    page.keyboard.press("Space")
    page.wait_for_selector("#run-go", state="hidden")
    assert page.evaluate(TOP) == top


def test_whoever_writes_in_the_form_keeps_it(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page(), "?method=lookahead&length=24&prompt=Monday%3A", form=False)
    page.focus("#run-prompt textarea")
    page.evaluate(f"{PLAYER}.change({{ speed: '8' }}), {PLAYER}.togglePlay()")
    page.wait_for_function(f"{PLAYER}.state.playing && {PLAYER}.state.step >= 7")
    assert page.locator("#run-go").is_visible()


@pytest.mark.parametrize(("width", "height"), [(1280, 720), pytest.param(1440, 900, marks=slow)])
def test_head_tabs_and_title_leave_the_screen_to_the_player(
    new_page: NewPage, served: Served, width: int, height: int
) -> None:
    """Four lines stood above the player's transport: the name, the tabs, and two titles."""
    page = served.open(new_page(width=width, height=height), form=False)
    name, tab = (page.locator(part).bounding_box() for part in (".app-name", "#run-button"))
    assert abs((name["y"] + name["height"] / 2) - (tab["y"] + tab["height"] / 2)) < 4
    titles = [each for each in page.locator("h2").all() if each.is_visible()]
    assert len(titles) == 1
    title, details = (page.locator(part).bounding_box() for part in (".app-title", ".app-details"))
    assert details["x"] > title["x"] + title["width"] and abs(details["y"] - title["y"]) < 8
    assert page.locator(".ss-sticky").bounding_box()["y"] <= 110
    settings = page.evaluate("SpecscopeApp.shown.viewer.bar.about.textContent")
    assert "greedy" in settings and settings in page.locator(".app-details").get_attribute("title")
    page.click(".app-details")
    assert page.locator(".app-details").bounding_box()["width"] > width / 2
