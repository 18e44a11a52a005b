"""The stage in a browser: a token is one element that travels, and what is asked for at once is shown at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.conftest import Shown
from tests.tiers import choose, sampled, slow
from tests.viz.records import METHODS, QUICK, hostile, record
from viz import token_text
from viz.methods import label_of
from viz.stream.play import lines

Show = Callable[..., Shown]
MOVING = 'document.querySelector(".ss-floor").getAnimations({ subtree: true }).length'


def accepting(shown: Shown) -> int:
    """A step in which guesses were accepted, and that is not the first."""
    return next(step.index for step in shown.trace.steps if step.accepted > 1 and step.index > 2)


@sampled
@pytest.mark.parametrize("method", choose(METHODS, QUICK))
def test_every_phase_of_every_method_is_on_the_stage(show: Show, method: str) -> None:
    """A scene that cannot be drawn would leave the last one standing."""
    shown = show(record(method))
    steps, phases = (
        (0, len(shown.trace.steps) // 2, len(shown.trace.steps) - 1),
        ("propose", "verify", "answers", "accept", "commit"),
    )
    scene = '[document.querySelector(".ss-floor").dataset.phase, document.querySelectorAll(".ss-piece").length]'
    scenes = shown.walk(steps, phases, scene)
    assert [phase for phase, _ in scenes] == [*phases] * len(steps)
    assert all(pieces >= 2 for _, pieces in scenes)
    label = shown.run('document.querySelector(".ss-floor").getAttribute("aria-label")')
    assert shown.run("player.record.steps.at(-1).say") in label


def test_an_accepted_guess_is_one_element_all_the_way_into_the_text(show: Show) -> None:
    """It is proposed below the text, goes up into it, and is the text's in the next step."""
    shown = show(record("lookahead"))
    k = accepting(shown)
    shown.do(f"player.seek({k}, 'accept', false)")
    shown.at(f"{k}/accept")
    shown.do('globalThis.guess = document.querySelector(".ss-piece.ss-is-2"); guess.style.transitionDuration = "0s"')
    before = shown.run("guess.getBoundingClientRect().y")
    shown.do(f"player.seek({k}, 'commit', false)")
    shown.at(f"{k}/commit")
    assert shown.run("guess.isConnected") and shown.run("guess.getBoundingClientRect().y") < before
    shown.do(f"player.seek({k + 1}, 'propose', false)")
    shown.at(f"{k + 1}/propose")
    step = shown.trace.steps[k]
    assert shown.run("guess.isConnected && guess.classList.contains('ss-is-9')") == (step.accepted < len(step.emitted))


def test_tokens_travel_from_phase_to_phase(show: Show) -> None:
    """A new guess begins where it comes from; both ends of the way and the time between them are the browser's own."""
    shown = show(record("lookahead"))
    k = accepting(shown)
    shown.do(f"player.seek({k - 1}, 'commit', false)")
    shown.at(f"{k - 1}/commit")
    assert shown.run(MOVING) == 0
    assert shown.run(f"(player.sub(1), player.flush(), {MOVING})") > 0
    shown.at(f"{k}/propose")
    shown.do('for (const each of document.querySelector(".ss-floor").getAnimations({ subtree: true })) each.finish()')
    assert shown.run(MOVING) == 0


def test_guesses_made_on_each_other_come_one_by_one(show: Show) -> None:
    """Each waits for the one in front of it, and in the next phase nothing waits any more."""
    shown = show(record("kangaroo"))
    k = next(step.index for step in shown.trace.steps if step.drafted > 1)
    shown.do(f"player.seek({k - 1}, 'commit', false)")
    shown.at(f"{k - 1}/commit")
    waits = (
        '[...document.querySelectorAll(".ss-piece.ss-is-0")]'
        ".map((piece) => parseFloat(getComputedStyle(piece).transitionDelay))"
    )
    delays = shown.run(f"(player.sub(1), player.flush(), {waits})")
    assert len(delays) == shown.trace.steps[k].drafted and delays == sorted(set(delays)) and delays[0] > 0
    assert not any(shown.run(f"(player.sub(1), player.flush(), {waits})"))


