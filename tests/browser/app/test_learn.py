"""A lesson in a browser: predict, see, press real guesses, leave the rails and return; nothing is told beforehand."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.store.lessons import Lessons
from tests import ROOT
from tests.tiers import choose, nightly, slow
from viz.palette import Fate

from ..conftest import serve_files
from .conftest import Served

pytestmark = pytest.mark.filterwarnings("default")  # the server runs in this process, and Gradio's parts warn
NewPage = Callable[..., Any]
PLAYER = "SpecscopeApp.shown.learn.player"
VERDICTS = (Fate.REJECTED, Fate.MATCHED, Fate.CORRECTION, Fate.BONUS)
FATES = ", ".join(f"#learn .ss-stage .ss-is-{int(fate)}, #learn .ss-ghosts .ss-fate-{int(fate)}" for fate in VERDICTS)
LESSONS = [each["id"] for each in Lessons().contents()]


def enter(page: Any, served: Served, query: str) -> Any:
    """Open an address of a lesson, and wait until its screen and its player are there."""
    page.goto(f"{served.address}?screen=learn&{query}")
    page.wait_for_selector(".app-learn-foot")
    settle(page)
    return page


def turn(page: Any, lesson: str, anchor: str) -> None:
    """Show another screen without loading the page anew, as the buttons do."""
    page.evaluate(
        "([id, anchor]) => SpecscopeApp.shown.learn.load(id).then(({ screens }) => "
        "SpecscopeApp.shown.learn.open(id, screens.findIndex((screen) => screen.anchor === anchor)))",
        [lesson, anchor],
    )
    settle(page)


def settle(page: Any) -> None:
    """Wait until the player is where the lesson wants it."""
    page.wait_for_function(
        "(() => { const { placed, player } = SpecscopeApp.shown.learn; return placed && !player.request && "
        "!document.querySelector('.app-learn-loading') && "
        "player.state.step === placed.step && player.record.last >= 0; })()"
    )


def test_an_address_of_a_lesson_opens_it_before_what_no_one_sees(new_page: NewPage, served: Served) -> None:
    """Behind the lesson the run of the first tab was drawn, and the charts' library started: a third of its time."""
    page = new_page()
    page.add_init_script(
        "document.addEventListener('specscope', () => { const opened = setInterval(() => {"
        "if (!(SpecscopeApp.shown.learn?.player.record.last >= 0)) return;"
        "globalThis.beforehand = [Boolean(globalThis.Plotly), SpecscopeApp.shown.viewer.player.record.last >= 0];"
        "clearInterval(opened); }, 1); })"
    )
    enter(page, served, "lesson=verify")
    assert page.evaluate("beforehand") == [False, False]
    page.wait_for_function(
        "globalThis.Plotly && SpecscopeApp.shown.viewer.player.record.last >= 0"
    )  # they come behind it


def test_the_first_tab_does_not_wait_for_a_lesson_that_is_left(new_page: NewPage, served: Served) -> None:
    """Or for one that does not exist."""
    page = new_page()
    page.goto(f"{served.address}?screen=learn&lesson=nothing")
    page.wait_for_function("globalThis.SpecscopeApp?.shown.viewer?.player.record.last >= 0")
    page.route("**/component_server/", lambda route: None)  # an answer that never comes
    page.goto(f"{served.address}?screen=learn&lesson=verify")
    page.click("#app-tabs [role=tab] >> text=Run")
    page.wait_for_function("globalThis.SpecscopeApp?.shown.viewer?.player.record.last >= 0")


