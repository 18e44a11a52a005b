"""Around the player on the real page: what stays in sight, who has the keys, drops, tabs and their addresses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from app.examples import EXAMPLES, examples_for
from tests import GOLDEN, ROOT
from tests.tiers import choose

from .conftest import Served
from .test_visitors import begin, nobody_is_left, slow

__all__ = ["slow"]
pytestmark = pytest.mark.filterwarnings("default")  # the server runs in this process, and Gradio's parts warn
NewPage = Callable[..., Any]
PLAYER = "SpecscopeApp.shown.viewer.player"
# A race that was run here, and not the recorded one that stands there before.
RACED = "SpecscopeApp.shown.race.address?.includes('methods=') && SpecscopeApp.shown.race.ready"
DROP = """async ([selector, text]) => {
  const files = new DataTransfer(), target = document.querySelector(selector);
  files.items.add(new File([text], "run.jsonl"));
  const send = (name) => {
    const event = new DragEvent(name, { dataTransfer: files, bubbles: true, cancelable: true });
    target.dispatchEvent(event);
    return event.defaultPrevented;
  };
  const over = send("dragover"), told = document.querySelector(".app-drop").offsetHeight > 0;
  return [over, told, send("drop"), document.querySelector(".app-drop").offsetHeight === 0];
}"""


def query(page: Any) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


@pytest.mark.slow  # layouts of many screens
@pytest.mark.parametrize("width", choose([390, 1280], [390]))  # where there is the least room
def test_transport_and_legend_stay_in_sight(new_page: NewPage, served: Served, width: int) -> None:
    """Gradio hides what overflows its container, within which nothing could stick."""
    page = served.open(new_page(width=width, height=700), "?view=mask")
    page.wait_for_selector("#run-go")
    page.evaluate("document.querySelector('[data-view=mask]').scrollIntoView()")
    top, legend = page.evaluate(
        "['.ss-sticky', '.ss-legend'].map((part) => document.querySelector(part).getBoundingClientRect().top)"
    )
    assert top == 0 < legend < 200
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow  # some seconds in a browser
def test_keys_of_a_focused_button_are_its_own_and_the_rest_the_players(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page())
    page.focus("#app-theme")
    page.keyboard.press("Home")
    page.wait_for_function(f"{PLAYER}.state.step === 0")
    page.keyboard.press("Space")
    page.wait_for_function("document.body.classList.contains('dark')")
    assert not page.evaluate(f"{PLAYER}.state.playing")
    page.get_by_role("tab", name="Run").focus()
    page.keyboard.press("End")
    page.focus("#run-prompt textarea")
    page.keyboard.press("End")
    assert page.evaluate(f"{PLAYER}.state.step") == 0


@pytest.mark.slow  # as a run has them that was started
def test_a_recording_that_was_opened_has_the_keys(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page())
    page.focus(".app-recorded")
    page.keyboard.press("Enter")
    page.focus('.app-card[data-run="jacobi-defaults"]')
    page.keyboard.press("Enter")
    page.wait_for_function("SpecscopeApp.shown.viewer.facts.run === 'jacobi-defaults'")
    page.keyboard.press("End")
    page.wait_for_function(f"{PLAYER}.state.step === {PLAYER}.record.last")
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    page.wait_for_function(f"{PLAYER}.state.step > 0")
    assert not page.evaluate("document.querySelector('.app-gallery').open")


@pytest.mark.slow  # some seconds in a browser
def test_a_race_is_played_with_space_and_tells_where_it_ran(new_page: NewPage, served: Served) -> None:
    axe_core_python = pytest.importorskip("axe_core_python.sync_playwright")
    page = served.open(new_page(height=1400), "?screen=race&methods=jacobi,lookahead&length=24&prompt=Monday%3A")
    page.wait_for_function("document.querySelector('#race-length input')?.value === '24'")
    page.click("#race-go")
    page.wait_for_function(f"{RACED} && SpecscopeApp.shown.race.state.time > 0")
    page.evaluate("SpecscopeApp.shown.race.finish(); SpecscopeApp.shown.race.change({ speed: 0.001 })")
    for plays in ("true", "false"):
        page.keyboard.press("Space")
        page.wait_for_function(f"SpecscopeApp.shown.race.state.playing === {plays}")
    foot = page.inner_text("#race .ss-foot").split(" · ")
    header = page.evaluate("SpecscopeApp.shown.race.list[0].record.play.header")
    assert [foot.count(header[name]) for name in ("device", "dtype", "attention")] == [1] * 3
    assert f"torch {header['versions']['torch']}" in foot[-1]
    page.click("text=Align by token")  # the pointer stays on it
    report = axe_core_python.Axe().run(page)
    assert [each["id"] for each in report["violations"] if each["impact"] in ("serious", "critical")] == []


@pytest.mark.slow
@pytest.mark.parametrize("theme", choose(["light", "dark"], ["light"]))
def test_a_pressed_button_is_legible_under_the_pointer(new_page: NewPage, served: Served, theme: str) -> None:
    page = served.open(new_page(), f"?__theme={theme}")
    button = page.locator(".ss-phase[aria-pressed=true]").first
    looks = "(button) => [getComputedStyle(button).color, getComputedStyle(button).backgroundColor]"
    before = button.evaluate(looks)
    button.hover()
    assert button.evaluate(looks) == before and before[0] != before[1]


@pytest.mark.slow  # some seconds in a browser
def test_traces_are_saved_and_can_be_dropped_anywhere_on_the_page(
    new_page: NewPage, served: Served, tmp_path: Path
) -> None:
    """One that is damaged is told of, and leaves what is shown."""
    page = served.open(new_page())
    for form in ("trace", "csv"):
        page.click(".app-menu summary")
        with page.expect_download() as download:
            page.click(f'[data-form="{form}"]')
        assert Path(download.value.path()).stat().st_size > 1_000
    place = f"[{PLAYER}.state.step, SpecscopeApp.shown.viewer.facts.run]"
    before = page.evaluate(place)
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"kind":"header","schema":1')
    page.set_input_files(".app-bar input[type=file]", bad)
    page.wait_for_selector(".app-notice:not([hidden])")
    assert page.inner_text(".app-notice") == (
        "The file is not a trace that can be shown (the file holds no whole line of a trace): choose another one."
    )
    assert page.evaluate(place) == before
    page.set_input_files(".app-bar input[type=file]", GOLDEN / "jacobi.jsonl")
    page.wait_for_function("SpecscopeApp.shown.viewer.facts.title === 'Your file'")
    assert page.locator(".app-notice").is_hidden()
    assert page.inner_text(".ss-title") == "Jacobi"
    for where, label in ((".app-name", "Medusa"), ("#run-go", "Kangaroo"), (".ss-text", "Medusa")):
        assert page.evaluate(DROP, [where, (GOLDEN / f"{label.lower()}.jsonl").read_text()]) == [True] * 4
        page.wait_for_function("(label) => document.querySelector('.ss-title').textContent === label", arg=label)
    page.evaluate(DROP, ["#run-go", "\0 no trace"])
    page.wait_for_selector(".app-notice:not([hidden])")
    assert page.inner_text(".ss-title") == "Medusa"


@pytest.mark.slow  # the whole page takes drops, as above
def test_a_trace_that_is_dropped_on_the_race_is_shown(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page(), "?screen=race")
    page.wait_for_selector("#race-go")
    page.evaluate(DROP, ["#race-go", (GOLDEN / "medusa.jsonl").read_text()])
    page.wait_for_selector(".app-title:has-text('Medusa')", state="visible")


@pytest.mark.slow  # some seconds in a browser
def test_another_engines_record_is_opened_on_the_debug_tab(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page())
    page.evaluate(DROP, ["#run-go", (ROOT / "assets" / "samples" / "vllm.jsonl").read_text()])
    page.wait_for_selector(".app-notice:has-text('Debug tab')")
    page.click(".app-offer")
    page.wait_for_selector(".app-debug-facts:has-text('recorded by vllm')")
    assert query(page)["screen"] == ["debug"] and page.locator(".app-notice").is_hidden()


@pytest.mark.slow  # some seconds in a browser
def test_the_address_names_the_tab_that_is_seen(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page())
    page.get_by_role("tab", name="Race").click()
    page.wait_for_function("location.search === '?screen=race'")
    page.reload()
    page.wait_for_selector("#race-go", state="visible")
    page.get_by_role("tab", name="Run").click()
    page.wait_for_function("location.search.includes(`run=${SpecscopeApp.shown.viewer.facts.run}`)")
    assert "screen" not in query(page)
    page.get_by_role("tab", name="Race").click()
    page.fill("#race-length input", "16")
    page.click("#race-go")
    page.wait_for_function(RACED)
    assert query(page)["length"] == ["16"]
    page.get_by_role("tab", name="Run").click()
    page.keyboard.press("Home")
    page.wait_for_function("location.search.includes('step=0')")
    assert "screen" not in query(page)
    page.get_by_role("tab", name="Race").click()
    assert query(page)["screen"] == ["race"] and query(page)["length"] == ["16"]


OPENED = [(each.id, screen) for each in examples_for("toy") for screen in ("run", "race")]


@pytest.mark.parametrize("opened", choose(OPENED, [OPENED[0], OPENED[3]]))
def test_every_example_is_opened_by_its_address(new_page: NewPage, served: Served, opened: tuple[str, str]) -> None:
    """Gradio looked one of the names up among its own translations, and warned; by default one on each screen."""
    example, screen = opened
    page = served.open(new_page(), f"?screen={screen}&example={example}")
    label = EXAMPLES[example].label
    page.wait_for_function(f"document.querySelector('#{screen}-example input')?.value === {label!r}")


def test_a_text_of_ones_own_is_no_example(new_page: NewPage, served: Served) -> None:
    """What is said of an example would be a lie about another prompt."""
    page = served.open(new_page(), "?example=spelling")
    page.wait_for_selector("#run-form .app-hint:has-text('copying')")
    page.fill("#run-prompt textarea", "Who is Ada?")
    page.wait_for_function("document.querySelector('#run-example input').value.startsWith('None')")
    assert page.inner_text("#run-form .app-hint").strip() == ""


@pytest.mark.slow  # some seconds in a browser
def test_the_preset_is_the_one_that_the_settings_are(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page(), "?method=lookahead&p.W=7&p.N=7&p.G=7")
    shows = "(name) => document.querySelector('#p-lookahead-preset input')?.value === name"
    page.wait_for_function(shows, arg="own settings")
    page.click("#p-lookahead-preset input")
    page.get_by_role("option", name="defaults").click()
    page.wait_for_function(shows, arg="defaults")
    width = page.locator("#p-lookahead-W input[type=number]").first
    page.wait_for_function("document.querySelector('#p-lookahead-W input[type=number]').value !== '7'")
    usual = width.input_value()
    width.fill("7")
    page.wait_for_function(shows, arg="own settings")
    width.fill(usual)
    page.wait_for_function(shows, arg="defaults")


@pytest.mark.slow  # a look of one control
def test_a_long_name_ends_before_the_arrow_of_its_menu(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page())
    room = """(menu) => menu.querySelector('.icon-wrap').getBoundingClientRect().left
      - menu.querySelector('input').getBoundingClientRect().right
      + parseFloat(getComputedStyle(menu.querySelector('input')).paddingRight)"""
    assert page.eval_on_selector("#run-model", room) >= -2
    page.hover("#run-model input")
    assert page.get_attribute("#run-model input", "title") == "toy"


@pytest.mark.slow  # some seconds in a browser
def test_run_looks_as_if_it_could_be_pressed_only_while_it_can(
    new_page: NewPage, served: Served, slow: threading.Event
) -> None:
    page = served.open(new_page(), "?method=autoregressive&length=256&prompt=Monday%3A")
    page.wait_for_function("document.querySelector('#run-length input')?.value === '256'")
    begin(page)
    assert page.get_attribute("#run-go", "aria-disabled") == "true"
    page.click("#run-stop")
    page.wait_for_function("document.querySelector('#run-go').getAttribute('aria-disabled') === 'false'")
    slow.set()
    nobody_is_left(served)


@pytest.mark.slow  # some seconds in a browser
def test_a_wrong_address_of_a_race_is_told_on_its_page(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page(), "?screen=race&methods=[a](//e.org),www.e.org,<i>c</i>&length=17")
    hint = page.locator("#race .app-hint.prose:has-text('in the address was left out')")
    hint.wait_for()
    assert hint.locator("a, i").count() == 0 and "[a](//e.org)" in hint.inner_text()
    assert page.input_value("#race-length input") == "17"  # what was understood takes effect


@pytest.mark.slow  # some seconds in a browser
def test_a_race_that_cannot_begin_says_why_beside_its_button(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page(), "?screen=race&methods=jacobi,lookahead&length=16")
    page.wait_for_function("document.querySelector('#race-length input')?.value === '16'")
    page.fill("#race-length input", "")
    page.click("#race-go")
    sentence = "The number of new tokens must be a whole number from 1 to 256, not nothing."
    page.wait_for_selector(f"#race-form .app-said:has-text('{sentence}')")
    assert page.get_by_text(sentence).count() == 1
    page.fill("#race-length input", "16")
    page.click("#race-go")
    page.wait_for_function("SpecscopeApp.shown.race.ready && SpecscopeApp.shown.race.list.length === 2")
    assert page.inner_text("#race-form .app-said") == ""
    page.click("#race button[aria-label='Show the result']")
    page.wait_for_selector("#race .ss-verdict:has-text('lossless runs')")


@pytest.mark.slow  # some seconds in a browser
def test_a_prompt_that_is_too_long_is_told_of_and_leaves_no_address(new_page: NewPage, served: Served) -> None:
    """A browser that cuts a text says nothing; a run that never began cannot be found again."""
    page = served.open(new_page())
    page.fill("#run-prompt textarea", "x" * 7_600)
    page.wait_for_selector(".app-count:has-text('7,600 of 8,000 characters')")
    page.fill("#run-prompt textarea", "xy" * 60_000)
    page.wait_for_selector(".app-count.app-over:has-text('120,000 characters: shorten it to 8,000')")
    page.click("#run-go")
    page.wait_for_selector("#run-form .app-said:has-text('“Text” has 120,000 characters: shorten it to 8,000.')")
    page.fill("#run-prompt textarea", "x y " * 1_990)
    assert page.inner_text("#run-form .app-said") == ""
    page.click("#run-go")
    page.wait_for_selector("#run-form .app-said:has-text('tokens: shorten it to')")
    assert page.locator(".app-notice").is_hidden()
    page.get_by_role("tab", name="Race").click()
    page.get_by_role("tab", name="Run").click()
    assert query(page)["run"] == [page.evaluate("SpecscopeApp.shown.viewer.props.landing")]  # which is still shown


@pytest.mark.slow  # a nicety of one menu
def test_the_file_menu_closes_when_it_is_left(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page(), form=False)
    menu = page.locator(".app-menu")
    for leave in (".app-settings", ".app-title", ".ss-text"):
        page.click(".app-menu summary")
        assert menu.get_attribute("open") is not None
        page.click(leave)
        assert menu.get_attribute("open") is None
    page.focus(".app-menu summary")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    assert menu.get_attribute("open") is None
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+Tab")
    assert menu.get_attribute("open") is None


@pytest.mark.slow  # some seconds in a browser
def test_keys_go_on_where_a_button_that_was_pressed_is_gone(new_page: NewPage, served: Served) -> None:
    """The focus fell back to the page's beginning, and the player's keys did nothing."""
    page = served.open(new_page(), "?run=nosuch")
    page.focus(".app-notice .app-close")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement === SpecscopeApp.shown.viewer.player.root")
    page.goto(f"{served.address}?screen=learn")
    for button in (".app-learn-lesson >> nth=5", ".app-learn-all"):
        page.focus(button)
        page.keyboard.press("Enter")
        page.wait_for_function("document.activeElement === SpecscopeApp.shown.learn.root && scrollY === 0")
    page.goto(f"{served.address}?screen=debug&foo=1")
    page.wait_for_selector(".app-debug-notice button")
    page.focus(".app-debug-notice button")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('.ss-debug select') !== null")


@pytest.mark.slow  # some seconds in a browser
def test_a_box_that_has_the_focus_is_outlined(new_page: NewPage, served: Served) -> None:
    """Of a method's box in the form of a race nothing but the colour of a thin line changed."""
    page = served.open(new_page(), "?screen=race&length=9")
    page.focus("#race-methods input >> nth=1")
    page.keyboard.press("Tab")
    outlines = "[...document.querySelectorAll('#race-methods label')].map((box) => getComputedStyle(box).outlineStyle)"
    assert page.evaluate(outlines).count("solid") == 1


@pytest.mark.slow  # some seconds in a browser
def test_on_a_phone_the_tools_are_on_one_line_and_keys_are_not_broken(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page(width=390, height=844), "?run=lookahead-defaults", form=False)
    tools = page.locator("#run .app-tools .app-button:visible")
    tops = tools.evaluate_all("(all) => all.map((each) => each.getBoundingClientRect().top)")
    assert len(tops) > 3 and len(set(tops)) == 1
    page.click("[aria-label^='Keys and words']")
    heights = page.evaluate("[...document.querySelectorAll('dialog[open] kbd')].map((key) => key.offsetHeight)")
    assert len(heights) > 9 and set(heights) == {18}
