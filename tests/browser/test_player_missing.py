"""The player without what it asks for: steps that are not loaded, answers that fail, charts that never come."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.conftest import Shown
from tests.tiers import slow
from tests.viz.records import record
from viz.fates import emitted_fates, is_branching
from viz.palette import Fate
from viz.stream import play

Show = Callable[..., Shown]
pytestmark = slow  # it waits for answers that do not come
FAIL = "player.source.{0} = (k) => {{ asked.push(`{0} ${{k}}`); return Promise.reject(new Error()); }}"
# What is to be done after seconds waits for the test.
HOLD = """globalThis.held = []; const later = setTimeout;
  globalThis.setTimeout = (run, ms) => (ms >= 1000 ? held.push(run) : later(run, ms));"""
NOTICE = "document.querySelector('.ss-notice').textContent"


@pytest.fixture
def thin(show: Show) -> Shown:
    """Make a run whose later steps did not fit into the stream."""
    return show(record("lookahead"), cap=len(play.Play(record("lookahead").header).begin()) + 12_000)


@slow  # it waits for attempts to fail
def test_a_step_that_cannot_be_fetched_is_asked_for_again_but_not_endlessly(thin: Shown) -> None:
    """Every redrawing asked again, some sixty times a second while the pointer moved."""
    last = thin.run("player.record.last")
    thin.do("globalThis.give = player.source.step; " + HOLD + FAIL.format("step"))
    thin.press("End")
    thin.wait(f"{NOTICE} === 'Step {last} could not be fetched: the server may no longer keep this run.'")
    for _ in range(3):
        thin.do("player.change({ hover: null })")
    assert thin.run("asked") == [f"step {last}"]
    assert thin.text(".ss-waiting:visible") == "This step could not be fetched. It will be asked for again."
    thin.do("player.source.step = give; for (const run of held.splice(0)) run()")
    thin.wait(f"!player.record.steps[{last}].thin")
    assert thin.run("document.querySelectorAll('.ss-waiting:not([hidden])').length") == 0


def test_details_that_failed_are_asked_for_again(show: Show) -> None:
    """One lost answer left a token without its alternatives for good."""
    shown = show(record("lookahead"), step=6)
    shown.do("globalThis.give = player.source.detail; " + HOLD + FAIL.format("detail"))
    shown.do("player.pin(6, 3)")
    shown.wait(f"{NOTICE}.startsWith('Step 6 could not be fetched')")
    shown.do("player.source.detail = give; for (const run of held.splice(0)) run()")
    shown.wait("player.fetch.asked.size === 0")
    shown.do("player.pin(6, 4)")
    shown.wait("document.querySelectorAll('.ss-best li').length > 0")


def test_a_pinned_token_of_a_live_run_says_what_it_sees(show: Show) -> None:
    """Before, whoever pinned one had to wait for the run's end."""
    shown = show(record("lookahead"), feed=False, step=None)
    *got, end = play.lines(record("lookahead")).splitlines(keepends=True)
    shown.do("player.feed(given)", "".join(got))
    shown.do("player.pin(6, 3)")
    shown.wait("document.querySelectorAll('.ss-best li').length > 0")
    assert shown.text(".ss-why").startswith("Sees ") and shown.run("player.record.live")
    shown.do("player.feed(given)", end)
    assert shown.run("[asked, player.state.pin]") == [["detail 6"], {"step": 6, "node": 3}]


def test_a_live_runs_thin_step_comes_once_it_is_chosen(show: Show) -> None:
    """A run that is followed shows every step for a moment only: nothing is fetched for that."""
    shown = show(record("lookahead"), feed=False, step=None)
    *got, _ = play.lines(record("lookahead"), cap=0).splitlines(keepends=True)
    shown.do("player.feed(given); player.cards.toggle('mask', true)", "".join(got))
    card = ".ss-card[data-view=mask] .ss-waiting"
    later = "The charts of this run's later steps are shown when you choose a step, or when it has ended."
    shown.wait(f"document.querySelector('{card}')?.textContent")  # charts of a run that is followed come after its text
    assert shown.text(card) == later and shown.run("asked") == []
    symbols = shown.page.locator(".ss-legend li").count()
    shown.do("const { step } = player.source; player.source.step = (k) => "
             "new Promise((done) => { globalThis.give = () => done(step(k)); })")  # fmt: skip
    shown.do("player.seek(6)")
    assert shown.text(card) == "Fetching this step …"
    shown.do("give()")
    shown.wait("!player.record.steps[6].thin")
    assert shown.run("document.querySelector(given).hidden", card)
    assert shown.page.locator(".ss-legend li").count() > symbols


