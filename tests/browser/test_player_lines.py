"""The player and its stream: live runs, missing steps, states, addresses, hostile texts, and memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.browser.conftest import Shown
from tests.tiers import choose, slow
from tests.viz.records import HOSTILE, hostile, record
from viz.stream import play

Show = Callable[..., Shown]


# One in all views: the others' texts go through the same functions, as do those of tables and of the stage.
@pytest.mark.parametrize("method", choose(["lookahead", "medusa", "prompt_lookup"], ["lookahead"]))
def test_hostile_texts_are_only_texts(show: Show, method: str) -> None:
    """Tokens are written by a model or a stranger: none may become markup, run, or move its neighbours."""
    trace = hostile(record(method))
    shown = show(trace, height=6000)
    before = shown.run("document.querySelectorAll('script, img, iframe, a[href], b').length")
    shown.do("player.change({ open: new Set(player.cards.views.map((view) => view.name)) })")
    for step in range(0, len(trace.steps), 3):
        shown.do(f"player.goto({{ step: {step} }}); player.pin({step}, player.record.nodes({step}).count - 1)")
    shown.do("player.hover(player.state.step, 0, { clientX: 5, clientY: 5 })")
    for name in shown.run("[...player.cards.cards.keys()]"):
        shown.do(f"Specscope.showTable(player, player.cards.cards.get('{name}'))")
    assert shown.page.title() == "player"
    tags = shown.run(
        "document.querySelectorAll('script, img, iframe, a[href], .ss b:not(.ss-bars b, .ss-best b)').length"
    )
    assert tags <= before
    texts = shown.run("[...document.querySelectorAll('.ss-text .ss-token')].map((span) => span.textContent)")
    assert any(text == HOSTILE[0] for text in texts) and max(map(len, texts)) <= 200
    assert not any(sign in text for text in texts for sign in ("\u202e", "\u200b", "\x00", "\u2028"))
    drawn = shown.run("[...document.querySelectorAll('.ss-plot svg')].map((svg) => svg.textContent).join(' ')")
    assert "\u202e" not in drawn and ("<img" in drawn or "<scr" in drawn)


def test_a_live_run_is_followed_until_the_visitor_leaves(show: Show) -> None:
    """Steps appear as they come; whoever seeks stays there, and may go back to following."""
    shown = show(record("lookahead"), feed=False, step=None)
    assert "Nothing to show yet" in shown.text(".ss-notice")
    shown.do("player.feed(given)", play.state("queued", "You are second in the queue.", 0.5))
    assert shown.text(".ss-notice") == "You are second in the queue." and shown.page.is_visible(".ss-notice progress")
    trace, writer = shown.trace, play.Play(shown.trace.header)
    begin, *steps = [writer.begin(trace.texts), *(writer.step(step) for step in trace.steps)]
    shown.do("player.feed(given)", begin + steps[0])
    shown.at("0/commit")
    assert not shown.page.is_visible(".ss-notice")
    half = len(steps[1]) // 2
    shown.do("player.feed(given)", steps[1][:half])
    assert shown.run("player.record.last") == 0
    shown.do("player.feed(given)", steps[1][half:] + steps[2])
    shown.at("2/commit")
    shown.press("ArrowLeft")
    shown.at("1/commit")
    shown.do("player.feed(given)", steps[3])
    shown.wait("document.querySelector('.ss-where').textContent === '1 / 3'")
    assert shown.run("player.state.step") == 1
    shown.page.click("text=Follow live")
    shown.at("3/commit")
    shown.do("player.feed(given)", steps[4] + play.fault("The run took too long: ask for fewer tokens."))
    shown.at("4/commit")
    assert shown.text(".ss-notice") == "The run took too long: ask for fewer tokens."
    assert not shown.page.is_visible("text=Follow live")


def test_another_run_may_follow_in_the_same_player(show: Show) -> None:
    """Its first line ends all that was known of the former run, and whatever played or waited to be drawn."""
    shown = show(record("lookahead"))
    shown.press("Space")
    shown.wait("document.querySelector('.ss-main').title === 'Pause (Space)'")
    shown.do("player.feed(given)", play.lines(record("rest")))
    shown.wait("document.querySelector('.ss-title').textContent === 'REST'")
    assert shown.run("player.record.last") == len(record("rest").steps) - 1
    assert shown.run("player.cards.views.some((view) => view.name === 'window')") is False
    assert shown.page.get_attribute(".ss-main", "title") == "Play (Space)"
    shown.do("player.reset(); player.feed(given)", play.lines(record("medusa")))
    shown.wait("document.querySelector('.ss-title').textContent === 'Medusa'")


def test_a_live_run_is_followed_behind_a_reset(show: Show) -> None:
    """A look at the run that was still due was cancelled for good: no step of the next live run was ever drawn."""
    shown = show(record("lookahead"), feed=False, step=None)
    writer = play.Play(shown.trace.header)
    begin, *steps = [writer.begin(shown.trace.texts), *(writer.step(step) for step in shown.trace.steps[:3])]
    code = (
        "for (const piece of given) player.feed(piece); player.reset(); for (const piece of given) player.feed(piece)"
    )
    shown.do(code, [begin + steps[0], *steps[1:]])
    shown.at("2/commit")


def test_thin_steps_and_details_are_asked_for_once(show: Show) -> None:
    """A step beyond the size of the stream is fetched when it is looked at, and its alternatives when it is pinned."""
    room = len(play.Play(record("lookahead").header).begin()) + 12_000
    shown = show(record("lookahead"), cap=room)
    thin = shown.run("player.record.steps.filter((step) => step.thin).map((step) => step.k)")
    assert thin and thin[0] > 0 and shown.run("asked") == []
    last = thin[-1]
    shown.do(f"player.goto({{ step: {last} }})")
    shown.wait(f"!player.record.steps[{last}].thin && asked.length === 1")
    assert shown.run("asked") == [f"step {last}"]
    shown.do(f"player.pin({last}, 3)")
    shown.wait("document.querySelectorAll('.ss-best li').length > 0")
    shown.press("ArrowLeft", "ArrowRight")
    shown.at(f"{last}/commit")
    shown.do(f"player.pin({last}, 4)")
    assert shown.run("asked.filter((each) => each.startsWith('detail')).length") == 1
    best = shown.trace.steps[last].top[shown.trace.steps[last].parents[4]]
    assert shown.run("document.querySelectorAll('.ss-best li').length") == len(best)


def test_an_address_is_not_trusted(show: Show) -> None:
    """What stands in an address leads to a place of the run or nowhere; the copied link leads back."""
    shown = show(record("lookahead"), step=5)
    for wrong in ("{ step: -1 }", "{ step: 1e9 }", "{ step: '3' }", "{ step: NaN }", "{ view: '<img>' }",
                  "{ view: 'constructor' }", "{ node: 1e6 }", "{ node: -2 }", "{ step: null, phase: {} }"):  # fmt: skip
        shown.do(f"player.goto({wrong})")
        assert shown.run("[player.state.step, player.state.phase, player.state.pin]") == [5, "commit", None], wrong
    shown.do("player.goto({ step: 7, phase: 'accept', view: 'timeline', node: 2 })")
    shown.at("7/accept")
    assert shown.run("player.place()") == {"step": 7, "phase": "accept", "view": "timeline", "node": 2}
    shown.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown.page.click("button[aria-label='More controls']")
    shown.page.click("button[aria-label='Copy link']")
    shown.wait("document.querySelector('.ss-notice').textContent.includes('copied')")
    copied = shown.page.evaluate("navigator.clipboard.readText()")
    assert copied == "https://example.org/?step=7&phase=accept&view=timeline&node=2"
    early = show(record("lookahead"), feed=False, step=None)
    early.do("player.goto({ step: 4, phase: 'verify', node: 1 }); player.feed(given)", play.lines(record("lookahead")))
    early.at("4/verify")
    assert early.run("player.state.pin") == {"step": 4, "node": 1}


def test_pictures_are_saved(show: Show) -> None:
    """A figure can be taken along, as pixels and as vectors."""
    shown = show(record("lookahead"), step=6, views=("mask",))
    for format, begin in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        with shown.page.expect_download() as waiting:
            shown.page.click(f"button[aria-label='Save Attention mask as {format}']")
        assert waiting.value.suggested_filename == f"lookahead-mask-step-6.{format.lower()}"
        assert waiting.value.path().read_bytes().startswith(begin)


def test_the_outcome_of_the_check_is_shown_where_it_belongs(show: Show) -> None:
    """A near-tie is marked in the text and told with its margin; a late check and speedup find their place."""
    shown = show(record("lookahead"), step=6)
    shown.do("player.change({ open: new Set(['check', 'counters']) })")
    assert "Not checked yet" in shown.text("[data-view=check] .ss-verdict")
    token = shown.trace.steps[0].emitted[0]
    places = [{"position": 0, "token": token, "choice": token, "margin": 0.00012}]
    got = {"checked": 16, "exact": 15, "near_ties": 1, "violations": 0, "noise": 0.001, "places": places}
    shown.do("player.feed(given)", json.dumps({"kind": "check", "check": got | {"say": "15 of 16.", "tone": "near"},
                                               "speedup": 2.5}) + "\n")  # fmt: skip
    shown.wait("document.querySelector('[data-view=check] .ss-verdict').dataset.tone === 'near'")
    assert "margin 0.00012" in shown.text("[data-view=check] .ss-places")
    assert shown.run("document.querySelector('.ss-token[data-at=\"0\"]').classList.contains('ss-near')")
    assert "2.50×" in shown.text("[data-view=counters]")


def test_a_share_of_the_bandwidth_comes_with_the_end_or_a_sentence_in_its_place(show: Show) -> None:
    """Only after the run it is known how fast the machine reads by then."""
    shown = show(record("lookahead"), step=6)
    shown.do("player.change({ open: new Set(['counters']) })")
    end = {"kind": "end", "finish": "length", "summary": {}, "check": None, "speedup": None}
    for words, sentence in (("35 to 39 %", False), ("Not given: it fits in a <b>cache</b>.", True)):
        shown.do("player.feed(given)", json.dumps(end | {"bandwidth": words}) + "\n")
        row = "[...document.querySelectorAll('.ss-number')].find((row) => row.textContent.startsWith('Share of'))"
        assert shown.run(f"{row}.lastChild.textContent") == words
        assert shown.run(f"{row}.lastChild.classList.contains('ss-sentence')") is sentence


@slow  # it seeks through whole runs
def test_seeking_leaves_nothing_behind(show: Show, everything: bool) -> None:
    """A page that grows with every step looked at dies in an afternoon of scrubbing.

    Sixty seeks show a node or a listener that each of them leaves; the 150 of `--all` one that every third leaves, and
    a smaller leak of memory.
    """
    shown = show(record("lookahead"), height=2600)
    shown.do("player.change({ open: new Set(['mask', 'window', 'pool', 'tree']) })")
    wander = """for (let i = 0, x = 7; i < given; i += 1) { x = (x * 1103515245 + 12345) % 2147483648;
      player.seek(x % (player.record.last + 1), Specscope.PHASES[x % 4]); await new Promise(requestAnimationFrame); }"""
    shown.do(wander, 40 if everything else 20)
    before = _memory(shown.page)
    shown.do(wander, 150 if everything else 60)
    after = _memory(shown.page)
    assert after["nodes"] <= before["nodes"] * 1.02 + 20
    assert after["listeners"] <= before["listeners"] * 1.02 + 20
    assert after["heap"] - before["heap"] < 2_000_000
    shown.do("player.destroy()")
    assert shown.run("document.getElementById('player').childNodes.length") == 0


def test_what_was_told_of_one_step_does_not_stay_over_another(show: Show) -> None:
    """A tooltip told a node's fate over a phase in which nobody can know it."""
    shown = show(record("lookahead"), step=6)
    shown.do("player.hover(6, 1, { clientX: 5, clientY: 5 })")
    assert shown.page.is_visible(".ss-tooltip")
    shown.do("player.seek(6, 'propose')")
    assert not shown.page.is_visible(".ss-tooltip")


