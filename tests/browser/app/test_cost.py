"""The Cost tab in a browser: sliders answer at once, all choices are in the address, and marks lead to the steps."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import pytest

from .conftest import Served

pytestmark = pytest.mark.filterwarnings("default")  # the server runs in this process, and Gradio's parts warn
NewPage = Callable[..., Any]
CURVES = "curve=cpu-2-cores:smollm2:128&with=nvidia-h200:7B:1024"
CHARTS = 8
MOST_MS = 50  # from a slider's move to its last mark

PARAMS = "SpecscopeApp.shown.viewer?.player.record.head?.header.params"


def enter(page: Any, served: Served, query: str = CURVES) -> Any:
    """Open an address of the tab, and wait until its recorded runs are drawn."""
    page.goto(f"{served.address}?screen=cost&{query}")
    page.wait_for_function(f"document.querySelectorAll('#cost .app-cost-chart').length === {CHARTS}")
    return page


def facts(page: Any) -> dict[str, str]:
    names, values = (page.locator(f"#cost .app-cost-facts {kind}").all_inner_texts() for kind in ("dt", "dd"))
    return dict(zip(names, values, strict=True))


def test_trees_are_priced_where_they_were_measured(new_page: NewPage, served: Served) -> None:
    page = enter(new_page(), served)
    card = "#cost section[aria-label='Trees of k chains of w guesses']"
    says = page.locator(f"{card} .app-cost-says p").all_inner_texts()
    assert says[0].startswith("No trees were measured for AMD EPYC, 2 threads (")
    assert says[1].startswith("AMD EPYC without AVX-512") and page.locator(f"{card} tbody td").count() == 16
    page = enter(page, served, "curve=cpu-avx2-2-cores:smollm2:128")
    assert page.locator(f"{card} tbody td").count() == 16
    best = page.inner_text(f"{card} .app-cost-says p >> nth=0")
    ratio, speed = re.search(r"([\d.]+ tokens per step at [\d.]+) times the cost, ([\d.]+)×", best).groups()  # type: ignore[union-attr]
    tokens, cost = map(float, ratio.split(" tokens per step at "))
    assert abs(tokens / cost - float(speed)) < 0.02
    shown = [float(each.strip("~×")) for each in page.locator(f"{card} td strong").all_inner_texts()]
    assert max(shown) == float(speed)
    page.click(f"{card} tr:nth-child(2) td:nth-of-type(3) button")
    page.wait_for_function(f"{PARAMS}.k === 2 && {PARAMS}.w === 4")


def test_the_size_of_medusas_trees_is_priced_on_every_machine(new_page: NewPage, served: Served) -> None:
    page = enter(new_page(), served, "curve=cpu-avx2-2-cores:smollm2:128")
    card = '#cost section[aria-label="Trees of Medusa\'s heads"]'
    best = page.inner_text(f"{card} .app-cost-says p >> nth=0")
    size, tokens, cost, speed = re.search(
        r"a tree of (\d+) guess(?:es)?.*: ([\d.]+) tokens per step at ([\d.]+) times the cost, ([\d.]+)×", best
    ).groups()  # type: ignore[union-attr]
    assert abs(float(tokens) / float(cost) - float(speed)) < 0.02
    page.click(f"{card} summary")
    rows = [line.split("\t") for line in page.inner_text(f"{card} tbody").splitlines()]
    assert max(float(row[-1]) for row in rows) == pytest.approx(float(speed), abs=0.006)
    assert next(row for row in rows if row[0] == size)[1].startswith(tokens[:4])
    assert "The heads themselves take as long as" in page.inner_text(f"{card} .app-cost-small")
    page.click(f"{card} tbody button >> nth=3")
    page.wait_for_function(f"{PARAMS}.size === 8")
    page = enter(page, served, "curve=nvidia-h200:7B:1024")
    assert "if heads write what SmolLM2 135M's do" in page.inner_text(f"{card} .app-cost-says")
    assert "these are SmolLM2 135M's" in page.inner_text(f"{card} .app-cost-small")


def test_sliders_ask_nobody_and_a_row_leads_to_its_steps(new_page: NewPage, served: Served) -> None:
    page = enter(new_page(), served)
    assert facts(page)["Speed-up"] == "2.10×" and facts(page)["Tokens per step"] == "2.77"
    asked = list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate(
        """for (const [name, value] of [["First guess accepted", 0.1], ["Drafting a guess costs", 0.3]]) {
        const slider = document.querySelector(`#cost input[aria-label='${name}']`);
        slider.value = value;
        slider.dispatchEvent(new Event("input"));
        }"""
    )
    said = page.inner_text("#cost section[aria-label='When a draft pays'] .app-cost-says")
    assert said.count("do not speculate here") == 2
    page.focus("#cost input[aria-label='Draft length']")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert "draft=6" in page.evaluate("location.search") and facts(page)["Best draft length"] == "none"
    assert not asked
    page.go_back()  # both presses are one entry of the history
    page.wait_for_function("!location.search.includes('draft=')")
    assert facts(page)["Speed-up"] == "2.10×"
    page.evaluate("scrollTo(0, 900)")
    page.click("#cost section[aria-label='Recorded runs on these machines'] summary")
    page.click("#cost .ss-table button >> text=Prompt lookup")
    page.click("dialog[open] button >> text=Step 4")
    at = "SpecscopeApp.shown.viewer.player"
    page.wait_for_function(f"{at}.record.head?.header.method === 'prompt_lookup' && {at}.state.step === 4")
    assert "run=smollm2-spelling-prompt_lookup&step=4" in page.evaluate("location.search")
    page.go_back()
    page.wait_for_selector("#cost .app-cost-chart")
    assert page.evaluate("location.search").startswith("?screen=cost&curve=")


@pytest.mark.slow  # some seconds in a browser
def test_lookaheads_formula_is_fitted_to_runs_that_a_press_opens(new_page: NewPage, served: Served) -> None:
    page = enter(new_page(), served)
    card = page.locator("#cost section[aria-label='Lookahead’s window']")
    card.locator(".app-cost-says p", has_text="at most").wait_for()  # the recorded runs come behind the other charts
    before = card.locator(".app-cost-says p").last.inner_text()
    card.get_by_text("Fit to the recorded runs").click()
    after = card.locator(".app-cost-says p").last.inner_text()
    off = [int(re.findall(r"at most (\d+)%", each)[0]) for each in (before, after)]
    assert off[1] < off[0] and off[1] <= 15
    query = parse_qs(page.evaluate("location.search.slice(1)"))
    assert {"alpha", "every"} <= query.keys()
    card.locator("summary").click()
    card.locator("tbody tr").first.wait_for()  # the table is made once it is open
    assert card.locator("tbody tr").count() == card.locator("tbody button").count() + 1  # no run has the widest window
    card.locator("tbody tr").last.click()
    assert parse_qs(page.evaluate("location.search.slice(1)")) == query
    card.locator(".app-cost-pressed").nth(2).click()
    page.wait_for_function("SpecscopeApp.shown.viewer.player.record.head?.header.params.W === 4")
    assert "run=lesson-lookahead-w4" in page.evaluate("location.search")
    page.go_back()
    page.wait_for_selector("#cost .app-cost-chart")
    assert parse_qs(page.evaluate("location.search.slice(1)")) == query


@pytest.mark.slow
def test_a_hostile_address_gets_sentences(new_page: NewPage, served: Served) -> None:
    page = enter(new_page(), served, "curve=%3Cscript%3E&draft=1e9&gpu=constructor&runs=../x")
    notice = page.inner_text("#cost [role=alert]")
    assert "'<script>' in the address was left out" in notice and "'draft' in the address was left out" in notice
    assert facts(page)["Tokens per step"] == "2.77"


@pytest.mark.slow
def test_the_open_run_is_projected_too(new_page: NewPage, served: Served) -> None:
    page = served.land(new_page(), "?run=smollm2-rain-suffix")
    page.wait_for_function("SpecscopeApp.shown.viewer.player.record.end")
    page.get_by_role("tab", name="Cost").click()
    page.wait_for_selector("#cost .app-cost-chart")
    page.locator("#cost select").nth(3).select_option("open")
    page.wait_for_selector("#cost .app-cost-says >> text=SuffixDecoding is projected to be")
    assert "runs=open" in page.evaluate("location.search")


@pytest.mark.slow
def test_a_run_folder_is_projected_and_its_steps_open(new_page: NewPage, served: Served) -> None:
    page = enter(new_page(), served, f"{CURVES}&runs=folder")
    card = "#cost section[aria-label='Recorded runs on these machines']"
    page.wait_for_selector(f"{card} >> text=All questions of the run folder “Sample: pocket, 21 questions”")
    assert "methods are projected" in page.inner_text(f"{card} .app-cost-says p >> nth=0")
    page.click(f"{card} summary")
    page.click(f"{card} tbody button >> text=Draft model, short")
    first = page.locator("dialog[open] ol button").first
    step = int(first.inner_text().rsplit(" ", 1)[1])
    first.click()
    page.wait_for_function(f"{PARAMS}?.gamma === 2 && SpecscopeApp.shown.viewer.player.state.step === {step}")
    page.go_back()
    page.wait_for_selector("#cost .app-cost-chart")
    assert "runs=folder" in page.evaluate("location.search")
    page.get_by_role("tab", name="Debug").click()
    page.wait_for_function("SpecscopeApp.shown.debug?.opened.folder")
    page.evaluate("SpecscopeApp.shown.debug.load('screen=debug&folder=slow-drafter', true)")
    page.wait_for_function("SpecscopeApp.shown.debug.opened.folder === 'slow-drafter'")
    page.get_by_role("tab", name="Cost").click()
    page.wait_for_selector(f"{card} >> text=All questions of the run folder “Sample: the slow drafter”")


@pytest.mark.slow
def test_the_lesson_on_costs_leads_to_the_tab(new_page: NewPage, served: Served) -> None:
    """Its last screen says so once its question is left behind; going back is going to the lesson."""
    page = new_page()
    page.goto(f"{served.address}?screen=learn&lesson=cost&at=predict")
    page.wait_for_selector(".app-learn-foot")
    page.keyboard.press("r")
    page.click("#learn a >> text=the Cost tab")
    page.wait_for_selector("#cost .app-cost-chart")
    assert page.evaluate("location.search") == "?screen=cost"
    page.go_back()
    page.wait_for_selector("#learn >> text=Predict, measure, reconcile")


@pytest.mark.slow  # axe reads the whole tab, in both themes and on a phone
@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_the_tab_is_accessible_and_fits(new_page: NewPage, served: Served, width: int, theme: str) -> None:
    axe_core_python = pytest.importorskip("axe_core_python.sync_playwright")
    page = enter(new_page(width=width, height=844), served, f"{CURVES}&__theme={theme}")
    for summary in page.locator("#cost summary").all():
        summary.click()
    page.wait_for_selector("#cost .ss-table")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    report = axe_core_python.Axe().run(page, context="#cost")
    serious = [each["id"] for each in report["violations"] if each["impact"] != "minor"]
    assert not serious, [(each["id"], each["nodes"][0]["html"]) for each in report["violations"]]


@pytest.mark.slow  # it measures the processor's time, which other work on the machine lengthens
def test_every_slider_answers_within_the_limit(new_page: NewPage, served: Served) -> None:
    page = enter(new_page(), served)
    inspector = page.context.new_cdp_session(page)
    inspector.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        metrics = {each["name"]: each["value"] for each in inspector.send("Performance.getMetrics")["metrics"]}
        return 1000 * float(metrics["TaskDuration"])

    def answer(number: int, step: int) -> float:
        before = spent()
        page.evaluate(
            """async ([number, step]) => {
            const slider = document.querySelectorAll("#cost input[type=range]")[number];
            slider.value = String(Number(slider.min) + step * Number(slider.step));
            slider.dispatchEvent(new Event("input"));
            await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted, 0)));
            }""",
            [number, step],
        )
        return spent() - before

    sliders = page.locator("#cost input[type=range]").count()
    assert sliders == 11
    for number in range(sliders):
        # One move may be slow by chance; a slow slider is slow at every move.
        assert min(answer(number, step) for step in [1, 2, 1, 2, 1]) < MOST_MS, number