def test_a_lesson_is_walked_by_the_keyboard_alone(new_page: NewPage, served: Served) -> None:
    """A clicker sends PageDown, a class answers with letters; an answer has its reply, and the score is kept."""
    page = enter(new_page(), served, "lesson=slow")
    assert page.locator(".app-learn-after").is_hidden()
    page.keyboard.press("b")
    assert "Not quite." in page.inner_text(".app-learn-reply") and "arithmetic" in page.inner_text(".app-learn-reply")
    assert "269 MB" in page.inner_text(".app-learn-after") and page.locator(".app-learn-skip").count() == 0
    settle(page)
    assert page.evaluate(f"{PLAYER}.record.head.header.method") == "prompt_lookup"
    page.keyboard.press("PageDown")
    page.wait_for_function("new URLSearchParams(location.search).get('at') === 'prefill'")
    page.keyboard.press("r")
    assert page.locator(".app-learn-choice.app-right").get_attribute("data-choice") == "b"
    settle(page)
    before = page.evaluate(f"{PLAYER}.state.step")
    page.keyboard.press("ArrowRight")  # the lesson has the focus now, and the player still gets its keys
    assert page.evaluate(f"{PLAYER}.state.step") == before + 1
    page.keyboard.press("PageUp")
    page.wait_for_function("new URLSearchParams(location.search).get('at') === 'one'")
    page.go_back()
    page.wait_for_function("document.querySelector('#app-learn-title').textContent === 'Reading is cheap'")
    assert page.evaluate("SpecscopeApp.shown.learn.score.of('slow')") == {"answered": 1, "right": 0}
    page.click(".app-learn-all")
    assert "0 of 6 predicted" in page.inner_text(".app-learn-lessons")
    page.reload()
    page.wait_for_selector(".app-learn-lessons")
    assert "0 of 6 predicted" in page.inner_text(".app-learn-lessons")
    page.click("text=Forget my answers")
    lessons = page.inner_text(".app-learn-lessons")
    assert "6 questions" in lessons and "Lookahead decoding\n12 minutes, 8 questions, after lesson 4" in lessons


def test_a_guess_is_pressed_on_the_stage_itself(new_page: NewPage, served: Served) -> None:
    """Nothing on the screen tells the answer before; a wrong guess gets its own reply, and the right one is taken."""
    page = enter(new_page(), served, "lesson=verify&at=mistake")
    assert page.evaluate(f"{PLAYER}.state.withheld") and page.locator(FATES).count() == 0
    assert page.evaluate(f"{PLAYER}.state.phase") == "propose"
    page.evaluate(f"{PLAYER}.togglePin(4, 3)")
    page.wait_for_selector(".app-learn-reply.app-right")
    assert "ming" in page.inner_text(".app-learn-after")
    settle(page)
    page.wait_for_function(f"{PLAYER}.state.phase === 'accept'")
    assert not page.evaluate(f"{PLAYER}.state.withheld")
    turn(page, "verify", "mistake")
    page.evaluate(f"{PLAYER}.togglePin(4, 0)")
    page.wait_for_selector("#learn .app-learn-picked >> text=That is the last token of the text. Press a guess.")
    assert page.locator(".app-learn-reply.app-right, .app-learn-reply.app-wrong").count() == 0  # it is no answer
    page.locator("#learn .ss-stage [data-node='1']:visible").first.click()
    page.wait_for_selector(".app-learn-reply.app-wrong")
    assert "The target writes this token too." in page.inner_text(".app-learn-reply")


@slow  # some seconds in a browser
def test_the_rails_are_left_and_found_again(new_page: NewPage, served: Served) -> None:
    page = enter(new_page(), served, "lesson=verify&at=silence")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(".app-learn-away:visible")
    assert "You are at step 3" in page.inner_text(".app-learn-away")
    page.wait_for_function("new URLSearchParams(location.search).get('step') === '3'")
    page.keyboard.press("Backspace")
    page.wait_for_selector(".app-learn-away", state="hidden")
    assert page.evaluate(f"{PLAYER}.state.step") == 4
    page.goto(f"{served.address}?screen=learn&lesson=verify&at=silence&step=2&phase=verify")
    page.wait_for_function(f"globalThis.SpecscopeApp?.shown.learn && {PLAYER}.state.step === 2")