def test_a_refused_full_screen_leaves_no_listener(show: Show) -> None:
    """The card fills the window instead, until it is pressed again; nobody waits for a full screen that never was."""
    shown = show(record("lookahead"), views=("mask",))
    shown.do("Element.prototype.requestFullscreen = () => Promise.reject(new TypeError())")
    shown.do("Specscope.toggleFullScreen(player.cards.cards.get('mask').node, player)")
    shown.do("document.dispatchEvent(new Event('fullscreenchange'))")
    assert shown.run("player.root.querySelectorAll('.ss-filled').length") == 1
    shown.do("Specscope.toggleFullScreen(player.cards.cards.get('mask').node, player)")
    assert shown.run("player.root.querySelectorAll('.ss-filled').length") == 0


def _memory(page: Any) -> dict[str, float]:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.enable")
    for _ in range(2):
        session.send("HeapProfiler.collectGarbage")
    counted = session.send("Memory.getDOMCounters")
    heap = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return {"nodes": counted["nodes"], "listeners": counted["jsEventListeners"], "heap": heap}


def test_a_stopped_run_says_who_stopped_it_where_that_is_known(show: Show) -> None:
    """Whoever watched it go on pressed the button; a file may be anybody's."""
    whole = record("lookahead")
    assert whole.summary is not None
    trace = replace(whole, summary=replace(whole.summary, finish="cancelled"))
    shown = show(trace)
    assert shown.text(".ss-notice") == "This run stopped before its end."
    live = play.Play(trace.header)
    first = live.begin(trace.texts) + live.step(trace.steps[0])
    shown.do("player.feed(given)", first)
    shown.do("player.feed(given)", live.end(trace.summary))
    assert shown.text(".ss-notice") == "You stopped this run."
