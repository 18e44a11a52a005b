"""The page as plain files: from a web server under a path of its own, and opened as a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from app.hosting.static_site import main, write_site

from .conftest import serve_files

NewPage = Callable[..., Any]
RUNS = {f"smollm2-spelling-{method}" for method in ("prompt_lookup", "autoregressive", "jacobi")}
RUNS |= {"lesson-lookup-k1", "lesson-slow-drafter", "lookahead", "debug-pocket-1"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page with a few runs into a folder below another one: once for all processes that test it."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    out = shared / "web" / "some" / "path"
    with FileLock(shared / "web.lock"):
        if not out.exists():
            write_site(out, lambda run: run in RUNS)
    return out


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Serve the folder above, as a web server that knows nothing of the page."""
    with serve_files(site.parents[1]) as address:
        yield f"{address}some/path/index.html"


@pytest.mark.slow  # some seconds in a browser
def test_every_part_opens_from_a_plain_web_server(new_page: NewPage, address: str) -> None:
    page = new_page()
    page.goto(address)
    page.wait_for_selector(".app-opening .ss-lane")
    page.click("text=Step through it")
    page.wait_for_function("SpecscopeApp.shown.viewer.player.record.last === 7")
    page.evaluate("SpecscopeApp.shown.viewer.player.goto({ step: 4, phase: 'accept', view: 'mask', node: 3 })")
    page.wait_for_selector("#viewer .js-plotly-plot, #viewer .ss-layer, #viewer canvas")
    page.wait_for_function("document.querySelector('#viewer .ss-detail')?.textContent.includes('Sees')")
    page.get_by_role("tab", name="Race").click()
    page.wait_for_selector("#race .ss-lane")
    page.get_by_role("tab", name="Debug").click()
    page.wait_for_selector("#debug .ss-debug >> text=Acceptance", timeout=20_000)
    page.get_by_role("tab", name="Cost").click()
    page.wait_for_selector("#cost >> text=projections are within")
    page.get_by_role("tab", name="Learn").click()
    page.click(".app-learn-lesson >> nth=1")
    page.wait_for_function("SpecscopeApp.shown.learn.player.record.last === 29")
    page.keyboard.press("a")
    page.wait_for_function("SpecscopeApp.shown.learn.player.record.last === 7")
    assert "lesson=verify" in page.evaluate("location.search")


@pytest.mark.slow  # some seconds in a browser
def test_a_card_opens_its_steps_in_the_player(new_page: NewPage, address: str) -> None:
    """Its steps are data of the site; what needs a query is one sentence, and the cards stay."""
    page = new_page()
    page.goto(f"{address}?screen=debug&chart=acceptance_histogram")
    steps = page.locator("dialog[open] .app-debug-step")
    card = "SpecscopeApp.shown.debug.cards.cards.find(({ facts }) => facts.key === 'acceptance_histogram')"
    page.wait_for_function(f"globalThis.SpecscopeApp?.shown.debug && {card}?.measured")
    page.evaluate(f"{card}.behind(0, false)")
    steps.first.wait_for()
    assert all("· 0 of " in step.inner_text() for step in steps.all())
    page.keyboard.press("Escape")
    page.click("text=List them")
    steps.first.wait_for()
    assert page.inner_text("dialog[open] [role=status]").startswith("223 steps") and steps.count() == 40
    page.click("text=More steps")
    page.wait_for_function("document.querySelectorAll('dialog[open] .app-debug-step').length === 80")
    steps.nth(1).get_by_role("button").click()
    at = "globalThis.SpecscopeApp?.shown.viewer?.player.state.step === 1"
    page.wait_for_function(f"{at} && SpecscopeApp.shown.viewer.player.record.head.header.method === 'draft_model'")
    assert "run=debug-pocket-1&step=1" in page.evaluate("location.search")
    page.evaluate("SpecscopeApp.shown.viewer.player.goto({ view: 'mask', node: 1 })")
    page.wait_for_function("document.querySelector('#viewer .ss-detail')?.textContent.includes('Sees')")
    page.reload()
    page.wait_for_function(at)
    page.goto(f"{address}?screen=debug&f.method=draft_model")
    page.wait_for_selector(".app-debug-notice >> text=This page is plain files, without a server")
    page.wait_for_selector("#debug .ss-debug >> text=Acceptance")