@slow  # some seconds in a browser
@pytest.mark.parametrize("how", ["scrub", "back", "far", "calm"])
def test_nothing_moves_where_it_should_not(show: Show, how: str) -> None:
    """Who scrubs, goes back or jumps wants to be there; who asks for no motion gets none."""
    shown = show(record("lookahead"), **({"reduced_motion": "reduce"} if how == "calm" else {}))
    shown.do("player.seek(6, 'commit', false)")
    shown.at("6/commit")
    ways = {"scrub": "player.seek(7, 'commit', false)", "back": "player.stepBy(-1)", "far": "player.stepBy(4)"}
    assert shown.run(f"({ways.get(how, 'player.sub(1)')}, player.flush(), {MOVING})") == 0
    shown.at({"scrub": "7/commit", "back": "5/commit", "far": "10/commit", "calm": "7/propose"}[how])


def test_a_piece_is_pinned_and_pointed_at_like_a_node(show: Show) -> None:
    """The stage takes part in the one selection that all views share."""
    shown = show(record("lookahead"))
    k = accepting(shown)
    shown.do(f"player.seek({k}, 'accept', false)")
    shown.at(f"{k}/accept")
    shown.page.locator(".ss-piece.ss-is-2").first.click()
    pin = shown.run("player.state.pin")
    assert pin["step"] == k and pin["node"] in shown.trace.steps[k].path
    shown.wait('document.querySelectorAll(".ss-piece.ss-pinned").length > 0')
    shown.press("Escape")
    shown.wait('document.querySelectorAll(".ss-piece.ss-pinned").length === 0')


def test_texts_of_tokens_are_texts(show: Show) -> None:
    """Whatever a token says, it stands on the stage as its characters."""
    trace = hostile(record("lookahead"))
    shown = show(trace)
    shown.do("player.seek(6, 'commit', false)")
    shown.at("6/commit")
    assert shown.run('document.querySelectorAll(".ss-piece *:not(span):not(i):not(small)").length') == 0
    token_texts = {"", *(token_text.shown(text) for text in trace.texts.values())}
    assert (
        set(shown.run('[...document.querySelectorAll(".ss-piece-word")].map((word) => word.textContent)'))
        <= token_texts
    )


@slow  # some seconds in a browser
@pytest.mark.parametrize("width", [1280, 390])
def test_six_small_stages_have_room_side_by_side(show: Show, width: int) -> None:
    """Each is a name and a stage, whose words are as large as those of a whole player; keys are the first player's."""
    shown = show(record("lookahead"), width=width, height=900)
    methods = ("draft_model", "jacobi", "medusa", "prompt_lookup", "rest", "suffix")
    shown.do(
        """const grid = document.createElement("div");
        grid.style = "display: grid; grid-template-columns: repeat(auto-fit, minmax(min(300px, 100%), 1fr)); gap: 16px";
        document.querySelector("main").append(grid);
        globalThis.small = given.map((lines) => {
          const node = grid.appendChild(document.createElement("div"));
          node.style = "min-width: 0";
          const each = new Specscope.Player(node, { follower: true, small: true });
          each.feed(lines);
          each.goto({ step: 2, phase: "answers" });
          each.flush();
          return each;
        })""",
        [lines(record(method)) for method in methods],
    )
    seen = shown.run(
        """small.map(({ root, stage }) => ({
          at: root.dataset.at, pieces: stage.pieces.shown.size, letter: stage.pieces.letter,
          parts: [...root.querySelectorAll(".ss-transport, .ss-text, .ss-legend")].filter((each) => each.offsetParent),
          name: root.querySelector(".ss-slim strong").offsetParent && root.querySelector(".ss-slim strong").textContent,
          wide: stage.floor.getBoundingClientRect().right <= root.getBoundingClientRect().right,
        }))"""
    )
    assert [each["name"] for each in seen] == [label_of(record(method).header) for method in methods]
    for each in seen:
        assert each["at"] == "2/answers" and each["pieces"] > 0 and each["letter"] >= 10 and each["wide"]
        assert each["parts"] == []
    tops = shown.run("new Set(small.map(({ root }) => root.getBoundingClientRect().top)).size")
    assert tops == (2 if width == 1280 else 6)
    assert shown.run("document.documentElement.scrollWidth <= innerWidth")
    shown.press(".")
    assert shown.run("small.map(({ state }) => state.phase)") == ["answers"] * 6
    shown.do("for (const each of small) each.destroy()")