@slow  # some seconds in a browser
def test_a_number_an_order_and_several_presses_are_judged(new_page: NewPage, served: Served) -> None:
    page = enter(new_page(), served, "lesson=law&at=letters")
    page.click("#learn .app-learn-ask [type=submit]")
    assert "Give a number from 0 to 90." in page.inner_text("#learn .app-learn-ask")
    page.fill("#learn .app-learn-numbers input", "58")
    page.keyboard.press("Enter")
    page.wait_for_selector(".app-learn-reply.app-right")
    turn(page, "cost", "order")
    page.get_by_role("button", name="Check", exact=True).click()
    page.wait_for_selector(".app-learn-reply.app-wrong")
    order = page.evaluate("[...document.querySelectorAll('.app-learn-order li')].map((row) => row.dataset.key)")
    assert order != ["re", "ea", "la"]  # or the question would answer itself
    turn(page, "medusa", "mask")
    for node in (0, 2):
        page.evaluate(f"{PLAYER}.togglePin(3, {node})")
        page.wait_for_function(f"SpecscopeApp.shown.learn.column.question.pressed.has('n{node}')")
    page.get_by_role("button", name="Check", exact=True).click()
    page.wait_for_selector(".app-learn-reply.app-right")


@slow  # some seconds in a browser
def test_a_slider_opens_the_runs_that_it_shows(new_page: NewPage, served: Served) -> None:
    page = enter(new_page(), served, "lesson=verify&at=predict")
    assert page.locator(".app-learn-slider").is_hidden()  # it would answer the question
    page.keyboard.press("r")
    page.click(".app-learn-mark >> nth=0")
    page.wait_for_function(f"{PLAYER}.record.steps.length === 17")
    assert "17" in page.inner_text(".app-learn-value")


@slow  # some seconds in a browser
def test_a_chart_of_the_debug_page_is_one_press_away(new_page: NewPage, served: Served) -> None:
    """In this tab: going back leads to the lesson as it was left, with its answer."""
    page = enter(new_page(), served, "lesson=debug&at=cliff")
    assert page.locator(".app-learn-chart a").is_hidden()  # it would answer the question
    page.keyboard.press("c")
    page.wait_for_selector(".app-learn-reply.app-right")
    for turned in range(2):  # the Debug page opens at it, and turns to it
        page.click(".app-learn-chart a")
        page.wait_for_function(
            "SpecscopeApp.shown.debug?.opened.chart === 'conditional_acceptance' && "
            "SpecscopeApp.shown.debug.opened.folder === 'slow-drafter' && document.activeElement.closest('#debug')"
        )
        page.wait_for_selector("#debug >> text=Guess 1 is right in 27%")
        page.go_back()
        page.wait_for_selector(".app-learn-reply.app-right:visible")
        assert "at=cliff" in page.evaluate("location.search"), turned
        assert "69 of 258" in page.inner_text(".app-learn-after")


WRONG = ["lesson=nothing", "lesson=../../etc", "lesson=verify&at=nothing", "lesson=%00"]


@slow  # some seconds in a browser
@pytest.mark.parametrize("query", choose(WRONG, WRONG[1:3]))
def test_a_wrong_address_shows_a_sentence_and_the_beginning(new_page: NewPage, served: Served, query: str) -> None:
    page = new_page()
    page.goto(f"{served.address}?screen=learn&{query}")
    if "verify" in query:
        page.wait_for_selector("text=A machine that only copies")
        page.wait_for_selector(".app-learn-notice:has-text(\"'at' in the address was left out\")")
    else:
        page.wait_for_selector(".app-learn-lessons")
        assert "'lesson' in the address was left out" in page.inner_text(".app-learn-notice")


