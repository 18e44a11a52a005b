"""The page that tests share: each finds it as if it had just been opened, and answers for its own errors alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import Tab
from tests.tiers import slow

LEFT = """() => ({
  local: localStorage.length, session: sessionStorage.length, cookie: document.cookie, history: history.length,
  name: window.name, own: typeof globalThis.own, width: innerWidth,
})"""
BLANK = {"local": 0, "session": 0, "cookie": "", "history": 2, "name": "", "own": "undefined", "width": 1280}


@pytest.fixture(autouse=True)
def left_clean(tab: Tab) -> Iterator[None]:
    """Leave the page as other tests want it."""
    yield
    tab.reset()


def test_nothing_of_a_test_is_left(tab: Tab, site: str) -> None:
    """What one test stores, sets or intercepts must not be there for the next; a page just opened shows the same."""
    page = tab.open(1280, 1000, reduced_motion="reduce")
    page.goto(site)
    assert page.evaluate("matchMedia('(prefers-reduced-motion: reduce)').matches")
    page.evaluate("localStorage.a = sessionStorage.a = document.cookie = 'a=1'; globalThis.own = 1")
    page.evaluate("history.pushState(null, '', '?a'); history.pushState(null, '', '?b')")
    page.route("**/style.css", lambda route: route.fulfill(body="body { color: red }", content_type="text/css"))
    tab.context.grant_permissions(["clipboard-read"])
    page.set_viewport_size({"width": 390, "height": 844})
    tab.reset()
    again = tab.open(1280, 1000)
    assert again is page and again.url == "about:blank"
    again.goto(site)
    assert again.evaluate(LEFT) == BLANK
    assert again.evaluate("getComputedStyle(document.body).color") != "rgb(255, 0, 0)"
    state = "async () => (await navigator.permissions.query({ name: 'clipboard-read' })).state"
    assert again.evaluate(state) != "granted"
    assert not again.evaluate("matchMedia('(prefers-reduced-motion: reduce)').matches")


def test_a_page_just_opened_is_as_blank(chromium: Any, site: str) -> None:
    """The control of the test above."""
    context = chromium.new_context(viewport={"width": 1280, "height": 1000})
    page = context.new_page()
    page.goto(site)
    assert page.evaluate(LEFT) == BLANK
    context.close()


def test_a_closed_page_is_replaced(tab: Tab, site: str) -> None:
    tab.open(1280, 1000).close()
    tab.reset()
    page = tab.open(800, 600)
    page.goto(site)
    assert page.evaluate("innerWidth") == 800


WRONG = {
    "a script's error": "setTimeout(() => { throw new Error('one') })",
    "a message": "console.error('one')",
    "a request that fails": "fetch('/nothing')",
    "a violated policy": """document.head.insertAdjacentHTML('beforeend',
        '<meta http-equiv="Content-Security-Policy" content="img-src \\'none\\'">');
        document.body.append(Object.assign(new Image(), { src: '/one.png' }))""",
    "a dialog": "alert('one')",
}


@slow  # it tests the tests
@pytest.mark.parametrize("wrong", WRONG)
def test_an_error_is_the_error_of_its_own_test(tab: Tab, site: str, wrong: str) -> None:
    """It must neither be lost with the page that is left, nor fail the test that comes next."""
    page = tab.open(1280, 1000)
    page.goto(site)
    page.evaluate(WRONG[wrong])
    page.wait_for_load_state("networkidle")
    assert tab.reset().errors
    tab.open(1280, 1000).goto(site)
    assert tab.reset().errors == []


def test_a_request_to_a_stranger_is_told(tab: Tab, site: str) -> None:
    page = tab.open(1280, 1000)
    page.goto(site)
    page.route("https://example.org/**", lambda route: route.fulfill(body=""))
    page.evaluate("fetch('https://example.org/', { mode: 'no-cors' }).catch(() => 0)")
    assert tab.reset().strangers == ["https://example.org/"]
    assert tab.reset().strangers == []
