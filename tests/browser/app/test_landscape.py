"""The landscape below the player: pressed for, read by keys and by pointer, stopped, and refused in a sentence."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.landscape import measure_landscape
from decoding.engine import Engine
from decoding.trace.file import write_trace
from decoding.types import Trace
from tests.app.conftest import TOY
from tests.tiers import choose
from viz.landscape_rows import Landscape, measured_tokens, rows, sentence

from .conftest import Served
from .test_form_and_player import open_trace
from .test_page import PLAYER

pytestmark = pytest.mark.filterwarnings("default")  # the server runs in this process, and Gradio's parts warn
NewPage = Callable[..., Any]
MARKUP = "<img src=x onerror=alert(1)>"
OWN = ".app-landscape-head button:has-text('Stop')"
STATUS, WORDS, BOX = ".app-landscape-status", ".app-landscape-words", ".app-strip-scroll"


@pytest.fixture
def engine(served: Served) -> Engine:
    loaded = served.app_state.jobs.models.request(TOY).wait(60)
    assert loaded is not None
    return loaded


@pytest.fixture
def trace(engine: Engine) -> Trace:
    """A text that the target would not have written word for word, and longer than a phone is wide."""
    sampling = {"temperature": 1.5, "seed": 1}
    return engine.generate("Monday: high tide at six", "jacobi", sampling=sampling, max_new_tokens=40).trace


@pytest.fixture
def opened(new_page: NewPage, served: Served, trace: Trace, tmp_path: Path) -> Any:
    """The page with the run on it."""
    page = served.open(new_page(), form=False)
    write_trace(trace, tmp_path / "run.jsonl")
    open_trace(page, tmp_path / "run.jsonl")
    return page


def said(page: Any, words: str) -> None:
    page.wait_for_selector(f'{STATUS}:has-text("{words}")')


def cell(row: int, place: int) -> str:
    return f"#landscape-{row}-{place}"


def step_of(trace: Trace, place: int) -> int:
    """The step that wrote a token."""
    return next(step.index for step in trace.steps if step.start - len(trace.header.prompt) + len(step.emitted) > place)


@pytest.mark.slow  # it measures a landscape
def test_a_strip_is_read_by_keys_and_leads_to_the_step(
    opened: Any, engine: Engine, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = opened

    def named(*given: Any, **options: Any) -> Landscape:
        """Measure a landscape, and give a token a text that is no markup."""
        landscape = measure_landscape(*given, **options)
        return {**landscape, "texts": {**landscape["texts"], str(trace.ids[3]): MARKUP}}

    monkeypatch.setattr("analysis.landscape.measure_landscape", named)
    said(page, "What if a step began here?")
    page.click("#landscape-go")
    said(page, "Measured in")
    landscape = named(engine, [*trace.header.prompt, *trace.ids], first=len(trace.header.prompt))
    tokens, methods = measured_tokens(landscape), rows(landscape)
    assert page.locator(".app-strip tbody th").all_text_contents() == [row.label for row in methods]
    assert [page.inner_text(cell(2, place)) for place in range(8)] == methods[2].signs[:8]
    settings = [f"{row.label}: {row.settings or 'none'}" for row in methods]
    assert page.locator(".app-landscape-settings li").all_text_contents() == settings
    heads = page.locator(".app-strip thead th").all_text_contents()[2:]
    assert heads == [column.text if column.is_choice else f"≠ {column.text}" for column in tokens]
    assert any(head.startswith("≠ ") for head in heads) and any("<img" in head for head in heads)
    assert page.locator(".app-strip img").count() == 0

    def at(row: int, place: int) -> bool:
        """Whether the cell has the focus, and is said."""
        words = sentence(methods[row].label, tokens[place].words, methods[row].words[place])
        active = page.get_attribute(".app-strip", "aria-activedescendant")
        return (active, page.inner_text(WORDS), page.get_attribute(cell(row, place), "aria-label")) == (
            cell(row, place)[1:],
            words,
            words,
        )

    page.focus(".app-strip")
    assert at(0, 0)
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft"):
        page.keyboard.press(key)
    assert at(1, 2)
    page.keyboard.press("End")
    assert at(1, len(tokens) - 1)
    page.keyboard.press("Home")
    assert at(1, 0)
    for _ in range(9):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_function(f"{PLAYER}.root.dataset.at === '{step_of(trace, 9)}/commit'")
    assert at(1, 9)

    page.set_viewport_size({"width": 1280, "height": 600})
    page.keyboard.press("ArrowDown")  # what is said is seen together with the cell
    for each in (cell(2, 9), WORDS):
        box = page.locator(each).bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 600
    page.keyboard.press("ArrowUp")

    page.hover(cell(3, 4))
    assert page.inner_text(WORDS).startswith(f"{methods[3].label} at {tokens[4].words}")
    page.hover("#landscape-go")
    assert at(1, 9)

    page.set_viewport_size({"width": 390, "height": 844})
    page.click(cell(4, 1))
    assert at(4, 1)
    page.click("button:has-text('Show its step')")
    page.wait_for_function(f"{PLAYER}.root.dataset.at === '{step_of(trace, 1)}/commit'")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(f"document.querySelector('{BOX}').scrollWidth > document.querySelector('{BOX}').clientWidth")

    page.evaluate("SpecscopeApp.shown.viewer.files.recording('lookahead')")  # a strip stands below its own run alone
    page.wait_for_selector(".app-strip", state="hidden")
    page.click("#landscape-go")
    said(page, "This page does not have the run's model")


@pytest.mark.slow  # some seconds in a browser
@pytest.mark.parametrize("button", choose([OWN, "#run-stop"], [OWN]))  # the form's has its tests with runs
def test_it_can_be_stopped(opened: Any, engine: Engine, monkeypatch: pytest.MonkeyPatch, button: str) -> None:
    """By its own button and by that of the form; then it can be asked for again."""
    page, real = opened, measure_landscape

    def slow(engine: Engine, text: Any, methods: Any, *, cancel: threading.Event, **options: Any) -> Any:
        while methods != ["jacobi"] and not cancel.is_set():
            cancel.wait(0.05)
        return real(engine, text, methods, cancel=cancel, **options)

    monkeypatch.setattr("analysis.landscape.measure_landscape", slow)
    page.evaluate("SpecscopeApp.shown.viewer.fold.set(false)")
    page.click("#landscape-go")
    page.wait_for_selector(cell(0, 0))  # the first row is seen while the second one is measured
    said(page, "Measuring Lookahead.")
    assert page.evaluate("document.querySelector('.app-landscape progress').value") == 0.125  # one method of eight
    assert page.get_attribute("#landscape-go", "aria-disabled") == "true"
    page.click(button)
    said(page, "Left out because the measurement was stopped: Lookahead")
    assert page.locator(".app-strip tbody tr").count() == 1
    monkeypatch.setattr("analysis.landscape.measure_landscape", real)
    page.click("#landscape-go")
    said(page, "Left out because this model lacks their parts")
    assert page.locator(".app-strip tbody tr").count() == 8