def test_a_failed_runs_thin_step_is_not_waited_for(show: Show) -> None:
    """A run is kept from its end on: one that broke off has no more than it has told."""
    shown = show(record("lookahead"), feed=False, step=None)
    *got, _ = play.lines(record("lookahead"), cap=0).splitlines(keepends=True)
    ended = "".join(got) + play.fault("It failed.")
    shown.do("player.feed(given); player.seek(6); player.cards.toggle('mask', true)", ended)
    lost = "This step's charts are lost: the run was interrupted before they were stored."
    assert shown.text(".ss-card[data-view=mask] .ss-waiting") == lost
    assert shown.run("asked") == []


def test_an_answer_about_a_former_run_is_not_told(thin: Shown) -> None:
    """A fetch that fails late must not put its sentence under another run."""
    thin.do("player.source.step = () => new Promise((_, fail) => { globalThis.fail = fail; })")
    thin.press("End")
    thin.wait("typeof fail === 'function'")
    thin.do("player.feed(given); fail(new Error())", play.lines(record("rest")))
    thin.wait("document.querySelector('.ss-title').textContent === 'REST'")
    assert "could not be fetched" not in thin.text(".ss")


def test_jumps_find_steps_that_are_not_loaded(thin: Shown) -> None:
    """A thin step's line has no nodes: whoever asked for the next branch was led past it, or told of none."""
    thin.do("player.source.step = () => new Promise(() => {})")
    steps = record("lookahead").steps
    wanted = {
        "rejection": [k for k, step in enumerate(steps) if Fate.CORRECTION in emitted_fates(step)],
        "hit": [k for k, step in enumerate(steps) if step.accepted],
        "branch": [k for k, step in enumerate(steps) if is_branching(step)],
    }
    for kind, places in wanted.items():
        thin.press("Home")
        thin.do("player.transport.unfold(true)")
        for k in (k for k in places if k):
            thin.page.click(f"button[aria-label='Next {kind}']")
            thin.at(f"{k}/commit")
        assert thin.run("player.record.steps.at(-1).thin") and places
        thin.page.click(f"button[aria-label='Next {kind}']")
        thin.wait(f"{NOTICE} === 'No later {kind} in this run.'")


def test_steps_that_are_not_loaded_are_not_said_to_have_nothing(thin: Shown) -> None:
    """A thin step has no nodes here: what was not looked at is not denied."""
    thin.do("player.source.step = () => new Promise(() => {})")
    thin.open("mask")
    thin.press("End", "/")
    thin.page.fill(".ss-find", "no such token")
    thin.press("Enter")
    thin.wait(f"{NOTICE} === 'No later step among those loaded has this text.'")
    thin.page.click("button[aria-label='Attention mask as a table']")
    assert "This step is not loaded yet." in thin.text("dialog[open]")


def test_charts_that_never_come_are_told_of_and_waited_for_no_longer(show: Show) -> None:
    """Text, numbers and keys go on without the charts' library."""
    shown = show(record("lookahead"), feed=False, step=None)
    shown.do("globalThis.Plotly = undefined; player.feed(given)", play.lines(record("lookahead")))
    shown.open("mask")
    shown.wait("player.waits")
    shown.do("Specscope.library.failed = true")
    shown.wait(f"{NOTICE} === 'The charts could not be loaded: reload the page.'")
    shown.wait("!player.waits")
    size = shown.run("player.state.size")
    assert shown.run("player.state.size") == size and not shown.run("player.waits")  # a frame later, and for ever
    shown.press("ArrowRight")
    shown.at("1/commit")