@slow  # some seconds in a browser
def test_what_a_lesson_does_not_have_is_told_once_it_is_shown(new_page: NewPage, served: Served) -> None:
    page = enter(new_page(), served, "lesson=verify&at=predict&foo=1&step=9999&view=nosuch")
    page.wait_for_selector(".app-learn-notice:visible")
    notice = page.inner_text(".app-learn-notice")
    assert all(f"'{name}' in the address was left out" in notice for name in ("foo", "step")), notice
    assert "View nosuch in the address was left out" in notice


@slow  # some seconds in a browser
def test_an_address_of_a_lesson_waits_for_no_form(new_page: NewPage, served: Served) -> None:
    """The server's answer to the address, with the form's settings, takes half a second that no lesson needs."""
    page = new_page()
    page.route("**/run/predict?**", lambda route: None)  # it is never answered
    enter(page, served, "lesson=slow")


@slow  # some seconds in a browser
def test_a_lecture_has_large_letters_and_notes(new_page: NewPage, served: Served) -> None:
    """Below the text a projector cut the stage off, with the guesses that a class was asked to press."""
    page = enter(new_page(width=1280, height=720), served, "lesson=verify&at=mistake")
    page.keyboard.press("f")
    page.wait_for_selector("body.app-presenting")
    assert page.evaluate("document.querySelector('#learn .ss-stage').getBoundingClientRect().bottom <= innerHeight")
    turn(page, "lookahead", "mask")
    page.keyboard.press("r")
    foot, after = (page.locator(name).bounding_box() for name in (".app-learn-foot", ".app-learn-after"))
    assert after["y"] + after["height"] <= foot["y"]
    page.keyboard.press("Escape")
    page.wait_for_selector("body:not(.app-presenting)")
    page = enter(page, served, "lesson=verify&at=copier")
    page.keyboard.press("f")
    page.wait_for_selector("body.app-presenting")
    assert page.evaluate("parseFloat(getComputedStyle(document.querySelector('.app-learn-question')).fontSize)") >= 28
    assert page.locator(".app-learn-notes").is_hidden()
    page.keyboard.press("m")
    assert "landing page" in page.inner_text(".app-learn-notes")
    page.keyboard.press("Escape")
    page.wait_for_selector("body:not(.app-presenting)")


@slow  # some seconds in a browser
def test_the_view_that_a_screen_is_about_is_in_sight(new_page: NewPage, served: Served) -> None:
    """Below the fold nobody would look for the ring."""
    page = enter(new_page(width=1440, height=900), served, "lesson=cache&at=ring")
    page.wait_for_function(
        f"(() => {{ const {{ top, bottom }} = {PLAYER}.cards.cards.get('cache').node.getBoundingClientRect();"
        " return top >= 0 && bottom <= innerHeight + 1; })()"
    )
    assert page.evaluate("document.querySelector('.app-learn-column').getBoundingClientRect().top") >= 0


def lessons(each: int) -> list[Any]:
    """Return all lessons: one in so many is in the long tests, and the others are for whoever writes lessons."""
    marks = [nightly if at % each else slow for at, _ in enumerate(LESSONS)]
    return [pytest.param(lesson, marks=mark) for lesson, mark in zip(LESSONS, marks, strict=True)]


@pytest.mark.parametrize("lesson", lessons(4))
def test_every_screen_fits_a_phone_and_opens_from_its_address(new_page: NewPage, served: Served, lesson: str) -> None:
    """Before and after its answer no screen scrolls sideways, controls have names, and notes on words are in sight."""
    page = enter(new_page(width=390, height=844), served, f"lesson={lesson}")
    anchors = page.evaluate("SpecscopeApp.shown.learn.lesson.screens.map(({ anchor }) => anchor)")
    for anchor in anchors:
        page.evaluate(f"SpecscopeApp.shown.learn.enter({anchors.index(anchor)}, true)")
        settle(page)
        assert page.evaluate("new URLSearchParams(location.search).get('at')") == anchor
        for _ in range(2):
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), anchor
            nameless = page.evaluate(
                "[...document.querySelectorAll('.app-learn-column :is(button, input, select)')].filter((each) =>"
                " !each.textContent.trim() && !each.getAttribute('aria-label')).length"
            )
            assert nameless == 0, anchor
            for word in page.locator(".app-learn-screen .app-gloss:visible").all():
                word.focus()
                box = word.locator(".app-gloss-note").bounding_box()
                assert box["x"] >= 0 and box["x"] + box["width"] <= 390, (anchor, word.inner_text())
            page.evaluate("SpecscopeApp.shown.learn.column.reveal()")
            settle(page)


