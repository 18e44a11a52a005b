"""What a visitor is asked to foresee is nowhere on the page before it is shown."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from decoding.types import Role
from tests.browser.conftest import Shown
from tests.tiers import of_methods, slow
from tests.viz.records import METHODS, record
from viz.palette import Fate

Show = Callable[..., Shown]
GUESSING = [method for method in METHODS if method != "autoregressive"]
BEFORE = ("propose", "verify", "answers")
VERDICTS = [Fate.ACCEPTED, Fate.REJECTED, Fate.MATCHED, Fate.CORRECTION, Fate.BONUS, Fate.OWN, Fate.TWIN]
STAGE = ", ".join(f".ss-stage .ss-is-{int(fate)}" for fate in VERDICTS if fate is not Fate.ACCEPTED)
GHOSTS = ", ".join(f".ss-ghosts .ss-fate-{int(fate)}" for fate in VERDICTS)
# Fates on the stage and after the text, how many of the later tokens are in the document, what is read aloud, the ticks
# of this step and later ones, and the text after the strip's end.
SEEN = f"""(() => {{
  const {{ step }} = player.state, {{ text, transport, record }} = player;
  const x = (step / Math.max(1, record.last)) * 1000 - 0.06;
  const drawn = [...document.querySelectorAll(".ss-ticks path")].map((path) => path.getAttribute("d"));
  const ticks = drawn.flatMap((d) => [...d.matchAll(/M([\\d.]+)/g)]);
  const verdict = record.steps[step].say.slice(9);
  return {{
    fates: document.querySelectorAll({STAGE!r}).length + document.querySelectorAll({GHOSTS!r}).length,
    later: document.querySelectorAll(".ss-text .ss-token[hidden]").length,
    told: [...document.querySelectorAll("[aria-label], [title]")].some((each) =>
      [each.getAttribute("aria-label"), each.title].some((words) => words && words.includes(verdict))),
    aloud: document.querySelector(".ss-say").textContent + document.querySelector("[aria-live]").textContent,
    ticks: ticks.filter(([, place]) => Number(place) >= x).length,
    all: ticks.length,
    strip: [...document.querySelectorAll(".ss-ghosts [data-node]")].map((span) => Number(span.dataset.node)),
  }};
}})()"""


def first_branch(parents: tuple[int, ...], explored: set[int]) -> list[int]:
    """The first guess, and down from it the first one after each."""
    branch = [0]
    for node, parent in enumerate(parents):
        if node and parent == branch[-1] and node not in explored:
            branch.append(node)
    return branch[1:]


@pytest.mark.parametrize("method", of_methods({"eagle3", "lookahead", "prompt_lookup"}, map(pytest.param, METHODS)))
def test_no_phase_shows_more_than_is_known_in_it(show: Show, method: str) -> None:
    """The text strip showed the accepted path while the guesses were still to be read, and the scrubber the verdict."""
    shown = show(record(method))
    steps = [step for step in shown.trace.steps if step.index][:6]
    seen = shown.walk([step.index for step in steps], BEFORE, SEEN)
    for number, found in enumerate(seen):
        step = steps[number // len(BEFORE)]
        explored = {node for node, role in enumerate(step.roles) if role is Role.EXPLORE}
        assert found["strip"] == first_branch(step.parents, explored)
        assert (found["fates"], found["ticks"], found["told"]) == (0, 0, False)
    told = shown.walk([step.index for step in steps], ["accept"], SEEN)
    assert [found["strip"][: step.accepted] for found, step in zip(told, steps, strict=True)] == [
        [*step.path[1:]] for step in steps
    ]


@slow  # some seconds in a browser
@pytest.mark.parametrize("method", of_methods({"medusa", "jacobi"}, map(pytest.param, GUESSING)))
def test_what_is_withheld_is_not_in_the_document(show: Show, method: str) -> None:
    """Whatever the phase, and also for whoever listens to the page or looks into it."""
    shown = show(record(method))
    k = next(step.index for step in shown.trace.steps if step.accepted and step.index > 1)
    shown.do(f"player.goto({{ step: {k}, phase: 'commit' }})")
    shown.at(f"{k}/commit")
    shown.do("player.withhold(true)")
    shown.at(f"{k}/answers")
    found = shown.run(SEEN)
    assert found["aloud"] == "" and not any(found[name] for name in ("fates", "later", "told", "all"))
    shown.do("player.sub(1)")
    assert shown.run(SEEN)["fates"] == 0
    shown.do("player.withhold(false)")
    shown.at(f"{k}/accept")
    assert shown.run(SEEN)["fates"] > 0


# What tells how long the run is, how it ended, or what a node sees.
KEPT = """(() => {
  const last = player.record.last, { where } = player.transport;
  const named = [...document.querySelectorAll("[aria-label], [aria-valuetext], [title]")].map((each) =>
    [each.getAttribute("aria-label"), each.getAttribute("aria-valuetext"), each.title].join(" "));
  return {
    last: Number(where.textContent.includes(` / ${last}`))
      + named.filter((words) => [` of ${last}`, `${last + 1} passes`].some((each) => words.includes(each))).length,
    headline: document.querySelector(".ss-conclusion").hidden ? "" : document.querySelector(".ss-headline").textContent,
    mask: document.querySelectorAll("[data-view=mask]").length,
    sees: document.querySelector(".ss-why").textContent,
    lit: [...document.querySelectorAll(".ss-marks")].filter(({ dataset }) => dataset.seen).length,
    timeline: player.cards.cards.get("timeline").content.figure.data[0].y.length,
  };
})()"""


@pytest.mark.parametrize("withheld", [True, False])
def test_while_a_question_is_open_the_run_has_no_length_end_or_mask(show: Show, withheld: bool) -> None:
    """Also where the host itself shows what became of the step, as at the end of a run."""
    shown = show(record("lookahead"), views=["mask", "timeline", "tree"], height=3000)
    last = len(shown.trace.steps) - 1
    shown.do(f"player.goto({{ step: {last}, phase: 'commit', node: 3 }})")
    shown.at(f"{last}/commit")
    shown.wait("player.record.details.has(player.state.step)")
    shown.do("player.change({})")
    told = shown.run(KEPT)
    assert told["last"] >= 3 and told["headline"] and told["mask"] == 1 and told["sees"] and told["lit"]
    shown.do(f"player.goto({{ step: {last} }}); player.withhold({str(withheld).lower()}, true)")
    shown.at(f"{last}/{'answers' if withheld else 'commit'}")
    kept = shown.run(KEPT)
    assert (kept["last"], kept["headline"], kept["mask"], kept["sees"], kept["lit"]) == (0, "", 0, "", 0)
    shown.do("player.seek(3, 'verify')")
    shown.at("3/verify")
    assert shown.run(KEPT)["timeline"] == (3 if withheld else last + 1)
    assert shown.run("player.transport.scrubber.max") == "3"
    assert shown.run("player.transport.scrubber.disabled && player.cards.buttons.get('mask').disabled")
    shown.press(shown.run("player.cards.key(player.record.view('mask'))"))
    assert shown.run(KEPT)["mask"] == 0
    shown.do(f"player.goto({{ step: {last}, node: 3 }}); player.withhold(false)")
    shown.at(f"{last}/commit")
    assert shown.run(KEPT) == told


def test_later_steps_are_not_on_the_timeline_while_phases_are_looked_at(show: Show) -> None:
    """They were dimmed there, and could be read."""
    shown = show(record("lookahead"), height=2400)
    shown.do("player.cards.goto('timeline')")
    shown.wait("player.cards.cards.get('timeline').content.drawn !== null")
    known = "player.cards.cards.get('timeline').content.figure.data[0].y.filter((each) => each !== null).length"
    assert shown.walk([5], ["propose", "accept", "commit"], known) == [5, 6, len(shown.trace.steps)]


def test_counters_count_a_step_once_it_is_judged(show: Show) -> None:
    shown = show(record("medusa"), height=2400)
    shown.do("player.cards.goto('counters')")
    values = "[...document.querySelectorAll('.ss-numbers dd')].map((value) => value.textContent).join('|')"
    before, proposed, judged = shown.walk([4], ["commit"], values) + shown.walk([5], ["propose", "accept"], values)
    assert before == proposed != judged


def test_a_host_goes_to_a_whole_state_and_is_told_who_left_it(show: Show) -> None:
    shown = show(record("lookahead"))
    shown.do("globalThis.moves = []; player.on.change = ({ by, step, phase }) => moves.push([by, step, phase])")
    state = "step: 4, phase: 'answers', focus: ['n1', 'place:9'], zoom: ['guesses', 'text'], view: 'mask', node: 1"
    shown.do(f"player.goto({{ {state} }})")
    assert shown.run("moves") == [["host", 4, "answers"]]
    zones = "[...document.querySelectorAll('.ss-zone')].map((zone) => zone.dataset.zone)"
    assert shown.run(zones) == ["text", "guesses"] and shown.run("player.place()") == {
        "step": 4, "phase": "answers", "view": "mask", "node": 1,
    }  # fmt: skip
    shown.do("player.goto({ step: 5, phase: 'propose', view: null, node: null })")
    assert len(shown.run(zones)) > 2 and shown.run("[player.state.focus.length, player.state.open.size]") == [0, 0]
    shown.press(".")
    shown.at("5/verify")
    assert shown.run("moves").pop() == ["visitor", 5, "verify"]


def test_what_is_in_focus_is_outlined_in_all_phases_and_all_else_is_faint(show: Show) -> None:
    """An accepted guess takes the outline along into the text."""
    shown = show(record("draft_model"), reduced_motion="reduce")
    step = next(step for step in shown.trace.steps if step.accepted and step.index)
    outlined = "[...document.querySelectorAll('.ss-in-focus')].map((piece) => Number(piece.dataset.node))"
    shown.do(f"player.goto({{ step: {step.index}, phase: 'propose', focus: ['n1'] }})")
    seen = shown.walk([step.index], ["propose", "verify", "answers", "accept", "commit"], outlined)
    assert all(1 in nodes and {*nodes} == {1} for nodes in seen)
    ink = "getComputedStyle(document.querySelector('.ss-piece{}')).color"
    assert shown.run(ink.format(":not(.ss-in-focus)")) != shown.run(ink.format(".ss-in-focus"))
    shown.press("Escape")
    assert shown.run(outlined) == []