@pytest.mark.slow  # some seconds in a browser
def test_a_lesson_leads_to_a_chart_of_another_run_folder(new_page: NewPage, address: str, site: Path) -> None:
    page = new_page()
    page.goto(f"{address}?screen=learn&lesson=debug&at=cliff")
    page.wait_for_function("globalThis.SpecscopeApp?.shown.learn?.player.record.last === 39")
    page.keyboard.press("c")
    page.click(".app-learn-chart a")
    page.wait_for_selector("#debug >> text=Guess 1 is right in 27%")
    assert page.evaluate("SpecscopeApp.shown.debug.opened.folder") == "slow-drafter"
    page.go_back()
    page.wait_for_selector(".app-learn-reply.app-right:visible")
    page.goto(f"{address}?screen=debug&folder=nothing")
    page.wait_for_selector(".app-debug-notice >> text=This page is plain files, without a server")
    link = "../index.html?screen=debug&amp;folder=slow-drafter&amp;chart=conditional_acceptance"
    assert link in (site / "lessons" / "debug.html").read_text(encoding="utf-8")


@pytest.mark.slow  # some seconds in a browser
def test_an_address_opens_what_it_names(new_page: NewPage, address: str) -> None:
    page = new_page(width=390, height=844)
    page.goto(f"{address}?run=lookahead&step=5&view=window&model=pocket")
    page.wait_for_function("globalThis.SpecscopeApp?.shown.viewer?.player.state.step === 5")
    page.wait_for_selector(".app-notice >> text='model' in the address was left out: this page has no such settings.")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.goto(f"{address}?screen=learn&lesson=verify&at=pass")
    page.wait_for_selector("text=Guess five, check five")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.goto(f"{address}?screen=race&methods=jacobi,rest")
    page.wait_for_selector("#race >> text='methods' in the address was left out: this page runs no races")
    page.goto(f"{address}?run=nothing")
    page.wait_for_selector("text=There is no such recording on this page")


@pytest.mark.slow  # some seconds in a browser
def test_lessons_and_gallery_open_as_files(new_page: NewPage, site: Path) -> None:
    """On a USB stick: nothing may be fetched there."""
    page = new_page()
    page.goto(f"{(site / 'index.html').as_uri()}?screen=learn&lesson=verify")
    page.wait_for_function("globalThis.SpecscopeApp?.shown.learn?.player.record.last === 29")
    page.keyboard.press("r")
    page.wait_for_function("SpecscopeApp.shown.learn.player.record.last === 7")
    page.get_by_role("tab", name="Run").click()
    page.evaluate("SpecscopeApp.shown.viewer.files.recording('lookahead')")
    page.wait_for_function("SpecscopeApp.shown.viewer.player.record.head.header.method === 'lookahead'")


@pytest.mark.slow
def test_who_comes_by_a_link_sees_no_frame_around_the_player(new_page: NewPage, site: Path) -> None:
    page = new_page()
    page.goto(f"{(site / 'index.html').as_uri()}?run=lookahead")
    page.wait_for_function("globalThis.SpecscopeApp?.shown.viewer && document.activeElement.matches('.ss')")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "none"


@pytest.mark.slow
def test_without_scripts_there_are_text_and_tables(site: Path) -> None:
    index = (site / "index.html").read_text(encoding="utf-8")
    assert "<noscript>" in index and 'href="lessons/verify.html"' in index
    lesson = (site / "lessons" / "verify.html").read_text(encoding="utf-8")
    questions, answers = lesson.split("Answers</h2>")
    assert "<script" not in lesson and "<table>" in questions and "What became of it" not in questions
    assert "Which guess is the first that the target rejects?" in questions
    assert "It writes" not in questions and "It writes" in answers and "What became of it" in answers


def test_a_folder_of_something_else_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "index.html").write_text("<title>My home page</title>", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["static_site", "--out", str(tmp_path)])
    assert main() == 2 and "holds other files" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").read_text(encoding="utf-8") == "mine"
    monkeypatch.setattr("sys.argv", ["static_site", "--out", str(tmp_path / "thesis.txt")])
    assert main() == 2 and "is no folder" in capsys.readouterr().err