@pytest.mark.parametrize("lesson", lessons(7))  # axe reads every screen
def test_no_lesson_has_a_barrier(new_page: NewPage, served: Served, lesson: str) -> None:
    """Nothing worse than a minor finding, before an answer and after it; and a desktop need not scroll sideways."""
    axe_core_python = pytest.importorskip("axe_core_python.sync_playwright")
    theme = ("light", "dark")[LESSONS.index(lesson) % 2]
    page = enter(new_page(reduced_motion="reduce"), served, f"lesson={lesson}&__theme={theme}")
    for at in range(page.evaluate("SpecscopeApp.shown.learn.lesson.screens.length")):
        page.evaluate(f"SpecscopeApp.shown.learn.enter({at})")
        settle(page)
        if at % 2:
            page.evaluate("SpecscopeApp.shown.learn.column.reveal()")
            settle(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), at
        report = axe_core_python.Axe().run(page, context="#learn")
        grave = [each for each in report["violations"] if each["impact"] != "minor"]
        assert [(each["id"], each["nodes"][0]["html"][:160]) for each in grave] == [], at


@pytest.mark.slow  # a page of its own around the page
def test_a_lesson_is_answered_inside_a_slide(new_page: NewPage, served: Served, tmp_path: Path) -> None:
    """A slide of reveal.js is scaled, and the deck around it listens to the same keys."""
    reveal = ROOT / "node_modules/reveal.js/dist"
    if not reveal.is_dir() and "CI" not in os.environ:
        pytest.skip("needs reveal.js: make node_modules/ready")
    shutil.copytree(reveal, tmp_path / "reveal")
    teach = (ROOT / "docs/teach.md").read_text(encoding="utf-8")
    line = teach.split("```html\n")[1].split("```")[0]
    shown = line.replace("https://YOUR-SPACE.hf.space/", served.address).replace("at=mistake", "at=copier")
    (tmp_path / "index.html").write_text(
        '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">'
        '<link rel="stylesheet" href="reveal/reset.css"><link rel="stylesheet" href="reveal/reveal.css">'
        '<link rel="stylesheet" href="reveal/theme/white.css">'
        f'<div class="reveal"><div class="slides"><section>First</section><section>{shown}</section></div></div>'
        f'<script src="reveal/reveal.js"></script><script>{re.search(r"Reveal.initialize[^`]*", teach)[0]}</script>'  # type: ignore[index]
    )
    page = new_page(width=1024, height=768)
    with serve_files(tmp_path) as slides:  # from a real server: a page of no address may not frame one of this machine
        page.goto(f"{slides}#/1")
        lesson = page.frame_locator("iframe")
        lesson.locator(".app-learn-choice").first.wait_for(timeout=60_000)
        assert not lesson.locator(".app-header").is_visible()
        lesson.locator(".app-learn-choice").nth(1).click()
        lesson.locator(".app-learn-reply strong").wait_for()
        lesson.locator(".app-learn-next").click()
        lesson.locator(".app-learn-dot[aria-current]").nth(0).wait_for()
        assert lesson.locator(".app-learn-dot[aria-current]").get_attribute("aria-label").startswith("2:")
        lesson.locator("body").press("ArrowRight")
        assert page.evaluate("[Reveal.getIndices().h, Reveal.getScale()]") == [1, 0.8]  # the deck stays, scaled
        box = page.locator("iframe").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 1024
