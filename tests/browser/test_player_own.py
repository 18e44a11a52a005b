"""The token that the target wrote itself behind the accepted guesses: pointed at, pinned and told of like any guess."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from decoding.types import Trace
from tests.browser.conftest import Shown
from tests.viz.records import record
from viz.fates import emitted_fates
from viz.palette import Fate

Show = Callable[..., Shown]
pytestmark = pytest.mark.slow  # marks of one kind of token
MARKED = '[...document.querySelectorAll(".ss-body .ss-text .ss-{0}")].map((span) => Number(span.dataset.at))'
TREE = """(() => { const plot = player.cards.cards.get("tree").content, area = plot.gd.getBoundingClientRect();
  const [x, y] = [plot.figure.data[4].x.at(-1), plot.figure.data[4].y.at(-1)];
  const { xaxis, yaxis } = plot.gd._fullLayout;
  return [area.left + xaxis._offset + xaxis.d2p(x), area.top + yaxis._offset + yaxis.d2p(y)]; })()"""
OUTLINE = """(() => { const mark = document.querySelector(`[data-view=tree] .ss-mark-${given}`).getBBox();
  const area = player.cards.cards.get("tree").content.gd.getBoundingClientRect();
  return [area.left + mark.x + mark.width / 2, area.top + mark.y + mark.height / 2]; })()"""


def _step(trace: Trace, fate: Fate) -> int:
    """A step whose last token is the target's own, of that kind, behind accepted guesses."""
    return next(k for k, step in enumerate(trace.steps) if step.accepted and emitted_fates(step)[-1] is fate)


def _at(trace: Trace, k: int) -> int:
    """The place of a step's last token among all that were written."""
    return sum(len(step.emitted) for step in trace.steps[: k + 1]) - 1


@pytest.mark.slow  # some seconds in a browser
@pytest.mark.parametrize(("method", "fate"), [("lookahead", Fate.CORRECTION), ("draft_model", Fate.BONUS)])
def test_an_own_token_is_linked_between_text_and_tree(show: Show, method: str, fate: Fate) -> None:
    """Whoever points at it in the text must see it in the tree, and the other way round, not the guess before it."""
    trace = record(method)
    k = _step(trace, fate)
    step, at = trace.steps[k], _at(trace, k)
    shown = show(trace, step=k, height=2400, reduced_motion="reduce")  # no place moves while it is pointed at
    token, end = f".ss-text .ss-token[data-at='{at}']", step.path[-1]
    shown.open("mask", "tree")
    shown.page.hover(token)
    shown.wait(f"player.state.hover?.own && player.state.hover.node === {end}")
    assert shown.run(MARKED.format("hovered")) == [at]
    assert shown.run(OUTLINE, "hovered") == pytest.approx(shown.run(TREE), abs=1)
    assert "Decided at" in shown.text(".ss-tooltip") and f"node {end}," in shown.text(".ss-tooltip")
    assert shown.run('document.querySelector("[data-view=mask] .ss-mark-hovered[d]") !== null')
    shown.page.click(token)
    shown.wait("player.state.pin?.own")
    assert shown.run(MARKED.format("pinned")) == [at]
    assert shown.run(OUTLINE, "pinned") == pytest.approx(shown.run(TREE), abs=1)
    written, before = (trace.texts[token].replace(" ", "·") for token in (step.emitted[-1], step.tokens[end]))
    assert shown.text(".ss-chip").startswith(f"Pinned “{written}”, the target's own token after “{before}”")
    shown.page.click(token)
    shown.wait("player.state.pin === null")
    x, y = shown.run(TREE)
    shown.page.mouse.move(1, 1)
    shown.page.mouse.move(x, y)
    shown.wait("player.state.hover?.own")
    shown.page.mouse.click(x, y)
    shown.wait("player.state.pin?.own")
    shown.press("Escape")
    shown.wait("player.state.pin === null")


def test_an_own_token_is_kept_by_the_address_and_passed_by_the_walk(show: Show) -> None:
    """It goes by the number behind the last node's; the one behind that is nobody's."""
    trace = record("lookahead")
    k = _step(trace, Fate.CORRECTION)
    shown, count = show(trace, step=k), len(trace.steps[k].tokens)
    shown.do(f"player.goto({{ step: {k}, node: {count + 1} }})")
    assert shown.run("player.state.pin") is None
    shown.do(f"player.goto({{ step: {k}, node: {count} }})")
    spot = {"step": k, "node": trace.steps[k].path[-1], "own": True}
    assert shown.run("player.state.pin") == spot and shown.run("player.place().node") == count
    for button, node in (("Next", 0), ("Previous", count), ("Previous", count - 1), ("Next", count)):
        shown.page.click(f"button[aria-label='{button} node']")
        shown.wait(f"player.place().node === {node}")
    assert shown.run("player.state.pin") == spot


def test_autoregressive_tokens_are_linked_too(show: Show) -> None:
    """There every token is the target's own, and was decided at the root of its step."""
    trace = record("autoregressive")
    shown = show(trace, step=3, height=2400)
    shown.page.click(".ss-text .ss-token[data-at='3']")
    shown.wait("player.state.pin?.own && player.state.pin.node === 0")
    assert shown.run(MARKED.format("pinned")) == [3]
    shown.do("player.cards.toggle('mask', true)")
    shown.wait('document.querySelector("[data-view=mask] .ss-mark-pinned[d]")')
    assert "the root" in shown.text(".ss-facts")


def test_a_pinned_own_token_is_not_told_before_the_target_chose_it(show: Show) -> None:
    """A visitor who goes back to the proposal with a pin is not told the outcome by it."""
    trace = record("lookahead")
    k = _step(trace, Fate.CORRECTION)
    shown, written = show(trace, step=k), trace.texts[trace.steps[k].emitted[-1]].replace(" ", "·")
    shown.do(f"player.pin({k}, {trace.steps[k].path[-1]}, true); player.seek({k}, 'verify')")
    assert f"“{written}”, the target" not in shown.text(".ss-chip") and "not chosen yet" in shown.text(".ss-facts")
    shown.do(f"player.seek({k}, 'accept')")
    assert f"“{written}”, the target" in shown.text(".ss-chip")


def test_the_pair_compares_at_the_place_of_an_own_token(show: Show) -> None:
    """The bars are the target's shares behind the node where it chose, with its own token among them."""
    trace = record("draft_model")
    k = _step(trace, Fate.CORRECTION)
    step = trace.steps[k]
    shown = show(trace, step=k)
    shown.do(f"player.cards.toggle('pair', true); player.record.feed(given); player.pin({k}, {step.path[-1]}, true)",
             shown.play.detail(k))  # fmt: skip
    figure = "player.cards.cards.get('pair').content.figure.data"
    shown.wait(f"{figure}[4].text[0].includes('chose this token itself')")
    shares = dict(step.top[step.path[-1]])
    assert max(shown.run(f"Array.from({figure}[0].x)")) == pytest.approx(max(shares.values()), abs=1e-3)
    assert step.emitted[-1] in shares and len(shown.run(f"{figure}[3].sign")) == 1
    best = [float(row.split("\n")[-1]) for row in shown.page.locator(".ss-best li").all_inner_texts()]
    assert best == pytest.approx([*shares.values()], abs=1e-3) and shown.page.locator(".ss-same").count() == 1
