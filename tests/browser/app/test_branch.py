"""What if: a pinned guess is decoded on beside the run, and the address names the branch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from decoding import load
from decoding.trace.file import write_trace
from tests.tiers import choose, slow

from .conftest import Served
from .test_form_and_player import open_trace
from .test_page import PLAYER

pytestmark = pytest.mark.filterwarnings("default")  # the server runs in this process, and Gradio's parts warn
NewPage = Callable[..., Any]
SECOND = "SpecscopeApp.shown.viewer.second.beside.player"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Make a run of the model that the page serves, with a rejected guess in its third step."""
    made = load("toy").generate("Monday: high tide", "jacobi", {"n": 3}, max_new_tokens=20, record="full")
    assert made.trace.steps[2].accepted == 0
    path = tmp_path / "run.jsonl"
    write_trace(made.trace, path)
    return path


def decoded(page: Any) -> None:
    page.wait_for_function(f"SpecscopeApp.shown.viewer.second.beside && {SECOND}.record.end")


@pytest.mark.parametrize("width", choose([1280, 390], [1280]))
def test_a_rejected_guess_is_pressed(new_page: NewPage, served: Served, trace: Path, width: int) -> None:
    page = served.open(new_page(width=width, height=844))
    open_trace(page, trace)
    page.click(".app-title")  # from now on the address follows
    page.evaluate(f"{PLAYER}.pin(2, 1)")
    guess = page.evaluate(f"{PLAYER}.record.visible({PLAYER}.record.nodes(2).token[1])")
    page.wait_for_selector(f".ss-fork-guess:has-text('{guess}')")
    page.click(".ss-fork-guess")
    decoded(page)
    assert f"“{guess}” instead of" in page.inner_text(".app-verdict") and "steps instead of" in page.inner_text(
        ".app-verdict"
    )
    branch = page.evaluate(f"{SECOND}.record.head.header.branch")
    assert branch["step"] == 2 and branch["run"] == page.evaluate("SpecscopeApp.shown.viewer.facts.run")
    marks = page.locator(".app-ways mark").all_text_contents()
    assert len(marks) == 2 and marks[0] != marks[1]
    assert page.locator(".app-counters tbody tr").count() == 4
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    query = parse_qs(urlsplit(page.url).query)
    assert query["branch"] == ["2n1"] and query["run"] == [branch["run"]]
    page.click(".app-title")
    page.keyboard.press("Home")
    page.wait_for_function(f"{SECOND}.state.step === 0 && {SECOND}.state.phase === 'propose'")  # it begins later
    page.keyboard.press("End")
    page.wait_for_function(f"{SECOND}.state.step === {SECOND}.record.last")
    page.click(".app-beside-close")
    page.wait_for_selector(".app-difference", state="detached")
    assert "branch" not in parse_qs(urlsplit(page.url).query)


@slow  # some seconds in a browser
def test_a_text_is_typed_and_stays_text(new_page: NewPage, served: Served, trace: Path) -> None:
    """Keys of the player must not eat what is typed, nor markup become any."""
    page = served.open(new_page())
    open_trace(page, trace)
    page.evaluate(f"{PLAYER}.pin(2, 0, true)")
    page.wait_for_selector(".ss-fork input")
    assert page.locator(".ss-fork-guess").is_hidden()  # the target's own token was written
    page.fill(".ss-fork input", "")
    page.type(".ss-fork input", " <b>,.")
    page.keyboard.press("Enter")
    decoded(page)
    assert page.evaluate(f"{PLAYER}.state.step") == 2
    assert page.locator(".app-ways mark").nth(1).text_content() == " <b>,."
    assert parse_qs(urlsplit(page.url).query)["force"] == [" <b>,."]


@pytest.mark.slow  # it opens the page three times
def test_an_address_of_a_branch_asks_before_it_decodes(new_page: NewPage, served: Served, trace: Path) -> None:
    """A link must not start anything by itself; and one that names no place is answered in a sentence."""
    page = served.open(new_page())
    open_trace(page, trace)
    run = page.evaluate("SpecscopeApp.shown.viewer.facts.run")
    served.open(page, f"?run={run}&branch=2k0&force=Sunday&step=2")
    page.wait_for_selector(".app-asks-fork")
    assert page.evaluate("SpecscopeApp.shown.viewer.second.beside") is None
    page.click(".app-asks-fork button")
    page.wait_for_selector(".app-verdict:has-text('had written “Sunday” instead')")
    page = served.open(new_page(), f"?run={run}&branch=2n999&step=2")  # to leave a page aborts what Gradio has open
    page.wait_for_selector(".app-notice:has-text('Branch 2n999 in the address was left out')")
    assert page.locator(".app-asks-fork").is_hidden()
